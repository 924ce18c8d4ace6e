/* Recognises the fat tree in a network, in whatever order its nodes are listed, named and cabled,
 * and numbers its nodes so that the connection rule of fabric_pgft.h holds, which is what D-Mod-K
 * needs.
 *
 * The levels are the distances from hosts. Between two levels a PGFT falls into blocks: m_l lower
 * nodes, each joined with each of w_l upper ones; and these, by the sub-trees of their lower
 * nodes, into larger sub-trees. Both are found by majority, so that some cables may be missing or
 * plugged in wrongly. Digits b are chosen at the top and handed down, digits a count sub-trees.
 *
 * Where there is freedom hosts are in the order of their leaf's ports, and switches in that of
 * their names, with numbers in them compared as numbers.
 */
#ifndef WEFT_FABRIC_SHAPE_H
#define WEFT_FABRIC_SHAPE_H

#include "fabric_net.h"
#include "fabric_tree.h"

#define FABRIC_DEFECTS_KEPT 1000

/* What is wrong with a network, as sentences. */
struct fabric_defects {
	uint32_t count; /* of all */
	uint32_t kept;  /* of those that there are sentences of */
	char **text;
};

void fabric_defects_free(struct fabric_defects *d);

/* Makes a tree with the closest tuple, takes away what the network does not have of it, and lists
 * the defects; without any it is whole. The net then belongs to the tree. It must have come from
 * malloc. Returns 0, or -EINVAL for what is no fat tree, or -ENOMEM, with one sentence in why; the
 * net is then still the caller's.
 *
 * Adapters with several ports are one host each (w_1·p_1 > 1), or where that does not fit, several
 * hosts (tree->by_port). What is beside the tree has no number in it, and that is no defect: hosts
 * and gateways at spines, adapters that switches have inside (aggregation nodes). A switch that
 * hangs on one other, or has hosts and cables to a few leaves only, is beside it with all that it
 * has, too, and is a defect (fabric_beside.h). */
int fabric_shape(struct fabric_tree *tree, struct fabric_net *net, struct fabric_defects *defects,
		 char *why, size_t why_size);

/* Names with numbers in them: leaf9 comes before leaf10. As strcmp. */
int fabric_shape_compare(const char *a, const char *b);

#endif
