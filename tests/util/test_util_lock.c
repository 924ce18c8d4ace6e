/* The lock: exclusive, whoever waits for it and however. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "util_clock.h"
#include "util_lock.h"

#define THREADS 4
#define ROUNDS  20000

struct shared {
	struct util_lock lock;
	unsigned int inside, both;
	uint64_t sum;
	atomic_bool stop;
};

static void *worker(void *arg)
{
	struct shared *s = arg;

	for (int i = 0; i < ROUNDS; i++) {
		if (i % 3)
			util_lock(&s->lock);
		else
			while (!util_trylock(&s->lock))
				;
		s->both += s->inside++ != 0;
		s->sum++;
		/* Long enough, at times, that the others go to sleep. */
		if (i % 5000 == 0) {
			uint64_t until = util_now_ns() + 2 * UTIL_NS_PER_MS;

			while (util_now_ns() < until)
				;
		}
		s->inside--;
		util_unlock(&s->lock);
	}
	return NULL;
}

static void test_exclusive(void **state)
{
	struct shared s = {0};
	pthread_t t[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, worker, &s), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(s.both, 0);
	assert_int_equal(s.sum, THREADS * ROUNDS);
}

static void test_deadline(void **state)
{
	struct util_lock l = {0};
	uint64_t begin = util_now_ns();

	(void)state;
	assert_true(util_lock_wait(&l, begin));
	assert_false(util_trylock(&l));
	assert_false(util_lock_wait(&l, begin + 20 * UTIL_NS_PER_MS));
	assert_true(util_now_ns() - begin >= 20 * UTIL_NS_PER_MS);
	assert_true(util_now_ns() - begin < 5 * UTIL_NS_PER_S);
	util_unlock(&l);
	assert_true(util_trylock(&l));
}

/* One that takes it again and again, and has it nearly all the time. */
static void *greedy(void *arg)
{
	struct shared *s = arg;

	while (!atomic_load(&s->stop)) {
		uint64_t until = util_now_ns() + UTIL_NS_PER_MS;

		if (!util_trylock(&s->lock))
			continue;
		while (util_now_ns() < until)
			;
		s->sum++;
		util_unlock(&s->lock);
	}
	return NULL;
}

static void test_fair(void **state)
{
	struct shared s = {0};
	uint64_t begin, rounds = 0;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, greedy, &s), 0);
	for (begin = util_now_ns(); util_now_ns() - begin < 100 * UTIL_NS_PER_MS; rounds++) {
		util_lock(&s.lock);
		util_unlock(&s.lock);
	}
	atomic_store(&s.stop, true);
	pthread_join(t, NULL);
	assert_true(s.sum > 0);
	/* Its turn comes after one of the other's, not after many. */
	assert_in_range(rounds, s.sum / 4, UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exclusive),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_fair),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
