/* Ways to what D-Mod-K has no formula for: to switches, and to what is beside the tree
 * (fabric_beside.h).
 *
 * Switches are in an order, those beside the tree first, then those of the tree by level: a cable
 * goes up from the earlier to the later. A way goes up and then down, so that no circle of links
 * can wait for each other, and it never leads through a switch beside the tree to another one.
 *
 * That leaves pairs without a way: what is at one spine can not go up to another. If there is
 * anything beside the tree or missing in it, who has no way to a destination goes as if to one
 * leaf, the *hub*, and from the first switch there that has a way goes on by that. That is for
 * switches as destinations, which managers must reach, and for what is beside the tree, to and
 * from all others. Hosts of the tree have only the ways of fabric_routes.h to each other, so that
 * tables are what is analysed; but tables do not ask who sends, and a host at a switch where
 * somebody beside the tree comes by has that detour, too. That can not deadlock either. Turns
 * from down to up are only at the hub and at switches above it: if the last step was up then who
 * took it had a way, too. A circle has such a turn, then goes up to some switch R, and down again
 * to the next one. R is above the hub, and in a fat tree only one row of switches leads from it
 * down to the hub; so the circle comes up to R from the very switch that it goes down to, and no
 * way does that.
 */
#ifndef WEFT_FABRIC_LFT_WAYS_H
#define WEFT_FABRIC_LFT_WAYS_H

#include "fabric_beside.h"

#define FABRIC_NO_PORT 255

struct fabric_lft_ways {
	const struct fabric_tree *tree;
	struct fabric_beside beside;
	uint32_t lmc;
	/* Switches: those beside the tree, the farthest first, then those of the tree by number,
	 * from tree_first on. */
	uint32_t n, tree_first;
	/* Destinations: the switches, then the addresses of end-ports beside the tree. */
	uint32_t n_to;
	/* By switch, its cables up: the switch there or FABRIC_NONE, and the ports. */
	uint32_t *up_first, *upper;
	uint8_t *up_port, *down_port;
	uint8_t *port; /* by switch and destination, up and then down only */
	uint32_t hub;  /* FABRIC_NONE: there is none, and no need of one */
	/* By switch and leaf: does somebody beside the tree come by here, on the way to hosts of
	 * that leaf by the hub? NULL: nobody does. */
	uint8_t *detour;
};

int fabric_lft_ways_make(struct fabric_lft_ways *w, const struct fabric_tree *tree, uint32_t lmc);
void fabric_lft_ways_free(struct fabric_lft_ways *w);

/* The port by which a switch sends to a destination; 0: it is there; FABRIC_NO_PORT: no way. */
uint32_t fabric_lft_ways_port(const struct fabric_lft_ways *w, uint32_t from, uint32_t to);
/* By which a switch sends to the hosts of a leaf, where the routes of the tree have no way. */
uint32_t fabric_lft_ways_detour(const struct fabric_lft_ways *w, uint32_t from, uint32_t leaf);
/* Has it a way up and then down? */
bool fabric_lft_ways_direct(const struct fabric_lft_ways *w, uint32_t from, uint32_t to);

/* The switch of a node's number in the tree, and that at a place in beside.switches. */
static inline uint32_t fabric_lft_ways_switch(const struct fabric_lft_ways *w, uint32_t node)
{
	return w->tree_first + node - w->tree->pgft.first[1];
}
static inline uint32_t fabric_lft_ways_beside(const struct fabric_lft_ways *w, uint32_t place)
{
	return w->tree_first - 1 - place;
}

/* LIDs, behind those of the tree: of the switches beside it one each, then of the end-ports. What
 * is at a place of beside.switches or beside.ports; and the last of all. (fabric_lft_check.c) */
uint64_t fabric_lid_beside(const struct fabric_tree *tree, const struct fabric_beside *b,
			   uint32_t lmc, bool is_port, uint64_t place);
uint64_t fabric_lid_last(const struct fabric_tree *tree, const struct fabric_beside *b,
			 uint32_t lmc);

/* How many pairs there are of a switch with end-ports, and an end-port beside the tree, or the
 * other way round, without a way. */
uint64_t fabric_lft_ways_lost(const struct fabric_lft_ways *w);
/* ... and of a leaf and a switch of the tree. */
uint64_t fabric_lft_ways_unmanaged(const struct fabric_lft_ways *w);

#endif
