/* Draining a send queue. */
#include "rig.h"

static void to_sqd(struct end *e, bool notify)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify};

	CHECK_0(rnic_modify_qp(e->qp, &attr,
			       IBV_QP_STATE | (notify ? IBV_QP_EN_SQD_ASYNC_NOTIFY : 0)));
}

static int draining(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_0(rnic_query_qp(e->qp, &attr, ~0, &init));
	CHECK_EQ(attr.qp_state, IBV_QPS_SQD);
	return attr.sq_draining;
}

/* What is posted meanwhile waits; what was under way is finished. */
static void test_rc(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	to_sqd(&p.a, true); /* nothing to drain */
	expect_event(&p.rig, IBV_EVENT_SQ_DRAINED, p.a.qp);
	CHECK_EQ(draining(&p.a), 0);
	for (uint64_t i = 0; i < 5; i++)
		end_write(&p.a, i, 0, 64, 0);
	expect_none(p.a.scq, 20);
	/* its receive side is as alive as ever */
	end_recv(&p.a, 9, 0, 64);
	end_send(&p.b, 9, 0, 64);
	EXPECT_OK(p.a.rcq, 9);
	EXPECT_OK(p.b.scq, 9);
	end_read(&p.b, 10, 0, 64, 0);
	EXPECT_OK(p.b.scq, 10);
	CHECK_0(end_state(&p.a, IBV_QPS_RTS));
	expect_run(p.a.scq, 0, 5, IBV_WC_SUCCESS);
	/* without asking: no event, not even for a wish of before */
	to_sqd(&p.a, false);
	expect_no_event(&p.rig, 20);
	CHECK_0(end_state(&p.a, IBV_QPS_RTS));
	pair_close(&p);
}

/* A large write that has begun ends in SQD, then the event comes, and not before. */
static void test_in_flight(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_async_event ev;
	struct pair p;
	unsigned int done = 0;
	struct ibv_wc wc;

	(void)state;
	o.buf_len = 32 << 20;
	pair_open(&p, &o);
	end_write(&p.a, 0, 0, 64, 0);
	EXPECT_OK(p.a.scq, 0);
	for (uint64_t i = 0; i < 3; i++)
		end_write(&p.a, i, 0, 32 << 20, 0);
	to_sqd(&p.a, true);
	CHECK(wait_event(&p.rig, &ev, RIG_WAIT));
	CHECK_EQ(ev.event_type, IBV_EVENT_SQ_DRAINED);
	rnic_ack_async_event(&ev);
	CHECK_EQ(draining(&p.a), 0);
	while (wait_wc(p.a.scq, &wc, 20)) {
		CHECK_EQ(wc.wr_id, done);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		done++;
	}
	CHECK(done >= 1 && done < 3); /* what had begun, and nothing else */
	CHECK_0(end_state(&p.a, IBV_QPS_RTS));
	expect_run(p.a.scq, done, 3 - done, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* A send that waits for a receive is under way. */
static void test_waiting(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	end_send(&p.a, 1, 0, 64);
	expect_none(p.a.scq, 20);
	to_sqd(&p.a, true);
	expect_no_event(&p.rig, 20);
	CHECK_EQ(draining(&p.a), 1);
	end_recv(&p.b, 1, 0, 64);
	expect_event(&p.rig, IBV_EVENT_SQ_DRAINED, p.a.qp);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 1);
	CHECK_0(end_state(&p.a, IBV_QPS_RTS));
	end_write(&p.a, 2, 0, 64, 0);
	EXPECT_OK(p.a.scq, 2);
	pair_close(&p);
}

static void test_uc_ud(void **state)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
	struct rig_opts o = rig_defaults();
	struct rig_addr own;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	for (size_t i = 0; i < 2; i++) {
		struct ibv_ah *ah;
		struct work w;

		o.type = types[i];
		end_make(&e, &r, &o);
		own = end_addr(&e);
		end_up(&e, &own);
		to_sqd(&e, true);
		expect_event(&r, IBV_EVENT_SQ_DRAINED, e.qp);
		ah = rnic_create_ah(r.pd, &(struct ibv_ah_attr){.grh = {.dgid = own.gid},
								.is_global = 1,
								.port_num = 1});
		CHECK(ah);
		end_recv(&e, 1, 0, 128);
		work_init(&w, &e, IBV_WR_SEND, 1, 0, 16, 0);
		if (o.type == IBV_QPT_UD) {
			w.wr.wr.ud.ah = ah;
			w.wr.wr.ud.remote_qpn = own.qpn;
			w.wr.wr.ud.remote_qkey = o.qkey;
		}
		CHECK_0(post(&e, &w));
		expect_none(e.scq, 20);
		CHECK_0(end_state(&e, IBV_QPS_RTS));
		EXPECT_OK(e.scq, 1);
		EXPECT_OK(e.rcq, 1);
		CHECK_0(rnic_destroy_ah(ah));
		end_destroy(&e);
	}
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_rc),
		RIG_TEST(test_in_flight),
		RIG_TEST(test_waiting),
		RIG_TEST(test_uc_ud),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
