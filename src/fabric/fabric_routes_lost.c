/* For which destinations a switch can not take the up-going cable of the rule. */
#include "fabric_routes_in.h"

#include <errno.h>
#include <stdlib.h>

struct find {
	const struct fabric_around *x;
	const struct fabric_rule *rule;
	const struct fabric_pgft *t;
	struct fabric_node n;
	const uint8_t *open;
	struct fabric_losses *l;
	uint32_t up;
};

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int put_point(struct fabric_losses *l, uint32_t host)
{
	void *at = fabric_grow(l->points, l->n_points, &l->points_room, sizeof(*l->points));

	if (!at)
		return -ENOMEM;
	l->points = at;
	l->points[l->n_points++] = host;
	return 0;
}

static uint32_t parent(const struct find *f, uint32_t d)
{
	return fabric_number(f->t, fabric_cable_up(f->t, f->n, d).upper) - f->t->first[1];
}

/* Where the gaps of parents begin and end: between two points all destinations are led to by the
 * same cables. */
static int find_points(const struct find *f)
{
	struct fabric_losses *l = f->l;
	uint32_t w = f->t->w[f->n.level + 1];
	size_t n = 0;

	l->n_points = 0;
	if (put_point(l, 0) || put_point(l, fabric_hosts(f->t)))
		return -ENOMEM;
	for (uint32_t d = 0; d < w; d++) {
		const struct fabric_around_switch *of = &f->x->of[parent(f, d)];

		for (uint32_t i = 0; i < of->n_gaps; i++)
			if (put_point(l, f->x->gaps[of->gap + i].first) ||
			    put_point(l, f->x->gaps[of->gap + i].end))
				return -ENOMEM;
	}
	qsort(l->points, l->n_points, sizeof(*l->points), by_number);
	for (size_t i = 1; i < l->n_points; i++)
		if (l->points[i] != l->points[n])
			l->points[++n] = l->points[i];
	l->n_points = n + 1;
	return 0;
}

/* Which cables lead to a host: some, but not all? Then that is a kind. */
static int new_kind(const struct find *f, uint32_t host, bool *some)
{
	struct fabric_losses *l = f->l;
	uint32_t w = f->t->w[f->n.level + 1], leading = 0;
	uint8_t *lead;

	if (l->kinds == l->kind_room || l->up != f->up) {
		uint32_t room = l->kind_room ? 2 * l->kind_room : 16;

		lead = realloc(l->lead, (size_t)room * f->up);
		if (!lead)
			return -ENOMEM;
		l->lead = lead;
		l->kind_room = room;
		l->up = f->up;
	}
	lead = l->lead + (size_t)l->kinds * f->up;
	for (uint32_t d = 0; d < w; d++) {
		bool way = !fabric_around_gone(f->x, parent(f, d), host);

		for (uint32_t q = d; q < f->up; q += w) {
			lead[q] = way && f->open[q];
			leading += lead[q];
		}
	}
	*some = leading > 0 && leading < f->up;
	l->kinds += *some;
	return 0;
}

int fabric_losses_put(struct fabric_losses *l, const struct fabric_lost *one)
{
	void *at = fabric_grow(l->at, l->n, &l->room, sizeof(*l->at));

	if (!at)
		return -ENOMEM;
	l->at = at;
	l->at[l->n++] = *one;
	return 0;
}

/* Those of the last kind. */
static int find_between(const struct find *f, uint32_t first, uint32_t end)
{
	uint32_t lmc = f->rule->r->rule.lmc, step = FABRIC_CHUNK >> lmc, kind = f->l->kinds - 1;
	const uint8_t *lead = f->l->lead + (size_t)kind * f->up;
	uint16_t q[FABRIC_CHUNK];

	for (uint32_t j = first; j < end; j += step) {
		uint32_t n = end - j < step ? end - j : step;

		fabric_rule_up(f->rule, f->n, j, n, q);
		for (uint32_t e = 0; e < n << lmc; e++) {
			struct fabric_lost one = {.entry = (j << lmc) + e, .kind = kind, .q = q[e]};

			if (!lead[q[e]] && fabric_losses_put(f->l, &one))
				return -ENOMEM;
		}
	}
	return 0;
}

int fabric_losses_find(struct fabric_losses *l, const struct fabric_around *x,
		       const struct fabric_rule *rule, struct fabric_node n, const uint8_t *open)
{
	struct find f = {x, rule, &rule->r->tree->pgft, n, open, l, rule->up.ports};

	l->n = 0;
	l->kinds = 0;
	if (find_points(&f))
		return -ENOMEM;
	for (size_t i = 0; i + 1 < l->n_points; i++) {
		bool some;

		if (new_kind(&f, l->points[i], &some) ||
		    (some && find_between(&f, l->points[i], l->points[i + 1])))
			return -ENOMEM;
	}
	return 0;
}

void fabric_losses_free(struct fabric_losses *l)
{
	free(l->at);
	free(l->lead);
	free(l->points);
}
