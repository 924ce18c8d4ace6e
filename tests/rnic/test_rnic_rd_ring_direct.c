/* RD through shared memory, and a process that means harm: it says that the data is in its memory,
 * and where, or is told where the target's is. */
#include <pthread.h>
#include <stdatomic.h>
#include "rd_ring.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_SHM", "1", 1);
}

/* ---- memory that is named ---- */

struct named {
	struct rec_from from;
	struct iovec iov[RNIC_MAX_SGE + 1];
};

/* A write of these bytes from our memory, for which a permission may have been given. */
static bool direct(struct rd_ring *r, uint16_t n, uint32_t len, struct named *d, size_t d_len)
{
	struct rec h = {.op = REC_WRITE,
			.flags = REC_DIRECT | REC_LAST,
			.n = n,
			.seq = ++r->seq,
			.len = len};
	struct rec_target t = rd_ring_target(r, 0);

	return rd_ring_put(r, &h, &t, sizeof(t), d, d_len);
}

static struct named good_name(struct rd_ring *r, int *grant)
{
	static uint8_t data[65536];
	struct named d = {.iov = {{data, RING_LEN}}};

	memset(data, 0, sizeof(data));
	*grant = shm_grant_give(&r->link, &d.from.word);
	CHECK(*grant >= 0);
	d.from.grant = (uint32_t)*grant;
	return d;
}

#define ONE (sizeof(struct rec_from) + sizeof(struct iovec))

static void test_named_lengths(void **state)
{
	static const struct {
		uint16_t n;
		size_t body;
		uint64_t len[2];
	} bad[] = {
		{0, sizeof(struct rec_from), {0, 0}},
		{1, ONE, {0, 0}},
		{1, ONE, {RING_LEN + 1, 0}},
		{1, ONE, {RING_LEN - 1, 0}},
		{1, ONE, {UINT64_MAX, 0}},
		{1, ONE, {UINT64_C(1) << 32 | RING_LEN, 0}},
		{1, ONE - 1, {RING_LEN, 0}},
		{1, ONE + 16, {RING_LEN, 0}},
		{1, 4, {0, 0}},
		{1, 0, {0, 0}},
		{2, ONE, {RING_LEN, 0}},
		{2, ONE + 16, {UINT64_MAX, RING_LEN + 1}},
		{2, ONE + 16, {UINT32_MAX, RING_LEN + 1}},
		{2, ONE + 16, {UINT64_C(1) << 63, UINT64_C(1) << 63}},
		{2, ONE + 16, {RING_LEN, RING_LEN}},
		{RNIC_MAX_SGE + 1, sizeof(struct named), {64, 64}},
		{UINT16_MAX, ONE, {RING_LEN, 0}},
	};
	struct rd_ring r;
	int grant;

	(void)state;
	rd_ring_open(&r);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct named d;

		rd_ring_meet(&r);
		rd_ring_introduce(&r);
		if (!r.found) { /* the kernel does not let us */
			rd_ring_leave(&r);
			break;
		}
		d = good_name(&r, &grant);
		d.iov[1].iov_base = d.iov[0].iov_base;
		d.iov[0].iov_len = bad[i].len[0];
		d.iov[1].iov_len = bad[i].len[1];
		CHECK(direct(&r, bad[i].n, RING_LEN, &d, bad[i].body));
		rd_ring_check_gone(&r);
	}
	rd_ring_close(&r);
}

static void test_named_memory(void **state)
{
	uint8_t *region;
	struct named d;
	struct rd_ring r;
	int grant;

	(void)state;
	rd_ring_open(&r);
	region = r.guard + RING_AT;
	/* Before anybody has found out whether it works. */
	rd_ring_meet(&r);
	d = good_name(&r, &grant);
	CHECK(direct(&r, 1, RING_LEN, &d, ONE));
	rd_ring_check_gone(&r);
	rd_ring_meet(&r);
	rd_ring_introduce(&r);
	for (int i = 0; r.found && i < 8; i++) {
		d = good_name(&r, &grant);
		memset(d.iov[0].iov_base, 0x40 + i, RING_LEN);
		switch (i) {
		case 1:
			d.from.word++;
			break;
		case 2:
			d.from.word -= 2;
			break;
		case 3:
			d.from.grant = SHM_GRANTS;
			break;
		case 4:
			d.from.grant = UINT32_MAX;
			break;
		case 5:
			shm_grant_revoke(&r.link, grant);
			break;
		case 6:
			d.iov[0].iov_base = NULL;
			break;
		case 7:
			d.iov[0].iov_base = (void *)(UINTPTR_MAX - 10);
			break;
		default:
			break;
		}
		CHECK(direct(&r, 1, RING_LEN, &d, ONE));
		if (i)
			CHECK(rd_ring_get(&r, REC_NAK, 2000));
		rd_ring_check_up(&r);
		/* Without a permission it is not even looked at. */
		CHECK_EQ(region[0], 0x40);
		shm_grant_end(&r.link, grant);
	}
	rd_ring_leave(&r);
	rd_ring_close(&r);
}

/* All at once what has to come in pieces: nobody else would get a turn meanwhile. Two of the
 * longest pieces are all right. */
static void test_named_at_once(void **state)
{
	uint32_t len = REC_DIRECT_MAX;
	uint8_t *data = calloc(1, 2 * len);
	struct rd_ring r;
	int grant;

	(void)state;
	CHECK(data);
	rd_ring_open(&r);
	for (int once = 0; once < 2; once++) {
		struct rec_target t = {.addr = (uintptr_t)r.s.p.b.buf, .rkey = r.s.p.b.mr->rkey};
		struct rec h = {
			.op = REC_WRITE, .flags = REC_DIRECT, .n = 1, .seq = 1, .len = 2 * len};
		struct named d;

		rd_ring_meet(&r);
		rd_ring_introduce(&r);
		if (!r.found)
			break;
		d = good_name(&r, &grant);
		for (h.off = 0; h.off < h.len; h.off += (uint32_t)d.iov[0].iov_len) {
			d.iov[0] = (struct iovec){data + h.off, once ? h.len : len};
			h.flags |= h.off + d.iov[0].iov_len == h.len ? REC_LAST : 0;
			CHECK(rd_ring_put(&r, &h, &t, sizeof(t), &d, ONE));
		}
		r.seq = 1;
		if (once) {
			rd_ring_check_gone(&r);
		} else {
			rd_ring_check_up(&r);
			rd_ring_leave(&r);
		}
	}
	rd_ring_close(&r);
	free(data);
}

/* ---- answers ---- */

/* What the target reads from us: only what it has asked for, and only there. */
static void test_answers(void **state)
{
	struct named d;
	struct rd_ring r;
	int grant;

	(void)state;
	rd_ring_open(&r);
	for (int i = 0; i < 6; i++) {
		struct rec h = {.op = REC_DATA, .flags = REC_DIRECT | REC_LAST, .n = 1};
		uint8_t *to = r.s.p.b.buf + (1 << 20);
		struct rec_target t;
		struct ibv_wc wc;

		rd_ring_meet(&r);
		rd_ring_introduce(&r);
		if (!r.found)
			break;
		memset(to, RING_GUARD, 4096);
		rd_post(&r.s.bh, IBV_WR_RDMA_READ, 3, 1 << 20, 1000, 0);
		rd_ring_want(&r, REC_READ);
		memcpy(&t, r.body, sizeof(t));
		d = good_name(&r, &grant);
		h.imm = t.handle;
		h.ack = r.ack = r.last.seq;
		d.iov[0].iov_len = i == 1 ? 1001 : 1000;
		h.off = i == 2 ? 1 : i == 3 ? UINT32_MAX : 0;
		d.from.grant = i == 4 ? SHM_GRANTS : d.from.grant;
		if (i == 5) /* answered twice */
			CHECK(rd_ring_put(&r, &h, &d, ONE, NULL, 0));
		CHECK(rd_ring_put(&r, &h, &d, ONE, NULL, 0));
		if (i == 4)
			CHECK(rd_ring_gone(&r, 2000));
		CHECK(wait_wc(r.s.p.b.scq, &wc, RIG_WAIT));
		CHECK_EQ(wc.wr_id, 3);
		CHECK_EQ(wc.status, i == 0 || i == 5 ? IBV_WC_SUCCESS
				    : i == 4         ? IBV_WC_RETRY_EXC_ERR
						     : IBV_WC_BAD_RESP_ERR);
		for (int k = 1000; k < 4096; k++)
			CHECK_EQ(to[k], RING_GUARD);
		CHECK_EQ(to[0], i == 0 || i == 5 ? 0 : RING_GUARD);
		if (i != 4)
			rd_ring_check_up(&r);
		rd_ring_leave(&r);
	}
	rd_ring_close(&r);
}

/* A permission of the target is given back twice, or one that is not ours to give back. */
static void test_copied(void **state)
{
	struct rec copied = {.op = REC_COPIED};
	struct rec_from from;
	struct rec_target t;
	struct rd_ring r;

	(void)state;
	rd_ring_open(&r);
	for (int i = 0; i < 3; i++) {
		struct rec h = {.op = REC_READ, .flags = REC_LAST, .seq = 1, .len = 20000};

		rd_ring_meet(&r);
		rd_ring_introduce(&r);
		if (i < 2) {
			t = rd_ring_target(&r, 0);
			t.rkey = r.s.p.b.mr->rkey;
			t.addr = (uintptr_t)r.s.p.b.buf;
			r.seq = 1;
			CHECK(rd_ring_put(&r, &h, &t, sizeof(t), NULL, 0));
			CHECK(rd_ring_get(&r, REC_DATA, 2000));
			memcpy(&from, r.body, sizeof(from));
		} else { /* a Send's */
			rd_post(&r.s.bh, IBV_WR_SEND, 3, 0, 20000, 0);
			rd_ring_want(&r, REC_SEND);
			memcpy(&from, r.body, sizeof(from));
		}
		CHECK(r.last.flags & REC_DIRECT);
		CHECK(shm_grant_good(&r.link, from.grant, from.word));
		copied.imm = from.grant;
		CHECK(rd_ring_put(&r, &copied, NULL, 0, NULL, 0));
		if (i == 0) {
			rd_ring_check_up(&r);
			CHECK(!shm_grant_good(&r.link, from.grant, from.word));
		}
		if (i < 2)
			CHECK(rd_ring_put(&r, &copied, NULL, 0, NULL, 0));
		CHECK(rd_ring_gone(&r, 2000));
		if (i == 2)
			EXPECT(r.s.p.b.scq, 3, IBV_WC_RETRY_EXC_ERR);
		rd_ring_check_gone(&r);
	}
	rd_ring_close(&r);
}

/* ---- under the target's eyes ---- */

#define CHANGE_MS 400
#define MUCH      (RING_SPAN - RING_AT) /* more than the region */

struct changer {
	_Atomic(uint64_t) *len; /* in the ring */
	atomic_bool stop;
};

static void *change(void *arg)
{
	struct changer *c = arg;

	while (!atomic_load_explicit(&c->stop, memory_order_relaxed)) {
		atomic_store_explicit(c->len, MUCH, memory_order_relaxed);
		for (volatile int i = 0; i < 20; i++)
			;
		atomic_store_explicit(c->len, RING_LEN, memory_order_relaxed);
		for (volatile int i = 0; i < 20; i++)
			;
	}
	return NULL;
}

/* How long the data is changes while the target looks at it: it may get a wrong message, but it
 * must not write where the key does not lead. */
static void test_changing(void **state)
{
	uint64_t end = rig_now_ms() + CHANGE_MS;
	unsigned int lives = 0, tries = 0;
	struct rd_ring r;
	int grant;

	(void)state;
	if (RIG_TSAN)
		skip(); /* the race is the point */
	rd_ring_open(&r);
	r.size = SHM_RING_MIN;
	for (; rig_now_ms() < end; lives++) {
		struct changer c = {0};
		struct named d;
		pthread_t t;

		rd_ring_meet(&r);
		rd_ring_introduce(&r);
		if (!r.found)
			break;
		d = good_name(&r, &grant);
		while (r.link.tx.pos % r.size) /* all behind the same place */
			CHECK(rd_ring_put(&r, &(struct rec){.op = REC_ACK}, NULL, 0, NULL, 0));
		/* That of the first record; the others are there in the next laps. */
		c.len = (void *)(r.link.tx.data + SHM_RING_HEADER + sizeof(struct rec) +
				 sizeof(struct rec_target) + offsetof(struct named, iov) +
				 offsetof(struct iovec, iov_len));
		CHECK_0(pthread_create(&t, NULL, change, &c));
		for (bool up = true; up && rig_now_ms() < end; tries += up)
			up = r.link.tx.pos % r.size ? rd_ring_put(&r, &(struct rec){.op = REC_ACK},
								  NULL, 0, NULL, 0)
						    : direct(&r, 1, RING_LEN, &d, ONE);
		atomic_store(&c.stop, true);
		pthread_join(t, NULL);
		rd_ring_leave(&r);
		rd_ring_check_guard(&r);
	}
	print_message("%u lives, %u records\n", lives, tries);
	stage_good(&r.s);
	rd_ring_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_named_lengths), RIG_TEST(test_named_memory),
		RIG_TEST(test_named_at_once), RIG_TEST(test_answers),
		RIG_TEST(test_copied),        RIG_TEST(test_changing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
