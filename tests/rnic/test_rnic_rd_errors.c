/* RD queue pairs: requests that fail, and what comes after them.
 *
 * A request fails alone. So each test ends with good traffic, which has to arrive in order and
 * in the receives that were posted for it, one for each message and not one more. */
#include <sys/mman.h>
#include "rig_rd.h"

#define LONG (140 * 1000) /* a hundred packets */

/* Packets of an Ethernet's size, so that long messages are many; and packets at all. */
__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 0);
}

static uint64_t next_id = 1000;

/* Sends of several sizes, one receive for each; a write, a read and an atomic between them. */
static void good(struct rd_pair *p)
{
	static const uint32_t sizes[] = {0, 1, 1400, 1500, LONG, 8};
	uint64_t *word = (uint64_t *)(p->b.buf + (2 << 20)), before;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint64_t id = next_id++;

		memset(p->a.buf, (int)id, sizes[i]);
		end_recv(&p->b, id, 0, sizes[i]);
		rd_post(&p->ab, IBV_WR_SEND, id, 0, sizes[i], 0);
		CHECK_EQ(EXPECT_OK(p->b.rcq, id).byte_len, sizes[i]);
		EXPECT_OK(p->a.scq, id);
		CHECK(!memcmp(p->a.buf, p->b.buf, sizes[i]));
	}
	rd_post(&p->ab, IBV_WR_RDMA_WRITE, next_id, 0, LONG, 1 << 20);
	EXPECT_OK(p->a.scq, next_id++);
	CHECK(!memcmp(p->a.buf, p->b.buf + (1 << 20), LONG));
	rd_post(&p->ab, IBV_WR_RDMA_READ, next_id, 1 << 20, LONG, 1 << 20);
	EXPECT_OK(p->a.scq, next_id++);
	CHECK(!memcmp(p->a.buf + (1 << 20), p->b.buf + (1 << 20), LONG));
	before = *word;
	rd_add(&p->ab, next_id, 0, 2 << 20, 3);
	EXPECT_OK(p->a.scq, next_id++);
	CHECK_EQ(*word, before + 3);
	expect_none(p->b.rcq, 1);
	CHECK_EQ(end_query(&p->a), IBV_QPS_RTS);
	CHECK_EQ(end_query(&p->b), IBV_QPS_RTS);
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

/* ---- receiver not ready ---- */

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

/* ---- the peer's memory ---- */

static void all_fail(struct rd_pair *p, struct way *w, enum ibv_wc_status want)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		for (int big = 0; big < 2; big++) {
			rd_post(w, ops[i], 1, 0, big ? LONG : 8, 0);
			EXPECT(p->a.scq, 1, want);
		}
	rd_add(w, 2, 0, 0, 1);
	EXPECT(p->a.scq, 2, want);
	rd_cas(w, 3, 0, 0, 1, 2);
	EXPECT(p->a.scq, 3, want);
}

static void test_bad_key(void **state)
{
	struct rd_pair p;
	struct way bad;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	bad = p.ab;
	bad.to.rkey ^= 0x5a00;
	all_fail(&p, &bad, IBV_WC_REM_ACCESS_ERR);
	good(&p);
	bad = p.ab;
	bad.to.addr += p.b.o.buf_len;
	all_fail(&p, &bad, IBV_WC_REM_ACCESS_ERR);
	bad.to.addr -= 2 * p.b.o.buf_len;
	all_fail(&p, &bad, IBV_WC_REM_ACCESS_ERR);
	/* Begins well, ends beyond the region. */
	bad = p.ab;
	bad.to.addr += p.b.o.buf_len - LONG / 2;
	rd_post(&bad, IBV_WR_RDMA_WRITE, 1, 0, LONG, 0);
	EXPECT(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	rd_post(&bad, IBV_WR_RDMA_READ, 1, 0, LONG, 0);
	EXPECT(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	CHECK(rd_stats(&p.b).refused > 0);
	good(&p);
	rd_pair_close(&p);
}

/* The immediate of a write that was refused is not delivered, however long the write. */
static void test_bad_key_imm(void **state)
{
	static const uint32_t sizes[] = {8, 1500, LONG};
	struct rd_pair p;
	struct way bad;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	bad = p.ab;
	bad.to.rkey ^= 0x5a00;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		end_recv(&p.b, 10, 0, 0);
		rd_post(&bad, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, sizes[i], 0);
		EXPECT(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
		expect_none(p.b.rcq, 20);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, sizes[i], 0);
		EXPECT_OK(p.b.rcq, 10);
		EXPECT_OK(p.a.scq, 2);
	}
	good(&p);
	rd_pair_close(&p);
}

static void test_no_right(void **state)
{
	struct rig_opts o = rd_defaults(), none = o;
	struct rd_pair p;

	(void)state;
	none.mr_access = IBV_ACCESS_LOCAL_WRITE;
	rd_pair_open(&p, &o, &none);
	all_fail(&p, &p.ab, IBV_WC_REM_ACCESS_ERR);
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

/* A region that goes away under a long request. */
static void test_deregistered(void **state)
{
	enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};
	uint32_t len = 64 << 20;
	struct rd_pair p;
	struct ibv_mr *there, *here;
	uint8_t *mem;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	mem = mmap(NULL, 2 * len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	here = rnic_reg_mr(p.rig.pd, mem, len, (uintptr_t)mem, IBV_ACCESS_LOCAL_WRITE);
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct way w = p.ab;
		struct end from = p.a;
		struct ibv_wc wc;

		there = rnic_reg_mr(p.rig.pd, mem + len, len, (uintptr_t)mem + len,
				    p.b.o.mr_access);
		CHECK(here && there);
		from.buf = mem;
		from.mr = here;
		w.from = &from;
		w.to.addr = (uintptr_t)mem + len;
		w.to.rkey = there->rkey;
		rd_post(&w, ops[i], 1, 0, len, 0);
		rig_sleep_ms(2);
		CHECK_0(rnic_dereg_mr(there));
		CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
		if (wc.status == IBV_WC_SUCCESS)
			print_message("the request was faster\n");
		else if (wc.status != IBV_WC_REM_OP_ERR)
			CHECK_EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
		good(&p);
	}
	CHECK_0(rnic_dereg_mr(here));
	munmap(mem, 2 * len);
	rd_pair_close(&p);
}

static void test_misaligned(void **state)
{
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (size_t off = 1; off < 8; off++) {
		rd_add(&p.ab, off, 0, off, 1);
		EXPECT(p.a.scq, off, IBV_WC_REM_INV_REQ_ERR);
	}
	CHECK_EQ(*(uint64_t *)p.b.buf, 0);
	CHECK_EQ(*(uint64_t *)(p.b.buf + 8), 0);
	good(&p);
	rd_pair_close(&p);
}

/* ---- receives ---- */

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

static void post_raw_recv(struct end *e, uint64_t id, void *addr, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)addr, len, lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_0(ibv_post_recv(e->qp, &wr, &bad));
}

/* In a process of its own: cmocka's handlers would see the fault first. */
static void receive_gone(int sock, void *arg)
{
	uint32_t sizes[] = {100, LONG};
	struct rd_pair p;
	struct ibv_mr *mr;
	uint8_t *mem;

	(void)sock;
	(void)arg;
	rd_pair_open(&p, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		mem = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
		CHECK(mem != MAP_FAILED);
		mr = rnic_reg_mr(p.rig.pd, mem, 1 << 20, (uintptr_t)mem, IBV_ACCESS_LOCAL_WRITE);
		CHECK(mr);
		post_raw_recv(&p.b, 10, mem, 1 << 20, mr->lkey);
		munmap(mem, 1 << 20);
		rd_post(&p.ab, IBV_WR_SEND, 1, 0, sizes[i], 0);
		EXPECT(p.b.rcq, 10, IBV_WC_LOC_PROT_ERR);
		EXPECT(p.a.scq, 1, IBV_WC_REM_OP_ERR);
		CHECK_0(rnic_dereg_mr(mr));
		good(&p);
		post_raw_recv(&p.b, 11, p.b.buf, LONG, p.b.mr->lkey ^ 0x5a00);
		rd_post(&p.ab, IBV_WR_SEND, 2, 0, sizes[i], 0);
		EXPECT(p.b.rcq, 11, IBV_WC_LOC_PROT_ERR);
		EXPECT(p.a.scq, 2, IBV_WC_REM_OP_ERR);
		good(&p);
	}
	rd_pair_close(&p);
}

static void test_receive_gone(void **state)
{
	struct rig_proc proc;

	(void)state;
	rig_spawn(&proc, receive_gone, NULL);
	rig_join(&proc);
}

/* ---- our own memory ---- */

static void test_bad_lkey(void **state)
{
	struct rd_pair p;
	struct end from;
	struct ibv_mr mr;
	struct way bad;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	mr = *p.a.mr;
	mr.lkey ^= 0x5a00;
	from = p.a;
	from.mr = &mr;
	bad = p.ab;
	bad.from = &from;
	for (int big = 0; big < 2; big++) {
		uint32_t len = big ? LONG : 8;

		rd_post(&bad, IBV_WR_RDMA_WRITE, 1, 0, len, 0);
		EXPECT(p.a.scq, 1, IBV_WC_LOC_PROT_ERR);
		rd_post(&bad, IBV_WR_RDMA_READ, 2, 0, len, 0);
		EXPECT(p.a.scq, 2, IBV_WC_LOC_PROT_ERR);
		good(&p);
		rd_post(&bad, IBV_WR_SEND, 3, 0, len, 0);
		EXPECT(p.a.scq, 3, IBV_WC_LOC_PROT_ERR);
		good(&p);
	}
	rd_add(&bad, 4, 0, 0, 1);
	EXPECT(p.a.scq, 4, IBV_WC_LOC_PROT_ERR);
	good(&p);
	rd_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_rnr),         RIG_TEST(test_rnr_limited), RIG_TEST(test_rnr_behind),
		RIG_TEST(test_rnr_both),    RIG_TEST(test_bad_key),     RIG_TEST(test_bad_key_imm),
		RIG_TEST(test_no_right),    RIG_TEST(test_mixed),       RIG_TEST(test_deregistered),
		RIG_TEST(test_misaligned),  RIG_TEST(test_too_long),    RIG_TEST(test_receive_gone),
		RIG_TEST(test_bad_lkey),
	};

	cmocka_set_test_filter(getenv("F"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
