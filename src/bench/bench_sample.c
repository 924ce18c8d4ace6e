#include <math.h>
#include <stdlib.h>

#include "bench_sample.h"

enum {
	EXACT_SIGNS = 1000, /* values whose sign test is exact: 2^-1000 is a number */
	EXACT_RANKS = 64,   /* rounds whose signed-rank test is */
};

const char *const bench_verdicts[] = {"too few rounds", "no difference", "better", "worse"};

static const struct bench_interval unknown = {-INFINITY, INFINITY};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	/* NaN sorts last, so that the numbers are one block at the front. */
	if (isnan(x) || isnan(y))
		return !!isnan(x) - !!isnan(y);
	return (x > y) - (x < y);
}

double bench_percentile(const double *sorted, size_t n, double p)
{
	if (!n)
		return NAN;

	double pos = p * (double)(n - 1);
	size_t lo = (size_t)pos;

	if (pos <= 0)
		return sorted[0];
	if (lo >= n - 1)
		return sorted[n - 1];
	return sorted[lo] + (pos - (double)lo) * (sorted[lo + 1] - sorted[lo]);
}

static size_t count_outliers(const double *sorted, size_t n, double q1, double q3)
{
	double far = 3 * (q3 - q1);
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += sorted[i] < q1 - far || sorted[i] > q3 + far;
	return found;
}

void bench_summarize(double *v, size_t n, struct bench_summary *s)
{
	double sum = 0;

	if (n) /* no values may come without an array */
		qsort(v, n, sizeof(*v), by_value);
	while (n && isnan(v[n - 1]))
		n--;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	*s = (struct bench_summary){
		.n = n,
		.min = bench_percentile(v, n, 0),
		.p1 = bench_percentile(v, n, 0.01),
		.q1 = bench_percentile(v, n, 0.25),
		.median = bench_percentile(v, n, 0.5),
		.mean = n ? sum / (double)n : NAN,
		.q3 = bench_percentile(v, n, 0.75),
		.p99 = bench_percentile(v, n, 0.99),
		.max = bench_percentile(v, n, 1),
		.ci = bench_median_interval(v, n, BENCH_LEVEL),
	};
	s->outliers = count_outliers(v, n, s->q1, s->q3);
}

size_t bench_ratios(const double *num, const double *den, size_t n, double scale, double *out)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		double d = den[i] * scale;

		if (isnan(num[i]) || isnan(d) || d <= 0)
			continue;
		out[m++] = num[i] / d;
	}
	return m;
}

/* ---- how many of the smallest and of the largest lie outside ---- */

/* The z beyond which `tail` of a normal distribution lies. */
static double normal_quantile(double tail)
{
	double lo = 0, hi = 40;

	for (int i = 0; i < 100; i++) {
		double z = (lo + hi) / 2;

		if (erfc(z / sqrt(2)) / 2 > tail)
			lo = z;
		else
			hi = z;
	}
	return hi;
}

/* The largest k for which fewer than k of n values lie below their median, by no more than the
 * chance `tail`; 0: none. */
static size_t sign_depth(size_t n, double tail)
{
	double p = ldexp(1, -(int)n), sum = p;
	size_t k = 0;

	if (n > EXACT_SIGNS) {
		double d = ((double)n - normal_quantile(tail) * sqrt((double)n)) / 2;

		return d > 1 ? (size_t)d : 0;
	}
	while (k < n / 2 && sum <= tail) {
		k++;
		p *= (double)(n - k + 1) / (double)k;
		sum += p;
	}
	return k;
}

struct bench_interval bench_median_interval(const double *sorted, size_t n, double level)
{
	size_t k = n ? sign_depth(n, (1 - level) / 2) : 0;

	return k ? (struct bench_interval){sorted[k - 1], sorted[n - k]} : unknown;
}

/* The same for the n (n + 1) / 2 pairwise means: the chance that the ranks of those rounds that
 * favour one side have a sum below k. */
static size_t rank_depth(size_t n, double tail)
{
	double p[EXACT_RANKS * (EXACT_RANKS + 1) / 2 + 1] = {1}, sum;
	size_t most = n * (n + 1) / 2, k = 0;

	if (n > EXACT_RANKS) {
		double sd = sqrt((double)most * (2 * (double)n + 1) / 12);
		double d = (double)most / 2 - normal_quantile(tail) * sd;

		return d > 1 ? (size_t)d : 0;
	}
	/* Each rank is in the sum or not, with equal chances. */
	for (size_t i = 1; i <= n; i++)
		for (size_t w = i * (i + 1) / 2 + 1; w-- > 0;)
			p[w] = (p[w] + (w >= i ? p[w - i] : 0)) / 2;
	for (sum = p[0]; k < most / 2 && sum <= tail; sum += p[k])
		k++;
	return k;
}

size_t bench_rounds_needed(double level)
{
	size_t n = 1;

	while (n < EXACT_RANKS && !rank_depth(n, (1 - level) / 2))
		n++;
	return n;
}

/* ---- pairwise means ---- */

/* How many of the means of two of v, each with itself included, are at most t. */
static size_t means_up_to(const double *v, size_t n, double t)
{
	size_t found = 0, k = n;

	for (size_t i = 0; i < n; i++) {
		while (k > 0 && (v[i] + v[k - 1]) / 2 > t)
			k--;
		if (k <= i) /* those with smaller ones were counted there */
			break;
		found += k - i;
	}
	return found;
}

/* The k-th smallest of them, k from 1 on: there may be too many to write them down. */
static double nth_mean(const double *v, size_t n, size_t k)
{
	double lo = v[0], hi = v[n - 1];

	if (means_up_to(v, n, lo) >= k)
		return lo;
	/* Until there is no number between the two; each step halves what is between them. */
	for (int i = 0; i < 2200; i++) {
		double mid = lo + (hi - lo) / 2;

		if (mid <= lo || mid >= hi)
			break;
		if (means_up_to(v, n, mid) >= k)
			hi = mid;
		else
			lo = mid;
	}
	return hi;
}

/* ---- comparison ---- */

/* What is compared of each round; how many there are. */
static size_t effects(const double *a, const double *b, size_t n, bool difference, double *out)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isfinite(a[i]) || !isfinite(b[i]) || (!difference && (a[i] <= 0 || b[i] <= 0)))
			continue;
		out[m++] = difference ? a[i] - b[i] : log(a[i]) - log(b[i]);
	}
	return m;
}

static enum bench_verdict judge(const struct bench_interval *ci, bool higher)
{
	if (!isfinite(ci->lo) || !isfinite(ci->hi))
		return BENCH_TOO_FEW;
	if (ci->lo <= 0 && ci->hi >= 0)
		return BENCH_NO_DIFFERENCE;
	return (ci->lo > 0) == higher ? BENCH_BETTER : BENCH_WORSE;
}

void bench_compare(const double *a, const double *b, size_t n, const struct bench_how *how,
		   double *scratch, struct bench_comparison *out)
{
	double level = how->level > 0 ? how->level : BENCH_VERDICT_LEVEL;
	size_t m = effects(a, b, n, how->difference, scratch), all = m * (m + 1) / 2, k;

	*out = (struct bench_comparison){.n = m, .ratio = NAN, .ci = unknown};
	if (!m)
		return;
	qsort(scratch, m, sizeof(*scratch), by_value);
	out->ratio = (nth_mean(scratch, m, (all + 1) / 2) + nth_mean(scratch, m, all / 2 + 1)) / 2;
	k = rank_depth(m, (1 - level) / 2);
	if (k) {
		out->ci.lo = nth_mean(scratch, m, k);
		out->ci.hi = nth_mean(scratch, m, all + 1 - k);
	}
	out->verdict = judge(&out->ci, how->higher);
	if (how->difference)
		return;
	out->ratio = exp(out->ratio);
	if (k)
		out->ci = (struct bench_interval){exp(out->ci.lo), exp(out->ci.hi)};
}
