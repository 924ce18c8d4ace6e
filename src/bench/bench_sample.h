/* Statistics of samples: pure functions, no clock, no randomness, no memory of their own.
 *
 * Latency distributions on a shared machine have a long tail that says more about the
 * neighbours than about the stack, so everything that is judged is judged by medians,
 * and everything that is compared is compared round by round: what slows one round slows both
 * sides of it. No distribution is assumed anywhere; intervals come from order statistics.
 *
 * The median of one series has the interval between its k-th smallest and k-th largest value,
 * where k follows from the binomial distribution (the sign test turned round).
 *
 * Two series that were measured in turn are compared by the Hodges-Lehmann estimate of the ratio
 * within a round: the median of all pairwise means of the rounds' logarithms. Its interval is
 * Wilcoxon's signed-rank test turned round, with that test's exact distribution. If both sides are
 * the same thing and take turns at being first, either of them is as likely to be the slower one by
 * any factor, however skewed the noise: then the level holds exactly, with 8 rounds as with 50,
 * which can not be said of a bootstrap.
 */
#ifndef WEFT_BENCH_SAMPLE_H
#define WEFT_BENCH_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>

/* Of intervals of one series, for the eye. */
#define BENCH_LEVEL 0.95
/* Of intervals that decide. A table has many rows: at 95 % one of twenty that show no difference
 * would be called one. */
#define BENCH_VERDICT_LEVEL 0.99

/* -INFINITY .. INFINITY when there are too few values to say anything at that level. */
struct bench_interval {
	double lo, hi;
};

struct bench_summary {
	size_t n;
	double min, p1, q1, median, mean, q3, p99, max; /* NaN when n is 0 */
	struct bench_interval ci;                       /* of the median, at BENCH_LEVEL */
	size_t outliers; /* farther than three times q3 - q1 below q1 or above q3 */
};

/* p in [0, 1] of n ascending values, linear between neighbours (Hyndman-Fan type 7);
 * NaN when n is 0. */
double bench_percentile(const double *sorted, size_t n, double p);

/* Sorts v in place; NaN values are left out of everything and end up behind the rest. */
void bench_summarize(double *v, size_t n, struct bench_summary *s);

/* Of the median of n ascending values; from 6 values on for 95 %, 8 for 99 %. */
struct bench_interval bench_median_interval(const double *sorted, size_t n, double level);

/* out[i] = num[i] / (den[i] * scale). Pairs with a missing side (NaN, zero or negative
 * denominator) are skipped; returns how many ratios were written. */
size_t bench_ratios(const double *num, const double *den, size_t n, double scale, double *out);

/* ---- comparison ---- */

enum bench_verdict {
	BENCH_TOO_FEW, /* rounds for an interval: nothing can be said */
	BENCH_NO_DIFFERENCE,
	BENCH_BETTER,
	BENCH_WORSE,
};
extern const char *const bench_verdicts[]; /* "too few rounds", "no difference", ... */

/* How two series are compared. */
struct bench_how {
	bool higher;     /* values are better */
	bool difference; /* a - b instead of a / b: for percentages, which may be 0 */
	double level;    /* 0: BENCH_VERDICT_LEVEL */
};

struct bench_comparison {
	size_t n;                   /* rounds that have both sides */
	double ratio;               /* a / b, or a - b; NaN when n is 0 */
	struct bench_interval ci;   /* of it */
	enum bench_verdict verdict; /* of a, beside b; says a difference only if ci has none of
				     * "the same" (1, or 0) in it */
};

/* a[i] and b[i] are of round i; NaN where one failed, and such rounds are left out, as are those
 * that have no ratio (a side that is not positive). scratch has room for n. */
void bench_compare(const double *a, const double *b, size_t n, const struct bench_how *how,
		   double *scratch, struct bench_comparison *out);
/* The fewest rounds that can show a difference at this level. */
size_t bench_rounds_needed(double level);

#endif
