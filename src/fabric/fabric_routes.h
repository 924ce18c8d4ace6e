/* Routes on a fabric as it is: for each node and destination the cable to take.
 *
 * On a whole tree they are a formula (fabric_route.h), and nothing is ever stored. With cables or
 * switches missing only what is different from the formula is. Read from a file they are tables.
 *
 * Routes that are made here can not deadlock. A node that has the destination below it goes down
 * or has no way; any other goes up, and only to a parent that has a way. (To turn below would not
 * help: whoever comes down again from above a node that is above the destination comes through
 * that very node, since the alike switches of a level have no common child.) So a way is some
 * links up and then some links down, a link waits only for one that is later in the order "up by
 * level, then down by level backwards", and a circle of waiting can not be. Tables that were read
 * promise nothing of this kind, not even that a walk ends.
 */
#ifndef WEFT_FABRIC_ROUTES_H
#define WEFT_FABRIC_ROUTES_H

#include <stdio.h>

#include "fabric_route.h"
#include "fabric_tree.h"

#define FABRIC_ROUTES_PORTS_MAX 32767 /* of a switch that has a table */

struct fabric_routes {
	const struct fabric_tree *tree;
	struct fabric_routing rule;
	/* The compact index: by host, its position among the participants; FABRIC_NONE: it is not
	 * one of them, and its number stands for it. NULL: routes are by the number of the host.
	 * It belongs to the caller. Routing random has no use for it. */
	const uint32_t *index;
	/* What is different from the formula; NULL: nothing. */
	struct fabric_around *around;
	/* Tables: by switch (numbers from the first switch on), by host and address, the physical
	 * port; 0: no way. NULL: the formula holds, but for what is different. */
	uint16_t *table;
	/* With tables: by switch and physical port up to max_port, the link that leaves there;
	 * FABRIC_NONE: nothing is there. */
	uint32_t *links;
	uint32_t max_port;
};

/* Directed links: those that go up by a cable are 2·cable, those that go down 2·cable + 1. */
static inline uint32_t fabric_link(uint32_t cable, bool up)
{
	return 2 * cable + !up;
}

/* Entries of the table of one switch: hosts · 2^lmc. */
static inline size_t fabric_routes_entries(const struct fabric_routes *r)
{
	return (size_t)fabric_hosts(&r->tree->pgft) << r->rule.lmc;
}

/* By the rule; if something is missing, complete as far as there are ways, and up and then down
 * only. A destination keeps the cable of the rule if that leads to it. Those that can not are
 * spread over the other cables of the switch, so that the most that any of these gets is as little
 * as can be; and within that, switches take the same detour to a destination, and one by which the
 * fewest other destinations come down to where it is. index may be NULL. Returns 0, -ENOMEM,
 * -ERANGE for detours of switches with more than FABRIC_ROUTES_PORTS_MAX ports, -EINVAL for ecmp,
 * which has no single cable to take. */
int fabric_routes_make(struct fabric_routes *r, const struct fabric_tree *tree,
		       const struct fabric_routing *rule, const uint32_t *index);
/* Tables in which nothing has a way yet, for who fills them from elsewhere; lmc gives their size.
 * Returns as above. */
int fabric_routes_empty(struct fabric_routes *r, const struct fabric_tree *tree, uint32_t lmc);
void fabric_routes_free(struct fabric_routes *r);

/* Is the table of this switch that of the rule, as if the tree were whole? */
bool fabric_routes_by_rule(const struct fabric_routes *r, uint32_t node);
/* Have two switches the same table, but for how their ports are numbered? True is sure; false for
 * tables that were read or drawn, which are not compared. */
bool fabric_routes_same(const struct fabric_routes *r, uint32_t a, uint32_t b);

/* Of the hosts that are there, pairs between which there is no way; not for tables that were read,
 * which may lead astray. 0, -ENOMEM, or -EINVAL for those. */
int fabric_routes_unreachable(const struct fabric_routes *r, uint64_t *pairs);

/* The cable that leads from a node towards a host; FABRIC_NONE: there is no way, or it is there.
 * *up says in which direction. */
uint32_t fabric_routes_step(const struct fabric_routes *r, uint32_t node, uint32_t host,
			    uint32_t address, bool *up);

/* The table of one switch (its number among all nodes): fabric_routes_entries() physical ports,
 * that of host j and address a at (j << lmc) + a; 0: no way. By the formula a table costs about
 * as much as writing it down. Returns 0, -ENOMEM, or -ERANGE if ports are beyond 16 bits. */
int fabric_routes_row(const struct fabric_routes *r, uint32_t node, uint16_t *ports);

#endif
