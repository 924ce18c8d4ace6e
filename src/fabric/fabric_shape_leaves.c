/* Which switches are leaves, and which are no part of a tree. */
#include "fabric_shape_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- which hosts count ---- */

struct leaf {
	uint32_t v, hosts;
};

static int by_hosts(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;

	if (x->hosts != y->hosts)
		return x->hosts < y->hosts ? 1 : -1;
	return (x->v > y->v) - (x->v < y->v);
}

uint32_t shape_hosts_at(const struct shape *s, uint32_t v)
{
	uint32_t hosts = 0;

	for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++)
		hosts += shape_is_host(s, shape_peer(s, s->adj[i]));
	return hosts;
}

/* The only switch that all cables of a switch lead to; FABRIC_NONE: there are others, or none. */
static uint32_t only_neighbour(const struct shape *s, uint32_t v)
{
	uint32_t only = FABRIC_NONE;

	for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
		uint32_t u = shape_peer(s, s->adj[i]);

		if (shape_is_host(s, u) || s->stray[u])
			continue;
		if (only != FABRIC_NONE && only != u)
			return FABRIC_NONE;
		only = u;
	}
	return only;
}

/* By vertex: how many hosts are at a switch, and how many of its other cables lead to switches
 * without any, less those to switches with some. */
static void count_hosts(const struct shape *s, uint32_t *hosts, int64_t *without)
{
	for (uint32_t v = 0; v < s->n; v++)
		hosts[v] = shape_is_host(s, v) ? 0 : shape_hosts_at(s, v);
	for (uint32_t i = 0; i < s->n_links; i++) {
		uint32_t v = s->links[i].end[0], u = s->links[i].end[1];

		if (shape_is_host(s, v) || shape_is_host(s, u))
			continue;
		without[v] += hosts[u] ? -1 : 1;
		without[u] += hosts[v] ? -1 : 1;
	}
}

/* A switch with hosts that hangs on a leaf: one that has hosts, too, and otherwise mostly cables to
 * switches without. */
static bool hangs_on_leaf(const struct shape *s, uint32_t v, const uint32_t *hosts,
			  const int64_t *without)
{
	uint32_t leaf = only_neighbour(s, v), cables = s->adj_first[v + 1] - s->adj_first[v];

	return leaf != FABRIC_NONE && hosts[leaf] && without[leaf] + (cables - hosts[v]) > 0;
}

/* A switch with some hosts whose other cables mostly lead to leaves is no leaf: a manager or a
 * gateway has been plugged into a spine. Those with most hosts are leaves first. */
static void choose_leaves(const struct shape *s, struct leaf *leaves, uint32_t n, uint8_t *is_leaf)
{
	qsort(leaves, n, sizeof(*leaves), by_hosts);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = leaves[i].v, up = 0, to_leaves = 0;

		for (uint32_t k = s->adj_first[v]; k < s->adj_first[v + 1]; k++) {
			uint32_t u = shape_peer(s, s->adj[k]);

			up += !shape_is_host(s, u);
			to_leaves += is_leaf[u];
		}
		is_leaf[v] = !to_leaves || 2 * to_leaves < up;
	}
}

/* Half of the hosts are at switches with so many or more. */
static uint32_t usual_hosts(struct leaf *leaves, uint32_t n)
{
	uint64_t all = 0, sum = 0;

	qsort(leaves, n, sizeof(*leaves), by_hosts);
	for (uint32_t i = 0; i < n; i++)
		all += leaves[i].hosts;
	for (uint32_t i = 0; i < n; i++) {
		sum += leaves[i].hosts;
		if (2 * sum >= all)
			return leaves[i].hosts;
	}
	return 0;
}

/* Those with few hosts are left out: a spine may have some, too. If that is what they are, levels
 * will tell. But where most leaves hang on one spine, the others do as well. Returns how many are
 * left. */
static uint32_t leave_out_few(const struct shape *s, struct leaf *leaves, uint32_t n)
{
	uint32_t usual = usual_hosts(leaves, n), hanging = 0, kept = 0;

	for (uint32_t i = 0; i < n; i++)
		hanging += only_neighbour(s, leaves[i].v) != FABRIC_NONE;
	for (uint32_t i = 0; i < n; i++)
		if (2 * leaves[i].hosts > usual ||
		    (2 * hanging >= n && only_neighbour(s, leaves[i].v) != FABRIC_NONE))
			leaves[kept++] = leaves[i];
	return kept;
}

/* Fills is_leaf by vertex, and returns how many hosts are at switches that are none. */
static int find_leaves(struct shape *s, uint8_t *is_leaf, uint32_t *strays)
{
	struct leaf *leaves = malloc((s->n + 1) * sizeof(*leaves));
	int64_t *without = calloc(s->n + 1, sizeof(*without));
	uint32_t *hosts = shape_array(s->n, false), n = 0;
	int ret = leaves && without && hosts ? 0 : -ENOMEM;

	*strays = 0;
	if (!ret) {
		count_hosts(s, hosts, without);
		for (uint32_t v = 0; v < s->n; v++)
			if (hosts[v] && !hangs_on_leaf(s, v, hosts, without))
				leaves[n++] = (struct leaf){v, hosts[v]};
		if (s->few_are_spines)
			n = leave_out_few(s, leaves, n);
		choose_leaves(s, leaves, n, is_leaf);
		for (uint32_t i = 0; i < n; i++)
			*strays += is_leaf[leaves[i].v] ? 0 : leaves[i].hosts;
	}
	free(leaves);
	free(without);
	free(hosts);
	return ret;
}

void shape_add_hosts(struct shape *s)
{
	for (uint32_t v = 0; v < s->n; v++)
		for (uint32_t i = s->adj_first[v]; s->is_leaf[v] && i < s->adj_first[v + 1]; i++)
			if (shape_is_host(s, shape_peer(s, s->adj[i])))
				s->level[shape_peer(s, s->adj[i])] = 0;
}

int shape_choose_hosts(struct shape *s)
{
	uint32_t strays = 0, hosts = 0;
	int ret = find_leaves(s, s->is_leaf, &strays);

	for (uint32_t v = 0; v < s->n; v++)
		hosts += shape_is_host(s, v);
	/* Where that is no exception it is no fat tree; the levels will show it. */
	if (strays > hosts / 3)
		memset(s->is_leaf, 1, s->n);
	shape_add_hosts(s);
	return ret;
}

/* ---- switches that hang on one other ---- */

/* By vertex, the switch that it hangs on; FABRIC_NONE: it has others, or is a leaf. By level:
 * switches; those of them that others hang on; and those that hang on none. */
struct hanging {
	uint32_t *on;
	uint8_t *bears;
	uint32_t all[FABRIC_LEVELS_MAX + 1], with[FABRIC_LEVELS_MAX + 1];
	uint32_t joined[FABRIC_LEVELS_MAX + 1];
};

static void find_hanging(const struct shape *s, struct hanging *h)
{
	for (uint32_t v = 0; v < s->n; v++) {
		uint32_t u = FABRIC_NONE;

		if (!shape_is_host(s, v) && !s->is_leaf[v] && !s->stray[v])
			u = only_neighbour(s, v);
		if (u != FABRIC_NONE && s->level[v] <= FABRIC_LEVELS_MAX &&
		    s->level[u] + 1 == s->level[v] && s->level[u]) {
			h->on[v] = u;
			h->bears[u] = 1;
		}
	}
	for (uint32_t v = 0; v < s->n; v++) {
		if (shape_is_host(s, v) || s->stray[v] || s->level[v] > FABRIC_LEVELS_MAX)
			continue;
		h->all[s->level[v]]++;
		h->with[s->level[v]] += h->bears[v];
		h->joined[s->level[v]] += h->on[v] == FABRIC_NONE;
	}
}

/* The upper switches of a tree may have one child each, but then all have. One that is alone in
 * this is none of them; with hosts of its own, if there is any other. */
static bool is_stray(const struct shape *s, const struct hanging *h, uint32_t v)
{
	uint32_t l = h->on[v] != FABRIC_NONE ? s->level[v] : 0;

	if (l == 0)
		return false;
	return 2 * h->with[l - 1] < h->all[l - 1] || (shape_hosts_at(s, v) && h->joined[l]);
}

int shape_leave_out_strays(struct shape *s, bool *found)
{
	struct hanging h = {.on = shape_array(s->n, true), .bears = calloc(s->n + 1, 1)};
	int ret = h.on && h.bears ? 0 : -ENOMEM;

	*found = false;
	if (!ret)
		find_hanging(s, &h);
	for (uint32_t v = 0; !ret && v < s->n; v++) {
		if (!is_stray(s, &h, v))
			continue;
		s->stray[v] = 1;
		*found = true;
		ret = shape_defect(s,
				   "switch %s has cables to only one switch, %s: it is no part of "
				   "the tree",
				   shape_name(s, v), shape_name(s, h.on[v]));
	}
	free(h.on);
	free(h.bears);
	return ret;
}
