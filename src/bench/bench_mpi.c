/* Stacks side by side, for people and for machines. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_json.h"
#include "bench_mpi.h"

static const char judged_stack[] = "weft";

/* One thing that is said about Weft in a row: its value, or its ratio to a base. */
struct verdict {
	const char *base; /* what targets call it; "": the value itself */
	int stack;        /* the base's; -1 with a value */
	struct bench_summary s;
	const struct bench_target *target; /* NULL: nothing is asked */
};

enum { VERDICTS = 4 };

/* "overlap:receiver" where targets depend on a key, else the series. */
static void test_name(const struct bench_mpi_spec *spec, const struct bench_mpi_row *r, char *text,
		      size_t len)
{
	snprintf(text, len, "%s", spec->series);
	for (int i = 0; spec->judged && spec->keys[i]; i++)
		if (!strcmp(spec->keys[i], spec->judged))
			snprintf(text, len, "%s:%s", spec->series, r->key[i]);
}

static int verdicts(const struct bench_mpi *m, const struct bench_mpi_row *r, struct verdict *out)
{
	int n = 0, weft = bench_mpi_stack(m, judged_stack);
	char test[2 * BENCH_MPI_NAME];

	test_name(m->spec, r, test, sizeof(test));
	out[n] = (struct verdict){"", -1, {0}, bench_target_find(test, judged_stack, "", r->size)};
	bench_mpi_summary(m, r, weft, &out[n].s);
	if (out[n].target && weft >= 0)
		n++;
	for (int i = 0; m->spec->bases[i]; i++) {
		const char *base = m->spec->bases[i];
		struct verdict *v = &out[n];

		*v = (struct verdict){base,
				      bench_mpi_base(m, r, base),
				      {0},
				      bench_target_find(test, judged_stack, base, r->size)};
		bench_mpi_ratio(m, r, weft, v->stack, &v->s);
		/* What was asked and not measured is not met; the best may have been named
		 * already. */
		if (weft >= 0 && v->stack >= 0 &&
		    (v->target || (v->s.n && (!n || v[-1].stack != v->stack))))
			n++;
	}
	return n;
}

/* ---- for people ---- */

static int key_width(const struct bench_mpi *m, int k)
{
	size_t w = strlen(m->spec->keys[k]);

	for (size_t i = 0; i < m->n_rows; i++)
		if (w < strlen(m->rows[i]->key[k]))
			w = strlen(m->rows[i]->key[k]);
	return (int)w + 1;
}

static void print_keys(const struct bench_mpi *m, const struct bench_mpi_row *r)
{
	for (int k = 0; m->spec->keys[k]; k++)
		printf("%s%-*s",
		       r   ? ""
		       : k ? " "
			   : "#",
		       key_width(m, k) + (r ? 1 : 0), r ? r->key[k] : m->spec->keys[k]);
}

static void print_head(const struct bench_mpi *m)
{
	printf("# %s\n# medians of up to %zu rounds%s%s, stacks in turn%s\n", m->spec->title,
	       m->rounds, *m->spec->unit ? " in " : "", m->spec->unit,
	       m->spec->bases[0] ? "; ratio: median [quartiles] of the rounds'" : "");
	print_keys(m, NULL);
	for (size_t i = 0; i < m->n_stacks; i++)
		printf(" %11s", m->stacks[i]);
	printf("%s\n", m->spec->bases[0] ? "  weft's ratio" : "");
}

static void print_verdict(const struct bench_mpi *m, const struct verdict *v)
{
	if (v->stack >= 0 && v->s.n)
		printf("  %5.2f [%.2f..%.2f]", v->s.median, v->s.q1, v->s.q3);
	else if (v->stack >= 0)
		printf("  %5s", "-");
	if (v->stack >= 0)
		printf(" x %s%s", m->stacks[v->stack],
		       strcmp(v->base, "best") != 0 ? "" : ", the best");
	if (v->target)
		printf(" %s %.2f %s", v->target->at_most ? "<=" : ">=", v->target->limit,
		       bench_target_met(v->target, v->s.median) ? "PASS" : "MISS");
}

/* Some rows have no value on any stack, by their nature, and nothing is asked of them. */
static bool is_empty(const struct bench_mpi *m, const struct bench_mpi_row *r)
{
	struct bench_summary s;

	for (int i = 0; i < (int)m->n_stacks; i++) {
		bench_mpi_summary(m, r, i, &s);
		if (s.n)
			return false;
	}
	return true;
}

static void print_row(const struct bench_mpi *m, const struct bench_mpi_row *r)
{
	struct verdict v[VERDICTS];
	struct bench_summary s;
	int n = verdicts(m, r, v);

	if (!n && is_empty(m, r))
		return;
	print_keys(m, r);
	for (int i = 0; i < (int)m->n_stacks; i++) {
		bench_mpi_summary(m, r, i, &s);
		if (s.n)
			printf(" %11.2f", s.median);
		else
			printf(" %11s", "-");
	}
	for (int k = 0; k < n; k++)
		print_verdict(m, &v[k]);
	putchar('\n');
}

static void print_table(const struct bench_mpi *m, bool busy)
{
	print_head(m);
	for (size_t i = 0; i < m->n_rows; i++)
		print_row(m, m->rows[i]);
	if (m->cut)
		printf("# NOTE: the time of %zu runs was over too early: rows may be missing\n",
		       m->cut);
	if (busy)
		printf("# NOTE: the machine was busy with other work: neither absolute values nor "
		       "ratios are reliable\n");
	putchar('\n');
}

/* ---- for machines ---- */

/* "65536 bytes, sender-early, receiver: weft / tcp" */
static void what(const struct bench_mpi *m, const struct bench_mpi_row *r, const struct verdict *v,
		 char *text, size_t len)
{
	int first = strcmp(m->spec->keys[0], "size");
	size_t n =
		(size_t)snprintf(text, len, "%s %s", r->key[0], first ? m->spec->keys[0] : "bytes");

	for (int k = 1; m->spec->keys[k] && n < len; k++)
		n += (size_t)snprintf(text + n, len - n, ", %s", r->key[k]);
	if (v->stack >= 0 && n < len)
		snprintf(text + n, len - n, ": %s / %s", judged_stack, m->stacks[v->stack]);
}

static void add_targets(const struct bench_mpi *m, const struct bench_mpi_row *r, json_t *targets)
{
	struct verdict v[VERDICTS];
	int n = verdicts(m, r, v);
	char text[160];

	for (int i = 0; i < n; i++) {
		if (!v[i].target)
			continue;
		what(m, r, &v[i], text, sizeof(text));
		json_array_append_new(targets, bench_json_target(text, v[i].target, v[i].s.median,
								 v[i].s.n ? &v[i].s : NULL));
	}
}

/* "weft/sender-early/receiver": what a line of a picture is called; the size is its axis. */
static void line_name(const struct bench_mpi *m, const struct bench_mpi_row *r, int stack,
		      char *text, size_t len)
{
	size_t n = (size_t)snprintf(text, len, "%s", m->stacks[stack]);

	for (int k = 1; m->spec->keys[k] && n < len; k++)
		n += (size_t)snprintf(text + n, len - n, "/%s", r->key[k]);
}

static json_t *result_json(const struct bench_mpi *m, const struct bench_mpi_row *r, int stack)
{
	json_t *rounds = json_array(), *j = json_object();
	struct bench_summary s;
	char kind[160];

	line_name(m, r, stack, kind, sizeof(kind));
	bench_mpi_summary(m, r, stack, &s);
	for (size_t i = 0; i < m->rounds; i++)
		json_array_append_new(rounds, bench_json_number(r->v[stack][i]));
	json_object_set_new(j, "kind", json_string(kind));
	json_object_set_new(j, "stack", json_string(m->stacks[stack]));
	for (int k = 0; m->spec->keys[k]; k++)
		json_object_set_new(j, m->spec->keys[k],
				    k || !r->size ? json_string(r->key[k])
						  : json_integer((json_int_t)r->size));
	json_object_set_new(j, *m->spec->unit ? m->spec->unit : m->spec->value,
			    bench_json_summary(&s));
	json_object_set_new(j, "rounds", rounds);
	return j;
}

static int write_json(const struct bench_mpi *m, const struct bench_opts *opts)
{
	json_t *doc = bench_json_document(NULL, opts);
	json_t *results = json_array(), *targets = json_array();

	for (size_t i = 0; i < m->n_rows; i++) {
		for (int s = 0; s < (int)m->n_stacks; s++)
			json_array_append_new(results, result_json(m, m->rows[i], s));
		add_targets(m, m->rows[i], targets);
	}
	json_object_del(doc, "options"); /* of weft-perf's own measurements */
	json_object_set_new(doc, "series", json_string(m->spec->series));
	json_object_set_new(doc, "busy", json_boolean(opts->busy));
	json_object_set_new(doc, "cut_short", json_integer((json_int_t)m->cut));
	json_object_set_new(doc, "results", results);
	json_object_set_new(doc, "targets", targets);
	return bench_json_write(opts, doc);
}

int bench_mpi_report(const struct bench_opts *opts)
{
	struct bench_mpi m = {0};
	int ret = 0;

	if (!opts->n_args) {
		fprintf(stderr, "weft-perf: mpi: which files? Try `weft-perf --help`.\n");
		return 2;
	}
	for (int i = 0; i < opts->n_args && !ret; i++)
		ret = bench_mpi_load(&m, opts->args[i]);
	if (!ret && bench_json_is_table(opts))
		print_table(&m, opts->busy);
	if (!ret)
		ret = write_json(&m, opts);
	bench_mpi_free(&m);
	return ret ? 1 : 0;
}
