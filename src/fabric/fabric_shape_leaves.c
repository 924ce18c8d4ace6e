/* Which switches are leaves. */
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

uint32_t shape_only_neighbour(const struct shape *s, uint32_t v)
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
	uint32_t leaf = shape_only_neighbour(s, v), cables = s->adj_first[v + 1] - s->adj_first[v];

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

static int find_by_rivals(const struct shape *s, const struct leaf *leaves, uint32_t n,
			  uint32_t *hosts, uint8_t *is_leaf)
{
	memset(hosts, 0, s->n * sizeof(*hosts));
	for (uint32_t i = 0; i < n; i++)
		hosts[leaves[i].v] = leaves[i].hosts;
	return shape_rivals(s, hosts, is_leaf);
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
		if (s->by_rivals)
			ret = find_by_rivals(s, leaves, n, hosts, is_leaf);
		else
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
	/* Where that is no exception it is no fat tree; the levels will show it. Rivals are fewer
	 * than half, but a leaf can be among them by mistake: by levels it comes back. */
	if (strays > (s->by_rivals ? 2 * (uint64_t)hosts / 5 : hosts / 3))
		memset(s->is_leaf, 1, s->n);
	shape_add_hosts(s);
	return ret;
}
