/* RD through shared memory, and a process that means harm: what it writes into its ring must not
 * get it more than its keys do, nor hang or end the target, and good ones are served meanwhile. */
#include "rd_ring.h"
#include "rnic_rd_shm.h"
#include "util_clock.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_SHM", "1", 1);
}

/* ---- pieces that do not fit together ---- */

/* A receive is there, is not used, and comes back. */
static void test_other_message(void **state)
{
	struct rec send = {.op = REC_SEND, .seq = 1, .len = 200};
	struct rec write = {.op = REC_WRITE, .seq = 1, .off = 100};
	struct rec_target t;
	uint8_t data[100] = {0};
	struct rd_ring r;

	(void)state;
	rd_ring_open(&r);
	for (int i = 0; i < 4; i++) {
		/* The second piece is another operation, has no length, or another one; no key
		 * was ever shown. */
		rd_ring_meet(&r);
		end_recv(&r.s.p.b, 5, 0, 1000);
		CHECK(rd_ring_put(&r, &send, NULL, 0, data, sizeof(data)));
		t = rd_ring_target(&r, 0);
		t.rkey = i & 1 ? 0xdeadbeef : t.rkey;
		write.op = i & 2 ? REC_WRITE_IMM : REC_WRITE;
		write.len = i & 1 ? 0 : 200;
		write.flags = i & 1 ? 0 : REC_LAST;
		CHECK(rd_ring_put(&r, &write, &t, sizeof(t), data, sizeof(data)));
		CHECK(rd_ring_gone(&r, 2000));
		rd_post(&r.s.p.ab, IBV_WR_SEND, 6, 0, 10, 0);
		CHECK_EQ(EXPECT_OK(r.s.p.b.rcq, 5).byte_len, 10);
		EXPECT_OK(r.s.p.a.scq, 6);
		rd_ring_check_gone(&r);
	}
	rd_ring_close(&r);
}

static void test_pieces(void **state)
{
	static const struct {
		struct {
			uint32_t len, off, n;
			bool last;
		} piece[2];
	} bad[] = {
		{{{128, 0, 100, false}, {1, 100, 100, false}}},
		{{{128, 0, 100, false}, {99, 100, 28, true}}},
		{{{128, 0, 100, false}, {0, 100, 100, true}}},
		{{{128, 0, 100, false}, {UINT32_MAX, 100, 100, false}}},
		{{{128, 0, 100, false}, {128, 100, 100, true}}},
		{{{128, 0, 100, false}, {128, 99, 29, true}}},
		{{{128, 0, 100, false}, {128, 101, 27, true}}},
		{{{128, 0, 100, false}, {128, 0, 128, true}}},
		{{{128, 0, 100, false}, {128, UINT32_MAX, 100, true}}},
		{{{128, 0, 100, false}, {128, (uint32_t)-100, 100, true}}},
		{{{128, 0, 100, false}, {128, 100, 28, false}}},
		{{{128, 0, 100, true}}},
		{{{128, 0, 129, true}}},
		{{{128, 1, 127, true}}},
		{{{128, 200, 0, true}}},
		{{{128, UINT32_MAX, 1, true}}},
		{{{0, 0, 1, true}}},
		{{{0, 0, 32768, true}}},
		{{{0, 0, 0, false}}},
	};
	struct rd_ring r;

	(void)state;
	rd_ring_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		rd_ring_meet(&r);
		for (int k = 0; k < 2; k++) {
			if (k && !bad[i].piece[0].len)
				continue;
			r.seq = 0; /* of one message */
			rd_ring_write(&r, bad[i].piece[k].last ? REC_LAST : 0, bad[i].piece[k].len,
				      bad[i].piece[k].off, bad[i].piece[k].n);
			if (!bad[i].piece[1].len && !bad[i].piece[1].n)
				break;
		}
		rd_ring_check_gone(&r);
	}
	rd_ring_close(&r);
}

/* ---- what is refused, and what is no harm ---- */

/* Where a key does not lead. */
static void test_keys(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t len;
		uint64_t off;
	} far[] = {
		{REC_WRITE, 129, 0},        {REC_WRITE, UINT32_MAX, 0},
		{REC_WRITE, 128, 1},        {REC_WRITE, 1, 128},
		{REC_WRITE, 1, UINT64_MAX}, {REC_WRITE_IMM, 128, 1},
		{REC_READ, 128, 1},         {REC_READ, UINT32_MAX, 0},
		{REC_READ, 1, UINT64_MAX},  {REC_READ, 20000, 0},
		{REC_READ, 2, UINT64_MAX},  {REC_ADD, 0, 128},
		{REC_ADD, 0, (uint64_t)-8}, {REC_ADD, 0, 121},
		{REC_SWAP, 0, 1},           {REC_SWAP, 0, UINT64_MAX / 2},
	};
	uint64_t refused;
	struct rd_ring r;

	(void)state;
	rd_ring_open(&r);
	rd_ring_meet(&r);
	for (size_t i = 0; i < ARRAY_SIZE(far); i++) {
		struct rec h = {.op = far[i].op, .seq = ++r.seq, .len = far[i].len};
		struct rec_target t = rd_ring_target(&r, far[i].off);
		uint8_t data[128] = {0};
		size_t n = h.op >= REC_ADD ? 16 : h.op == REC_READ || h.len > 128 ? 0 : h.len;

		refused = rd_stats(&r.s.p.b).refused;
		h.flags = n == h.len || h.op >= REC_READ ? REC_LAST : 0;
		CHECK(rd_ring_put(&r, &h, &t, sizeof(t), data, n));
		if (h.op <= REC_WRITE_IMM) {
			CHECK(rd_ring_get(&r, REC_NAK, 2000));
			CHECK_EQ(r.last.seq, r.seq);
		} else {
			CHECK(rd_ring_get(&r, REC_ERROR, 2000));
		}
		CHECK_EQ(rd_stats(&r.s.p.b).refused, refused + 1);
		rd_ring_check_up(&r);
	}
	/* The second piece leads elsewhere. */
	CHECK(rd_ring_write(&r, 0, 128, 0, 100));
	{
		struct rec h = {
			.op = REC_WRITE, .flags = REC_LAST, .seq = ++r.seq, .len = 128, .off = 100};
		struct rec_target t = rd_ring_target(&r, 100);

		CHECK(rd_ring_put(&r, &h, &t, sizeof(t), &(uint8_t[28]){0}, 28));
		CHECK(rd_ring_get(&r, REC_NAK, 2000));
	}
	rd_ring_check_up(&r);
	rd_ring_leave(&r);
	rd_ring_close(&r);
}

static void test_records(void **state)
{
	static const struct {
		uint8_t op;
		uint32_t ack, imm;
		size_t n; /* of the body */
		bool up;  /* no harm */
	} one[] = {
		{0, 0, 0, 0, false},
		{REC_COPIED + 1, 0, 0, 0, false},
		{255, 0, 0, 0, false},
		{REC_ACK, 1, 0, 0, false},
		{REC_ACK, 0x7fffffff, 0, 0, false},
		{REC_ACK, 0x80000001, 0, 0, true}, /* long ago */
		{REC_ACK, UINT32_MAX, 0, 0, true},
		{REC_NAK, 0, 1, 0, true},
		{REC_NAK, 1, 2, 0, false},
		{REC_NAK, 0, UINT32_MAX, 0, true},
		{REC_RNR, 0, UINT32_MAX, 0, true},
		{REC_READY, 0, 0, 0, true},
		{REC_FOUND, 0, 7, 100, true},
		{REC_WRITE, 0, 0, 15, false},
		{REC_WRITE_IMM, 0, 0, 0, false},
		{REC_READ, 0, 0, 15, false},
		{REC_READ, 0, 0, 0, false},
		{REC_ADD, 0, 0, 16, false},
		{REC_ADD, 0, 0, 31, false},
		{REC_SWAP, 0, 0, 33, false},
		{REC_DATA, 0, 1, 100, true}, /* nobody has asked */
		{REC_DATA, 0, UINT32_MAX, 0, true},
		{REC_VALUE, 0, 1, 8, true},
		{REC_VALUE, 0, 1, 7, false},
		{REC_ERROR, 0, 77, 8, true},
		{REC_ERROR, 0, 77, 0, false},
		{REC_WORD, 0, 0, 15, false},
		{REC_WORD, 0, 0, 16, true}, /* at address 0 */
		{REC_COPIED, 0, 0, 0, false},
		{REC_COPIED, 0, 63, 0, false},
		{REC_COPIED, 0, 64, 0, false},
		{REC_COPIED, 0, UINT32_MAX, 0, false},
		{REC_BYE, 0, 0, 0, false},
	};
	uint8_t body[128] = {0};
	struct rd_ring r;

	(void)state;
	rd_ring_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(one); i++) {
		struct rec h = {.op = one[i].op,
				.flags = one[i].op <= REC_SWAP ? REC_LAST : 0,
				.seq = 1,
				.ack = one[i].ack,
				.imm = one[i].imm};

		rd_ring_meet(&r);
		CHECK(rd_ring_put(&r, &h, body, one[i].n, NULL, 0));
		if (one[i].up) {
			rd_ring_check_up(&r);
			rd_ring_leave(&r);
		} else {
			rd_ring_check_gone(&r);
		}
	}
	for (size_t n = 0; n < sizeof(struct rec); n += 23) { /* no header */
		rd_ring_meet(&r);
		CHECK(rd_ring_raw(&r, body, n));
		rd_ring_check_gone(&r);
	}
	rd_ring_close(&r);
}

/* ---- too much ---- */

/* Asks, and never reads an answer. */
static void test_greedy(void **state)
{
	struct rd_ring r;

	(void)state;
	rd_ring_open(&r);
	for (int refused = 0; refused < 2; refused++) {
		struct rec h = {
			.op = refused ? REC_WRITE : REC_READ, .flags = REC_LAST, .len = 128};
		struct rec_target t = rd_ring_target(&r, refused);
		uint8_t data[128] = {0};
		uint64_t end = rig_now_ms() + RIG_WAIT;
		bool gone = false;

		rd_ring_meet(&r);
		/* 4096 lines for answers, 32768 refusals that wait. */
		for (h.seq = 1; h.seq < 100000 && !gone && rig_now_ms() < end;) {
			uint8_t *to = shm_ring_reserve(&r.link.tx, sizeof(h) + sizeof(t) + 128);

			if (!to) {
				gone = rd_ring_gone(&r, 0);
				continue;
			}
			memcpy(to, &h, sizeof(h));
			memcpy(to + sizeof(h), &t, sizeof(t));
			memcpy(to + sizeof(h) + sizeof(t), data, sizeof(data));
			shm_ring_commit(&r.link.tx, sizeof(h) + sizeof(t) + (refused ? 128 : 0));
			shm_link_ring(&r.link);
			h.seq++;
		}
		print_message("given up after %u requests\n", h.seq - 1);
		rd_ring_check_gone(&r);
	}
	rd_ring_close(&r);
}

/* Leaves a ring full of records behind: there is no place where they end. */
static void test_full_circle(void **state)
{
	struct rec ack = {.op = REC_ACK};
	struct rd_ring r;

	(void)state;
	if (RIG_TSAN)
		skip(); /* the race is the point */
	rd_ring_open(&r);
	rd_ring_meet(&r);
	rd_ring_check_up(&r); /* one that was never used would not be missed */
	for (uint32_t at = 0; at < r.size; at += SHM_RING_ALIGN) {
		memcpy(r.link.tx.data + at + SHM_RING_HEADER, &ack, sizeof(ack));
		atomic_store(shm_ring_word(r.link.tx.data, r.size, at), sizeof(ack) + 1);
	}
	stage_good(&r.s); /* while it lives it costs its share */
	shm_link_close(&r.link);
	rd_ring_forgotten(&r);
	stage_good(&r.s);
	rd_ring_close(&r);
}

/* ---- what has to be sent again ---- */

#define AGAIN     60
#define AGAIN_LEN 8000

static uint8_t again_byte(uint32_t message, uint32_t at)
{
	return (uint8_t)(message * 13 + at * 7);
}

static void again_send(struct rd_ring *r, uint32_t message)
{
	for (uint32_t k = 0; k < AGAIN_LEN; k++)
		r->s.p.b.buf[k] = again_byte(message, k);
	rd_send_keep(&r->s.bh, message, 0, AGAIN_LEN, 8192 * (size_t)(message + 1));
}

static void again_check(struct rd_ring *r, uint32_t message)
{
	const uint8_t *data = r->body + r->last.n;

	CHECK_EQ(r->last.seq, message + 1);
	CHECK_EQ(r->last.len, AGAIN_LEN);
	for (uint32_t k = 0; k < AGAIN_LEN; k++)
		CHECK_EQ(data[k], again_byte(message, k));
}

/* All have come, and the peer says so. */
static void again_end(struct rd_ring *r)
{
	struct rec ack = {.op = REC_ACK, .ack = AGAIN};

	r->ack = AGAIN;
	CHECK(rd_ring_put(r, &ack, NULL, 0, NULL, 0));
	for (uint32_t i = 0; i < AGAIN; i++)
		EXPECT_OK(r->s.p.b.scq, i);
	rd_ring_check_up(r);
	rd_ring_leave(r);
	rd_ring_close(r);
}

/* The target's memory is its application's again, and the ring, which has the only copy, has come
 * round twice, when the peer says that it has had no receive for any of them. */
static void test_again(void **state)
{
	struct rec rnr = {.op = REC_RNR, .seq = 1, .imm = 1}, ready = {.op = REC_READY};
	struct rd_ring r;

	(void)state;
	rd_ring_open(&r);
	rd_ring_meet(&r);
	for (uint32_t i = 0; i < AGAIN; i++) {
		again_send(&r, i);
		memset(r.s.p.b.buf, 0xee, AGAIN_LEN);
		rd_ring_want(&r, REC_SEND);
		again_check(&r, i);
	}
	for (int round = 0; round < 2; round++) {
		CHECK(rd_ring_put(&r, &rnr, NULL, 0, NULL, 0));
		CHECK(rd_ring_put(&r, &ready, NULL, 0, NULL, 0));
		for (uint32_t i = 0; i < AGAIN; i++) {
			rd_ring_want(&r, REC_SEND);
			again_check(&r, i);
		}
	}
	again_end(&r);
}

/* The ring is full in the middle of what the target has to say. It has room for an acknowledgement,
 * and goes on with the rest all the same as soon as there is room for that. */
static void test_full_and_acked(void **state)
{
	struct rd_ring r;

	(void)state;
	rd_ring_open(&r);
	rd_ring_meet(&r);
	/* Where the first begins in the ring the last one ends a lap later: leaves room for one. */
	CHECK(rd_ring_write(&r, REC_LAST, 8, 0, 8));
	CHECK(rd_ring_get(&r, REC_ACK, 2000));
	for (uint32_t i = 0; i < AGAIN; i++) {
		again_send(&r, i);
		if (i == 0) { /* from now on all goes through the ring */
			rd_ring_want(&r, REC_SEND);
			again_check(&r, i);
		}
	}
	CHECK(rd_ring_write(&r, REC_LAST, 8, 0, 8));
	usleep(50000); /* it is acknowledged, behind what was sent */
	for (uint32_t i = 1; i < AGAIN; i++) {
		rd_ring_want(&r, REC_SEND);
		again_check(&r, i);
	}
	CHECK_EQ(r.done, r.seq);
	again_end(&r);
}

/* ---- when it is acknowledged ---- */

static uint64_t acked_after(struct rd_ring *r)
{
	struct ibv_wc wc;
	uint64_t from;

	CHECK(rd_ring_write(r, REC_LAST, 8, 0, 8));
	from = util_now_ns();
	while (r->done != r->seq && util_now_ns() - from < 1000000000) {
		rnic_poll_cq(r->s.p.b.rcq, 1, &wc);
		rd_ring_get(r, 0, 0);
	}
	return util_now_ns() - from;
}

/* Soon, if it is polled: not as if more of a message were to come, as the last packet over UDP may
 * have had it. */
static void test_acked_soon(void **state)
{
	struct rnic_engine *e;
	struct rnic_rd_shm *s;
	int soon = 0;
	struct rd_ring r;

	(void)state;
	if (RIG_TSAN)
		skip(); /* where everything takes long */
	rd_ring_open(&r);
	rd_ring_meet(&r);
	e = rnic_qp(r.s.p.b.qp)->e;
	for (int i = 0; i < 500; i++) {
		rnic_lock(e);
		list_for_each (s, &rnic_qp(r.s.p.b.qp)->rd->links, all)
			if (s->peer && s->peer->lane)
				rnic_rd_due_of(s->peer)->busy = true;
		rnic_unlock(e);
		soon += acked_after(&r) < 40000;
	}
	print_message("%d of 500 within 40 us\n", soon);
	CHECK(soon > 100);
	rd_ring_leave(&r);
	rd_ring_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_other_message),  RIG_TEST(test_pieces),
		RIG_TEST(test_keys),           RIG_TEST(test_records),
		RIG_TEST(test_greedy),         RIG_TEST(test_full_circle),
		RIG_TEST(test_again),          RIG_TEST(test_acked_soon),
		RIG_TEST(test_full_and_acked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
