/* The 1:n n:1 ping-pong of every transport type, over sizes and n. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_time.h"
#include "fan_out.h"
#include "fan_stop.h"

struct plan {
	struct fan_root *root;
	struct fan_out *out;
	uint64_t deadline;
	struct fan_cell *cell;
	size_t n, room;
};

static int add(struct plan *p, const struct fan_type *type, size_t size, unsigned int n,
	       bool stage2)
{
	struct fan_cell *more;

	if (p->n == p->room) {
		more = realloc(p->cell, (p->room * 2 + 16) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		p->cell = more;
		p->room = p->room * 2 + 16;
	}
	p->cell[p->n] = (struct fan_cell){.type = type, .size = size, .n = n, .stage2 = stage2};
	return fan_cell_make(&p->cell[p->n++], p->out->o);
}

/* Sizes that the type can not have are left out, after a word. An atomic has one size. */
static int cells_of(struct plan *p, const struct fan_type *type, size_t *largest)
{
	const struct fan_opts *o = p->out->o;
	size_t limit = fan_type_limit(&p->root->env, type), n_sizes = o->n_sizes;
	int ret = 0;

	*largest = 0;
	if (type->func == FAN_ATOMIC)
		n_sizes = 1;
	for (size_t s = 0; s < n_sizes && !ret; s++) {
		size_t size = type->func == FAN_ATOMIC ? limit : o->sizes[s];

		if (size > limit) {
			fan_progress(o, "%s: a message has at most %zu bytes; left out: %zu",
				     type->name, limit, size);
			continue;
		}
		*largest = size > *largest ? size : *largest;
		for (size_t i = 0; i < o->n_ns && !ret; i++)
			ret = add(p, type, size, (unsigned int)o->ns[i], false);
		for (size_t i = 0; i < o->n_ns && !ret && type->func == FAN_READ; i++)
			ret = add(p, type, size, (unsigned int)o->ns[i], true);
	}
	return ret;
}

/* Everything in turn, and every other pass backwards: a machine that gets steadily slower favours
 * no n. A peer that is gone is gone for all that follows. */
static int passes(struct plan *p, size_t from)
{
	size_t cells = p->n - from;

	for (size_t pass = 0; pass < p->out->o->passes; pass++) {
		for (size_t i = 0; i < cells && !fan_stop_now(p->deadline); i++) {
			size_t at = pass % 2 ? cells - 1 - i : i;
			struct fan_cell *c = &p->cell[from + at];

			fan_cell_pass(c, p->root, p->out, pass);
			if (c->error && fan_root_check(p->root))
				return c->error;
		}
		if (fan_out_keep(p->out, false))
			return -EIO;
	}
	return 0;
}

static int measure_type(struct plan *p, const struct fan_type *type)
{
	unsigned int most = (unsigned int)fan_most(p->out->o->ns, p->out->o->n_ns);
	size_t from = p->n, largest;
	int ret = cells_of(p, type, &largest);

	if (ret || !largest)
		return ret;
	fan_progress(p->out->o, "%s, up to %u peers, %zu steps", type->name, most, p->n - from);
	ret = fan_root_open(p->root, type, most, largest);
	if (ret) {
		fprintf(stderr, "weft bench verbs: %s: %s\n", type->name,
			ret == -EOPNOTSUPP ? "this device has no such queue pairs"
					   : strerror(-ret));
		/* What the device has not is no failure of the measurement. */
		while (p->n > from)
			fan_cell_free(&p->cell[--p->n]);
		return ret == -EOPNOTSUPP ? 0 : ret;
	}
	ret = passes(p, from);
	fan_root_close(p->root);
	for (size_t i = from; i < p->n; i++) {
		fan_cell_row(&p->cell[i], p->out);
		if (!ret)
			ret = p->cell[i].error;
		/* The times are in the result; the row has been printed. */
		fan_cell_free(&p->cell[i]);
	}
	return ret;
}

int fan_pingpong(struct fan_root *root, struct fan_out *out)
{
	struct plan p = {
		.root = root, .out = out, .deadline = bench_now() + out->o->max_seconds * BENCH_S};
	int ret = 0, err;

	if (out->table)
		printf("# 1:n n:1 ping-pong: half of a round, usec; reads and atomics the whole; "
		       "rc-read/2: all read from node 0\n");
	fan_cell_head(out, "n");
	for (int i = 0; out->o->types[i]; i++) {
		err = measure_type(&p, out->o->types[i]);
		if (!ret)
			ret = err;
		/* Without its peers nothing more can be measured. */
		if (fan_stop_told() || (err && fan_root_check(root)))
			break;
	}
	fan_cell_best(p.cell, p.n, out);
	for (size_t i = 0; i < p.n; i++)
		fan_cell_free(&p.cell[i]);
	free(p.cell);
	return ret;
}
