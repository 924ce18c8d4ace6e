/* Shared memory of a host's ranks: what one sets the other sees, sleepers are woken, and the dead
 * are told from those who have left. It leaves room to others, and no files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "coll_shm.h"
#include "util_clock.h"
#include "util_rand.h"

static const struct coll_shm_conf conf = {.ranks = 2, .hosts = 3, .data = 10000};

/* Until it is so, or ten seconds. */
#define WAIT_FOR(what)                                                                             \
	do {                                                                                       \
		uint64_t end = util_now_ns() + 10 * UTIL_NS_PER_S;                                 \
		while (!(what) && util_now_ns() < end)                                             \
			usleep(100);                                                               \
		assert_true(what);                                                                 \
	} while (0)

/* Rank 1, in a process of its own: answers until it is told to leave (9), or is killed. */
static void other(const char *name)
{
	struct coll_shm s;
	uint32_t n = 1;

	if (coll_shm_attach(&s, &conf, 1, name))
		_exit(1);
	coll_shm_set(&s, coll_shm_word(&s, 1, 0), 1);
	while (n != 9) {
		uint32_t seen = atomic_load(&s.head->events);

		if (coll_shm_is(coll_shm_word(&s, 0, 0), n + 1)) {
			n++;
			s.data[conf.data - 1] = (uint8_t)n;
			coll_shm_set(&s, coll_shm_word(&s, 1, 0), n);
		} else {
			coll_shm_sleep(&s, seen, 20 * UTIL_NS_PER_S);
		}
	}
	coll_shm_detach(&s);
	pause();
	_exit(0);
}

static pid_t start(struct coll_shm *s)
{
	char name[COLL_SHM_NAME];
	pid_t pid;

	assert_int_equal(coll_shm_create(s, &conf, 0, name), 0);
	for (size_t i = 0; i < conf.data; i++)
		assert_int_equal(s->data[i], 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		other(name);
	WAIT_FOR(coll_shm_is(coll_shm_word(s, 1, 0), 1));
	/* Both have it: there is no file any more. */
	assert_int_equal(coll_shm_attach(&(struct coll_shm){0}, &conf, 1, name), -ENOENT);
	return pid;
}

static void end(struct coll_shm *s, pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	coll_shm_detach(s);
}

static void test_flags(void **state)
{
	struct coll_shm s;
	pid_t pid = start(&s);

	(void)state;
	for (uint32_t n = 2; n <= 8; n++) {
		usleep(2000); /* it sleeps */
		coll_shm_set(&s, coll_shm_word(&s, 0, 0), n);
		WAIT_FOR(coll_shm_is(coll_shm_word(&s, 1, 0), n));
		assert_int_equal(s.data[conf.data - 1], n);
		assert_true(coll_shm_alive(&s, 1));
	}
	/* All flags are apart. */
	for (uint32_t bank = 0; bank < 2; bank++)
		for (uint32_t h = 0; h < conf.hosts; h++)
			coll_shm_set(&s, coll_shm_done(&s, bank, h), 100 + bank * conf.hosts + h);
	for (uint32_t i = 0; i < 2 * conf.hosts; i++)
		assert_true(
			coll_shm_is(coll_shm_done(&s, i / conf.hosts, i % conf.hosts), 100 + i));
	assert_true(coll_shm_is(coll_shm_word(&s, 1, 0), 8));
	end(&s, pid);
}

static void test_death(void **state)
{
	struct coll_shm s;
	pid_t pid = start(&s);

	(void)state;
	assert_true(coll_shm_alive(&s, 0) && coll_shm_alive(&s, 1));
	kill(pid, SIGKILL);
	/* Nobody has asked for its remains yet. */
	WAIT_FOR(!coll_shm_alive(&s, 1));
	end(&s, pid);
}

static void test_left(void **state)
{
	struct coll_shm s;
	pid_t pid = start(&s);

	(void)state;
	for (uint32_t n = 2; n <= 9; n++) {
		coll_shm_set(&s, coll_shm_word(&s, 0, 0), n);
		WAIT_FOR(coll_shm_is(coll_shm_word(&s, 1, 0), n));
	}
	usleep(20000);
	assert_true(coll_shm_alive(&s, 1));
	end(&s, pid);
}

/* A flag that was set since is not slept over; without one, the time is kept to. */
static void test_sleep(void **state)
{
	struct coll_shm_conf more = {.ranks = 2, .hosts = 1, .data = 1};
	char name[COLL_SHM_NAME];
	uint64_t before;
	struct coll_shm s;
	uint32_t seen;

	(void)state;
	assert_int_equal(coll_shm_create(&s, &more, 0, name), 0);
	assert_int_equal(coll_shm_attach(&(struct coll_shm){0}, &conf, 0, name), -EINVAL);
	coll_shm_unlink(name);
	seen = atomic_load(&s.head->events);
	coll_shm_set(&s, coll_shm_word(&s, 0, 3), 5);
	before = util_now_ns();
	coll_shm_sleep(&s, seen, 10 * UTIL_NS_PER_S);
	assert_true(util_now_ns() - before < 5 * UTIL_NS_PER_S);
	coll_shm_sleep(&s, atomic_load(&s.head->events), 20 * UTIL_NS_PER_MS);
	assert_true(util_now_ns() - before >= 20 * UTIL_NS_PER_MS);
	assert_int_equal(atomic_load(&s.head->sleepers), 0);
	coll_shm_detach(&s);
}

/* ---- room ---- */

/* A file longer than the process may write would end it by a signal. */
static void test_limit(void **state)
{
	struct rlimit before, less;
	char name[COLL_SHM_NAME];
	struct coll_shm s;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	less = before;
	less.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &less), 0);
	assert_int_equal(coll_shm_create(&s, &conf, 0, name), -EFBIG);
	assert_string_equal(name, "");
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void test_room(void **state)
{
	const uint64_t mb = 1 << 20;

	(void)state;
	assert_true(coll_shm_fits(64 * mb, 64 * mb, 48 * mb));
	assert_false(coll_shm_fits(64 * mb, 64 * mb, 48 * mb + 1));
	assert_true(coll_shm_fits(64 * mb, 20 * mb, 4 * mb));
	assert_false(coll_shm_fits(64 * mb, 20 * mb - 1, 4 * mb));
	assert_false(coll_shm_fits(64 * mb, 3 * mb, 4 * mb));
	/* What was made at the same time as others of which nobody knew. */
	assert_true(coll_shm_fits(64 * mb, 16 * mb, 0));
	assert_false(coll_shm_fits(64 * mb, 16 * mb - 1, 0));
	/* No limit. */
	assert_true(coll_shm_fits(0, 0, 4 * mb));
	assert_true(coll_shm_fits(UINT64_MAX, UINT64_MAX, 4 * mb));
}

static void test_no_room(void **state)
{
	struct coll_shm_conf much = {.ranks = 1, .hosts = 1, .data = (size_t)1 << 50};
	char name[COLL_SHM_NAME] = "x";
	struct coll_shm s;

	(void)state;
	assert_int_equal(coll_shm_create(&s, &much, 0, name), -ENOSPC);
	assert_string_equal(name, "");
	assert_int_equal(s.fd, -1);
}

/* ---- files of the dead ---- */

struct left {
	char name[COLL_SHM_NAME];
	int fd;
};

static void set_age(const struct left *l, int seconds)
{
	struct timespec at[2];

	clock_gettime(CLOCK_REALTIME, &at[0]);
	at[0].tv_sec -= seconds;
	at[1] = at[0];
	assert_int_equal(futimens(l->fd, at), 0);
}

/* One that was written to so many seconds ago. */
static void leave(struct left *l, const char *prefix, int seconds)
{
	uint64_t key;

	assert_int_equal(util_random_key(&key, sizeof(key)), 0);
	snprintf(l->name, sizeof(l->name), "/%s%016llx", prefix, (unsigned long long)key);
	l->fd = shm_open(l->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(l->fd >= 0);
	set_age(l, seconds);
}

/* Whether the sweep has left it there; and it is gone now. */
static bool was_kept(struct left *l)
{
	close(l->fd);
	return !shm_unlink(l->name);
}

static bool is_there(const struct left *l)
{
	char path[COLL_SHM_NAME + 16];

	snprintf(path, sizeof(path), "/dev/shm%s", l->name);
	return !access(path, F_OK);
}

/* By the first segment of a process, so this test comes first. */
static void test_first(void **state)
{
	struct left old;
	struct coll_shm s;

	(void)state;
	leave(&old, "weft-coll-", 120);
	end(&s, start(&s));
	assert_false(was_kept(&old));
}

static void test_stale(void **state)
{
	struct left old, young, later, other;

	(void)state;
	leave(&old, "weft-coll-", 120);
	leave(&young, "weft-coll-", 20);
	leave(&later, "weft-coll-", -1000); /* the clock was set back */
	leave(&other, "weft-coll-0", 120);
	coll_shm_sweep();
	assert_true(was_kept(&young));
	assert_true(was_kept(&later));
	assert_true(was_kept(&other));
	assert_false(was_kept(&old));
}

/* By another process: whether this one's own locks are there it can not ask. */
static void test_held(void **state)
{
	struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 1};
	struct left held;
	int ready[2];
	pid_t pid;
	char c;

	(void)state;
	leave(&held, "weft-coll-", 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (fcntl(held.fd, F_SETLK, &byte) || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	set_age(&held, 120); /* now: others on this host may be sweeping, too */
	coll_shm_sweep();
	assert_true(is_there(&held));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	coll_shm_sweep();
	assert_false(was_kept(&held));
}

/* Neither what it points to nor itself. */
static void test_link(void **state)
{
	char path[COLL_SHM_NAME + 16], to[COLL_SHM_NAME + 16];
	struct left old, link;

	(void)state;
	leave(&old, "weft-test-", 120);
	leave(&link, "weft-coll-", 0);
	snprintf(to, sizeof(to), "/dev/shm%s", old.name);
	snprintf(path, sizeof(path), "/dev/shm%s", link.name);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(to, path), 0);
	coll_shm_sweep();
	assert_true(was_kept(&link));
	assert_true(was_kept(&old));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first), cmocka_unit_test(test_flags),
		cmocka_unit_test(test_death), cmocka_unit_test(test_left),
		cmocka_unit_test(test_sleep), cmocka_unit_test(test_room),
		cmocka_unit_test(test_limit), cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_stale), cmocka_unit_test(test_held),
		cmocka_unit_test(test_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
