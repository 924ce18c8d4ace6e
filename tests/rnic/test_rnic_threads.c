/* Many threads, for ThreadSanitizer as much as for their results. */
#include <pthread.h>
#include <stdatomic.h>
#include "rig.h"

#define THREADS 4

static void start(pthread_t *t, void *(*f)(void *), void *arg)
{
	CHECK_0(pthread_create(t, NULL, f, arg));
}

/* cmocka's checks are for the main thread: others report by their return value. */
#define OK(cond)                                                                                   \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			return (void *)1;                                                          \
		}                                                                                  \
	} while (0)

static void join(pthread_t t)
{
	void *ret;

	CHECK_0(pthread_join(t, &ret));
	CHECK(!ret);
}

/* ---- one pair for each thread ---- */

struct worker {
	struct rig *rig;
	struct ibv_cq *cq; /* shared, or NULL */
	unsigned int n;
	int kind;
};

static void *own_pair(void *arg)
{
	struct worker *w = arg;
	struct rig_opts o = rig_defaults();
	struct pair p = {.rig = *w->rig};
	struct rig_addr a, b;
	struct ibv_wc wc;

	o.one_cq = true;
	for (unsigned int round = 0; round < 5; round++) {
		unsigned int sent = 0, got = 0, done = 0, posted = 0;

		end_make(&p.a, w->rig, &o);
		end_make(&p.b, w->rig, &o);
		a = end_addr(&p.a);
		b = end_addr(&p.b);
		end_up(&p.a, &b);
		end_up(&p.b, &a);
		while (got < w->n || done < w->n) {
			for (; posted < w->n && posted < got + 16; posted++)
				end_recv(&p.b, posted, 32768, 2048);
			for (; sent < w->n && sent < done + 16; sent++)
				end_send(&p.a, sent, 0, sent % 2048);
			if (ibv_poll_cq(p.a.scq, 1, &wc) == 1)
				OK(wc.status == IBV_WC_SUCCESS && wc.wr_id == done++);
			if (ibv_poll_cq(p.b.scq, 1, &wc) == 1)
				OK(wc.status == IBV_WC_SUCCESS && wc.wr_id == got++ &&
				   wc.byte_len == wc.wr_id % 2048);
		}
		end_destroy(&p.a);
		end_destroy(&p.b);
	}
	return NULL;
}

/* Creating, connecting, using and destroying, all in parallel. */
static void test_own_pairs(void **state)
{
	struct worker w[THREADS];
	pthread_t t[THREADS];
	struct rig r;

	(void)state;
	rig_open(&r);
	for (int i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.rig = &r, .n = 300};
		start(&t[i], own_pair, &w[i]);
	}
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
	rig_close(&r);
}

static void *own_device(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++) {
		struct worker w = {.n = 50};
		struct rig r;

		rig_open(&r);
		w.rig = &r;
		OK(!own_pair(&w));
		rig_close(&r);
	}
	return NULL;
}

/* The engine of the process comes and goes with the last context. */
static void test_own_devices(void **state)
{
	pthread_t t[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		start(&t[i], own_device, NULL);
	for (int i = 0; i < THREADS; i++)
		join(t[i]);
}

/* ---- everything shared ---- */

struct shared {
	struct pair p;
	atomic_uint sent, done, got, errors;
	unsigned int n;
	bool wr;
};

/* Posting on one queue pair; the queue is full now and then. */
static void *post_shared(void *arg)
{
	struct shared *s = arg;
	struct ibv_qp_ex *x = s->p.a.ex;

	for (;;) {
		unsigned int i = atomic_fetch_add(&s->sent, 1);
		struct work w;
		int err;

		if (i >= s->n)
			return NULL;
		work_init(&w, &s->p.a, i % 3 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, i, 0, i % 1000,
			  16384);
		do {
			if (s->wr && i % 2) {
				ibv_wr_start(x);
				x->wr_id = i;
				x->wr_flags = IBV_SEND_SIGNALED;
				if (i % 3)
					ibv_wr_send(x);
				else
					ibv_wr_rdma_write(x, s->p.a.peer.rkey,
							  s->p.a.peer.addr + 16384);
				ibv_wr_set_sge(x, s->p.a.mr->lkey, (uintptr_t)s->p.a.buf, i % 1000);
				err = ibv_wr_complete(x);
			} else {
				struct ibv_send_wr *bad;

				err = ibv_post_send(s->p.a.qp, &w.wr, &bad);
			}
			OK(!err || err == ENOMEM);
			if (err)
				sched_yield();
		} while (err);
	}
}

static void *post_receives(void *arg)
{
	struct shared *s = arg;

	for (unsigned int i = 0; i < s->n;) {
		struct ibv_sge sge = end_sge(&s->p.b, 32768, 1024);
		struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;
		int err = ibv_post_recv(s->p.b.qp, &wr, &bad);

		OK(!err || err == ENOMEM);
		if (err)
			sched_yield();
		else
			i++;
	}
	return NULL;
}

/* Several threads take completions out of one queue; none is lost, none comes twice. */
static void *poll_shared(void *arg)
{
	struct shared *s = arg;
	struct ibv_wc wc[4];

	while (atomic_load(&s->done) < s->n) {
		int n = ibv_poll_cq(s->p.a.scq, 4, wc);

		OK(n >= 0);
		for (int i = 0; i < n; i++)
			OK(wc[i].status == IBV_WC_SUCCESS && wc[i].qp_num == s->p.a.qp->qp_num);
		atomic_fetch_add(&s->done, (unsigned int)n);
		n = ibv_poll_cq(s->p.b.rcq, 4, wc);
		OK(n >= 0);
		for (int i = 0; i < n; i++)
			OK(wc[i].status == IBV_WC_SUCCESS && wc[i].opcode == IBV_WC_RECV);
		atomic_fetch_add(&s->got, (unsigned int)n);
	}
	return NULL;
}

static void share(bool wr)
{
	struct rig_opts o = rig_defaults();
	struct shared s = {.n = 3000, .wr = wr};
	pthread_t posters[2], pollers[2], receiver;

	o.ex = wr;
	o.cqe = 8192;
	pair_open(&s.p, &o);
	start(&receiver, post_receives, &s);
	for (int i = 0; i < 2; i++) {
		start(&posters[i], post_shared, &s);
		start(&pollers[i], poll_shared, &s);
	}
	for (int i = 0; i < 2; i++) {
		join(posters[i]);
		join(pollers[i]);
	}
	CHECK_EQ(atomic_load(&s.done), s.n);
	CHECK_EQ(atomic_load(&s.got), s.n - (s.n + 2) / 3);
	/* the receiver has more to post than was sent */
	while (try_recv(&s.p.b, 0, 0, 8) == 0)
		;
	CHECK_0(end_state(&s.p.b, IBV_QPS_ERR));
	{
		struct ibv_wc wc;

		/* flushed receives make room, so that it can finish */
		while (wait_wc(s.p.b.rcq, &wc, 20))
			;
	}
	join(receiver);
	pair_close(&s.p);
}

static void test_shared(void **state)
{
	(void)state;
	share(false);
}

static void test_shared_wr(void **state)
{
	(void)state;
	share(true);
}

/* ---- events in one thread, work in another ---- */

struct listener {
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	unsigned int n, got;
};

static void *listen_events(void *arg)
{
	struct listener *l = arg;
	struct ibv_wc wc;

	while (l->got < l->n) {
		struct ibv_cq *cq;
		void *context;

		OK(!rnic_get_cq_event(l->ch, &cq, &context));
		OK(cq == l->cq);
		rnic_ack_cq_events(cq, 1);
		OK(!ibv_req_notify_cq(cq, 0));
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			OK(wc.status == IBV_WC_SUCCESS);
			l->got++;
		}
	}
	return NULL;
}

static void test_event_thread(void **state)
{
	struct rig_opts oa = rig_defaults(), ob;
	struct listener l = {.n = 2000};
	struct rig_addr a, b;
	struct pair p;
	pthread_t t;

	(void)state;
	rig_open(&p.rig);
	l.ch = rnic_create_comp_channel(p.rig.ctx);
	CHECK(l.ch);
	end_make(&p.a, &p.rig, &oa);
	ob = oa;
	ob.channel = l.ch;
	ob.recv_wr = 2048;
	ob.cqe = 4096;
	end_make(&p.b, &p.rig, &ob);
	a = end_addr(&p.a);
	b = end_addr(&p.b);
	end_up(&p.a, &b);
	end_up(&p.b, &a);
	for (unsigned int i = 0; i < l.n; i++)
		end_recv(&p.b, i, 0, 64);
	l.cq = p.b.rcq;
	CHECK_0(ibv_req_notify_cq(l.cq, 0));
	start(&t, listen_events, &l);
	for (unsigned int i = 0; i < l.n; i++) {
		end_send(&p.a, i, 0, 64);
		EXPECT_OK(p.a.scq, i);
		if (i % 200 == 199)
			usleep(2000); /* let it fall asleep */
	}
	join(t);
	CHECK_EQ(l.got, l.n);
	end_destroy(&p.a);
	end_destroy(&p.b);
	CHECK_0(rnic_destroy_comp_channel(l.ch));
	rig_close(&p.rig);
}

/* ---- breaking things under load ---- */

struct breaker {
	struct pair *p;
	struct ibv_sge recv; /* noted before its region may go */
	atomic_bool stop;
};

static void *keep_posting(void *arg)
{
	struct breaker *b = arg;
	unsigned int i = 0;

	while (!atomic_load(&b->stop)) {
		struct ibv_send_wr *bad;
		struct ibv_recv_wr *rbad;
		struct ibv_recv_wr rwr = {.wr_id = i, .sg_list = &b->recv, .num_sge = 1};
		struct work w;

		work_init(&w, &b->p->a, i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_READ, i, 0, 1000, 0);
		i++;
		ibv_post_send(b->p->a.qp, &w.wr, &bad);
		ibv_post_recv(b->p->b.qp, &rwr, &rbad);
	}
	return NULL;
}

static void *keep_polling(void *arg)
{
	struct breaker *b = arg;
	struct ibv_wc wc[8];

	while (!atomic_load(&b->stop)) {
		ibv_poll_cq(b->p->a.scq, 8, wc);
		ibv_poll_cq(b->p->b.rcq, 8, wc);
	}
	return NULL;
}

/* To the error state in the middle of traffic, with threads that do not know yet. */
static void test_error_under_load(void **state)
{
	struct rig_opts o = rig_defaults();

	(void)state;
	o.cqe = 1 << 16; /* flushing is fast */
	for (int round = 0; round < 30; round++) {
		struct pair p;
		struct breaker b = {.p = &p};
		pthread_t t[2];

		pair_open(&p, &o);
		b.recv = end_sge(&p.b, 0, 1024);
		start(&t[0], keep_posting, &b);
		start(&t[1], keep_polling, &b);
		usleep(1000 + 100 * (unsigned int)round);
		if (round % 3 == 0)
			CHECK_0(end_state(&p.a, IBV_QPS_ERR));
		else if (round % 3 == 1)
			CHECK_0(end_state(&p.b, IBV_QPS_ERR));
		else
			CHECK_0(rnic_dereg_mr(p.b.mr));
		usleep(2000);
		atomic_store(&b.stop, true);
		join(t[0]);
		join(t[1]);
		if (round % 3 == 2)
			p.b.mr = NULL;
		pair_close(&p);
	}
}

/* Registering and deregistering beside traffic: keys are looked up all the time. */
static void *keep_registering(void *arg)
{
	struct breaker *b = arg;
	static uint8_t memory[65536];

	while (!atomic_load(&b->stop)) {
		struct ibv_mr *mr[20];

		for (int i = 0; i < 20; i++) {
			mr[i] = rnic_reg_mr(b->p->rig.pd, memory, sizeof(memory), (uintptr_t)memory,
					    IBV_ACCESS_LOCAL_WRITE);
			OK(mr[i]);
		}
		for (int i = 0; i < 20; i++)
			OK(!rnic_dereg_mr(mr[(i * 7) % 20]));
	}
	return NULL;
}

static void test_registration_under_load(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;
	struct breaker b = {.p = &p};
	pthread_t t[2];

	(void)state;
	pair_open(&p, &o);
	start(&t[0], keep_registering, &b);
	start(&t[1], keep_registering, &b);
	for (uint64_t i = 0; i < 2000; i++) {
		end_write(&p.a, i, 0, 64, 0);
		EXPECT_OK(p.a.scq, i);
	}
	atomic_store(&b.stop, true);
	join(t[0]);
	join(t[1]);
	pair_close(&p);
}

/* ---- nobody polls ---- */

/* A target that never calls anything is served by the thread. */
static void test_silent_target(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 50; i++) {
		memset(p.a.buf, (int)i + 1, 64);
		end_write(&p.a, i, 0, 64, 0);
		rig_wait_byte(p.b.buf + 63, (uint8_t)(i + 1));
	}
	expect_run(p.a.scq, 0, 50, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* Whoever polled a moment ago may work or sleep now. The thread takes over from both. */
static void test_poller_goes(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 20; i++) {
		uint8_t mark = (uint8_t)(i + 1);

		for (int k = 0; k < 1000; k++)
			CHECK_EQ(ibv_poll_cq(p.b.scq, 1, &wc), 0);
		memset(p.a.buf, mark, 64);
		end_write(&p.a, i, 0, 64, 0);
		if (i % 2)
			rig_wait_byte(p.b.buf + 63, mark);
		else
			rig_sleep_ms(RIG_TSAN ? 500 : 100);
		CHECK_EQ(rig_peek(p.b.buf + 63), mark);
	}
	expect_run(p.a.scq, 0, 20, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* Who looks in now and then sleeps in between, and has not lost its core. */
static void test_poller_naps(void **state)
{
	struct rig_opts o = rig_defaults();
	int served = 0;
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	for (int k = 0; k < 1000; k++)
		CHECK_EQ(ibv_poll_cq(p.b.scq, 1, &wc), 0);
	for (uint64_t i = 0; i < 100; i++) {
		uint8_t mark = (uint8_t)(i + 1);

		memset(p.a.buf, mark, 64);
		CHECK_EQ(ibv_poll_cq(p.b.scq, 1, &wc), 0);
		end_write(&p.a, i, 0, 64, 0);
		usleep(2000);
		served += rig_peek(p.b.buf + 63) == mark;
		EXPECT_OK(p.a.scq, i);
	}
	CHECK(served >= 50);
	pair_close(&p);
}

struct told {
	struct rnic_ring ring;
	atomic_bool asleep;
};

static bool nothing(struct rnic_ring *r)
{
	(void)r;
	return false;
}

static bool tell(struct rnic_ring *r, bool asleep)
{
	atomic_store(&container_of(r, struct told, ring)->asleep, asleep);
	return false;
}

/* A ring that a poller finds while the thread sleeps: whoever writes into it must know that. */
static void test_ring_found_by_poller(void **state)
{
	struct rig_opts o = rig_defaults();
	struct told t = {.ring = {.look = nothing, .sleep = tell}};
	uint64_t end = rig_now_ms() + RIG_WAIT;
	struct rnic_engine *e;
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	e = rig_engine(&p.rig);
	while (!atomic_load(&e->watch_until) && rig_now_ms() < end)
		rig_sleep_ms(5);
	rnic_lock(e);
	rnic_engine_ring(e, &t.ring);
	rnic_unlock(e);
	while (!atomic_load(&t.asleep) && rig_now_ms() < end)
		rig_sleep_ms(1);
	CHECK(atomic_load(&t.asleep));
	rnic_lock(e);
	list_del(&t.ring.link);
	rnic_unlock(e);
	pair_close(&p);
}

/* Without a thread nothing moves, except inside of ibv_poll_cq. */
static void test_no_thread(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;
	struct ibv_wc wc;

	(void)state;
	setenv("WEFT_PROGRESS", "0", 1);
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 100; i++) {
		end_recv(&p.b, i, 0, 4096);
		end_send(&p.a, i, 0, 4096);
		EXPECT_OK(p.b.rcq, i);
		EXPECT_OK(p.a.scq, i);
	}
	end_recv(&p.b, 200, 0, 64);
	end_send(&p.a, 200, 0, 64);
	rig_sleep_ms(50);
	/* not a completion yet, until the first poll has made the passes */
	CHECK_EQ(ibv_poll_cq(p.b.rcq, 0, &wc), 0);
	EXPECT_OK(p.b.rcq, 200);
	EXPECT_OK(p.a.scq, 200);
	pair_close(&p);
	unsetenv("WEFT_PROGRESS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_own_pairs),
		RIG_TEST(test_own_devices),
		RIG_TEST(test_shared),
		RIG_TEST(test_shared_wr),
		RIG_TEST(test_event_thread),
		RIG_TEST(test_error_under_load),
		RIG_TEST(test_registration_under_load),
		RIG_TEST(test_silent_target),
		RIG_TEST(test_poller_goes),
		RIG_TEST(test_poller_naps),
		RIG_TEST(test_ring_found_by_poller),
		RIG_TEST(test_no_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
