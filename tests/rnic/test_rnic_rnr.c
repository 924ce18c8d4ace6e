/* No receive posted: the sender waits, nothing is lost, the order is kept. */
#include <arpa/inet.h>
#include "rig.h"

/* What every message carries: its number, so that order and loss show. */
static void number(struct end *e, size_t slot, uint32_t n)
{
	memcpy(e->buf + slot * 64, &n, sizeof(n));
}

static uint32_t numbered(const struct end *e, size_t slot)
{
	uint32_t n;

	memcpy(&n, e->buf + slot * 64, sizeof(n));
	return n;
}

static void test_sends_wait(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	for (uint32_t i = 0; i < 32; i++) {
		number(&p.a, i, i);
		end_send(&p.a, i, i * 64, 64);
	}
	expect_none(p.a.scq, 30);
	CHECK(rig_stats(&p.rig).rnr_sent >= 1);
	/* one at a time, then several, then more than there are */
	for (uint32_t i = 0; i < 40; i++) {
		end_recv(&p.b, i, i * 64, 64);
		if (i < 4)
			EXPECT_OK(p.b.rcq, i);
	}
	expect_run(p.b.rcq, 4, 28, IBV_WC_SUCCESS);
	expect_run(p.a.scq, 0, 32, IBV_WC_SUCCESS);
	expect_none(p.b.rcq, 5);
	for (uint32_t i = 0; i < 32; i++)
		CHECK_EQ(numbered(&p.b, i), i);
	pair_close(&p);
}

/* A large message is cut off in the middle and sent again from its beginning. */
static void test_large_waits(void **state)
{
	struct rig_opts o = rig_defaults();
	const uint32_t big = 8 << 20;
	struct pair p;

	(void)state;
	o.buf_len = 3 * big;
	pair_open(&p, &o);
	util_rand_bytes(rig_rand(), p.a.buf, big);
	end_send(&p.a, 1, 0, big);
	end_send(&p.a, 2, 100, 64);
	expect_none(p.a.scq, 30);
	end_recv(&p.b, 1, 0, big);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 1);
	CHECK_0(memcmp(p.a.buf, p.b.buf, big));
	end_recv(&p.b, 2, big, 64);
	EXPECT_OK(p.b.rcq, 2);
	CHECK_0(memcmp(p.a.buf + 100, p.b.buf + big, 64));
	EXPECT_OK(p.a.scq, 2);
	pair_close(&p);
}

/* Everything that can stand behind the one that waits: it has not run before, it does
 * run afterwards, once. */
static void test_pipeline_waits(void **state)
{
	static const enum ibv_wr_opcode first[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						   IBV_WR_RDMA_WRITE_WITH_IMM};
	struct rig_opts o = rig_defaults();
	struct ibv_wc wc;
	struct pair p;
	struct work w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		uint64_t *word;

		pair_open(&p, &o);
		memset(p.a.buf, 0x77, 4096);
		word = (uint64_t *)(p.b.buf + 8192);
		end_add(&p.a, 0, 32768, 8192, 100); /* runs: it is before */
		work_init(&w, &p.a, first[i], 1, 0, 64, 0);
		w.wr.imm_data = htonl(99);
		CHECK_0(post(&p.a, &w));
		end_write(&p.a, 2, 0, 64, 12288);
		end_read(&p.a, 3, 40960, 64, 12288);
		end_add(&p.a, 4, 49152, 8192, 1);
		work_init(&w, &p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 5, 0, 33, 12288);
		w.wr.imm_data = htonl(5);
		CHECK_0(post(&p.a, &w));
		end_add(&p.a, 6, 49152, 8192, 1);
		end_send(&p.a, 7, 0, 64);
		EXPECT_OK(p.a.scq, 0);
		expect_none(p.a.scq, 20);
		CHECK(*word == 100);
		CHECK_EQ(p.b.buf[12288], 0);
		end_recv(&p.b, 1, 16384, 64);
		wc = EXPECT_OK(p.b.rcq, 1);
		if (i)
			CHECK_EQ(ntohl(wc.imm_data), 99);
		expect_run(p.a.scq, 1, 4, IBV_WC_SUCCESS);
		CHECK(*word == 101);
		CHECK_EQ(p.a.buf[40960], 0x77); /* the read came behind the write */
		expect_none(p.a.scq, 10);
		end_recv(&p.b, 2, 16384, 64);
		wc = EXPECT_OK(p.b.rcq, 2);
		CHECK_EQ(wc.byte_len, 33);
		expect_run(p.a.scq, 5, 2, IBV_WC_SUCCESS);
		end_recv(&p.b, 3, 16384, 64);
		EXPECT_OK(p.b.rcq, 3);
		EXPECT_OK(p.a.scq, 7);
		CHECK(*word == 102);
		expect_none(p.b.rcq, 5);
		expect_none(p.a.scq, 5);
		pair_close(&p);
	}
}

/* Both directions wait, each with work behind: neither keeps the other from being
 * served. */
static void test_both_wait(void **state)
{
	struct rig_opts o = rig_defaults();
	struct end *ends[2];
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	ends[0] = &p.a;
	ends[1] = &p.b;
	for (int i = 0; i < 2; i++) {
		end_send(ends[i], 1, 0, 64);
		end_read(ends[i], 2, 4096, 4096, 0);
	}
	expect_none(p.a.scq, 10);
	expect_none(p.b.scq, 10);
	for (int i = 0; i < 2; i++)
		end_recv(ends[i], 9, 0, 64);
	for (int i = 0; i < 2; i++) {
		EXPECT_OK(ends[i]->rcq, 9);
		expect_run(ends[i]->scq, 1, 2, IBV_WC_SUCCESS);
	}
	pair_close(&p);
}

/* Receives that come one by one, always just too late, from another thread's view:
 * thousands of waits and retries. */
static void test_always_late(void **state)
{
	struct rig_opts o = rig_defaults();
	struct util_rand *rnd = rig_rand();
	struct ibv_wc wc;
	struct pair p;
	uint32_t sent = 0, done = 0, posted = 0, got = 0;
	const uint32_t n = 3000;

	(void)state;
	pair_open(&p, &o);
	while (got < n || done < n) {
		while (sent < n && sent - done < 32) {
			number(&p.a, sent % 32, sent);
			end_send(&p.a, sent, sent % 32 * 64, 64);
			sent++;
		}
		if (posted < n && posted - got < 4 && util_rand_below(rnd, 3) == 0) {
			end_recv(&p.b, posted, 4096 + posted % 32 * 64, 64);
			posted++;
		}
		if (ibv_poll_cq(p.b.rcq, 1, &wc) == 1) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, got);
			CHECK_EQ(numbered(&p.b, 64 + got % 32), got);
			got++;
		}
		if (ibv_poll_cq(p.a.scq, 1, &wc) == 1) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, done);
			done++;
		}
	}
	pair_close(&p);
}

/* ---- how long ---- */

static void test_retry_zero(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.rnr_retry = 0;
	o.rnr_timer = 31; /* half a second, which is not waited for */
	pair_open(&p, &o);
	end_write(&p.a, 1, 0, 64, 0);
	end_send(&p.a, 2, 0, 64);
	end_write(&p.a, 3, 0, 64, 0);
	EXPECT_OK(p.a.scq, 1);
	EXPECT(p.a.scq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	EXPECT(p.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(end_query(&p.a), IBV_QPS_ERR);
	CHECK_EQ(end_query(&p.b), IBV_QPS_RTS);
	pair_close(&p);
}

static void test_retry_counted(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	for (uint8_t n = 1; n <= 6; n += 2) {
		uint64_t since, took;

		o.rnr_retry = n;
		o.rnr_timer = 22; /* 20.48 ms */
		pair_open(&p, &o);
		since = util_now_ns();
		end_send(&p.a, 1, 0, 64);
		EXPECT(p.a.scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
		took = (util_now_ns() - since) / RIG_MS;
		CHECK(took >= n * 20u);
		CHECK(took <= n * 21u + 500); /* a busy machine */
		pair_close(&p);
	}
}

/* The wait is for one request. When a receive comes in time, the next has its own. */
static void test_retry_in_time(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.rnr_retry = 6;
	o.rnr_timer = 30; /* 6 x 328 ms */
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 5; i++) {
		end_send(&p.a, i, 0, 64);
		expect_none(p.a.scq, 20);
		end_recv(&p.b, i, 0, 64);
		EXPECT_OK(p.b.rcq, i);
		EXPECT_OK(p.a.scq, i);
	}
	pair_close(&p);
}

static void test_retry_for_ever(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.rnr_retry = 7;
	o.rnr_timer = 1; /* 10 us */
	o.timeout = 1;   /* transport time-outs are another matter: the peer is there */
	o.retry_cnt = 0;
	pair_open(&p, &o);
	end_send(&p.a, 1, 0, 64);
	expect_none(p.a.scq, 1500);
	end_recv(&p.b, 1, 0, 64);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 1);
	pair_close(&p);
}

/* A wait without end ends when there is nobody any more who could end it. */
static void test_peer_leaves(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.timeout = 10;
	o.retry_cnt = 1;
	pair_open(&p, &o);
	end_send(&p.a, 1, 0, 64);
	end_send(&p.a, 2, 0, 64);
	expect_none(p.a.scq, 20);
	CHECK_0(end_state(&p.b, IBV_QPS_ERR));
	EXPECT(p.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	EXPECT(p.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

static void test_flush_while_waiting(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 5; i++)
		end_send(&p.a, i, 0, 64);
	expect_none(p.a.scq, 10);
	CHECK_0(end_state(&p.a, IBV_QPS_ERR));
	expect_run(p.a.scq, 0, 5, IBV_WC_WR_FLUSH_ERR);
	end_recv(&p.b, 1, 0, 64); /* too late, and nobody is there to be told */
	expect_none(p.b.rcq, 10);
	pair_close(&p);

	/* the side that has no receives goes first */
	pair_open(&p, &o);
	end_send(&p.a, 1, 0, 64);
	expect_none(p.a.scq, 10);
	CHECK_0(end_state(&p.b, IBV_QPS_RESET));
	end_destroy(&p.b);
	end_destroy(&p.a);
	rig_close(&p.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_sends_wait),          RIG_TEST(test_large_waits),
		RIG_TEST(test_pipeline_waits),      RIG_TEST(test_both_wait),
		RIG_TEST(test_always_late),         RIG_TEST(test_retry_zero),
		RIG_TEST(test_retry_counted),       RIG_TEST(test_retry_in_time),
		RIG_TEST(test_retry_for_ever),      RIG_TEST(test_peer_leaves),
		RIG_TEST(test_flush_while_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
