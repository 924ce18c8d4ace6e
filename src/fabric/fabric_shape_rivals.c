/* Switches with hosts that can not both be leaves. Leaves of a tree are an even number of cables
 * away from each other, so that those with fewer hosts than the ones an odd number away are none.
 * And two leaves have all of their parents in common or none: a spine with hosts is at odds with
 * every leaf that it shares a neighbour with, and however many hosts it has, they are more. */
#include "fabric_shape_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rivals {
	const struct shape *s;
	uint32_t *hosts;       /* by vertex, of candidates; 0: it is none, or no longer */
	uint32_t *first, *adj; /* by vertex: switches that it is joined with, each once */
	uint32_t *shared;      /* by vertex: neighbours in common with the one looked at */
	uint32_t *list, n;     /* of its rivals */
	uint64_t work;         /* what is left of it */
};

#define JOINED UINT32_MAX

/* What hangs on one other says nothing about it. */
static void find_neighbours(struct rivals *x, uint32_t *seen_by)
{
	const struct shape *s = x->s;

	for (uint32_t v = 0; v < s->n; v++)
		x->shared[v] = shape_is_host(s, v) || shape_only_neighbour(s, v) != FABRIC_NONE;
	for (uint32_t v = 0; v < s->n; v++) {
		x->first[v + 1] = x->first[v];
		for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
			uint32_t u = shape_peer(s, s->adj[i]);

			if (!x->shared[u] && seen_by[u] != v)
				x->adj[x->first[v + 1]++] = u;
			seen_by[u] = v;
		}
	}
	for (uint32_t v = 0; v < s->n; v++)
		x->shared[v] = 0;
}

static uint32_t degree(const struct rivals *x, uint32_t v)
{
	return x->first[v + 1] - x->first[v];
}

/* Some cables may be missing. */
static bool at_odds(const struct rivals *x, uint32_t v, uint32_t u)
{
	uint64_t both = 2 * (uint64_t)x->shared[u], a = degree(x, v), b = degree(x, u);

	return x->shared[u] == JOINED || both <= (a < b ? a : b) || both < (a < b ? b : a);
}

static void find_rivals(struct rivals *x, uint32_t v)
{
	uint32_t n = 0;

	x->n = 0;
	for (uint32_t i = x->first[v]; i < x->first[v + 1]; i++) {
		uint32_t u = x->adj[i];

		/* No switch of InfiniBand has so many ports that this ends it. */
		if (degree(x, u) > x->work)
			break;
		x->work -= degree(x, u);
		for (uint32_t k = x->first[u]; k < x->first[u + 1]; k++) {
			uint32_t w = x->adj[k];

			if (w == v || !x->hosts[w])
				continue;
			if (!x->shared[w])
				x->list[x->n++] = w;
			x->shared[w] += x->shared[w] != JOINED;
		}
		if (x->hosts[u] && !x->shared[u])
			x->list[x->n++] = u;
		if (x->hosts[u])
			x->shared[u] = JOINED;
	}
	for (uint32_t i = 0; i < x->n; i++) {
		uint32_t u = x->list[i];
		bool odd = at_odds(x, v, u);

		x->shared[u] = 0;
		if (odd)
			x->list[n++] = u;
	}
	x->n = n;
}

/* Distances from any switch that are odd or even: in list, all in the order of their distance. */
static void measure(struct rivals *x, uint32_t *distance)
{
	for (uint32_t v = 0; v < x->s->n; v++) {
		if (shape_is_host(x->s, v) || distance[v] != FABRIC_NONE || !degree(x, v))
			continue;
		distance[v] = 0;
		x->n = 0;
		x->list[x->n++] = v;
		for (uint32_t i = 0; i < x->n; i++)
			for (uint32_t k = x->first[x->list[i]]; k < x->first[x->list[i] + 1]; k++) {
				uint32_t u = x->adj[k];

				if (distance[u] != FABRIC_NONE)
					continue;
				distance[u] = distance[x->list[i]] + 1;
				x->list[x->n++] = u;
			}
	}
}

static void leave_out_odd(struct rivals *x, uint32_t *distance)
{
	uint64_t sum[2] = {0, 0};

	measure(x, distance);
	for (uint32_t v = 0; v < x->s->n; v++)
		if (distance[v] != FABRIC_NONE)
			sum[distance[v] % 2] += x->hosts[v];
	for (uint32_t v = 0; v < x->s->n; v++)
		if (distance[v] != FABRIC_NONE && sum[distance[v] % 2] < sum[1 - distance[v] % 2])
			x->hosts[v] = 0;
}

/* What each of its rivals has against it is as much as it has hosts itself, or less if the rival
 * has fewer: who has most hosts is not right for that, and who has few has rivals in vain. */
struct candidate {
	uint32_t v;
	double against;
};

static int by_against(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->against != y->against)
		return x->against < y->against ? 1 : -1;
	return (x->v > y->v) - (x->v < y->v);
}

/* Those with most against them go first, as long as they have rivals. */
static void eliminate(struct rivals *x, struct candidate *order, uint8_t *is_leaf)
{
	uint32_t n = 0;

	for (uint32_t v = 0; v < x->s->n; v++) {
		uint64_t sum = 0;

		is_leaf[v] = x->hosts[v] > 0;
		if (!x->hosts[v])
			continue;
		find_rivals(x, v);
		for (uint32_t i = 0; i < x->n; i++) {
			uint32_t hosts = x->hosts[x->list[i]];

			sum += hosts < x->hosts[v] ? hosts : x->hosts[v];
		}
		if (sum)
			order[n++] = (struct candidate){v, (double)sum / x->hosts[v]};
	}
	qsort(order, n, sizeof(*order), by_against);
	for (uint32_t i = 0; i < n; i++) {
		find_rivals(x, order[i].v);
		if (!x->n)
			continue;
		is_leaf[order[i].v] = 0;
		x->hosts[order[i].v] = 0;
	}
}

int shape_rivals(const struct shape *s, uint32_t *hosts, uint8_t *is_leaf)
{
	struct rivals x = {
		.s = s,
		.hosts = hosts,
		.first = shape_array((size_t)s->n + 1, false),
		.adj = shape_array(2 * (size_t)s->n_links, false),
		.shared = shape_array(s->n, false),
		.list = shape_array(s->n, false),
		.work = 1024 * (uint64_t)s->n_links,
	};
	uint32_t *by_vertex = shape_array(s->n, true);
	struct candidate *order = malloc(((size_t)s->n + 1) * sizeof(*order));
	int ret = x.first && x.adj && x.shared && x.list && by_vertex && order ? 0 : -ENOMEM;

	if (!ret) {
		find_neighbours(&x, by_vertex);
		memset(by_vertex, 0xff, s->n * sizeof(*by_vertex));
		leave_out_odd(&x, by_vertex);
		eliminate(&x, order, is_leaf);
	}
	free(x.first);
	free(x.adj);
	free(x.shared);
	free(x.list);
	free(by_vertex);
	free(order);
	return ret;
}
