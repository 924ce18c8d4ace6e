/* Which results are judged, and how. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bench_target.h"

static void latency_is_judged_at_eight_bytes(void **state)
{
	const struct bench_target *t = bench_target_find("lat", "rc", "tcp", 8);

	(void)state;
	assert_non_null(t);
	assert_true(bench_target_met(t, 1.30));
	assert_false(bench_target_met(t, 1.31));
	assert_null(bench_target_find("lat", "rc", "tcp", 9));
	assert_null(bench_target_find("lat", "rc", "udp", 8));
	t = bench_target_find("lat", "ud", "udp", 8);
	assert_non_null(t);
	assert_true(bench_target_met(t, 1.2));
	assert_false(bench_target_met(t, 1.21));
}

static void bandwidth_is_judged_from_64_kib_up(void **state)
{
	const struct bench_target *t = bench_target_find("bw", "rc", "tcp", 65536);

	(void)state;
	assert_non_null(t);
	assert_ptr_equal(t, bench_target_find("bw", "rc", "tcp", 1 << 20));
	assert_null(bench_target_find("bw", "rc", "tcp", 65535));
	assert_true(bench_target_met(t, 0.85));
	assert_true(bench_target_met(t, 2));
	assert_false(bench_target_met(t, 0.84));
}

/* Against what it is built on, and against what it is to replace. */
static void reliable_datagrams_are_judged_twice(void **state)
{
	const struct bench_target *t = bench_target_find("lat", "rd", "udp", 8);

	(void)state;
	assert_non_null(t);
	assert_true(bench_target_met(t, 1.15));
	assert_false(bench_target_met(t, 1.16));
	t = bench_target_find("lat", "rd", "rc", 8);
	assert_non_null(t);
	assert_true(bench_target_met(t, 0.99));
	assert_false(bench_target_met(t, 1.01));
	assert_null(bench_target_find("lat", "rd", "rc", 64));

	t = bench_target_find("bw", "rd", "rc", 1 << 20);
	assert_non_null(t);
	assert_true(bench_target_met(t, 1.3));
	assert_false(bench_target_met(t, 1.29));
	t = bench_target_find("bw", "rd", "udp-gso", 1 << 20);
	assert_non_null(t);
	assert_true(bench_target_met(t, 0.6));
	assert_false(bench_target_met(t, 0.59));
	assert_null(bench_target_find("bw", "rd", "rc", 65536));
}

/* At a thousand peers; at fewer, what a process needs without any weighs too much. */
static void a_thousand_peers_cost_a_kilobyte_each(void **state)
{
	const struct bench_target *t = bench_target_find("peers", "rd", "", 1024);

	(void)state;
	assert_non_null(t);
	assert_true(bench_target_met(t, 1024));
	assert_false(bench_target_met(t, 1025));
	assert_null(bench_target_find("peers", "rd", "", 512));
	assert_null(bench_target_find("peers", "rc", "", 1024));
}

static void idle_means_not_a_nanosecond(void **state)
{
	const struct bench_target *t = bench_target_find("idle", "", "", 0);

	(void)state;
	assert_non_null(t);
	assert_true(bench_target_met(t, 0));
	assert_false(bench_target_met(t, 1));
}

static void mpi_is_judged_by_series(void **state)
{
	const struct bench_target *t = bench_target_find("overlap:receiver", "weft", "", 65536);

	(void)state;
	assert_non_null(t);
	assert_true(bench_target_met(t, 95));
	assert_false(bench_target_met(t, 94.9));
	t = bench_target_find("overlap:sender", "weft", "", 8 << 20);
	assert_non_null(t);
	assert_true(bench_target_met(t, 90));
	assert_null(bench_target_find("overlap:receiver", "weft-off", "", 65536));
	t = bench_target_find("wire-latency", "weft", "best", 8);
	assert_non_null(t);
	assert_false(bench_target_met(t, 0.91));
	assert_null(bench_target_find("wire-latency", "weft", "best", 64));
	assert_non_null(bench_target_find("wire-bandwidth", "weft", "tcp", 4 << 20));
}

/* Eager messages have nothing to speculate about, longer ones little to lose. */
static void speculation_is_judged_by_protocol(void **state)
{
	static const char test[] = "speculation:crossing";

	(void)state;
	assert_false(bench_target_met(bench_target_find(test, "weft", "weft-nospec", 65536), 1.02));
	assert_true(bench_target_met(bench_target_find(test, "weft", "weft-nospec", 65537), 1.02));
	assert_null(bench_target_find("speculation:send-first", "weft", "weft-nospec", 8));
}

static void no_result_meets_no_target(void **state)
{
	(void)state;
	assert_false(bench_target_met(bench_target_find("lat", "rc", "tcp", 8), NAN));
	assert_false(bench_target_met(bench_target_find("bw", "rc", "tcp", 65536), NAN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency_is_judged_at_eight_bytes),
		cmocka_unit_test(bandwidth_is_judged_from_64_kib_up),
		cmocka_unit_test(reliable_datagrams_are_judged_twice),
		cmocka_unit_test(a_thousand_peers_cost_a_kilobyte_each),
		cmocka_unit_test(idle_means_not_a_nanosecond),
		cmocka_unit_test(mpi_is_judged_by_series),
		cmocka_unit_test(speculation_is_judged_by_protocol),
		cmocka_unit_test(no_result_meets_no_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
