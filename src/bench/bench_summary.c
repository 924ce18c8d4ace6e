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
	bool pass = json_is_true(json_object_get(t, "pass"));
	char spread[32] = "";
	const char *part;
	int len = part_name(path, &part);

	if (json_is_number(q1) && json_is_number(q3))
		snprintf(spread, sizeof(spread), "[%.3f .. %.3f]", json_number_value(q1),
			 json_number_value(q3));
	printf("%-20.*s %-44s %9.3f  %-16s %s %.2f  %s\n", len, part,
	       json_string_value(json_object_get(t, "what")),
	       json_number_value(json_object_get(t, "value")), spread,
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
		if (json_number_value(json_object_get(doc, "preemptions_per_second")) > BENCH_BUSY)
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
	const json_t *v = json_object_get(result, "usec");

	return json_object_get(v ? v : json_object_get(result, "MBps"), "median");
}

/* A block of "size median" lines for each kind, named on the line before it and two
 * blank lines apart, as gnuplot's `index` wants them. */
int bench_summary_plot(const struct bench_opts *opts)
{
	json_t *doc, *r;
	size_t k;

	if (opts->n_args != 1)
		return which_file(opts);
	doc = load(opts->args[0]);
	if (!doc)
		return 1;
	for (int i = 0; bench_kinds[i]; i++) {
		bool named = false;

		json_array_foreach (json_object_get(doc, "results"), k, r) {
			const char *kind = json_string_value(json_object_get(r, "kind"));

			if (!kind || strcmp(kind, bench_kinds[i]->name) != 0 ||
			    !json_is_number(median_of(r)))
				continue;
			if (!named)
				printf("%s\n", kind);
			named = true;
			printf("%lld %g\n",
			       (long long)json_integer_value(json_object_get(r, "size")),
			       json_number_value(median_of(r)));
		}
		if (named)
			printf("\n\n");
	}
	json_decref(doc);
	return 0;
}
