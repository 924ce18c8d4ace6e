#include "fabric_shape_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* How often parts are reconsidered. Each round repairs what the one before allowed to see; a few
 * wrong edges need two. */
#define ROUNDS 8

struct parts {
	/* Edges by left and by right end. */
	uint32_t *left_first, *left_adj, *right_first, *right_adj;
	uint32_t *left, *right; /* the result */
	uint32_t *order;        /* of the left, those with most edges first */
	uint32_t *votes;        /* by part, of one vertex; the last is for what has no part yet */
	uint32_t n_left, n_right, n;
};

/* Compressed rows: for each key the values, in the order of edges. */
static void rows(const struct shape_edge *edges, size_t n, bool by_left, uint32_t n_keys,
		 uint32_t *first, uint32_t *adj)
{
	for (size_t i = 0; i < n; i++)
		first[(by_left ? edges[i].left : edges[i].right) + 1]++;
	for (uint32_t k = 0; k < n_keys; k++)
		first[k + 1] += first[k];
	for (size_t i = n; i-- > 0;) {
		uint32_t key = by_left ? edges[i].left : edges[i].right;

		adj[--first[key + 1]] = by_left ? edges[i].right : edges[i].left;
	}
	/* Each end was counted down to its beginning: shift back. */
	memmove(first, first + 1, n_keys * sizeof(*first));
	first[n_keys] = (uint32_t)n;
}

static int order_by_degree(struct parts *p)
{
	uint32_t most = 0, *count;

	for (uint32_t i = 0; i < p->n_left; i++) {
		uint32_t d = p->left_first[i + 1] - p->left_first[i];

		most = d > most ? d : most;
	}
	count = shape_array((size_t)most + 2, false);
	if (!count)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n_left; i++)
		count[most - (p->left_first[i + 1] - p->left_first[i]) + 1]++;
	for (uint32_t d = 0; d <= most; d++)
		count[d + 1] += count[d];
	for (uint32_t i = 0; i < p->n_left; i++)
		p->order[count[most - (p->left_first[i + 1] - p->left_first[i])]++] = i;
	free(count);
	return 0;
}

/* The part that most of the neighbours are in; on a tie the one that it has, else the first. Where
 * none has a part: FABRIC_NONE. */
static uint32_t majority(struct parts *p, const uint32_t *adj, uint32_t n, const uint32_t *part_of,
			 uint32_t own)
{
	uint32_t best = FABRIC_NONE, most = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = part_of[adj[i]], votes = ++p->votes[c == FABRIC_NONE ? p->n_left : c];

		if (votes > most || (votes == most && c == own)) {
			most = votes;
			best = c;
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = part_of[adj[i]];

		p->votes[c == FABRIC_NONE ? p->n_left : c] = 0;
	}
	return best;
}

/* Each takes the part of most of its neighbours, or opens one, and claims those without. */
static void seed(struct parts *p)
{
	for (uint32_t k = 0; k < p->n_left; k++) {
		uint32_t u = p->order[k], n = p->left_first[u + 1] - p->left_first[u], c;
		const uint32_t *adj = p->left_adj + p->left_first[u];

		if (n == 0)
			continue;
		c = majority(p, adj, n, p->right, FABRIC_NONE);
		if (c == FABRIC_NONE)
			c = p->n++;
		p->left[u] = c;
		for (uint32_t i = 0; i < n; i++)
			if (p->right[adj[i]] == FABRIC_NONE)
				p->right[adj[i]] = c;
	}
}

static bool reconsider(struct parts *p, uint32_t n, const uint32_t *first, const uint32_t *adj,
		       uint32_t *own, const uint32_t *other)
{
	bool changed = false;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t c = majority(p, adj + first[i], first[i + 1] - first[i], other, own[i]);

		changed |= c != own[i];
		own[i] = c;
	}
	return changed;
}

/* Numbers without gaps, of parts that have something on both sides. */
static void renumber(struct parts *p, uint32_t *n_parts)
{
	uint32_t n = 0;

	for (uint32_t c = 0; c <= p->n_left; c++)
		p->votes[c] = FABRIC_NONE;
	for (uint32_t i = 0; i < p->n_left; i++) {
		if (p->left[i] == FABRIC_NONE)
			continue;
		if (p->votes[p->left[i]] == FABRIC_NONE)
			p->votes[p->left[i]] = n++;
		p->left[i] = p->votes[p->left[i]];
	}
	for (uint32_t i = 0; i < p->n_right; i++)
		if (p->right[i] != FABRIC_NONE)
			p->right[i] = p->votes[p->right[i]];
	*n_parts = n;
}

int shape_parts(const struct shape_edge *edges, size_t n_edges, uint32_t n_left, uint32_t n_right,
		uint32_t *left, uint32_t *right, uint32_t *n_parts)
{
	struct parts p = {.left = left, .right = right, .n_left = n_left, .n_right = n_right};
	int ret = -ENOMEM;

	p.left_first = shape_array((size_t)n_left + 1, false);
	p.right_first = shape_array((size_t)n_right + 1, false);
	p.left_adj = shape_array(n_edges, false);
	p.right_adj = shape_array(n_edges, false);
	p.order = shape_array(n_left, false);
	p.votes = shape_array((size_t)n_left + 1, false);
	if (p.left_first && p.right_first && p.left_adj && p.right_adj && p.order && p.votes) {
		rows(edges, n_edges, true, n_left, p.left_first, p.left_adj);
		rows(edges, n_edges, false, n_right, p.right_first, p.right_adj);
		ret = order_by_degree(&p);
	}
	if (!ret) {
		memset(left, 0xff, n_left * sizeof(*left));
		memset(right, 0xff, n_right * sizeof(*right));
		seed(&p);
		for (int i = 0; i < ROUNDS; i++) {
			bool changed =
				reconsider(&p, n_right, p.right_first, p.right_adj, right, left);

			changed |= reconsider(&p, n_left, p.left_first, p.left_adj, left, right);
			if (!changed)
				break;
		}
		renumber(&p, n_parts);
	}
	free(p.left_first);
	free(p.right_first);
	free(p.left_adj);
	free(p.right_adj);
	free(p.order);
	free(p.votes);
	return ret;
}
