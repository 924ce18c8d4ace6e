#include "fabric_shape_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- blocks: lower nodes with the same parents, upper nodes with the same children ---- */

struct level {
	uint32_t *local; /* by vertex: its place in its level */
	struct shape_edge *edges;
	uint32_t *left, *right;
};

/* Level l is made of nodes first[l] … first[l+1]−1 of the order. */
static uint32_t level_size(const struct shape *s, uint32_t l)
{
	return s->first[l + 1] - s->first[l];
}

static int find_blocks(struct shape *s, uint32_t l, struct level *x)
{
	uint32_t uppers = level_size(s, l), lowers = level_size(s, l - 1);
	size_t n = 0;
	int ret;

	for (uint32_t i = 0; i < s->n_links; i++) {
		uint32_t v = s->links[i].end[0], u = s->links[i].end[1];

		if (s->level[v] == l && s->level[u] == l - 1)
			x->edges[n++] = (struct shape_edge){x->local[v], x->local[u]};
		else if (s->level[u] == l && s->level[v] == l - 1)
			x->edges[n++] = (struct shape_edge){x->local[u], x->local[v]};
	}
	ret = shape_parts(x->edges, n, uppers, lowers, x->left, x->right, &s->blocks[l].n);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < uppers; i++) {
		/* A leaf without hosts is a block, and then a sub-tree, by itself. */
		if (l == 1 && x->left[i] == FABRIC_NONE)
			x->left[i] = s->blocks[l].n++;
		s->upper_of[s->order[s->first[l] + i]] = x->left[i];
	}
	for (uint32_t i = 0; i < lowers; i++)
		s->lower_of[s->order[s->first[l - 1] + i]] = x->right[i];
	return 0;
}

/* ---- sub-trees: blocks that reach the same sub-trees below ---- */

static int new_groups(struct shape *s, uint32_t l, uint32_t n)
{
	struct shape_groups *g = &s->groups[l];

	g->n = n;
	g->parent = shape_array(n, true);
	g->children = shape_array(n, false);
	g->size = shape_array(n, false);
	g->first = shape_array(n, true);
	g->position = shape_array(n, true);
	g->path = shape_array(n, true);
	return g->parent && g->children && g->size && g->first && g->position && g->path ? 0
											 : -ENOMEM;
}

static int find_groups(struct shape *s, uint32_t l, struct level *x)
{
	struct shape_blocks *b = &s->blocks[l];
	uint32_t n_groups;
	size_t n = 0;
	int ret;

	b->group = shape_array(b->n, true);
	b->base = shape_array(b->n, true);
	b->uppers = shape_array(b->n, false);
	if (!b->group || !b->base || !b->uppers)
		return -ENOMEM;
	for (uint32_t k = s->first[l]; k < s->first[l + 1]; k++) {
		uint32_t v = s->order[k], block = s->upper_of[v];

		if (block == FABRIC_NONE)
			continue;
		b->uppers[block]++;
		for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
			uint32_t c = shape_peer(s, s->adj[i]);

			if (s->level[c] == l - 1 && s->lower_of[c] == block &&
			    s->group[c] != FABRIC_NONE)
				x->edges[n++] = (struct shape_edge){block, s->group[c]};
		}
	}
	ret = shape_parts(x->edges, n, b->n, s->groups[l - 1].n, b->group, s->groups[l - 1].parent,
			  &n_groups);
	for (uint32_t i = 0; !ret && l == 1 && i < b->n; i++)
		if (b->group[i] == FABRIC_NONE)
			b->group[i] = n_groups++;
	return ret ? ret : new_groups(s, l, n_groups);
}

/* Of two vertices the one whose name comes first; FABRIC_NONE: none. */
static uint32_t earlier(const struct shape *s, uint32_t v, uint32_t u)
{
	if (v == FABRIC_NONE || u == FABRIC_NONE)
		return v == FABRIC_NONE ? u : v;
	return shape_order(s, v, u) <= 0 ? v : u;
}

static void fill_groups(struct shape *s, uint32_t l)
{
	struct shape_groups *g = &s->groups[l], *below = &s->groups[l - 1];

	for (uint32_t k = s->first[l]; k < s->first[l + 1]; k++) {
		uint32_t v = s->order[k], block = s->upper_of[v];
		uint32_t mine = block != FABRIC_NONE ? s->blocks[l].group[block] : FABRIC_NONE;

		s->group[v] = mine;
		if (mine == FABRIC_NONE)
			continue;
		g->size[mine]++;
		if (l == 1)
			g->first[mine] = earlier(s, g->first[mine], v);
	}
	for (uint32_t i = 0; i < below->n; i++) {
		uint32_t parent = below->parent[i];

		if (parent == FABRIC_NONE)
			continue;
		g->children[parent]++;
		g->size[parent] += below->size[i];
		if (l > 1)
			g->first[parent] = earlier(s, g->first[parent], below->first[i]);
	}
}

static int check_top(const struct shape *s)
{
	uint32_t a = s->order[s->first[s->h]];

	if (s->groups[s->h].n == 1)
		return 0;
	for (uint32_t k = s->first[s->h]; k < s->first[s->h + 1]; k++)
		if (s->group[s->order[k]] != s->group[a])
			return shape_refuse(s, shape_line(s, s->order[k]),
					    "no fat tree: switches %s and %s are both at level %u, "
					    "the top, but reach different switches below",
					    fabric_quote(shape_name(s, a)).text,
					    fabric_quote(shape_name(s, s->order[k])).text, s->h);
	return shape_refuse(s, shape_line(s, a),
			    "no fat tree: the switches of level %u fit in no order", s->h);
}

int shape_groups(struct shape *s)
{
	struct level x = {
		.local = shape_array(s->n, false),
		.edges = malloc((s->n_links + 1) * sizeof(*x.edges)),
		.left = shape_array(s->n, false),
		.right = shape_array(s->n, false),
	};
	int ret = x.local && x.edges && x.left && x.right ? 0 : -ENOMEM;

	for (uint32_t l = 0; !ret && l <= s->h; l++)
		for (uint32_t k = s->first[l]; k < s->first[l + 1]; k++)
			x.local[s->order[k]] = k - s->first[l];
	if (!ret)
		ret = new_groups(s, 0, level_size(s, 0));
	for (uint32_t k = 0; !ret && k < s->first[1]; k++) {
		s->group[s->order[k]] = k;
		s->groups[0].size[k] = 1;
	}
	for (uint32_t l = 1; !ret && l <= s->h; l++) {
		ret = find_blocks(s, l, &x);
		if (!ret)
			ret = find_groups(s, l, &x);
		if (!ret)
			fill_groups(s, l);
	}
	free(x.local);
	free(x.edges);
	free(x.left);
	free(x.right);
	return ret ? ret : check_top(s);
}

/* ---- the tuple ---- */

/* The number that most have; the largest of them when that would leave out more than a few. */
static int choose(const uint32_t *values, uint32_t n, uint32_t *chosen)
{
	uint32_t most = 0, mode = 0, *count;
	uint64_t beyond = 0;

	for (uint32_t i = 0; i < n; i++)
		most = values[i] > most ? values[i] : most;
	count = shape_array((size_t)most + 1, false);
	if (!count)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		count[values[i]]++;
	for (uint32_t k = 1; k <= most; k++)
		mode = count[k] && count[k] >= count[mode] * (mode != 0) ? k : mode;
	for (uint32_t i = 0; i < n; i++)
		beyond += values[i] > mode ? values[i] - mode : 0;
	*chosen = beyond <= 1 + n / 16 ? mode : most;
	free(count);
	return 0;
}

/* How many cables join the nodes of each pair that is joined. */
static int parallels(const struct shape *s, uint32_t l, uint32_t *chosen)
{
	uint32_t *values = shape_array(s->n_links, false), *pair = shape_array(s->n, true);
	uint32_t n = 0;
	int ret = values && pair ? 0 : -ENOMEM;

	for (uint32_t k = s->first[l - 1]; !ret && k < s->first[l]; k++) {
		uint32_t v = s->order[k], begin = n;

		for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
			uint32_t u = shape_peer(s, s->adj[i]);

			if (s->level[u] != l || s->upper_of[u] != s->lower_of[v])
				continue;
			if (pair[u] == FABRIC_NONE || pair[u] < begin)
				pair[u] = n++;
			values[pair[u]]++;
		}
	}
	if (!ret)
		ret = choose(values, n, chosen);
	free(values);
	free(pair);
	return ret;
}

static int print_tuple(const struct shape *s, const uint32_t *const lists[3], char *text)
{
	int at = snprintf(text, FABRIC_TUPLE_MAX, "%u", s->h);

	for (int i = 0; i < 3; i++)
		for (uint32_t l = 1; l <= s->h; l++)
			at += snprintf(text + at, FABRIC_TUPLE_MAX - (size_t)at, "%c%u",
				       l == 1 ? ';' : ',', lists[i][l]);
	return at;
}

int shape_tuple(struct shape *s)
{
	uint32_t m[FABRIC_LEVELS_MAX + 1], w[FABRIC_LEVELS_MAX + 1], p[FABRIC_LEVELS_MAX + 1];
	const uint32_t *const lists[3] = {m, w, p};
	char text[FABRIC_TUPLE_MAX], why[128];
	int ret = 0;

	for (uint32_t l = 1; !ret && l <= s->h; l++) {
		ret = choose(s->groups[l].children, s->groups[l].n, &m[l]);
		if (!ret)
			ret = choose(s->blocks[l].uppers, s->blocks[l].n, &w[l]);
		if (!ret)
			ret = parallels(s, l, &p[l]);
	}
	if (ret)
		return ret;
	print_tuple(s, lists, text);
	if (fabric_pgft_parse(&s->pgft, text, why, sizeof(why)))
		return shape_refuse(s, shape_line(s, s->order[s->first[s->h]]),
				    "no fat tree: the closest is %s, but %s", text, why);
	/* Also what keeps memory in proportion to the network. */
	for (uint32_t l = 1; l <= s->h; l++)
		if ((uint64_t)s->groups[l].n * s->pgft.W[l] > 8 * ((uint64_t)s->n + 64))
			return shape_refuse(
				s, shape_line(s, s->order[s->first[l]]),
				"no fat tree: level %u falls into %u parts, the closest "
				"tree, %s, has %u",
				l, s->groups[l].n, text, s->pgft.M[s->h] / s->pgft.M[l]);
	if (fabric_nodes(&s->pgft) / 2 > s->n || fabric_cables(&s->pgft) / 2 > s->n_links)
		return shape_refuse(s, shape_line(s, s->order[s->first[s->h]]),
				    "no fat tree: the closest, %s, has %u nodes and %u cables, the "
				    "network only %u and %u",
				    text, fabric_nodes(&s->pgft), fabric_cables(&s->pgft), s->n,
				    s->n_links);
	return 0;
}
