/* Copying out of and into another process, in pieces, and what the kernel says to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm_copy.h"
#include "util_rand.h"

#define PAGE  4096
#define BYTES (64 * PAGE)

/* A child that holds a page-aligned pattern at the same address as we do, with an
 * unmapped page behind it, until it is killed. */
struct other {
	pid_t pid;
	uint8_t *mem;
};

static void other_start(struct other *o)
{
	int ready[2];
	char c;

	o->mem = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	assert_true(o->mem != MAP_FAILED);
	assert_int_equal(munmap(o->mem + BYTES, PAGE), 0);
	assert_int_equal(pipe(ready), 0);
	o->pid = fork();
	assert_true(o->pid >= 0);
	if (o->pid == 0) {
		struct util_rand r;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		util_rand_seed(&r, 1);
		util_rand_bytes(&r, o->mem, BYTES);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	close(ready[1]);
}

static void other_stop(struct other *o)
{
	kill(o->pid, SIGKILL);
	waitpid(o->pid, NULL, 0);
	munmap(o->mem, BYTES);
}

static struct shm_vec vec(const struct iovec *iov, unsigned long n)
{
	return (struct shm_vec){.iov = iov, .n = n};
}

static void pattern(uint8_t *buf)
{
	struct util_rand r;

	util_rand_seed(&r, 1);
	util_rand_bytes(&r, buf, BYTES);
}

static void test_whole(void **state)
{
	uint8_t *buf = calloc(1, BYTES), *want = malloc(BYTES);
	struct iovec l = {buf, BYTES}, r;
	struct other o;

	(void)state;
	other_start(&o);
	r = (struct iovec){o.mem, BYTES};
	pattern(want);
	assert_int_equal(shm_copy_from(o.pid, vec(&l, 1), vec(&r, 1)), 0);
	assert_memory_equal(buf, want, BYTES);
	other_stop(&o);
	free(buf);
	free(want);
}

/* Cuts [base, base + bytes) up into n pieces, some of them empty. */
static void cut(struct util_rand *r, struct iovec *iov, unsigned long n, uint8_t *base,
		size_t bytes)
{
	size_t at = 0;

	for (unsigned long i = 0; i < n; i++) {
		size_t len = i == n - 1 ? bytes - at : util_rand_below(r, 3 * bytes / n);

		if (util_rand_below(r, 8) == 0 && i != n - 1)
			len = 0;
		if (len > bytes - at)
			len = bytes - at;
		iov[i] = (struct iovec){base + at, len};
		at += len;
	}
}

/* More pieces than the kernel takes at once, cut differently on the two sides. */
static void test_pieces(void **state)
{
	static const unsigned long counts[] = {1, 2, 63, 64, 65, 700, 3000};
	uint8_t *buf = malloc(BYTES), *want = malloc(BYTES);
	struct iovec *l = calloc(3000, sizeof(*l)), *r = calloc(3000, sizeof(*r));
	struct util_rand rnd;
	struct other o;

	(void)state;
	other_start(&o);
	pattern(want);
	util_rand_seed(&rnd, 42);
	for (int i = 0; i < 7; i++) {
		for (int j = 0; j < 7; j++) {
			memset(buf, 0, BYTES);
			cut(&rnd, l, counts[i], buf, BYTES);
			cut(&rnd, r, counts[j], o.mem, BYTES);
			assert_int_equal(shm_copy_from(o.pid, vec(l, counts[i]), vec(r, counts[j])),
					 0);
			assert_memory_equal(buf, want, BYTES);
		}
	}
	other_stop(&o);
	free(buf);
	free(want);
	free(l);
	free(r);
}

static void test_errors(void **state)
{
	static uint8_t buf[2 * PAGE];
	struct iovec l = {buf, 2 * PAGE}, r;
	struct other o;

	(void)state;
	other_start(&o);
	r = (struct iovec){o.mem + BYTES - PAGE, 2 * PAGE}; /* the second is not there */
	assert_int_equal(shm_copy_from(o.pid, vec(&l, 1), vec(&r, 1)), -EFAULT);
	r.iov_len = PAGE;
	assert_int_equal(shm_copy_from(o.pid, vec(&l, 1), vec(&r, 1)), -EINVAL);
	r.iov_len = SIZE_MAX;
	assert_int_equal(shm_copy_from(o.pid, vec(&l, 1), vec((struct iovec[]){r, {NULL, 2}}, 2)),
			 -EINVAL);
	assert_int_equal(shm_copy_from(o.pid, vec(NULL, 0), vec(NULL, 0)), 0);
	r = (struct iovec){o.mem, 2 * PAGE};
	other_stop(&o);
	assert_int_equal(shm_copy_from(o.pid, vec(&l, 1), vec(&r, 1)), -ESRCH);
}

static void test_probe(void **state)
{
	uint64_t word, address;
	struct other o;
	uint8_t *want = malloc(BYTES);

	(void)state;
	other_start(&o);
	pattern(want);
	memcpy(&word, want, sizeof(word));
	address = (uintptr_t)o.mem;
	assert_int_equal(shm_copy_probe(o.pid, address, word), 0);
	assert_int_equal(shm_copy_probe(o.pid, address, word + 1), -ESRCH);
	assert_int_equal(shm_copy_probe(getpid(), address, word), -ESRCH);
	assert_int_equal(shm_copy_probe(o.pid, address + BYTES, word), -EFAULT);
	assert_int_equal(shm_copy_probe(0, address, word), -ESRCH);
	assert_int_equal(shm_copy_probe(-1, address, word), -ESRCH);
	other_stop(&o);
	assert_int_equal(shm_copy_probe(o.pid, address, word), -ESRCH);
	free(want);
}

/* Another user may not. */
static void test_permission(void **state)
{
	struct other o;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	other_start(&o);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(1);
		_exit(shm_copy_probe(o.pid, (uintptr_t)o.mem, 0) == -EPERM ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	other_stop(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),      cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_errors),     cmocka_unit_test(test_probe),
		cmocka_unit_test(test_permission),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
