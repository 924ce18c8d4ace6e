/* Tables around what is missing.
 *
 * Two sweeps. From the leaves to the top: which destinations a switch can go down to. From the top
 * to the leaves: which of the others it can go up for. Each asks only tables that are finished:
 * that of the child, and those of the parents.
 *
 * While a table is worked on it holds logical ports: 1 + r, or 1 + down ports + q. */
#include "fabric_routes_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN 0x8000 /* the cable of the rule does not lead there: another has to be found */

_Static_assert(FABRIC_ROUTES_PORTS_MAX < AGAIN, "ports and the mark share 16 bits");

struct around {
	struct fabric_routes *r;
	const struct fabric_pgft *t;
	size_t entries;
	/* Of the switch in hand. Choices are the up-going ports, or the down-going ports that
	 * lead to one child. */
	struct fabric_node n;
	uint16_t *row;
	uint32_t down, up;
	uint16_t *port;        /* physical, by logical port − 1 */
	const uint16_t **next; /* by up-going port, the parent's table; NULL: no cable */
	uint8_t *open;         /* by down-going port: is there a cable? */
	uint32_t *load;        /* by port: destinations */
	/* Of all alike switches of a level (the same b), so that they agree on detours: */
	uint16_t *detour;    /* by entry, 1 + the up-going port that one has found; 0: none yet */
	uint32_t *down_load; /* by sub-tree, by up-going port: destinations that come down there */
	uint32_t enough;     /* destinations on a cable that a detour may add to for that */
};

static uint16_t *row_of(const struct around *x, struct fabric_node n)
{
	return x->r->table + (fabric_number(x->t, n) - x->t->first[1]) * x->entries;
}

/* What is at the ports of the switch in hand. */
static void look_down(struct around *x)
{
	for (uint32_t i = 0; i < x->down; i++) {
		struct fabric_cable c = fabric_cable_down(x->t, x->n, i);
		uint32_t cable = fabric_cable_number(x->t, &c);

		x->open[i] = fabric_tree_has_cable(x->r->tree, cable);
		x->port[i] = x->open[i] ? (uint16_t)fabric_tree_upper_port(x->r->tree, cable) : 0;
	}
}

static void look_up(struct around *x)
{
	for (uint32_t i = 0; i < x->up; i++) {
		struct fabric_cable c = fabric_cable_up(x->t, x->n, i);
		uint32_t cable = fabric_cable_number(x->t, &c);
		bool open = fabric_tree_has_cable(x->r->tree, cable);

		x->next[i] = open ? row_of(x, c.upper) : NULL;
		x->port[x->down + i] =
			open ? (uint16_t)fabric_tree_lower_port(x->r->tree, cable) : 0;
	}
}

static bool take_up(struct around *x, uint32_t level, uint32_t index)
{
	x->n = (struct fabric_node){level, index};
	x->row = row_of(x, x->n);
	x->down = fabric_down_ports(x->t, level);
	x->up = fabric_up_ports(x->t, level);
	memset(x->load, 0, (x->down + x->up) * sizeof(*x->load));
	return fabric_tree_has_node(x->r->tree, fabric_number(x->t, x->n));
}

/* ---- down ---- */

/* Of the cables to one child, the first with the least load after that of the rule; FABRIC_NONE:
 * there is none. */
static uint32_t other_down(const struct around *x, uint32_t r)
{
	uint32_t m = x->t->m[x->n.level], best = FABRIC_NONE;

	for (uint32_t i = 1; i < x->t->p[x->n.level]; i++) {
		uint32_t at = (r + i * m) % x->down;

		if (x->open[at] && (best == FABRIC_NONE || x->load[at] < x->load[best]))
			best = at;
	}
	return best;
}

static void keep_down(struct around *x, const uint16_t *child, size_t first, size_t n)
{
	for (size_t e = first; e < first + n; e++) {
		uint32_t r = x->row[e] - 1u;

		if (child && !child[e])
			x->row[e] = 0;
		else if (x->open[r])
			x->load[r]++;
		else
			x->row[e] |= AGAIN;
	}
}

static void again_down(struct around *x, size_t first, size_t n)
{
	for (size_t e = first; e < first + n; e++) {
		uint32_t r;

		if (!(x->row[e] & AGAIN))
			continue;
		r = other_down(x, (x->row[e] & ~AGAIN) - 1u);
		x->row[e] = r == FABRIC_NONE ? 0 : (uint16_t)(r + 1);
		if (r != FABRIC_NONE)
			x->load[r]++;
	}
}

static void sweep_down(struct around *x)
{
	const struct fabric_pgft *t = x->t;
	uint32_t l = x->n.level;
	uint32_t below = x->n.index / t->W[l] * t->M[l];
	size_t n = (size_t)t->M[l - 1] << x->r->rule.lmc;

	look_down(x);
	for (uint32_t i = 0; i < t->m[l]; i++) {
		struct fabric_node child = fabric_cable_down(t, x->n, i).lower;
		size_t first = ((size_t)below << x->r->rule.lmc) + i * n;

		/* A host that is missing has no cable. */
		keep_down(x, l > 1 ? row_of(x, child) : NULL, first, n);
		again_down(x, first, n);
	}
}

/* ---- up ---- */

/* Whoever goes up by q comes down to the sub-tree of the destination from that same parent's alike,
 * by a cable at the switch there that is alike; among parallel ones, by that of the rule. Each
 * destination is on it once at most in a permutation, so it is the number of destinations of that
 * cable that makes hot spots: switches that are alike better take the same detour to a destination,
 * and one that few others take. */
static void count_down(struct around *x, uint32_t level, uint32_t b, uint32_t a,
		       const uint16_t *row)
{
	const struct fabric_pgft *t = x->t;
	uint32_t up = fabric_up_ports(t, level), down = fabric_down_ports(t, level);
	struct fabric_node n = {level, b + t->W[level] * a};
	uint32_t cable = t->first_cable[level + 1] + n.index * up;
	size_t entries = (size_t)t->M[level] << x->r->rule.lmc;
	const uint16_t *here = row_of(x, n);

	for (size_t e = a * entries; e < (a + 1) * entries; e++) {
		uint32_t q = row[e] - 1u - down;

		if (here[e] && fabric_tree_has_cable(x->r->tree, cable + q))
			x->down_load[(size_t)a * up + q]++;
	}
}

/* The rule as it is: each sub-tree, seen by a switch of another one. */
static void begin_alike(struct around *x, uint32_t level, uint32_t b)
{
	const struct fabric_pgft *t = x->t;
	uint32_t trees = t->nodes[level] / t->W[level], up = fabric_up_ports(t, level);
	uint32_t seen[2], n = 0;

	memset(x->detour, 0, x->entries * sizeof(*x->detour));
	memset(x->down_load, 0, (size_t)trees * up * sizeof(*x->down_load));
	for (uint32_t a = 0; a < trees && n < 2; a++)
		if (fabric_tree_has_node(x->r->tree, t->first[level] + b + t->W[level] * a))
			seen[n++] = a;
	for (uint32_t a = 0; n == 2 && a < trees; a++) {
		struct fabric_node from = {level, b + t->W[level] * seen[a == seen[0]]};

		count_down(x, level, b, a, row_of(x, from));
	}
}

static bool leads(const struct around *x, uint32_t q, size_t e)
{
	return x->next[q] && x->next[q][e];
}

static uint32_t other_up(struct around *x, uint32_t q, size_t e)
{
	uint32_t tree = (uint32_t)(e >> x->r->rule.lmc) / x->t->M[x->n.level];
	uint32_t w = x->t->w[x->n.level + 1];
	/* By parent, for that of the parallel cables which the rule has for this one. */
	uint32_t *down = x->down_load + (size_t)tree * x->up + q / w * w;
	uint32_t most = UINT32_MAX, best = FABRIC_NONE;

	for (uint32_t i = 0; i < x->up; i++)
		if (leads(x, i, e) && x->load[i] < most)
			most = x->load[i];
	if (most == UINT32_MAX)
		return FABRIC_NONE;
	if (most < x->enough)
		most = x->enough;
	if (x->detour[e] && leads(x, x->detour[e] - 1u, e) && x->load[x->detour[e] - 1] <= most)
		return x->detour[e] - 1u;
	for (uint32_t i = 1; i < x->up; i++) {
		uint32_t at = q + i < x->up ? q + i : q + i - x->up;

		if (!leads(x, at, e) || x->load[at] > most)
			continue;
		if (best == FABRIC_NONE || down[at % w] < down[best % w] ||
		    (down[at % w] == down[best % w] && x->load[at] < x->load[best]))
			best = at;
	}
	down[best % w]++;
	if (!x->detour[e])
		x->detour[e] = (uint16_t)(best + 1);
	return best;
}

static bool keep_up(struct around *x, size_t first, size_t end)
{
	bool all = true;

	for (size_t e = first; e < end; e++) {
		uint32_t q = x->row[e] - 1u - x->down;

		if (leads(x, q, e)) {
			x->load[q]++;
		} else {
			x->row[e] |= AGAIN;
			all = false;
		}
	}
	return all;
}

static void again_up(struct around *x, size_t first, size_t end)
{
	for (size_t e = first; e < end; e++) {
		uint32_t q;

		if (!(x->row[e] & AGAIN))
			continue;
		q = other_up(x, (x->row[e] & ~AGAIN) - 1u - x->down, e);
		x->row[e] = q == FABRIC_NONE ? 0 : (uint16_t)(q + 1 + x->down);
		if (q != FABRIC_NONE)
			x->load[q]++;
	}
}

static void sweep_up(struct around *x)
{
	const struct fabric_pgft *t = x->t;
	size_t n = (size_t)t->M[x->n.level] << x->r->rule.lmc;
	size_t below = x->n.index / t->W[x->n.level] * n;
	uint32_t cables = 0;
	bool all;

	look_down(x);
	look_up(x);
	for (uint32_t q = 0; q < x->up; q++)
		cables += !!x->next[q];
	/* The mean and an eighth. */
	x->enough = cables ? (uint32_t)((x->entries - n) * 9 / (8 * cables)) : 0;
	all = keep_up(x, 0, below);
	all &= keep_up(x, below + n, x->entries);
	if (!all) {
		again_up(x, 0, below);
		again_up(x, below + n, x->entries);
	}
	for (size_t e = 0; e < x->entries; e++)
		x->row[e] = x->row[e] ? x->port[x->row[e] - 1] : 0;
}

/* ---- all ---- */

static int sweep(struct around *x)
{
	const struct fabric_pgft *t = x->t;
	int ret;

	for (uint32_t l = 1; l <= t->h; l++)
		for (uint32_t i = 0; i < t->nodes[l]; i++) {
			if (!take_up(x, l, i))
				continue;
			for (uint32_t port = 0; port < x->down + x->up; port++)
				x->port[port] = (uint16_t)(port + 1);
			ret = fabric_routes_formula(x->r, x->n, x->port, x->row);
			if (ret)
				return ret;
			sweep_down(x);
		}
	for (uint32_t l = t->h; l >= 1; l--)
		for (uint32_t b = 0; b < t->W[l]; b++) {
			begin_alike(x, l, b);
			for (uint32_t i = b; i < t->nodes[l]; i += t->W[l])
				if (take_up(x, l, i))
					sweep_up(x);
		}
	return 0;
}

int fabric_routes_around(struct fabric_routes *r)
{
	struct around x = {.r = r, .t = &r->tree->pgft, .entries = fabric_routes_entries(r)};
	uint32_t ports = 0;
	size_t links = 1;
	int ret = -ENOMEM;

	for (uint32_t l = 1; l <= x.t->h; l++) {
		uint32_t n = fabric_down_ports(x.t, l) + fabric_up_ports(x.t, l);

		size_t trees = (size_t)(x.t->nodes[l] / x.t->W[l]) * fabric_up_ports(x.t, l);

		ports = n > ports ? n : ports;
		links = trees > links ? trees : links;
	}
	x.port = calloc(ports, sizeof(*x.port));
	x.next = calloc(ports, sizeof(*x.next));
	x.open = calloc(ports, sizeof(*x.open));
	x.load = calloc(ports, sizeof(*x.load));
	x.detour = calloc(x.entries, sizeof(*x.detour));
	x.down_load = calloc(links, sizeof(*x.down_load));
	if (x.port && x.next && x.open && x.load && x.detour && x.down_load)
		ret = sweep(&x);
	free(x.port);
	free(x.next);
	free(x.open);
	free(x.load);
	free(x.detour);
	free(x.down_load);
	return ret;
}
