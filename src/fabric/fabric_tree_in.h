/* Between the parts of fabric_tree: nodes and ports (fabric_tree.c), and what they are called
 * (fabric_tree_names.c). */
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

/* NODE[PORT] and NODE:PORT. Returns how long NODE is; 0: it is neither. */
size_t fabric_tree_split_end(const char *text, uint64_t *port);

void fabric_tree_free_index(struct fabric_tree *t);

struct tree_name {
	const char *name;
	uint32_t node;
};

struct tree_guid {
	uint64_t guid;
	uint32_t node;
};

struct fabric_tree_index {
	struct tree_name *names;
	struct tree_guid *guids;
	uint32_t n_names, n_guids;
	/* Hosts by the machine that they belong to, those of one by number. */
	uint32_t *machines, n_machines;
};

#endif
