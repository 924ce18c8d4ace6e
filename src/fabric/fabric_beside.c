#include "fabric_beside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool fabric_beside_is_inside(const struct fabric_net_node *n)
{
	return n->kind == FABRIC_NET_CA && strstr(n->desc, "Aggregation Node");
}

static void number_tree(struct fabric_beside *b, const struct fabric_tree *t)
{
	for (uint32_t i = t->pgft.first[1]; i < fabric_nodes(&t->pgft); i++)
		if (t->net_node[i] != FABRIC_NONE && fabric_tree_has_node(t, i))
			b->number[t->net_node[i]] = i;
}

/* A switch of the tree that was taken away is not to be found again beside it. */
static void mark_gone(const struct fabric_tree *t, uint8_t *gone)
{
	for (uint32_t i = 0; i < fabric_nodes(&t->pgft); i++)
		if (t->net_node[i] != FABRIC_NONE && !fabric_tree_has_node(t, i))
			gone[t->net_node[i]] = 1;
}

/* All switches at a node that are not known yet. */
static void take_neighbours(struct fabric_beside *b, const struct fabric_tree *t, uint32_t node,
			    const uint8_t *gone)
{
	const struct fabric_net_node *n = &t->net->nodes[node];

	for (uint32_t i = n->first; i < n->first + n->count; i++) {
		uint32_t peer = t->net->ports[i].peer;

		if (t->net->nodes[peer].kind != FABRIC_NET_SWITCH || gone[peer] ||
		    b->number[peer] != FABRIC_NONE)
			continue;
		b->number[peer] = fabric_nodes(&t->pgft) + b->n_switches;
		b->switches[b->n_switches++] = peer;
	}
}

static void find_ports(struct fabric_beside *b, const struct fabric_tree *t)
{
	for (uint32_t node = 0; node < t->net->n_nodes; node++) {
		const struct fabric_net_node *n = &t->net->nodes[node];

		for (uint32_t i = n->first; i < n->first + n->count; i++)
			if (n->kind != FABRIC_NET_SWITCH && t->port_cable[i] == FABRIC_NONE &&
			    b->number[t->net->ports[i].peer] != FABRIC_NONE)
				b->ports[b->n_ports++] = i;
	}
}

int fabric_beside_find(struct fabric_beside *b, const struct fabric_tree *t)
{
	uint32_t nodes = t->net ? t->net->n_nodes : 0;
	uint8_t *gone;

	*b = (struct fabric_beside){0};
	if (!nodes)
		return 0;
	gone = calloc(nodes, 1);
	b->switches = malloc(nodes * sizeof(*b->switches));
	b->number = malloc(nodes * sizeof(*b->number));
	b->ports = malloc((t->net->n_ports + 1) * sizeof(*b->ports));
	if (!gone || !b->switches || !b->number || !b->ports) {
		free(gone);
		fabric_beside_free(b);
		return -ENOMEM;
	}
	memset(b->number, 0xff, nodes * sizeof(*b->number));
	mark_gone(t, gone);
	number_tree(b, t);
	for (uint32_t i = t->pgft.first[1]; i < fabric_nodes(&t->pgft); i++)
		if (t->net_node[i] != FABRIC_NONE && !gone[t->net_node[i]])
			take_neighbours(b, t, t->net_node[i], gone);
	for (uint32_t i = 0; i < b->n_switches; i++)
		take_neighbours(b, t, b->switches[i], gone);
	find_ports(b, t);
	free(gone);
	return 0;
}

void fabric_beside_free(struct fabric_beside *b)
{
	free(b->switches);
	free(b->ports);
	free(b->number);
	*b = (struct fabric_beside){0};
}
