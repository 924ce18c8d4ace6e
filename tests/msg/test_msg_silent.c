/* When a silent path is used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "util_clock.h"
#include "msg_silent.h"

#define MS UTIL_NS_PER_MS

/* As an endpoint asks, whose clock does not begin at 0. */
static const uint64_t start = 1000 * UTIL_NS_PER_S;

/* Silent, and what was under way on it has gone another way. */
static struct msg_silent silent_at_start(uint64_t given)
{
	struct msg_silent s = {0};

	assert_true(msg_silent_use(&s, false, given, 2, start - 20 * MS));
	assert_false(msg_silent_use(&s, true, given, 2, start));
	assert_false(msg_silent_use(&s, true, given, 0, start + 499 * MS));
	return s;
}

static void test_rests(void **state)
{
	struct msg_silent s = silent_at_start(10);

	(void)state;
	/* Whatever has come back meanwhile: it takes its rest. */
	assert_false(msg_silent_use(&s, false, 10, 0, start + 499 * MS));
	assert_true(msg_silent_use(&s, false, 10, 0, start + 500 * MS));
	assert_true(msg_silent_use(&s, false, 11, 1, start + 520 * MS));
}

/* It is silent until something has come back, which takes as long as it takes: to be given a piece,
 * and for that to be answered. */
static void test_trial(void **state)
{
	struct msg_silent s = silent_at_start(10);

	(void)state;
	for (uint64_t ms = 500; ms < 5000; ms += 20)
		assert_true(msg_silent_use(&s, true, 10, 0, start + ms * MS));
	for (uint64_t ms = 5000; ms < 7000; ms += 20)
		assert_false(msg_silent_use(&s, true, 11, 1, start + ms * MS));
	assert_true(msg_silent_use(&s, false, 11, 0, start + 7000 * MS));
	/* That was long ago: the next rest is a short one. */
	assert_false(msg_silent_use(&s, true, 20, 1, start + 8000 * MS));
	assert_true(msg_silent_use(&s, true, 20, 0, start + 8500 * MS));
}

/* What was given to it before the trial says nothing, wherever it has arrived. */
static void test_old_pieces(void **state)
{
	struct msg_silent s = silent_at_start(10);

	(void)state;
	assert_true(msg_silent_use(&s, true, 10, 2, start + 500 * MS));
	assert_true(msg_silent_use(&s, true, 10, 0, start + 520 * MS));
	assert_false(msg_silent_use(&s, true, 11, 1, start + 540 * MS));
	assert_true(msg_silent_use(&s, false, 11, 1, start + 560 * MS));
}

/* A piece has arrived, and not that way: each rest is twice as long, up to 16 seconds. */
static void test_longer(void **state)
{
	struct msg_silent s = silent_at_start(10);
	uint64_t now = start + 500 * MS, pause = 500 * MS, given = 10;

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_true(msg_silent_use(&s, true, given, 0, now));
		given += 2;
		assert_false(msg_silent_use(&s, true, given, 2, now + 20 * MS));
		assert_false(msg_silent_use(&s, true, given, 1, now + 40 * MS));
		pause = 2 * pause < 16000 * MS ? 2 * pause : 16000 * MS;
		now += 40 * MS + pause;
		assert_false(msg_silent_use(&s, true, given, 0, now - MS));
	}
}

/* One that works for a moment only is left alone for longer, too. */
static void test_again(void **state)
{
	struct msg_silent s = silent_at_start(10);

	(void)state;
	assert_true(msg_silent_use(&s, true, 10, 0, start + 500 * MS));
	assert_true(msg_silent_use(&s, false, 11, 0, start + 520 * MS));
	assert_false(msg_silent_use(&s, true, 12, 1, start + 900 * MS));
	assert_false(msg_silent_use(&s, true, 12, 0, start + 1899 * MS));
	assert_true(msg_silent_use(&s, true, 12, 0, start + 1900 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rests),      cmocka_unit_test(test_trial),
		cmocka_unit_test(test_old_pieces), cmocka_unit_test(test_longer),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
