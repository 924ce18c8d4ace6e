#include "fabric_shape_int.h"

#include <errno.h>
#include <stdlib.h>

/* Beyond so many switches, one behind the other, it is no accident. */
#define CHAIN_MAX 8

/* ---- distances ---- */

/* All from which v can be reached must be all that there is. */
static int check_connected(struct shape *s, uint32_t *queue)
{
	uint8_t *seen = calloc(s->n + 1, 1);
	uint32_t n = 0;
	int ret = 0;

	if (!seen)
		return -ENOMEM;
	seen[0] = 1;
	queue[n++] = 0;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = s->adj_first[queue[i]]; k < s->adj_first[queue[i] + 1]; k++) {
			uint32_t u = shape_peer(s, s->adj[k]);

			if (!seen[u])
				queue[n++] = u;
			seen[u] = 1;
		}
	for (uint32_t v = 0; !ret && v < s->n; v++)
		if (!seen[v])
			ret = shape_refuse(s, shape_line(s, v),
					   "the network is in several parts: %s can not be "
					   "reached from %s",
					   fabric_quote(shape_name(s, v)).text,
					   fabric_quote(shape_name(s, 0)).text);
	free(seen);
	return ret;
}

static void measure(struct shape *s, uint32_t *queue)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < s->n; v++) {
		if (s->level[v] == 0)
			queue[n++] = v;
		else
			s->level[v] = FABRIC_NONE;
	}
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = s->adj_first[queue[i]]; k < s->adj_first[queue[i] + 1]; k++) {
			uint32_t u = shape_peer(s, s->adj[k]);

			/* A host may have another port, at a spine. */
			if (s->level[u] != FABRIC_NONE || shape_is_host(s, u) || s->stray[u] ||
			    (s->level[queue[i]] == 0 && !s->is_leaf[u]))
				continue;
			s->level[u] = s->level[queue[i]] + 1;
			queue[n++] = u;
		}
}

/* Neighbours that are no part of the tree say nothing of where in it a switch is. */
static uint32_t neighbours(const struct shape *s, uint32_t v)
{
	uint32_t n = 0;

	for (uint32_t k = s->adj_first[v]; k < s->adj_first[v + 1]; k++)
		n += s->level[shape_peer(s, s->adj[k])] != FABRIC_NONE;
	return n;
}

/* How many of a switch's neighbours are one level beside l. */
static uint32_t fitting(const struct shape *s, uint32_t v, uint32_t l)
{
	uint32_t n = 0;

	for (uint32_t k = s->adj_first[v]; k < s->adj_first[v + 1]; k++) {
		uint32_t level = s->level[shape_peer(s, s->adj[k])];

		n += level != FABRIC_NONE && (level + 1 == l || level == l + 1);
	}
	return n;
}

/* A single cable that leads astray can make the distance too short: where fewer than half of the
 * neighbours fit the level, another is taken that fits most of them. */
static void correct(struct shape *s)
{
	for (uint32_t v = 0; v < s->n; v++) {
		uint32_t l = s->level[v], best = l, most;

		if (l == 0 || l == FABRIC_NONE || (s->is_leaf[v] && shape_hosts_at(s, v)))
			continue;
		most = fitting(s, v, l);
		if (2 * most >= neighbours(s, v))
			continue;
		for (uint32_t other = l < 3 ? 1 : l - 2; other <= l + 2; other++) {
			uint32_t n = fitting(s, v, other);

			if (n >= most && other != l) {
				most = n;
				best = other;
			}
		}
		s->level[v] = best;
	}
}

/* Children of two children of a node are never the same: those two are in different sub-trees.
 * What seems to be an upper node and has such children is a lower one without hosts. */
static bool is_hollow(const struct shape *s, uint32_t v, uint32_t *seen_by, uint64_t *work)
{
	uint32_t l = s->level[v], children = 0, shared = 0;

	for (uint32_t k = s->adj_first[v]; k < s->adj_first[v + 1]; k++) {
		uint32_t c = shape_peer(s, s->adj[k]);
		bool again = false;

		if (s->level[c] + 1 != l || seen_by[c] == v)
			continue;
		seen_by[c] = v;
		children++;
		*work += s->adj_first[c + 1] - s->adj_first[c];
		for (uint32_t i = s->adj_first[c]; i < s->adj_first[c + 1]; i++) {
			uint32_t d = shape_peer(s, s->adj[i]);

			if (s->level[d] + 2 != l)
				continue;
			again |= seen_by[d] == v;
		}
		/* Only then: parallel cables lead to the same one. */
		for (uint32_t i = s->adj_first[c]; i < s->adj_first[c + 1]; i++)
			if (s->level[shape_peer(s, s->adj[i])] + 2 == l)
				seen_by[shape_peer(s, s->adj[i])] = v;
		shared += again;
	}
	return children > 1 && 2 * shared >= children;
}

static int lower_hollows(struct shape *s)
{
	uint32_t *seen_by = shape_array(s->n, true);
	uint64_t work = 0;

	if (!seen_by)
		return -ENOMEM;
	/* No switch of InfiniBand has so many ports that this takes longer. */
	for (uint32_t l = 3; l <= FABRIC_LEVELS_MAX; l++)
		for (uint32_t v = 0; v < s->n && work < 1024 * (uint64_t)s->n_links; v++)
			if (s->level[v] == l && is_hollow(s, v, seen_by, &work))
				s->level[v] = l - 2;
	free(seen_by);
	return 0;
}

/* ---- all of it ---- */

static int sort_by_level(struct shape *s)
{
	uint32_t at = 0;

	s->h = 0;
	for (uint32_t v = 0; v < s->n; v++) {
		if (s->level[v] == FABRIC_NONE)
			continue;
		if (s->level[v] > FABRIC_LEVELS_MAX)
			return shape_refuse(s, shape_line(s, v),
					    "switch %s is %u cables away from the "
					    "nearest host; a fat tree has at most %d levels",
					    fabric_quote(shape_name(s, v)).text, s->level[v],
					    FABRIC_LEVELS_MAX);
		s->h = s->level[v] > s->h ? s->level[v] : s->h;
	}
	if (s->h == 0)
		return shape_refuse(s, shape_line(s, 0),
				    "the network has no switch with hosts; expected a fat tree");
	for (uint32_t l = 0; l <= s->h; l++) {
		s->first[l] = at;
		for (uint32_t v = 0; v < s->n; v++)
			if (s->level[v] == l)
				s->order[at++] = v;
		if (s->first[l] == at)
			return shape_refuse(s, shape_line(s, 0), "no switch is at level %u", l);
	}
	s->first[s->h + 1] = at;
	return 0;
}

/* Cables that do not go from one level to the next. Where they are many it is no tree. */
static int check_levels(struct shape *s)
{
	uint32_t bad = 0, first = FABRIC_NONE, between = 0;

	for (uint32_t i = 0; i < s->n_links; i++) {
		uint32_t v = s->links[i].end[0], u = s->links[i].end[1];

		if (shape_is_host(s, v) || shape_is_host(s, u) || s->stray[v] || s->stray[u])
			continue;
		between++;
		if (s->level[v] + 1 == s->level[u] || s->level[u] + 1 == s->level[v])
			continue;
		bad++;
		first = first == FABRIC_NONE ? i : first;
	}
	if (bad <= 2 || 4 * bad <= between)
		return 0;
	return shape_refuse(s, s->net->ports[s->links[first].place[0]].line,
			    "no fat tree: switches %s and %s are joined, but are %u and "
			    "%u cables away from the nearest hosts, and so it is with %u of %u "
			    "cables",
			    fabric_quote(shape_name(s, s->links[first].end[0])).text,
			    fabric_quote(shape_name(s, s->links[first].end[1])).text,
			    s->level[s->links[first].end[0]], s->level[s->links[first].end[1]], bad,
			    between);
}

/* Distances, without switches that hang on one other. */
static int measure_tree(struct shape *s, uint32_t *queue)
{
	bool again = true;
	int ret = 0;

	for (int i = 0; !ret && again && i < CHAIN_MAX; i++) {
		measure(s, queue);
		ret = shape_leave_out_strays(s, &again);
	}
	measure(s, queue);
	return ret;
}

int shape_levels(struct shape *s)
{
	uint32_t *queue = shape_array(s->n, false);
	int ret = queue ? check_connected(s, queue) : -ENOMEM;

	if (!ret)
		ret = shape_choose_hosts(s);
	if (!ret)
		ret = measure_tree(s, queue);
	if (!ret) {
		correct(s);
		correct(s);
		ret = lower_hollows(s);
	}
	free(queue);
	for (uint32_t v = 0; v < s->n; v++)
		s->is_leaf[v] |= !shape_is_host(s, v) && s->level[v] == 1;
	shape_add_hosts(s);
	if (!ret)
		ret = sort_by_level(s);
	return ret ? ret : check_levels(s);
}
