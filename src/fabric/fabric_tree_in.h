/* What the files of fabric_tree share among themselves. */
#ifndef WEFT_FABRIC_TREE_IN_H
#define WEFT_FABRIC_TREE_IN_H

#include "fabric_net.h"
#include "fabric_tree.h"

/* What the GUIDs of a tuple begin with. */
#define FABRIC_TREE_GUID UINT64_C(0x0002c90000000000)

/* NULL: it is missing in the network. */
static inline const struct fabric_net_node *fabric_tree_net_node(const struct fabric_tree *t,
								 uint32_t node)
{
	return t->net_node[node] != FABRIC_NONE ? &t->net->nodes[t->net_node[node]] : NULL;
}

/* As fabric_tree_cable_at, also of cables that were taken away. */
uint32_t fabric_tree_cable_of(const struct fabric_tree *t, uint32_t node, uint32_t port);

void fabric_tree_free_index(struct fabric_tree *t);

#endif
