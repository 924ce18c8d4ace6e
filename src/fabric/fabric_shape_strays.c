/* Which switches are no part of a tree. */
#include "fabric_shape_int.h"

#include <errno.h>
#include <stdlib.h>

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
			u = shape_only_neighbour(s, v);
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

/* ---- switches with hosts, and cables to a few others only ---- */

struct degrees {
	uint32_t *of;      /* by vertex: switches that it is joined with */
	uint32_t *seen_by; /* in this and what follows */
};

static void count_degrees(const struct shape *s, struct degrees *d)
{
	for (uint32_t v = 0; v < s->n; v++)
		for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
			uint32_t u = shape_peer(s, s->adj[i]);

			d->of[v] += !shape_is_host(s, u) && !s->stray[u] && d->seen_by[u] != v;
			d->seen_by[u] = v;
		}
}

/* The most switches that any other parent of its children is joined with. */
static uint32_t most_of_siblings(const struct shape *s, const struct degrees *d, uint32_t v)
{
	uint32_t most = 0;

	for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
		uint32_t u = shape_peer(s, s->adj[i]);

		if (s->level[u] + 1 != s->level[v] || d->seen_by[u] == s->n + v)
			continue;
		d->seen_by[u] = s->n + v;
		for (uint32_t k = s->adj_first[u]; k < s->adj_first[u + 1]; k++) {
			uint32_t w = shape_peer(s, s->adj[k]);

			if (w != v && s->level[w] == s->level[v] && d->of[w] > most)
				most = d->of[w];
		}
	}
	return most;
}

/* A spine has the same neighbours as its siblings. What has hosts, and less than half as many, was
 * plugged into some leaves to have more ports. */
static int leave_out_edges(struct shape *s, const struct degrees *d, bool *found)
{
	int ret = 0;

	for (uint32_t v = 0; !ret && v < s->n; v++) {
		if (shape_is_host(s, v) || s->is_leaf[v] || s->stray[v] || s->level[v] != 2 ||
		    d->of[v] < 2 || !shape_hosts_at(s, v) ||
		    2 * d->of[v] >= most_of_siblings(s, d, v))
			continue;
		s->stray[v] = 1;
		*found = true;
		ret = shape_defect(s,
				   "switch %s has hosts, and cables to only %u switches: it is no "
				   "part of the tree",
				   shape_name(s, v), d->of[v]);
	}
	return ret;
}

static int leave_out_hanging(struct shape *s, bool *found)
{
	struct hanging h = {.on = shape_array(s->n, true), .bears = calloc(s->n + 1, 1)};
	int ret = h.on && h.bears ? 0 : -ENOMEM;

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

int shape_leave_out_strays(struct shape *s, bool *found)
{
	struct degrees d = {.of = shape_array(s->n, false), .seen_by = shape_array(s->n, true)};
	int ret = d.of && d.seen_by ? 0 : -ENOMEM;

	*found = false;
	if (!ret)
		ret = leave_out_hanging(s, found);
	if (!ret) {
		count_degrees(s, &d);
		ret = leave_out_edges(s, &d, found);
	}
	free(d.of);
	free(d.seen_by);
	return ret;
}
