/* Commands on result files: what was asked and what was reached; columns to plot. */
#include <stdio.h>
#include <string.h>

#include "bench_json.h"

static int which_file(const struct bench_opts *opts)
{
	fprintf(stderr, "weft-perf: %s: %s? Try `weft-perf --help`.\n", opts->command,
		opts->n_args ? "which of these files" : "which file");
	return 2;
}

static json_t *load(const char *path)
{
	json_error_t err;
	json_t *doc = json_load_file(path, 0, &err);

	if (!doc)
		fprintf(stderr, "weft-perf: %s: line %d: %s\n", path, err.line, err.text);
	return doc;
}

/* The part of the benchmark that a file holds: its name without directory and suffix. */
static int part_name(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/'), *dot;

	*name = slash ? slash + 1 : path;
	dot = strrchr(*name, '.');
	return (int)(dot && dot != *name ? (size_t)(dot - *name) : strlen(*name));
}

/* One line of the table; returns whether the target was met. The same may be asked of several
 * parts, so each line begins with its own. */
static bool print_target(const char *path, const json_t *t)
{
	const json_t *q1 = json_object_get(t, "q1"), *q3 = json_object_get(t, "q3");
	const json_t *v = json_object_get(t, "value");
	bool pass = json_is_true(json_object_get(t, "pass"));
	char spread[32] = "", value[32];
	const char *part;
	int len = part_name(path, &part);

	if (json_is_number(q1) && json_is_number(q3))
		snprintf(spread, sizeof(spread), "[%.3f .. %.3f]", json_number_value(q1),
			 json_number_value(q3));
	snprintf(value, sizeof(value), json_is_number(v) ? "%.3f" : "-", json_number_value(v));
	printf("%-20.*s %-44s %9s  %-16s %s %.2f  %s\n", len, part,
	       json_string_value(json_object_get(t, "what")), value, spread,
	       json_string_value(json_object_get(t, "relation")),
	       json_number_value(json_object_get(t, "limit")), pass ? "PASS" : "MISS");
	return pass;
}

int bench_summary_report(const struct bench_opts *opts)
{
	bool all = true, readable = true, busy = false;

	if (!opts->n_args)
		return which_file(opts);
	printf("%-20s %-44s %9s  %-16s %s\n", "# part", "target", "median", "quartiles", "limit");
	for (int i = 0; i < opts->n_args; i++) {
		json_t *doc = load(opts->args[i]), *t;
		size_t k;

		if (!doc) {
			readable = false;
			continue;
		}
		json_array_foreach (json_object_get(doc, "targets"), k, t)
			all = print_target(opts->args[i], t) && all;
		if (json_number_value(json_object_get(doc, "preemptions_per_second")) >
			    BENCH_BUSY ||
		    json_is_true(json_object_get(doc, "busy")))
			busy = true;
		json_decref(doc);
	}
	if (busy)
		printf("# NOTE: other work was running on the same cores: measure again when the "
		       "machine is quiet\n");
	if (!readable)
		return 1;
	return opts->strict && !all ? 3 : 0;
}

static const json_t *median_of(const json_t *result)
{
	static const char *const units[] = {"usec", "MBps", "percent"};
	const json_t *v = NULL;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && !v; i++)
		v = json_object_get(result, units[i]);
	return json_object_get(v, "median");
}

static const char *kind_of(const json_t *results, size_t i)
{
	return json_string_value(json_object_get(json_array_get(results, i), "kind"));
}

static bool is_first(const json_t *results, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (kind_of(results, k) && !strcmp(kind_of(results, k), kind_of(results, i)))
			return false;
	return true;
}

/* Those of the kind of result `first`. A kind without any has no name either. */
static void plot_kind(const json_t *results, size_t first)
{
	bool named = false;

	for (size_t i = first; i < json_array_size(results); i++) {
		const json_t *r = json_array_get(results, i), *median = median_of(r);
		const char *kind = kind_of(results, i);

		if (!kind || strcmp(kind, kind_of(results, first)) != 0 || !json_is_number(median))
			continue;
		if (!named)
			printf("%s\n", kind);
		named = true;
		printf("%lld %g\n", (long long)json_integer_value(json_object_get(r, "size")),
		       json_number_value(median));
	}
	if (named)
		printf("\n\n");
}

/* A block of "size median" lines for each kind, named on the line before it and two
 * blank lines apart, as gnuplot's `index` wants them. */
int bench_summary_plot(const struct bench_opts *opts)
{
	const json_t *results;
	json_t *doc;

	if (opts->n_args != 1)
		return which_file(opts);
	doc = load(opts->args[0]);
	if (!doc)
		return 1;
	results = json_object_get(doc, "results");
	for (size_t i = 0; i < json_array_size(results); i++)
		if (kind_of(results, i) && is_first(results, i))
			plot_kind(results, i);
	json_decref(doc);
	return 0;
}
