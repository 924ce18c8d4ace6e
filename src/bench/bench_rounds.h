/* Latency and bandwidth of several kinds, side by side.
 *
 * A round is one short step of every kind, one after the other on channels that stay
 * open; every other round runs backwards, so that a machine that gets steadily slower
 * favours nobody. Kinds are compared within a round.
 */
#ifndef WEFT_BENCH_ROUNDS_H
#define WEFT_BENCH_ROUNDS_H

#include "bench_kind.h"
#include "bench_opts.h"
#include "bench_sample.h"

/* One kind at one size. Values are microseconds (lat) or MB/s (bw). */
struct bench_series {
	const struct bench_kind *kind;
	struct bench_chan **chan; /* the kind's; replaced after a failure */
	size_t size;
	int error;             /* why it was given up, or 0 */
	unsigned int failures; /* steps that failed */
	uint64_t count;        /* messages of one round */
	double *round;         /* the median (lat) or mean (bw) of each round; NaN: none */
	double *pool;          /* all samples of all rounds (lat) */
	size_t n_pool;
	uint64_t sent, received, lost;
	uint64_t preempted; /* involuntary context switches of the client meanwhile */
	double seconds;     /* spent in its steps */
};

struct bench_rounds {
	unsigned int test; /* BENCH_LAT or BENCH_BW */
	size_t rounds, n;
	struct bench_series *series; /* of all sizes; one size's stand together */
};

/* Runs opts->kinds at opts->sizes and prints. 0, or -errno when something failed. */
int bench_rounds_run(struct bench_env *env, const struct bench_opts *opts, unsigned int test);

/* kind's series at the same size as s, or NULL. */
const struct bench_series *bench_series_of(const struct bench_rounds *r,
					   const struct bench_series *s, const char *kind);
/* The ratio of s to base, round by round; false when there is no round to compare. */
bool bench_series_ratio(const struct bench_rounds *r, const struct bench_series *s,
			const struct bench_series *base, struct bench_summary *out);

/* bench_report.c: tables on stdout and JSON as the options say. */
int bench_rounds_report(const struct bench_env *env, const struct bench_opts *opts,
			struct bench_rounds *r);

#endif
