/* Completion queues, completion channels, asynchronous events. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <arpa/inet.h>
#include <time.h>
#include "rig.h"
#include "rnic_cq.h"

/* ---- overflow ---- */

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	while (wait_wc(cq, &wc, 5))
		;
}

/* Completions are lost: the queue says so once, and the queue pairs are broken. */
static void test_overflow_send(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_async_event ev;
	struct pair p;
	unsigned int n = 0;
	struct ibv_wc wc;

	(void)state;
	o.cqe = 4;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 30; i++)
		end_write(&p.a, i, 0, 8, 0);
	CHECK(wait_event(&p.rig, &ev, RIG_WAIT));
	CHECK_EQ(ev.event_type, IBV_EVENT_CQ_ERR);
	CHECK(ev.element.cq == p.a.scq);
	rnic_ack_async_event(&ev);
	CHECK_EQ(end_query(&p.a), IBV_QPS_ERR);
	while (wait_wc(p.a.scq, &wc, 5))
		CHECK_EQ(wc.wr_id, n++); /* what is left is the beginning */
	CHECK(n >= 4 && n < 30);
	expect_no_event(&p.rig, 5);
	/* it works again for others once it was emptied */
	CHECK_0(end_state(&p.a, IBV_QPS_RESET));
	pair_close(&p);
}

/* The same where the overflow happens in the middle of something else: a receive that
 * fails, one that succeeds, a list being flushed. */
static void test_overflow_recv(void **state)
{
	struct rig_opts oa = rig_defaults(), ob = rig_defaults();
	struct pair p;

	(void)state;
	ob.cqe = 2;
	for (int kind = 0; kind < 4; kind++) {
		pair_connect(&p, &oa, &ob);
		for (uint64_t i = 0; i < 8; i++)
			end_recv(&p.b, i, 0, kind == 1 && i == 2 ? 1 : 64);
		for (uint64_t i = 0; i < 8; i++)
			end_send(&p.a, i, 0, 64);
		if (kind == 2) {
			rig_sleep_ms(20);
			CHECK_0(end_state(&p.b, IBV_QPS_ERR));
		}
		expect_event(&p.rig, IBV_EVENT_CQ_ERR, p.b.rcq);
		CHECK_EQ(end_query(&p.b), IBV_QPS_ERR);
		drain(p.b.rcq);
		drain(p.a.scq);
		pair_close(&p);
	}
}

static void test_overflow_shared(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr own;
	struct ibv_cq *cq;
	struct rig r;
	struct end e;

	(void)state;
	/* one queue for both directions of a queue pair that is its own peer */
	rig_open(&r);
	cq = rnic_create_cq(r.ctx, 2, NULL, NULL, 0);
	CHECK(cq);
	o.cq = cq;
	end_make(&e, &r, &o);
	own = end_addr(&e);
	end_up(&e, &own);
	for (uint64_t i = 0; i < 10; i++)
		end_recv(&e, i, 0, 64);
	for (uint64_t i = 0; i < 10; i++)
		end_send(&e, i, 0, 64);
	expect_event(&r, IBV_EVENT_CQ_ERR, cq);
	CHECK_EQ(end_query(&e), IBV_QPS_ERR);
	end_destroy(&e);
	CHECK_0(rnic_destroy_cq(cq));
	rig_close(&r);
}

/* ---- size ---- */

static void test_resize(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.cqe = 4;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 4; i++)
		end_write(&p.a, i, 0, 8, 0);
	rig_sleep_ms(50);
	CHECK_0(rnic_resize_cq(p.a.scq, 60)); /* with four in it */
	CHECK(p.a.scq->cqe >= 60);
	for (uint64_t i = 4; i < 60; i++)
		end_write(&p.a, i, 0, 8, 0);
	rig_sleep_ms(50);
	CHECK_EQ(rnic_resize_cq(p.a.scq, 8), EINVAL); /* fewer than wait in it */
	CHECK_EQ(rnic_resize_cq(p.a.scq, 0), EINVAL);
	CHECK_EQ(rnic_resize_cq(p.a.scq, -1), EINVAL);
	CHECK_EQ(rnic_resize_cq(p.a.scq, 1 << 30), EINVAL);
	expect_run(p.a.scq, 0, 58, IBV_WC_SUCCESS);
	CHECK_0(rnic_resize_cq(p.a.scq, 2));
	expect_run(p.a.scq, 58, 2, IBV_WC_SUCCESS);
	expect_none(p.a.scq, 2);
	pair_close(&p);
	rig_open(&p.rig);
	CHECK(!rnic_create_cq(p.rig.ctx, 0, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!rnic_create_cq(p.rig.ctx, -5, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!rnic_create_cq(p.rig.ctx, 1 << 30, NULL, NULL, 0) && errno == EINVAL);
	CHECK(!rnic_create_cq(p.rig.ctx, 5, NULL, NULL, 1) && errno == EINVAL);
	CHECK(!rnic_create_cq(p.rig.ctx, 5, NULL, NULL, -1) && errno == EINVAL);
	rig_close(&p.rig);
}

/* Only what belongs to it goes with a queue pair. */
static void test_clean(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr own;
	struct end e[2];
	struct ibv_cq *cq;
	struct rig r;

	(void)state;
	rig_open(&r);
	cq = rnic_create_cq(r.ctx, 100, NULL, NULL, 0);
	CHECK(cq);
	o.cq = cq;
	for (int i = 0; i < 2; i++) {
		end_make(&e[i], &r, &o);
		own = end_addr(&e[i]);
		end_up(&e[i], &own);
	}
	for (uint64_t i = 0; i < 20; i++)
		end_write(&e[i % 2], i, 0, 8, 0);
	rig_sleep_ms(50);
	end_destroy(&e[0]);
	for (uint64_t i = 1; i < 20; i += 2)
		EXPECT_OK(cq, i);
	expect_none(cq, 2);
	end_destroy(&e[1]);
	CHECK_0(rnic_destroy_cq(cq));
	rig_close(&r);
}

/* ---- channels ---- */

static bool readable(int fd, int ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, ms) == 1;
}

static void get_event(struct ibv_comp_channel *ch, struct ibv_cq *want)
{
	struct ibv_cq *cq = NULL;
	void *context = NULL;

	CHECK(readable(ch->fd, RIG_WAIT));
	CHECK_0(rnic_get_cq_event(ch, &cq, &context));
	CHECK(cq == want && context == want->cq_context);
	rnic_ack_cq_events(cq, 1);
}

static void test_notify(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_comp_channel *ch;
	struct rig_addr to_a, to_b;
	struct pair p;
	struct work w;

	(void)state;
	/* both ends report to one channel */
	rig_open(&p.rig);
	ch = rnic_create_comp_channel(p.rig.ctx);
	CHECK(ch);
	o.channel = ch;
	end_make(&p.a, &p.rig, &o);
	end_make(&p.b, &p.rig, &o);
	to_b = end_addr(&p.b);
	to_a = end_addr(&p.a);
	end_up(&p.a, &to_b);
	end_up(&p.b, &to_a);

	/* not armed: nothing */
	end_write(&p.a, 1, 0, 8, 0);
	EXPECT_OK(p.a.scq, 1);
	CHECK(!readable(ch->fd, 5));
	/* armed: one event, however many completions */
	CHECK_0(ibv_req_notify_cq(p.a.scq, 0));
	for (uint64_t i = 0; i < 10; i++)
		end_write(&p.a, i, 0, 8, 0);
	get_event(ch, p.a.scq);
	expect_run(p.a.scq, 0, 10, IBV_WC_SUCCESS);
	CHECK(!readable(ch->fd, 5));
	/* two queues, two events */
	CHECK_0(ibv_req_notify_cq(p.a.scq, 0));
	CHECK_0(ibv_req_notify_cq(p.b.rcq, 0));
	end_recv(&p.b, 2, 0, 64);
	end_send(&p.a, 2, 0, 64);
	get_event(ch, p.b.rcq);
	get_event(ch, p.a.scq);
	EXPECT_OK(p.b.rcq, 2);
	EXPECT_OK(p.a.scq, 2);
	/* solicited only: not for a plain send, but for one that asks, and for errors */
	CHECK_0(ibv_req_notify_cq(p.b.rcq, 1));
	end_recv(&p.b, 3, 0, 64);
	end_send(&p.a, 3, 0, 64);
	EXPECT_OK(p.b.rcq, 3);
	EXPECT_OK(p.a.scq, 3);
	CHECK(!readable(ch->fd, 20));
	end_recv(&p.b, 4, 0, 64);
	work_init(&w, &p.a, IBV_WR_SEND, 4, 0, 64, 0);
	w.wr.send_flags |= IBV_SEND_SOLICITED;
	CHECK_0(post(&p.a, &w));
	get_event(ch, p.b.rcq);
	EXPECT_OK(p.b.rcq, 4);
	EXPECT_OK(p.a.scq, 4);
	CHECK_0(ibv_req_notify_cq(p.b.rcq, 1));
	end_recv(&p.b, 5, 0, 64);
	work_init(&w, &p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 5, 0, 64, 0);
	w.wr.send_flags |= IBV_SEND_SOLICITED;
	CHECK_0(post(&p.a, &w));
	get_event(ch, p.b.rcq);
	EXPECT_OK(p.b.rcq, 5);
	EXPECT_OK(p.a.scq, 5);
	/* any is stronger than solicited, and stays */
	CHECK_0(ibv_req_notify_cq(p.b.rcq, 0));
	CHECK_0(ibv_req_notify_cq(p.b.rcq, 1));
	end_recv(&p.b, 6, 0, 64);
	end_send(&p.a, 6, 0, 64);
	get_event(ch, p.b.rcq);
	EXPECT_OK(p.b.rcq, 6);
	EXPECT_OK(p.a.scq, 6);
	CHECK_0(ibv_req_notify_cq(p.b.rcq, 1));
	end_recv(&p.b, 7, 0, 64);
	CHECK_0(end_state(&p.b, IBV_QPS_ERR));
	get_event(ch, p.b.rcq);
	EXPECT(p.b.rcq, 7, IBV_WC_WR_FLUSH_ERR);
	end_destroy(&p.a);
	end_destroy(&p.b);
	CHECK_0(rnic_destroy_comp_channel(ch));
	rig_close(&p.rig);
}

/* Poll, arm, sleep: what came between the last poll and the arming is announced. */
static void test_arm_late(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_comp_channel *ch;
	struct rig_addr own;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	ch = rnic_create_comp_channel(r.ctx);
	o.channel = ch;
	end_make(&e, &r, &o);
	own = end_addr(&e);
	end_up(&e, &own);
	end_write(&e, 1, 0, 8, 0);
	rig_sleep_ms(30);
	CHECK_0(ibv_req_notify_cq(e.scq, 0));
	get_event(ch, e.scq);
	EXPECT_OK(e.scq, 1);
	/* but what was polled is not */
	CHECK_0(ibv_req_notify_cq(e.scq, 0));
	CHECK(!readable(ch->fd, 10));
	end_write(&e, 2, 0, 8, 0);
	get_event(ch, e.scq);
	EXPECT_OK(e.scq, 2);
	end_destroy(&e);
	CHECK_0(rnic_destroy_comp_channel(ch));
	rig_close(&r);
}

static void test_nonblocking(void **state)
{
	struct ibv_comp_channel *ch;
	struct ibv_async_event ev;
	struct ibv_cq *cq;
	void *context;
	struct rig r;

	(void)state;
	rig_open(&r);
	ch = rnic_create_comp_channel(r.ctx);
	CHECK(ch);
	CHECK_0(fcntl(ch->fd, F_SETFL, O_NONBLOCK));
	CHECK(rnic_get_cq_event(ch, &cq, &context) == -1 && errno == EAGAIN);
	CHECK_0(fcntl(r.ctx->async_fd, F_SETFL, O_NONBLOCK));
	CHECK(rnic_get_async_event(r.ctx, &ev) == -1 && errno == EAGAIN);
	CHECK_0(rnic_destroy_comp_channel(ch));
	rig_close(&r);
}

/* An event that was queued and never fetched goes with its completion queue, and the
 * descriptor does not say otherwise. */
static void test_forgotten_event(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_comp_channel *ch;
	struct rig_addr own;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	ch = rnic_create_comp_channel(r.ctx);
	o.channel = ch;
	end_make(&e, &r, &o);
	own = end_addr(&e);
	end_up(&e, &own);
	CHECK_0(ibv_req_notify_cq(e.scq, 0));
	end_write(&e, 1, 0, 8, 0);
	CHECK(readable(ch->fd, RIG_WAIT));
	end_destroy(&e);
	CHECK(!readable(ch->fd, 5));
	CHECK_0(rnic_destroy_comp_channel(ch));
	rig_close(&r);
}

/* ---- acknowledging ---- */

struct waiting {
	struct ibv_cq *cq;
	int done;
};

static void *destroy_cq(void *arg)
{
	struct waiting *w = arg;

	if (rnic_destroy_cq(w->cq))
		return (void *)1;
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void test_destroy_waits_for_acks(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_comp_channel *ch;
	struct ibv_cq *got;
	struct waiting w = {0};
	struct rig_addr own;
	struct rig r;
	struct end e;
	pthread_t thread;
	void *context, *ret;

	(void)state;
	rig_open(&r);
	ch = rnic_create_comp_channel(r.ctx);
	CHECK(ch);
	w.cq = rnic_create_cq(r.ctx, 16, NULL, ch, 0);
	CHECK(w.cq);
	o.cq = w.cq;
	end_make(&e, &r, &o);
	own = end_addr(&e);
	end_up(&e, &own);
	for (uint64_t i = 0; i < 3; i++) {
		CHECK_0(ibv_req_notify_cq(w.cq, 0));
		end_write(&e, i, 0, 8, 0);
		CHECK_0(rnic_get_cq_event(ch, &got, &context));
		EXPECT_OK(w.cq, i);
	}
	end_destroy(&e);
	CHECK_0(pthread_create(&thread, NULL, destroy_cq, &w));
	rig_sleep_ms(50);
	CHECK_EQ(__atomic_load_n(&w.done, __ATOMIC_ACQUIRE), 0);
	rnic_ack_cq_events(w.cq, 2);
	rig_sleep_ms(50);
	CHECK_EQ(__atomic_load_n(&w.done, __ATOMIC_ACQUIRE), 0);
	rnic_ack_cq_events(w.cq, 1);
	CHECK_0(pthread_join(thread, &ret));
	CHECK(!ret);
	CHECK_0(rnic_destroy_comp_channel(ch));
	rig_close(&r);
}

struct qp_waiting {
	struct ibv_qp *qp;
	int done;
};

static void *destroy_qp(void *arg)
{
	struct qp_waiting *w = arg;

	if (rnic_destroy_qp(w->qp))
		return (void *)1;
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void test_destroy_waits_for_async_ack(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_async_event ev;
	struct qp_waiting w = {0};
	pthread_t thread;
	struct pair p;
	void *ret;

	(void)state;
	pair_open(&p, &o);
	end_read(&p.a, 1, 0, 8, 1 << 20);
	EXPECT(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	CHECK(wait_event(&p.rig, &ev, RIG_WAIT));
	CHECK_EQ(ev.event_type, IBV_EVENT_QP_ACCESS_ERR);
	CHECK(ev.element.qp == p.b.qp);
	w.qp = p.b.qp;
	CHECK_0(pthread_create(&thread, NULL, destroy_qp, &w));
	rig_sleep_ms(50);
	CHECK_EQ(__atomic_load_n(&w.done, __ATOMIC_ACQUIRE), 0);
	rnic_ack_async_event(&ev);
	CHECK_0(pthread_join(thread, &ret));
	CHECK(!ret);
	p.b.qp = NULL;
	CHECK_0(rnic_dereg_mr(p.b.mr));
	free(p.b.buf);
	CHECK_0(rnic_destroy_cq(p.b.scq));
	CHECK_0(rnic_destroy_cq(p.b.rcq));
	end_destroy(&p.a);
	rig_close(&p.rig);
}

/* An event that nobody fetched does not hold up anybody. */
static void test_unfetched_async(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	end_read(&p.a, 1, 0, 8, 1 << 20);
	EXPECT(p.a.scq, 1, IBV_WC_REM_ACCESS_ERR);
	CHECK(readable(p.rig.ctx->async_fd, RIG_WAIT));
	end_destroy(&p.b);
	CHECK(!readable(p.rig.ctx->async_fd, 5));
	end_destroy(&p.a);
	rig_close(&p.rig);
}

/* ---- ibv_start_poll ---- */

static void test_cq_ex(void **state)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK};
	struct rig_opts o = rig_defaults();
	struct ibv_poll_cq_attr none = {0}, bad = {.comp_mask = 1};
	struct timespec wall;
	struct ibv_cq_ex *ex;
	struct rig_addr own;
	struct work w;
	struct rig r;
	struct end e;
	uint64_t before, stamp, wall_ns, last = 0, end;

	(void)state;
	rig_open(&r);
	ex = verbs_get_ctx(r.ctx)->create_cq_ex(r.ctx, &attr);
	CHECK(ex);
	o.cq = ibv_cq_ex_to_cq(ex);
	end_make(&e, &r, &o);
	own = end_addr(&e);
	end_up(&e, &own);
	CHECK_EQ(ibv_start_poll(ex, &none), ENOENT);
	CHECK_EQ(ibv_start_poll(ex, &bad), EINVAL);
	for (int round = 0; round < 3; round++) {
		rig_sleep_ms(100); /* a stamp must not be that of the last traffic */
		before = util_now_ns();
		for (uint64_t i = 0; i < 2; i++) {
			end_recv(&e, 10 + i, 0, 64);
			work_init(&w, &e, IBV_WR_SEND_WITH_IMM, i, 0, 33, 0);
			w.wr.imm_data = htonl(42);
			CHECK_0(post(&e, &w));
		}
		rig_sleep_ms(20);
		end = rig_now_ms() + RIG_WAIT;
		for (int n = 0, err = ibv_start_poll(ex, &none); n < 4;) {
			if (err == ENOENT) {
				CHECK(rig_now_ms() < end);
				if (n)
					ibv_end_poll(ex);
				err = ibv_start_poll(ex, &none);
				continue;
			}
			CHECK_0(err);
			CHECK_EQ(ex->status, IBV_WC_SUCCESS);
			CHECK_EQ(ibv_wc_read_qp_num(ex), e.qp->qp_num);
			CHECK_EQ(ibv_wc_read_vendor_err(ex), 0);
			if (ex->wr_id >= 10) {
				CHECK_EQ(ibv_wc_read_opcode(ex), IBV_WC_RECV);
				CHECK_EQ(ibv_wc_read_byte_len(ex), 33);
				CHECK_EQ(ibv_wc_read_wc_flags(ex), IBV_WC_WITH_IMM);
				CHECK_EQ(ntohl(ibv_wc_read_imm_data(ex)), 42);
			} else {
				CHECK_EQ(ibv_wc_read_opcode(ex), IBV_WC_SEND);
			}
			stamp = ibv_wc_read_completion_ts(ex);
			CHECK(stamp >= before && stamp <= util_now_ns());
			CHECK(stamp >= last);
			last = stamp;
			clock_gettime(CLOCK_REALTIME, &wall);
			wall_ns = (uint64_t)wall.tv_sec * UTIL_NS_PER_S + (uint64_t)wall.tv_nsec;
			CHECK(ibv_wc_read_completion_wallclock_ns(ex) <= wall_ns + RIG_MS);
			CHECK(ibv_wc_read_completion_wallclock_ns(ex) > wall_ns - 60000 * RIG_MS);
			n++;
			err = ibv_next_poll(ex);
		}
		ibv_end_poll(ex);
	}
	attr.wc_flags = UINT64_C(1) << 60;
	CHECK(!verbs_get_ctx(r.ctx)->create_cq_ex(r.ctx, &attr) && errno == EOPNOTSUPP);
	end_destroy(&e);
	CHECK_0(rnic_destroy_cq(o.cq));
	rig_close(&r);
}

/* A flush happens inside a call of the application, not in a pass: its stamp, too, is
 * that of the moment. */
static void test_stamp_outside_pass(void **state)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 64,
					   .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct rig_opts o = rig_defaults();
	struct ibv_poll_cq_attr none = {0};
	struct ibv_cq_ex *ex;
	struct rig r;
	struct end e;
	uint64_t before;

	(void)state;
	rig_open(&r);
	ex = verbs_get_ctx(r.ctx)->create_cq_ex(r.ctx, &attr);
	CHECK(ex);
	o.cq = ibv_cq_ex_to_cq(ex);
	end_make(&e, &r, &o);
	end_init(&e);
	rig_sleep_ms(200);
	before = util_now_ns();
	end_recv(&e, 1, 0, 64);
	CHECK_0(end_state(&e, IBV_QPS_ERR));
	CHECK_0(ibv_start_poll(ex, &none));
	CHECK(ibv_wc_read_completion_ts(ex) >= before);
	ibv_end_poll(ex);
	end_destroy(&e);
	CHECK_0(rnic_destroy_cq(o.cq));
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_overflow_send),
		RIG_TEST(test_overflow_recv),
		RIG_TEST(test_overflow_shared),
		RIG_TEST(test_resize),
		RIG_TEST(test_clean),
		RIG_TEST(test_notify),
		RIG_TEST(test_arm_late),
		RIG_TEST(test_nonblocking),
		RIG_TEST(test_forgotten_event),
		RIG_TEST(test_destroy_waits_for_acks),
		RIG_TEST(test_destroy_waits_for_async_ack),
		RIG_TEST(test_unfetched_async),
		RIG_TEST(test_cq_ex),
		RIG_TEST(test_stamp_outside_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
