#include "fabric_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_tree_in.h"

void fabric_tree_init(struct fabric_tree *t, const struct fabric_pgft *pgft)
{
	*t = (struct fabric_tree){.pgft = *pgft};
}

/* ---- what is missing ---- */

static bool test_and_set(uint8_t *map, uint32_t n)
{
	bool was = map[n / 8] >> n % 8 & 1;

	map[n / 8] |= (uint8_t)(1u << n % 8);
	return was;
}

static int make_map(uint8_t **map, uint32_t n)
{
	if (!*map)
		*map = calloc(n / 8 + 1, 1);
	return *map ? 0 : -ENOMEM;
}

int fabric_tree_cut(struct fabric_tree *t, uint32_t cable)
{
	int ret = make_map(&t->cables_gone, fabric_cables(&t->pgft));

	if (!ret)
		t->n_cables_gone += !test_and_set(t->cables_gone, cable);
	return ret;
}

int fabric_tree_remove(struct fabric_tree *t, uint32_t node)
{
	const struct fabric_pgft *g = &t->pgft;
	struct fabric_node n = fabric_node(g, node);
	struct fabric_cable c;
	int ret = make_map(&t->nodes_gone, fabric_nodes(g));

	/* First its cables: if there is no memory it is still there. */
	for (uint32_t q = 0; !ret && q < fabric_up_ports(g, n.level); q++) {
		c = fabric_cable_up(g, n, q);
		ret = fabric_tree_cut(t, fabric_cable_number(g, &c));
	}
	for (uint32_t r = 0; !ret && r < fabric_down_ports(g, n.level); r++) {
		c = fabric_cable_down(g, n, r);
		ret = fabric_tree_cut(t, fabric_cable_number(g, &c));
	}
	if (!ret)
		t->n_nodes_gone += !test_and_set(t->nodes_gone, node);
	return ret;
}

/* ---- ports ---- */

uint32_t fabric_tree_lower_port(const struct fabric_tree *t, uint32_t cable)
{
	struct fabric_cable c;

	if (t->lower_port)
		return t->lower_port[cable];
	c = fabric_cable(&t->pgft, cable);
	return 1 + fabric_down_ports(&t->pgft, c.lower.level) + c.q;
}

uint32_t fabric_tree_upper_port(const struct fabric_tree *t, uint32_t cable)
{
	if (t->upper_port)
		return t->upper_port[cable];
	return 1 + fabric_cable(&t->pgft, cable).r;
}

static uint32_t tuple_cable_at(const struct fabric_pgft *g, uint32_t node, uint32_t port)
{
	struct fabric_node n = fabric_node(g, node);
	uint32_t down = fabric_down_ports(g, n.level), up = fabric_up_ports(g, n.level);
	struct fabric_cable c;

	if (port < 1 || port - 1 >= down + up)
		return FABRIC_NONE;
	c = port - 1 < down ? fabric_cable_down(g, n, port - 1)
			    : fabric_cable_up(g, n, port - 1 - down);
	return fabric_cable_number(g, &c);
}

static uint32_t net_cable_at(const struct fabric_tree *t, uint32_t node, uint32_t port)
{
	uint32_t place = t->net_node[node], cable;

	if (place != FABRIC_NONE)
		place = fabric_net_find_port(t->net, place, port);
	cable = place != FABRIC_NONE ? t->port_cable[place] : FABRIC_NONE;
	/* Hosts that are ports of one adapter have a cable each. */
	if (cable != FABRIC_NONE && t->by_port && node < fabric_hosts(&t->pgft) &&
	    fabric_cable(&t->pgft, cable).lower.index != node)
		return FABRIC_NONE;
	return cable;
}

uint32_t fabric_tree_cable_of(const struct fabric_tree *t, uint32_t node, uint32_t port)
{
	return t->net ? net_cable_at(t, node, port) : tuple_cable_at(&t->pgft, node, port);
}

uint32_t fabric_tree_cable_at(const struct fabric_tree *t, uint32_t node, uint32_t port)
{
	uint32_t cable = fabric_tree_cable_of(t, node, port);

	return cable != FABRIC_NONE && fabric_tree_has_cable(t, cable) ? cable : FABRIC_NONE;
}

/* ---- GUIDs and LIDs ---- */

/* The port by which a host is addressed: the first that has a cable, gone by now or not. */
static const struct fabric_net_port *host_port(const struct fabric_tree *t, uint32_t host)
{
	uint32_t ports = fabric_up_ports(&t->pgft, 0), number = 0, place;

	if (t->net_node[host] == FABRIC_NONE)
		return NULL;
	for (uint32_t q = 0; q < ports; q++) {
		uint32_t p = t->lower_port[host * ports + q];

		number = p && (!number || p < number) ? p : number;
	}
	place = number ? fabric_net_find_port(t->net, t->net_node[host], number) : FABRIC_NONE;
	return place != FABRIC_NONE ? &t->net->ports[place] : NULL;
}

uint64_t fabric_tree_guid(const struct fabric_tree *t, uint32_t node)
{
	struct fabric_node n;

	if (t->net)
		return fabric_tree_net_node(t, node) ? fabric_tree_net_node(t, node)->guid : 0;
	n = fabric_node(&t->pgft, node);
	return FABRIC_TREE_GUID | (uint64_t)n.level << 32 | ((uint64_t)n.index + 1) << 4;
}

uint64_t fabric_tree_port_guid(const struct fabric_tree *t, uint32_t node)
{
	const struct fabric_net_port *port;

	if (node >= fabric_hosts(&t->pgft))
		return fabric_tree_guid(t, node);
	if (!t->net)
		return fabric_tree_guid(t, node) + 1;
	port = host_port(t, node);
	return port ? port->guid : 0;
}

uint32_t fabric_tree_lid(const struct fabric_tree *t, uint32_t node, uint32_t *lmc)
{
	const struct fabric_net_node *n = t->net ? fabric_tree_net_node(t, node) : NULL;
	const struct fabric_net_port *port;

	*lmc = 0;
	if (!n)
		return 0;
	if (node >= fabric_hosts(&t->pgft)) {
		*lmc = n->lmc;
		return n->lid;
	}
	port = host_port(t, node);
	*lmc = port ? port->lmc : 0;
	return port ? port->lid : 0;
}

uint32_t fabric_tree_ports(const struct fabric_tree *t, uint32_t node)
{
	struct fabric_node n;

	if (t->net && fabric_tree_net_node(t, node))
		return fabric_tree_net_node(t, node)->n_ports;
	n = fabric_node(&t->pgft, node);
	return fabric_down_ports(&t->pgft, n.level) + fabric_up_ports(&t->pgft, n.level);
}

void fabric_tree_free(struct fabric_tree *t)
{
	if (t->net)
		fabric_net_free(t->net);
	free(t->net);
	free(t->net_node);
	free(t->lower_port);
	free(t->upper_port);
	free(t->port_cable);
	free(t->nodes_gone);
	free(t->cables_gone);
	free(t->ports_gone);
	fabric_tree_free_index(t);
	*t = (struct fabric_tree){0};
}
