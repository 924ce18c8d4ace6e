/* Posting a receive races with what looks for it: with an error that flushes, and with a message
 * of one peer while another waits. Neither may be lost. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include "rig_rd.h"
#include "rnic_cq.h"
#include "util_clock.h"
#include "util_rand.h"

#define ROUNDS   20000
#define TIME_MAX (3 * UTIL_NS_PER_S)

struct poster {
	struct end *end;
	atomic_uint go, done; /* the round that is on, that is over */
	atomic_bool stop;
	unsigned int n; /* receives in each round */
	unsigned int delay;
};

static void spin(unsigned int n)
{
	for (volatile unsigned int i = n; i > 0; i--)
		;
}

static void *post_receives(void *arg)
{
	struct poster *p = arg;
	unsigned int round = 0;

	while (!atomic_load(&p->stop)) {
		if (atomic_load(&p->go) == round)
			continue;
		spin(p->delay);
		for (unsigned int i = 0; i < p->n; i++)
			CHECK_0(try_recv(p->end, i, i * 64, 64));
		atomic_store(&p->done, ++round);
	}
	return NULL;
}

static void begin(struct poster *p, pthread_t *t, struct end *e, unsigned int n)
{
	*p = (struct poster){.end = e, .n = n};
	CHECK_0(pthread_create(t, NULL, post_receives, p));
}

static void end(struct poster *p, pthread_t t)
{
	atomic_store(&p->stop, true);
	pthread_join(t, NULL);
}

static void await(struct poster *p)
{
	while (atomic_load(&p->done) != atomic_load(&p->go))
		;
}

static void test_flush(void **state)
{
	struct rig_opts o = rd_defaults();
	uint64_t begun = util_now_ns();
	struct util_rand r;
	struct poster p;
	struct rig rig;
	struct end e;
	pthread_t t;

	(void)state;
	util_rand_seed(&r, 1);
	rig_open(&rig);
	end_make(&e, &rig, &o);
	begin(&p, &t, &e, 8);
	for (int i = 0; i < ROUNDS && util_now_ns() - begun < TIME_MAX; i++) {
		struct ibv_wc wc;

		end_init(&e);
		p.delay = (unsigned int)util_rand_below(&r, 200);
		atomic_fetch_add(&p.go, 1);
		spin((unsigned int)util_rand_below(&r, 400));
		CHECK_0(end_state(&e, IBV_QPS_ERR));
		await(&p);
		for (unsigned int k = 0; k < p.n; k++) {
			CHECK(wait_wc(e.rcq, &wc, 2000));
			CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
		}
		CHECK_0(end_state(&e, IBV_QPS_RESET));
	}
	end(&p, t);
	end_destroy(&e);
	rig_close(&rig);
}

/* Until what is sent goes the way that it will go from then on. */
static void warm_up(struct rd_pair *p, struct way *cb, struct end *c)
{
	for (uint64_t i = 0; i < 50; i++) {
		end_recv(&p->b, 0, 0, 64);
		end_recv(&p->b, 1, 64, 64);
		rd_post(&p->ab, IBV_WR_SEND, i, 0, 8, 0);
		rd_post(cb, IBV_WR_SEND, i, 0, 8, 0);
		EXPECT_OK(p->a.scq, i);
		EXPECT_OK(c->scq, i);
		EXPECT_OK(p->b.rcq, 0);
		EXPECT_OK(p->b.rcq, 1);
	}
}

static void test_wake(void **state)
{
	struct rig_opts o = rd_defaults();
	struct rig_addr to;
	uint64_t begun;
	struct util_rand r;
	struct rd_pair p;
	struct poster poster;
	struct way cb;
	struct end c;
	pthread_t t;

	(void)state;
	util_rand_seed(&r, 2);
	rd_pair_open(&p, &o, NULL);
	end_make(&c, &p.rig, &o);
	end_up(&c, NULL);
	to = end_addr(&p.b);
	way_make(&cb, &c, &to, 0);
	warm_up(&p, &cb, &c);
	begin(&poster, &t, &p.b, 2);
	begun = util_now_ns();
	for (uint64_t i = 0; i < ROUNDS && util_now_ns() - begun < TIME_MAX; i++) {
		uint64_t rnr = rd_stats(&p.b).rnr_sent;
		struct ibv_wc wc;

		rd_post(&p.ab, IBV_WR_SEND, i, 0, 8, 0);
		while (rd_stats(&p.b).rnr_sent == rnr)
			CHECK(!rnic_poll_cq(p.a.scq, 1, &wc));
		poster.delay = (unsigned int)util_rand_below(&r, 300);
		atomic_fetch_add(&poster.go, 1);
		spin((unsigned int)util_rand_below(&r, 300));
		rd_post(&cb, IBV_WR_SEND, i, 0, 8, 0);
		EXPECT_OK(p.a.scq, i);
		EXPECT_OK(c.scq, i);
		await(&poster);
		EXPECT_OK(p.b.rcq, 0);
		EXPECT_OK(p.b.rcq, 1);
	}
	end(&poster, t);
	way_free(&cb);
	end_destroy(&c);
	rd_pair_close(&p);
}

/* ---- from UDP to shared memory ---- */

static void target(int sock, void *arg)
{
	struct rig_opts o = rd_defaults();
	struct rig_addr own;
	struct ibv_wc wc;
	struct rig rig;
	struct end e;
	char c;

	(void)arg;
	o.buf_len = 1 << 20;
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_up(&e, NULL);
	own = end_addr(&e);
	rig_put(sock, &own, sizeof(own));
	while (recv(sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
		for (int i = 0; i < 100; i++)
			CHECK(!rnic_poll_cq(e.rcq, 1, &wc));
	rig_hear(sock, 'E');
	CHECK_EQ(rd_stats(&e).deaths, 0);
	end_destroy(&e);
	rig_close(&rig);
}

/* One after the other to a process of its own, up to 40 at a time. */
static void many(struct way *w, enum ibv_wr_opcode op, unsigned int n)
{
	unsigned int posted = 0, done = 0;
	struct ibv_wc wc;

	while (done < n) {
		for (; posted < n && posted - done < 40; posted++)
			if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
				rd_add(w, posted, 0, 0, 1);
			else
				rd_post(w, op, posted, 0, 100000, 0);
		CHECK(wait_wc(w->from->scq, &wc, RIG_WAIT));
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		done++;
	}
}

/* Requests are outstanding from the first moment on, while the pair changes its way: answers that
 * went the old way may not be acknowledged when more is asked the new way. */
static void test_change(void **state)
{
	struct rig_opts o = rd_defaults();
	uint64_t begun = util_now_ns();
	struct rig_addr to;
	struct rig_proc proc;
	struct rig rig;
	struct way w;
	struct end e;

	(void)state;
	o.buf_len = 1 << 20;
	for (unsigned int i = 0; i < 60 && util_now_ns() - begun < TIME_MAX; i++) {
		rig_spawn(&proc, target, NULL);
		rig_open(&rig);
		end_make(&e, &rig, &o);
		end_up(&e, NULL);
		rig_get(proc.sock, &to, sizeof(to));
		way_make(&w, &e, &to, 0);
		many(&w, i % 2 ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_RDMA_READ, 300);
		CHECK_EQ(rd_stats(&e).deaths, 0);
		rig_say(proc.sock, 'E');
		rig_join(&proc);
		way_free(&w);
		end_destroy(&e);
		rig_close(&rig);
	}
}

#define LABELS 4

/* Several paths, all of them new, and no receive in the first moment: what was refused is sent
 * again at once when there is one, not one packet with each timeout. */
static void test_cold_paths(void **state)
{
	struct rig_opts o = rd_defaults();
	struct way w[LABELS];
	struct rig_addr to;
	struct rd_pair p;
	uint64_t begun;

	(void)state;
	o.send_wr = o.recv_wr = 128;
	for (int round = 0; round < 5; round++) {
		rd_pair_open(&p, &o, &o);
		to = end_addr(&p.b);
		for (uint32_t i = 0; i < LABELS; i++)
			way_make(&w[i], &p.a, &to, i + 1);
		for (uint32_t i = 0; i < 100; i++)
			rd_post(&w[i * 7 % LABELS], IBV_WR_SEND, i, 0, 8 + i, 0);
		rig_sleep_ms((unsigned int)round);
		begun = util_now_ns();
		for (uint32_t i = 0; i < 100; i++)
			end_recv(&p.b, i, 0, 200);
		for (uint32_t i = 0; i < 100; i++) {
			CHECK_EQ(EXPECT_OK(p.b.rcq, i).byte_len, 8 + i);
			EXPECT_OK(p.a.scq, i);
		}
		CHECK(util_now_ns() - begun < 2 * UTIL_NS_PER_S);
		for (uint32_t i = 0; i < LABELS; i++)
			way_free(&w[i]);
		rd_pair_close(&p);
	}
}

#define BOTH 40

/* One side of test_both_begin. Afterwards it does not poll any more: what it still owes has to go
 * by itself. */
static void both_sides(struct end *e, struct way *w)
{
	unsigned int sent = 0, got = 0;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < BOTH; i++)
		rd_post(w, IBV_WR_SEND, i, 0, i % 3 ? 8 : 70000, 0);
	while (sent < BOTH || got < BOTH) {
		uint64_t until = util_now_ns() + RIG_WAIT * UTIL_NS_PER_MS;
		int n[2] = {0, 0};

		while (!n[0] && !n[1] && util_now_ns() < until) {
			n[0] = rnic_poll_cq(e->scq, 1, &wc);
			n[1] = n[0] ? 0 : rnic_poll_cq(e->rcq, 1, &wc);
		}
		CHECK(n[0] == 1 || n[1] == 1);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
		sent += (unsigned int)n[0];
		got += (unsigned int)n[1];
	}
}

static void side(int sock, struct rig *rig)
{
	struct rig_opts o = rd_defaults();
	struct rig_addr own, to;
	struct way w;
	struct end e;

	o.buf_len = 1 << 20;
	end_make(&e, rig, &o);
	end_up(&e, NULL);
	for (unsigned int i = 0; i < BOTH; i++)
		end_recv(&e, i, 100000, 70000);
	own = end_addr(&e);
	rig_put(sock, &own, sizeof(own));
	rig_get(sock, &to, sizeof(to));
	way_make(&w, &e, &to, 0);
	both_sides(&e, &w);
	rig_say(sock, 'D');
	rig_hear(sock, 'D');
	way_free(&w);
	end_destroy(&e);
}

static void other_side(int sock, void *arg)
{
	struct rig rig;
	char more;

	(void)arg;
	rig_open(&rig);
	while (rig_get(sock, &more, 1), more)
		side(sock, &rig);
	rig_close(&rig);
}

/* Both begin at once, and one direction may still finish over UDP while the other is in the ring.
 */
static void test_both_begin(void **state)
{
	uint64_t begun = util_now_ns();
	struct rig_proc proc;
	struct rig rig;

	(void)state;
	rig_spawn(&proc, other_side, NULL);
	rig_open(&rig);
	for (int i = 0; i < 100 && util_now_ns() - begun < TIME_MAX; i++) {
		rig_put(proc.sock, "\1", 1);
		side(proc.sock, &rig);
	}
	rig_put(proc.sock, "", 1);
	rig_join(&proc);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_cold_paths), RIG_TEST(test_change), RIG_TEST(test_both_begin),
		RIG_TEST(test_flush),      RIG_TEST(test_wake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
