/* What InfiniBand can have: LIDs, ports, GUIDs. */
#include "fabric_lft.h"

#include <inttypes.h>

#include "fabric_lft_ways.h"
#include "fabric_text.h"

/* ---- LIDs ---- */

uint64_t fabric_lid_beside(const struct fabric_tree *tree, const struct fabric_beside *b,
			   uint32_t lmc, bool is_port, uint64_t i)
{
	const struct fabric_pgft *t = &tree->pgft;
	uint64_t lid = ((uint64_t)(fabric_hosts(t) + 1) << lmc) + fabric_nodes(t) - fabric_hosts(t);

	if (!is_port)
		return lid + i;
	return ((((lid + b->n_switches - 1) >> lmc) + 1 + i) << lmc);
}

uint64_t fabric_lid_last(const struct fabric_tree *tree, const struct fabric_beside *b,
			 uint32_t lmc)
{
	return b->n_ports ? fabric_lid_beside(tree, b, lmc, true, b->n_ports) - 1
			  : fabric_lid_beside(tree, b, lmc, false, b->n_switches) - 1;
}

/* ---- what InfiniBand can have ---- */

static int check_port(const struct fabric_tree *tree, uint32_t node, uint32_t port, char *why,
		      size_t why_size)
{
	char name[FABRIC_TREE_NAME_MAX];

	if (port <= FABRIC_LFT_PORT_MAX)
		return 0;
	fabric_tree_name(tree, node, name);
	return fabric_refuse(why, why_size,
			     "switch %s has a port %u; in InfiniBand, the last one is %u",
			     fabric_quote(name).text, port, FABRIC_LFT_PORT_MAX);
}

static int check_guid(const struct fabric_tree *tree, uint32_t node, char *why, size_t why_size)
{
	char name[FABRIC_TREE_NAME_MAX];

	if (!fabric_tree_has_node(tree, node) || fabric_tree_port_guid(tree, node))
		return 0;
	fabric_tree_name(tree, node, name);
	return fabric_refuse(why, why_size, "the port GUID of %s is not known; OpenSM needs it",
			     fabric_quote(name).text);
}

static int check_lids(const struct fabric_tree *tree, const struct fabric_beside *b, uint32_t lmc,
		      char *why, size_t why_size)
{
	const struct fabric_pgft *t = &tree->pgft;
	uint64_t lids = fabric_lid_last(tree, b, lmc);

	if (lids <= FABRIC_LID_MAX)
		return 0;
	return fabric_refuse(why, why_size,
			     "%u hosts with %u addresses each and %u switches need LIDs up "
			     "to %" PRIu64 "; InfiniBand has them up to %u",
			     fabric_hosts(t) + b->n_ports, 1u << lmc,
			     fabric_nodes(t) - fabric_hosts(t) + b->n_switches, lids,
			     FABRIC_LID_MAX);
}

static int check_cables(const struct fabric_tree *tree, char *why, size_t why_size)
{
	const struct fabric_pgft *t = &tree->pgft;
	int ret = 0;

	for (uint32_t cable = 0; !ret && cable < fabric_cables(t); cable++) {
		struct fabric_cable c = fabric_cable(t, cable);

		if (!fabric_tree_has_cable(tree, cable))
			continue;
		ret = check_port(tree, fabric_number(t, c.upper),
				 fabric_tree_upper_port(tree, cable), why, why_size);
		if (!ret && c.lower.level > 0)
			ret = check_port(tree, fabric_number(t, c.lower),
					 fabric_tree_lower_port(tree, cable), why, why_size);
	}
	return ret;
}

static int check_net_port(const struct fabric_net *net, uint32_t node, uint32_t port, char *why,
			  size_t why_size)
{
	if (net->nodes[node].kind != FABRIC_NET_SWITCH || port <= FABRIC_LFT_PORT_MAX)
		return 0;
	return fabric_refuse(why, why_size,
			     "switch %s has a port %u; in InfiniBand, the last one is %u",
			     fabric_quote(net->nodes[node].name).text, port, FABRIC_LFT_PORT_MAX);
}

/* Ports and GUIDs of what is beside the tree. */
static int check_beside(const struct fabric_tree *tree, const struct fabric_beside *b, char *why,
			size_t why_size)
{
	const struct fabric_net *net = tree->net;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < b->n_ports; i++) {
		const struct fabric_net_port *p = &net->ports[b->ports[i]];
		const struct fabric_net_port *other =
			&net->ports[fabric_net_find_port(net, p->peer, p->peer_port)];

		ret = check_net_port(net, p->peer, p->peer_port, why, why_size);
		if (!ret && !p->guid)
			ret = fabric_refuse(why, why_size,
					    "the port GUID of %s is not known; OpenSM needs it",
					    fabric_quote(net->nodes[other->peer].name).text);
	}
	for (uint32_t i = 0; !ret && i < b->n_switches; i++) {
		const struct fabric_net_node *n = &net->nodes[b->switches[i]];

		for (uint32_t k = n->first; !ret && k < n->first + n->count; k++) {
			const struct fabric_net_port *p = &net->ports[k];

			ret = check_net_port(net, b->switches[i], p->number, why, why_size);
			if (!ret)
				ret = check_net_port(net, p->peer, p->peer_port, why, why_size);
		}
	}
	return ret;
}

int fabric_lft_check(const struct fabric_tree *tree, uint32_t lmc, char *why, size_t why_size)
{
	const struct fabric_pgft *t = &tree->pgft;
	struct fabric_beside b;
	int ret = fabric_beside_find(&b, tree);

	if (ret) {
		fabric_refuse(why, why_size, "no memory to look at the network");
		return ret;
	}
	ret = check_lids(tree, &b, lmc, why, why_size);
	if (!ret && fabric_up_ports(t, 0) != 1)
		ret = fabric_refuse(why, why_size,
				    "each host has %u cables; to OpenSM each port is a host of "
				    "its own, so tables need hosts with one cable",
				    fabric_up_ports(t, 0));
	for (uint32_t node = 0; !ret && node < fabric_nodes(t); node++)
		ret = check_guid(tree, node, why, why_size);
	if (!ret)
		ret = check_cables(tree, why, why_size);
	if (!ret)
		ret = check_beside(tree, &b, why, why_size);
	fabric_beside_free(&b);
	return ret;
}
