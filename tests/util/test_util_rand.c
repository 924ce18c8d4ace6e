/* Repeatable randomness must repeat; keys must not, also not across fork. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util_rand.h"

/* The published first outputs of splitmix64 for seed 1234567. */
static void test_reference(void **state)
{
	static const uint64_t want[] = {
		UINT64_C(6457827717110365317),  UINT64_C(3203168211198807973),
		UINT64_C(9817491932198370423),  UINT64_C(4593380528125082431),
		UINT64_C(16408922859458223821),
	};
	struct util_rand r;

	(void)state;
	util_rand_seed(&r, 1234567);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_true(util_rand_next(&r) == want[i]);
}

static void test_shuffle(void **state)
{
	uint32_t a[50], b[50], seen[50] = {0};
	struct util_rand r;

	(void)state;
	for (uint32_t i = 0; i < 50; i++)
		a[i] = b[i] = i;
	util_rand_seed(&r, 7);
	util_rand_shuffle(&r, a, 50);
	util_rand_seed(&r, 7);
	util_rand_shuffle(&r, b, 50);
	assert_memory_equal(a, b, sizeof(a));
	for (int i = 0; i < 50; i++)
		seen[a[i]]++;
	for (int i = 0; i < 50; i++)
		assert_int_equal(seen[i], 1);
	util_rand_shuffle(&r, a, 1);
	util_rand_shuffle(&r, a, 0);
}

static void test_bytes(void **state)
{
	uint8_t buf[13], again[13];
	struct util_rand r;
	uint64_t first;

	(void)state;
	util_rand_seed(&r, 1);
	first = util_rand_next(&r);
	util_rand_seed(&r, 1);
	util_rand_bytes(&r, buf, sizeof(buf));
	for (int i = 0; i < 8; i++)
		assert_int_equal(buf[i], (uint8_t)(first >> (8 * i)));
	util_rand_seed(&r, 1);
	util_rand_bytes(&r, again, sizeof(again));
	assert_memory_equal(buf, again, sizeof(buf));
}

static int cmp64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

#define KEYS 2000 /* several refills of the buffer */

static void *draw(void *arg)
{
	uint64_t *keys = arg;

	for (int i = 0; i < KEYS; i++)
		if (util_random_key(&keys[i], sizeof(keys[i])))
			return "failed";
	return NULL;
}

static void assert_distinct(uint64_t *keys, size_t n)
{
	qsort(keys, n, sizeof(*keys), cmp64);
	for (size_t i = 1; i < n; i++)
		assert_true(keys[i] != keys[i - 1]);
}

static void test_keys_threads(void **state)
{
	static uint64_t keys[4 * KEYS];
	pthread_t threads[4];
	void *ret;

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, draw, keys + i * KEYS), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], &ret);
		assert_null(ret);
	}
	assert_distinct(keys, 4 * KEYS);
}

static void test_key_sizes(void **state)
{
	uint8_t big[5000], zero[64] = {0}, none = 0xa5;

	(void)state;
	memset(big, 0, sizeof(big));
	assert_int_equal(util_random_key(big, sizeof(big)), 0);
	for (size_t i = 0; i + sizeof(zero) <= sizeof(big); i += sizeof(zero))
		assert_memory_not_equal(big + i, zero, sizeof(zero));
	assert_int_equal(util_random_key(&none, 0), 0);
	assert_int_equal(none, 0xa5);
}

/* Parent, child and grandchild start from the same half-used buffer. The child
 * draws first in a new thread: that one must not make the old buffer look fresh. */
static void test_keys_fork(void **state)
{
	uint64_t keys[3 * 16], *mine = keys;
	int fds[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(util_random_key(&keys[0], 8), 0);
	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		static uint64_t other[KEYS];
		pthread_t thread;
		pid_t grandchild;

		if (pthread_create(&thread, NULL, draw, other) || pthread_join(thread, NULL))
			_exit(1);
		grandchild = fork();
		for (int i = 0; i < 16; i++)
			if (util_random_key(&keys[i], 8))
				_exit(2);
		if (write(fds[1], keys, 16 * 8) != 16 * 8)
			_exit(3);
		if (grandchild > 0 && waitpid(grandchild, &status, 0) != grandchild)
			_exit(4);
		_exit(0);
	}
	for (int i = 0; i < 16; i++)
		assert_int_equal(util_random_key(&mine[i], 8), 0);
	/* Two writes, each below PIPE_BUF: either order, never mixed. */
	assert_int_equal(read(fds[0], keys + 16, 16 * 8), 16 * 8);
	assert_int_equal(read(fds[0], keys + 32, 16 * 8), 16 * 8);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(fds[0]);
	close(fds[1]);
	assert_distinct(keys, 48);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),    cmocka_unit_test(test_shuffle),
		cmocka_unit_test(test_bytes),        cmocka_unit_test(test_key_sizes),
		cmocka_unit_test(test_keys_threads), cmocka_unit_test(test_keys_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
