/* Waiting: with and without descriptors, woken by messages, by threads and by signals. */
#include "ofi_node.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "util_clock.h"

/* How much of a wait may be spent looking. With ThreadSanitizer a look takes ten times as long, a
 * sleep does not. */
#ifdef __SANITIZE_THREAD__
#define AWAKE_PERCENT 90
#else
#define AWAKE_PERCENT 50
#endif

static struct node a, b;

static uint64_t cpu_ns(void)
{
	return util_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Sends after a while, from a thread of its own. */
struct later {
	pthread_t thread;
	struct fid_ep *ep;
	struct fid_cq *cq, *signal;
	useconds_t us;
};

static void *send_later(void *arg)
{
	struct later *l = arg;

	usleep(l->us);
	if (l->signal)
		assert_int_equal(fi_cq_signal(l->signal), 0);
	else
		while (fi_tinject(l->ep, "hello", 6, 1, 3) == -FI_EAGAIN)
			fi_cq_read(l->cq, NULL, 0);
	return NULL;
}

static void start_later(struct later *l, struct fid_cq *signal)
{
	*l = (struct later){.ep = a.ep, .cq = a.tx, .signal = signal, .us = 50000};
	OK(pthread_create(&l->thread, NULL, send_later, l));
}

static void test_sread(void **state)
{
	struct node_conf conf = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cq_tagged_entry e;
	struct later l;
	uint64_t start, cpu;
	char buf[10];

	(void)state;
	pair_open(&a, &b, &conf);
	start = util_now_ns();
	assert_int_equal(fi_cq_sread(b.rx, &e, 1, NULL, 30), -FI_EAGAIN);
	assert_true(util_now_ns() - start >= 29 * UTIL_NS_PER_MS);
	assert_int_equal(fi_cq_sread(b.rx, &e, 1, NULL, 0), -FI_EAGAIN);
	OK(fi_trecv(b.ep, buf, 10, NULL, 0, 3, 0, NULL));
	for (int i = 0; i < 3; i++) {
		cpu = cpu_ns();
		start_later(&l, NULL);
		assert_int_equal(fi_cq_sread(b.rx, &e, 1, NULL, i ? 10000 : -1), 1);
		assert_string_equal(buf, "hello");
		assert_true(cpu_ns() - cpu < 25 * UTIL_NS_PER_MS); /* it slept */
		OK(pthread_join(l.thread, NULL));
		OK(fi_trecv(b.ep, buf, 10, NULL, 0, 3, 0, NULL));
	}
	/* woken for nothing */
	start_later(&l, b.rx);
	start = util_now_ns();
	assert_int_equal(fi_cq_sread(b.rx, &e, 1, NULL, 10000), -FI_EAGAIN);
	assert_true(util_now_ns() - start < 5 * UTIL_NS_PER_S);
	OK(pthread_join(l.thread, NULL));
	/* a signal before the wait counts, too, and once */
	OK(fi_cq_signal(b.rx));
	assert_int_equal(fi_cq_sread(b.rx, &e, 1, NULL, 10000), -FI_EAGAIN);
	start = util_now_ns();
	assert_int_equal(fi_cq_sread(b.rx, &e, 1, NULL, 20), -FI_EAGAIN);
	assert_true(util_now_ns() - start >= 19 * UTIL_NS_PER_MS);
	pair_close(&a, &b);
}

static void test_descriptor(void **state)
{
	struct node_conf conf = {.wait_obj = FI_WAIT_FD};
	struct fi_cq_tagged_entry e;
	struct fid *fids[1];
	enum fi_wait_obj obj;
	struct later l;
	char buf[10];

	(void)state;
	pair_open(&a, &b, &conf);
	fids[0] = &b.rx->fid;
	OK(fi_control(&b.rx->fid, FI_GETWAITOBJ, &obj));
	assert_int_equal(obj, FI_WAIT_FD);
	for (int i = 0; i < 10; i++) {
		struct pollfd p = {.events = POLLIN};
		ssize_t n = -FI_EAGAIN;

		OK(fi_trecv(b.ep, buf, 10, NULL, 0, 3, 0, NULL));
		OK(fi_control(&b.rx->fid, FI_GETWAIT, &p.fd));
		l.us = 0;
		start_later(&l, NULL);
		for (int k = 0; n == -FI_EAGAIN; k++) {
			assert_true(k < 1000);
			if (!fi_trywait(b.fabric, fids, 1))
				assert_int_equal(poll(&p, 1, 10000), 1);
			n = fi_cq_read(b.rx, &e, 1);
		}
		assert_int_equal(n, 1);
		OK(pthread_join(l.thread, NULL));
	}
	/* a completion that nobody has read: no sleep */
	OK(fi_trecv(b.ep, buf, 10, NULL, 0, 3, 0, NULL));
	start_later(&l, NULL);
	OK(pthread_join(l.thread, NULL));
	for (int k = 0; fi_trywait(b.fabric, fids, 1) != -FI_EAGAIN || k < 5; k++)
		node_drive(&b);
	assert_int_equal(fi_cq_read(b.rx, &e, 1), 1);
	pair_close(&a, &b);
}

/* What one thread handles wakes the other, who sleeps for it. */
static void *drive(void *arg)
{
	atomic_bool *stop = arg;

	while (!atomic_load(stop)) {
		fi_cq_read(b.tx, NULL, 0); /* the same endpoint, another queue */
		fi_cq_read(a.tx, NULL, 0);
	}
	return NULL;
}

static void test_other_thread(void **state)
{
	struct node_conf conf = {.wait_obj = FI_WAIT_FD};
	atomic_bool stop = false;
	struct fi_cq_tagged_entry e;
	pthread_t t;
	char buf[10];

	(void)state;
	pair_open(&a, &b, &conf);
	OK(pthread_create(&t, NULL, drive, &stop));
	for (int i = 0; i < 300; i++) {
		OK(fi_trecv(b.ep, buf, 10, NULL, 0, 3, 0, NULL));
		while (fi_tinject(a.ep, "x", 2, 1, 3) == -FI_EAGAIN)
			;
		assert_int_equal(fi_cq_sread(b.rx, &e, 1, NULL, 10000), 1);
	}
	atomic_store(&stop, true);
	OK(pthread_join(t, NULL));
	pair_close(&a, &b);
}

static void test_counter(void **state)
{
	struct node_conf conf = {.cntr = true};
	struct later l;
	uint64_t start = util_now_ns(), cpu;
	char buf[10];

	(void)state;
	pair_open(&a, &b, &conf);
	assert_int_equal(fi_cntr_wait(b.cntr, 1, 30), -FI_ETIMEDOUT);
	assert_true(util_now_ns() - start >= 29 * UTIL_NS_PER_MS);
	OK(fi_cntr_wait(b.cntr, 0, 30));
	OK(fi_trecv(b.ep, buf, 10, NULL, 0, 3, 0, NULL));
	cpu = cpu_ns();
	start_later(&l, NULL);
	OK(fi_cntr_wait(b.cntr, 1, -1));
	assert_true(cpu_ns() - cpu < 25 * UTIL_NS_PER_MS);
	OK(pthread_join(l.thread, NULL));
	/* an error ends it */
	OK(fi_trecv(b.ep, buf, 2, NULL, 0, 3, 0, NULL));
	start_later(&l, NULL);
	assert_int_equal(fi_cntr_wait(b.cntr, 2, 10000), -FI_EAVAIL);
	OK(pthread_join(l.thread, NULL));
	pair_close(&a, &b);
}

/* A program that does nothing but read an empty queue costs little, after a while, and is told at
 * once when something comes. FI_WEFT_SPIN and _YIELD are set in main. */
static void test_polling_sleeps(void **state)
{
	struct node_conf conf = {0};
	struct fi_cq_tagged_entry e;
	uint64_t cpu, start;
	struct later l;
	char buf[10];
	ssize_t n;

	(void)state;
	pair_open(&a, &b, &conf);
	OK(fi_trecv(b.ep, buf, 10, NULL, 0, 3, 0, NULL));
	start_later(&l, NULL);
	cpu = cpu_ns();
	start = util_now_ns();
	while ((n = fi_cq_read(b.rx, &e, 1)) == -FI_EAGAIN)
		assert_true(util_now_ns() - start < 10 * UTIL_NS_PER_S);
	assert_int_equal(n, 1);
	print_message("%.1f ms of CPU time in %.1f ms\n", (double)(cpu_ns() - cpu) / 1e6,
		      (double)(util_now_ns() - start) / 1e6);
	assert_true((cpu_ns() - cpu) * 100 < (util_now_ns() - start) * AWAKE_PERCENT);
	OK(pthread_join(l.thread, NULL));
	pair_close(&a, &b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sread),          cmocka_unit_test(test_descriptor),
		cmocka_unit_test(test_other_thread),   cmocka_unit_test(test_counter),
		cmocka_unit_test(test_polling_sleeps),
	};

	setenv("FI_WEFT_SPIN", "50", 1);
	setenv("FI_WEFT_YIELD", "50", 1);
	return node_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
