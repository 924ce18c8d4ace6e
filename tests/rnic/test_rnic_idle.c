/* Nothing to do costs nothing: the progress thread sleeps, and is not woken; pollers sleep where
 * they would only get in each other's way. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include "peer.h"

struct usage {
	uint64_t ns, switches;
};

static bool read_line(const char *path, const char *key, char *buf, size_t len)
{
	FILE *f = fopen(path, "r");
	bool got = false;

	while (f && !got && fgets(buf, (int)len, f))
		got = !strncmp(buf, key, strlen(key));
	if (f)
		fclose(f);
	return got;
}

/* What the thread has used so far; found by its name. */
static struct usage progress_thread(void)
{
	struct usage u = {0};
	DIR *dir = opendir("/proc/self/task");
	struct dirent *d;
	bool found = false;

	CHECK(dir);
	while ((d = readdir(dir))) {
		char path[300], line[256];

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", d->d_name);
		if (d->d_name[0] == '.' || !read_line(path, "weft-progress", line, sizeof(line)))
			continue;
		found = true;
		snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", d->d_name);
		CHECK(read_line(path, "", line, sizeof(line)));
		u.ns += strtoull(line, NULL, 10);
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", d->d_name);
		CHECK(read_line(path, "voluntary_ctxt_switches", line, sizeof(line)));
		u.switches += strtoull(strchr(line, ':') + 1, NULL, 10);
	}
	closedir(dir);
	CHECK(found);
	return u;
}

static void expect_idle(unsigned int ms, uint64_t max_switches)
{
	struct usage before, after;

	rig_sleep_ms(1200); /* clocks of what was under way run out */
	before = progress_thread();
	rig_sleep_ms(ms);
	after = progress_thread();
	if (after.switches - before.switches > max_switches)
		fprintf(stderr, "woken %llu times\n",
			(unsigned long long)(after.switches - before.switches));
	CHECK(after.switches - before.switches <= max_switches);
	CHECK(after.ns - before.ns <= (max_switches + 1) * RIG_MS);
}

static void exchange(struct end *a, struct end *b, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		end_recv(b, i, 0, 4096);
		end_send(a, i, 0, 4096);
		EXPECT_OK(b->rcq, i);
		EXPECT_OK(a->scq, i);
	}
}

static void test_after_traffic(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr to_a, to_b;
	struct end a[2], b[2], ud;
	struct rig r;

	(void)state;
	rig_open(&r);
	for (int i = 0; i < 2; i++) {
		o.type = i ? IBV_QPT_UC : IBV_QPT_RC;
		end_make(&a[i], &r, &o);
		end_make(&b[i], &r, &o);
		to_a = end_addr(&a[i]);
		to_b = end_addr(&b[i]);
		end_up(&a[i], &to_b);
		end_up(&b[i], &to_a);
		exchange(&a[i], &b[i], 500);
		exchange(&b[i], &a[i], 500);
	}
	o.type = IBV_QPT_UD;
	end_make(&ud, &r, &o);
	end_up(&ud, NULL);
	expect_idle(2000, 0);
	for (int i = 0; i < 2; i++) {
		end_destroy(&a[i]);
		end_destroy(&b[i]);
	}
	end_destroy(&ud);
	rig_close(&r);
}

/* Waiting is not work: for a receive at the peer, for an event, for a peer that has
 * connected and is not ready. */
static void test_waiting(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr to_b;
	struct ibv_comp_channel *ch;
	static struct peer half;
	struct end early, late;
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	ch = rnic_create_comp_channel(p.rig.ctx);
	CHECK(ch);
	end_send(&p.a, 1, 0, 64); /* nobody has a receive for it */
	expect_none(p.a.scq, 20);
	CHECK_0(ibv_req_notify_cq(p.b.scq, 0));
	end_make(&early, &p.rig, &o);
	end_make(&late, &p.rig, &o);
	end_init(&late);
	to_b = end_addr(&late);
	end_up(&early, &to_b); /* is held */
	peer_dial(&half, (uint16_t)(early.qp->qp_num >> 8));
	peer_write(&half, "MPA ID", 6); /* half a sentence */
	expect_idle(2000, 8); /* who waits for a receive looks whether the peer is alive */
	peer_hang_up(&half);
	end_destroy(&early);
	end_destroy(&late);
	CHECK_0(rnic_destroy_comp_channel(ch));
	pair_close(&p);
}

/* A peer that is not there is tried again, but not all the time. */
static void test_absent_peer(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr nobody;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	end_make(&e, &r, &o);
	nobody = end_addr(&e);
	nobody.qpn = 0xfffe05;
	end_up(&e, &nobody);
	rig_sleep_ms(1000); /* the pauses grow to a second */
	expect_idle(2000, 12);
	end_destroy(&e);
	rig_close(&r);
}

/* A peer of whom the last word is awaited: lingering connections are not polled. */
static void test_lingering(void **state)
{
	static struct peer p;
	struct usage before, after;
	struct court c;

	(void)state;
	court_open(&c);
	court_victim(&c);
	peer_meet(&p, &c.victim);
	rig_sleep_ms(50);
	CHECK_0(end_state(&c.victim, IBV_QPS_ERR)); /* and we do not close */
	rig_sleep_ms(50);
	before = progress_thread();
	rig_sleep_ms(600);
	after = progress_thread();
	CHECK(after.ns - before.ns < 20 * RIG_MS);
	CHECK(after.switches - before.switches < 10);
	peer_hang_up(&p);
	court_check(&c);
	court_dismiss(&c);
	court_close(&c);
}

/* ---- several pollers ---- */

enum { POLLERS = 3, POLLED_MS = 500 };

/* A library with a lock of its own, as MPICH is. */
struct library {
	pthread_mutex_t lock;
	struct ibv_cq *cq;
	uint64_t end;
	_Atomic uint64_t cpu_ns;
};

static void *poll_with_lock(void *arg)
{
	struct library *l = arg;
	struct ibv_wc wc;

	while (rig_now_ms() < l->end) {
		pthread_mutex_lock(&l->lock);
		CHECK(ibv_poll_cq(l->cq, 1, &wc) == 0);
		pthread_mutex_unlock(&l->lock);
	}
	l->cpu_ns += util_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static void one_core(cpu_set_t *before)
{
	cpu_set_t one;
	int cpu = 0;

	CHECK_0(sched_getaffinity(0, sizeof(*before), before));
	while (!CPU_ISSET(cpu, before))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	CHECK_0(sched_setaffinity(0, sizeof(one), &one));
}

/* They wait in turns for the same lock, on one core: who yields it with the lock in its hands only
 * makes the next one see that it is taken. So they leave most of the core to others. */
static void test_several_pollers(void **state)
{
	struct library l = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct rig_opts o = rig_defaults();
	pthread_t t[POLLERS];
	cpu_set_t before;
	struct rig r;
	struct end e;

	(void)state;
	one_core(&before);
	o.type = IBV_QPT_UD;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_up(&e, NULL);
	l.cq = e.scq;
	l.end = rig_now_ms() + POLLED_MS;
	for (int i = 0; i < POLLERS; i++)
		CHECK_0(pthread_create(&t[i], NULL, poll_with_lock, &l));
	for (int i = 0; i < POLLERS; i++)
		CHECK_0(pthread_join(t[i], NULL));
	if (l.cpu_ns > POLLED_MS / 2 * RIG_MS)
		fprintf(stderr, "used %llu of %d ms\n", (unsigned long long)(l.cpu_ns / RIG_MS),
			POLLED_MS);
	CHECK(l.cpu_ns <= POLLED_MS / 2 * RIG_MS);
	end_destroy(&e);
	rig_close(&r);
	CHECK_0(sched_setaffinity(0, sizeof(before), &before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_after_traffic),   RIG_TEST(test_waiting),
		RIG_TEST(test_absent_peer),     RIG_TEST(test_lingering),
		RIG_TEST(test_several_pollers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
