/* The peer vanishes, or only seems to. */
#include <signal.h>
#include <sys/wait.h>
#include "rig.h"

#define BIG (32 << 20)

static struct rig_opts impatient(void)
{
	struct rig_opts o = rig_defaults();

	o.timeout = 10; /* 4 ms, twice: the device waits half a second at least */
	o.retry_cnt = 1;
	return o;
}

/* The other process: connects, then does what its order says. */
enum order { IDLE, NO_RECEIVES, DESTROY, RECEIVE_AND_EXIT, RECEIVE_AND_ABANDON };

struct plan {
	enum order order;
	size_t buf_len;
};

static void peer(int sock, void *arg)
{
	const struct plan *plan = arg;
	struct rig_opts o = rig_defaults();
	struct rig r;
	struct end e;

	o.buf_len = plan->buf_len ? plan->buf_len : 65536;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_meet(&e, sock);
	if (plan->order != NO_RECEIVES)
		for (uint64_t i = 0; i < 8; i++)
			end_recv(&e, i, 0, 4096);
	rig_say(sock, 'R');
	switch (plan->order) {
	case DESTROY:
		rig_hear(sock, 'D');
		end_destroy(&e);
		rig_say(sock, 'D');
		break;
	case RECEIVE_AND_EXIT:
		EXPECT_OK(e.rcq, 0);
		exit(0); /* without a word, but through the exit handlers */
	case RECEIVE_AND_ABANDON:
		EXPECT_OK(e.rcq, 0);
		_exit(0); /* not even through these */
	default:
		break;
	}
	for (;;)
		pause();
}

static void start(struct rig_proc *proc, struct rig *r, struct end *e, struct plan *plan,
		  struct rig_opts *o)
{
	rig_spawn(proc, peer, plan);
	rig_open(r);
	end_make(e, r, o);
	end_meet(e, proc->sock);
	for (uint64_t i = 0; i < 4; i++)
		end_recv(e, 500 + i, 0, 64);
	rig_hear(proc->sock, 'R');
	end_write(e, 400, 0, 8, 0); /* from here on the connection is there */
	EXPECT_OK(e->scq, 400);
}

/* The oldest fails for the lack of an answer, the rest is flushed, all receives too,
 * and not before. */
static void expect_retry_exc(struct end *e, uint64_t first, unsigned int n, uint64_t since)
{
	uint64_t took;

	CHECK_EQ(end_query(e), IBV_QPS_RTS);
	EXPECT(e->scq, first, IBV_WC_RETRY_EXC_ERR);
	took = rig_now_ms() - since;
	CHECK(took >= 300 && took < 5000);
	expect_run(e->scq, first + 1, n - 1, IBV_WC_WR_FLUSH_ERR);
	expect_run(e->rcq, 500, 4, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(end_query(e), IBV_QPS_ERR);
	expect_none(e->scq, 5);
}

static void test_killed_idle(void **state)
{
	struct rig_opts o = impatient();
	struct plan plan = {IDLE, 0};
	struct rig_proc proc;
	uint64_t since;
	struct rig r;
	struct end e;

	(void)state;
	start(&proc, &r, &e, &plan, &o);
	end_send(&e, 1, 0, 64);
	EXPECT_OK(e.scq, 1);
	rig_kill(&proc);
	/* A peer that is gone is no error as long as nothing is asked of it. */
	expect_none(e.rcq, 700);
	CHECK_EQ(end_query(&e), IBV_QPS_RTS);
	since = rig_now_ms();
	for (uint64_t i = 0; i < 3; i++)
		end_send(&e, 10 + i, 0, 64);
	expect_retry_exc(&e, 10, 3, since);
	end_destroy(&e);
	rig_close(&r);
}

static void test_killed_with_sends(void **state)
{
	struct rig_opts o = impatient();
	struct plan plan = {NO_RECEIVES, 0};
	struct rig_proc proc;
	uint64_t since;
	struct rig r;
	struct end e;

	(void)state;
	start(&proc, &r, &e, &plan, &o);
	end_write(&e, 9, 0, 64, 0);
	for (uint64_t i = 0; i < 20; i++)
		end_send(&e, 10 + i, 0, 64);
	EXPECT_OK(e.scq, 9);
	expect_none(e.scq, 50);
	since = rig_now_ms();
	rig_kill(&proc);
	expect_retry_exc(&e, 10, 20, since);
	end_destroy(&e);
	rig_close(&r);
}

static void test_killed_in_write(void **state)
{
	struct rig_opts o = impatient();
	struct plan plan = {IDLE, BIG};
	struct rig_proc proc;
	uint64_t since;
	struct rig r;
	struct end e;

	(void)state;
	o.buf_len = BIG;
	start(&proc, &r, &e, &plan, &o);
	CHECK_0(kill(proc.pid, SIGSTOP));
	end_write(&e, 10, 0, BIG, 0);
	end_write(&e, 11, 0, BIG, 0);
	expect_none(e.scq, 100);
	since = rig_now_ms();
	rig_kill(&proc);
	expect_retry_exc(&e, 10, 2, since);
	end_destroy(&e);
	rig_close(&r);
}

static void test_killed_in_read(void **state)
{
	struct rig_opts o = impatient();
	struct plan plan = {IDLE, BIG};
	struct rig_proc proc;
	uint64_t since;
	struct rig r;
	struct end e;

	(void)state;
	o.buf_len = BIG;
	start(&proc, &r, &e, &plan, &o);
	CHECK_0(kill(proc.pid, SIGSTOP));
	end_read(&e, 10, 0, 64, 0);
	end_read(&e, 11, 0, BIG, 0);
	end_read(&e, 12, 0, 64, 0);
	CHECK_0(kill(proc.pid, SIGCONT));
	EXPECT_OK(e.scq, 10);
	/* it has begun to answer the second one, or is about to */
	CHECK_0(kill(proc.pid, SIGSTOP));
	expect_none(e.scq, 20);
	since = rig_now_ms();
	rig_kill(&proc);
	expect_retry_exc(&e, 11, 2, since);
	end_destroy(&e);
	rig_close(&r);
}

static void test_destroyed(void **state)
{
	struct rig_opts o = impatient();
	struct plan plan = {DESTROY, 0};
	struct rig_proc proc;
	uint64_t since;
	struct rig r;
	struct end e;

	(void)state;
	start(&proc, &r, &e, &plan, &o);
	end_send(&e, 1, 0, 64);
	EXPECT_OK(e.scq, 1);
	rig_say(proc.sock, 'D');
	rig_hear(proc.sock, 'D');
	expect_none(e.rcq, 100);
	CHECK_EQ(end_query(&e), IBV_QPS_RTS);
	since = rig_now_ms();
	end_read(&e, 10, 0, 64, 0);
	end_write(&e, 11, 0, 64, 0);
	expect_retry_exc(&e, 10, 2, since);
	rig_kill(&proc);
	end_destroy(&e);
	rig_close(&r);
}

/* A receiver that ends right after its receive has still acknowledged it. */
static void ends_at_once(enum order order)
{
	struct rig_opts o = impatient();
	struct plan plan = {order, 0};
	struct rig_proc proc;
	struct rig r;
	struct end e;

	start(&proc, &r, &e, &plan, &o);
	end_send(&e, 1, 0, 64);
	rig_join(&proc);
	EXPECT_OK(e.scq, 1);
	end_destroy(&e);
	rig_close(&r);
}

static void test_exits(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		ends_at_once(RECEIVE_AND_EXIT);
}

static void test_never_there(void **state)
{
	struct rig_opts o = impatient();
	struct rig_addr nobody;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	/* once as the one that connects, once as the one that waits */
	for (int i = 0; i < 2; i++) {
		uint64_t since;

		end_make(&e, &r, &o);
		nobody = end_addr(&e);
		nobody.qpn = i ? 0x000105 : 0xfffe05;
		end_up(&e, &nobody);
		for (uint64_t k = 0; k < 4; k++)
			end_recv(&e, 500 + k, 0, 64);
		since = rig_now_ms();
		end_send(&e, 1, 0, 64);
		end_send(&e, 2, 0, 64);
		expect_retry_exc(&e, 1, 2, since);
		end_destroy(&e);
	}
	rig_close(&r);
}

/* The time is that of the attributes: 67 ms x 8 is not 4 ms x 2. */
static void test_patience(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr nobody;
	struct rig r;
	struct end e;
	uint64_t since;

	(void)state;
	o.timeout = 17; /* 537 ms */
	o.retry_cnt = 2;
	rig_open(&r);
	end_make(&e, &r, &o);
	nobody = end_addr(&e);
	nobody.qpn = 0x000105;
	end_up(&e, &nobody);
	since = rig_now_ms();
	end_send(&e, 1, 0, 64);
	expect_none(e.scq, 1200);
	EXPECT(e.scq, 1, IBV_WC_RETRY_EXC_ERR);
	CHECK(rig_now_ms() - since < 6000);
	end_destroy(&e);
	rig_close(&r);
}

/* Stopped in a debugger, swapped out, or just slow: its adapter is alive. */
static void test_stopped(void **state)
{
	struct rig_opts o = impatient();
	struct plan plan = {IDLE, BIG};
	struct rig_proc proc;
	struct rig r;
	struct end e;

	(void)state;
	o.timeout = 1;
	o.retry_cnt = 0;
	o.buf_len = BIG;
	start(&proc, &r, &e, &plan, &o);
	CHECK_0(kill(proc.pid, SIGSTOP));
	CHECK_EQ(waitpid(proc.pid, NULL, WUNTRACED), proc.pid); /* all its threads stand still */
	end_read(&e, 1, 0, 64, 0);
	end_write(&e, 2, 0, BIG, 0);
	end_read(&e, 3, 0, BIG, 0);
	end_send(&e, 4, 0, 64);
	expect_none(e.scq, 1000);
	sleep(1); /* nor while nobody polls */
	CHECK_0(kill(proc.pid, SIGCONT));
	expect_run(e.scq, 1, 4, IBV_WC_SUCCESS);
	rig_kill(&proc);
	end_destroy(&e);
	rig_close(&r);
}

/* UC does not know whether anybody is there. */
static void test_uc(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.type = IBV_QPT_UC;
	pair_open(&p, &o);
	end_recv(&p.b, 1, 0, 64);
	end_recv(&p.a, 2, 0, 64);
	end_send(&p.a, 1, 0, 64);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 1);
	end_destroy(&p.b);
	rig_sleep_ms(20);
	for (uint64_t i = 0; i < 30; i++)
		end_send(&p.a, 10 + i, 0, 64);
	expect_run(p.a.scq, 10, 30, IBV_WC_SUCCESS);
	expect_none(p.a.rcq, 5);
	CHECK_EQ(end_query(&p.a), IBV_QPS_RTS);
	end_destroy(&p.a);
	rig_close(&p.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_killed_idle),     RIG_TEST(test_killed_with_sends),
		RIG_TEST(test_killed_in_write), RIG_TEST(test_killed_in_read),
		RIG_TEST(test_destroyed),       RIG_TEST(test_exits),
		RIG_TEST(test_never_there),     RIG_TEST(test_patience),
		RIG_TEST(test_stopped),         RIG_TEST(test_uc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
