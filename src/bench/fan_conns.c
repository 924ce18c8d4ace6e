/* Many connections between two processes: the normalised latency, and what they carry both ways. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_time.h"
#include "fan_out.h"
#include "fan_stop.h"

struct conns {
	struct fan_cell cell;
	struct bench_result_series *rate, *msgs;
	int error;
};

static int make(struct conns *c, const struct fan_type *type, size_t size, unsigned int n,
		struct fan_out *out)
{
	json_t *params = json_pack("{s:s, s:I, s:I}", "type", type->name, "size", (json_int_t)size,
				   "n", (json_int_t)n);

	*c = (struct conns){.cell = {.type = type, .size = size, .n = n}};
	c->rate = bench_result_series(out->result, "throughput", "MB/s", true, json_copy(params));
	c->msgs = bench_result_series(out->result, "message_rate", "1/s", true, params);
	return fan_cell_make(&c->cell, out->o);
}

static void pass_of(struct conns *c, struct fan_root *root, struct fan_out *out, size_t pass)
{
	struct fan_step step = {.mode = FAN_STREAM,
				.size = c->cell.size,
				.n = c->cell.n,
				.budget = out->o->step_ms * BENCH_MS};
	double rate, msgs;

	fan_cell_pass(&c->cell, root, out, pass);
	if (c->cell.error || c->error)
		return;
	c->error = fan_root_stream(root, &step, &rate, &msgs);
	if (c->error)
		return;
	bench_result_put(c->rate, pass, rate / 1e6);
	bench_result_put(c->msgs, pass, msgs);
}

static void row(struct conns *c, const struct fan_out *out)
{
	struct bench_summary rate, msgs;

	fan_cell_row(&c->cell, out);
	if (!out->table || c->cell.error)
		return;
	bench_result_summary(c->rate, &rate);
	bench_result_summary(c->msgs, &msgs);
	if (c->error || !rate.n)
		printf("%-11s %8zu %5u  both ways: %s\n", c->cell.type->name, c->cell.size,
		       c->cell.n, c->error ? strerror(-c->error) : "not measured");
	else
		printf("%-11s %8zu %5u  both ways: %.1f MB/s [%.1f, %.1f], %.0f messages/s\n",
		       c->cell.type->name, c->cell.size, c->cell.n, rate.median, rate.min, rate.max,
		       msgs.median);
}

static int measure(struct fan_root *root, struct fan_out *out, const struct fan_type *type,
		   uint64_t deadline)
{
	const struct fan_opts *o = out->o;
	size_t n = o->n_sizes * o->n_ns;
	struct conns *c = calloc(n, sizeof(*c));
	unsigned int most = (unsigned int)fan_most(o->ns, o->n_ns);
	int ret = c ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !ret; i++)
		ret = make(&c[i], type, o->sizes[i / o->n_ns], (unsigned int)o->ns[i % o->n_ns],
			   out);
	fan_progress(o, "%s, up to %u connections", type->name, most);
	if (!ret)
		ret = fan_root_open(root, type, most, fan_most(o->sizes, o->n_sizes));
	if (ret)
		fprintf(stderr, "weft bench verbs: %s: %s\n", type->name, strerror(-ret));
	for (size_t pass = 0; pass < o->passes && !ret; pass++) {
		for (size_t i = 0; i < n && !fan_stop_now(deadline) && !ret; i++) {
			struct conns *one = &c[pass % 2 ? n - 1 - i : i];

			pass_of(one, root, out, pass);
			if ((one->error || one->cell.error) && fan_root_check(root))
				ret = one->error ? one->error : one->cell.error;
		}
		if (!ret)
			ret = fan_out_keep(out, false);
	}
	fan_root_close(root);
	for (size_t i = 0; i < n && c; i++) {
		row(&c[i], out);
		if (!ret)
			ret = c[i].error ? c[i].error : c[i].cell.error;
		fan_cell_free(&c[i].cell);
	}
	free(c);
	return ret;
}

int fan_conns(struct fan_root *root, struct fan_out *out)
{
	uint64_t deadline = bench_now() + out->o->max_seconds * BENCH_S;
	int ret = 0, err;

	if (out->table)
		printf("# connections between two processes: a message on each, half of the round "
		       "trip, usec; per-msg: the same for each connection\n");
	fan_cell_head(out, "conns");
	for (int i = 0; out->o->types[i]; i++) {
		err = measure(root, out, out->o->types[i], deadline);
		if (!ret)
			ret = err;
		if (fan_stop_told() || (err && fan_root_check(root)))
			break;
	}
	return ret;
}
