/* RD queue pairs: every operation, sizes, order, paths. */
#include "rig_rd.h"
#include "rnic_cq.h"

static void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	struct util_rand r;

	util_rand_seed(&r, seed);
	util_rand_bytes(&r, buf, len);
}

static const uint32_t sizes[] = {0, 1, 8, 100, 1000, 8192, 65000, 65600, 262144, 1048576};

static void test_send(void **state)
{
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_wc wc;

		fill(p.a.buf, sizes[i], i + 1);
		end_recv(&p.b, 100 + i, 0, sizes[i]);
		rd_post(&p.ab, i % 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, i, 0, sizes[i], 0);
		wc = EXPECT_OK(p.b.rcq, 100 + i);
		CHECK_EQ(wc.byte_len, sizes[i]);
		CHECK_EQ(wc.src_qp, p.a.qp->qp_num);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(!!(wc.wc_flags & IBV_WC_WITH_IMM), i % 2);
		if (i % 2)
			CHECK_EQ(wc.imm_data, i);
		wc = EXPECT_OK(p.a.scq, i);
		CHECK_EQ(wc.opcode, IBV_WC_SEND);
		CHECK(!memcmp(p.a.buf, p.b.buf, sizes[i]));
	}
	rd_pair_close(&p);
}

static void test_write(void **state)
{
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_wc wc;

		fill(p.a.buf, sizes[i], i + 1);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, i, 0, sizes[i], 64);
		wc = EXPECT_OK(p.a.scq, i);
		CHECK_EQ(wc.opcode, IBV_WC_RDMA_WRITE);
		CHECK(!memcmp(p.a.buf, p.b.buf + 64, sizes[i]));
		fill(p.a.buf, sizes[i], i + 100);
		end_recv(&p.b, 7, 0, 0);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE_WITH_IMM, 50 + i, 0, sizes[i], 128);
		wc = EXPECT_OK(p.b.rcq, 7);
		CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		CHECK_EQ(wc.byte_len, sizes[i]);
		CHECK_EQ(wc.imm_data, 50 + i);
		EXPECT_OK(p.a.scq, 50 + i);
		CHECK(!memcmp(p.a.buf, p.b.buf + 128, sizes[i]));
	}
	rd_pair_close(&p);
}

static void test_read(void **state)
{
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ibv_wc wc;

		fill(p.b.buf, sizes[i], i + 1);
		rd_post(&p.ab, IBV_WR_RDMA_READ, i, 4096, sizes[i], 0);
		wc = EXPECT_OK(p.a.scq, i);
		CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
		CHECK_EQ(wc.byte_len, sizes[i]);
		CHECK(!memcmp(p.a.buf + 4096, p.b.buf, sizes[i]));
	}
	rd_pair_close(&p);
}

static void test_atomic(void **state)
{
	struct rd_pair p;
	uint64_t *there, *here;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	there = (uint64_t *)p.b.buf;
	here = (uint64_t *)p.a.buf;
	*there = 40;
	rd_add(&p.ab, 1, 0, 0, 2);
	CHECK_EQ(EXPECT_OK(p.a.scq, 1).opcode, IBV_WC_FETCH_ADD);
	CHECK_EQ(*here, 40);
	CHECK_EQ(*there, 42);
	rd_cas(&p.ab, 2, 0, 0, 42, 1000);
	CHECK_EQ(EXPECT_OK(p.a.scq, 2).opcode, IBV_WC_COMP_SWAP);
	CHECK_EQ(*here, 42);
	CHECK_EQ(*there, 1000);
	rd_cas(&p.ab, 3, 0, 0, 42, 7);
	EXPECT_OK(p.a.scq, 3);
	CHECK_EQ(*here, 1000);
	CHECK_EQ(*there, 1000);
	rd_pair_close(&p);
}

/* Many at once, both ways, all in order. */
static void test_order(void **state)
{
	struct rig_opts o = rd_defaults();
	struct rd_pair p;
	enum { N = 2000 };
	uint32_t posted = 0, recvs = 0, got = 0, done = 0;

	(void)state;
	rd_pair_open(&p, &o, &o);
	while (got < N || done < N) {
		struct ibv_wc wc;

		while (recvs < N && recvs < got + 60) {
			end_recv(&p.b, recvs, (recvs % 64) * 4096, 4096);
			recvs++;
		}
		while (posted < N && posted < done + 60) {
			uint32_t slot = posted % 64;

			memcpy(p.a.buf + slot * 4096, &posted, 4);
			rd_post(&p.ab, IBV_WR_SEND, posted, slot * 4096, 4 + (posted * 37) % 4000,
				0);
			posted++;
		}
		while (rnic_poll_cq(p.b.rcq, 1, &wc) == 1) {
			uint32_t n;

			CHECK_0(wc.status);
			CHECK_EQ(wc.wr_id, got);
			memcpy(&n, p.b.buf + (got % 64) * 4096, 4);
			CHECK_EQ(n, got);
			CHECK_EQ(wc.byte_len, 4 + (got * 37) % 4000);
			got++;
		}
		while (rnic_poll_cq(p.a.scq, 1, &wc) == 1) {
			CHECK_0(wc.status);
			done++;
		}
	}
	/* The first ones went over UDP, until the link was there. */
	if (!strcmp(getenv("WEFT_RD_SHM"), "on"))
		CHECK(rd_stats(&p.a).local_messages > N / 2);
	rd_pair_close(&p);
}

static void test_self(void **state)
{
	struct rig_opts o = rd_defaults();
	struct rig rig;
	struct end e;
	struct way w;
	struct rig_addr a;

	(void)state;
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_up(&e, NULL);
	a = end_addr(&e);
	way_make(&w, &e, &a, 0);
	for (int i = 0; i < 20; i++) {
		fill(e.buf, 100000, (uint64_t)i);
		end_recv(&e, 1, 1 << 20, 100000);
		rd_post(&w, IBV_WR_SEND, 2, 0, 100000, 0);
		EXPECT_OK(e.rcq, 1);
		EXPECT_OK(e.scq, 2);
		CHECK(!memcmp(e.buf, e.buf + (1 << 20), 100000));
		rd_post(&w, IBV_WR_RDMA_READ, 3, 2 << 20, 5000, 1 << 20);
		EXPECT_OK(e.scq, 3);
		CHECK(!memcmp(e.buf, e.buf + (2 << 20), 5000));
	}
	way_free(&w);
	end_destroy(&e);
	rig_close(&rig);
}

/* Two paths of one peer keep the order of messages. */
static void test_paths(void **state)
{
	struct rd_pair p;
	struct way other;
	struct weftdv_path path;
	struct rig_addr b;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	b = end_addr(&p.b);
	way_make(&other, &p.a, &b, 5);
	CHECK_EQ(rnic_query_path(p.a.qp, other.ah, b.qpn, &path), ENOENT);
	for (int i = 0; i < 50; i++)
		end_recv(&p.b, (uint64_t)i, (size_t)i * 4096, 4096);
	for (int i = 0; i < 50; i++)
		rd_post(i % 3 ? &other : &p.ab, IBV_WR_SEND, (uint64_t)i, 0, 100, 0);
	expect_run(p.b.rcq, 0, 50, IBV_WC_SUCCESS);
	for (int i = 0; i < 50; i++) {
		struct ibv_wc wc;

		CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
		CHECK_0(wc.status);
	}
	CHECK_EQ(rd_stats(&p.a).peers, 1);
	CHECK_EQ(rd_stats(&p.b).peers, 1);
	CHECK_0(rnic_query_path(p.a.qp, other.ah, b.qpn, &path));
	CHECK_EQ(path.completions, 33);
	if (path.state != WEFTDV_PATH_LOCAL) {
		CHECK_EQ(path.state, WEFTDV_PATH_ACTIVE);
		CHECK(path.rtt > 0);
	}
	way_free(&other);
	rd_pair_close(&p);
}

/* More peers than are kept awake, again and again: a peer that has slept goes on where it was. */
static void test_many(void **state)
{
	enum { N = 100, ROUNDS = 6 };
	static struct end b[N];
	static struct way w[N];
	struct rig_opts o = rd_defaults();
	struct rig rig;
	struct end a;

	(void)state;
	rig_open(&rig);
	o.send_wr = 256;
	end_make(&a, &rig, &o);
	end_up(&a, NULL);
	o.buf_len = 4096;
	for (int i = 0; i < N; i++) {
		struct rig_addr to;

		end_make(&b[i], &rig, &o);
		end_up(&b[i], NULL);
		to = end_addr(&b[i]);
		way_make(&w[i], &a, &to, 0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		for (uint64_t i = 0; i < N; i++) {
			a.buf[8 * i] = (uint8_t)(round + i);
			end_recv(&b[i], i, 0, 8);
			rd_post(&w[i], IBV_WR_SEND, i, 8 * i, 8, 0);
		}
		for (uint64_t i = 0; i < N; i++) {
			struct ibv_wc wc;

			EXPECT_OK(b[i].rcq, i);
			CHECK_EQ(b[i].buf[0], (uint8_t)(round + i));
			CHECK(wait_wc(a.scq, &wc, RIG_WAIT));
			CHECK_0(wc.status);
		}
	}
	CHECK_EQ(rd_stats(&a).peers, N);
	CHECK_EQ(rd_stats(&a).deaths, 0);
	for (int i = 0; i < N; i++) {
		way_free(&w[i]);
		end_destroy(&b[i]);
	}
	end_destroy(&a);
	rig_close(&rig);
}

/* One program, all kinds of queue pairs. */
static void test_kinds(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rd_pair rd;
	struct pair rc, uc;

	(void)state;
	rd_pair_open(&rd, NULL, NULL);
	pair_open(&rc, &o);
	o.type = IBV_QPT_UC;
	pair_open(&uc, &o);
	for (uint64_t i = 0; i < 100; i++) {
		end_recv(&rd.b, i, 0, 1000);
		end_recv(&rc.b, i, 0, 1000);
		end_recv(&uc.b, i, 0, 1000);
		rd_post(&rd.ab, IBV_WR_SEND, i, 0, 1000, 0);
		end_send(&rc.a, i, 0, 1000);
		end_send(&uc.a, i, 0, 1000);
		EXPECT_OK(rd.b.rcq, i);
		EXPECT_OK(rc.b.rcq, i);
		EXPECT_OK(uc.b.rcq, i);
		EXPECT_OK(rd.a.scq, i);
		EXPECT_OK(rc.a.scq, i);
		EXPECT_OK(uc.a.scq, i);
	}
	pair_close(&uc);
	pair_close(&rc);
	rd_pair_close(&rd);
}

/* After traffic nothing is done any more. */
static void test_idle(void **state)
{
	struct rd_pair p;
	uint64_t before, after;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (uint64_t i = 0; i < 50; i++) {
		end_recv(&p.b, i, 0, 100000);
		rd_post(&p.ab, IBV_WR_SEND, i, 0, 100000, 0);
		EXPECT_OK(p.b.rcq, i);
		EXPECT_OK(p.a.scq, i);
		rd_post(&p.ba, IBV_WR_RDMA_READ, i, 0, 100000, 0);
		EXPECT_OK(p.b.scq, i);
	}
	rig_sleep_ms(600); /* the last timers */
	before = rig_cpu_ns();
	rig_sleep_ms(1500);
	after = rig_cpu_ns();
	printf("%llu us of CPU time in 1.5 s\n", (unsigned long long)(after - before) / 1000);
	CHECK(after - before < 1000000 * (RIG_ASAN || RIG_TSAN ? 20 : 1));
	rd_pair_close(&p);
}

/* Both ways: over UDP, and through shared memory, which these ends could use. */
static int no_shm(void **state)
{
	setenv("WEFT_RD_SHM", "off", 1);
	return rig_setup(state);
}

static int with_shm(void **state)
{
	setenv("WEFT_RD_SHM", "on", 1);
	return rig_setup(state);
}

#define BOTH(f)                                                                                    \
	{#f " (UDP)", f, no_shm, rig_teardown, NULL},                                              \
	{                                                                                          \
#f " (shared memory)", f, with_shm, rig_teardown, NULL                             \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_send),  BOTH(test_write), BOTH(test_read),  BOTH(test_atomic),
		BOTH(test_order), BOTH(test_self),  BOTH(test_paths), BOTH(test_many),
		BOTH(test_kinds), BOTH(test_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
