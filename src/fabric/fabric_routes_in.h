/* What the files of fabric_routes share among themselves. */
#ifndef WEFT_FABRIC_ROUTES_IN_H
#define WEFT_FABRIC_ROUTES_IN_H

#include "fabric_routes.h"

/* What D-Mod-K is applied to in place of the host. */
static inline uint32_t fabric_key(const struct fabric_routes *r, uint32_t host)
{
	return r->index && r->index[host] != FABRIC_NONE ? r->index[host] : host;
}

/* By how much an address turns the up-going port at a level: its digit of that level. */
static inline uint32_t fabric_turn(const struct fabric_pgft *t, uint32_t level, uint32_t address)
{
	for (uint32_t below = 0; below < level; below++)
		address /= fabric_up_ports(t, below);
	return address % fabric_up_ports(t, level);
}

/* The table of a switch by the formula, as if the tree were whole. What is written for down-going
 * port r is port[r], for up-going port q port[down ports + q]. 0 or -ENOMEM. */
int fabric_routes_formula(const struct fabric_routes *r, struct fabric_node n, const uint16_t *port,
			  uint16_t *out);

/* Fills the tables of a tree that has something missing. 0 or -ENOMEM. */
int fabric_routes_around(struct fabric_routes *r);

#endif
