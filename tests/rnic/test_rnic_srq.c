/* Shared receive queues. */
#include "rig.h"

static struct ibv_srq *make(struct rig *r, uint32_t wr)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = wr, .max_sge = 2}};
	struct ibv_srq *srq = rnic_create_srq(r->pd, &attr);

	CHECK(srq);
	CHECK(attr.attr.max_wr >= wr && attr.attr.max_sge >= 2);
	return srq;
}

/* n pairs, whose b ends share one receive queue and one completion queue. */
struct star {
	struct rig rig;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct end pool; /* memory for the receives */
	int n;
	struct end a[16], b[16];
};

static void star_open(struct star *s, int n, struct rig_opts *o)
{
	struct rig_opts ob = *o;

	rig_open(&s->rig);
	s->n = n;
	s->srq = make(&s->rig, 64);
	s->cq = rnic_create_cq(s->rig.ctx, 1024, NULL, NULL, 0);
	CHECK(s->cq);
	end_make(&s->pool, &s->rig, o);
	ob.srq = s->srq;
	ob.cq = s->cq;
	for (int i = 0; i < n; i++) {
		struct rig_addr to;

		end_make(&s->a[i], &s->rig, o);
		end_make(&s->b[i], &s->rig, &ob);
		to = end_addr(&s->b[i]);
		end_up(&s->a[i], &to);
		to = end_addr(&s->a[i]);
		end_up(&s->b[i], &to);
	}
}

static void star_close(struct star *s)
{
	for (int i = 0; i < s->n; i++) {
		end_destroy(&s->a[i]);
		end_destroy(&s->b[i]);
	}
	end_destroy(&s->pool);
	CHECK_0(rnic_destroy_srq(s->srq));
	CHECK_0(rnic_destroy_cq(s->cq));
	rig_close(&s->rig);
}

static void srq_post(struct star *s, uint64_t id)
{
	CHECK_0(try_srq_recv(s->srq, &s->pool, id, id % 64 * 64, 64));
}

static void test_attributes(void **state)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 10, .max_sge = 3}};
	struct ibv_recv_wr wr[2] = {{0}}, *bad;
	struct ibv_srq_attr got;
	struct ibv_device_attr dev;
	struct ibv_srq *srq;
	struct ibv_sge list[4] = {{0}};
	struct rig_opts o = rig_defaults();
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	CHECK_0(rnic_query_device(r.ctx, &dev));
	srq = rnic_create_srq(r.pd, &attr);
	CHECK(srq);
	CHECK_0(rnic_query_srq(srq, &got));
	CHECK(got.max_wr >= 10 && got.max_sge >= 3 && got.srq_limit == 0);
	got.srq_limit = 5;
	CHECK_0(rnic_modify_srq(srq, &got, IBV_SRQ_LIMIT));
	CHECK_0(rnic_query_srq(srq, &got));
	CHECK_EQ(got.srq_limit, 5);
	got.srq_limit = got.max_wr + 1;
	CHECK_EQ(rnic_modify_srq(srq, &got, IBV_SRQ_LIMIT), EINVAL);
	CHECK_EQ(rnic_modify_srq(srq, &got, IBV_SRQ_MAX_WR), EOPNOTSUPP);
	CHECK_0(rnic_modify_srq(srq, &got, 0));
	/* no more than promised, and the list's beginning is posted */
	for (uint32_t i = 0; i < got.max_wr - 1; i++)
		CHECK_0(ibv_post_srq_recv(srq, &wr[1], &bad));
	wr[0].next = &wr[1];
	CHECK_EQ(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	CHECK(bad == &wr[1]);
	wr[0].sg_list = list;
	wr[0].num_sge = (int)got.max_sge + 1;
	CHECK_EQ(ibv_post_srq_recv(srq, wr, &bad), EINVAL);
	/* such a queue pair has no receive queue of its own */
	o.srq = srq;
	end_make(&e, &r, &o);
	end_init(&e);
	CHECK_EQ(try_recv(&e, 1, 0, 8), EINVAL);
	end_destroy(&e);
	CHECK_0(rnic_destroy_srq(srq));
	attr.attr.max_wr = 0;
	CHECK(!rnic_create_srq(r.pd, &attr) && errno == EINVAL);
	attr.attr.max_wr = (uint32_t)dev.max_srq_wr + 1;
	CHECK(!rnic_create_srq(r.pd, &attr) && errno == EINVAL);
	attr.attr.max_wr = 1;
	attr.attr.max_sge = (uint32_t)dev.max_srq_sge + 1;
	CHECK(!rnic_create_srq(r.pd, &attr) && errno == EINVAL);
	rig_close(&r);
}

/* Many senders, few receives: all wait, all get their turn, nothing is lost, and each
 * one's order is kept. */
static void test_many_wait(void **state)
{
	enum { N = 12, MSGS = 40 };
	struct rig_opts o = rig_defaults();
	uint64_t posted = 0, got = 0;
	uint32_t next[N] = {0};
	struct star s;

	(void)state;
	star_open(&s, N, &o);
	for (int i = 0; i < N; i++) {
		for (uint32_t k = 0; k < MSGS; k++) {
			memcpy(s.a[i].buf + k * 64, &k, sizeof(k));
			end_send(&s.a[i], k, k * 64, 64);
		}
	}
	rig_sleep_ms(20);
	while (got < N * MSGS) {
		struct ibv_wc wc;
		uint32_t k;
		int from;

		for (int i = 0; i < 3 && posted < got + 5 && posted < N * MSGS; i++)
			srq_post(&s, posted++);
		if (!wait_wc(s.cq, &wc, RIG_WAIT))
			CHECK(!"a message in time");
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		for (from = 0; s.b[from].qp->qp_num != wc.qp_num; from++)
			CHECK(from < N - 1);
		memcpy(&k, s.pool.buf + wc.wr_id % 64 * 64, sizeof(k));
		CHECK_EQ(k, next[from]);
		next[from]++;
		got++;
	}
	for (int i = 0; i < N; i++)
		expect_run(s.a[i].scq, 0, MSGS, IBV_WC_SUCCESS);
	expect_none(s.cq, 5);
	star_close(&s);
}

/* One of those that wait goes away: the others still get what is posted. */
static void test_waiter_leaves(void **state)
{
	struct rig_opts o = rig_defaults();
	struct star s;

	(void)state;
	star_open(&s, 3, &o);
	for (int i = 0; i < 3; i++)
		end_send(&s.a[i], 1, 0, 64);
	rig_sleep_ms(20);
	CHECK_0(end_state(&s.b[0], IBV_QPS_RESET));
	CHECK_0(end_state(&s.a[1], IBV_QPS_ERR));
	srq_post(&s, 1);
	CHECK_EQ(EXPECT_OK(s.cq, 1).qp_num, s.b[2].qp->qp_num);
	EXPECT_OK(s.a[2].scq, 1);
	star_close(&s);
}

static void test_limit(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_srq_attr attr = {.srq_limit = 5};
	struct star s;

	(void)state;
	star_open(&s, 1, &o);
	for (uint64_t i = 0; i < 10; i++)
		srq_post(&s, i);
	for (int round = 0; round < 2; round++) {
		uint64_t base = 100 * (uint64_t)round;

		CHECK_0(rnic_modify_srq(s.srq, &attr, IBV_SRQ_LIMIT));
		for (uint64_t i = 0; i < 5; i++) /* five are left, which is not fewer */
			end_send(&s.a[0], base + i, 0, 64);
		expect_run(s.a[0].scq, base, 5, IBV_WC_SUCCESS);
		expect_no_event(&s.rig, 5);
		end_send(&s.a[0], base + 5, 0, 64);
		expect_event(&s.rig, IBV_EVENT_SRQ_LIMIT_REACHED, s.srq);
		end_send(&s.a[0], base + 6, 0, 64); /* once for each arming */
		expect_run(s.a[0].scq, base + 5, 2, IBV_WC_SUCCESS);
		expect_no_event(&s.rig, 5);
		CHECK_0(rnic_query_srq(s.srq, &attr));
		CHECK_EQ(attr.srq_limit, 0);
		attr.srq_limit = 5;
		for (uint64_t i = 0; i < 7; i++) {
			struct ibv_wc wc;

			CHECK(wait_wc(s.cq, &wc, RIG_WAIT));
			srq_post(&s, wc.wr_id);
		}
	}
	star_close(&s);
}

/* The receives belong to all: an error of one queue pair leaves them where they are,
 * and says that it will not take another. */
static void test_last_wqe(void **state)
{
	struct rig_opts o = rig_defaults();
	struct star s;

	(void)state;
	star_open(&s, 2, &o);
	for (uint64_t i = 0; i < 4; i++)
		srq_post(&s, i);
	CHECK_0(end_state(&s.b[0], IBV_QPS_ERR));
	expect_event(&s.rig, IBV_EVENT_QP_LAST_WQE_REACHED, s.b[0].qp);
	CHECK_0(end_state(&s.b[0], IBV_QPS_ERR));
	expect_no_event(&s.rig, 5);
	expect_none(s.cq, 5);
	end_send(&s.a[1], 1, 0, 64);
	EXPECT_OK(s.cq, 0);
	EXPECT_OK(s.a[1].scq, 1);
	/* by an error of the peer's making, too; the receive that it took is flushed or
	 * failed, the others stay */
	end_read(&s.a[1], 2, 0, 8, 1 << 20);
	EXPECT(s.a[1].scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_event(&s.rig, IBV_EVENT_QP_ACCESS_ERR, s.b[1].qp);
	expect_event(&s.rig, IBV_EVENT_QP_LAST_WQE_REACHED, s.b[1].qp);
	expect_none(s.cq, 5);
	star_close(&s);
}

/* A key of the queue's own domain, which may be another than the queue pair's. */
static void test_domains(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct rig_addr a, b;
	struct rig r, other;
	struct end ea, eb, pool;

	(void)state;
	rig_open(&r);
	other = r;
	other.pd = rnic_alloc_pd(r.ctx);
	CHECK(other.pd);
	end_make(&pool, &other, &o);
	end_make(&ea, &r, &o);
	o.srq = rnic_create_srq(other.pd, &attr);
	CHECK(o.srq);
	end_make(&eb, &r, &o);
	a = end_addr(&ea);
	b = end_addr(&eb);
	end_up(&ea, &b);
	end_up(&eb, &a);
	CHECK_0(try_srq_recv(o.srq, &pool, 1, 0, 64));
	CHECK_0(try_srq_recv(o.srq, &eb, 2, 0, 64));
	end_send(&ea, 1, 0, 64);
	EXPECT_OK(eb.rcq, 1);
	end_send(&ea, 2, 0, 64);
	EXPECT(eb.rcq, 2, IBV_WC_LOC_PROT_ERR);
	end_destroy(&ea);
	end_destroy(&eb);
	end_destroy(&pool);
	CHECK_0(rnic_destroy_srq(o.srq));
	CHECK_0(rnic_dealloc_pd(other.pd));
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_attributes), RIG_TEST(test_many_wait), RIG_TEST(test_waiter_leaves),
		RIG_TEST(test_limit),      RIG_TEST(test_last_wqe),  RIG_TEST(test_domains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
