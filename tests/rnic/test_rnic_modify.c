/* The state machine: every pair of states, every attribute mask, every bad value. */
#include "rig.h"

static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
					   IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
/* Every bit that a caller could set for the three kinds. */
#define ALL_BITS                                                                                   \
	(IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT |      \
	 IBV_QP_QKEY | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |           \
	 IBV_QP_RNR_RETRY | IBV_QP_RQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER |       \
	 IBV_QP_SQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_CAP | IBV_QP_DEST_QPN |                \
	 IBV_QP_RATE_LIMIT)

/* IBTA volume 1, section 10.3, and what the kernel's ib_modify_qp_is_ok makes of it. */
struct rule {
	enum ibv_qp_state from, to;
	enum ibv_qp_type type;
	int required, optional;
};

#define RC_RTR                                                                                     \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |                           \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS                                                                                     \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |                    \
	 IBV_QP_MAX_QP_RD_ATOMIC)
#define RC_SQD                                                                                     \
	(IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |             \
	 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define CONNECTED_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define UD_INIT        (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)

static const struct rule rules[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC, CONNECTED_INIT, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UC, CONNECTED_INIT, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD, UD_INIT, 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0, CONNECTED_INIT},
	{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UC, 0, CONNECTED_INIT},
	{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0, UD_INIT},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC, RC_RTR, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UC,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	 IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC, RC_RTS, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UC, IBV_QP_SQ_PSN, IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, IBV_QP_SQ_PSN, IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UC, 0, IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_RC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_RC, 0, RC_SQD},
	{IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UC, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_RC, 0, IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UC, 0, IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_QKEY},
	{IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UC, 0, IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_QKEY},
};

static const struct rule *find_rule(enum ibv_qp_type type, enum ibv_qp_state from,
				    enum ibv_qp_state to)
{
	static struct rule any;

	any = (struct rule){from, to, type, 0, 0};
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return &any;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].type == type && rules[i].from == from && rules[i].to == to)
			return &rules[i];
	return NULL;
}

static struct rig_opts small(enum ibv_qp_type type)
{
	struct rig_opts o = rig_defaults();

	o.type = type;
	o.buf_len = 4096;
	return o;
}

/* Valid values for everything. The queue pair is its own peer: no handshake. */
static struct ibv_qp_attr good(const struct end *e)
{
	struct rig_addr own = end_addr(e);

	return (struct ibv_qp_attr){
		.path_mtu = IBV_MTU_1024,
		.qkey = 0x1234,
		.rq_psn = own.psn,
		.sq_psn = own.psn,
		.dest_qp_num = own.qpn,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
		.ah_attr = {.grh = {.dgid = own.gid}, .is_global = 1, .port_num = 1},
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 1,
		.rnr_retry = 1,
		.path_mig_state = IBV_MIG_MIGRATED,
	};
}

/* A request that fails locally is how a send queue gets into its error state. */
static void bad_send(struct end *e, struct ibv_ah *ah)
{
	struct work w;

	work_init(&w, e, IBV_WR_SEND, 666, 0, 16, 0);
	w.sge.lkey ^= 0x5555;
	if (ah) {
		w.wr.wr.ud.ah = ah;
		w.wr.wr.ud.remote_qpn = e->qp->qp_num;
		w.wr.wr.ud.remote_qkey = e->o.qkey;
	}
	CHECK_0(post(e, &w));
}

static struct ibv_ah *own_ah(const struct end *e)
{
	struct ibv_ah_attr attr = {.grh = {.dgid = end_addr(e).gid}, .is_global = 1, .port_num = 1};
	struct ibv_ah *ah = rnic_create_ah(e->rig->pd, &attr);

	CHECK(ah);
	return ah;
}

static bool has_sqe(enum ibv_qp_type type)
{
	return type != IBV_QPT_RC;
}

static void drive(struct end *e, enum ibv_qp_state to)
{
	struct rig_addr own = end_addr(e);
	struct ibv_ah *ah;

	CHECK_0(end_state(e, IBV_QPS_RESET));
	if (to == IBV_QPS_RESET)
		return;
	end_init(e);
	if (to == IBV_QPS_INIT)
		return;
	end_rtr(e, &own);
	if (to == IBV_QPS_RTR)
		return;
	end_rts(e);
	if (to == IBV_QPS_SQD || to == IBV_QPS_ERR)
		CHECK_0(end_state(e, to));
	if (to == IBV_QPS_SQE) {
		ah = e->o.type == IBV_QPT_UD ? own_ah(e) : NULL;
		bad_send(e, ah);
		EXPECT(e->scq, 666, IBV_WC_LOC_PROT_ERR);
		if (ah)
			CHECK_0(rnic_destroy_ah(ah));
	}
	CHECK_EQ(end_query(e), to);
}

static void try_transition(struct end *e, enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct rule *rule = find_rule(e->o.type, from, to);
	struct ibv_qp_attr attr = good(e);
	int err;

	drive(e, from);
	attr.qp_state = to;
	err = rnic_modify_qp(e->qp, &attr, IBV_QP_STATE | (rule ? rule->required : 0));
	if (rule ? err != 0 : err != EINVAL)
		fprintf(stderr, "type %d, state %d to %d: %d\n", e->o.type, from, to, err);
	CHECK_EQ(err, rule ? 0 : EINVAL);
	CHECK_EQ(end_query(e), rule ? to : from);
}

static void test_transitions(void **state)
{
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		struct rig_opts o = small(types[t]);

		end_make(&e, &r, &o);
		for (size_t i = 0; i < ARRAY_SIZE(states); i++)
			for (size_t k = 0; k < ARRAY_SIZE(states); k++)
				if (states[i] != IBV_QPS_SQE || has_sqe(types[t]))
					try_transition(&e, states[i], states[k]);
		end_destroy(&e);
	}
	rig_close(&r);
}

/* One required bit missing, or one that does not belong there: refused, and nothing
 * has changed. Optional bits: accepted one by one and all at once. */
static void try_masks(struct end *e, const struct rule *rule)
{
	struct ibv_qp_attr attr = good(e);

	attr.qp_state = rule->to;
	drive(e, rule->from);
	for (int bit = 1; bit <= ALL_BITS; bit <<= 1) {
		int mask = IBV_QP_STATE | rule->required;

		if (!(bit & ALL_BITS) || bit & rule->optional)
			continue;
		mask ^= bit;
		CHECK_EQ(rnic_modify_qp(e->qp, &attr, mask), EINVAL);
		CHECK_EQ(end_query(e), rule->from);
	}
	for (int bit = 1; bit <= ALL_BITS; bit <<= 1) {
		if (!(bit & rule->optional))
			continue;
		drive(e, rule->from);
		CHECK_0(rnic_modify_qp(e->qp, &attr, IBV_QP_STATE | rule->required | bit));
	}
	drive(e, rule->from);
	CHECK_0(rnic_modify_qp(e->qp, &attr, IBV_QP_STATE | rule->required | rule->optional));
	CHECK_EQ(end_query(e), rule->to);
}

static void test_masks(void **state)
{
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		struct rig_opts o = small(types[t]);

		end_make(&e, &r, &o);
		for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
			if (rules[i].type == types[t])
				try_masks(&e, &rules[i]);
		end_destroy(&e);
	}
	rig_close(&r);
}

static void refused(struct end *e, struct ibv_qp_attr attr, int mask, int err)
{
	enum ibv_qp_state before = end_query(e);

	CHECK_EQ(rnic_modify_qp(e->qp, &attr, mask), err);
	CHECK_EQ(end_query(e), before);
}

#define BAD(what, mask, err)                                                                       \
	do {                                                                                       \
		struct ibv_qp_attr a = good(&e);                                                   \
		a.qp_state = to;                                                                   \
		what;                                                                              \
		refused(&e, a, IBV_QP_STATE | (mask), err);                                        \
	} while (0)

static void test_bad_values(void **state)
{
	struct rig_opts o = small(IBV_QPT_RC);
	enum ibv_qp_state to = IBV_QPS_INIT;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	end_make(&e, &r, &o);
	BAD(a.port_num = 0, CONNECTED_INIT, EINVAL);
	BAD(a.port_num = 2, CONNECTED_INIT, EINVAL);
	BAD(a.pkey_index = 1, CONNECTED_INIT, EINVAL);

	drive(&e, IBV_QPS_INIT);
	to = IBV_QPS_RTR;
	BAD(a.path_mtu = 0, RC_RTR, EINVAL);
	BAD(a.path_mtu = 6, RC_RTR, EINVAL);
	BAD(a.dest_qp_num = 1 << 24, RC_RTR, EINVAL);
	BAD(a.max_dest_rd_atomic = 17, RC_RTR, EINVAL);
	BAD(a.min_rnr_timer = 32, RC_RTR, EINVAL);
	BAD(a.ah_attr.grh.sgid_index = 1, RC_RTR, EINVAL);
	BAD(a.ah_attr.grh.dgid.raw[0] = 0xfe, RC_RTR, EINVAL);
	BAD((void)0, RC_RTR | IBV_QP_ALT_PATH, EOPNOTSUPP);
	BAD(a.path_mig_state = IBV_MIG_REARM, RC_RTR | IBV_QP_PATH_MIG_STATE, EOPNOTSUPP);

	drive(&e, IBV_QPS_RTR);
	to = IBV_QPS_RTS;
	BAD(a.timeout = 32, RC_RTS, EINVAL);
	BAD(a.retry_cnt = 8, RC_RTS, EINVAL);
	BAD(a.rnr_retry = 8, RC_RTS, EINVAL);
	BAD(a.max_rd_atomic = 17, RC_RTS, EINVAL);
	BAD(a.cur_qp_state = IBV_QPS_INIT, RC_RTS | IBV_QP_CUR_STATE, EINVAL);
	to = 42;
	BAD((void)0, 0, EINVAL);
	end_destroy(&e);
	rig_close(&r);
}

static void test_cur_state(void **state)
{
	struct rig_opts o = small(IBV_QPT_UD);
	struct ibv_qp_attr attr;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	end_make(&e, &r, &o);
	drive(&e, IBV_QPS_RTR);
	attr = good(&e);
	attr.qp_state = IBV_QPS_RTS;
	attr.cur_qp_state = IBV_QPS_RTR;
	CHECK_0(rnic_modify_qp(e.qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_SQ_PSN));
	/* Without a new state, the attributes of the one that it is in. */
	attr.qkey = 0x777;
	CHECK_0(rnic_modify_qp(e.qp, &attr, IBV_QP_QKEY));
	CHECK_EQ(rnic_modify_qp(e.qp, &attr, IBV_QP_SQ_PSN), EINVAL);
	end_destroy(&e);
	rig_close(&r);
}

static void test_query(void **state)
{
	struct rig_opts o = small(IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr want, got;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	o.sig_all = true;
	end_make(&e, &r, &o);
	want = good(&e);
	want.qp_state = IBV_QPS_INIT;
	CHECK_0(rnic_modify_qp(e.qp, &want, IBV_QP_STATE | CONNECTED_INIT));
	want.qp_state = IBV_QPS_RTR;
	CHECK_0(rnic_modify_qp(e.qp, &want, IBV_QP_STATE | RC_RTR));
	want.qp_state = IBV_QPS_RTS;
	CHECK_0(rnic_modify_qp(e.qp, &want, IBV_QP_STATE | RC_RTS));
	CHECK_0(rnic_query_qp(e.qp, &got, ~0, &init));
	CHECK_EQ(got.qp_state, IBV_QPS_RTS);
	CHECK_EQ(got.cur_qp_state, IBV_QPS_RTS);
	CHECK_EQ(e.qp->state, IBV_QPS_RTS);
	CHECK_EQ(got.path_mtu, want.path_mtu);
	CHECK_EQ(got.rq_psn, want.rq_psn);
	CHECK_EQ(got.sq_psn, want.sq_psn);
	CHECK_EQ(got.dest_qp_num, want.dest_qp_num);
	CHECK_EQ(got.qp_access_flags, want.qp_access_flags);
	CHECK_EQ(got.max_rd_atomic, want.max_rd_atomic);
	CHECK_EQ(got.max_dest_rd_atomic, want.max_dest_rd_atomic);
	CHECK_EQ(got.min_rnr_timer, want.min_rnr_timer);
	CHECK_EQ(got.port_num, 1);
	CHECK_EQ(got.timeout, want.timeout);
	CHECK_EQ(got.retry_cnt, want.retry_cnt);
	CHECK_EQ(got.rnr_retry, want.rnr_retry);
	CHECK_EQ(got.sq_draining, 0);
	CHECK_0(memcmp(&got.ah_attr.grh.dgid, &want.ah_attr.grh.dgid, sizeof(union ibv_gid)));
	CHECK(got.cap.max_send_wr >= o.send_wr && got.cap.max_recv_wr >= o.recv_wr);
	CHECK(got.cap.max_send_sge >= o.sge && got.cap.max_recv_sge >= o.sge);
	CHECK(got.cap.max_inline_data >= o.inl);
	CHECK(init.qp_context == &e && init.send_cq == e.scq && init.recv_cq == e.rcq);
	CHECK(!init.srq && init.qp_type == IBV_QPT_RC && init.sq_sig_all == 1);
	CHECK_EQ(init.cap.max_send_wr, got.cap.max_send_wr);
	CHECK_0(end_state(&e, IBV_QPS_RESET));
	CHECK_0(rnic_query_qp(e.qp, &got, ~0, &init));
	CHECK_EQ(got.dest_qp_num, 0);
	end_destroy(&e);
	rig_close(&r);
}

static void test_post_by_state(void **state)
{
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		struct rig_opts o = small(types[t]);
		bool ud = types[t] == IBV_QPT_UD;
		struct ibv_ah *ah;
		struct work w;

		end_make(&e, &r, &o);
		ah = ud ? own_ah(&e) : NULL;
		work_init(&w, &e, IBV_WR_SEND, 1, 0, 16, 0);
		if (ud) {
			w.wr.wr.ud.ah = ah;
			w.wr.wr.ud.remote_qpn = e.qp->qp_num;
			w.wr.wr.ud.remote_qkey = o.qkey;
		}
		drive(&e, IBV_QPS_RESET);
		CHECK_EQ(post(&e, &w), EINVAL);
		CHECK_EQ(try_recv(&e, 2, 1024, 128), EINVAL);
		drive(&e, IBV_QPS_INIT);
		CHECK_EQ(post(&e, &w), EINVAL);
		CHECK_0(try_recv(&e, 2, 1024, 128));
		drive(&e, IBV_QPS_RTR);
		CHECK_EQ(post(&e, &w), EINVAL);
		CHECK_0(try_recv(&e, 3, 1024, 128));
		end_rts(&e);
		CHECK_0(post(&e, &w));
		EXPECT_OK(e.scq, 1);
		EXPECT_OK(e.rcq, 3);
		drive(&e, IBV_QPS_ERR);
		CHECK_0(post(&e, &w));
		CHECK_0(try_recv(&e, 4, 1024, 128));
		EXPECT(e.scq, 1, IBV_WC_WR_FLUSH_ERR);
		EXPECT(e.rcq, 4, IBV_WC_WR_FLUSH_ERR);
		if (has_sqe(types[t])) {
			drive(&e, IBV_QPS_SQE);
			CHECK_0(post(&e, &w));
			EXPECT(e.scq, 1, IBV_WC_WR_FLUSH_ERR);
			CHECK_0(try_recv(&e, 5, 1024, 128));
			expect_none(e.rcq, 5); /* the receive queue is alive */
		}
		if (ah)
			CHECK_0(rnic_destroy_ah(ah));
		end_destroy(&e);
	}
	rig_close(&r);
}

/* RESET throws away everything that was posted and everything that was completed. */
static void test_reset_forgets(void **state)
{
	struct rig_opts o = small(IBV_QPT_RC);
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	end_recv(&p.b, 1, 0, 64);
	end_send(&p.a, 2, 0, 64);
	EXPECT_OK(p.b.rcq, 1);
	end_recv(&p.b, 3, 0, 64);
	end_send(&p.a, 4, 0, 64);
	EXPECT_OK(p.a.scq, 2);
	EXPECT_OK(p.a.scq, 4);
	for (int i = 0; i < 10; i++)
		end_recv(&p.b, 100 + (uint64_t)i, 0, 64);
	CHECK_0(end_state(&p.b, IBV_QPS_RESET)); /* with receive 3 complete, not polled */
	expect_none(p.b.rcq, 5);
	drive(&p.b, IBV_QPS_INIT);
	for (unsigned int i = 0; i < o.recv_wr; i++)
		end_recv(&p.b, i, 0, 64); /* all of the queue is free again */
	CHECK_EQ(try_recv(&p.b, 999, 0, 64), ENOMEM);
	CHECK_0(end_state(&p.b, IBV_QPS_ERR));
	expect_run(p.b.rcq, 0, o.recv_wr, IBV_WC_WR_FLUSH_ERR);
	expect_none(p.b.rcq, 5);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_transitions),   RIG_TEST(test_masks), RIG_TEST(test_bad_values),
		RIG_TEST(test_cur_state),     RIG_TEST(test_query), RIG_TEST(test_post_by_state),
		RIG_TEST(test_reset_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
