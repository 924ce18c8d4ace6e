#define _GNU_SOURCE /* qsort_r */
#include "fabric_shape_int.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the digits b, at the top ---- */

/* Whoever sorts vertices by name needs the network. */
static int by_name(const void *a, const void *b, void *s)
{
	return shape_order(s, *(const uint32_t *)a, *(const uint32_t *)b);
}

/* A sub-tree of the level below that most blocks of a group reach, and the largest of those: what
 * is missing there would be missing as a measure. */
static int choose_measure(const struct shape *s, uint32_t l, uint32_t group, uint32_t *chosen)
{
	const struct shape_groups *below = &s->groups[l - 1];
	uint32_t *reached = shape_array(below->n, false);
	uint32_t best = FABRIC_NONE;

	if (!reached)
		return -ENOMEM;
	for (uint32_t k = s->first[l - 1]; k < s->first[l]; k++) {
		uint32_t v = s->order[k];

		if (s->group[v] != FABRIC_NONE && s->lower_of[v] != FABRIC_NONE &&
		    s->blocks[l].group[s->lower_of[v]] == group)
			reached[s->group[v]]++;
	}
	for (uint32_t i = 0; i < below->n; i++)
		if (below->parent[i] == group &&
		    (best == FABRIC_NONE || reached[i] > reached[best] ||
		     (reached[i] == reached[best] && below->size[i] > below->size[best])))
			best = i;
	free(reached);
	*chosen = best;
	return best == FABRIC_NONE ? -EINVAL : 0;
}

/* Blocks of a group take the digits of their lower node in the measure; others what is left. */
static int base_blocks(struct shape *s, uint32_t l, uint32_t group, uint32_t measure)
{
	struct shape_blocks *b = &s->blocks[l];
	uint32_t W = s->pgft.W[l - 1], next = 0;
	uint8_t *taken = calloc(W, 1);

	if (!taken)
		return -ENOMEM;
	for (uint32_t k = s->first[l - 1]; k < s->first[l]; k++) {
		uint32_t v = s->order[k], block = s->lower_of[v];

		if (s->group[v] != measure || block == FABRIC_NONE || b->group[block] != group ||
		    b->base[block] != FABRIC_NONE || s->b[v] == FABRIC_NONE || taken[s->b[v]])
			continue;
		b->base[block] = s->b[v];
		taken[s->b[v]] = 1;
	}
	for (uint32_t i = 0; i < b->n; i++) {
		if (b->group[i] != group || b->base[i] != FABRIC_NONE)
			continue;
		while (next < W && taken[next])
			next++;
		if (next < W)
			b->base[i] = next++;
	}
	free(taken);
	return 0;
}

/* The upper nodes of each block of a group, in the order of names. */
static int count_uppers(struct shape *s, uint32_t l, uint32_t group)
{
	struct shape_blocks *b = &s->blocks[l];
	uint32_t n = s->first[l + 1] - s->first[l];
	uint32_t *nodes = shape_array(n, false), *rank = shape_array(b->n, false);
	int ret = nodes && rank ? 0 : -ENOMEM;

	for (uint32_t i = 0; !ret && i < n; i++)
		nodes[i] = s->order[s->first[l] + i];
	if (!ret)
		qsort_r(nodes, n, sizeof(*nodes), by_name, s);
	for (uint32_t i = 0; !ret && i < n; i++) {
		uint32_t v = nodes[i], block = s->upper_of[v];

		if (s->group[v] != group || block == FABRIC_NONE || b->base[block] == FABRIC_NONE)
			continue;
		if (rank[block] < s->pgft.w[l])
			s->b[v] = b->base[block] + s->pgft.W[l - 1] * rank[block]++;
	}
	free(nodes);
	free(rank);
	return ret;
}

/* From a host up along one sub-tree in each other: the nodes of each level get the digits of their
 * child there, and one of their own. */
static int digits_up(struct shape *s)
{
	uint32_t measure[FABRIC_LEVELS_MAX + 1];
	int ret = 0;

	measure[s->h] = 0;
	for (uint32_t l = s->h; !ret && l > 0; l--)
		ret = choose_measure(s, l, measure[l], &measure[l - 1]);
	if (ret == -EINVAL)
		return shape_refuse(s, shape_line(s, s->order[s->first[s->h]]),
				    "no fat tree: there are switches without anything below");
	for (uint32_t k = 0; k < s->first[1]; k++)
		s->b[s->order[k]] = 0;
	for (uint32_t l = 1; !ret && l <= s->h; l++) {
		ret = base_blocks(s, l, measure[l], measure[l - 1]);
		if (!ret)
			ret = count_uppers(s, l, measure[l]);
	}
	return ret;
}

/* ---- and down to all others ---- */

/* A block has the digits of most of its upper nodes: in one pass, since whoever agrees with the
 * leader adds a vote and whoever differs takes one away (Boyer and Moore). */
static int vote_bases(struct shape *s, uint32_t l)
{
	struct shape_blocks *b = &s->blocks[l];
	uint32_t *lead = shape_array(b->n, false);

	if (!lead)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->n; i++)
		b->base[i] = FABRIC_NONE;
	for (uint32_t k = s->first[l]; k < s->first[l + 1]; k++) {
		uint32_t v = s->order[k], block = s->upper_of[v], digits;

		if (block == FABRIC_NONE || s->b[v] == FABRIC_NONE)
			continue;
		digits = s->b[v] % s->pgft.W[l - 1];
		if (lead[block] == 0)
			b->base[block] = digits;
		lead[block] += b->base[block] == digits ? 1 : UINT32_MAX;
	}
	free(lead);
	return 0;
}

/* Which digits are taken in each sub-tree of a level: one bit for each node that it would have. */
struct taken {
	uint8_t *map;
	uint32_t W;
};

static bool take(struct taken *t, uint32_t group, uint32_t b)
{
	size_t at = (size_t)group * t->W + b;

	if (t->map[at / 8] >> at % 8 & 1)
		return false;
	t->map[at / 8] |= (uint8_t)(1u << at % 8);
	return true;
}

/* Nodes whose parents are all missing: digits that are left in their sub-tree, of their block below
 * if that has some. */
static void digits_left(struct shape *s, uint32_t l, struct taken *t)
{
	for (uint32_t k = s->first[l]; k < s->first[l + 1]; k++) {
		uint32_t v = s->order[k], step = s->pgft.W[l - 1];
		uint32_t base = FABRIC_NONE;

		if (s->b[v] != FABRIC_NONE || s->group[v] == FABRIC_NONE)
			continue;
		if (s->upper_of[v] != FABRIC_NONE)
			base = s->blocks[l].base[s->upper_of[v]];
		for (uint32_t b = base == FABRIC_NONE ? 0 : base; b < t->W;
		     b += base == FABRIC_NONE ? 1 : step)
			if (take(t, s->group[v], b)) {
				s->b[v] = b;
				break;
			}
		/* Its siblings follow it. */
		if (s->b[v] != FABRIC_NONE && s->upper_of[v] != FABRIC_NONE)
			s->blocks[l].base[s->upper_of[v]] = s->b[v] % step;
	}
}

/* Digits of the nodes of level l from their blocks above. */
static int digits_of(struct shape *s, uint32_t l)
{
	const struct shape_blocks *above = &s->blocks[l + 1];
	struct taken t = {.W = s->pgft.W[l]};
	int ret;

	t.map = calloc((size_t)s->groups[l].n * t.W / 8 + 1, 1);
	if (!t.map)
		return -ENOMEM;
	for (uint32_t k = s->first[l]; k < s->first[l + 1]; k++) {
		uint32_t v = s->order[k], block = s->lower_of[v], group = s->group[v];

		s->b[v] = FABRIC_NONE;
		if (group == FABRIC_NONE || block == FABRIC_NONE ||
		    above->base[block] == FABRIC_NONE ||
		    above->group[block] != s->groups[l].parent[group])
			continue;
		if (take(&t, group, above->base[block]))
			s->b[v] = above->base[block];
	}
	ret = vote_bases(s, l);
	if (!ret)
		digits_left(s, l, &t);
	if (!ret)
		ret = vote_bases(s, l);
	free(t.map);
	return ret;
}

static int digits_down(struct shape *s)
{
	int ret = vote_bases(s, s->h);

	for (uint32_t l = s->h - 1; !ret && l >= 1; l--)
		ret = digits_of(s, l);
	return ret;
}

/* ---- the digits a ---- */

struct place {
	const struct shape *s;
	uint32_t group, parent;
	uint32_t leaf, port; /* of a host */
	uint32_t first;      /* of a sub-tree */
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int c;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->first != FABRIC_NONE && y->first != FABRIC_NONE) {
		c = shape_order(x->s, x->first, y->first);
		if (c)
			return c;
	}
	if (x->leaf != y->leaf)
		return x->leaf < y->leaf ? -1 : 1;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

/* Hosts: where they are at their leaf, the one with the lowest digits if there are several. */
static void place_host(const struct shape *s, uint32_t v, struct place *p)
{
	for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
		uint32_t leaf = shape_peer(s, s->adj[i]), port = shape_port(s, s->adj[i], 1);

		if (s->level[leaf] != 1 || s->upper_of[leaf] != s->lower_of[v])
			continue;
		if (s->b[leaf] < p->leaf || (s->b[leaf] == p->leaf && port < p->port)) {
			p->leaf = s->b[leaf];
			p->port = port;
		}
	}
}

static int positions(struct shape *s, uint32_t l)
{
	struct shape_groups *g = &s->groups[l];
	struct place *places = malloc(((size_t)g->n + 1) * sizeof(*places));
	uint32_t at = 0;

	if (!places)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->n; i++) {
		places[i] =
			(struct place){s, i, g->parent[i], FABRIC_NONE, FABRIC_NONE, g->first[i]};
		if (l == 0)
			place_host(s, s->order[i], &places[i]);
	}
	qsort(places, g->n, sizeof(*places), by_place);
	for (uint32_t i = 0; i < g->n; i++, at++) {
		if (i == 0 || places[i].parent != places[i - 1].parent)
			at = 0;
		if (places[i].parent != FABRIC_NONE && at < s->pgft.m[l + 1])
			g->position[places[i].group] = at;
	}
	free(places);
	return 0;
}

static int digits_a(struct shape *s)
{
	int ret = 0;

	s->groups[s->h].path[0] = 0;
	for (uint32_t l = s->h; !ret && l-- > 0;) {
		const struct shape_groups *above = &s->groups[l + 1];
		struct shape_groups *g = &s->groups[l];

		ret = positions(s, l);
		for (uint32_t i = 0; !ret && i < g->n; i++)
			if (g->position[i] != FABRIC_NONE &&
			    above->path[g->parent[i]] != FABRIC_NONE)
				g->path[i] = g->position[i] +
					     s->pgft.m[l + 1] * above->path[g->parent[i]];
	}
	return ret;
}

/* ---- numbers ---- */

int shape_digits(struct shape *s)
{
	int ret = digits_up(s);

	if (!ret)
		ret = digits_down(s);
	if (!ret)
		ret = digits_a(s);
	if (!ret)
		s->vertex = shape_array(fabric_nodes(&s->pgft), true);
	if (!ret && !s->vertex)
		ret = -ENOMEM;
	for (uint32_t v = 0; !ret && v < s->n; v++) {
		uint32_t l = s->level[v], path, number;

		if (l == FABRIC_NONE || s->group[v] == FABRIC_NONE || s->b[v] == FABRIC_NONE)
			continue;
		path = s->groups[l].path[s->group[v]];
		if (path == FABRIC_NONE)
			continue;
		number = s->pgft.first[l] + s->b[v] + s->pgft.W[l] * path;
		if (s->vertex[number] != FABRIC_NONE)
			continue;
		s->vertex[number] = v;
		s->number[v] = number;
	}
	return ret;
}
