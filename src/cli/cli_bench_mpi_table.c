/* weft bench mpi: what it prints at the end. */
#include "cli_bench_mpi.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct bench_result_series *
same_row(const struct bench_mpi *b, const struct bench_result_series *s, const char *stack)
{
	json_t *want = json_copy(s->params);
	const struct bench_result_series *found = NULL;

	json_object_set_new(want, "stack", json_string(stack));
	for (size_t i = 0; i < b->result->n && !found; i++)
		if (!strcmp(b->result->series[i]->name, s->name) &&
		    json_equal(b->result->series[i]->params, want))
			found = b->result->series[i];
	json_decref(want);
	return found;
}

static void print_verdict(const struct bench_result_series *s,
			  const struct bench_result_series *other, const char *stack)
{
	struct bench_comparison c;

	bench_result_compare(s, other, &c);
	printf("  %.3f", c.ratio);
	if (c.verdict != BENCH_TOO_FEW)
		printf(" [%.3f..%.3f]", c.ci.lo, c.ci.hi);
	printf(" %s %s: %s", strcmp(s->unit, "%") ? "x" : "points from", stack,
	       bench_verdicts[c.verdict]);
}

static void print_series(const struct bench_mpi *b, const struct bench_mpi_kind *k,
			 const struct bench_result_series *s)
{
	char text[32];
	const char *stack = bench_result_param(s, "stack", text), *key;
	struct bench_summary sum;

	bench_result_summary(s, &sum);
	for (int i = 0; k->keys[i]; i++) {
		char number[32];

		key = bench_result_param(s, k->keys[i], number);
		printf(i ? " %-14s" : "%-10s", key ? key : "-");
	}
	printf(" %-12s %5zu ", stack, sum.n);
	printf(sum.n ? "%11.2f" : "          -", sum.median);
	if (isfinite(sum.ci.lo))
		printf(" [%.2f..%.2f]", sum.ci.lo, sum.ci.hi);
	for (int i = 1; i < b->stacks && !strcmp(stack, b->stack[0].name); i++) {
		const struct bench_result_series *other = same_row(b, s, b->stack[i].name);

		if (other && sum.n)
			print_verdict(s, other, b->stack[i].name);
	}
	putchar('\n');
}

void bench_mpi_table(const struct bench_mpi *b, const struct bench_mpi_kind *k)
{
	printf("# %s: %s, %s; median of up to %d rounds [95 %%]%s\n", k->name, k->summary, k->unit,
	       b->rounds, b->stacks > 1 ? ", and the first stack beside others [99 %]" : "");
	for (int i = 0; k->keys[i]; i++)
		printf(i ? " %-14s" : "# %-8s", k->keys[i]);
	printf(" %-12s %5s %11s\n", "stack", "n", k->unit);
	for (size_t i = 0; i < b->result->n; i++)
		if (!strcmp(b->result->series[i]->name, k->name))
			print_series(b, k, b->result->series[i]);
	putchar('\n');
}
