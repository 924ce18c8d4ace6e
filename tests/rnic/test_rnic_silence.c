/* A machine that vanishes: no FIN, no reset, just silence. Two network namespaces with a
 * cable between them, which is pulled. Needs the right to make namespaces; skipped
 * without. */
#include <sched.h>
#include <sys/socket.h>
#include "rig.h"

#define HERE  "10.254.77.1"
#define THERE "10.254.77.2"

static int run(const char *fmt, ...)
{
	char cmd[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(cmd, sizeof(cmd), fmt, ap);
	va_end(ap);
	return system(cmd);
}

/* ---- the two sides ---- */

struct plan {
	enum ibv_qp_type type;
	uint8_t timeout, retry_cnt;
	void (*act)(struct end *e, int sock);
};

/* Waits for its cable in a namespace of its own. */
static bool enter_namespace(int sock, const char *dev, const char *addr)
{
	if (unshare(CLONE_NEWNET)) {
		rig_say(sock, 'N');
		return false;
	}
	rig_say(sock, 'Y');
	rig_hear(sock, 'C');
	CHECK_0(run("ip addr add %s/24 dev %s && ip link set %s up && ip link set lo up", addr, dev,
		    dev));
	setenv("WEFT_ADDR", addr, 1);
	rig_say(sock, 'U');
	rig_hear(sock, 'G');
	return true;
}

static void here(int sock, void *arg)
{
	const struct plan *plan = arg;
	struct rig_opts o = rig_defaults();
	struct rig r;
	struct end e;

	if (!enter_namespace(sock, "wefta", HERE))
		return;
	o.type = plan->type;
	o.timeout = plan->timeout;
	o.retry_cnt = plan->retry_cnt;
	o.buf_len = 8 << 20;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_meet(&e, sock);
	end_write(&e, 1, 0, 64, 0);
	EXPECT_OK(e.scq, 1);
	plan->act(&e, sock);
	end_destroy(&e);
	rig_close(&r);
}

static void there(int sock, void *arg)
{
	const struct plan *plan = arg;
	struct rig_opts o = rig_defaults();
	struct rig r;
	struct end e;
	char c;

	if (!enter_namespace(sock, "weftb", THERE))
		return;
	o.type = plan->type;
	o.buf_len = 8 << 20;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_meet(&e, sock);
	for (;;) {
		rig_get(sock, &c, 1);
		if (c == 'D')
			CHECK_0(run("ip link set weftb down"));
		else if (c == 'U')
			CHECK_0(run("ip link set weftb up"));
		else
			break;
		rig_say(sock, c);
	}
	_exit(0); /* without a word: nobody would hear it */
}

/* ---- between them ---- */

/* Passes on what the two say to each other; what `here` says about the cable goes to
 * `there`, which pulls it. */
static void relay(struct rig_proc *a, struct rig_proc *b, size_t len)
{
	uint8_t buf[256];

	rig_get(a->sock, buf, len);
	rig_put(b->sock, buf, len);
}

static bool both(struct rig_proc *a, struct rig_proc *b, char say, char want)
{
	char got[2];

	if (say) {
		rig_say(a->sock, say);
		rig_say(b->sock, say);
	}
	rig_get(a->sock, &got[0], 1);
	rig_get(b->sock, &got[1], 1);
	return got[0] == want && got[1] == want;
}

static void play(struct plan *plan)
{
	struct rig_proc a, b;
	char c;

	rig_spawn(&a, here, plan);
	rig_spawn(&b, there, plan);
	if (!both(&a, &b, 0, 'Y') ||
	    run("ip link add wefta netns %d type veth peer name weftb netns %d 2>/dev/null",
		(int)a.pid, (int)b.pid)) {
		rig_kill(&a);
		rig_kill(&b);
		skip();
	}
	CHECK(both(&a, &b, 'C', 'U'));
	rig_say(a.sock, 'G');
	rig_say(b.sock, 'G');
	relay(&a, &b, sizeof(struct rig_addr));
	relay(&b, &a, sizeof(struct rig_addr));
	relay(&a, &b, 1);
	relay(&b, &a, 1);
	while (recv(a.sock, &c, 1, 0) == 1) {
		rig_say(b.sock, c);
		rig_hear(b.sock, c);
		rig_say(a.sock, c);
	}
	rig_join(&a);
	rig_kill(&b);
}

/* ---- what happens ---- */

static void pull(int sock)
{
	rig_say(sock, 'D');
	rig_hear(sock, 'D');
}

static void plug(int sock)
{
	rig_say(sock, 'U');
	rig_hear(sock, 'U');
}

static void gives_up(struct end *e, uint64_t first, unsigned int n)
{
	uint64_t since = rig_now_ms();

	EXPECT(e->scq, first, IBV_WC_RETRY_EXC_ERR);
	CHECK(rig_now_ms() - since < 8000);
	expect_run(e->scq, first + 1, n - 1, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(end_query(e), IBV_QPS_ERR);
}

static void idle_then_send(struct end *e, int sock)
{
	pull(sock);
	expect_none(e->scq, 100);
	end_write(e, 10, 0, 64, 0);
	end_read(e, 11, 0, 64, 0);
	gives_up(e, 10, 2);
}

static void in_the_middle(struct end *e, int sock)
{
	for (uint64_t i = 0; i < 20; i++)
		end_write(e, 10 + i, 0, 8 << 20, 0);
	EXPECT_OK(e->scq, 10);
	pull(sock);
	for (uint64_t next = 11;; next++) {
		struct ibv_wc wc = {0};

		CHECK(wait_wc(e->scq, &wc, RIG_WAIT));
		CHECK_EQ(wc.wr_id, next);
		if (wc.status == IBV_WC_SUCCESS)
			continue;
		CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
		expect_run(e->scq, next + 1, (unsigned int)(29 - next), IBV_WC_WR_FLUSH_ERR);
		break;
	}
}

/* It was told to wait for a receive, for ever if need be; but not for nobody. */
static void while_waiting(struct end *e, int sock)
{
	end_send(e, 10, 0, 64);
	end_send(e, 11, 0, 64);
	expect_none(e->scq, 100);
	pull(sock);
	gives_up(e, 10, 2);
}

static void short_outage(struct end *e, int sock)
{
	pull(sock);
	end_write(e, 10, 0, 1 << 20, 0);
	end_read(e, 11, 0, 1 << 20, 0);
	expect_none(e->scq, 500);
	plug(sock);
	expect_run(e->scq, 10, 2, IBV_WC_SUCCESS);
	CHECK_EQ(end_query(e), IBV_QPS_RTS);
}

/* Nobody there, or everybody: UC does not care. */
static void unreliable(struct end *e, int sock)
{
	pull(sock);
	for (uint64_t i = 0; i < 10; i++)
		end_send(e, 10 + i, 0, 4 << 20);
	for (uint64_t i = 0; i < 10; i++) {
		struct ibv_wc wc = {0};

		CHECK(wait_wc(e->scq, &wc, 20000));
		CHECK_EQ(wc.wr_id, 10 + i);
		CHECK_EQ(wc.status, IBV_WC_SUCCESS);
	}
	end_send(e, 30, 0, 64);
	EXPECT_OK(e->scq, 30);
}

static void test_idle(void **state)
{
	(void)state;
	play(&(struct plan){IBV_QPT_RC, 10, 1, idle_then_send});
}

static void test_in_the_middle(void **state)
{
	(void)state;
	play(&(struct plan){IBV_QPT_RC, 10, 1, in_the_middle});
}

static void test_while_waiting(void **state)
{
	(void)state;
	play(&(struct plan){IBV_QPT_RC, 10, 1, while_waiting});
}

static void test_short_outage(void **state)
{
	(void)state;
	play(&(struct plan){IBV_QPT_RC, 18, 7, short_outage});
}

static void test_unreliable(void **state)
{
	(void)state;
	play(&(struct plan){IBV_QPT_UC, 0, 0, unreliable});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_idle),          RIG_TEST(test_in_the_middle),
		RIG_TEST(test_while_waiting), RIG_TEST(test_short_outage),
		RIG_TEST(test_unreliable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
