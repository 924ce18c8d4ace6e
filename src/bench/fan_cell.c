/* One size and one n of a transport type, measured pass by pass. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_time.h"
#include "fan_out.h"

#define PACKETS    4096 /* that are kept of a cell, all passes together */
#define MIN_ROUNDS 8    /* of a pass */

static size_t rounds_of(const struct fan_cell *c, const struct fan_opts *o)
{
	size_t n = PACKETS / (c->n * o->passes);

	if (n < MIN_ROUNDS)
		n = MIN_ROUNDS;
	return n < o->rounds ? n : o->rounds;
}

int fan_cell_make(struct fan_cell *c, const struct fan_opts *o)
{
	struct fan_plan plan = {.n = c->n, .rounds = rounds_of(c, o) * o->passes};

	return fan_times_alloc(&c->t, &plan);
}

void fan_cell_free(struct fan_cell *c)
{
	fan_times_free(&c->t);
}

/* Microseconds of a latency. */
static double usec(const struct fan_cell *c, uint64_t ns)
{
	return (double)ns / (c->stage2 || fan_is_full_trip(c->type) ? 1e3 : 2e3);
}

static struct bench_result_series *series(const struct fan_cell *c, struct fan_out *out,
					  const char *name)
{
	const char *trip = c->stage2 || fan_is_full_trip(c->type) ? "full" : "half";

	return bench_result_series(out->result, name, "us", false,
				   json_pack("{s:s, s:I, s:I, s:i, s:s}", "type", c->type->name,
					     "size", (json_int_t)c->size, "n", (json_int_t)c->n,
					     "stage", c->stage2 ? 2 : 1, "trip", trip));
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* What this pass has added, into the result; its median is what n is compared by. */
static void keep(struct fan_cell *c, struct fan_out *out, size_t pass)
{
	size_t fresh = c->t.rounds - c->kept;
	double *sorted = calloc(fresh + 1, sizeof(*sorted));

	if (!c->round) {
		c->round = series(c, out, "round");
		c->packet = series(c, out, "packet");
		c->per_msg = series(c, out, "per_message");
	}
	for (size_t r = c->kept; r < c->t.rounds; r++) {
		double us = usec(c, c->t.round[r]);

		bench_result_add(c->round, us);
		if (sorted)
			sorted[r - c->kept] = us / c->n;
		for (unsigned int i = 0; i < c->n; i++)
			bench_result_add(c->packet, usec(c, c->t.trip[r * c->n + i]));
	}
	c->kept = c->t.rounds;
	if (sorted && fresh) {
		qsort(sorted, fresh, sizeof(*sorted), by_value);
		bench_result_put(c->per_msg, pass, bench_percentile(sorted, fresh, 0.5));
	}
	free(sorted);
}

void fan_cell_pass(struct fan_cell *c, struct fan_root *root, struct fan_out *out, size_t pass)
{
	struct fan_step step = {
		.mode = c->stage2 ? FAN_STAGE2 : FAN_ECHO,
		.size = c->size,
		.n = c->n,
		.rounds = rounds_of(c, out->o),
		.seq0 = (uint32_t)c->t.rounds,
		.budget = out->o->step_ms * BENCH_MS,
	};

	if (c->error)
		return;
	c->error = fan_root_step(root, &step, &c->t);
	if (!c->error)
		keep(c, out, pass);
}

void fan_cell_head(const struct fan_out *out, const char *n)
{
	if (out->table)
		printf("#%-10s %8s %5s %6s %9s %9s %9s %9s %9s %9s %9s %9s %5s %4s\n", "type",
		       "bytes", n, "rounds", "t_min", "t_median", "t_p99", "t_max", "t_first",
		       "t_packet", "per-msg", "MB/s", "outl", "lost");
}

void fan_cell_row(const struct fan_cell *c, const struct fan_out *out)
{
	struct bench_summary round, packet;
	char name[24];

	if (!out->table)
		return;
	snprintf(name, sizeof(name), "%s%s", c->type->name, c->stage2 ? "/2" : "");
	if (c->error || !c->round || !c->t.rounds) {
		printf("%-11s %8zu %5u  %s\n", name, c->size, c->n,
		       c->error ? strerror(-c->error) : "not measured: there was no time left");
		return;
	}
	bench_result_summary(c->round, &round);
	bench_result_summary(c->packet, &packet);
	printf("%-11s %8zu %5u %6zu %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.1f %5zu %4zu\n",
	       name, c->size, c->n, round.n, round.min, round.median, round.p99, round.max,
	       usec(c, c->t.round[0]), packet.median, round.median / c->n,
	       (double)(c->n * c->size) / round.median, round.outliers, c->t.lost);
}

static double median_of(const struct bench_result_series *s)
{
	struct bench_summary sum;

	bench_result_summary(s, &sum);
	return sum.median;
}

/* Among the cells that differ from `like` in n alone. */
static void best_of(const struct fan_cell *cells, size_t n, const struct fan_cell *like)
{
	const struct fan_cell *best = NULL, *one = NULL;
	struct bench_comparison cmp;

	for (const struct fan_cell *c = cells; c < cells + n; c++) {
		if (c->type != like->type || c->size != like->size || c->stage2 != like->stage2 ||
		    !c->per_msg)
			continue;
		if (c->n == 1)
			one = c;
		if (!best || median_of(c->per_msg) < median_of(best->per_msg))
			best = c;
	}
	if (!best)
		return;
	printf("# %s%s, %zu bytes: best n = %u, %.2f us per message", like->type->name,
	       like->stage2 ? ", stage 2" : "", like->size, best->n, median_of(best->per_msg));
	if (one && one != best) {
		bench_result_compare(best->per_msg, one->per_msg, &cmp);
		printf(", %.2f", cmp.ratio);
		if (isfinite(cmp.ci.lo) && isfinite(cmp.ci.hi))
			printf(" [%.2f, %.2f]", cmp.ci.lo, cmp.ci.hi);
		printf(" of n = 1: %s", bench_verdicts[cmp.verdict]);
	}
	putchar('\n');
}

void fan_cell_best(const struct fan_cell *cells, size_t n, const struct fan_out *out)
{
	for (size_t i = 0; i < n && out->table; i++) {
		bool first = true;

		for (size_t k = 0; k < i && first; k++)
			first = cells[k].type != cells[i].type || cells[k].size != cells[i].size ||
				cells[k].stage2 != cells[i].stage2;
		if (first)
			best_of(cells, n, &cells[i]);
	}
}
