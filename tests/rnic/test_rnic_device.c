/* The device: what it says of itself, and which addresses it has. Each case is a process
 * of its own, because a process looks for the device once. */
#include <arpa/inet.h>
#include <net/if.h>
#include "rig_rd.h"
#include "rnic_ctx.h"
#include "rnic_qp.h"

#define GRH 40

static void in_process(void (*f)(int sock, void *arg))
{
	struct rig_proc proc;

	rig_spawn(&proc, f, NULL);
	rig_join(&proc);
}

/* ---- queries ---- */

static void queries(int sock, void *arg)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr dev;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid;
	struct verbs_context *v;
	struct rig r;
	__be16 pkey;

	(void)sock;
	(void)arg;
	rig_open(&r);
	v = verbs_get_ctx(r.ctx);
	CHECK(rnic_is_device(r.ctx->device));
	CHECK(!rnic_is_device(&(struct ibv_device){.name = "mlx5_0"}));
	CHECK(!strcmp(r.ctx->device->name, "weft0"));
	CHECK_EQ(r.ctx->num_comp_vectors, 1);
	CHECK_0(rnic_query_device(r.ctx, &dev));
	CHECK(dev.max_qp > 0 && dev.max_qp_wr > 0 && dev.max_sge > 0 && dev.max_cqe > 0);
	CHECK_EQ(dev.phys_port_cnt, 1);
	CHECK(dev.node_guid == rnic_device_guid(r.ctx->device) && dev.node_guid);
	CHECK(dev.atomic_cap != IBV_ATOMIC_NONE);
	CHECK_0(v->query_device_ex(r.ctx, NULL, &ex, sizeof(ex)));
	CHECK_EQ(ex.orig_attr.max_qp, dev.max_qp);
	CHECK_EQ(ex.orig_attr.node_guid, dev.node_guid);
	CHECK_EQ(ex.orig_attr.phys_port_cnt, dev.phys_port_cnt);
	CHECK(ex.completion_timestamp_mask && ex.hca_core_clock);
	CHECK_EQ(v->query_device_ex(r.ctx, &input, &ex, sizeof(ex)), EINVAL);
	CHECK_EQ(v->query_device_ex(r.ctx, NULL, &ex, 8), EINVAL);
	/* of an older program: only as much as it has room for */
	memset(&ex, 0xee, sizeof(ex));
	CHECK_0(v->query_device_ex(r.ctx, NULL, &ex, sizeof(ex.orig_attr)));
	CHECK_EQ(((uint8_t *)&ex)[sizeof(ex.orig_attr)], 0xee);
	CHECK_0(rnic_query_port(r.ctx, 1, &port));
	CHECK_EQ(port.state, IBV_PORT_ACTIVE);
	CHECK_EQ(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	CHECK_EQ(port.gid_tbl_len, 1);
	CHECK_EQ(port.pkey_tbl_len, 1);
	CHECK_EQ(rnic_query_port(r.ctx, 0, &port), EINVAL);
	CHECK_EQ(rnic_query_port(r.ctx, 2, &port), EINVAL);
	memset(&port, 0xee, sizeof(port));
	CHECK_0(v->query_port(r.ctx, 1, &port, offsetof(struct ibv_port_attr, link_layer)));
	CHECK_EQ(port.link_layer, 0xee);
	CHECK_0(rnic_query_gid_entry(r.ctx, 1, 0, &gid));
	CHECK_EQ(gid.gid_type, IBV_GID_TYPE_ROCE_V2);
	CHECK(gid.gid.raw[12] == 127 && gid.gid.raw[15] == 1 && gid.gid.raw[11] == 0xff);
	CHECK_EQ(gid.ndev_ifindex, if_nametoindex("lo"));
	CHECK(rnic_query_gid_entry(r.ctx, 1, 1, &gid) > 0);
	CHECK_EQ(rnic_query_gid_entry(r.ctx, 2, 0, &gid), EINVAL);
	CHECK_0(rnic_query_pkey(r.ctx, 1, 0, &pkey));
	CHECK_EQ(pkey, 0xffff);
	CHECK_EQ(rnic_query_pkey(r.ctx, 1, 1, &pkey), EINVAL);
	CHECK_0(v->query_rt_values(r.ctx, &values));
	CHECK(values.raw_clock.tv_sec > 0);
	values.comp_mask = 1 << 5;
	CHECK_EQ(v->query_rt_values(r.ctx, &values), EOPNOTSUPP);
	rig_close(&r);
}

static void srq_ex(int sock, void *arg)
{
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 4, .max_sge = 1},
					    .comp_mask =
						    IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
					    .srq_type = IBV_SRQT_BASIC};
	struct verbs_context *v;
	struct ibv_srq *srq;
	struct rig r;

	(void)sock;
	(void)arg;
	rig_open(&r);
	v = verbs_get_ctx(r.ctx);
	attr.pd = r.pd;
	srq = v->create_srq_ex(r.ctx, &attr);
	CHECK(srq);
	CHECK_0(rnic_destroy_srq(srq));
	attr.srq_type = IBV_SRQT_XRC;
	CHECK(!v->create_srq_ex(r.ctx, &attr) && errno == EOPNOTSUPP);
	attr.comp_mask = 0;
	CHECK(!v->create_srq_ex(r.ctx, &attr) && errno == EOPNOTSUPP);
	rig_close(&r);
}

static void test_queries(void **state)
{
	(void)state;
	in_process(queries);
	in_process(srq_ex);
}

/* ---- looking for it ---- */

static void no_device(int sock, void *arg)
{
	(void)sock;
	(void)arg;
	CHECK(!rnic_device_get());
	CHECK(errno > 0);
}

static void device_there(int sock, void *arg)
{
	(void)sock;
	(void)arg;
	CHECK(rnic_device_get());
}

static void test_environment(void **state)
{
	static const struct {
		const char *name, *value;
		bool there;
	} cases[] = {
		{"WEFT_DEVICE", "off", false},
		{"WEFT_DEVICE", "on", true},
		{"WEFT_ADDR", "not an address", false},
		{"WEFT_ADDR", "127.0.0.1,oops", false},
		{"WEFT_ADDR", "203.0.113.77", false}, /* not ours */
		{"WEFT_ADDR", "127.0.0.77", true},    /* served by lo all the same */
		{"WEFT_ADDR", "", true},
		{"WEFT_NETDEV", "lo", true},
		{"WEFT_NETDEV", "nosuch0", false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setenv(cases[i].name, cases[i].value, 1);
		in_process(cases[i].there ? device_there : no_device);
		unsetenv(cases[i].name);
		setenv("WEFT_ADDR", "127.0.0.1", 1);
	}
}

/* ---- several addresses ---- */

static struct rig_addr at(struct end *e, const char *ip)
{
	struct rig_addr a = end_addr(e);

	CHECK(inet_pton(AF_INET, ip, a.gid.raw + 12) == 1);
	return a;
}

static void rtr_from(struct end *e, const struct rig_addr *peer, uint8_t sgid_index)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = peer->qpn,
				   .rq_psn = peer->psn,
				   .max_dest_rd_atomic = 4,
				   .ah_attr = {.grh = {.dgid = peer->gid, .sgid_index = sgid_index},
					       .is_global = 1,
					       .port_num = 1}};

	e->peer = *peer;
	CHECK_0(rnic_modify_qp(e->qp, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER));
}

static void several(int sock, void *arg)
{
	static const char *const ips[] = {"127.0.0.2", "127.0.0.3"};
	struct rig_opts o = rig_defaults();
	struct ibv_port_attr port;
	struct rig_addr a, b;
	struct pair p;

	(void)sock;
	(void)arg;
	setenv("WEFT_ADDR", "127.0.0.2,127.0.0.3", 1);
	rig_open(&p.rig);
	CHECK_0(rnic_query_port(p.rig.ctx, 1, &port));
	CHECK_EQ(port.gid_tbl_len, 2);
	CHECK_EQ(port.lid, 2);
	/* each to each: own address i, peer's address k */
	for (uint8_t i = 0; i < 2; i++) {
		for (uint8_t k = 0; k < 2; k++) {
			end_make(&p.a, &p.rig, &o);
			end_make(&p.b, &p.rig, &o);
			a = at(&p.a, ips[i]);
			b = at(&p.b, ips[k]);
			end_init(&p.a);
			end_init(&p.b);
			rtr_from(&p.a, &b, i);
			rtr_from(&p.b, &a, k);
			end_rts(&p.a);
			end_rts(&p.b);
			end_recv(&p.b, 1, 0, 64);
			end_send(&p.a, 1, 0, 64);
			EXPECT_OK(p.b.rcq, 1);
			EXPECT_OK(p.a.scq, 1);
			end_destroy(&p.a);
			end_destroy(&p.b);
		}
	}
	/* from another address than the one that the peer expects: not the peer */
	o.timeout = 10;
	o.retry_cnt = 1;
	end_make(&p.a, &p.rig, &o);
	end_make(&p.b, &p.rig, &o);
	a = at(&p.a, ips[0]);
	b = at(&p.b, ips[0]);
	end_init(&p.a);
	end_init(&p.b);
	rtr_from(&p.a, &b, 1);
	rtr_from(&p.b, &a, 0);
	end_rts(&p.a);
	end_rts(&p.b);
	end_send(&p.a, 1, 0, 64);
	EXPECT(p.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
	pair_close(&p);
}

static void several_ud(int sock, void *arg)
{
	static const char *const ips[] = {"127.0.0.2", "127.0.0.3"};
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)sock;
	(void)arg;
	setenv("WEFT_ADDR", "127.0.0.2,127.0.0.3", 1);
	o.type = IBV_QPT_UD;
	pair_open(&p, &o);
	for (uint8_t i = 0; i < 2; i++) {
		for (uint8_t k = 0; k < 2; k++) {
			struct rig_addr b = at(&p.b, ips[k]);
			struct ibv_ah_attr attr = {.grh = {.dgid = b.gid, .sgid_index = i},
						   .is_global = 1,
						   .port_num = 1};
			struct ibv_ah *ah = rnic_create_ah(p.rig.pd, &attr);
			struct ibv_ah_attr back;
			struct ibv_wc wc;
			struct work w;

			CHECK(ah);
			end_recv(&p.b, 1, 0, 1000);
			work_init(&w, &p.a, IBV_WR_SEND, 1, 0, 64, 0);
			w.wr.wr.ud.ah = ah;
			w.wr.wr.ud.remote_qpn = p.b.qp->qp_num;
			w.wr.wr.ud.remote_qkey = o.qkey;
			CHECK_0(post(&p.a, &w));
			EXPECT_OK(p.a.scq, 1);
			wc = EXPECT_OK(p.b.rcq, 1);
			/* from where we said, to where we said: the reply goes back so */
			CHECK_EQ(p.b.buf[20 + 15], i + 2);
			CHECK_EQ(p.b.buf[20 + 19], k + 2);
			CHECK_0(rnic_init_ah_from_wc(p.rig.ctx, 1, &wc, (struct ibv_grh *)p.b.buf,
						     &back));
			CHECK_EQ(back.grh.sgid_index, k);
			CHECK_EQ(back.grh.dgid.raw[15], i + 2);
			CHECK_0(rnic_destroy_ah(ah));
		}
	}
	pair_close(&p);
}

/* All addresses of a peer are asked at once, under one name: each answer is for the way that it
 * came by. */
static void several_rd(int sock, void *arg)
{
	enum { N = 12 };
	struct rd_pair p;
	struct way w[N];
	char addrs[N * 16] = "", ip[16];
	int at_char = 0;

	(void)sock;
	(void)arg;
	for (int i = 0; i < N; i++)
		at_char += snprintf(addrs + at_char, sizeof(addrs) - (size_t)at_char,
				    "%s127.0.0.%d", i ? "," : "", i + 2);
	setenv("WEFT_ADDR", addrs, 1);
	setenv("WEFT_RD_SHM", "off", 1);
	rd_pair_open(&p, NULL, NULL);
	for (int i = 0; i < N; i++) {
		struct rig_addr b;
		struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

		snprintf(ip, sizeof(ip), "127.0.0.%d", i + 2);
		b = at(&p.b, ip);
		attr.grh = (struct ibv_global_route){
			.dgid = b.gid, .sgid_index = (uint8_t)i, .hop_limit = 64};
		w[i] = (struct way){.from = &p.a, .to = b, .qkey = p.a.o.qkey};
		w[i].ah = rnic_create_ah(p.rig.pd, &attr);
		CHECK(w[i].ah);
	}
	for (int i = 0; i < N; i++)
		rd_post(&w[i], IBV_WR_RDMA_WRITE, (uint64_t)i, 0, 1000, (size_t)i * 1000);
	for (int i = 0; i < N; i++) {
		struct ibv_wc wc;

		CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
		CHECK_0(wc.status);
	}
	CHECK_EQ(rd_stats(&p.a).peers, 1);
	CHECK_EQ(rd_stats(&p.b).peers, 1);
	for (int i = 0; i < N; i++) {
		struct weftdv_path path;

		CHECK_0(rnic_query_path(p.a.qp, w[i].ah, w[i].to.qpn, &path));
		CHECK_EQ(path.completions, 1);
		way_free(&w[i]);
	}
	rd_pair_close(&p);
}

/* By LID alone: the low half of the address, within our /16. */
static void by_lid(int sock, void *arg)
{
	struct rig_opts o = rig_defaults();
	struct end *ends[2];
	struct pair p;

	(void)sock;
	(void)arg;
	setenv("WEFT_ADDR", "127.0.3.4", 1);
	rig_open(&p.rig);
	end_make(&p.a, &p.rig, &o);
	end_make(&p.b, &p.rig, &o);
	ends[0] = &p.a;
	ends[1] = &p.b;
	for (int i = 0; i < 2; i++) {
		struct rig_addr peer = end_addr(ends[!i]);
		struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
					   .path_mtu = IBV_MTU_1024,
					   .dest_qp_num = peer.qpn,
					   .rq_psn = peer.psn,
					   .ah_attr = {.dlid = 0x0304, .port_num = 1}};

		end_init(ends[i]);
		CHECK_0(rnic_modify_qp(ends[i]->qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
		end_rts(ends[i]);
	}
	end_recv(&p.b, 1, 0, 64);
	end_send(&p.a, 1, 0, 64);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 1);
	pair_close(&p);
}

static void test_addresses(void **state)
{
	(void)state;
	in_process(several);
	in_process(several_ud);
	in_process(several_rd);
	in_process(by_lid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_queries),
		RIG_TEST(test_environment),
		RIG_TEST(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
