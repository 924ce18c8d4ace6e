#include <errno.h>
#include <stdio.h>

#include "bench_json.h"
#include "bench_opts.h"
#include "bench_reg.h"
#include "bench_time.h"
#include "bench_verbs.h"

static json_t *report(struct bench_reg *r, const struct bench_opts *opts)
{
	json_t *row = json_pack("{s:I}", "size", (json_int_t)r->size);
	struct bench_summary s;
	char name[32];

	if (bench_json_is_table(opts))
		printf("%-10zu %8zu", r->size, r->n);
	for (int i = 0; i < BENCH_REG_WHATS; i++) {
		bench_summarize(r->sample[i], r->n, &s);
		snprintf(name, sizeof(name), "%s_us", bench_reg_names[i]);
		json_object_set_new(row, name, bench_json_summary(&s));
		if (bench_json_is_table(opts))
			printf(" %12.3f", s.median);
	}
	if (bench_json_is_table(opts))
		printf("\n");
	return row;
}

static int measure(struct bench_reg *r, const struct bench_opts *opts, uint64_t deadline,
		   json_t *rows)
{
	size_t n = bench_reg_times(opts->rounds, r->size);
	int ret = bench_reg_make(r, n);

	for (size_t i = 0; i < n && !ret && bench_now() < deadline; i++)
		ret = bench_reg_once(r);
	if (!ret && r->n)
		json_array_append_new(rows, report(r, opts));
	bench_reg_free(r);
	return ret;
}

static void head(const struct bench_opts *opts)
{
	if (!bench_json_is_table(opts))
		return;
	printf("# registering memory, and a copy of it, medians; first: memory that was never "
	       "touched\n#%-9s %8s",
	       "bytes", "times");
	for (int i = 0; i < BENCH_REG_WHATS; i++)
		printf(" %12s", bench_reg_names[i]);
	printf("  [usec]\n");
}

int bench_reg_run(struct bench_env *env, const struct bench_opts *opts)
{
	uint64_t deadline = bench_now() + opts->max_seconds * BENCH_S;
	json_t *doc, *rows = json_array();
	int ret = bench_dev_get(env);

	if (!ret)
		head(opts);
	for (size_t i = 0; i < opts->n_sizes && !ret; i++) {
		struct bench_reg r = {.pd = env->dev->pd, .size = opts->sizes[i]};

		ret = measure(&r, opts, deadline, rows);
	}
	if (ret) {
		json_decref(rows);
		return ret;
	}
	doc = bench_json_document(env, opts);
	json_object_set_new(doc, "results", rows);
	return bench_json_write(opts, doc);
}
