/* RD queue pairs: requests that fail, and what comes after them.
 *
 * A request fails alone. So each test ends with good traffic, which has to arrive in order and
 * in the receives that were posted for it, one for each message and not one more. */
#include "rd_good.h"

/* Packets of an Ethernet's size, so that long messages are many; and packets at all. */
__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 0);
}

/* Completions of one end in any order; each number once. */
static void reap(struct ibv_cq *cq, int *status, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		status[i] = -1;
	for (unsigned int i = 0; i < n; i++) {
		struct ibv_wc wc;

		CHECK(wait_wc(cq, &wc, RIG_WAIT));
		CHECK(wc.wr_id < n);
		CHECK_EQ(status[wc.wr_id], -1);
		status[wc.wr_id] = (int)wc.status;
	}
}

static void test_rnr(void **state)
{
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (int i = 0; i < 5; i++) {
		rd_post(&p.ab, i % 2 ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND, 1, 0,
			i < 3 ? 100 : LONG, 0);
		expect_none(p.a.scq, 120);
		end_recv(&p.b, 2, 1 << 20, i < 3 ? 100 : LONG);
		EXPECT_OK(p.b.rcq, 2);
		EXPECT_OK(p.a.scq, 1);
	}
	CHECK(rd_stats(&p.a).rnr_received >= 5);
	CHECK(rd_stats(&p.b).rnr_sent >= 5);
	good(&p);
	rd_pair_close(&p);
}

static void test_rnr_limited(void **state)
{
	struct rig_opts o = rd_defaults();
	struct rd_pair p;

	(void)state;
	for (uint8_t retry = 0; retry < 3; retry++) {
		o.rnr_retry = retry;
		o.rnr_timer = 24; /* 41 ms */
		rd_pair_open(&p, &o, &o);
		for (uint64_t i = 0; i < 3; i++) {
			uint64_t start = rig_now_ms();

			rd_post(&p.ab, IBV_WR_SEND, i, 0, i == 2 ? LONG : 10, 0);
			EXPECT(p.a.scq, i, IBV_WC_RNR_RETRY_EXC_ERR);
			CHECK(rig_now_ms() - start < 1000);
		}
		good(&p);
		rd_pair_close(&p);
	}
}

/* What waits behind a send waits; responses do not. */
static void test_rnr_behind(void **state)
{
	int st[4];
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	rd_post(&p.ab, IBV_WR_SEND, 0, 0, 100, 0);
	p.b.buf[4096] = p.b.buf[8192] = 7;
	rd_post(&p.ab, IBV_WR_RDMA_READ, 1, 8192, 8, 8192);
	rd_add(&p.ab, 2, 16384, 4096, 1);
	expect_none(p.a.scq, 100);
	/* The other direction, whose responses are a's. */
	for (int i = 0; i < 10; i++) {
		rd_post(&p.ba, IBV_WR_RDMA_READ, 9, 1 << 20, LONG, 0);
		EXPECT_OK(p.b.scq, 9);
		rd_add(&p.ba, 8, 1 << 20, 0, 1);
		EXPECT_OK(p.b.scq, 8);
	}
	CHECK_EQ(rig_peek(p.b.buf + 4096), 7); /* not before the send that it is behind */
	/* A write may be placed, and even be complete, before the send; it may not be lost. */
	rd_post(&p.ab, IBV_WR_RDMA_WRITE, 3, 0, LONG, 1 << 20);
	rig_sleep_ms(60);
	end_recv(&p.b, 5, 0, 100);
	EXPECT_OK(p.b.rcq, 5);
	reap(p.a.scq, st, 4);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(st[i], IBV_WC_SUCCESS);
	CHECK_EQ(p.b.buf[4096], 8);
	CHECK_EQ(p.a.buf[8192], 7);
	good(&p);
	rd_pair_close(&p);
}

/* Everything behind a send that waits, long and short, again and again. */
static void test_rnr_all(void **state)
{
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (unsigned int i = 0; i < 60; i++) {
		uint32_t len = i % 2 ? 2 * LONG : 100;
		int st[6];

		rd_post(&p.ab, IBV_WR_SEND, 0, 0, len, 0);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, 1, 0, len, 1 << 20);
		rd_post(&p.ab, IBV_WR_RDMA_READ, 2, 2 << 20, len, 1 << 20);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE_WITH_IMM, 3, 0, len, 1 << 20);
		rd_add(&p.ab, 4, 3 << 20, 3 << 20, 1);
		rd_cas(&p.ab, 5, 3 << 20, 3 << 20, 1, 2);
		for (uint64_t j = 0; j < 2; j++) {
			usleep(i % 3 * 1000);
			end_recv(&p.b, j, 0, len);
			EXPECT_OK(p.b.rcq, j);
		}
		reap(p.a.scq, st, 6);
		for (int j = 0; j < 6; j++)
			CHECK_EQ(st[j], IBV_WC_SUCCESS);
	}
	good(&p);
	rd_pair_close(&p);
}

/* Both wait for the other's receive, and read from each other. */
static void test_rnr_both(void **state)
{
	int st[2];
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	rd_post(&p.ab, IBV_WR_SEND, 0, 0, LONG, 0);
	rd_post(&p.ba, IBV_WR_SEND, 0, 0, LONG, 0);
	rd_post(&p.ab, IBV_WR_RDMA_READ, 1, 1 << 20, LONG, 0);
	rd_post(&p.ba, IBV_WR_RDMA_READ, 1, 1 << 20, LONG, 0);
	expect_none(p.a.scq, 100);
	end_recv(&p.a, 1, 2 << 20, LONG);
	EXPECT_OK(p.a.rcq, 1);
	end_recv(&p.b, 2, 2 << 20, LONG);
	EXPECT_OK(p.b.rcq, 2);
	reap(p.a.scq, st, 2);
	CHECK(!st[0] && !st[1]);
	reap(p.b.scq, st, 2);
	CHECK(!st[0] && !st[1]);
	good(&p);
	rd_pair_close(&p);
}

/* Failures and successes, posted at once: each its own. */
static void test_mixed(void **state)
{
	enum { N = 60 };
	int st[N];
	struct rd_pair p;
	struct way bad;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	bad = p.ab;
	bad.to.rkey ^= 0x5a00;
	for (int i = 0; i < N / 6; i++)
		end_recv(&p.b, (uint64_t)i, (size_t)i * 2000, 2000);
	for (uint64_t i = 0; i < N; i += 6) {
		rd_post(&bad, IBV_WR_RDMA_WRITE, i, 0, 5000, 0);
		rd_post(&p.ab, IBV_WR_SEND, i + 1, 0, 2000, 0);
		rd_post(&bad, IBV_WR_RDMA_READ, i + 2, 0, 5000, 0);
		rd_post(&p.ab, IBV_WR_RDMA_READ, i + 3, 8192, 5000, 0);
		rd_add(&bad, i + 4, 1 << 20, 0, 1);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, i + 5, 0, 5000, 1 << 20);
	}
	reap(p.a.scq, st, N);
	for (int i = 0; i < N; i++)
		CHECK_EQ(st[i], i % 2 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
	expect_run(p.b.rcq, 0, N / 6, IBV_WC_SUCCESS);
	good(&p);
	rd_pair_close(&p);
}

/* Over the end of memory, and what is behind it still arrives. */
static void test_wraps(void **state)
{
	static const uint64_t at[] = {UINT64_MAX, UINT64_MAX - 8, UINT64_MAX - 15,
				      UINT64_MAX - 3000};
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
						 IBV_WR_RDMA_READ};
	struct rd_pair p;
	struct way bad;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	bad = p.ab;
	for (size_t i = 0; i < ARRAY_SIZE(at) * ARRAY_SIZE(ops); i++) {
		bad.to.addr = at[i / ARRAY_SIZE(ops)];
		rd_post(&bad, ops[i % ARRAY_SIZE(ops)], 1, 0, i < 9 ? 16 : 5000, 0);
		EXPECT(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
		good(&p);
	}
	rd_pair_close(&p);
}

static void test_too_long(void **state)
{
	static const struct {
		uint32_t send, recv;
	} c[] = {{100, 99}, {1, 0}, {LONG, LONG - 1}, {LONG, 3000}, {LONG, 0}, {3000, 1400}};
	struct rd_pair p;
	int st[20];

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		end_recv(&p.b, 10, 0, c[i].recv);
		rd_post(&p.ab, IBV_WR_SEND, 1, 0, c[i].send, 0);
		EXPECT(p.b.rcq, 10, IBV_WC_LOC_LEN_ERR);
		EXPECT(p.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
		good(&p);
	}
	/* Several in a row, a good one behind each. */
	for (uint64_t i = 0; i < 10; i++) {
		end_recv(&p.b, 2 * i, 0, 1000);
		end_recv(&p.b, 2 * i + 1, 0, LONG);
	}
	for (uint64_t i = 0; i < 20; i++)
		rd_post(&p.ab, IBV_WR_SEND, i, 0, i % 4 < 2 ? LONG : 1200, 0);
	/* One that does not fit is reported when that is known, which may be early. */
	reap(p.b.rcq, st, 20);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(st[i], i % 2 ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR);
	reap(p.a.scq, st, 20);
	for (int i = 0; i < 20; i++)
		CHECK_EQ(st[i], i % 2 ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR);
	good(&p);
	rd_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_rnr),      RIG_TEST(test_rnr_limited), RIG_TEST(test_rnr_behind),
		RIG_TEST(test_rnr_all),  RIG_TEST(test_rnr_both),    RIG_TEST(test_mixed),
		RIG_TEST(test_too_long), RIG_TEST(test_wraps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
