/* To which hosts a switch has no way.
 *
 * Two sweeps. From the leaves to the top: what a switch can not go down to. From the top to the
 * leaves: what none of its parents leads to. Each asks only for sets that are finished. Sets are
 * runs of host numbers: where a sub-tree is cut off it is one run, and most switches have none. */
#include "fabric_routes_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct list {
	struct fabric_gap *at;
	uint32_t n, room;
	bool failed;
};

struct make {
	struct fabric_around *x;
	const struct fabric_tree *tree;
	const struct fabric_pgft *t;
	/* Of the parents of alike switches that have all their cables, and of one that has not. */
	struct list shared, own, gaps, both;
	uint8_t *open; /* by parent: is there a cable? */
};

/* In ascending order; runs that touch become one. */
static void push(struct list *l, uint32_t first, uint32_t end)
{
	if (first >= end || l->failed)
		return;
	if (l->n && l->at[l->n - 1].end == first) {
		l->at[l->n - 1].end = end;
		return;
	}
	if (l->n == l->room) {
		uint32_t room = l->room ? 2 * l->room : 64;
		struct fabric_gap *at = realloc(l->at, room * sizeof(*at));

		l->failed = !at;
		if (!at)
			return;
		l->at = at;
		l->room = room;
	}
	l->at[l->n++] = (struct fabric_gap){first, end};
}

static void push_part(struct list *l, const struct fabric_gap *from, uint32_t n, uint32_t first,
		      uint32_t end)
{
	for (uint32_t i = 0; i < n; i++)
		push(l, from[i].first > first ? from[i].first : first,
		     from[i].end < end ? from[i].end : end);
}

static int keep(struct fabric_around *x, uint32_t sw, const struct list *l)
{
	struct fabric_around_switch *of = &x->of[sw];
	size_t bytes = l->n * sizeof(*l->at);

	if (l->failed)
		return -ENOMEM;
	of->n_gaps = l->n;
	/* Often that of the one before. */
	of->gap = x->n_gaps - l->n;
	if (!l->n || (l->n <= x->n_gaps && !memcmp(x->gaps + of->gap, l->at, bytes)))
		return 0;
	of->gap = x->n_gaps;
	while (x->n_gaps + l->n > x->room_gaps) {
		size_t room = x->room_gaps ? 2 * x->room_gaps : 64;
		struct fabric_gap *gaps = realloc(x->gaps, room * sizeof(*gaps));

		if (!gaps)
			return -ENOMEM;
		x->gaps = gaps;
		x->room_gaps = room;
	}
	memcpy(x->gaps + of->gap, l->at, bytes);
	x->n_gaps += l->n;
	return 0;
}

/* ---- down ---- */

static int sweep_down(struct make *m, struct fabric_node n)
{
	const struct fabric_pgft *t = m->t;
	uint32_t l = n.level, sw = fabric_number(t, n) - t->first[1];
	uint32_t host = n.index / t->W[l] * t->M[l];

	m->gaps.n = 0;
	if (!fabric_tree_has_node(m->tree, fabric_number(t, n))) {
		push(&m->gaps, 0, fabric_hosts(t));
		return keep(m->x, sw, &m->gaps);
	}
	for (uint32_t i = 0; i < t->m[l]; i++, host += t->M[l - 1]) {
		struct fabric_cable c = fabric_cable_down(t, n, i);
		uint32_t cable = fabric_cable_number(t, &c);
		const struct fabric_around_switch *child;
		bool open = false;

		for (uint32_t k = 0; k < t->p[l]; k++)
			open |= fabric_tree_has_cable(m->tree, cable + k * t->w[l]);
		if (!open) {
			push(&m->gaps, host, host + t->M[l - 1]);
		} else if (l > 1) {
			child = &m->x->of[fabric_number(t, c.lower) - t->first[1]];
			push_part(&m->gaps, m->x->gaps + child->gap, child->n_gaps, 0, UINT32_MAX);
		}
	}
	return keep(m->x, sw, &m->gaps);
}

/* ---- up ---- */

static void intersect(struct list *a, const struct fabric_gap *b, uint32_t n, struct list *both)
{
	struct list swap = *a;
	uint32_t i = 0, k = 0;

	both->n = 0;
	while (i < a->n && k < n) {
		uint32_t first = a->at[i].first > b[k].first ? a->at[i].first : b[k].first;
		uint32_t end = a->at[i].end < b[k].end ? a->at[i].end : b[k].end;

		push(both, first, end);
		if (a->at[i].end == end)
			i++;
		else
			k++;
	}
	*a = *both;
	*both = swap;
}

/* What no parent leads to; only those of m->open, if some cable is missing. */
static void gaps_above(struct make *m, struct fabric_node n, bool all, struct list *out)
{
	const struct fabric_pgft *t = m->t;
	uint32_t l = n.level;

	out->n = 0;
	push(out, 0, fabric_hosts(t));
	for (uint32_t d = 0; d < t->w[l + 1] && out->n; d++) {
		struct fabric_node parent = fabric_cable_up(t, n, d).upper;
		const struct fabric_around_switch *of =
			&m->x->of[fabric_number(t, parent) - t->first[1]];

		if (all || m->open[d])
			intersect(out, m->x->gaps + of->gap, of->n_gaps, &m->both);
	}
	out->failed |= m->both.failed;
}

static bool look_up(struct make *m, struct fabric_node n)
{
	const struct fabric_pgft *t = m->t;
	uint32_t l = n.level, up = fabric_up_ports(t, l), w = t->w[l + 1], gone = 0;
	uint32_t cable = t->first_cable[l + 1] + n.index * up;

	memset(m->open, 0, w);
	for (uint32_t q = 0; q < up; q++) {
		bool open = fabric_tree_has_cable(m->tree, cable + q);

		m->open[q % w] |= open;
		gone += !open;
	}
	return !gone;
}

/* fresh: it is the first that has these parents. */
static int sweep_up(struct make *m, struct fabric_node n, bool fresh)
{
	const struct fabric_pgft *t = m->t;
	uint32_t l = n.level, sw = fabric_number(t, n) - t->first[1];
	uint32_t first = n.index / t->W[l] * t->M[l];
	const struct fabric_around_switch *of = &m->x->of[sw];
	struct list *above = &m->shared;

	if (fresh)
		gaps_above(m, n, true, above);
	if (!fabric_tree_has_node(m->tree, fabric_number(t, n)))
		return 0;
	if (!look_up(m, n)) {
		above = &m->own;
		gaps_above(m, n, false, above);
	}
	if (above->failed)
		return -ENOMEM;
	if (!above->n)
		return 0;
	m->gaps.n = 0;
	push_part(&m->gaps, above->at, above->n, 0, first);
	push_part(&m->gaps, m->x->gaps + of->gap, of->n_gaps, first, first + t->M[l]);
	push_part(&m->gaps, above->at, above->n, first + t->M[l], fabric_hosts(t));
	return keep(m->x, sw, &m->gaps);
}

static int sweep(struct make *m)
{
	const struct fabric_pgft *t = m->t;
	int ret = 0;

	for (uint32_t l = 1; l <= t->h; l++)
		for (uint32_t i = 0; !ret && i < t->nodes[l]; i++)
			ret = sweep_down(m, (struct fabric_node){l, i});
	for (uint32_t l = t->h - 1; l >= 1; l--)
		for (uint32_t b = 0; b < t->W[l]; b++)
			for (uint32_t a = 0; !ret && a < t->nodes[l] / t->W[l]; a++)
				ret = sweep_up(m, (struct fabric_node){l, b + t->W[l] * a},
					       a % t->m[l + 1] == 0);
	return ret;
}

static void release(struct make *m)
{
	free(m->open);
	free(m->shared.at);
	free(m->own.at);
	free(m->gaps.at);
	free(m->both.at);
}

int fabric_gaps_make(struct fabric_around *x, const struct fabric_tree *tree)
{
	struct make m = {.x = x, .tree = tree, .t = &tree->pgft};
	uint32_t w = 1;
	int ret = -ENOMEM;

	for (uint32_t l = 1; l <= m.t->h; l++)
		w = m.t->w[l] > w ? m.t->w[l] : w;
	m.open = malloc(w);
	if (m.open)
		ret = sweep(&m);
	release(&m);
	return ret;
}

/* ---- pairs ---- */

/* By host, how many of those before it are there. NULL: no memory. */
static uint32_t *count_hosts(const struct fabric_tree *tree)
{
	uint32_t n = fabric_hosts(&tree->pgft), *before = malloc((n + 1) * sizeof(*before));

	for (uint32_t j = 0, there = 0; before && j <= n; j++) {
		before[j] = there;
		there += j < n && fabric_tree_has_node(tree, j);
	}
	return before;
}

/* A host has no way to where none of its leaves has one, or it has no leaf. */
static uint64_t lost_from(struct make *m, uint32_t host, bool fresh, const uint32_t *before)
{
	struct fabric_node n = {0, host};
	struct list *above = &m->shared;
	uint64_t lost = 0;

	if (fresh)
		gaps_above(m, n, true, above);
	if (!look_up(m, n)) {
		above = &m->own;
		gaps_above(m, n, false, above);
	}
	for (uint32_t i = 0; i < above->n; i++) {
		const struct fabric_gap *g = &above->at[i];

		lost += before[g->end] - before[g->first];
		lost -= g->first <= host && host < g->end; /* it is there itself */
	}
	return lost;
}

int fabric_routes_unreachable(const struct fabric_routes *r, uint64_t *pairs)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	struct make m = {.x = r->around, .tree = r->tree, .t = t, .open = malloc(t->w[1])};
	uint32_t *before = count_hosts(r->tree);
	bool fresh = true;
	int ret;

	*pairs = 0;
	for (uint32_t j = 0; r->around && m.open && before && j < fabric_hosts(t); j++) {
		fresh |= j % t->m[1] == 0;
		if (!fabric_tree_has_node(r->tree, j))
			continue;
		*pairs += lost_from(&m, j, fresh, before);
		fresh = false;
	}
	ret = m.open && before && !m.shared.failed && !m.own.failed ? 0 : -ENOMEM;
	release(&m);
	free(before);
	return r->table ? -EINVAL : ret;
}
