/* The monitor and the cache over it, with the kernel's userfaultfd. The device of these tests pins
 * pages, as hardware does: the first word of each is put into a pipe (vmsplice), and what can be
 * read there is what a device would send. So a registration that has outlived its memory is seen
 * by the data. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "msg_cache.h"
#include "util_clock.h"
#include "util_rand.h"

#define PAGE  ((size_t)4096)
#define WORDS 16 /* that a pipe takes */

/* Device. */

struct mr {
	struct msg_span s;
	size_t step; /* between the pages that are looked at */
	int n;
	int pipe[2];
};

static atomic_int n_live;

static void dev_dereg(void *arg, void *p)
{
	struct mr *mr = p;

	(void)arg;
	close(mr->pipe[0]);
	close(mr->pipe[1]);
	free(mr);
	atomic_fetch_sub(&n_live, 1);
}

/* For what runs in threads, too. */
static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	abort();
}

/* A neighbour's part of the range may be unmapped meanwhile. */
static int pin(struct mr *mr)
{
	struct iovec iov[WORDS];

	/* A device that may write has pages made that can be written to. */
	if (madvise((void *)mr->s.start, mr->s.end - mr->s.start, MADV_POPULATE_WRITE))
		return -EFAULT;
	for (uintptr_t p = mr->s.start; p < mr->s.end; p += mr->step)
		iov[mr->n++] = (struct iovec){(void *)p, 8};
	return vmsplice(mr->pipe[1], iov, (size_t)mr->n, 0) == mr->n * 8 ? 0 : -EFAULT;
}

static int dev_reg(void *arg, struct msg_span s, void **out)
{
	size_t pages = (s.end - s.start) / PAGE;
	struct mr *mr = malloc(sizeof(*mr));

	(void)arg;
	*mr = (struct mr){.s = s, .step = (pages + WORDS - 1) / WORDS * PAGE};
	must(!pipe2(mr->pipe, O_CLOEXEC), "pipe2");
	atomic_fetch_add(&n_live, 1);
	if (pin(mr)) {
		dev_dereg(NULL, mr);
		return -EFAULT;
	}
	*out = mr;
	return 0;
}

static const struct msg_reg_ops dev_ops = {.reg = dev_reg, .dereg = dev_dereg};

/* Whether the device sees what the application sees in [p, p + len). */
static bool same(const struct msg_region *r, const void *p, size_t len)
{
	const struct mr *mr = r->mr;
	uint64_t seen[WORDS];
	bool ok = true;
	int copy[2];

	must(!pipe2(copy, O_CLOEXEC), "pipe2");
	must(tee(mr->pipe[0], copy[1], sizeof(seen), 0) == mr->n * 8, "tee");
	must(read(copy[0], seen, sizeof(seen)) == mr->n * 8, "read");
	for (int i = 0; i < mr->n; i++) {
		const char *at = (const char *)mr->s.start + (size_t)i * mr->step;

		if (at >= (const char *)p && at < (const char *)p + len)
			ok = ok && *(const uint64_t *)at == seen[i];
	}
	close(copy[0]);
	close(copy[1]);
	return ok;
}

/* Memory. */

static void fill(void *p, size_t len)
{
	static _Atomic(uint64_t) id = 1;

	for (size_t i = 0; i < len; i += PAGE)
		*(uint64_t *)((char *)p + i) = atomic_fetch_add(&id, 1);
}

/* At `at`, which must be free, or wherever. */
static char *map(void *at, size_t len)
{
	void *p = mmap(at, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED_NOREPLACE : 0), -1, 0);

	must(p != MAP_FAILED, "mmap");
	fill(p, len);
	return p;
}

/* Rig. */

struct rig {
	struct msg_watcher w;
	struct msg_cache c;
};

/* Intervals that were told and that the cache has not heard of. */
static int n_told(struct rig *r)
{
	struct msg_span s;
	int n = 0;

	while (msg_monitor_ops.next(&r->w, &s) == 1)
		n++;
	return n;
}

/* The first event: under a sanitizer the reader then maps memory for itself, and that must not be
 * where a test has just unmapped some. */
static void warm_up(struct rig *r)
{
	char *p = map(NULL, PAGE);

	msg_monitor_ops.watch(&r->w, (struct msg_span){(uintptr_t)p, (uintptr_t)p + PAGE});
	munmap(p, PAGE);
	assert_int_equal(n_told(r), 1);
}

static void rig_init_as(struct rig *r, bool exact)
{
	struct msg_cache_conf conf = {.max_regions = 64,
				      .max_bytes = 64 << 20,
				      .page = PAGE,
				      .reg = &dev_ops,
				      .watch = &msg_monitor_ops,
				      .watch_arg = &r->w};
	int err = msg_monitor_join(&r->w, exact);

	if (err) {
		printf("skipped: no userfaultfd here: %s\n", strerror(-err));
		skip();
	}
	msg_cache_init(&r->c, &conf);
	warm_up(r);
}

static void rig_init(struct rig *r)
{
	rig_init_as(r, true);
}

static void rig_free(struct rig *r)
{
	msg_cache_free(&r->c);
	msg_monitor_leave(&r->w);
}

/* Whether it was a hit. The device must see the truth in any case. */
static bool touch(struct rig *r, void *p, size_t len)
{
	uint64_t hits = r->c.stats.hits;
	struct msg_region *reg;

	assert_int_equal(msg_cache_get(&r->c, p, len, &reg), 0);
	assert_true(same(reg, p, len));
	msg_cache_put(&r->c, reg);
	return r->c.stats.hits > hits;
}

/* Tests. */

static void test_unmap(void **state)
{
	struct rig r;
	char *p;

	(void)state;
	rig_init(&r);
	p = map(NULL, 8 * PAGE);
	assert_false(touch(&r, p, 8 * PAGE));
	assert_true(touch(&r, p, 8 * PAGE));
	for (int i = 0; i < 100; i++) {
		munmap(p, 8 * PAGE);
		map(p, 8 * PAGE);
		assert_false(touch(&r, p, 8 * PAGE));
		assert_true(touch(&r, p + PAGE, PAGE));
	}
	assert_int_equal(r.c.stats.invalid, 100);
	assert_int_equal(r.c.stats.passed, 0);
	/* mapped over */
	assert_ptr_equal(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 p + PAGE);
	fill(p, 8 * PAGE);
	assert_false(touch(&r, p, 8 * PAGE));
	munmap(p, 8 * PAGE);
	rig_free(&r);
	assert_int_equal(n_live, 0);
}

static void test_part(void **state)
{
	static const size_t at[] = {0, 3, 7};
	struct rig r;
	char *p;

	(void)state;
	rig_init(&r);
	p = map(NULL, 16 * PAGE);
	for (size_t i = 0; i < 3; i++) {
		touch(&r, p, 8 * PAGE);
		touch(&r, p + 8 * PAGE, 8 * PAGE);
		assert_true(touch(&r, p, 8 * PAGE));
		munmap(p + at[i] * PAGE, PAGE);
		map(p + at[i] * PAGE, PAGE);
		assert_true(touch(&r, p + 8 * PAGE, 8 * PAGE)); /* not concerned */
		assert_false(touch(&r, p, 8 * PAGE));
	}
	munmap(p, 16 * PAGE);
	rig_free(&r);
}

static void test_madvise(void **state)
{
	struct rig r;
	char *p;

	(void)state;
	rig_init(&r);
	p = map(NULL, 8 * PAGE);
	for (int i = 0; i < 20; i++) {
		touch(&r, p, 8 * PAGE);
		assert_true(touch(&r, p, 8 * PAGE));
		madvise(p + 2 * PAGE, PAGE, i & 1 ? MADV_DONTNEED : MADV_FREE);
		fill(p, 8 * PAGE);
		assert_false(touch(&r, p, 8 * PAGE));
	}
	/* What the cache has heard of, and not registered again, costs nothing the next time. */
	madvise(p, PAGE, MADV_DONTNEED);
	touch(&r, p + 4 * PAGE, PAGE);
	madvise(p, PAGE, MADV_DONTNEED);
	assert_int_equal(n_told(&r), 0);
	munmap(p, 8 * PAGE);
	rig_free(&r);
}

static void test_mremap(void **state)
{
	struct rig r;
	char *p, *q;

	(void)state;
	rig_init(&r);
	p = map(NULL, 8 * PAGE);
	q = map(NULL, 32 * PAGE);
	touch(&r, p, 8 * PAGE);
	assert_ptr_equal(mremap(p, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q), q);
	map(p, 8 * PAGE);
	assert_false(touch(&r, p, 8 * PAGE));
	/* The watch that moved along has been taken off; a new one works. */
	madvise(q, PAGE, MADV_DONTNEED);
	assert_int_equal(n_told(&r), 0);
	fill(q, PAGE);
	assert_false(touch(&r, q, 8 * PAGE));
	assert_true(touch(&r, q, 8 * PAGE));
	/* Cut off at the end. */
	assert_ptr_equal(mremap(q, 8 * PAGE, 4 * PAGE, 0), q);
	assert_false(touch(&r, q, 4 * PAGE));
	/* Onto what is registered. */
	assert_ptr_equal(mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q), q);
	assert_false(touch(&r, q, 4 * PAGE));
	munmap(p, 8 * PAGE);
	munmap(q, 32 * PAGE);
	rig_free(&r);
}

/* The allocator unmaps, trims, or keeps, as it likes. */
static void test_heap(void **state)
{
	struct util_rand rand;
	struct rig r;
	char *p[8] = {NULL};

	(void)state;
	util_rand_seed(&rand, 5);
	rig_init(&r);
	for (int i = 0; i < 2000; i++) {
		size_t k = util_rand_below(&rand, 8), len = PAGE << util_rand_below(&rand, 9);
		char *page;

		free(p[k]);
		p[k] = malloc(len + PAGE);
		page = (char *)(((uintptr_t)p[k] + PAGE - 1) & ~(PAGE - 1));
		fill(page, len);
		touch(&r, page, len);
		assert_true(touch(&r, page, len));
	}
	printf("hits %lu misses %lu invalid %lu\n", r.c.stats.hits - 2000, r.c.stats.misses,
	       r.c.stats.invalid);
	for (int i = 0; i < 8; i++)
		free(p[i]);
	rig_free(&r);
}

/* What goes from the cache is watched no more. */
static void test_unwatch(void **state)
{
	struct rig r;
	char *p;

	(void)state;
	rig_init(&r);
	p = map(NULL, 8 * PAGE);
	touch(&r, p, 6 * PAGE);
	touch(&r, p + 4 * PAGE, 4 * PAGE); /* merged */
	munmap(p + 7 * PAGE, PAGE);
	assert_int_equal(n_told(&r), 1);
	msg_cache_flush(&r.c);
	munmap(p, 6 * PAGE);
	assert_int_equal(n_told(&r), 0);
	munmap(p, 8 * PAGE);
	rig_free(&r);
}

static void test_refused(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct rig r;
	void *p;

	(void)state;
	rig_init(&r);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_true(msg_monitor_ops.watch(
			    &r.w, (struct msg_span){(uintptr_t)p, (uintptr_t)p + PAGE}) < 0);
	munmap(p, PAGE);
	close(fd);
	rig_free(&r);
}

static void test_overflow(void **state)
{
	struct rig r;
	char *p, *q;

	(void)state;
	rig_init(&r);
	p = map(NULL, PAGE);
	q = map(NULL, PAGE);
	for (int extra = 0; extra < 2; extra++) {
		touch(&r, p, PAGE);
		touch(&r, q, PAGE);
		for (int i = 0; i < MSG_MONITOR_RING + extra; i++)
			madvise(p, PAGE, MADV_DONTNEED);
		fill(p, PAGE);
		assert_int_equal(touch(&r, q, PAGE), !extra);
		assert_false(touch(&r, p, PAGE));
		assert_true(touch(&r, q, PAGE));
	}
	munmap(p, PAGE);
	munmap(q, PAGE);
	rig_free(&r);
}

static void test_two(void **state)
{
	struct rig a, b;
	char *p;

	(void)state;
	rig_init(&a);
	rig_init(&b);
	p = map(NULL, PAGE);
	touch(&a, p, PAGE);
	touch(&b, p, PAGE);
	msg_cache_flush(&a.c);
	munmap(p, PAGE);
	map(p, PAGE);
	assert_false(touch(&b, p, PAGE));
	assert_false(touch(&a, p, PAGE));
	rig_free(&a);
	munmap(p, PAGE);
	map(p, PAGE);
	assert_false(touch(&b, p, PAGE));
	munmap(p, PAGE);
	rig_free(&b);
	assert_int_equal(n_live, 0);
}

/* Threads. */

struct crowd {
	struct rig r;
	pthread_mutex_t lock; /* of the cache; held by some who unmap */
	uint64_t deadline;
	atomic_ulong stale, rounds;
};

struct member {
	struct crowd *crowd;
	struct util_rand rand;
	pthread_t thread;
};

static void round_of(struct crowd *c, struct util_rand *rand)
{
	size_t len = PAGE * (1 + util_rand_below(rand, 4));
	char *p = map(NULL, len), *q = map(NULL, PAGE);
	struct msg_region *reg;

	pthread_mutex_lock(&c->lock);
	for (int i = 0; i < 2; i++) {
		must(!msg_cache_get(&c->r.c, p, len, &reg), "get");
		pthread_mutex_unlock(&c->lock);
		if (!same(reg, p, len))
			atomic_fetch_add(&c->stale, 1);
		pthread_mutex_lock(&c->lock);
		msg_cache_put(&c->r.c, reg);
	}
	if (util_rand_below(rand, 2)) {
		munmap(p, len); /* with the lock held */
		p = NULL;
	}
	if (util_rand_below(rand, 2)) {
		must(!msg_cache_get(&c->r.c, q, PAGE, &reg), "get");
		munmap(q, PAGE); /* and in use */
		q = NULL;
		msg_cache_put(&c->r.c, reg);
	}
	pthread_mutex_unlock(&c->lock);
	if (p)
		munmap(p, len);
	if (q)
		munmap(q, PAGE);
	atomic_fetch_add(&c->rounds, 1);
}

static void *member(void *arg)
{
	struct member *m = arg;

	while (util_now_ns() < m->crowd->deadline)
		round_of(m->crowd, &m->rand);
	return NULL;
}

static void run_crowd(bool exact, uint64_t ns, unsigned long *stale)
{
	struct crowd c = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct member m[4];

	rig_init_as(&c.r, exact);
	c.deadline = util_now_ns() + ns;
	alarm(60); /* a deadlock ends here */
	for (size_t i = 0; i < 4; i++) {
		m[i].crowd = &c;
		util_rand_seed(&m[i].rand, i);
		assert_int_equal(pthread_create(&m[i].thread, NULL, member, &m[i]), 0);
	}
	for (size_t i = 0; i < 4; i++)
		pthread_join(m[i].thread, NULL);
	alarm(0);
	*stale = c.stale;
	printf("%s: %lu rounds, %lu stale, hits %lu misses %lu passed %lu invalid %lu\n",
	       exact ? "exact" : "not exact", c.rounds, c.stale, c.r.c.stats.hits,
	       c.r.c.stats.misses, c.r.c.stats.passed, c.r.c.stats.invalid);
	rig_free(&c.r);
	assert_int_equal(n_live, 0);
}

static void test_threads(void **state)
{
	unsigned long stale;

	(void)state;
	run_crowd(false, 500 * UTIL_NS_PER_MS, &stale); /* may be stale: no deadlock, that is all */
	run_crowd(true, 1500 * UTIL_NS_PER_MS, &stale);
	assert_int_equal(stale, 0);
}

/* Processes. */

/* 0: all is well. Nothing of the parent's is watched; a monitor of its own can be had. */
static int child(struct rig *r, char *p)
{
	struct msg_region *reg;
	struct msg_span s;
	struct rig own;

	alarm(20);
	if (msg_monitor_ops.next(&r->w, &s) != -ENODEV)
		return 1;
	if (msg_cache_get(&r->c, p, PAGE, &reg) || reg->kept)
		return 2;
	msg_cache_put(&r->c, reg);
	munmap(p, PAGE);
	rig_free(r);
#ifdef __SANITIZE_THREAD__
	return 0; /* it dies when such a child makes threads */
#endif
	rig_init(&own);
	p = map(NULL, PAGE);
	touch(&own, p, PAGE);
	munmap(p, PAGE);
	map(p, PAGE);
	if (touch(&own, p, PAGE) || !touch(&own, p, PAGE))
		return 3;
	munmap(p, PAGE);
	rig_free(&own);
	return 0;
}

static void test_fork(void **state)
{
	struct rig r;
	int status;
	char *p;

	(void)state;
	rig_init(&r);
	p = map(NULL, PAGE);
	touch(&r, p, PAGE);
	for (int i = 0; i < 5; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(child(&r, p));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_true(touch(&r, p, PAGE) || i == 0); /* the child's changes are its own */
		munmap(p, PAGE);
		map(p, PAGE);
		assert_false(touch(&r, p, PAGE));
	}
	munmap(p, PAGE);
	rig_free(&r);
}

/* A child that no handler knows of keeps the descriptor open. After the monitor has gone, nobody
 * may wait for it. */
static void test_clone(void **state)
{
	struct rig r;
	char *p, *q;
	pid_t pid;

	(void)state;
	rig_init(&r);
	p = map(NULL, 4 * PAGE);
	q = map(NULL, 4 * PAGE);
	touch(&r, p, 4 * PAGE);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		nanosleep(&(struct timespec){.tv_sec = 30}, NULL);
		_exit(0);
	}
	assert_ptr_equal(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q), q);
	alarm(20);
	rig_free(&r);
	munmap(p, 4 * PAGE);
	munmap(q, 4 * PAGE);
	alarm(0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unmap),   cmocka_unit_test(test_part),
		cmocka_unit_test(test_madvise), cmocka_unit_test(test_mremap),
		cmocka_unit_test(test_heap),    cmocka_unit_test(test_unwatch),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_two),     cmocka_unit_test(test_threads),
		cmocka_unit_test(test_fork),    cmocka_unit_test(test_clone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
