/* Percentiles, summaries and ratios against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "bench_stats.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-12)

static void percentile_of_nothing(void **state)
{
	(void)state;
	assert_true(isnan(bench_percentile(NULL, 0, 0.5)));
}

static void percentile_of_one(void **state)
{
	const double v[] = {7};

	(void)state;
	NEAR(bench_percentile(v, 1, 0), 7);
	NEAR(bench_percentile(v, 1, 0.5), 7);
	NEAR(bench_percentile(v, 1, 1), 7);
}

static void percentile_interpolates(void **state)
{
	const double v[] = {10, 20, 30, 40};

	(void)state;
	NEAR(bench_percentile(v, 4, 0), 10);
	NEAR(bench_percentile(v, 4, 0.25), 17.5);
	NEAR(bench_percentile(v, 4, 0.5), 25);
	NEAR(bench_percentile(v, 4, 0.99), 39.7);
	NEAR(bench_percentile(v, 4, 1), 40);
}

static void summary_sorts(void **state)
{
	double v[] = {5, 1, 4, 2, 3};
	struct bench_summary s;

	(void)state;
	bench_summarize(v, 5, &s);
	assert_int_equal(s.n, 5);
	NEAR(s.min, 1);
	NEAR(s.q1, 2);
	NEAR(s.median, 3);
	NEAR(s.mean, 3);
	NEAR(s.q3, 4);
	NEAR(s.max, 5);
	NEAR(v[0], 1);
	NEAR(v[4], 5);
}

static void summary_leaves_out_what_is_missing(void **state)
{
	double v[] = {NAN, 3, NAN, 1, 2, NAN};
	struct bench_summary s;

	(void)state;
	bench_summarize(v, 6, &s);
	assert_int_equal(s.n, 3);
	NEAR(s.median, 2);
	NEAR(s.mean, 2);
	NEAR(s.max, 3);
}

static void summary_of_nothing(void **state)
{
	double v[] = {NAN};
	struct bench_summary s;

	(void)state;
	bench_summarize(v, 1, &s);
	assert_int_equal(s.n, 0);
	assert_true(isnan(s.median) && isnan(s.mean) && isnan(s.min) && isnan(s.max));
	bench_summarize(NULL, 0, &s);
	assert_int_equal(s.n, 0);
}

/* One outlier in a hundred must not move the median, and must show in the tail. */
static void summary_resists_outliers(void **state)
{
	struct bench_summary s;
	double v[100];

	(void)state;
	for (int i = 0; i < 100; i++)
		v[i] = 4;
	v[50] = 100000;
	bench_summarize(v, 100, &s);
	NEAR(s.median, 4);
	NEAR(s.q3, 4);
	assert_true(s.p99 > 4 && s.mean > 1000);
	NEAR(s.max, 100000);
}

static void ratios_skip_incomplete_rounds(void **state)
{
	const double num[] = {2, NAN, 6, 8, 5}, den[] = {1, 2, NAN, 4, 0};
	double out[5];

	(void)state;
	assert_int_equal(bench_ratios(num, den, 5, 1, out), 2);
	NEAR(out[0], 2);
	NEAR(out[1], 2);
	assert_int_equal(bench_ratios(num, den, 5, 2, out), 2);
	NEAR(out[0], 1);
	assert_int_equal(bench_ratios(num, den, 0, 1, out), 0);
}

/* The reason for rounds: a machine that is slow at times is so for both sides. */
static void ratios_cancel_a_common_disturbance(void **state)
{
	double raw[20], rnic[20], out[20];
	struct bench_summary s;

	(void)state;
	for (int i = 0; i < 20; i++) {
		raw[i] = i % 3 ? 4 : 40;
		rnic[i] = raw[i] * 1.25;
	}
	bench_summarize(out, bench_ratios(rnic, raw, 20, 1, out), &s);
	NEAR(s.min, 1.25);
	NEAR(s.median, 1.25);
	NEAR(s.max, 1.25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentile_of_nothing),
		cmocka_unit_test(percentile_of_one),
		cmocka_unit_test(percentile_interpolates),
		cmocka_unit_test(summary_sorts),
		cmocka_unit_test(summary_leaves_out_what_is_missing),
		cmocka_unit_test(summary_of_nothing),
		cmocka_unit_test(summary_resists_outliers),
		cmocka_unit_test(ratios_skip_incomplete_rounds),
		cmocka_unit_test(ratios_cancel_a_common_disturbance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
