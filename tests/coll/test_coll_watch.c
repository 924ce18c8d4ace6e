/* How long somebody may be inside an operation of the MPI's own. */
#include "coll_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define S        UINT64_C(1000000000)
#define PATIENCE (5 * S)

static void test_short_calls(void **state)
{
	struct coll_watch w = {0};
	uint64_t now = 100 * S;

	(void)state;
	assert_int_equal(coll_watch_step(&w, 0, false, now, PATIENCE), COLL_WATCH_NOTHING);
	/* Another call at each look: however long that goes on, and whoever is lost. */
	for (uint32_t turn = 1; turn < 100; turn += 2, now += S)
		assert_int_equal(coll_watch_step(&w, turn, true, now, PATIENCE), COLL_WATCH_WAIT);
	/* One look after the last is needed to know that it was. */
	assert_int_equal(coll_watch_step(&w, 100, true, now, PATIENCE), COLL_WATCH_WAIT);
	assert_int_equal(coll_watch_step(&w, 100, true, now + 99 * S, PATIENCE),
			 COLL_WATCH_NOTHING);
}

static void test_others_are_late(void **state)
{
	struct coll_watch w = {0};
	uint64_t now = 7;

	(void)state;
	assert_int_equal(coll_watch_step(&w, 3, false, now, PATIENCE), COLL_WATCH_WAIT);
	assert_int_equal(coll_watch_step(&w, 3, false, now + S - 1, PATIENCE), COLL_WATCH_WAIT);
	for (now += S; now < 3600 * S; now += S / 2)
		assert_int_equal(coll_watch_step(&w, 3, false, now, PATIENCE), COLL_WATCH_LOOK);
}

static void test_somebody_is_lost(void **state)
{
	struct coll_watch w = {0};

	(void)state;
	coll_watch_step(&w, 5, false, S, PATIENCE);
	assert_int_equal(coll_watch_step(&w, 5, true, 10 * S, PATIENCE), COLL_WATCH_LOOK);
	assert_int_equal(coll_watch_step(&w, 5, true, 15 * S - 1, PATIENCE), COLL_WATCH_LOOK);
	assert_int_equal(coll_watch_step(&w, 5, true, 15 * S, PATIENCE), COLL_WATCH_END);
	/* Nobody is ended who wants to stay. */
	assert_int_equal(coll_watch_step(&w, 5, true, 99 * S, 0), COLL_WATCH_LOOK);
	/* The MPI has returned, and a new call has its own time. */
	assert_int_equal(coll_watch_step(&w, 7, true, 99 * S, PATIENCE), COLL_WATCH_WAIT);
	assert_int_equal(coll_watch_step(&w, 7, true, 101 * S, PATIENCE), COLL_WATCH_LOOK);
	/* It was a mistake. */
	assert_int_equal(coll_watch_step(&w, 7, false, 102 * S, PATIENCE), COLL_WATCH_LOOK);
	assert_int_equal(coll_watch_step(&w, 7, true, 200 * S, PATIENCE), COLL_WATCH_LOOK);
}

static void test_refused_or_silent(void **state)
{
	(void)state;
	assert_int_equal(coll_watch_lost_at(10 * S, 11 * S), 11 * S);
	/* It, or we, may have been stopped. */
	assert_int_equal(coll_watch_lost_at(10 * S, 20 * S), 10 * S + COLL_WATCH_SILENT_NS);
	assert_int_equal(coll_watch_lost_at(10 * S, 70 * S), 10 * S + COLL_WATCH_SILENT_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_calls),
		cmocka_unit_test(test_others_are_late),
		cmocka_unit_test(test_somebody_is_lost),
		cmocka_unit_test(test_refused_or_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
