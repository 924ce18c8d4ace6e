/* The policy of waiting, in time that the test makes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "ofi_wait.h"

static const struct ofi_wait_conf conf = {
	.spin = 100, .yield = 50, .gap_ns = 1000, .sleep_ns = 500000};

/* `n` empty reads, `gap` apart; what the last one was told. */
static enum ofi_wait_step reads(const struct ofi_wait_conf *c, struct ofi_wait *w, uint64_t *now,
				unsigned int n, uint64_t gap)
{
	enum ofi_wait_step s = OFI_STEP_RETURN;

	for (unsigned int i = 0; i < n; i++) {
		*now += gap;
		s = ofi_wait_empty(c, w, ofi_wait_wants_time(w) ? *now : 0);
	}
	return s;
}

static void test_stages(void **state)
{
	struct ofi_wait w = {0};
	uint64_t now = 1;

	(void)state;
	assert_int_equal(reads(&conf, &w, &now, 100, 200), OFI_STEP_RETURN);
	assert_int_equal(reads(&conf, &w, &now, 1, 200), OFI_STEP_YIELD);
	assert_int_equal(reads(&conf, &w, &now, 49, 200), OFI_STEP_YIELD);
	assert_int_equal(reads(&conf, &w, &now, 1, 200), OFI_STEP_SLEEP);
	assert_int_equal(reads(&conf, &w, &now, 1000, 200), OFI_STEP_SLEEP);
}

/* Who was not woken looks for something else, perhaps: the longer it is left alone, the less it
 * loses, but it sleeps in the end. */
static void test_sleep_in_vain(void **state)
{
	struct ofi_wait w = {0};
	unsigned int before = 0;
	uint64_t now = 1;

	(void)state;
	assert_int_equal(reads(&conf, &w, &now, 151, 200), OFI_STEP_SLEEP);
	for (int i = 0; i < 10; i++) {
		unsigned int n = 0;

		ofi_wait_slept(&conf, &w, false, 1000);
		while (reads(&conf, &w, &now, 1, 200) == OFI_STEP_YIELD)
			n++;
		assert_true(n > before || i > 2);
		assert_in_range(n, 10, 1000);
		before = n;
	}
	ofi_wait_slept(&conf, &w, true, 1000);
	assert_int_equal(reads(&conf, &w, &now, 1, 200), OFI_STEP_SLEEP);
}

/* After a long sleep the next comes sooner, unless cores are few and it comes soon anyway. What
 * came sooner than it would have spun is worth spinning for. */
static void test_long_sleep(void **state)
{
	struct ofi_wait_conf crowd = conf;
	struct ofi_wait w = {0};
	uint64_t now = 1;

	(void)state;
	assert_int_equal(reads(&conf, &w, &now, 151, 200), OFI_STEP_SLEEP);
	ofi_wait_slept(&conf, &w, true, 10000000);
	ofi_wait_came(&w);
	assert_int_equal(reads(&conf, &w, &now, 12, 200), OFI_STEP_RETURN);
	assert_int_equal(reads(&conf, &w, &now, 6, 200), OFI_STEP_YIELD);
	assert_int_equal(reads(&conf, &w, &now, 1, 200), OFI_STEP_SLEEP);
	ofi_wait_slept(&conf, &w, true, 10000);
	ofi_wait_came(&w);
	assert_int_equal(reads(&conf, &w, &now, 100, 200), OFI_STEP_RETURN);
	crowd.crowd = true;
	ofi_wait_slept(&crowd, &w, true, 10000000);
	ofi_wait_came(&w);
	assert_int_equal(reads(&crowd, &w, &now, 100, 200), OFI_STEP_RETURN);
}

/* A program that works between its tests is never delayed. */
static void test_busy_program(void **state)
{
	struct ofi_wait w = {0};
	uint64_t now = 1;

	(void)state;
	assert_int_equal(reads(&conf, &w, &now, 100000, 5000), OFI_STEP_RETURN);
}

/* It was waiting, and works now. */
static void test_work_after_wait(void **state)
{
	struct ofi_wait w = {0};
	uint64_t now = 1;

	(void)state;
	assert_int_equal(reads(&conf, &w, &now, 160, 200), OFI_STEP_SLEEP);
	reads(&conf, &w, &now, 32, 5000);
	assert_int_equal(reads(&conf, &w, &now, 1, 5000), OFI_STEP_RETURN);
}

/* Another thread, whose clock is another one: no harm. */
static void test_other_clock(void **state)
{
	struct ofi_wait w = {0};
	uint64_t now = 1000000000, other = 5;

	(void)state;
	reads(&conf, &w, &now, 160, 200);
	reads(&conf, &w, &other, 32, 200);
	assert_int_equal(reads(&conf, &w, &other, 1, 200), OFI_STEP_RETURN);
}

static void test_no_overflow(void **state)
{
	struct ofi_wait w = {.empty = UINT32_MAX - 40};
	uint64_t now = 1;

	(void)state;
	assert_int_equal(reads(&conf, &w, &now, 1000, 1), OFI_STEP_SLEEP);
}

static void test_modes(void **state)
{
	struct ofi_wait_conf crowd = {.sleep_ns = 1, .gap_ns = 1000}, calm = crowd;
	struct ofi_wait_conf spin = {.mode = OFI_WAIT_SPINS, .sleep_ns = 1, .gap_ns = 1000};
	struct ofi_wait_conf yield = {.mode = OFI_WAIT_YIELDS, .sleep_ns = 1, .gap_ns = 1000};
	struct ofi_wait_conf block = {.mode = OFI_WAIT_BLOCKS, .sleep_ns = 1, .gap_ns = 1000};
	struct ofi_wait_conf own = {.spin = 7, .yield = 9, .sleep_ns = 1};
	struct ofi_wait w = {0};
	uint64_t now = 1;

	(void)state;
	ofi_wait_defaults(&crowd, 16, 2);
	ofi_wait_defaults(&calm, 2, 2);
	assert_true(crowd.spin < calm.spin && crowd.yield < calm.yield && crowd.spin > 0);
	ofi_wait_defaults(&own, 16, 2);
	assert_true(own.spin == 7 && own.yield == 9);
	ofi_wait_defaults(&spin, 16, 2);
	assert_int_equal(reads(&spin, &w, &now, 1000000, 1), OFI_STEP_RETURN);
	ofi_wait_defaults(&yield, 16, 2);
	w = (struct ofi_wait){0};
	assert_int_equal(reads(&yield, &w, &now, 1000000, 1), OFI_STEP_YIELD);
	ofi_wait_defaults(&block, 1, 2);
	w = (struct ofi_wait){0};
	assert_int_equal(reads(&block, &w, &now, 1, 1), OFI_STEP_SLEEP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stages),          cmocka_unit_test(test_sleep_in_vain),
		cmocka_unit_test(test_long_sleep),      cmocka_unit_test(test_busy_program),
		cmocka_unit_test(test_work_after_wait), cmocka_unit_test(test_other_clock),
		cmocka_unit_test(test_no_overflow),     cmocka_unit_test(test_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
