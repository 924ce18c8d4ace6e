#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench_json.h"
#include "bench_rounds.h"
#include "bench_step.h"
#include "bench_time.h"

#define PROBES       8       /* attempts at finding the length of a stream */
#define LAT_BUDGET   BENCH_S /* of a step that has to do with a busy machine */
#define MAX_FAILURES 1       /* of one kind at one size */
#define MIN_ROUNDS   3       /* however little time there is */
#define MIN_STREAM   16      /* messages; fewer would measure the start and the end */

static uint64_t preemptions(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (uint64_t)ru.ru_nivcsw;
}

/* Round trips at the head of each step that only warm up caches and the scheduler. */
static uint64_t warmup(const struct bench_opts *opts)
{
	return opts->iters / 10 < 20 ? 20 : opts->iters / 10;
}

static int lat_round(const struct bench_opts *opts, struct bench_series *s, size_t round,
		     double *scratch)
{
	static uint32_t steps; /* so that no two steps share sequence numbers */
	struct bench_step step = {.size = s->size,
				  .count = s->count + warmup(opts),
				  .seq0 = ++steps << 20,
				  .budget = LAT_BUDGET,
				  .sample = scratch};
	int ret = bench_step_lat(*s->chan, &step);
	double scale = s->kind->full_trip ? 1e-3 : 0.5e-3;
	struct bench_summary sum;
	uint64_t skip;

	if (ret)
		return ret;
	/* A step that was cut short gives up no more than half of itself. */
	skip = warmup(opts) < step.done / 2 ? warmup(opts) : step.done / 2;
	for (uint64_t i = skip; i < step.done; i++)
		s->pool[s->n_pool++] = scratch[i] *= scale;
	bench_summarize(scratch + skip, step.done - skip, &sum);
	s->round[round] = sum.median;
	s->sent += step.done;
	s->received += step.done;
	s->lost += step.lost;
	return 0;
}

static int bw_round(struct bench_series *s, size_t round)
{
	struct bench_step step = {.size = s->size, .count = s->count};
	uint64_t ns;
	int ret = bench_step_bw(*s->chan, &step, &ns);

	if (ret)
		return ret;
	s->round[round] = ns ? (double)step.rx_bytes * 1e3 / (double)ns : 0;
	s->sent += step.count;
	s->received += step.rx_msgs;
	s->lost += step.count - step.rx_msgs;
	return 0;
}

/* Finds how many messages fill opts->round_ms; this also opens TCP's window. A probe that
 * took much longer or shorter than it should is tried again with a better guess: one
 * hiccup must not make all rounds short. */
static int calibrate(const struct bench_opts *opts, struct bench_series *s)
{
	uint64_t want = opts->round_ms * BENCH_MS;

	s->count = 64;
	for (int i = 0; i < PROBES; i++) {
		struct bench_step step = {.size = s->size, .count = s->count};
		uint64_t t0 = bench_now(), ns, took, next;
		int ret = bench_step_bw(*s->chan, &step, &ns);

		if (ret)
			return ret;
		/* The wall clock, so that a flood with few arrivals is bounded too. */
		took = bench_now() - t0;
		next = s->count * want / took;
		if (next > s->count * 8)
			next = s->count * 8; /* the first probes are slow starts */
		s->count = next > MIN_STREAM ? next : MIN_STREAM;
		if (took > want / 2 && took < want * 2)
			break;
	}
	return 0;
}

/* A step failed. Its channel is in an unknown state: opens a new one, so that one time-out
 * on a busy machine does not cost everything that follows. A second failure does. */
static void failed(struct bench_series *s, int error)
{
	struct bench_env *env = (*s->chan)->env;

	fprintf(stderr, "weft-perf: %s, %zu bytes: a step failed: %s\n", s->kind->name, s->size,
		strerror(-error));
	if (++s->failures > MAX_FAILURES)
		s->error = error;
	bench_chan_close(*s->chan);
	error = bench_chan_open(env, s->kind, s->chan);
	if (error)
		fprintf(stderr, "weft-perf: %s: cannot be opened again: %s\n", s->kind->name,
			strerror(-error));
}

static bool usable(struct bench_series *s)
{
	if (!s->error && !*s->chan) /* lost at another size */
		s->error = -ENOTCONN;
	return !s->error;
}

static void one_round(const struct bench_opts *opts, struct bench_rounds *r, struct bench_series *s,
		      size_t n, size_t round, double *scratch)
{
	for (size_t k = 0; k < n; k++) {
		struct bench_series *one = &s[round & 1 ? n - 1 - k : k];
		uint64_t before = preemptions(), t0 = bench_now();
		int ret;

		if (!usable(one))
			continue;
		ret = r->test == BENCH_LAT ? lat_round(opts, one, round, scratch)
					   : bw_round(one, round);
		if (ret)
			failed(one, ret);
		one->preempted += preemptions() - before;
		one->seconds += (double)(bench_now() - t0) / 1e9;
	}
}

static void one_size(const struct bench_opts *opts, struct bench_rounds *r, struct bench_series *s,
		     size_t n, uint64_t deadline, double *scratch)
{
	uint64_t shown = bench_now();

	bench_progress(opts, "%s: %zu bytes, %zu kinds, %zu rounds", opts->command, s->size, n,
		       r->rounds);
	for (size_t k = 0; k < n && r->test == BENCH_BW; k++) {
		int ret = usable(&s[k]) ? calibrate(opts, &s[k]) : 0;

		if (ret)
			failed(&s[k], ret);
	}
	for (size_t round = 0; round < r->rounds; round++) {
		if (round >= MIN_ROUNDS && bench_now() > deadline)
			break;
		one_round(opts, r, s, n, round, scratch);
		if (bench_now() - shown < 3 * BENCH_S)
			continue;
		shown = bench_now();
		bench_progress(opts, "%s: %zu bytes, round %zu of %zu", opts->command, s->size,
			       round + 1, r->rounds);
	}
}

static int add_series(const struct bench_opts *opts, struct bench_rounds *r,
		      const struct bench_kind *kind, struct bench_chan **chan, int error,
		      size_t size)
{
	struct bench_series *s = &r->series[r->n];

	*s = (struct bench_series){
		.kind = kind, .chan = chan, .size = size, .error = error, .count = opts->iters};
	s->round = calloc(r->rounds, sizeof(*s->round));
	if (!s->round)
		return -ENOMEM;
	for (size_t i = 0; i < r->rounds; i++)
		s->round[i] = NAN;
	if (r->test == BENCH_LAT) {
		s->pool = malloc(r->rounds * (opts->iters + warmup(opts)) * sizeof(*s->pool));
		if (!s->pool)
			return -ENOMEM;
		/* No page faults between steps. */
		memset(s->pool, 0, r->rounds * (opts->iters + warmup(opts)) * sizeof(*s->pool));
	}
	r->n++;
	return 0;
}

/* A device may lack a type (RD is Weft's): that is a failure only if it was asked for. */
static bool left_out(const struct bench_opts *opts, int error)
{
	return opts->all_kinds && error == -EOPNOTSUPP;
}

/* A table of what will be measured: every kind at every size that it can carry. */
static int plan(const struct bench_env *env, const struct bench_opts *opts, struct bench_rounds *r,
		struct bench_chan *chan[], const int error[])
{
	r->series = calloc(opts->n_sizes * BENCH_MAX_KINDS, sizeof(*r->series));
	if (!r->series)
		return -ENOMEM;
	for (size_t i = 0; i < opts->n_sizes; i++)
		for (int k = 0; opts->kinds[k]; k++) {
			const struct bench_kind *kind = opts->kinds[k];

			if (!(kind->tests & r->test) || left_out(opts, error[k]) ||
			    opts->sizes[i] > bench_kind_limit(env, kind))
				continue;
			if (add_series(opts, r, kind, &chan[k], error[k], opts->sizes[i]))
				return -ENOMEM;
		}
	return 0;
}

static void open_all(struct bench_env *env, const struct bench_opts *opts, unsigned int test,
		     struct bench_chan *chan[], int error[])
{
	for (int k = 0; opts->kinds[k]; k++) {
		if (!(opts->kinds[k]->tests & test))
			continue;
		error[k] = bench_chan_open(env, opts->kinds[k], &chan[k]);
		if (left_out(opts, error[k])) {
			fprintf(stderr, "weft-perf: %s: left out, the device has none\n",
				opts->kinds[k]->name);
			continue;
		}
		if (error[k] && !(opts->kinds[k]->verbs && env->no_dev)) /* said before */
			fprintf(stderr, "weft-perf: %s: cannot be opened: %s\n",
				opts->kinds[k]->name, strerror(-error[k]));
	}
}

/* Sizes share the time that is left: one that was quick leaves more to the others. */
static int measure(const struct bench_opts *opts, struct bench_rounds *r)
{
	double *scratch = calloc(opts->iters + warmup(opts), sizeof(*scratch));
	uint64_t end = bench_now() + opts->max_seconds * BENCH_S;
	size_t sizes = opts->n_sizes;

	if (!scratch)
		return -ENOMEM;
	for (size_t i = 0, n; i < r->n; i += n) {
		uint64_t now = bench_now();

		for (n = 1; i + n < r->n && r->series[i + n].size == r->series[i].size; n++)
			;
		one_size(opts, r, &r->series[i], n, now < end ? now + (end - now) / sizes : now,
			 scratch);
		sizes -= sizes > 1;
	}
	free(scratch);
	return 0;
}

static int finish(const struct bench_env *env, const struct bench_opts *opts,
		  struct bench_rounds *r)
{
	int ret = bench_rounds_report(env, opts, r);

	for (size_t i = 0; i < r->n; i++) {
		if (!ret)
			ret = r->series[i].error;
		free(r->series[i].round);
		free(r->series[i].pool);
	}
	free(r->series);
	return ret;
}

int bench_rounds_run(struct bench_env *env, const struct bench_opts *opts, unsigned int test)
{
	struct bench_rounds r = {.test = test, .rounds = opts->rounds};
	struct bench_chan *chan[BENCH_MAX_KINDS] = {NULL};
	int error[BENCH_MAX_KINDS] = {0}, ret;

	open_all(env, opts, test, chan, error);
	ret = plan(env, opts, &r, chan, error);
	if (!ret)
		ret = measure(opts, &r);
	if (!ret)
		ret = finish(env, opts, &r);
	for (int k = 0; k < BENCH_MAX_KINDS; k++)
		if (chan[k])
			bench_chan_close(chan[k]);
	return ret;
}
