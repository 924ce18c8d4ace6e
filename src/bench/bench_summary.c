/* Commands on result files: what was asked and what was reached; columns to plot. */
#include <stdio.h>
#include <string.h>

#include "bench_json.h"

static json_t *load(const char *path)
{
	json_error_t err;
	json_t *doc = json_load_file(path, 0, &err);

	if (!doc)
		fprintf(stderr, "weft-perf: %s: line %d: %s\n", path, err.line, err.text);
	return doc;
}

/* One line of the table; returns whether the target was met. */
static bool print_target(const json_t *t)
{
	const json_t *q1 = json_object_get(t, "q1"), *q3 = json_object_get(t, "q3");
	bool pass = json_is_true(json_object_get(t, "pass"));
	char spread[32] = "";

	if (json_is_number(q1) && json_is_number(q3))
		snprintf(spread, sizeof(spread), "[%.3f .. %.3f]", json_number_value(q1),
			 json_number_value(q3));
	printf("%-44s %12.3f  %-16s %s %.2f  %s\n", json_string_value(json_object_get(t, "what")),
	       json_number_value(json_object_get(t, "value")), spread,
	       json_string_value(json_object_get(t, "relation")),
	       json_number_value(json_object_get(t, "limit")), pass ? "PASS" : "MISS");
	return pass;
}

int bench_summary_report(const struct bench_opts *opts)
{
	bool all = true, readable = true, busy = false;

	printf("%-45s%12s  %-16s %s\n", "# target", "median", "quartiles", "limit");
	for (int i = 0; i < opts->n_args; i++) {
		json_t *doc = load(opts->args[i]), *t;
		size_t k;

		if (!doc) {
			readable = false;
			continue;
		}
		json_array_foreach (json_object_get(doc, "targets"), k, t)
			all = print_target(t) && all;
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
	json_t *doc = opts->n_args == 1 ? load(opts->args[0]) : NULL, *r;
	size_t k;

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
