/* When RTRs are stopped, and when they are sent again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "msg_adapt.h"
#include "util_rand.h"

#define SRC    3
#define TAG    UINT64_C(0x1234)
#define IGNORE UINT64_C(0xff00000000000000)

static struct msg_adapt a;

static void result(bool asked, bool hit, unsigned int times)
{
	while (times--)
		msg_adapt_result(&a, SRC, TAG, IGNORE, asked, hit);
}

static bool agrees(void)
{
	return msg_adapt_agrees(&a, SRC, TAG, IGNORE);
}

static int setup(void **state)
{
	(void)state;
	msg_adapt_init(&a, MSG_ADAPT_PERCENT);
	return 0;
}

static void test_begins_on(void **state)
{
	(void)state;
	assert_true(agrees());
	result(true, true, 1000);
	assert_true(agrees());
	assert_int_equal(a.stops, 0);
}

/* A few that cross at the start say nothing; eight do. */
static void test_stops(void **state)
{
	(void)state;
	result(true, false, 7);
	assert_true(agrees());
	result(true, false, 1);
	assert_false(agrees());
	assert_int_equal(a.stops, 1);
}

/* Four of five used is what the thesis asks for. */
static void test_threshold(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++)
		result(true, i % 5 != 4, 1);
	assert_true(agrees());
	for (int i = 0; i < 400 && agrees(); i++)
		result(true, i % 4 != 3, 1);
	assert_false(agrees());
}

/* Only the last ones count, however good the times before. */
static void test_recent(void **state)
{
	(void)state;
	result(true, true, 100000);
	result(true, false, 6); /* 24 of 30 are 80 % */
	assert_true(agrees());
	result(true, false, 1);
	assert_false(agrees());
}

static void test_resumes(void **state)
{
	(void)state;
	result(true, false, 8);
	result(false, false, 100);
	assert_false(agrees());
	/* 24 of the last 30. */
	result(false, true, 23);
	assert_false(agrees());
	result(false, true, 1);
	assert_true(agrees());
	assert_int_equal(a.resumptions, 1);
}

/* What was under way when RTRs were stopped or begun is of the other time. */
static void test_stragglers(void **state)
{
	(void)state;
	result(false, false, 100);
	assert_true(agrees());
	result(true, false, 8);
	result(true, true, 100);
	assert_false(agrees());
}

static unsigned int watched(void)
{
	unsigned int n = 0;

	for (; !agrees(); n++)
		result(false, true, 1);
	return n;
}

/* Watching that promises too much is believed later each time, within limits, and believed again
 * when it was right. */
static void test_back_off(void **state)
{
	unsigned int n = 0;

	(void)state;
	for (unsigned int expected = 16; expected <= 4096; expected *= 2) {
		result(true, false, 8);
		n = watched();
		assert_int_equal(n, expected);
	}
	result(true, false, 8);
	assert_int_equal(watched(), 4096);
	result(true, true, 65);
	result(true, false, 32);
	assert_int_equal(watched(), 16);
}

static void test_threshold_0_never_stops(void **state)
{
	(void)state;
	msg_adapt_init(&a, 0);
	result(true, false, 100);
	assert_true(agrees());
}

static void test_envelopes_are_separate(void **state)
{
	(void)state;
	result(true, false, 8);
	assert_true(msg_adapt_agrees(&a, SRC + 1, TAG, IGNORE));
	assert_true(msg_adapt_agrees(&a, SRC, TAG + 1, IGNORE));
	assert_true(msg_adapt_agrees(&a, SRC, TAG, 0));
	/* What is ignored makes no difference. */
	assert_false(msg_adapt_agrees(&a, SRC, TAG | IGNORE, IGNORE));
}

/* More envelopes than there is room for: those that are heard of stay. */
static void test_table_is_full(void **state)
{
	struct util_rand r;
	uint64_t seed = 1;

	(void)state;
	util_rand_seed(&r, seed);
	result(true, false, 8);
	for (int i = 0; i < 20000; i++) {
		if (i % 4 == 0)
			result(false, false, 1);
		msg_adapt_result(&a, (uint32_t)util_rand_below(&r, 100), util_rand_next(&r), 0,
				 true, true);
		if (agrees())
			fail_msg("forgotten after %d others, seed %llu", i,
				 (unsigned long long)seed);
	}
	/* Not heard of any more, it is forgotten, and gets another chance. */
	for (int i = 0; i < 20000; i++)
		msg_adapt_result(&a, 1, util_rand_next(&r), 0, true, true);
	assert_true(agrees());
}

static void test_clock_wraps(void **state)
{
	(void)state;
	a.clock = UINT32_MAX - 4;
	result(true, false, 8);
	assert_false(agrees());
	assert_int_equal(a.stops, 1);
}

static void test_would(void **state)
{
	(void)state;
	assert_true(msg_adapt_would(1000, 1050, 50, 65536, 8192, 65536));
	assert_false(msg_adapt_would(1000, 1049, 50, 65536, 8192, 65536)); /* would have crossed */
	assert_false(msg_adapt_would(1000, 1050, 50, 8192, 8192, 65536));  /* eager */
	assert_false(msg_adapt_would(1000, 1050, 50, 65537, 8192, 65536)); /* too long */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_begins_on, setup),
		cmocka_unit_test_setup(test_stops, setup),
		cmocka_unit_test_setup(test_threshold, setup),
		cmocka_unit_test_setup(test_recent, setup),
		cmocka_unit_test_setup(test_resumes, setup),
		cmocka_unit_test_setup(test_stragglers, setup),
		cmocka_unit_test_setup(test_back_off, setup),
		cmocka_unit_test_setup(test_threshold_0_never_stops, setup),
		cmocka_unit_test_setup(test_envelopes_are_separate, setup),
		cmocka_unit_test_setup(test_table_is_full, setup),
		cmocka_unit_test_setup(test_clock_wraps, setup),
		cmocka_unit_test_setup(test_would, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
