/* Registering and deregistering memory, beside a copy of it. */
#include <stdio.h>

#include "bench_reg.h"
#include "bench_time.h"
#include "fan_out.h"
#include "fan_stop.h"

static void keep(const struct bench_reg *r, struct fan_out *out)
{
	for (int w = 0; w < BENCH_REG_WHATS; w++) {
		struct bench_result_series *s =
			bench_result_series(out->result, bench_reg_names[w], "us", false,
					    json_pack("{s:I}", "size", (json_int_t)r->size));
		struct bench_summary sum;

		for (size_t i = 0; i < r->n; i++)
			bench_result_add(s, r->sample[w][i]);
		bench_result_summary(s, &sum);
		if (out->table)
			printf("%s%9.3f %9.3f", w ? " " : "", sum.min, sum.median);
	}
	if (out->table)
		putchar('\n');
}

static int measure(struct fan_root *root, struct fan_out *out, size_t size, uint64_t deadline)
{
	struct bench_reg r = {.pd = root->env.dev->pd, .size = size};
	size_t n = bench_reg_times(out->o->passes, size);
	int ret = bench_reg_make(&r, n);

	for (size_t i = 0; i < n && !ret && !fan_stop_now(deadline); i++)
		ret = bench_reg_once(&r);
	if (!ret && r.n) {
		if (out->table)
			printf("%-10zu %6zu ", size, r.n);
		keep(&r, out);
	}
	bench_reg_free(&r);
	return ret;
}

int fan_reg(struct fan_root *root, struct fan_out *out)
{
	const struct fan_opts *o = out->o;
	uint64_t deadline = bench_now() + o->max_seconds * BENCH_S;
	int ret = 0;

	if (out->table) {
		printf("# registering memory, and a copy of it, least and median, usec; first: "
		       "memory that was never touched\n#%-9s %6s",
		       "bytes", "times");
		for (int w = 0; w < BENCH_REG_WHATS; w++)
			printf(" %19s", bench_reg_names[w]);
		putchar('\n');
	}
	for (size_t i = 0; i < o->n_sizes && !ret && !fan_stop_told(); i++) {
		ret = measure(root, out, o->sizes[i], deadline);
		if (!ret)
			ret = fan_out_keep(out, false);
	}
	return ret;
}
