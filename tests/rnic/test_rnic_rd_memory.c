/* RD queue pairs: keys and memory that do not allow what is asked for, there and here. */
#include <sys/mman.h>
#include "rd_good.h"

/* Packets of an Ethernet's size, so that long messages are many; and packets at all. */
__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 0);
}

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

static void post_raw_recv(struct end *e, uint64_t id, void *addr, uint32_t len, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)addr, len, lkey};
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK_0(ibv_post_recv(e->qp, &wr, &bad));
}

/* In a process of its own: cmocka's handlers would see the fault first. And before the device was
 * ever open, or the child would have neither cmocka's handlers nor the device's. */
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
		/* Nothing else may come to be there. */
		CHECK_0(mprotect(mem, 1 << 20, PROT_NONE));
		rd_post(&p.ab, IBV_WR_SEND, 1, 0, sizes[i], 0);
		EXPECT(p.b.rcq, 10, IBV_WC_LOC_PROT_ERR);
		EXPECT(p.a.scq, 1, IBV_WC_REM_OP_ERR);
		CHECK_0(rnic_dereg_mr(mr));
		munmap(mem, 1 << 20);
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

/* Memory that has gone: what is read of it, however little; and what is sent from it, which must
 * not keep the receive from others. */
static void source_gone(int sock, void *arg)
{
	static const uint32_t sizes[] = {1, 7, 8, 100, LONG};
	struct rig_opts o = rd_defaults();
	struct rig_addr to;
	struct rd_pair p;
	struct way from_c, gone;
	struct end c, at_gone;
	struct ibv_mr *mr;
	uint8_t *mem;

	(void)sock;
	(void)arg;
	rd_pair_open(&p, NULL, NULL);
	end_make(&c, &p.rig, &o);
	end_up(&c, NULL);
	to = end_addr(&p.b);
	way_make(&from_c, &c, &to, 0);
	good(&p);
	mem = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(mem != MAP_FAILED);
	mr = rnic_reg_mr(p.rig.pd, mem, 1 << 20, (uintptr_t)mem, p.b.o.mr_access);
	CHECK(mr);
	CHECK_0(mprotect(mem, 1 << 20, PROT_NONE));
	gone = p.ab;
	gone.to.addr = (uintptr_t)mem;
	gone.to.rkey = mr->rkey;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		rd_post(&gone, IBV_WR_RDMA_READ, i, 0, sizes[i], 0);
		EXPECT(p.a.scq, i, IBV_WC_REM_OP_ERR);
	}
	at_gone = p.a;
	at_gone.buf = mem;
	at_gone.mr = mr;
	gone = p.ab;
	gone.from = &at_gone;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		end_recv(&p.b, i, 0, LONG);
		rd_post(&gone, IBV_WR_SEND, i, 0, sizes[i], 0);
		EXPECT(p.a.scq, i, IBV_WC_LOC_PROT_ERR);
		rd_post(&from_c, IBV_WR_SEND, 10 + i, 0, 8, 0);
		EXPECT_OK(c.scq, 10 + i);
		EXPECT_OK(p.b.rcq, i);
	}
	CHECK_0(rnic_dereg_mr(mr));
	munmap(mem, 1 << 20);
	way_free(&from_c);
	end_destroy(&c);
	rd_pair_close(&p);
}

static void test_source_gone(void **state)
{
	struct rig_proc proc;

	(void)state;
	rig_spawn(&proc, source_gone, NULL);
	rig_join(&proc);
}

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

/* A send of which only the beginning is in memory that exists. */
static void half_send(struct rd_pair *p, uint64_t id)
{
	struct ibv_sge sge[2] = {end_sge(&p->a, 0, LONG), end_sge(&p->a, 0, LONG)};

	sge[1].lkey ^= 0x5a00;
	ibv_wr_start(p->a.ex);
	p->a.ex->wr_id = id;
	p->a.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(p->a.ex);
	ibv_wr_set_ud_addr(p->a.ex, p->ab.ah, p->ab.to.qpn, p->ab.qkey);
	ibv_wr_set_sge_list(p->a.ex, 2, sge);
	CHECK_0(ibv_wr_complete(p->a.ex));
	EXPECT(p->a.scq, id, IBV_WC_LOC_PROT_ERR);
}

/* Its receive is not lost: not for others, and not for its own successors, in order. */
static void test_half_send(void **state)
{
	struct rig_opts o = rd_defaults();
	struct rd_pair p;
	struct rig_addr to;
	struct way cb;
	struct end c;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	end_make(&c, &p.rig, &o);
	end_up(&c, NULL);
	to = end_addr(&p.b);
	way_make(&cb, &c, &to, 0);
	end_recv(&p.b, 10, 0, 2 * LONG);
	half_send(&p, 1);
	rd_post(&cb, IBV_WR_SEND, 2, 0, 100, 0);
	EXPECT_OK(p.b.rcq, 10);
	EXPECT_OK(c.scq, 2);
	for (uint64_t i = 0; i < 6; i++)
		end_recv(&p.b, i, 0, 2 * LONG);
	for (uint64_t i = 0; i < 3; i++)
		half_send(&p, i);
	for (uint64_t i = 0; i < 6; i++) {
		rd_post(&p.ab, IBV_WR_SEND, i, 0, 100, 0);
		EXPECT_OK(p.b.rcq, i);
		EXPECT_OK(p.a.scq, i);
	}
	good(&p);
	way_free(&cb);
	end_destroy(&c);
	rd_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_receive_gone), RIG_TEST(test_source_gone), /* first: its process wants
									    fresh handlers */
		RIG_TEST(test_bad_key),      RIG_TEST(test_bad_key_imm), RIG_TEST(test_no_right),
		RIG_TEST(test_deregistered), RIG_TEST(test_misaligned),  RIG_TEST(test_bad_lkey),
		RIG_TEST(test_half_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
