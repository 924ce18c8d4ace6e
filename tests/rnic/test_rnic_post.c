/* Posting: lists with a bad request in them, full queues, and ibv_wr_*. */
#include <arpa/inet.h>
#include "rig.h"

/* ---- ibv_post_send, ibv_post_recv ---- */

/* What stands before the bad one is posted, the rest is not. */
static void test_bad_wr(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_send_wr *bad;
	struct work w[5];
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	for (int at = 0; at < 5; at++) {
		for (int i = 0; i < 5; i++) {
			work_init(&w[i], &p.a, IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 8, 0);
			w[i].wr.next = i < 4 ? &w[i + 1].wr : NULL;
		}
		w[at].wr.num_sge = 99;
		bad = NULL;
		CHECK_EQ(ibv_post_send(p.a.qp, &w[0].wr, &bad), EINVAL);
		CHECK(bad == &w[at].wr);
		expect_run(p.a.scq, 0, (unsigned int)at, IBV_WC_SUCCESS);
		expect_none(p.a.scq, 2);
	}
	pair_close(&p);
}

static void test_bad_requests(void **state)
{
	static const enum ibv_wr_opcode unknown[] = {IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV,
						     IBV_WR_BIND_MW, IBV_WR_TSO, 77};
	struct rig_opts o = rig_defaults();
	struct ibv_sge huge[4];
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		work_init(&w, &p.a, IBV_WR_SEND, 1, 0, 8, 0);
		w.wr.opcode = unknown[i];
		CHECK_EQ(post(&p.a, &w), EOPNOTSUPP);
	}
	/* more than the largest message */
	for (int i = 0; i < 4; i++) {
		huge[i] = end_sge(&p.a, 0, 0);
		huge[i].length = UINT32_MAX;
	}
	work_init(&w, &p.a, IBV_WR_SEND, 1, 0, 8, 0);
	w.wr.sg_list = huge;
	w.wr.num_sge = 4;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	w.wr.send_flags |= IBV_SEND_INLINE;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	CHECK(!p.rig.ctx->ops.alloc_mw(p.rig.pd, IBV_MW_TYPE_1) && errno == EOPNOTSUPP);
	CHECK_EQ(p.rig.ctx->ops.bind_mw(p.a.qp, NULL, NULL), EOPNOTSUPP);
	expect_none(p.a.scq, 2);
	pair_close(&p);
}

static void test_queue_full(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_recv_wr rwr[3] = {{0}}, *rbad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t n = 0;
	struct pair p;
	struct work w;

	(void)state;
	o.send_wr = 10; /* not a power of two: no more, no less than promised */
	o.recv_wr = 10;
	pair_open(&p, &o);
	CHECK_0(rnic_query_qp(p.a.qp, &attr, IBV_QP_CAP, &init));
	work_init(&w, &p.a, IBV_WR_SEND, 0, 0, 8, 0);
	while (!post(&p.a, &w))
		w.wr.wr_id = ++n;
	CHECK_EQ(n, attr.cap.max_send_wr);
	CHECK_EQ(post(&p.a, &w), ENOMEM);
	for (uint64_t i = 0; i < n; i++)
		end_recv(&p.b, i, 0, 8);
	/* nobody sends to this one: none of its receives is taken meanwhile */
	for (uint64_t i = 0; i < n; i++)
		end_recv(&p.a, i, 0, 8);
	CHECK_EQ(try_recv(&p.a, 99, 0, 8), ENOMEM);
	expect_run(p.a.scq, 0, n, IBV_WC_SUCCESS);
	expect_run(p.b.rcq, 0, n, IBV_WC_SUCCESS);
	/* a list of receives that does not fit: its beginning is posted */
	for (uint32_t i = 0; i < n - 2; i++)
		end_recv(&p.b, i, 0, 8);
	for (int i = 0; i < 3; i++) {
		rwr[i].wr_id = 500 + (uint64_t)i;
		rwr[i].next = i < 2 ? &rwr[i + 1] : NULL;
	}
	CHECK_EQ(ibv_post_recv(p.b.qp, rwr, &rbad), ENOMEM);
	CHECK(rbad == &rwr[2]);
	/* many times around the ring */
	for (uint64_t i = 0; i < 1000; i++) {
		w.wr.wr_id = i;
		w.wr.opcode = IBV_WR_RDMA_WRITE;
		w.wr.wr.rdma.remote_addr = p.a.peer.addr;
		w.wr.wr.rdma.rkey = p.a.peer.rkey;
		CHECK_0(post(&p.a, &w));
		if (i % 7 == 6)
			expect_run(p.a.scq, i - 6, 7, IBV_WC_SUCCESS);
	}
	pair_close(&p);
}

/* No send queue, no receive queue. */
static void test_empty_queues(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig r;
	struct end e;

	(void)state;
	o.send_wr = o.recv_wr = o.sge = o.inl = 0;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_init(&e);
	CHECK_EQ(try_recv(&e, 1, 0, 0), EINVAL);
	end_destroy(&e);
	rig_close(&r);
}

static void test_create_limits(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr ok, attr;
	struct ibv_qp *qp;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	end_make(&e, &r, &o);
	CHECK_0(rnic_query_device(r.ctx, &dev));
	ok = (struct ibv_qp_init_attr){
		.send_cq = e.scq, .recv_cq = e.rcq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
#define REFUSED(what, err)                                                                         \
	do {                                                                                       \
		attr = ok;                                                                         \
		what;                                                                              \
		errno = 0;                                                                         \
		CHECK(!rnic_create_qp(r.pd, &attr));                                               \
		CHECK_EQ(errno, err);                                                              \
	} while (0)
	REFUSED(attr.cap.max_send_wr = (uint32_t)dev.max_qp_wr + 1, EINVAL);
	REFUSED(attr.cap.max_recv_wr = (uint32_t)dev.max_qp_wr + 1, EINVAL);
	REFUSED(attr.cap.max_send_sge = (uint32_t)dev.max_sge + 1, EINVAL);
	REFUSED(attr.cap.max_recv_sge = (uint32_t)dev.max_sge + 1, EINVAL);
	REFUSED(attr.cap.max_inline_data = 1 << 20, EINVAL);
	REFUSED(attr.send_cq = NULL, EINVAL);
	REFUSED(attr.recv_cq = NULL, EINVAL);
	REFUSED(attr.qp_type = IBV_QPT_RAW_PACKET, EOPNOTSUPP);
	REFUSED(attr.qp_type = IBV_QPT_XRC_SEND, EOPNOTSUPP);
	attr = ok;
	attr.cap.max_send_wr = attr.cap.max_recv_wr = (uint32_t)dev.max_qp_wr;
	attr.cap.max_send_sge = attr.cap.max_recv_sge = (uint32_t)dev.max_sge;
	qp = rnic_create_qp(r.pd, &attr);
	CHECK(qp);
	CHECK_0(rnic_destroy_qp(qp));
	end_destroy(&e);
	rig_close(&r);
}

/* ---- ibv_wr_* ---- */

static void wr_begin(struct end *e, uint64_t id, unsigned int flags)
{
	e->ex->wr_id = id;
	e->ex->wr_flags = flags | IBV_SEND_SIGNALED;
}

static void test_wr_all(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_data_buf bufs[2];
	struct ibv_sge list[2];
	uint64_t *word, *old;
	struct ibv_qp_ex *x;
	struct ibv_wc wc;
	struct pair p;
	uint8_t local[64];

	(void)state;
	o.ex = true;
	for (int uc = 0; uc < 2; uc++) {
		o.type = uc ? IBV_QPT_UC : IBV_QPT_RC;
		pair_open(&p, &o);
		x = p.a.ex;
		word = (uint64_t *)(p.b.buf + 40960);
		old = (uint64_t *)(p.a.buf + 40960);
		util_rand_bytes(rig_rand(), p.a.buf, 4096);
		util_rand_bytes(rig_rand(), local, sizeof(local));
		for (uint64_t i = 0; i < 4; i++)
			end_recv(&p.b, i, 8192 + i * 1024, 1024);
		ibv_wr_start(x);
		wr_begin(&p.a, 0, 0);
		ibv_wr_send(x);
		ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)p.a.buf, 1000);
		wr_begin(&p.a, 1, 0);
		ibv_wr_send_imm(x, htonl(11));
		list[0] = end_sge(&p.a, 0, 10);
		list[1] = end_sge(&p.a, 100, 20);
		ibv_wr_set_sge_list(x, 2, list);
		wr_begin(&p.a, 2, 0);
		ibv_wr_send(x);
		ibv_wr_set_inline_data(x, local, 64);
		wr_begin(&p.a, 3, 0);
		ibv_wr_rdma_write(x, p.a.peer.rkey, p.a.peer.addr);
		bufs[0] = (struct ibv_data_buf){local, 3};
		bufs[1] = (struct ibv_data_buf){local + 10, 5};
		ibv_wr_set_inline_data_list(x, 2, bufs);
		wr_begin(&p.a, 4, 0);
		ibv_wr_rdma_write_imm(x, p.a.peer.rkey, p.a.peer.addr + 100, htonl(12));
		ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)p.a.buf, 77);
		CHECK_0(ibv_wr_complete(x));
		expect_run(p.a.scq, 0, 5, IBV_WC_SUCCESS);
		CHECK_EQ(EXPECT_OK(p.b.rcq, 0).byte_len, 1000);
		wc = EXPECT_OK(p.b.rcq, 1);
		CHECK(wc.byte_len == 30 && ntohl(wc.imm_data) == 11);
		CHECK_EQ(EXPECT_OK(p.b.rcq, 2).byte_len, 64);
		wc = EXPECT_OK(p.b.rcq, 3);
		CHECK(wc.byte_len == 77 && ntohl(wc.imm_data) == 12);
		CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		CHECK_0(memcmp(p.b.buf + 8192, p.a.buf, 1000));
		CHECK_0(memcmp(p.b.buf + 8192 + 1024, p.a.buf, 10));
		CHECK_0(memcmp(p.b.buf + 8192 + 1034, p.a.buf + 100, 20));
		CHECK_0(memcmp(p.b.buf + 8192 + 2048, local, 64));
		CHECK_0(memcmp(p.b.buf, local, 3));
		CHECK_0(memcmp(p.b.buf + 3, local + 10, 5));
		CHECK_0(memcmp(p.b.buf + 100, p.a.buf, 77));
		if (!uc) {
			*word = 5;
			ibv_wr_start(x);
			wr_begin(&p.a, 10, 0);
			ibv_wr_rdma_read(x, p.a.peer.rkey, p.a.peer.addr + 100);
			ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)p.a.buf + 20480, 77);
			wr_begin(&p.a, 11, IBV_SEND_FENCE);
			ibv_wr_atomic_fetch_add(x, p.a.peer.rkey, p.a.peer.addr + 40960, 4);
			ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)old, 8);
			CHECK_0(ibv_wr_complete(x));
			expect_run(p.a.scq, 10, 2, IBV_WC_SUCCESS);
			CHECK(*old == 5 && *word == 9);
			CHECK_0(memcmp(p.a.buf + 20480, p.b.buf + 100, 77));
			ibv_wr_start(x);
			wr_begin(&p.a, 12, 0);
			ibv_wr_atomic_cmp_swp(x, p.a.peer.rkey, p.a.peer.addr + 40960, 9, 1234);
			ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)old, 8);
			CHECK_0(ibv_wr_complete(x));
			EXPECT_OK(p.a.scq, 12);
			CHECK(*old == 9 && *word == 1234);
		}
		pair_close(&p);
	}
}

/* Nothing happened. */
static void test_wr_abort(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.ex = true;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 3; i++) {
		ibv_wr_start(p.a.ex);
		wr_begin(&p.a, 66, 0);
		ibv_wr_rdma_write(p.a.ex, p.a.peer.rkey, p.a.peer.addr);
		ibv_wr_set_sge(p.a.ex, p.a.mr->lkey, (uintptr_t)p.a.buf, 8);
		if (i == 1)
			ibv_wr_set_inline_data(p.a.ex, p.a.buf, 4096); /* fails, too */
		ibv_wr_abort(p.a.ex);
		/* nothing at all */
		ibv_wr_start(p.a.ex);
		CHECK_0(ibv_wr_complete(p.a.ex));
		/* both ways of posting share the queue */
		end_write(&p.a, i, 0, 8, 0);
		EXPECT_OK(p.a.scq, i);
	}
	expect_none(p.a.scq, 2);
	pair_close(&p);
}

/* An error anywhere is reported at the end, and none of the batch is posted. */
static void test_wr_errors(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_sge list[5];
	struct ibv_qp_ex *x;
	struct pair p;

	(void)state;
	o.ex = true;
	o.send_wr = 8;
	pair_open(&p, &o);
	x = p.a.ex;
	for (int i = 0; i < 5; i++)
		list[i] = end_sge(&p.a, 0, 8);
	for (int kind = 0; kind < 7; kind++) {
		int want = EINVAL;

		ibv_wr_start(x);
		wr_begin(&p.a, 1, 0);
		ibv_wr_rdma_write(x, p.a.peer.rkey, p.a.peer.addr);
		ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)p.a.buf, 8);
		wr_begin(&p.a, 2, 0);
		switch (kind) {
		case 0:
			ibv_wr_send(x);
			ibv_wr_set_inline_data(x, p.a.buf, o.inl + 1);
			break;
		case 1:
			ibv_wr_send(x);
			ibv_wr_set_sge_list(x, 5, list);
			break;
		case 2:
			ibv_wr_rdma_read(x, 1, 2);
			ibv_wr_set_inline_data(x, p.a.buf, 8);
			break;
		case 3:
			ibv_wr_atomic_fetch_add(x, 1, 2, 3);
			ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)p.a.buf, 7);
			break;
		case 4: /* more than the queue holds */
			for (int i = 0; i < 9; i++) {
				ibv_wr_send(x);
				ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)p.a.buf, 8);
			}
			want = ENOMEM;
			break;
		case 5: /* without data for an atomic */
			ibv_wr_atomic_cmp_swp(x, 1, 2, 3, 4);
			break;
		case 6:
			ibv_wr_send(x);
			ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)p.a.buf, UINT32_MAX);
			break;
		}
		/* a good one behind does not hide it */
		wr_begin(&p.a, 3, 0);
		ibv_wr_rdma_write(x, p.a.peer.rkey, p.a.peer.addr);
		ibv_wr_set_sge(x, p.a.mr->lkey, (uintptr_t)p.a.buf, 8);
		CHECK_EQ(ibv_wr_complete(x), want);
		expect_none(p.a.scq, 1);
	}
	end_write(&p.a, 9, 0, 8, 0);
	EXPECT_OK(p.a.scq, 9);
	/* in a state that does not allow it */
	CHECK_0(end_state(&p.a, IBV_QPS_RESET));
	ibv_wr_start(x);
	ibv_wr_send(x);
	CHECK_EQ(ibv_wr_complete(x), EINVAL);
	/* and in one where it is flushed */
	end_init(&p.a);
	CHECK_0(end_state(&p.a, IBV_QPS_ERR));
	ibv_wr_start(x);
	wr_begin(&p.a, 5, 0);
	ibv_wr_send(x);
	CHECK_0(ibv_wr_complete(x));
	EXPECT(p.a.scq, 5, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

static void test_wr_create(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_qp_init_attr_ex ok, attr;
	struct verbs_context *v;
	struct ibv_qp *qp;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	end_make(&e, &r, &o);
	v = verbs_get_ctx(r.ctx);
	ok = (struct ibv_qp_init_attr_ex){.send_cq = e.scq,
					  .recv_cq = e.rcq,
					  .pd = r.pd,
					  .cap = {1, 1, 1, 1, 0},
					  .qp_type = IBV_QPT_RC,
					  .comp_mask = IBV_QP_INIT_ATTR_PD |
						       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS};
#define REFUSED_EX(what, err)                                                                      \
	do {                                                                                       \
		attr = ok;                                                                         \
		what;                                                                              \
		errno = 0;                                                                         \
		CHECK(!v->create_qp_ex(r.ctx, &attr));                                             \
		CHECK_EQ(errno, err);                                                              \
	} while (0)
	REFUSED_EX(attr.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_INV, EOPNOTSUPP);
	REFUSED_EX(attr.send_ops_flags = IBV_QP_EX_WITH_BIND_MW, EOPNOTSUPP);
	REFUSED_EX((attr.qp_type = IBV_QPT_UC, attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ),
		   EOPNOTSUPP);
	REFUSED_EX((attr.qp_type = IBV_QPT_UD, attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE),
		   EOPNOTSUPP);
	REFUSED_EX(attr.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH, EOPNOTSUPP);
	REFUSED_EX(attr.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, EINVAL);
	REFUSED_EX((attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS,
		    attr.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB),
		   EOPNOTSUPP); /* RC has no multicast */
	REFUSED_EX((attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS, attr.qp_type = IBV_QPT_UD,
		    attr.create_flags = IBV_QP_CREATE_SCATTER_FCS),
		   EOPNOTSUPP);
	attr = ok;
	qp = v->create_qp_ex(r.ctx, &attr);
	CHECK(qp && rnic_qp_to_qp_ex(qp));
	CHECK_0(rnic_destroy_qp(qp));
	CHECK(!rnic_qp_to_qp_ex(e.qp));
	end_destroy(&e);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_bad_wr),        RIG_TEST(test_bad_requests),
		RIG_TEST(test_queue_full),    RIG_TEST(test_empty_queues),
		RIG_TEST(test_create_limits), RIG_TEST(test_wr_all),
		RIG_TEST(test_wr_abort),      RIG_TEST(test_wr_errors),
		RIG_TEST(test_wr_create),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
