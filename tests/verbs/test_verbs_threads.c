/* Many threads make the first calls of a process at the same time: the real library
 * is found and its functions are resolved by all of them at once. */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <infiniband/verbs.h>

#undef ibv_get_device_list

#define THREADS 8

static pthread_barrier_t start;

static void *first_calls(void *unused)
{
	struct ibv_device **list;
	int n = 0, found = 0;

	(void)unused;
	pthread_barrier_wait(&start);
	list = ibv_get_device_list(&n);
	for (int i = 0; i < n; i++) {
		struct ibv_context *ctx = ibv_open_device(list[i]);

		if (ctx)
			ibv_close_device(ctx);
		found += !!ctx;
	}
	if (list)
		ibv_free_device_list(list);
	return (void *)(intptr_t)found;
}

static void at_once(void **state)
{
	pthread_t thread[THREADS];
	void *found;

	(void)state;
	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, first_calls, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(thread[i], &found), 0);
		assert_int_equal((intptr_t)found, 2); /* fake0, weft0 */
	}
	pthread_barrier_destroy(&start);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(at_once)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
