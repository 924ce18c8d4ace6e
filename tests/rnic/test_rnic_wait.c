/* rnic_wait: who waits does the work of the progress thread. */
#include <pthread.h>
#include "rig.h"

#define LONG_NS (5 * UTIL_NS_PER_S)
#define ROUNDS  50

/* An end whose completions make a channel readable. */
struct sleeper {
	struct rig rig;
	struct end e;
	struct ibv_comp_channel *ch;
};

static void sleeper_open(struct sleeper *s)
{
	struct rig_opts o = rig_defaults();

	rig_open(&s->rig);
	s->ch = rnic_create_comp_channel(s->rig.ctx);
	CHECK(s->ch);
	o.channel = s->ch;
	end_make(&s->e, &s->rig, &o);
}

static void sleeper_close(struct sleeper *s)
{
	end_destroy(&s->e);
	CHECK_0(rnic_destroy_comp_channel(s->ch));
	rig_close(&s->rig);
}

static bool arm(void *arg)
{
	const struct sleeper *s = arg;

	return !ibv_req_notify_cq(s->e.rcq, 0);
}

static bool yes(void *arg)
{
	(void)arg;
	return true;
}

static bool no(void *arg)
{
	(void)arg;
	return false;
}

static void take(struct sleeper *s, uint64_t wr_id)
{
	struct ibv_cq *cq;
	void *context;

	CHECK_0(rnic_get_cq_event(s->ch, &cq, &context));
	rnic_ack_cq_events(cq, 1);
	EXPECT_OK(s->e.rcq, wr_id);
}

/* Nobody polls, and there is no thread: what is received, the waiting has received. */
static void wait_for_messages(int sock, void *arg)
{
	struct sleeper s;

	(void)arg;
	setenv("WEFT_PROGRESS", "0", 1);
	sleeper_open(&s);
	end_meet(&s.e, sock);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		end_recv(&s.e, i, 0, 64);
		rig_say(sock, 'r');
		CHECK_0(rnic_wait(s.ch->fd, LONG_NS, arm, &s));
		take(&s, i);
		rig_say(sock, 'g');
	}
	CHECK_EQ(rnic_wait(s.ch->fd, 20 * RIG_MS, arm, &s),
		 ETIMEDOUT); /* the last is acknowledged */
	rig_hear(sock, 'e');
	sleeper_close(&s);
}

static void test_messages(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_proc child;
	struct rig rig;
	struct end e;

	(void)state;
	rig_spawn(&child, wait_for_messages, NULL);
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_meet(&e, child.sock);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		rig_hear(child.sock, 'r');
		usleep(i % 3 * 2000); /* asleep, about to be, or not yet */
		end_send(&e, i, 0, 64);
		EXPECT_OK(e.scq, i);
		rig_hear(child.sock, 'g');
	}
	rig_say(child.sock, 'e');
	rig_join(&child);
	end_destroy(&e);
	rig_close(&rig);
}

static void test_answers(void **state)
{
	uint64_t before;
	struct sleeper s;

	(void)state;
	CHECK_EQ(rnic_wait(0, 0, yes, NULL), EOPNOTSUPP);
	sleeper_open(&s);
	before = rig_now_ms();
	CHECK_EQ(rnic_wait(s.ch->fd, LONG_NS, no, NULL), EAGAIN);
	CHECK_EQ(rnic_wait(s.ch->fd, 30 * RIG_MS, arm, &s), ETIMEDOUT);
	CHECK(rig_now_ms() - before >= 29 && rig_now_ms() - before < 2000);
	CHECK_EQ(rnic_wait(1 << 20, LONG_NS, arm, &s), EIO);
	sleeper_close(&s);
}

static void *wait_once(void *arg)
{
	struct sleeper *s = arg;

	return (void *)(intptr_t)rnic_wait(s->ch->fd, LONG_NS, yes, NULL);
}

static void until_waiting(struct rnic_engine *e)
{
	uint64_t end = rig_now_ms() + RIG_WAIT;

	while (!atomic_load(&e->waiter.until) && rig_now_ms() < end)
		rig_sleep_ms(1);
}

struct ticking {
	struct rnic_timer timer;
	uint64_t one;
	int fd;
};

static void tick(struct rnic_timer *t, uint64_t now)
{
	struct ticking *x = container_of(t, struct ticking, timer);

	(void)now;
	CHECK(write(x->fd, &x->one, sizeof(x->one)) > 0);
}

/* A clock that another thread winds up meanwhile is heard; there is no progress thread. */
static void test_timer_of_another(void **state)
{
	struct ticking x = {.one = 1};
	struct rnic_engine *e;
	struct sleeper s;
	pthread_t t;
	void *ret;

	(void)state;
	setenv("WEFT_PROGRESS", "0", 1);
	sleeper_open(&s);
	unsetenv("WEFT_PROGRESS");
	e = rig_engine(&s.rig);
	x.fd = s.ch->fd;
	rnic_timer_init(&x.timer, tick);
	CHECK_0(pthread_create(&t, NULL, wait_once, &s));
	until_waiting(e);
	CHECK_EQ(rnic_wait(s.ch->fd, LONG_NS, yes, NULL), EBUSY);
	rnic_lock(e);
	CHECK_0(rnic_timer_arm(e, &x.timer, util_now_ns() + 20 * RIG_MS));
	rnic_unlock(e);
	CHECK_0(pthread_join(t, &ret));
	CHECK_0((intptr_t)ret);
	sleeper_close(&s);
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

/* Who waited in vain goes, and looks no more. The thread, which slept all the time, does: it must
 * not sleep on while rings are told that somebody is awake. */
static void test_thread_comes_back(void **state)
{
	struct told t = {.ring = {.look = nothing, .sleep = tell}};
	uint64_t end = rig_now_ms() + RIG_WAIT;
	struct rnic_engine *e;
	struct sleeper s;

	(void)state;
	sleeper_open(&s);
	e = rig_engine(&s.rig);
	rnic_lock(e);
	rnic_engine_ring(e, &t.ring);
	rnic_unlock(e);
	while ((!atomic_load(&t.asleep) || !atomic_load(&e->watch_until)) && rig_now_ms() < end)
		rig_sleep_ms(1);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(rnic_wait(s.ch->fd, RIG_MS, arm, &s), ETIMEDOUT);
		while (!atomic_load(&t.asleep) && rig_now_ms() < end)
			rig_sleep_ms(1);
		CHECK(atomic_load(&t.asleep));
	}
	rnic_lock(e);
	list_del(&t.ring.link);
	rnic_unlock(e);
	sleeper_close(&s);
}

static void *get_event(void *arg)
{
	struct sleeper *s = arg;
	struct ibv_cq *cq;
	void *context;
	int err = rnic_get_cq_event(s->ch, &cq, &context);

	if (!err)
		rnic_ack_cq_events(cq, 1);
	return (void *)(intptr_t)err;
}

/* One thread sleeps as ever while another waits here, and is served when that one has gone, too. */
static void sleep_beside(int sock, void *arg)
{
	struct sleeper s;
	pthread_t t;
	void *ret;

	(void)arg;
	sleeper_open(&s);
	end_meet(&s.e, sock);
	for (uint64_t i = 0; i < 10; i++) {
		int pipefd[2];

		end_recv(&s.e, i, 0, 64);
		CHECK_0(pipe(pipefd));
		CHECK_0(ibv_req_notify_cq(s.e.rcq, 0));
		CHECK_0(pthread_create(&t, NULL, get_event, &s));
		rig_say(sock, 'r');
		CHECK_EQ(rnic_wait(pipefd[0], 20 * RIG_MS, yes, NULL), ETIMEDOUT);
		rig_say(sock, 'w');
		CHECK_0(pthread_join(t, &ret));
		CHECK_0((intptr_t)ret);
		EXPECT_OK(s.e.rcq, i);
		close(pipefd[0]);
		close(pipefd[1]);
		rig_say(sock, 'g');
	}
	rig_hear(sock, 'e');
	sleeper_close(&s);
}

static void test_sleeper_beside(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_proc child;
	struct rig rig;
	struct end e;

	(void)state;
	rig_spawn(&child, sleep_beside, NULL);
	rig_open(&rig);
	end_make(&e, &rig, &o);
	end_meet(&e, child.sock);
	for (uint64_t i = 0; i < 10; i++) {
		rig_hear(child.sock, 'r');
		if (i % 2)
			rig_hear(child.sock, 'w');
		end_send(&e, i, 0, 64);
		EXPECT_OK(e.scq, i);
		if (!(i % 2))
			rig_hear(child.sock, 'w');
		rig_hear(child.sock, 'g');
	}
	rig_say(child.sock, 'e');
	rig_join(&child);
	end_destroy(&e);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_messages),         RIG_TEST(test_answers),
		RIG_TEST(test_timer_of_another), RIG_TEST(test_thread_comes_back),
		RIG_TEST(test_sleeper_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
