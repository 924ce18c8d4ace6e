/* A fabric as it is: a tree by its tuple, the names, GUIDs and ports that its nodes have in a
 * network that was read (fabric_net.h), and what of it is missing.
 *
 * Nodes and cables are numbered as in fabric_pgft.h, those that are missing included, so that all
 * other parts compute with numbers and need neither names nor the network.
 *
 * A tree that was made from a tuple has names and ports, too: h7, s2.5; ports of a switch are
 * numbered from 1, first those that go down, in the order of r, then those that go up.
 */
#ifndef WEFT_FABRIC_TREE_H
#define WEFT_FABRIC_TREE_H

#include "fabric_pgft.h"

struct fabric_net;

#define FABRIC_NONE UINT32_MAX

struct fabric_tree {
	struct fabric_pgft pgft;
	struct fabric_net *net; /* NULL: made from a tuple */
	uint32_t *net_node; /* by node number, its place in the network; FABRIC_NONE: it has none */
	uint16_t *lower_port; /* by cable number: the ports that it is plugged into; 0: gone */
	uint16_t *upper_port;
	uint32_t *port_cable; /* by place of a port in the network; FABRIC_NONE: of no use here */
	/* Adapters with several ports are several hosts here, one for each, called node17/2. */
	bool by_port;
	struct fabric_tree_index *index; /* names and GUIDs of the network */
	/* Bitmaps by number of what is missing; NULL: nothing is. A cable of a node that is
	 * missing is missing. */
	uint8_t *nodes_gone, *cables_gone;
	/* By place of a port in the network, both ends of cables beside the tree that were taken
	 * away; NULL: none. */
	uint8_t *ports_gone;
	uint32_t n_nodes_gone, n_cables_gone;
};

/* A whole tree. (From a network: fabric_shape.h.) */
void fabric_tree_init(struct fabric_tree *t, const struct fabric_pgft *pgft);
void fabric_tree_free(struct fabric_tree *t);

/* Takes away a cable, or a node with its cables. Again is no harm. 0 or -ENOMEM. */
int fabric_tree_cut(struct fabric_tree *t, uint32_t cable);
int fabric_tree_remove(struct fabric_tree *t, uint32_t node);

static inline bool fabric_tree_has_node(const struct fabric_tree *t, uint32_t node)
{
	return !t->nodes_gone || !(t->nodes_gone[node / 8] >> node % 8 & 1);
}

static inline bool fabric_tree_has_cable(const struct fabric_tree *t, uint32_t cable)
{
	return !t->cables_gone || !(t->cables_gone[cable / 8] >> cable % 8 & 1);
}

static inline bool fabric_tree_has_port(const struct fabric_tree *t, uint32_t place)
{
	return !t->ports_gone || !t->ports_gone[place];
}

static inline bool fabric_tree_whole(const struct fabric_tree *t)
{
	return !t->n_nodes_gone && !t->n_cables_gone;
}

/* What a node is called: its description in the network, or h7, s2.5. */
#define FABRIC_TREE_NAME_MAX 80
void fabric_tree_name(const struct fabric_tree *t, uint32_t node, char name[FABRIC_TREE_NAME_MAX]);
/* By that, by h7 or s2.5, by GUID of node or port (0x…), or by what the text of the network quotes
 * (S-0002c90100000040) or has as its whole description. 0, or -ENOENT, also for what is missing in
 * a network. */
int fabric_tree_find(const struct fabric_tree *t, const char *name, uint32_t *node);
/* A cable by the tree's names, s1.0-s2.3:1, or by either of its ends, NODE[PORT] or NODE:PORT, with
 * any name of the node. Also one that was taken away. 0, or -EINVAL with one sentence in why. */
int fabric_tree_find_cable(const struct fabric_tree *t, const char *text, uint32_t *cable,
			   char *why, size_t why_size);

/* What launchers know a host by: its machine. One with several adapters or ports is several hosts
 * here, called node17/mlx5_0 or node17/2; its machine is node17. */
void fabric_tree_machine_name(const struct fabric_tree *t, uint32_t host,
			      char name[FABRIC_TREE_NAME_MAX]);
/* The hosts of a machine of a network, by number. Returns how many; 0: there is no such machine. */
uint32_t fabric_tree_machine(const struct fabric_tree *t, const char *name, const uint32_t **hosts);

/* GUIDs of the node, and of the port by which it is addressed. Those of a tuple's are made up, in
 * the form 0002c9 LL NNNNNNN 0 (level, and index from 1 on), with port n of a host at n more and
 * those of a switch the same. 0: it is missing in the network. */
uint64_t fabric_tree_guid(const struct fabric_tree *t, uint32_t node);
uint64_t fabric_tree_port_guid(const struct fabric_tree *t, uint32_t node);

/* The LID that the network gave, and its LMC; 0: none. */
uint32_t fabric_tree_lid(const struct fabric_tree *t, uint32_t node, uint32_t *lmc);
/* How many ports a node has, with cables or without. */
uint32_t fabric_tree_ports(const struct fabric_tree *t, uint32_t node);

/* The physical ports that a cable is plugged into; 0 where it is missing in the network. */
uint32_t fabric_tree_lower_port(const struct fabric_tree *t, uint32_t cable);
uint32_t fabric_tree_upper_port(const struct fabric_tree *t, uint32_t cable);
/* The cable at a physical port of a node; FABRIC_NONE: none, or it is missing. */
uint32_t fabric_tree_cable_at(const struct fabric_tree *t, uint32_t node, uint32_t port);

/* Once nodes and ports of a network are known, so that they can be found. 0 or -ENOMEM. */
int fabric_tree_make_index(struct fabric_tree *t);

#endif
