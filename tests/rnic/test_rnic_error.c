/* What goes wrong: the right status, on the right request, on the right side, and
 * everything else flushed in order. */
#include "rig.h"

#define OUT_OF_BOUNDS 70000 /* the buffers have 65536 bytes */

static void broken(struct end *e)
{
	CHECK_EQ(end_query(e), IBV_QPS_ERR);
}

/* Three good ones, the bad one, three that are flushed. */
static void bad_in_the_middle(struct pair *p, struct work *bad, enum ibv_wc_status status)
{
	bad->wr.wr_id = 3;
	for (uint64_t i = 0; i < 7; i++) {
		if (i == 3)
			CHECK_0(post(&p->a, bad));
		else
			end_write(&p->a, i, 0, 100, 0);
	}
	expect_run(p->a.scq, 0, 3, IBV_WC_SUCCESS);
	EXPECT(p->a.scq, 3, status);
	expect_run(p->a.scq, 4, 3, IBV_WC_WR_FLUSH_ERR);
	expect_none(p->a.scq, 5);
	broken(&p->a);
}

static void test_bad_lkey_send(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
						 IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM};
	struct rig_opts o = rig_defaults();
	struct pair p;
	struct work w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		pair_open(&p, &o);
		end_recv(&p.b, 77, 0, 4096);
		work_init(&w, &p.a, ops[i], 3, 0, 64, 0);
		w.sge.lkey++;
		bad_in_the_middle(&p, &w, IBV_WC_LOC_PROT_ERR);
		/* The peer is not to blame, and has lost nothing. */
		CHECK_EQ(end_query(&p.b), IBV_QPS_RTS);
		expect_none(p.b.rcq, 5);
		pair_close(&p);
	}
}

/* The same for the list's bounds, a region of another domain, a key that is gone, and
 * a fault that shows only in the second frame. */
static void test_bad_local(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_sge list[2];
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	work_init(&w, &p.a, IBV_WR_SEND, 3, OUT_OF_BOUNDS, 64, 0);
	bad_in_the_middle(&p, &w, IBV_WC_LOC_PROT_ERR);
	pair_close(&p);

	pair_open(&p, &o);
	pd = rnic_alloc_pd(p.rig.ctx);
	mr = rnic_reg_mr(pd, p.a.buf, 4096, (uintptr_t)p.a.buf, IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr);
	work_init(&w, &p.a, IBV_WR_SEND, 3, 0, 64, 0);
	w.sge.lkey = mr->lkey;
	bad_in_the_middle(&p, &w, IBV_WC_LOC_PROT_ERR);
	CHECK_0(rnic_dereg_mr(mr));
	CHECK_0(rnic_dealloc_pd(pd));
	pair_close(&p);

	pair_open(&p, &o);
	list[0] = end_sge(&p.a, 0, 50000);
	list[1] = end_sge(&p.a, 60000, 50000);
	work_init(&w, &p.a, IBV_WR_RDMA_WRITE, 3, 0, 0, 0);
	w.wr.sg_list = list;
	w.wr.num_sge = 2;
	bad_in_the_middle(&p, &w, IBV_WC_LOC_PROT_ERR);
	pair_close(&p);
}

/* Where a read or an atomic would put its answer. */
static void test_bad_sink(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
						 IBV_WR_ATOMIC_CMP_AND_SWP};
	struct rig_opts o = rig_defaults();
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		pair_open(&p, &o);
		work_init(&w, &p.a, ops[i], 3, 0, 8, 0);
		w.sge.lkey++;
		bad_in_the_middle(&p, &w, IBV_WC_LOC_PROT_ERR);
		pair_close(&p);

		pair_open(&p, &o);
		mr = rnic_reg_mr(p.rig.pd, p.a.buf, 4096, (uintptr_t)p.a.buf, 0);
		CHECK(mr); /* to send from, not to receive to */
		work_init(&w, &p.a, ops[i], 3, 0, 8, 0);
		w.sge.lkey = mr->lkey;
		bad_in_the_middle(&p, &w, IBV_WC_LOC_PROT_ERR);
		CHECK_0(rnic_dereg_mr(mr));
		pair_close(&p);
	}
}

static void test_bad_lkey_recv(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_sge sge;
	struct ibv_recv_wr wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1}, *bad;
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	end_recv(&p.b, 1, 0, 4096);
	sge = end_sge(&p.b, 0, 4096);
	sge.lkey++;
	CHECK_0(ibv_post_recv(p.b.qp, &wr, &bad));
	end_recv(&p.b, 3, 0, 4096);
	for (uint64_t i = 0; i < 4; i++)
		end_send(&p.a, i, 0, 100);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT(p.b.rcq, 2, IBV_WC_LOC_PROT_ERR);
	EXPECT(p.b.rcq, 3, IBV_WC_WR_FLUSH_ERR);
	EXPECT_OK(p.a.scq, 0);
	EXPECT(p.a.scq, 1, IBV_WC_REM_OP_ERR);
	expect_run(p.a.scq, 2, 2, IBV_WC_WR_FLUSH_ERR);
	broken(&p.a);
	broken(&p.b);
	pair_close(&p);
}

static void test_recv_too_small(void **state)
{
	struct rig_opts o = rig_defaults();
	uint32_t sizes[] = {101, 40000, 65536}; /* one frame, and found in the second */
	struct pair p;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint32_t room = sizes[i] - 1;

		pair_open(&p, &o);
		memset(p.b.buf, 0xee, o.buf_len);
		end_recv(&p.b, 1, 0, 65536);
		end_recv(&p.b, 2, 0, room);
		end_recv(&p.b, 3, 0, 65536);
		end_send(&p.a, 1, 0, sizes[i] - 1);
		end_send(&p.a, 2, 0, sizes[i]);
		end_send(&p.a, 3, 0, 1);
		EXPECT_OK(p.b.rcq, 1);
		EXPECT(p.b.rcq, 2, IBV_WC_LOC_LEN_ERR);
		EXPECT(p.b.rcq, 3, IBV_WC_WR_FLUSH_ERR);
		EXPECT_OK(p.a.scq, 1);
		EXPECT(p.a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
		EXPECT(p.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(p.b.buf[room], 0xee);
		broken(&p.a);
		broken(&p.b);
		pair_close(&p);
	}
}

/* ---- what the responder refuses ---- */

static void refused(struct pair *p, struct work *w, enum ibv_wc_status status,
		    enum ibv_event_type event)
{
	uint8_t *before = malloc(p->b.o.buf_len);

	end_recv(&p->b, 70, 0, 4096);
	end_recv(&p->b, 71, 0, 4096);
	p->a.buf[0] = p->b.buf[0] = 0x42;
	memcpy(before, p->b.buf, p->b.o.buf_len);
	memset(p->a.buf, 0x42, 200);
	memset(before, 0x42, 100); /* by the good writes around it */
	bad_in_the_middle(p, w, status);
	expect_run(p->b.rcq, 70, 2, IBV_WC_WR_FLUSH_ERR);
	expect_none(p->b.rcq, 5);
	broken(&p->b);
	expect_event(&p->rig, event, p->b.qp);
	expect_no_event(&p->rig, 5);
	CHECK_0(memcmp(before, p->b.buf, p->b.o.buf_len));
	free(before);
}

static const enum ibv_wr_opcode rdma[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
					  IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
					  IBV_WR_RDMA_WRITE_WITH_IMM};

static void set_remote(struct work *w, uint64_t addr, uint32_t rkey)
{
	if (w->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    w->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		w->wr.wr.atomic.remote_addr = addr;
		w->wr.wr.atomic.rkey = rkey;
	} else {
		w->wr.wr.rdma.remote_addr = addr;
		w->wr.wr.rdma.rkey = rkey;
	}
}

static void access_error(struct rig_opts *oa, struct rig_opts *ob, enum ibv_wr_opcode op,
			 int64_t shift, uint32_t key_xor)
{
	struct pair p;
	struct work w;

	pair_connect(&p, oa, ob);
	work_init(&w, &p.a, op, 3, 200, 8, 0);
	set_remote(&w, p.a.peer.addr + (uint64_t)shift, p.a.peer.rkey ^ key_xor);
	refused(&p, &w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
	CHECK_EQ(rig_stats(&p.rig).terminates_sent, 1);
	CHECK_EQ(rig_stats(&p.rig).terminates_got, 1);
	pair_close(&p);
}

static void test_bad_rkey(void **state)
{
	struct rig_opts o = rig_defaults();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rdma); i++)
		access_error(&o, &o, rdma[i], 0, 1);
}

static void test_out_of_bounds(void **state)
{
	struct rig_opts o = rig_defaults();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rdma); i++) {
		access_error(&o, &o, rdma[i], -8, 0);
		access_error(&o, &o, rdma[i], 65536 - 0, 0);
		access_error(&o, &o, rdma[i], -65536, 0);
		access_error(&o, &o, rdma[i], INT64_MIN, 0);
	}
	/* one byte over the end, and one before the beginning */
	access_error(&o, &o, IBV_WR_RDMA_WRITE, 65536 - 7, 0);
	access_error(&o, &o, IBV_WR_RDMA_READ, 65536 - 7, 0);
	access_error(&o, &o, IBV_WR_RDMA_WRITE, -1, 0);
	access_error(&o, &o, IBV_WR_RDMA_READ, -1, 0);
}

/* An address so high that adding the length wraps around. */
static void test_wrap_around(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;
	struct work w;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		pair_open(&p, &o);
		work_init(&w, &p.a, rdma[i], 3, 200, 64, 0);
		set_remote(&w, UINT64_MAX - 31, p.a.peer.rkey);
		refused(&p, &w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		pair_close(&p);
	}
}

static void test_mr_access(void **state)
{
	struct rig_opts oa = rig_defaults(), ob = oa;
	static const unsigned int need[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
					    IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC,
					    IBV_ACCESS_REMOTE_WRITE};
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rdma); i++) {
		pair_open(&p, &oa);
		/* the writes around need their own; this one has all rights but one */
		mr = rnic_reg_mr(p.rig.pd, p.b.buf + 4096, 4096, (uintptr_t)p.b.buf + 4096,
				 oa.mr_access & ~need[i]);
		CHECK(mr);
		work_init(&w, &p.a, rdma[i], 3, 200, 8, 0);
		set_remote(&w, (uintptr_t)mr->addr, mr->rkey);
		refused(&p, &w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		CHECK_0(rnic_dereg_mr(mr));
		pair_close(&p);
	}
	/* The queue pair itself does not allow it. */
	for (size_t i = 1; i < 4; i++) {
		ob.qp_access = oa.qp_access & ~need[i];
		access_error(&oa, &ob, rdma[i], 0, 0);
	}
	ob.qp_access = oa.qp_access & ~(unsigned int)IBV_ACCESS_REMOTE_WRITE;
	pair_connect(&p, &oa, &ob);
	end_write(&p.a, 1, 0, 8, 0);
	EXPECT(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_event(&p.rig, IBV_EVENT_QP_ACCESS_ERR, p.b.qp);
	pair_close(&p);
}

static void test_wrong_domain(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rdma); i++) {
		pair_open(&p, &o);
		pd = rnic_alloc_pd(p.rig.ctx);
		mr = rnic_reg_mr(pd, p.b.buf + 4096, 4096, (uintptr_t)p.b.buf + 4096, o.mr_access);
		CHECK(mr);
		work_init(&w, &p.a, rdma[i], 3, 200, 8, 0);
		set_remote(&w, (uintptr_t)mr->addr, mr->rkey);
		refused(&p, &w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		CHECK_0(rnic_dereg_mr(mr));
		CHECK_0(rnic_dealloc_pd(pd));
		pair_close(&p);
	}
}

static void test_unaligned_atomic(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	(void)state;
	for (size_t i = 2; i < 4; i++) {
		pair_open(&p, &o);
		work_init(&w, &p.a, rdma[i], 3, 200, 8, 0);
		set_remote(&w, p.a.peer.addr + 4, p.a.peer.rkey);
		refused(&p, &w, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
		pair_close(&p);
	}
	/* An address that is aligned, of memory that is not. */
	pair_open(&p, &o);
	mr = rnic_reg_mr(p.rig.pd, p.b.buf + 4100, 64, 0x1000, o.mr_access);
	CHECK(mr);
	work_init(&w, &p.a, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 200, 8, 0);
	set_remote(&w, 0x1000, mr->rkey);
	CHECK_0(post(&p.a, &w));
	CHECK(wait_wc(p.a.scq, &(struct ibv_wc){0}, RIG_WAIT));
	CHECK_EQ(p.b.buf[4100], 0);
	broken(&p.b);
	CHECK_0(rnic_dereg_mr(mr));
	pair_close(&p);
}

/* ---- keys that go ---- */

static void test_key_after_dereg(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rdma); i++) {
		pair_open(&p, &o);
		mr = rnic_reg_mr(p.rig.pd, p.b.buf + 4096, 4096, (uintptr_t)p.b.buf + 4096,
				 o.mr_access);
		CHECK(mr);
		work_init(&w, &p.a, rdma[i], 3, 200, 8, 0);
		set_remote(&w, (uintptr_t)mr->addr, mr->rkey);
		if (rdma[i] == IBV_WR_RDMA_WRITE) {
			w.wr.wr_id = 9;
			CHECK_0(post(&p.a, &w)); /* while it is there */
			EXPECT_OK(p.a.scq, 9);
		}
		CHECK_0(rnic_dereg_mr(mr));
		refused(&p, &w, IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
		pair_close(&p);
	}
}

/* The region goes while its contents are on their way. */
static void test_dereg_during_read(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_wc wc = {0};
	struct pair p;
	unsigned int cut = 0;

	(void)state;
	o.buf_len = 48 << 20;
	for (int round = 0; round < 4; round++) {
		pair_open(&p, &o);
		end_write(&p.a, 1, 0, 8, 0);
		EXPECT_OK(p.a.scq, 1);
		end_read(&p.a, 2, 0, 48 << 20, 0);
		end_write(&p.a, 3, 0, 8, 0);
		usleep((unsigned int)round * 500);
		CHECK_0(rnic_dereg_mr(p.b.mr));
		memset(p.b.buf, 0xff, o.buf_len);
		CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
		CHECK_EQ(wc.wr_id, 2);
		CHECK(wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_SUCCESS);
		if (wc.status != IBV_WC_SUCCESS) {
			EXPECT(p.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
			broken(&p.a);
			broken(&p.b);
			cut++;
		}
		p.b.mr = NULL;
		pair_close(&p);
	}
	CHECK(cut); /* a read of 48 MB does not win every time */
}

static void test_rereg(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_pd *pd;
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	/* Other rights: reads go on, writes do not. */
	CHECK_0(rnic_rereg_mr(p.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      IBV_ACCESS_REMOTE_READ));
	end_read(&p.a, 1, 0, 64, 0);
	EXPECT_OK(p.a.scq, 1);
	end_write(&p.a, 2, 0, 64, 0);
	EXPECT(p.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);

	/* Another range. */
	pair_open(&p, &o);
	CHECK_0(rnic_rereg_mr(p.b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p.b.buf + 8192, 4096,
			      0));
	CHECK(p.b.mr->addr == p.b.buf + 8192 && p.b.mr->length == 4096);
	end_write(&p.a, 1, 0, 64, 8192);
	EXPECT_OK(p.a.scq, 1);
	end_write(&p.a, 2, 0, 64, 0);
	EXPECT(p.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	pair_close(&p);

	/* Another domain; and the old one is free to go. */
	pair_open(&p, &o);
	pd = rnic_alloc_pd(p.rig.ctx);
	CHECK_0(rnic_rereg_mr(p.b.mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
	CHECK_EQ(rnic_dealloc_pd(pd), EBUSY);
	end_write(&p.a, 2, 0, 64, 0);
	EXPECT(p.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	CHECK_0(rnic_dereg_mr(p.b.mr));
	p.b.mr = NULL;
	CHECK_0(rnic_dealloc_pd(pd));
	pair_close(&p);

	/* What can not be. */
	pair_open(&p, &o);
	CHECK_EQ(rnic_rereg_mr(p.b.mr, 1 << 20, NULL, NULL, 0, 0), EOPNOTSUPP);
	CHECK_EQ(rnic_rereg_mr(p.b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			       IBV_ACCESS_REMOTE_WRITE),
		 EINVAL);
	CHECK_EQ(rnic_rereg_mr(p.b.mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0), EINVAL);
	CHECK_EQ(rnic_rereg_mr(p.b.mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)UINTPTR_MAX,
			       64, 0),
		 EINVAL);
	end_write(&p.a, 2, 0, 64, 0);
	EXPECT_OK(p.a.scq, 2);
	pair_close(&p);
}

/* ---- the error state ---- */

/* Everything that was posted completes once, in order: what was executed as success,
 * what was not as flushed. */
static void test_flush(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	for (int round = 0; round < 20; round++) {
		bool flushing = false;
		int ok = 0;

		pair_open(&p, &o);
		for (uint64_t i = 0; i < 40; i++)
			end_recv(&p.b, i, 0, 4096);
		for (uint64_t i = 0; i < 30; i++)
			end_recv(&p.a, i, 0, 4096);
		for (uint64_t i = 0; i < 60; i++)
			end_send(&p.a, i, 0, 1000);
		usleep((unsigned int)round * 20);
		CHECK_0(end_state(&p.a, IBV_QPS_ERR));
		for (uint64_t i = 0; i < 60; i++) {
			CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
			CHECK_EQ(wc.wr_id, i);
			if (wc.status == IBV_WC_SUCCESS) {
				CHECK(!flushing);
				ok++;
			} else {
				CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
				flushing = true;
			}
			CHECK_EQ(wc.qp_num, p.a.qp->qp_num);
		}
		expect_none(p.a.scq, 2);
		expect_run(p.a.rcq, 0, 30, IBV_WC_WR_FLUSH_ERR);
		expect_none(p.a.rcq, 2);
		/* What the sender was told, the receiver has seen. */
		for (int i = 0; i < ok; i++)
			EXPECT_OK(p.b.rcq, (uint64_t)i);
		pair_close(&p);
	}
}

static void test_flush_by_error_of_peer(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 10; i++) {
		end_recv(&p.a, i, 0, 64);
		end_recv(&p.b, i, 0, 64);
	}
	/* b has nothing to do with it and still goes down, in order */
	end_read(&p.a, 50, 0, 64, OUT_OF_BOUNDS);
	EXPECT(p.a.scq, 50, IBV_WC_REM_ACCESS_ERR);
	expect_run(p.a.rcq, 0, 10, IBV_WC_WR_FLUSH_ERR);
	expect_run(p.b.rcq, 0, 10, IBV_WC_WR_FLUSH_ERR);
	/* and what is posted afterwards is flushed as well */
	end_send(&p.b, 60, 0, 64);
	EXPECT(p.b.scq, 60, IBV_WC_WR_FLUSH_ERR);
	end_recv(&p.b, 61, 0, 64);
	EXPECT(p.b.rcq, 61, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

/* An unsignalled request that fails is reported nevertheless, with all behind it. */
static void test_unsignalled_failure(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 5; i++) {
		work_init(&w, &p.a, IBV_WR_RDMA_WRITE, i, 0, 64, i == 2 ? OUT_OF_BOUNDS : 0);
		w.wr.send_flags = 0;
		CHECK_0(post(&p.a, &w));
	}
	EXPECT(p.a.scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_run(p.a.scq, 3, 2, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_bad_lkey_send),
		RIG_TEST(test_bad_local),
		RIG_TEST(test_bad_sink),
		RIG_TEST(test_bad_lkey_recv),
		RIG_TEST(test_recv_too_small),
		RIG_TEST(test_bad_rkey),
		RIG_TEST(test_out_of_bounds),
		RIG_TEST(test_wrap_around),
		RIG_TEST(test_mr_access),
		RIG_TEST(test_wrong_domain),
		RIG_TEST(test_unaligned_atomic),
		RIG_TEST(test_key_after_dereg),
		RIG_TEST(test_dereg_during_read),
		RIG_TEST(test_rereg),
		RIG_TEST(test_flush),
		RIG_TEST(test_flush_by_error_of_peer),
		RIG_TEST(test_unsignalled_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
