/* Statistics of samples: pure functions, no clock, no memory of their own.
 *
 * Latency distributions on a shared machine have a long tail that says more about the
 * neighbours than about the stack, so everything that is judged is judged by medians,
 * and everything that is compared is compared round by round (bench_ratios) before the
 * median is taken: what slows one round slows both sides of its ratio.
 */
#ifndef WEFT_BENCH_STATS_H
#define WEFT_BENCH_STATS_H

#include <stddef.h>

struct bench_summary {
	size_t n;
	double min, p1, q1, median, mean, q3, p99, max; /* NaN when n is 0 */
};

/* p in [0, 1] of n ascending values, linear between neighbours (Hyndman-Fan type 7);
 * NaN when n is 0. */
double bench_percentile(const double *sorted, size_t n, double p);

/* Sorts v in place; NaN values are left out of everything and end up behind the rest. */
void bench_summarize(double *v, size_t n, struct bench_summary *s);

/* out[i] = num[i] / (den[i] * scale). Pairs with a missing side (NaN, zero or negative
 * denominator) are skipped; returns how many ratios were written. */
size_t bench_ratios(const double *num, const double *den, size_t n, double scale, double *out);

#endif
