/* RD queue pairs: posting, queues, keys, events. */
#include <poll.h>
#include "rig_rd.h"
#include "rnic_rd.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 0);
}

/* ---- whom it goes to ---- */

static void test_qkey(void **state)
{
	struct rig_opts o = rd_defaults(), other = o;
	struct rd_pair p;
	struct way w;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	w = p.ab;
	w.qkey ^= 1;
	end_recv(&p.b, 1, 0, 100);
	/* As the first request to a peer, and when the pair exists. */
	for (int i = 0; i < 2; i++) {
		rd_post(&w, IBV_WR_SEND, 2, 0, 10, 0);
		EXPECT(p.a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
		expect_none(p.b.rcq, 10);
		rd_post(&p.ab, IBV_WR_SEND, 3, 0, 10, 0);
		EXPECT_OK(p.b.rcq, 1);
		EXPECT_OK(p.a.scq, 3);
		end_recv(&p.b, 1, 0, 100);
	}
	/* The top bit asks for the queue pair's own. */
	w.qkey = 0x80000001;
	rd_post(&w, IBV_WR_SEND, 4, 0, 10, 0);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 4);
	rd_pair_close(&p);
	/* Another key may be right, too: it is asked for, not decided by what was right before. */
	rd_pair_open(&p, NULL, NULL);
	end_recv(&p.b, 1, 0, 100);
	rd_post(&p.ab, IBV_WR_SEND, 2, 0, 10, 0);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 2);
	w = p.ab;
	w.qkey ^= 1;
	CHECK_0(rnic_modify_qp(p.b.qp, &(struct ibv_qp_attr){.qkey = w.qkey}, IBV_QP_QKEY));
	end_recv(&p.b, 1, 0, 100);
	rd_post(&w, IBV_WR_SEND, 3, 0, 10, 0);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 3);
	rd_pair_close(&p);
	other.qkey = 0x4321;
	rd_pair_open(&p, &o, &other);
	rd_post(&p.ab, IBV_WR_SEND, 5, 0, 10, 0);
	EXPECT(p.a.scq, 5, IBV_WC_REM_INV_REQ_ERR);
	rd_pair_close(&p);
}

static void ud_send(struct work *w, struct way *way, uint64_t id)
{
	work_init(w, way->from, IBV_WR_SEND, id, 0, 10, 0);
	w->wr.wr.ud.ah = way->ah;
	w->wr.wr.ud.remote_qpn = way->to.qpn;
	w->wr.wr.ud.remote_qkey = way->qkey;
}

static void test_multicast(void **state)
{
	struct rd_pair p;
	struct way w;
	struct work wk;
	struct rig_addr to;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	to = end_addr(&p.b);
	memset(&to.gid, 0, sizeof(to.gid));
	to.gid.raw[0] = 0xff;
	to.gid.raw[1] = 0x0e;
	to.gid.raw[15] = 1;
	way_make(&w, &p.a, &to, 0);
	CHECK_EQ(rd_try(&w, IBV_WR_SEND, 1, 0, 10, 0), EINVAL);
	ud_send(&wk, &w, 2);
	CHECK_EQ(post(&p.a, &wk), EINVAL);
	ud_send(&wk, &p.ab, 3);
	wk.wr.wr.ud.remote_qpn = 0;
	CHECK_EQ(post(&p.a, &wk), EINVAL);
	wk.wr.wr.ud.ah = NULL;
	CHECK_EQ(post(&p.a, &wk), EINVAL);
	way_free(&w);
	rd_pair_close(&p);
}

/* ibv_post_send has no room for a peer and a key. */
static void test_old_call(void **state)
{
	struct rd_pair p;
	struct work w;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (int op = IBV_WR_RDMA_WRITE; op <= IBV_WR_ATOMIC_FETCH_AND_ADD; op++) {
		if (op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM)
			continue;
		ud_send(&w, &p.ab, 1);
		w.wr.opcode = (enum ibv_wr_opcode)op;
		CHECK_EQ(post(&p.a, &w), EOPNOTSUPP);
	}
	for (uint64_t i = 0; i < 20; i++) {
		end_recv(&p.b, i, 0, 100);
		ud_send(&w, &p.ab, i);
		if (i % 2) {
			w.wr.opcode = IBV_WR_SEND_WITH_IMM;
			w.wr.imm_data = (uint32_t)i;
		}
		CHECK_0(post(&p.a, &w));
		CHECK_EQ(EXPECT_OK(p.b.rcq, i).byte_len, 10);
		EXPECT_OK(p.a.scq, i);
	}
	rd_pair_close(&p);
}

/* ---- what it is made of ---- */

static void test_inline_and_lists(void **state)
{
	struct rd_pair p;
	struct ibv_sge sge[4];
	struct ibv_data_buf bufs[3];
	uint8_t small[30];

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (size_t i = 0; i < 8192; i++)
		p.a.buf[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t i = 0; i < 4; i++)
		sge[i] = end_sge(&p.a, i * 2000, i == 2 ? 0 : 700 + 100 * (uint32_t)i);
	memset(small, 0x5e, sizeof(small));
	for (size_t i = 0; i < 3; i++)
		bufs[i] = (struct ibv_data_buf){small + 10 * i, 10};
	/* Of several pieces, into several. */
	for (int i = 0; i < 10; i++) {
		struct ibv_sge in[3] = {end_sge(&p.b, 0, 100), end_sge(&p.b, 4096, 1),
					end_sge(&p.b, 8192, 4000)};
		struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = in, .num_sge = 3}, *bad;
		struct ibv_wc wc;

		CHECK_0(ibv_post_recv(p.b.qp, &wr, &bad));
		ibv_wr_start(p.a.ex);
		p.a.ex->wr_id = 2;
		p.a.ex->wr_flags = IBV_SEND_SIGNALED | (i % 2 ? IBV_SEND_INLINE : 0);
		ibv_wr_send(p.a.ex);
		ibv_wr_set_ud_addr(p.a.ex, p.ab.ah, p.ab.to.qpn, p.ab.qkey);
		if (i % 2)
			ibv_wr_set_inline_data_list(p.a.ex, 3, bufs);
		else
			ibv_wr_set_sge_list(p.a.ex, 4, sge);
		CHECK_0(ibv_wr_complete(p.a.ex));
		memset(small, i % 2 ? 0 : 0x5e, sizeof(small)); /* it was copied */
		wc = EXPECT_OK(p.b.rcq, 1);
		CHECK_EQ(wc.byte_len, i % 2 ? 30 : 700 + 800 + 1000);
		EXPECT_OK(p.a.scq, 2);
		if (i % 2) {
			CHECK_EQ(p.b.buf[0], 0x5e);
			CHECK_EQ(p.b.buf[29], 0x5e);
			continue;
		}
		CHECK(!memcmp(p.b.buf, p.a.buf, 100));
		CHECK_EQ(p.b.buf[4096], p.a.buf[100]);
		CHECK(!memcmp(p.b.buf + 8192, p.a.buf + 101, 599));
		CHECK(!memcmp(p.b.buf + 8192 + 599, p.a.buf + 2000, 800));
		CHECK(!memcmp(p.b.buf + 8192 + 1399, p.a.buf + 6000, 1000));
	}
	rd_pair_close(&p);
}

static void flagged(struct way *w, enum ibv_wr_opcode op, uint64_t id, unsigned int flags,
		    size_t off, uint32_t len, size_t to)
{
	struct ibv_qp_ex *ex = w->from->ex;
	struct ibv_sge sge = end_sge(w->from, off, len);

	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = flags;
	if (op == IBV_WR_SEND)
		ibv_wr_send(ex);
	else if (op == IBV_WR_RDMA_READ)
		ibv_wr_rdma_read(ex, w->to.rkey, w->to.addr + to);
	else
		ibv_wr_rdma_write(ex, w->to.rkey, w->to.addr + to);
	ibv_wr_set_ud_addr(ex, w->ah, w->to.qpn, w->qkey);
	ibv_wr_set_sge(ex, sge.lkey, sge.addr, sge.length);
	CHECK_0(ibv_wr_complete(ex));
}

/* What is read is sent by the request behind the fence. */
static void test_fence(void **state)
{
	struct rd_pair p;
	enum { LEN = 300000 };

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (int i = 1; i < 20; i++) {
		memset(p.b.buf, i, LEN);
		rd_post(&p.ab, IBV_WR_RDMA_READ, 1, 0, LEN, 0);
		flagged(&p.ab, IBV_WR_RDMA_WRITE, 2, IBV_SEND_SIGNALED | IBV_SEND_FENCE, 0, LEN,
			1 << 20);
		EXPECT_OK(p.a.scq, 1);
		EXPECT_OK(p.a.scq, 2);
		CHECK(!memcmp(p.b.buf, p.b.buf + (1 << 20), LEN));
	}
	rd_pair_close(&p);
}

static void test_unsignalled(void **state)
{
	struct rd_pair p;
	struct way bad;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 20; i++)
			flagged(&p.ab, IBV_WR_RDMA_WRITE, 1, 0, 0, 100, 0);
		flagged(&p.ab, IBV_WR_RDMA_READ, 2, IBV_SEND_SIGNALED, 0, 100, 0);
		EXPECT_OK(p.a.scq, 2);
	}
	bad = p.ab;
	bad.to.rkey ^= 0x100;
	flagged(&bad, IBV_WR_RDMA_WRITE, 3, 0, 0, 100, 0);
	EXPECT(p.a.scq, 3, IBV_WC_REM_ACCESS_ERR);
	expect_none(p.a.scq, 10);
	rd_pair_close(&p);
}

/* ---- queues ---- */

/* A peer without receives does not hold up another, but its requests use the queue. */
static void test_full(void **state)
{
	struct rig_opts o = rd_defaults();
	struct rd_pair p;
	struct end c;
	struct way ac;
	struct rig_addr to;
	unsigned int n = 0;

	(void)state;
	o.send_wr = 16;
	rd_pair_open(&p, &o, NULL);
	o = rd_defaults();
	end_make(&c, &p.rig, &o);
	end_up(&c, NULL);
	to = end_addr(&c);
	way_make(&ac, &p.a, &to, 0);
	while (n < 10)
		rd_post(&p.ab, IBV_WR_SEND, n++, 0, 10, 0);
	for (uint64_t i = 0; i < 200; i++) {
		end_recv(&c, i, 0, 5000);
		rd_post(&ac, IBV_WR_SEND, 100, 0, 5000, 0);
		EXPECT_OK(p.a.scq, 100);
		EXPECT_OK(c.rcq, i);
	}
	while (n < 100 && !rd_try(&p.ab, IBV_WR_SEND, n, 0, 10, 0))
		n++;
	CHECK_EQ(n, 16);
	CHECK_EQ(rd_try(&ac, IBV_WR_RDMA_WRITE, 100, 0, 10, 0), ENOMEM);
	expect_none(p.a.scq, 10);
	for (unsigned int i = 0; i < n; i++)
		end_recv(&p.b, i, 0, 10);
	expect_run(p.b.rcq, 0, n, IBV_WC_SUCCESS);
	expect_run(p.a.scq, 0, n, IBV_WC_SUCCESS);
	for (int i = 0; i < 100; i++) {
		rd_post(&ac, IBV_WR_RDMA_WRITE, 7, 0, 10, 0);
		EXPECT_OK(p.a.scq, 7);
	}
	way_free(&ac);
	end_destroy(&c);
	rd_pair_close(&p);
}

/* One shared receive queue under two queue pairs. */
static void test_srq(void **state)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 32, .max_sge = 2}};
	struct rig_opts o = rd_defaults();
	struct rig rig;
	struct end a, b[2];
	struct way w[2];
	struct ibv_srq *srq;

	(void)state;
	rig_open(&rig);
	end_make(&a, &rig, &o);
	end_up(&a, NULL);
	srq = rnic_create_srq(rig.pd, &attr);
	CHECK(srq);
	o.srq = srq;
	for (int i = 0; i < 2; i++) {
		struct rig_addr to;

		end_make(&b[i], &rig, &o);
		end_up(&b[i], NULL);
		to = end_addr(&b[i]);
		way_make(&w[i], &a, &to, 0);
	}
	/* Both wait, one receive after the other. */
	for (int round = 0; round < 20; round++) {
		rd_post(&w[0], IBV_WR_SEND, 0, 0, 5000, 0);
		rd_post(&w[1], IBV_WR_SEND, 1, 0, 5000, 0);
		for (int i = 0; i < 2; i++) {
			struct ibv_wc wc;

			CHECK_0(try_srq_recv(srq, &b[0], 5, 0, 5000));
			CHECK(wait_wc(a.scq, &wc, RIG_WAIT));
			CHECK_0(wc.status);
			EXPECT_OK(b[wc.wr_id].rcq, 5);
		}
	}
	for (int i = 0; i < 2; i++) {
		way_free(&w[i]);
		end_destroy(&b[i]);
	}
	CHECK_0(rnic_destroy_srq(srq));
	end_destroy(&a);
	rig_close(&rig);
}

/* A completion that finds no room is lost, and its queue pair fails; others do not. */
static void test_overrun(void **state)
{
	struct rig_opts o = rd_defaults(), small = o;
	struct rd_pair p;
	struct ibv_async_event ev;
	bool cq_err = false;

	(void)state;
	small.cqe = 4;
	o.timeout = 14; /* half a second */
	rd_pair_open(&p, &o, &small);
	for (int i = 0; i < 20; i++)
		end_recv(&p.b, 1, 0, 100);
	for (int i = 0; i < 20; i++)
		rd_post(&p.ab, IBV_WR_SEND, 2, 0, 10, 0);
	while (!cq_err && wait_event(&p.rig, &ev, 2000)) {
		cq_err |= ev.event_type == IBV_EVENT_CQ_ERR && ev.element.cq == p.b.rcq;
		rnic_ack_async_event(&ev);
	}
	CHECK(cq_err);
	for (int i = 0; i < 20; i++) {
		struct ibv_wc wc;

		CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
		/* Those that were posted after the word of its end find nobody. */
		if (wc.status && wc.status != IBV_WC_RETRY_EXC_ERR)
			CHECK_EQ(wc.status, IBV_WC_REM_ABORT_ERR);
	}
	CHECK_EQ(end_query(&p.b), IBV_QPS_ERR);
	CHECK_EQ(end_query(&p.a), IBV_QPS_RTS);
	rd_pair_close(&p);
}

static bool channel_rings(struct ibv_comp_channel *ch, unsigned int ms)
{
	struct pollfd pfd = {.fd = ch->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *ctx;

	if (poll(&pfd, 1, (int)ms) <= 0)
		return false;
	CHECK_0(rnic_get_cq_event(ch, &cq, &ctx));
	rnic_ack_cq_events(cq, 1);
	return true;
}

static void test_solicited(void **state)
{
	struct rig_opts o = rd_defaults(), with = o;
	struct rig rig;
	struct end a, b;
	struct way w;
	struct rig_addr to;
	unsigned int se = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;

	(void)state;
	rig_open(&rig);
	with.channel = rnic_create_comp_channel(rig.ctx);
	CHECK(with.channel);
	end_make(&a, &rig, &o);
	end_up(&a, NULL);
	end_make(&b, &rig, &with);
	end_up(&b, NULL);
	to = end_addr(&b);
	way_make(&w, &a, &to, 0);
	for (int i = 0; i < 5; i++) {
		for (int j = 0; j < 3; j++)
			end_recv(&b, 1, 0, 5000);
		CHECK_0(ibv_req_notify_cq(b.rcq, 1));
		flagged(&w, IBV_WR_SEND, 1, IBV_SEND_SIGNALED, 0, 5000, 0);
		EXPECT_OK(a.scq, 1);
		CHECK(!channel_rings(with.channel, 20));
		flagged(&w, IBV_WR_SEND, 2, se, 0, i % 2 ? 5000 : 10, 0);
		EXPECT_OK(a.scq, 2);
		CHECK(channel_rings(with.channel, RIG_WAIT));
		expect_run(b.rcq, 1, 1, IBV_WC_SUCCESS);
		EXPECT_OK(b.rcq, 1);
		CHECK_0(ibv_req_notify_cq(b.rcq, 0));
		flagged(&w, IBV_WR_SEND, 3, IBV_SEND_SIGNALED, 0, 10, 0);
		CHECK(channel_rings(with.channel, RIG_WAIT));
		EXPECT_OK(a.scq, 3);
		EXPECT_OK(b.rcq, 1);
	}
	way_free(&w);
	end_destroy(&a);
	end_destroy(&b);
	CHECK_0(rnic_destroy_comp_channel(with.channel));
	rig_close(&rig);
}

/* A request has its place until its completion was taken out: who posts as long as there is room
 * cannot make more completions than fit. */
static void test_place_until_polled(void **state)
{
	struct rig_opts o = rd_defaults();
	struct rd_pair p;

	(void)state;
	o.send_wr = o.cqe = 8;
	rd_pair_open(&p, &o, NULL);
	for (uint64_t round = 0; round < 20; round++) {
		int posted = 0;

		for (uint64_t i = 0; i < 4; i++) {
			while (!rd_try(&p.ab, IBV_WR_RDMA_WRITE, (uint64_t)posted, 0, 8, 0))
				posted++;
			rig_sleep_ms(1); /* they are complete by now, but nobody has looked */
		}
		CHECK_EQ(posted, 8);
		for (int i = 0; i < posted; i++) {
			struct ibv_wc wc;

			CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
			CHECK_0(wc.status);
		}
	}
	rd_pair_close(&p);
}

/* ---- how long a call takes ---- */

/* A program that computes is not held up by its own messages: the thread sends them. */
static void test_thread_sends(void **state)
{
	struct rnic_engine *e;
	struct rd_pair p;
	int left_alone = 0;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	e = rig_engine(&p.rig);
	rd_post(&p.ab, IBV_WR_RDMA_WRITE, 0, 0, 64, 0);
	EXPECT_OK(p.a.scq, 0);
	for (uint64_t i = 1; i <= 100; i++) {
		uint64_t sent;

		rnic_lock(e);
		rnic_qp(p.a.qp)->rd->kb_ns = 1000000;
		atomic_store(&e->park_max_ns, 1000);
		sent = rnic_qp(p.a.qp)->rd->stats.sent;
		rnic_unlock(e);
		memset(p.a.buf, (int)i, 65536);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, i, 0, 65536, 0);
		left_alone += rd_stats(&p.a).sent == sent;
		rig_wait_byte(p.b.buf + 65535, (uint8_t)i);
		EXPECT_OK(p.a.scq, i);
	}
	CHECK(left_alone || rd_stats(&p.a).local_messages);
	rd_pair_close(&p);
}

/* Whoever sends much stops now and then, and goes on; without a thread, when it polls. */
static void test_much_at_once(void **state)
{
	struct rd_pair p;

	(void)state;
	setenv("WEFT_PROGRESS", "0", 1);
	rd_pair_open(&p, NULL, NULL);
	unsetenv("WEFT_PROGRESS");
	for (uint64_t i = 0; i < 20; i++) { /* the window grows */
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, i, 0, 2 << 20, 0);
		EXPECT_OK(p.a.scq, i);
	}
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t sent = rd_stats(&p.a).sent;

		memset(p.a.buf, (int)i + 1, 2 << 20);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, i, 0, 2 << 20, 0);
		CHECK(rd_stats(&p.a).sent - sent <= 300); /* of 1472 bytes */
		EXPECT_OK(p.a.scq, i);
		CHECK(!memcmp(p.a.buf, p.b.buf, 2 << 20));
	}
	rd_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_place_until_polled),
		RIG_TEST(test_qkey),
		RIG_TEST(test_multicast),
		RIG_TEST(test_old_call),
		RIG_TEST(test_inline_and_lists),
		RIG_TEST(test_fence),
		RIG_TEST(test_unsignalled),
		RIG_TEST(test_full),
		RIG_TEST(test_srq),
		RIG_TEST(test_overrun),
		RIG_TEST(test_solicited),
		RIG_TEST(test_thread_sends),
		RIG_TEST(test_much_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
