#include "fabric_beside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_tree_in.h"

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
		    !fabric_tree_has_port(t, i) || b->number[peer] != FABRIC_NONE)
			continue;
		b->number[peer] = fabric_nodes(&t->pgft) + b->n_switches;
		b->switches[b->n_switches++] = peer;
	}
}

/* Other ports of a host that was taken away are gone with it; those of an adapter that is several
 * hosts are not. */
static void find_ports(struct fabric_beside *b, const struct fabric_tree *t, const uint8_t *gone)
{
	for (uint32_t node = 0; node < t->net->n_nodes; node++) {
		const struct fabric_net_node *n = &t->net->nodes[node];

		if (gone[node] && !t->by_port)
			continue;
		for (uint32_t i = n->first; i < n->first + n->count; i++)
			if (n->kind != FABRIC_NET_SWITCH && t->port_cable[i] == FABRIC_NONE &&
			    fabric_tree_has_port(t, i) &&
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
	find_ports(b, t, gone);
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

/* ---- taking away ---- */

static int cut(struct fabric_tree *t, uint32_t place)
{
	const struct fabric_net_port *p = &t->net->ports[place];

	if (!t->ports_gone)
		t->ports_gone = calloc(t->net->n_ports, 1);
	if (!t->ports_gone)
		return -ENOMEM;
	t->ports_gone[place] = 1;
	t->ports_gone[fabric_net_find_port(t->net, p->peer, p->peer_port)] = 1;
	return 0;
}

static bool has_guid(const struct fabric_net *net, const struct fabric_net_node *n,
		     const char *text)
{
	uint64_t guid;
	char *end;

	if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X'))
		return false;
	errno = 0;
	guid = strtoull(text, &end, 16);
	if (errno || *end || end == text + 2 || !guid)
		return false;
	for (uint32_t i = n->first; i < n->first + n->count; i++)
		if (net->ports[i].guid == guid)
			return true;
	return n->guid == guid;
}

/* A name, GUID or id is that of one; a machine or a description may be those of several. */
static bool is_called(const struct fabric_net *net, uint32_t node, const char *text, bool one)
{
	const struct fabric_net_node *n = &net->nodes[node];

	if (one)
		return !strcmp(n->name, text) || !strcmp(n->id, text) || has_guid(net, n, text);
	return !strcmp(n->desc, text) || (n->kind != FABRIC_NET_SWITCH && !strcmp(n->host, text));
}

/* The first from a node on that is in no place of the tree; FABRIC_NONE: none. */
static uint32_t find_beside(const struct fabric_tree *t, uint32_t from, const char *text, bool one,
			    const uint8_t *in_tree)
{
	for (uint32_t node = from; node < t->net->n_nodes; node++)
		if (!in_tree[node] && is_called(t->net, node, text, one))
			return node;
	return FABRIC_NONE;
}

static int cut_nodes(struct fabric_tree *t, const char *text, const uint8_t *in_tree)
{
	bool one = true;
	uint32_t node = find_beside(t, 0, text, one, in_tree);
	int ret = 0;

	if (node == FABRIC_NONE) {
		one = false;
		node = find_beside(t, 0, text, one, in_tree);
	}
	if (node == FABRIC_NONE)
		return -ENOENT;
	while (!ret && node != FABRIC_NONE) {
		const struct fabric_net_node *n = &t->net->nodes[node];

		for (uint32_t i = n->first; !ret && i < n->first + n->count; i++)
			ret = cut(t, i);
		node = one ? FABRIC_NONE : find_beside(t, node + 1, text, one, in_tree);
	}
	return ret;
}

/* The other end may be in the tree. */
static int cut_end(struct fabric_tree *t, const char *text, const uint8_t *in_tree)
{
	uint64_t port = 0;
	size_t len = fabric_tree_split_end(text, &port);
	uint32_t node, place;
	char name[256];

	if (!len || len >= sizeof(name) || port > UINT16_MAX)
		return -ENOENT;
	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	node = find_beside(t, 0, name, true, in_tree);
	if (node == FABRIC_NONE && !fabric_tree_find(t, name, &place))
		node = t->net_node[place];
	if (node == FABRIC_NONE)
		return -ENOENT;
	place = fabric_net_find_port(t->net, node, (uint32_t)port);
	return place == FABRIC_NONE || t->port_cable[place] != FABRIC_NONE ? -ENXIO : cut(t, place);
}

int fabric_beside_cut(struct fabric_tree *t, const char *text)
{
	uint8_t *in_tree;
	int ret;

	if (!t->net)
		return -ENOENT;
	in_tree = calloc(t->net->n_nodes, 1);
	if (!in_tree)
		return -ENOMEM;
	for (uint32_t i = 0; i < fabric_nodes(&t->pgft); i++)
		if (t->net_node[i] != FABRIC_NONE)
			in_tree[t->net_node[i]] = 1;
	ret = cut_nodes(t, text, in_tree);
	if (ret == -ENOENT)
		ret = cut_end(t, text, in_tree);
	free(in_tree);
	return ret;
}
