#include <math.h>
#include <stdlib.h>

#include "bench_stats.h"

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
	};
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
