/* Multicast: groups, members, and one's own voice. */
#include <arpa/inet.h>
#include "rig.h"

#define GRH 40

static struct rig_opts ud(uint32_t flags)
{
	struct rig_opts o = rig_defaults();

	o.type = IBV_QPT_UD;
	o.buf_len = 128 * 1024;
	o.ex = flags != 0;
	o.create_flags = flags;
	return o;
}

static union ibv_gid mapped(const char *ip)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	CHECK(inet_pton(AF_INET, ip, gid.raw + 12) == 1);
	return gid;
}

/* As a subnet manager would hand it out. */
static union ibv_gid native(uint8_t last)
{
	return (union ibv_gid){.raw = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xaa,
				       0xbb, 0xcc, last}};
}

static struct ibv_ah *group_ah(struct end *e, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {.grh = {.dgid = *gid, .hop_limit = 1},
				   .is_global = 1,
				   .port_num = 1,
				   .dlid = 0xc001};
	struct ibv_ah *ah = rnic_create_ah(e->rig->pd, &attr);

	CHECK(ah);
	return ah;
}

static void speak(struct end *e, struct ibv_ah *ah, uint64_t wr_id, uint32_t len)
{
	struct work w;

	work_init(&w, e, IBV_WR_SEND_WITH_IMM, wr_id, 0, len, 0);
	w.wr.imm_data = htonl((uint32_t)wr_id);
	w.wr.wr.ud.ah = ah;
	w.wr.wr.ud.remote_qpn = 0xffffff;
	w.wr.wr.ud.remote_qkey = e->o.qkey;
	CHECK_0(post(e, &w));
	EXPECT_OK(e->scq, wr_id);
}

static void hears(struct end *e, uint64_t wr_id, const struct end *from, uint64_t said,
		  uint32_t len)
{
	struct ibv_wc wc = EXPECT_OK(e->rcq, wr_id);

	CHECK_EQ(wc.byte_len, GRH + len);
	CHECK_EQ(wc.src_qp, from->qp->qp_num);
	CHECK_EQ(ntohl(wc.imm_data), said);
	CHECK_0(memcmp(e->buf + 65536 + GRH, from->buf, len));
}

static void listen_to(struct end *e, uint64_t wr_id)
{
	end_recv(e, wr_id, 65536, 65536);
}

/* Three members, two groups, and who is not attached hears nothing. */
static void members(const union ibv_gid *one, const union ibv_gid *two)
{
	struct rig_opts o = ud(0);
	struct ibv_ah *to_one, *to_two;
	struct end e[4];
	struct rig r;

	rig_open(&r);
	for (int i = 0; i < 4; i++) {
		end_make(&e[i], &r, &o);
		end_up(&e[i], NULL);
		util_rand_bytes(rig_rand(), e[i].buf, 65536);
	}
	to_one = group_ah(&e[0], one);
	to_two = group_ah(&e[0], two);
	CHECK_0(rnic_attach_mcast(e[0].qp, one, 0));
	CHECK_0(rnic_attach_mcast(e[1].qp, one, 0));
	CHECK_0(rnic_attach_mcast(e[1].qp, one, 0)); /* twice is once */
	CHECK_0(rnic_attach_mcast(e[2].qp, two, 0xc002));
	for (int i = 0; i < 4; i++)
		for (uint64_t k = 0; k < 4; k++)
			listen_to(&e[i], k);
	/* the sender, being a member, hears itself; e[3] is not one and may speak */
	speak(&e[0], to_one, 10, 1000);
	hears(&e[0], 0, &e[0], 10, 1000);
	hears(&e[1], 0, &e[0], 10, 1000);
	speak(&e[3], to_one, 11, 0);
	hears(&e[0], 1, &e[3], 11, 0);
	hears(&e[1], 1, &e[3], 11, 0);
	speak(&e[0], to_two, 12, 60000);
	hears(&e[2], 0, &e[0], 12, 60000);
	expect_none(e[0].rcq, 5);
	expect_none(e[1].rcq, 5);
	expect_none(e[3].rcq, 5);
	/* who leaves hears no more; who was never there can not leave */
	CHECK_0(rnic_detach_mcast(e[1].qp, one, 0));
	CHECK_EQ(rnic_detach_mcast(e[1].qp, one, 0), EINVAL);
	CHECK_EQ(rnic_detach_mcast(e[3].qp, one, 0), EINVAL);
	speak(&e[0], to_one, 13, 77);
	hears(&e[0], 2, &e[0], 13, 77);
	expect_none(e[1].rcq, 10);
	/* a member can not be destroyed */
	CHECK_EQ(rnic_destroy_qp(e[0].qp), EBUSY);
	CHECK_0(rnic_detach_mcast(e[0].qp, one, 0));
	CHECK_0(rnic_detach_mcast(e[2].qp, two, 0xc002));
	CHECK_0(rnic_destroy_ah(to_one));
	CHECK_0(rnic_destroy_ah(to_two));
	for (int i = 0; i < 4; i++)
		end_destroy(&e[i]);
	rig_close(&r);
}

static void test_mapped(void **state)
{
	union ibv_gid one = mapped("239.1.2.3"), two = mapped("239.1.2.4");

	(void)state;
	members(&one, &two);
}

static void test_native(void **state)
{
	union ibv_gid one = native(1), two = native(2);

	(void)state;
	members(&one, &two);
}

static void test_block_self(void **state)
{
	struct rig_opts o = ud(IBV_QP_CREATE_BLOCK_SELF_MCAST_LB), open = ud(0);
	union ibv_gid gid = mapped("239.1.2.5");
	struct ibv_ah *ah;
	struct end a, b;
	struct rig r;

	(void)state;
	rig_open(&r);
	end_make(&a, &r, &o);
	end_make(&b, &r, &open);
	end_up(&a, NULL);
	end_up(&b, NULL);
	ah = group_ah(&a, &gid);
	CHECK_0(rnic_attach_mcast(a.qp, &gid, 0));
	CHECK_0(rnic_attach_mcast(b.qp, &gid, 0));
	for (uint64_t i = 0; i < 2; i++) {
		listen_to(&a, i);
		listen_to(&b, i);
	}
	speak(&a, ah, 1, 100);
	hears(&b, 0, &a, 1, 100);
	expect_none(a.rcq, 20);
	speak(&b, ah, 2, 100); /* others are heard */
	hears(&a, 0, &b, 2, 100);
	hears(&b, 1, &b, 2, 100);
	CHECK_0(rnic_detach_mcast(a.qp, &gid, 0));
	CHECK_0(rnic_detach_mcast(b.qp, &gid, 0));
	CHECK_0(rnic_destroy_ah(ah));
	end_destroy(&a);
	end_destroy(&b);
	rig_close(&r);
}

/* A Q_Key, no receive, a queue pair that is not ready: as for any datagram. */
static void test_not_heard(void **state)
{
	struct rig_opts o = ud(0);
	union ibv_gid gid = mapped("239.1.2.6");
	struct ibv_ah *ah;
	struct end a, b;
	struct rig r;

	(void)state;
	rig_open(&r);
	end_make(&a, &r, &o);
	end_make(&b, &r, &o);
	end_up(&a, NULL);
	ah = group_ah(&a, &gid);
	CHECK_0(rnic_attach_mcast(b.qp, &gid, 0)); /* in RESET */
	speak(&a, ah, 1, 10);
	end_init(&b);
	listen_to(&b, 1);
	speak(&a, ah, 2, 10);
	rig_sleep_ms(20);
	end_rtr(&b, NULL);
	expect_none(b.rcq, 20);
	CHECK_0(rnic_modify_qp(b.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .qkey = 7},
			       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_QKEY));
	speak(&a, ah, 3, 10);
	expect_none(b.rcq, 20);
	a.o.qkey = 7;
	speak(&a, ah, 4, 10);
	hears(&b, 1, &a, 4, 10);
	CHECK_0(end_state(&b, IBV_QPS_ERR));
	speak(&a, ah, 5, 10);
	rig_sleep_ms(20);
	CHECK_0(rnic_detach_mcast(b.qp, &gid, 0)); /* in any state */
	CHECK_0(rnic_destroy_ah(ah));
	end_destroy(&a);
	end_destroy(&b);
	rig_close(&r);
}

static void test_refused(void **state)
{
	struct rig_opts o = rig_defaults(), u = ud(0);
	union ibv_gid group = mapped("239.1.2.3"), unicast = mapped("127.0.0.1"), other = {0};
	struct end rc, e;
	struct rig r;

	(void)state;
	rig_open(&r);
	end_make(&rc, &r, &o);
	end_make(&e, &r, &u);
	CHECK_EQ(rnic_attach_mcast(rc.qp, &group, 0), EINVAL);
	CHECK_EQ(rnic_attach_mcast(e.qp, &unicast, 0), EINVAL);
	CHECK_EQ(rnic_attach_mcast(e.qp, &other, 0), EINVAL);
	CHECK_EQ(rnic_detach_mcast(e.qp, &unicast, 0), EINVAL);
	CHECK_EQ(rnic_detach_mcast(rc.qp, &group, 0), EINVAL);
	end_destroy(&rc);
	end_destroy(&e);
	rig_close(&r);
}

/* ---- two processes ---- */

static void member(int sock, void *arg)
{
	const union ibv_gid *gid = arg;
	struct rig_opts o = ud(0);
	struct end e[2];
	struct rig r;

	rig_open(&r);
	for (int i = 0; i < 2; i++) {
		end_make(&e[i], &r, &o);
		end_up(&e[i], NULL);
		CHECK_0(rnic_attach_mcast(e[i].qp, gid, 0));
		for (uint64_t k = 0; k < 10; k++)
			listen_to(&e[i], k);
	}
	rig_say(sock, 'R');
	for (int i = 0; i < 2; i++)
		expect_run(e[i].rcq, 0, 10, IBV_WC_SUCCESS);
	rig_say(sock, 'E');
	for (int i = 0; i < 2; i++) {
		CHECK_0(rnic_detach_mcast(e[i].qp, gid, 0));
		end_destroy(&e[i]);
	}
	rig_close(&r);
}

static void test_processes(void **state)
{
	struct rig_opts o = ud(0);
	union ibv_gid gid[2] = {mapped("239.1.2.7"), native(9)};

	(void)state;
	for (int g = 0; g < 2; g++) {
		struct rig_proc proc[2];
		struct ibv_ah *ah;
		struct rig r;
		struct end e;

		for (int i = 0; i < 2; i++)
			rig_spawn(&proc[i], member, &gid[g]);
		rig_open(&r);
		end_make(&e, &r, &o);
		end_up(&e, NULL);
		ah = group_ah(&e, &gid[g]);
		for (int i = 0; i < 2; i++)
			rig_hear(proc[i].sock, 'R');
		for (uint64_t k = 0; k < 10; k++)
			speak(&e, ah, k, (uint32_t)k * 100);
		for (int i = 0; i < 2; i++) {
			rig_hear(proc[i].sock, 'E');
			rig_join(&proc[i]);
		}
		CHECK_0(rnic_destroy_ah(ah));
		end_destroy(&e);
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_mapped),    RIG_TEST(test_native),  RIG_TEST(test_block_self),
		RIG_TEST(test_not_heard), RIG_TEST(test_refused), RIG_TEST(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
