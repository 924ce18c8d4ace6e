/* How alike switches of a level agree on detours.
 *
 * Whoever goes up by q comes down to the sub-tree of the destination from that same parent's alike,
 * by a cable at the switch there that is alike; among parallel ones, by that of the rule. Each
 * destination is on it once at most in a permutation, so it is the number of destinations of that
 * cable that makes hot spots: switches that are alike better take the same detour to a destination,
 * and one that few others take. */
#include "fabric_routes_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int fabric_alike_init(struct fabric_alike *a, const struct fabric_routes *r)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	size_t ports = 1, links = 1, trees = 1;

	for (uint32_t l = 1; l <= t->h; l++) {
		size_t n = (size_t)t->nodes[l] / t->W[l], up = fabric_up_ports(t, l);

		ports = up > ports ? up : ports;
		links = n * up > links ? n * up : links;
		trees = n > trees ? n : trees;
	}
	*a = (struct fabric_alike){.r = r};
	a->detour = calloc(fabric_routes_entries(r), sizeof(*a->detour));
	a->agreed = calloc(ports, sizeof(*a->agreed));
	a->down = calloc(links, sizeof(*a->down));
	a->known = calloc(trees, sizeof(*a->known));
	return a->detour && a->agreed && a->down && a->known ? 0 : -ENOMEM;
}

void fabric_alike_free(struct fabric_alike *a)
{
	free(a->detour);
	free(a->agreed);
	free(a->down);
	free(a->known);
}

static void forget(struct fabric_alike *a, uint32_t level)
{
	const struct fabric_pgft *t = &a->r->tree->pgft;
	size_t trees = t->nodes[level] / t->W[level], up = fabric_up_ports(t, level);

	memset(a->detour, 0, fabric_routes_entries(a->r) * sizeof(*a->detour));
	memset(a->agreed, 0, up * sizeof(*a->agreed));
	memset(a->down, 0, trees * up * sizeof(*a->down));
	memset(a->known, 0, trees);
}

void fabric_alike_begin(struct fabric_alike *a, const struct fabric_rule *rule,
			struct fabric_node n)
{
	const struct fabric_pgft *t = &a->r->tree->pgft;
	uint32_t b = n.index % t->W[n.level];

	if (a->n.level != n.level || a->n.index % t->W[n.level] != b)
		forget(a, n.level);
	a->rule = rule;
	a->n = n;
}

/* By up-going port, the destinations of a sub-tree that come down there by the rule, and what was
 * added since. */
static uint32_t *down_loads(struct fabric_alike *a, uint32_t tree)
{
	const struct fabric_pgft *t = &a->r->tree->pgft;
	uint32_t l = a->n.level, up = fabric_up_ports(t, l), first = tree * t->M[l];
	struct fabric_node there = {l, a->n.index % t->W[l] + t->W[l] * tree};
	uint32_t cable = t->first_cable[l + 1] + there.index * up;
	const struct fabric_around *x = a->r->around;
	const struct fabric_around_switch *of = &x->of[fabric_number(t, there) - t->first[1]];
	uint32_t *load = a->down + (size_t)tree * up, end = first + t->M[l];

	if (a->known[tree])
		return load;
	a->known[tree] = 1;
	fabric_rule_count(a->rule, a->n, first, end, 1, load);
	for (uint32_t i = 0; i < of->n_gaps; i++) {
		const struct fabric_gap *g = &x->gaps[of->gap + i];

		fabric_rule_count(a->rule, a->n, g->first > first ? g->first : first,
				  g->end < end ? g->end : end, UINT32_MAX, load);
	}
	for (uint32_t q = 0; q < up; q++)
		if (!fabric_tree_has_cable(a->r->tree, cable + q))
			load[q] = 0;
	return load;
}

/* By parent, for that of the parallel cables which the rule has for this one. */
static uint32_t *comes_down(struct fabric_alike *a, const struct fabric_lost *e, uint32_t q)
{
	const struct fabric_pgft *t = &a->r->tree->pgft;
	uint32_t w = t->w[a->n.level + 1], host = e->entry >> a->r->rule.lmc;

	return down_loads(a, host / t->M[a->n.level]) + e->q / w * w + q % w;
}

uint32_t fabric_alike_agreed(const struct fabric_alike *a, const struct fabric_lost *e)
{
	return a->detour[e->entry] ? a->detour[e->entry] - 1u : FABRIC_NONE;
}

uint64_t fabric_alike_cost(struct fabric_alike *a, const struct fabric_lost *e, uint32_t q)
{
	return (uint64_t)*comes_down(a, e, q) << 32 | a->agreed[q];
}

void fabric_alike_take(struct fabric_alike *a, const struct fabric_lost *e, uint32_t q)
{
	++*comes_down(a, e, q);
	if (a->detour[e->entry])
		return;
	a->detour[e->entry] = (uint16_t)(q + 1);
	a->agreed[q]++;
}
