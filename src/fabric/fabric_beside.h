/* What a network has beside its fat tree: managers, storage and gateways that are plugged into
 * spines, the adapters that switches have inside (aggregation nodes), hosts that are too many for
 * their leaf, second ports of adapters; and switches that hang on the tree, with all that is at
 * them. They have no part in patterns and orders, but tables have to lead to them.
 */
#ifndef WEFT_FABRIC_BESIDE_H
#define WEFT_FABRIC_BESIDE_H

#include "fabric_net.h"
#include "fabric_tree.h"

/* Only what can be reached from a switch of the tree that is there. */
struct fabric_beside {
	uint32_t *switches; /* nodes of the network, those nearest to the tree first */
	uint32_t *ports;    /* end-ports: places in net->ports, in their order */
	uint32_t n_switches, n_ports;
	/* By node of the network: the number in the tree of a switch, that of a switch beside it
	 * from the number of all nodes of the tree on; FABRIC_NONE for all others. */
	uint32_t *number;
};

/* 0 or -ENOMEM. A tree that was made from a tuple has nothing beside it. */
int fabric_beside_find(struct fabric_beside *b, const struct fabric_tree *tree);
void fabric_beside_free(struct fabric_beside *b);

/* Takes away what is beside the tree: a node by its name, GUID or id, all adapters of a machine, or
 * a cable by either end, NODE[PORT] or NODE:PORT. 0, -ENOMEM, -ENOENT if there is no such node, or
 * -ENXIO if its port has no such cable. */
int fabric_beside_cut(struct fabric_tree *tree, const char *text);

/* An adapter inside of a switch, for reductions on the way; it looks like a host. */
bool fabric_beside_is_inside(const struct fabric_net_node *n);

#endif
