#include "fabric_lft_ways.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- cables ---- */

static uint32_t vertex(const struct fabric_lft_ways *w, uint32_t net_node)
{
	uint32_t number = w->beside.number[net_node], nodes = fabric_nodes(&w->tree->pgft);

	if (number == FABRIC_NONE)
		return FABRIC_NONE;
	return number < nodes ? fabric_lft_ways_switch(w, number)
			      : fabric_lft_ways_beside(w, number - nodes);
}

static void add_up(struct fabric_lft_ways *w, uint32_t *at, uint32_t upper, uint32_t up_port,
		   uint32_t down_port)
{
	w->upper[*at] = upper;
	w->up_port[*at] = (uint8_t)up_port;
	w->down_port[*at] = (uint8_t)down_port;
	++*at;
}

static void cables_beside(struct fabric_lft_ways *w, uint32_t v, uint32_t *at)
{
	const struct fabric_net *net = w->tree->net;
	const struct fabric_net_node *n = &net->nodes[w->beside.switches[w->tree_first - 1 - v]];

	for (uint32_t i = n->first; i < n->first + n->count; i++) {
		uint32_t upper = vertex(w, net->ports[i].peer);

		if (upper != FABRIC_NONE && upper > v && fabric_tree_has_port(w->tree, i))
			add_up(w, at, upper, net->ports[i].number, net->ports[i].peer_port);
	}
}

/* Those that are missing have their place: who is without them goes the same ways as before. */
static void cables_of_tree(struct fabric_lft_ways *w, uint32_t node, uint32_t *at)
{
	const struct fabric_pgft *t = &w->tree->pgft;
	struct fabric_node n = fabric_node(t, node);

	for (uint32_t q = 0; q < fabric_up_ports(t, n.level); q++) {
		struct fabric_cable c = fabric_cable_up(t, n, q);
		uint32_t cable = fabric_cable_number(t, &c);

		if (fabric_tree_has_cable(w->tree, cable))
			add_up(w, at, fabric_lft_ways_switch(w, fabric_number(t, c.upper)),
			       fabric_tree_lower_port(w->tree, cable),
			       fabric_tree_upper_port(w->tree, cable));
		else
			add_up(w, at, FABRIC_NONE, 0, 0);
	}
}

static int find_cables(struct fabric_lft_ways *w)
{
	const struct fabric_pgft *t = &w->tree->pgft;
	size_t room = fabric_cables(t) - t->first_cable[2] + 1;
	uint32_t at = 0;

	for (uint32_t i = 0; i < w->beside.n_switches; i++)
		room += w->tree->net->nodes[w->beside.switches[i]].count;
	w->up_first = malloc(((size_t)w->n + 1) * sizeof(*w->up_first));
	w->upper = malloc(room * sizeof(*w->upper));
	w->up_port = malloc(room);
	w->down_port = malloc(room);
	if (!w->up_first || !w->upper || !w->up_port || !w->down_port)
		return -ENOMEM;
	for (uint32_t v = 0; v < w->n; v++) {
		w->up_first[v] = at;
		if (v < w->tree_first)
			cables_beside(w, v, &at);
		else
			cables_of_tree(w, t->first[1] + v - w->tree_first, &at);
	}
	w->up_first[w->n] = at;
	return 0;
}

/* ---- up and then down ---- */

/* All that are above a switch come down the cable they first were reached by. */
static void ways_down(const struct fabric_lft_ways *w, uint32_t to, uint32_t turn, uint8_t *ports)
{
	ports[to] = 0;
	for (uint32_t v = to; v < w->n; v++) {
		uint32_t first = w->up_first[v], n = w->up_first[v + 1] - first;

		for (uint32_t k = 0; ports[v] != FABRIC_NO_PORT && k < n; k++) {
			uint32_t c = first + (turn + k) % n;

			if (w->upper[c] != FABRIC_NONE && ports[w->upper[c]] == FABRIC_NO_PORT)
				ports[w->upper[c]] = w->down_port[c];
		}
	}
}

static void ways_up(const struct fabric_lft_ways *w, uint32_t turn, uint8_t *ports)
{
	for (uint32_t v = w->n; v-- > 0;) {
		uint32_t first = w->up_first[v], n = w->up_first[v + 1] - first;

		for (uint32_t k = 0; ports[v] == FABRIC_NO_PORT && k < n; k++) {
			uint32_t c = first + (turn + k) % n;

			if (w->upper[c] != FABRIC_NONE && ports[w->upper[c]] != FABRIC_NO_PORT)
				ports[v] = w->up_port[c];
		}
	}
}

/* The switch of a destination, what its ways begin with so that they differ, and, for an end-port,
 * the port that it is at. */
static uint32_t switch_of(const struct fabric_lft_ways *w, uint32_t to, uint32_t *turn,
			  uint32_t *port)
{
	const struct fabric_net_port *p;

	*port = 0;
	*turn = to < w->tree_first ? to : to - w->tree_first;
	if (to < w->n)
		return to;
	*turn = to - w->n;
	p = &w->tree->net->ports[w->beside.ports[(to - w->n) >> w->lmc]];
	*port = p->peer_port;
	return vertex(w, p->peer);
}

static int find_ways(struct fabric_lft_ways *w)
{
	uint8_t *ports = malloc((size_t)w->n + 1);
	const struct fabric_pgft *t = &w->tree->pgft;

	w->port = malloc((size_t)w->n * w->n_to + 1);
	if (!ports || !w->port) {
		free(ports);
		return -ENOMEM;
	}
	for (uint32_t to = 0; to < w->n_to; to++) {
		uint32_t turn, port, at = switch_of(w, to, &turn, &port);

		memset(ports, FABRIC_NO_PORT, w->n);
		if (at < w->tree_first ||
		    fabric_tree_has_node(w->tree, t->first[1] + at - w->tree_first)) {
			ways_down(w, at, turn, ports);
			ways_up(w, turn, ports);
			ports[at] = (uint8_t)port;
		}
		for (uint32_t v = 0; v < w->n; v++)
			w->port[(size_t)v * w->n_to + to] = ports[v];
	}
	free(ports);
	return 0;
}

/* ---- by the hub ---- */

bool fabric_lft_ways_direct(const struct fabric_lft_ways *w, uint32_t from, uint32_t to)
{
	return w->port[(size_t)from * w->n_to + to] != FABRIC_NO_PORT;
}

uint32_t fabric_lft_ways_port(const struct fabric_lft_ways *w, uint32_t from, uint32_t to)
{
	if (!fabric_lft_ways_direct(w, from, to) && w->hub != FABRIC_NONE &&
	    fabric_lft_ways_direct(w, w->hub, to))
		to = w->hub;
	return w->port[(size_t)from * w->n_to + to];
}

/* The leaf that reaches most, and that most reach. */
static void choose_hub(struct fabric_lft_ways *w)
{
	const struct fabric_pgft *t = &w->tree->pgft;
	uint32_t most = 0;

	w->hub = FABRIC_NONE;
	if (!w->beside.n_ports && !w->beside.n_switches && fabric_tree_whole(w->tree))
		return;
	for (uint32_t i = 0; i < t->nodes[1]; i++) {
		uint32_t v = w->tree_first + i, n = 0;

		for (uint32_t to = 0; to < w->n_to; to++)
			n += fabric_lft_ways_direct(w, v, to);
		for (uint32_t from = 0; from < w->n; from++)
			n += fabric_lft_ways_direct(w, from, v);
		if (n > most) {
			most = n;
			w->hub = v;
		}
	}
}

/* By switch, the next one on the way to the hub. */
static void find_next(const struct fabric_lft_ways *w, uint32_t *next)
{
	for (uint32_t v = 0; v < w->n; v++)
		next[v] = FABRIC_NONE;
	for (uint32_t v = 0; v < w->n; v++)
		for (uint32_t c = w->up_first[v]; c < w->up_first[v + 1]; c++) {
			uint32_t u = w->upper[c];

			if (u == FABRIC_NONE)
				continue;
			if (w->port[(size_t)v * w->n_to + w->hub] == w->up_port[c])
				next[v] = u;
			if (w->port[(size_t)u * w->n_to + w->hub] == w->down_port[c])
				next[u] = v;
		}
}

/* Where those at a switch go to hosts by the hub, until somebody has a way. */
static void note_detours(struct fabric_lft_ways *w, uint32_t from, const uint32_t *next)
{
	uint32_t leaves = w->tree->pgft.nodes[1];

	for (uint32_t i = 0; i < leaves; i++) {
		uint32_t v = from, to = w->tree_first + i;

		if (!fabric_lft_ways_direct(w, w->hub, to))
			continue;
		while (v != FABRIC_NONE && !fabric_lft_ways_direct(w, v, to)) {
			w->detour[(size_t)v * leaves + i] = 1;
			v = next[v];
		}
	}
}

static int find_detours(struct fabric_lft_ways *w)
{
	uint32_t *next, turn, port;

	if (w->hub == FABRIC_NONE)
		return 0;
	next = malloc(w->n * sizeof(*next));
	w->detour = calloc((size_t)w->n * w->tree->pgft.nodes[1], 1);
	if (!next || !w->detour) {
		free(next);
		return -ENOMEM;
	}
	find_next(w, next);
	for (uint32_t v = 0; v < w->tree_first; v++)
		note_detours(w, v, next);
	for (uint32_t k = 0; k < w->beside.n_ports; k++)
		note_detours(w, switch_of(w, w->n + (k << w->lmc), &turn, &port), next);
	free(next);
	return 0;
}

uint32_t fabric_lft_ways_detour(const struct fabric_lft_ways *w, uint32_t from, uint32_t leaf)
{
	size_t leaves = w->tree->pgft.nodes[1];

	if (from < w->tree_first)
		return fabric_lft_ways_port(w, from, leaf);
	return w->detour && w->detour[from * leaves + leaf - w->tree_first]
		       ? fabric_lft_ways_port(w, from, leaf)
		       : FABRIC_NO_PORT;
}

/* ---- all ---- */

int fabric_lft_ways_make(struct fabric_lft_ways *w, const struct fabric_tree *tree, uint32_t lmc)
{
	int ret;

	*w = (struct fabric_lft_ways){.tree = tree, .lmc = lmc};
	ret = fabric_beside_find(&w->beside, tree);
	w->tree_first = w->beside.n_switches;
	w->n = w->tree_first + fabric_nodes(&tree->pgft) - tree->pgft.first[1];
	w->n_to = w->n + (w->beside.n_ports << lmc);
	if (!ret)
		ret = find_cables(w);
	if (!ret)
		ret = find_ways(w);
	if (!ret) {
		choose_hub(w);
		ret = find_detours(w);
	}
	if (ret)
		fabric_lft_ways_free(w);
	return ret;
}

void fabric_lft_ways_free(struct fabric_lft_ways *w)
{
	fabric_beside_free(&w->beside);
	free(w->up_first);
	free(w->upper);
	free(w->up_port);
	free(w->down_port);
	free(w->port);
	free(w->detour);
	*w = (struct fabric_lft_ways){0};
}

uint64_t fabric_lft_ways_lost(const struct fabric_lft_ways *w)
{
	const struct fabric_pgft *t = &w->tree->pgft;
	uint32_t turn, port;
	uint64_t lost = 0;

	for (uint32_t k = 0; k < w->beside.n_ports; k++) {
		uint32_t to = w->n + (k << w->lmc), at = switch_of(w, to, &turn, &port);

		for (uint32_t i = 0; i < t->nodes[1]; i++) {
			if (!fabric_tree_has_node(w->tree, t->first[1] + i))
				continue;
			lost += fabric_lft_ways_port(w, w->tree_first + i, to) == FABRIC_NO_PORT;
			lost += fabric_lft_ways_port(w, at, w->tree_first + i) == FABRIC_NO_PORT;
		}
		for (uint32_t i = 0; i < w->beside.n_ports; i++) {
			uint32_t other = switch_of(w, w->n + (i << w->lmc), &turn, &port);

			lost += fabric_lft_ways_port(w, other, to) == FABRIC_NO_PORT;
		}
	}
	return lost;
}

uint64_t fabric_lft_ways_unmanaged(const struct fabric_lft_ways *w)
{
	const struct fabric_pgft *t = &w->tree->pgft;
	uint64_t lost = 0;

	for (uint32_t leaf = t->first[1]; leaf < t->first[2]; leaf++)
		for (uint32_t to = t->first[1]; to < fabric_nodes(t); to++)
			lost += fabric_tree_has_node(w->tree, leaf) &&
				fabric_tree_has_node(w->tree, to) &&
				fabric_lft_ways_port(w, fabric_lft_ways_switch(w, leaf),
						     fabric_lft_ways_switch(w, to)) ==
					FABRIC_NO_PORT;
	return lost;
}
