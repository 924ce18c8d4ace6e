/* UD: datagrams with a GRH, and what becomes of those that do not fit. */
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <sys/socket.h>
#include "rig.h"
#include "rnic_qp.h"

#define GRH     40
#define LARGEST 65483

static struct rig_opts ud(void)
{
	struct rig_opts o = rig_defaults();

	o.type = IBV_QPT_UD;
	o.buf_len = 256 * 1024;
	return o;
}

static struct ibv_ah *ah_to(struct end *e, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {.grh = {.dgid = *gid}, .is_global = 1, .port_num = 1};
	struct ibv_ah *ah = rnic_create_ah(e->rig->pd, &attr);

	CHECK(ah);
	return ah;
}

static void to_peer(struct work *w, struct end *from, struct end *to, struct ibv_ah *ah,
		    uint64_t wr_id, uint32_t len)
{
	work_init(w, from, IBV_WR_SEND, wr_id, 0, len, 0);
	w->wr.wr.ud.ah = ah;
	w->wr.wr.ud.remote_qpn = to->qp->qp_num;
	w->wr.wr.ud.remote_qkey = to->o.qkey;
}

static void ud_pair(struct pair *p, struct ibv_ah **ah, const struct rig_opts *o)
{
	struct rig_addr b;

	pair_open(p, o);
	b = end_addr(&p->b);
	*ah = ah_to(&p->a, &b.gid);
}

static void ud_close(struct pair *p, struct ibv_ah *ah)
{
	CHECK_0(rnic_destroy_ah(ah));
	pair_close(p);
}

static void test_send(void **state)
{
	static const uint32_t sizes[] = {0, 1, 40, 1400, 9000, 32768, 65000, LARGEST};
	struct rig_opts o = ud();
	struct ibv_ah *ah;
	struct iphdr ip;
	struct ibv_wc wc;
	struct pair p;
	struct work w;

	(void)state;
	ud_pair(&p, &ah, &o);
	util_rand_bytes(rig_rand(), p.a.buf, LARGEST);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(p.b.buf, 0xee, 128 * 1024);
		end_recv(&p.b, i, 0, GRH + LARGEST);
		to_peer(&w, &p.a, &p.b, ah, i, sizes[i]);
		if (i % 2) {
			w.wr.opcode = IBV_WR_SEND_WITH_IMM;
			w.wr.imm_data = htonl(0xdeadbeef);
		}
		CHECK_0(post(&p.a, &w));
		CHECK_EQ(EXPECT_OK(p.a.scq, i).opcode, IBV_WC_SEND);
		wc = EXPECT_OK(p.b.rcq, i);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.byte_len, GRH + sizes[i]);
		CHECK_EQ(wc.src_qp, p.a.qp->qp_num);
		CHECK_EQ(wc.wc_flags, IBV_WC_GRH | (i % 2 ? IBV_WC_WITH_IMM : 0));
		if (i % 2)
			CHECK_EQ(ntohl(wc.imm_data), 0xdeadbeef);
		CHECK_0(memcmp(p.b.buf + GRH, p.a.buf, sizes[i]));
		CHECK_EQ(p.b.buf[GRH + sizes[i]], 0xee);
		/* as RoCE v2 has it: an IPv4 header in the second half */
		memcpy(&ip, p.b.buf + 20, sizeof(ip));
		CHECK(ip.version == 4 && ip.ihl == 5 && ip.protocol == IPPROTO_UDP);
		CHECK(ip.saddr == htonl(INADDR_LOOPBACK) && ip.daddr == htonl(INADDR_LOOPBACK));
	}
	/* one byte more */
	to_peer(&w, &p.a, &p.b, ah, 50, LARGEST + 1);
	CHECK_0(post(&p.a, &w));
	EXPECT(p.a.scq, 50, IBV_WC_LOC_LEN_ERR);
	CHECK_EQ(end_query(&p.a), IBV_QPS_SQE);
	ud_close(&p, ah);
}

static void test_inline_and_lists(void **state)
{
	struct rig_opts o = ud();
	struct ibv_sge list[3], rlist[3];
	struct ibv_recv_wr rwr = {.wr_id = 2, .sg_list = rlist, .num_sge = 3}, *bad;
	uint8_t local[64];
	struct ibv_ah *ah;
	struct pair p;
	struct work w;

	(void)state;
	ud_pair(&p, &ah, &o);
	util_rand_bytes(rig_rand(), local, sizeof(local));
	end_recv(&p.b, 1, 0, 1000);
	to_peer(&w, &p.a, &p.b, ah, 1, 64);
	w.sge.addr = (uintptr_t)local;
	w.wr.send_flags |= IBV_SEND_INLINE;
	CHECK_0(post(&p.a, &w));
	CHECK_EQ(EXPECT_OK(p.b.rcq, 1).byte_len, GRH + 64);
	EXPECT_OK(p.a.scq, 1);
	CHECK_0(memcmp(p.b.buf + GRH, local, 64));
	/* a GRH across elements */
	util_rand_bytes(rig_rand(), p.a.buf, 3000);
	list[0] = end_sge(&p.a, 0, 100);
	list[1] = end_sge(&p.a, 1000, 0);
	list[2] = end_sge(&p.a, 2000, 200);
	rlist[0] = end_sge(&p.b, 0, 13);
	rlist[1] = end_sge(&p.b, 100, 30);
	rlist[2] = end_sge(&p.b, 200, 1000);
	CHECK_0(ibv_post_recv(p.b.qp, &rwr, &bad));
	to_peer(&w, &p.a, &p.b, ah, 2, 0);
	w.wr.sg_list = list;
	w.wr.num_sge = 3;
	CHECK_0(post(&p.a, &w));
	CHECK_EQ(EXPECT_OK(p.b.rcq, 2).byte_len, GRH + 300);
	EXPECT_OK(p.a.scq, 2);
	CHECK_0(memcmp(p.b.buf + 127, p.a.buf, 3)); /* 43 bytes of room, 40 of header */
	CHECK_0(memcmp(p.b.buf + 200, p.a.buf + 3, 97));
	CHECK_0(memcmp(p.b.buf + 297, p.a.buf + 2000, 200));
	ud_close(&p, ah);
}

static void test_qkey(void **state)
{
	struct rig_opts o = ud();
	struct ibv_ah *ah;
	struct pair p;
	struct work w;

	(void)state;
	o.qkey = 0x11111111;
	ud_pair(&p, &ah, &o);
	end_recv(&p.b, 1, 0, 1000);
	to_peer(&w, &p.a, &p.b, ah, 1, 64);
	w.wr.wr.ud.remote_qkey = 0x22222222;
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 1); /* the sender does not learn of it */
	expect_none(p.b.rcq, 20);
	CHECK_EQ(rig_stats(&p.rig).bad_qkey, 1);
	/* with the top bit: the queue pair's own, whatever the rest says */
	to_peer(&w, &p.a, &p.b, ah, 2, 64);
	w.wr.wr.ud.remote_qkey = 0x80000000;
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 2);
	EXPECT_OK(p.b.rcq, 1);
	/* a new one takes effect at once */
	CHECK_0(rnic_modify_qp(p.b.qp, &(struct ibv_qp_attr){.qkey = 0x33333333}, IBV_QP_QKEY));
	end_recv(&p.b, 3, 0, 1000);
	to_peer(&w, &p.a, &p.b, ah, 3, 64);
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 3);
	expect_none(p.b.rcq, 20);
	w.wr.wr.ud.remote_qkey = 0x33333333;
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 3);
	EXPECT_OK(p.b.rcq, 3);
	ud_close(&p, ah);
}

/* No receive: lost. Too small a receive: an error for that receive only. */
static void test_dropped(void **state)
{
	struct rig_opts o = ud();
	struct ibv_ah *ah;
	struct pair p;
	struct work w;

	(void)state;
	ud_pair(&p, &ah, &o);
	for (uint64_t i = 0; i < 5; i++) {
		to_peer(&w, &p.a, &p.b, ah, i, 64);
		CHECK_0(post(&p.a, &w));
	}
	expect_run(p.a.scq, 0, 5, IBV_WC_SUCCESS);
	expect_none(p.b.rcq, 20);
	CHECK_EQ(rig_stats(&p.rig).ud_dropped, 5);
	memset(p.b.buf, 0xee, 4096);
	end_recv(&p.b, 10, 0, GRH + 63);
	end_recv(&p.b, 11, 1000, GRH + 64);
	for (uint64_t i = 0; i < 2; i++) {
		to_peer(&w, &p.a, &p.b, ah, i, 64);
		CHECK_0(post(&p.a, &w));
	}
	expect_run(p.a.scq, 0, 2, IBV_WC_SUCCESS);
	EXPECT(p.b.rcq, 10, IBV_WC_LOC_LEN_ERR);
	CHECK_EQ(EXPECT_OK(p.b.rcq, 11).byte_len, GRH + 64);
	CHECK_EQ(p.b.buf[GRH + 63], 0xee);
	ud_close(&p, ah);
}

static void test_bad_memory(void **state)
{
	struct rig_opts o = ud();
	struct ibv_recv_wr rwr = {.wr_id = 1, .num_sge = 1}, *bad;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct pair p;
	struct work w;

	(void)state;
	ud_pair(&p, &ah, &o);
	sge = end_sge(&p.b, 0, 1000);
	sge.lkey++;
	rwr.sg_list = &sge;
	CHECK_0(ibv_post_recv(p.b.qp, &rwr, &bad));
	to_peer(&w, &p.a, &p.b, ah, 1, 64);
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 1);
	EXPECT(p.b.rcq, 1, IBV_WC_LOC_PROT_ERR);
	/* on the sending side: that request, and what is behind it; then again */
	to_peer(&w, &p.a, &p.b, ah, 2, 64);
	w.sge.lkey++;
	CHECK_0(post(&p.a, &w));
	to_peer(&w, &p.a, &p.b, ah, 3, 64);
	CHECK_0(post(&p.a, &w));
	EXPECT(p.a.scq, 2, IBV_WC_LOC_PROT_ERR);
	EXPECT(p.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(end_query(&p.a), IBV_QPS_SQE);
	CHECK_0(end_state(&p.a, IBV_QPS_RTS));
	end_recv(&p.b, 4, 0, 1000);
	w.wr.wr_id = 4;
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 4);
	EXPECT_OK(p.b.rcq, 4);
	ud_close(&p, ah);
}

static void test_bad_posts(void **state)
{
	struct rig_opts o = ud();
	struct ibv_ah *ah;
	struct pair p;
	struct work w;

	(void)state;
	ud_pair(&p, &ah, &o);
	to_peer(&w, &p.a, &p.b, ah, 1, 64);
	w.wr.wr.ud.ah = NULL;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	to_peer(&w, &p.a, &p.b, ah, 1, 64);
	w.wr.wr.ud.remote_qpn = 1 << 24;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	to_peer(&w, &p.a, &p.b, ah, 1, 64);
	w.wr.opcode = IBV_WR_RDMA_WRITE;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	w.wr.opcode = IBV_WR_RDMA_READ;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	/* nobody has this number: lost like any other */
	to_peer(&w, &p.a, &p.b, ah, 2, 64);
	w.wr.wr.ud.remote_qpn = 0x0001ff;
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 2);
	ud_close(&p, ah);
}

/* ---- address handles ---- */

static void test_reply(void **state)
{
	struct rig_opts o = ud();
	struct ibv_ah_attr attr;
	struct ibv_ah *ah, *back;
	struct ibv_wc wc;
	struct pair p;
	struct work w;

	(void)state;
	ud_pair(&p, &ah, &o);
	end_recv(&p.b, 1, 0, 1000);
	end_recv(&p.a, 2, 0, 1000);
	to_peer(&w, &p.a, &p.b, ah, 1, 64);
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 1);
	wc = EXPECT_OK(p.b.rcq, 1);
	CHECK_0(rnic_init_ah_from_wc(p.rig.ctx, 1, &wc, (struct ibv_grh *)p.b.buf, &attr));
	CHECK_EQ(rnic_init_ah_from_wc(p.rig.ctx, 2, &wc, (struct ibv_grh *)p.b.buf, &attr), EINVAL);
	back = rnic_create_ah(p.rig.pd, &attr);
	CHECK(back);
	to_peer(&w, &p.b, &p.a, back, 2, 64);
	w.wr.wr.ud.remote_qpn = wc.src_qp;
	CHECK_0(post(&p.b, &w));
	EXPECT_OK(p.b.scq, 2);
	EXPECT_OK(p.a.rcq, 2);
	CHECK_0(rnic_destroy_ah(back));
	/* by LID alone, from the completion alone */
	wc.wc_flags = 0;
	CHECK_0(rnic_init_ah_from_wc(p.rig.ctx, 1, &wc, NULL, &attr));
	CHECK(!attr.is_global && attr.dlid == wc.slid);
	back = rnic_create_ah(p.rig.pd, &attr);
	CHECK(back);
	end_recv(&p.a, 3, 0, 1000);
	to_peer(&w, &p.b, &p.a, back, 3, 64);
	CHECK_0(post(&p.b, &w));
	EXPECT_OK(p.b.scq, 3);
	EXPECT_OK(p.a.rcq, 3);
	CHECK_0(rnic_destroy_ah(back));
	ud_close(&p, ah);
}

static void test_bad_handles(void **state)
{
	struct ibv_ah_attr good = {.is_global = 1, .port_num = 1}, attr;
	struct ibv_port_attr port;
	struct ibv_gid_entry gid;
	struct rig r;

	(void)state;
	rig_open(&r);
	CHECK_0(rnic_query_gid_entry(r.ctx, 1, 0, &gid));
	CHECK_0(rnic_query_port(r.ctx, 1, &port));
	CHECK_EQ(port.lid, 1); /* of 127.0.0.1 */
	good.grh.dgid = gid.gid;
	attr = good;
	attr.port_num = 2;
	CHECK(!rnic_create_ah(r.pd, &attr) && errno == EINVAL);
	attr = good;
	attr.grh.sgid_index = 1;
	CHECK(!rnic_create_ah(r.pd, &attr) && errno == EINVAL);
	attr = good;
	attr.grh.dgid.raw[0] = 0xfe; /* no IPv4 address, no group */
	CHECK(!rnic_create_ah(r.pd, &attr) && errno == EINVAL);
	rig_close(&r);
}

static void test_srq(void **state)
{
	struct rig_opts o = ud();
	struct ibv_srq_init_attr sattr = {.attr = {.max_wr = 16, .max_sge = 2}};
	struct ibv_srq_attr limit = {.srq_limit = 2};
	struct end from, to[2];
	struct ibv_ah *ah;
	struct rig_addr addr;
	struct work w;
	struct rig r;

	(void)state;
	rig_open(&r);
	end_make(&from, &r, &o);
	end_up(&from, NULL);
	o.srq = rnic_create_srq(r.pd, &sattr);
	CHECK(o.srq);
	for (int i = 0; i < 2; i++) {
		end_make(&to[i], &r, &o);
		end_up(&to[i], NULL);
	}
	addr = end_addr(&from);
	ah = ah_to(&from, &addr.gid);
	for (uint64_t i = 0; i < 3; i++)
		CHECK_0(try_srq_recv(o.srq, &to[0], i, i * 1024, 1024));
	CHECK_0(rnic_modify_srq(o.srq, &limit, IBV_SRQ_LIMIT));
	for (uint64_t i = 0; i < 2; i++) {
		to_peer(&w, &from, &to[i], ah, i, 64);
		CHECK_0(post(&from, &w));
		EXPECT_OK(from.scq, i);
		EXPECT_OK(to[i].rcq, i);
	}
	expect_event(&r, IBV_EVENT_SRQ_LIMIT_REACHED, o.srq);
	CHECK_0(end_state(&to[0], IBV_QPS_ERR));
	expect_event(&r, IBV_EVENT_QP_LAST_WQE_REACHED, to[0].qp);
	CHECK_0(rnic_destroy_ah(ah));
	end_destroy(&from);
	end_destroy(&to[0]);
	end_destroy(&to[1]);
	CHECK_0(rnic_destroy_srq(o.srq));
	rig_close(&r);
}

/* ---- ibv_wr_* ---- */

static void test_wr(void **state)
{
	struct rig_opts o = ud();
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	o.ex = true;
	ud_pair(&p, &ah, &o);
	end_recv(&p.b, 1, 0, 1000);
	end_recv(&p.b, 2, 0, 1000);
	ibv_wr_start(p.a.ex);
	p.a.ex->wr_id = 1;
	p.a.ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(p.a.ex);
	ibv_wr_set_ud_addr(p.a.ex, ah, p.b.qp->qp_num, o.qkey);
	ibv_wr_set_sge(p.a.ex, p.a.mr->lkey, (uintptr_t)p.a.buf, 64);
	p.a.ex->wr_id = 2;
	ibv_wr_send_imm(p.a.ex, htonl(5));
	ibv_wr_set_ud_addr(p.a.ex, ah, p.b.qp->qp_num, o.qkey);
	ibv_wr_set_inline_data(p.a.ex, p.a.buf, 10);
	CHECK_0(ibv_wr_complete(p.a.ex));
	expect_run(p.a.scq, 1, 2, IBV_WC_SUCCESS);
	CHECK_EQ(EXPECT_OK(p.b.rcq, 1).byte_len, GRH + 64);
	wc = EXPECT_OK(p.b.rcq, 2);
	CHECK(wc.byte_len == GRH + 10 && ntohl(wc.imm_data) == 5);
	/* without an address, with a bad one, and what UD has not */
	ibv_wr_start(p.a.ex);
	ibv_wr_send(p.a.ex);
	CHECK_EQ(ibv_wr_complete(p.a.ex), EINVAL);
	ibv_wr_start(p.a.ex);
	ibv_wr_send(p.a.ex);
	ibv_wr_set_ud_addr(p.a.ex, ah, 1 << 24, o.qkey);
	CHECK_EQ(ibv_wr_complete(p.a.ex), EINVAL);
	ibv_wr_start(p.a.ex);
	p.a.ex->wr_rdma_write(p.a.ex, 1, 2);
	CHECK_EQ(ibv_wr_complete(p.a.ex), EINVAL);
	ud_close(&p, ah);
}

/* ---- between processes, and from strangers ---- */

static void echo(int sock, void *arg)
{
	struct rig_opts o = ud();
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;
	struct ibv_wc wc;
	struct work w;
	struct rig r;
	struct end e;

	(void)arg;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_meet(&e, sock);
	for (uint64_t i = 0; i < 20; i++) {
		end_recv(&e, i, 0, GRH + LARGEST);
		rig_say(sock, 'R');
		wc = EXPECT_OK(e.rcq, i);
		CHECK_0(rnic_init_ah_from_wc(r.ctx, 1, &wc, (struct ibv_grh *)e.buf, &attr));
		ah = rnic_create_ah(r.pd, &attr);
		CHECK(ah);
		work_init(&w, &e, IBV_WR_SEND, i, GRH, wc.byte_len - GRH, 0);
		w.wr.wr.ud.ah = ah;
		w.wr.wr.ud.remote_qpn = wc.src_qp;
		w.wr.wr.ud.remote_qkey = o.qkey;
		CHECK_0(post(&e, &w));
		EXPECT_OK(e.scq, i);
		CHECK_0(rnic_destroy_ah(ah));
	}
	end_destroy(&e);
	rig_close(&r);
}

static void test_processes(void **state)
{
	struct rig_opts o = ud();
	struct rig_proc proc;
	struct ibv_ah *ah;
	struct work w;
	struct rig r;
	struct end e;

	(void)state;
	rig_spawn(&proc, echo, NULL);
	rig_open(&r);
	end_make(&e, &r, &o);
	end_meet(&e, proc.sock);
	ah = ah_to(&e, &e.peer.gid);
	util_rand_bytes(rig_rand(), e.buf, LARGEST);
	for (uint64_t i = 0; i < 20; i++) {
		uint32_t len = (uint32_t)util_rand_below(rig_rand(), LARGEST + 1);

		rig_hear(proc.sock, 'R');
		end_recv(&e, i, 128 * 1024, GRH + LARGEST);
		work_init(&w, &e, IBV_WR_SEND, i, 0, len, 0);
		w.wr.wr.ud.ah = ah;
		w.wr.wr.ud.remote_qpn = e.peer.qpn;
		w.wr.wr.ud.remote_qkey = o.qkey;
		CHECK_0(post(&e, &w));
		EXPECT_OK(e.scq, i);
		CHECK_EQ(EXPECT_OK(e.rcq, i).byte_len, GRH + len);
		CHECK_0(memcmp(e.buf + 128 * 1024 + GRH, e.buf, len));
	}
	CHECK_0(rnic_destroy_ah(ah));
	end_destroy(&e);
	rig_close(&r);
	rig_join(&proc);
}

/* Whatever comes to the port: counted, and neither delivered nor answered. */
static void test_garbage(void **state)
{
	struct rig_opts o = ud();
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct util_rand *rnd = rig_rand();
	struct wire_seg good = {.opcode = WIRE_OP_SEND, .last = true, .ulp = o.qkey};
	struct rnic_stats stats;
	uint8_t buf[2000], valid[WIRE_DGRAM_HDR + 64];
	struct rig r;
	struct end e;
	int fd;

	(void)state;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_up(&e, NULL);
	end_recv(&e, 1, 0, 4096);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0);
	to.sin_port = htons((uint16_t)(e.qp->qp_num >> 8));
	CHECK_0(connect(fd, (struct sockaddr *)&to, sizeof(to)));
	memset(valid, 0x77, sizeof(valid));
	wire_dgram_encode(&good, valid);
	wire_dgram_seal(valid, sizeof(valid));
	for (int i = 0; i < 3000; i++) {
		size_t len = util_rand_below(rnd, sizeof(buf));

		util_rand_bytes(rnd, buf, len);
		if (i % 3 == 1) { /* a good one, hurt */
			len = util_rand_below(rnd, sizeof(valid));
			memcpy(buf, valid, len);
		} else if (i % 3 == 2) {
			len = sizeof(valid);
			memcpy(buf, valid, len);
			buf[util_rand_below(rnd, len)] ^= (uint8_t)(1 + util_rand_below(rnd, 255));
		}
		if (i % 6 == 5) /* hurt, but with a checksum: only the opcode gives it away */
			buf[WIRE_DGRAM_PREFIX + 1] = (uint8_t)(0x40 | 7), wire_dgram_seal(buf, len);
		if (send(fd, buf, len, 0) < 0)
			CHECK(errno == ECONNREFUSED || errno == ENOBUFS);
		if (i % 100 == 99)
			expect_none(e.rcq, 1);
	}
	expect_none(e.rcq, 20);
	stats = rig_stats(&r);
	CHECK(stats.foreign_dgrams + stats.bad_crc > 2500); /* a burst may overrun the socket */
	CHECK(stats.bad_crc > 500);
	/* and the good one still comes through */
	CHECK(send(fd, valid, sizeof(valid), 0) == (ssize_t)sizeof(valid));
	CHECK_EQ(EXPECT_OK(e.rcq, 1).byte_len, GRH + 64);
	close(fd);
	end_destroy(&e);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_send),    RIG_TEST(test_inline_and_lists), RIG_TEST(test_qkey),
		RIG_TEST(test_dropped), RIG_TEST(test_bad_memory),       RIG_TEST(test_bad_posts),
		RIG_TEST(test_reply),   RIG_TEST(test_bad_handles),      RIG_TEST(test_srq),
		RIG_TEST(test_wr),      RIG_TEST(test_processes),        RIG_TEST(test_garbage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
