/* Round-trip time: the arithmetic of RFC 6298, and the limits of the timeout. */

#include "test_rd.h"
#include "rd_rtt.h"

static void test_before(void **state)
{
	struct rd_rtt r = {0};

	(void)state;
	assert_true(rd_rtt_timeout(&r, NULL, 0) == RD_RTT_INITIAL);
	assert_true(rd_rtt_timeout(&r, NULL, 1) == 2 * RD_RTT_INITIAL);
	assert_true(rd_rtt_timeout(&r, NULL, 255) == RD_RTO_MAX);
}

static void test_first(void **state)
{
	struct rd_rtt r = {0};

	(void)state;
	rd_rtt_sample(&r, 10 * MS);
	assert_true(r.smoothed == 10 * MS && r.deviation == 5 * MS);
	assert_true(r.latest == 10 * MS && r.least == 10 * MS);
	assert_true(rd_rtt_timeout(&r, NULL, 0) == 30 * MS);
	rd_rtt_sample(&r, 18 * MS);
	assert_true(r.deviation == (3 * 5 * MS + 8 * MS) / 4);
	assert_true(r.smoothed == 11 * MS);
	assert_true(r.latest == 18 * MS && r.least == 10 * MS);
}

static void test_limits(void **state)
{
	struct rd_rtt r = {0};

	(void)state;
	for (int i = 0; i < 100; i++)
		rd_rtt_sample(&r, 100 * US);
	assert_true(rd_rtt_timeout(&r, NULL, 0) == RD_PROBE_MIN);
	assert_true(rd_rtt_timeout(&r, NULL, 1) == 2 * RD_RTO_MIN);
	assert_true(rd_rtt_timeout(&r, NULL, 5) == 32 * RD_RTO_MIN);
	assert_true(rd_rtt_timeout(&r, NULL, 6) == RD_RTO_MAX);
	assert_true(rd_rtt_timeout(&r, NULL, 4000) == RD_RTO_MAX);
	for (int i = 0; i < 100; i++)
		rd_rtt_sample(&r, 10000 * MS);
	assert_true(rd_rtt_timeout(&r, NULL, 0) == RD_RTO_MAX);
	assert_true(r.least == 100 * US);
}

/* A clock that did not move is a sample all the same. */
static void test_zero(void **state)
{
	struct rd_rtt r = {0};

	(void)state;
	for (int i = 0; i < 10; i++) {
		rd_rtt_sample(&r, 0);
		assert_true(r.smoothed > 0);
	}
	assert_true(rd_rtt_timeout(&r, NULL, 0) == RD_PROBE_MIN);
}

/* After a change it settles at the new value within some dozens of samples. */
static void test_follows(void **state)
{
	struct rd_rtt r = {0};

	(void)state;
	for (int i = 0; i < 50; i++)
		rd_rtt_sample(&r, 200 * US);
	for (int i = 0; i < 50; i++)
		rd_rtt_sample(&r, 20 * MS);
	assert_in_range(r.smoothed, 19 * MS, 20 * MS);
	assert_in_range(rd_rtt_timeout(&r, NULL, 0), 29 * MS, 31 * MS);
}

/* What is known of all paths to a place counts for each: before its first packet, and while its own
 * few have met shorter queues. A slow one does not hear that others are fast. */
static void test_all(void **state)
{
	struct rd_rtt path = {0}, all = {0};

	(void)state;
	assert_true(rd_rtt_timeout(&path, &all, 0) == RD_RTT_INITIAL);
	for (int i = 0; i < 50; i++)
		rd_rtt_sample(&all, 40 * MS);
	assert_in_range(rd_rtt_timeout(&path, &all, 0), 60 * MS, 61 * MS);
	rd_rtt_sample(&path, 2 * MS);
	assert_true(rd_rtt_timeout(&path, NULL, 0) == 6 * MS);
	assert_in_range(rd_rtt_timeout(&path, &all, 0), 60 * MS, 61 * MS);
	for (int i = 0; i < 50; i++)
		rd_rtt_sample(&path, 100 * MS);
	assert_in_range(rd_rtt_timeout(&path, &all, 0), 145 * MS, 155 * MS);
}

/* What is expected counts until there is a sample, and never makes one more hasty than who knows
 * nothing. */
static void test_expected(void **state)
{
	struct rd_rtt r = {0}, slow = {0}, fast = {0};

	(void)state;
	for (int i = 0; i < 50; i++) {
		rd_rtt_sample(&slow, 40 * MS);
		rd_rtt_sample(&fast, 20 * US);
	}
	rd_rtt_expect(&r, &fast);
	assert_true(rd_rtt_timeout(&r, NULL, 0) == RD_RTT_INITIAL);
	rd_rtt_expect(&r, &slow);
	assert_in_range(rd_rtt_timeout(&r, NULL, 0), 60 * MS, 61 * MS);
	rd_rtt_sample(&r, 1 * MS);
	assert_true(r.smoothed == 1 * MS && r.least == 1 * MS && r.samples == 1);
	assert_true(rd_rtt_timeout(&r, NULL, 0) == 3 * MS);
	rd_rtt_expect(&r, &slow);
	assert_true(r.smoothed == 1 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_before),   cmocka_unit_test(test_first),
		cmocka_unit_test(test_limits),   cmocka_unit_test(test_zero),
		cmocka_unit_test(test_follows),  cmocka_unit_test(test_all),
		cmocka_unit_test(test_expected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
