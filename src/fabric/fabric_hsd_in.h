/* What the files of fabric_hsd share among themselves. */
#ifndef WEFT_FABRIC_HSD_IN_H
#define WEFT_FABRIC_HSD_IN_H

#include "fabric_hsd.h"
#include "fabric_mod.h"

/* With D-Mod-K the ports of all levels are given by the destination, and so is every digit b of
 * the nodes that are passed; the source only says in which sub-tree. In numbers of cables
 * (fabric_pgft.h), a flow that climbs from level l passes
 *
 *	first_cable + (b + W_l·⌊from / M_l⌋)·ports + q
 *
 * and the cable by which it comes down again is the one that the destination's own side would
 * climb by. So each rank has 2h numbers: h that say in which sub-tree it is, already multiplied
 * to be added to links, and h of a destination. */
struct fabric_sums {
	uint32_t h;
	uint32_t *of; /* by rank: h sub-trees, h destinations; NULL: routes are not of this kind */
};

/* 0 or -ENOMEM. */
int fabric_sums_make(struct fabric_sums *s, const struct fabric_hsd_job *job);
/* Adds the flows to the degrees of their links. */
void fabric_sums_count(const struct fabric_sums *s, const struct fabric_flow *flows, uint32_t n,
		       uint32_t *degree);
/* The links of one flow, in no order. Returns how many. */
int fabric_sums_way(const struct fabric_sums *s, struct fabric_flow flow,
		    uint32_t links[FABRIC_HOPS_MAX]);

/* The rule can not be followed: by some switch to this host, or by this host itself. */
#define FABRIC_ODD_TO   1
#define FABRIC_ODD_FROM 2

/* The ways of a job, whatever its routes are. Made once, read by all threads. */
struct fabric_ways {
	const struct fabric_hsd_job *job;
	const struct fabric_pgft *t;
	uint64_t entries; /* of the table of a switch */
	/* D-Mod-K: */
	struct fabric_sums sums;
	uint8_t *odd; /* by rank, what of FABRIC_ODD_…; NULL: nothing of any */
	/* Routes that climb and come down, from level to level: */
	uint32_t *of; /* by rank: h sub-trees ⌊host / M_l⌋, and h up-going ports of D-Mod-K */
	struct fabric_mod up[FABRIC_LEVELS_MAX + 1], down[FABRIC_LEVELS_MAX + 1]; /* of random */
	/* Tables: */
	uint32_t *next; /* by link, the node that it leads to */
};

/* 0 or -ENOMEM. */
int fabric_ways_make(struct fabric_ways *w, const struct fabric_hsd_job *job);
void fabric_ways_free(struct fabric_ways *w);
/* Adds the flows to the degrees of their links, and changes their order. Returns how many of them
 * have no way. */
uint64_t fabric_ways_count(const struct fabric_ways *w, struct fabric_flow *flows, uint32_t n,
			   uint32_t *degree);
/* The links of one flow, in no order. Returns how many, or -ENETUNREACH. */
int fabric_ways_of(const struct fabric_ways *w, struct fabric_flow flow,
		   uint32_t links[FABRIC_HOPS_MAX]);

#endif
