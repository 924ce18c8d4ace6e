/* RD queue pairs and a peer that means harm: what it asks for.
 *
 * Whatever it sends, a good pair on the same queue pair goes on working, memory that no key
 * gives away does not change, and the device's own memory stays bounded. */
#include <malloc.h>
#include "rd_peer.h"
#include "rnic_rd.h"

#define SECRET (1 << 20) /* offset of what nobody may write to */

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 1);
}

struct stage {
	struct rd_pair p; /* a is good, b is attacked */
	struct rd_peer h;
	uint64_t n;
	bool frugal; /* no receives but those that the test posts */
};

static void stage_open(struct stage *s, const struct rig_opts *target)
{
	memset(s, 0, sizeof(*s));
	rd_pair_open(&s->p, NULL, target);
	rd_peer_open(&s->h, &s->p.b);
	CHECK(rd_peer_shake(&s->h));
}

static void stage_close(struct stage *s)
{
	rd_peer_close(&s->h);
	rd_pair_close(&s->p);
}

/* The good one's message. The hostile one may get receives, too: there are always some more. */
static struct ibv_wc from_good(struct stage *s)
{
	uint64_t end = rig_now_ms() + RIG_WAIT;
	struct ibv_wc wc;

	while (rig_now_ms() < end) {
		if (!s->frugal)
			try_recv(&s->p.b, 1, 0, 5000);
		rd_peer_drain(&s->h); /* it says that it lives */
		if (wait_wc(s->p.b.rcq, &wc, 20) && wc.src_qp == s->p.a.qp->qp_num)
			return wc;
	}
	CHECK(!"a receive for the good one");
	return wc;
}

/* A round of everything between the good ones. */
static void good(struct stage *s)
{
	struct rd_pair *p = &s->p;
	uint64_t id = 1000000 + s->n++;
	uint64_t *word = (uint64_t *)(p->b.buf + (3 << 20)), before = *word;
	struct ibv_wc wc;

	memset(p->a.buf, (int)s->n, 5000);
	rd_post(&p->ab, IBV_WR_SEND, id, 0, 5000, 0);
	wc = from_good(s);
	CHECK_0(wc.status);
	CHECK_EQ(wc.byte_len, 5000);
	EXPECT_OK(p->a.scq, id);
	rd_post(&p->ab, IBV_WR_RDMA_WRITE, id, 0, 5000, 2 << 20);
	EXPECT_OK(p->a.scq, id);
	rd_post(&p->ab, IBV_WR_RDMA_READ, id, 8192, 5000, 2 << 20);
	EXPECT_OK(p->a.scq, id);
	CHECK(!memcmp(p->a.buf, p->a.buf + 8192, 5000));
	rd_add(&p->ab, id, 16384, 3 << 20, 1);
	EXPECT_OK(p->a.scq, id);
	CHECK_EQ(*word, before + 1);
}

/* What the process has from malloc. Sanitizers have their own, which does not tell. */
static size_t in_use(void)
{
	return RIG_ASAN || RIG_TSAN ? 0 : mallinfo2().uordblks;
}

static void bounded(size_t before, size_t more)
{
	size_t now = in_use();

	if (now > before + more)
		print_error("memory grew by %zu, more than %zu\n", now - before, more);
	CHECK(now <= before + more);
}

/* ---- order ---- */

static void test_far_ahead(void **state)
{
	static const uint32_t far[] = {8193, 8194, 100000, 0x7fffffff, 0x80000000, 0xffffffff};
	struct stage s;
	size_t before;

	(void)state;
	stage_open(&s, NULL);
	good(&s);
	before = in_use();
	for (size_t i = 0; i < ARRAY_SIZE(far); i++) {
		rd_peer_send(&s.h, far[i], 0, true, 0, 10);
		rd_peer_write(&s.h, far[i], s.p.b.mr->rkey, (uintptr_t)s.p.b.buf, 10);
		rd_peer_say(&s.h, WIRE_RD_DATA, WIRE_RD_SKIP, far[i], NULL, 0);
		rd_peer_say(&s.h, WIRE_RD_DATA, WIRE_RD_SKIP | WIRE_RD_RESPONSE, far[i], NULL, 0);
		good(&s);
	}
	bounded(before, 64 << 10);
	stage_close(&s);
}

/* One number is missing for ever, thousands come behind it. */
static void test_gap(void **state)
{
	struct stage s;
	size_t before;

	(void)state;
	stage_open(&s, NULL);
	good(&s);
	before = in_use();
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 1; i < 9000; i++)
			rd_peer_read(&s.h, i, s.p.b.mr->rkey, (uintptr_t)s.p.b.buf, 8, i);
		rd_peer_drain(&s.h);
		good(&s);
	}
	for (uint32_t i = 1; i < 9000; i++)
		rd_peer_write(&s.h, i, s.p.b.mr->rkey, (uintptr_t)s.p.b.buf, 8);
	for (uint32_t i = 1; i < 9000; i++)
		rd_peer_say(&s.h, WIRE_RD_DATA, WIRE_RD_SKIP | WIRE_RD_RESPONSE, i, NULL, 0);
	rd_peer_drain(&s.h);
	good(&s);
	bounded(before, 512 << 10);
	/* The gap closes: everything runs at once. */
	rd_peer_say(&s.h, WIRE_RD_DATA, WIRE_RD_SKIP, 0, NULL, 0);
	rd_peer_say(&s.h, WIRE_RD_DATA, WIRE_RD_SKIP | WIRE_RD_RESPONSE, 0, NULL, 0);
	good(&s);
	bounded(before, 512 << 10);
	stage_close(&s);
}

/* ---- receives ---- */

static void test_message_numbers(void **state)
{
	static const uint32_t ssn[] = {1,  5,     64,         65,         1000,       5, 3, 1,
				       63, 0xfff, 0x7fffffff, 0x80000000, 0xffffffff, 0, 2, 4};
	struct rig_opts o = rd_defaults();
	struct stage s;

	(void)state;
	o.recv_wr = 256;
	stage_open(&s, &o);
	for (uint32_t round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < ARRAY_SIZE(ssn); i++)
			rd_peer_send(&s.h, round * 16 + i, ssn[i] + round, i % 3, i % 5 ? 0 : 3000,
				     10);
		/* In this order, and the other way round. */
		for (uint32_t i = ARRAY_SIZE(ssn); i--;)
			rd_peer_send(&s.h, round * 16 + i, ssn[i] + round, true, 0, 10);
		rd_peer_drain(&s.h);
		for (uint64_t i = 0; i < 4; i++)
			try_recv(&s.p.b, i, SECRET / 2, 5000);
		good(&s);
	}
	stage_close(&s);
}

/* Messages that never end hold receives, but not all of them. */
static void test_unfinished(void **state)
{
	struct rig_opts o = rd_defaults();
	struct stage s;

	(void)state;
	o.recv_wr = 256;
	stage_open(&s, &o);
	for (uint64_t i = 0; i < 200; i++)
		end_recv(&s.p.b, 2000000 + i, 0, 5000);
	for (uint32_t i = 0; i < 5000; i++)
		rd_peer_send(&s.h, i, i, false, 0, 100);
	for (uint32_t i = 0; i < 5000; i++)
		rd_peer_send(&s.h, i, i, false, 0, 100);
	s.frugal = true;
	for (int i = 0; i < 100; i++)
		good(&s);
	stage_close(&s);
}

/* The same with fewer receives than one peer may hold. Who only begins messages does not get the
 * last ones; if it was there first and alone, others get them when it is given up. */
static void test_unfinished_few(void **state)
{
	struct rig_opts o = rd_defaults();
	struct stage s;

	(void)state;
	o.timeout = 15; /* a second */
	for (int first = 0; first < 2; first++) {
		stage_open(&s, &o);
		if (!first)
			good(&s);
		for (uint64_t i = 0; i < 40; i++)
			end_recv(&s.p.b, 2000000 + i, 0, 5000);
		for (uint32_t i = 0; i < 1000; i++)
			rd_peer_send(&s.h, i, i, false, 0, 100);
		rd_peer_drain(&s.h);
		s.frugal = true;
		good(&s);
		stage_close(&s);
	}
}

/* ---- reads and atomics ---- */

static void test_reads(void **state)
{
	struct rig_opts o = rd_defaults();
	struct stage s;
	size_t before;

	(void)state;
	o.buf_len = 64 << 20;
	stage_open(&s, &o);
	good(&s);
	before = in_use();
	/* Large ones, never acknowledged; the peer says that it lives. */
	for (uint32_t i = 0; i < 3000; i++)
		rd_peer_read(&s.h, s.h.psn++, s.p.b.mr->rkey, (uintptr_t)s.p.b.buf, 64 << 20, i);
	for (int i = 0; i < 10; i++) {
		rd_peer_drain(&s.h);
		good(&s);
	}
	bounded(before, 2 << 20);
	stage_close(&s);
	/* Longer than the region. */
	stage_open(&s, NULL);
	for (uint32_t i = 0; i < 100; i++) {
		rd_peer_read(&s.h, s.h.psn++, s.p.b.mr->rkey, (uintptr_t)s.p.b.buf, UINT32_MAX, i);
		rd_peer_read(&s.h, s.h.psn++, s.p.b.mr->rkey, UINT64_MAX - 10, 20, i);
		rd_peer_read(&s.h, s.h.psn++, s.p.b.mr->rkey, (uintptr_t)s.p.b.buf, 1u << 31, i);
	}
	good(&s);
	CHECK(rd_stats(&s.p.b).refused > 0);
	stage_close(&s);
}

static void test_atomics(void **state)
{
	struct stage s;
	uint64_t base;

	(void)state;
	stage_open(&s, NULL);
	base = (uintptr_t)s.p.b.buf;
	for (uint32_t i = 0; i < 64; i++) {
		uint64_t to = i % 8 ? base + i : base + s.p.b.o.buf_len - 8 + i;

		if (i)
			rd_peer_add(&s.h, s.h.psn++, s.p.b.mr->rkey, to, i);
		rd_peer_add(&s.h, s.h.psn++, s.p.b.mr->rkey ^ 0x100, base, i);
		rd_peer_add(&s.h, s.h.psn++, s.p.b.mr->rkey, UINT64_MAX - 7, i);
	}
	good(&s);
	for (size_t i = 16; i < 4096; i++)
		CHECK_EQ(s.p.b.buf[SECRET + i], 0);
	stage_close(&s);
}

/* ---- writes ---- */

static void test_writes(void **state)
{
	struct stage s;
	struct ibv_mr *closed;
	uint64_t base;
	uint32_t key;

	(void)state;
	stage_open(&s, NULL);
	closed = rnic_reg_mr(s.p.rig.pd, s.p.b.buf + SECRET, 4096, (uintptr_t)s.p.b.buf + SECRET,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	CHECK(closed);
	base = (uintptr_t)s.p.b.buf;
	key = s.p.b.mr->rkey;
	for (uint32_t round = 0; round < 50; round++) {
		rd_peer_write(&s.h, s.h.psn++, closed->rkey, base + SECRET, 100);
		rd_peer_write(&s.h, s.h.psn++, key ^ (1u << round % 32), base + SECRET, 100);
		rd_peer_write(&s.h, s.h.psn++, 0, base + SECRET, 100);
		rd_peer_write(&s.h, s.h.psn++, UINT32_MAX, base + SECRET, 100);
		rd_peer_write(&s.h, s.h.psn++, key, base + s.p.b.o.buf_len - 50, 100);
		rd_peer_write(&s.h, s.h.psn++, key, base - 1, 100);
		rd_peer_write(&s.h, s.h.psn++, key, UINT64_MAX - 50, 51);
		rd_peer_write(&s.h, s.h.psn++, key, UINT64_MAX - 50, 100);
		rd_peer_write(&s.h, s.h.psn++, key, 0, 1400);
		rd_peer_write(&s.h, s.h.psn++, key, UINT64_MAX, 0);
		/* It never says SKIP, so that every packet is out of order from now on. */
		if (round % 10 == 0)
			good(&s);
	}
	for (size_t i = 0; i < 4096; i++)
		CHECK_EQ(s.p.b.buf[SECRET + i], 0);
	CHECK(rd_stats(&s.p.b).refused >= 300);
	CHECK_0(rnic_dereg_mr(closed));
	stage_close(&s);
}

/* ---- garbage ---- */

static void test_garbage(void **state)
{
	static uint8_t buf[65507];
	struct util_rand *r = rig_rand();
	struct stage s;
	size_t before;

	(void)state;
	stage_open(&s, NULL);
	good(&s);
	before = in_use();
	for (size_t len = 0; len < 1600; len++) { /* of every length, with and without a CRC */
		util_rand_bytes(r, buf, len);
		rd_peer_raw(&s.h, buf, len);
		if (len < WIRE_RD_HDR)
			continue;
		buf[4] = 'W';
		buf[5] = (uint8_t)(WIRE_RD_VERSION << 4 | len % 16);
		buf[6] &= 7;
		buf[7] = 0;
		wire_rd_seal(buf, len);
		rd_peer_raw(&s.h, buf, len);
	}
	rd_peer_raw(&s.h, buf, sizeof(buf));
	good(&s);
	/* Any segment in a packet of the pair. */
	for (uint32_t i = 0; i < 5000; i++) {
		size_t len = 14 + util_rand_below(r, 60);

		util_rand_bytes(r, buf, len);
		buf[0] = (uint8_t)((buf[0] & 0xc0) | 1);
		buf[1] = (uint8_t)((buf[1] & 0x0f) | 0x40);
		rd_peer_say(&s.h, WIRE_RD_DATA, (uint8_t)util_rand_below(r, 8) & 5,
			    (uint32_t)util_rand_below(r, 100), buf, len);
		if (i % 1000 == 0)
			good(&s);
	}
	good(&s);
	bounded(before, 1 << 20);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_far_ahead),       RIG_TEST(test_gap),
		RIG_TEST(test_message_numbers), RIG_TEST(test_unfinished),
		RIG_TEST(test_unfinished_few),  RIG_TEST(test_reads),
		RIG_TEST(test_atomics),         RIG_TEST(test_writes),
		RIG_TEST(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
