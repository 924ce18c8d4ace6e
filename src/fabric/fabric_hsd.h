/* Hot-spot degree: how many flows of a stage share a link.
 *
 * The degree of a directed link in a stage is the number of that stage's flows on it. For a
 * sequence of stages (fabric_cps.h), run by ranks on hosts (fabric_order.h), over routes:
 *
 *	max_hsd           the worst link of all stages
 *	avg_max_hsd       mean over the stages of the worst link of the stage, host cables included
 *	avg_max_up        the same over the up-going links between switches
 *	avg_max_down      the same over the down-going ones
 *	avg_max_leaf_up   the same over the up-going links of leaf switches
 *
 * Degree 1 throughout means that every flow has all of its links to itself.
 *
 * With D-Mod-K the links of a flow are sums of two numbers, one of the source and one of the
 * destination, which are computed once: then a flow costs a nanosecond per link. Where something is
 * missing, only the flows to hosts that some switch has a detour for, and with random routes all,
 * go from level to level, for some ten nanoseconds; by tables, from node to node.
 */
#ifndef WEFT_FABRIC_HSD_H
#define WEFT_FABRIC_HSD_H

#include "fabric_cps.h"
#include "fabric_routes.h"

/* The worst degrees of a stage, or of all. up[l] is over the links from level l−1 to l, down[l]
 * over those from l to l−1; l = 1 … h, and 1 are the host cables. */
struct fabric_hsd_worst {
	uint32_t all, up, down, leaf_up; /* up and down: between switches */
	uint32_t up_at[FABRIC_LEVELS_MAX + 1], down_at[FABRIC_LEVELS_MAX + 1];
	uint64_t lost; /* flows without a way; they are on no link */
};

/* A link, and the first of the stages in which its degree is highest. */
struct fabric_hsd_link {
	uint32_t link, stage, degree;
};

struct fabric_hsd {
	uint32_t stages;
	double avg_max_hsd, avg_max_up, avg_max_down, avg_max_leaf_up;
	struct fabric_hsd_worst worst;
	/* The links with the highest degrees, highest first; equal ones by number. Links without
	 * a flow are not among them. */
	struct fabric_hsd_link *hottest;
	uint32_t n_hottest;
};

struct fabric_hsd_job {
	const struct fabric_routes *routes;
	const struct fabric_cps *cps;
	const uint32_t *hosts; /* of each rank, cps->n of them */
	uint32_t address;      /* of each host, the one that is sent to; < 2^lmc */
	/* Every stride-th stage from first on, count at most; stride and count 0: all stages. */
	uint32_t first, stride, count;
	unsigned threads; /* 0: as many as there are cores. Results do not depend on it. */
	uint32_t n_hottest;
	/* If it is there: by stage (0 … cps->stages−1), its worst degrees. */
	struct fabric_hsd_worst *per_stage;
	/* If it is there: called for each stage, in their order, with the degrees of all directed
	 * links (fabric_link). Other than 0 ends it all and is returned. */
	int (*links)(void *arg, uint32_t stage, const uint32_t *degree);
	/* If it is there: called now and then by the thread of the caller with the part that is
	 * done, 0 … 1. */
	void (*going)(void *arg, double done);
	void *arg;
};

/* 0, -EINVAL for hosts or addresses that are not there, -ENOMEM, or what links returned. */
int fabric_hsd(const struct fabric_hsd_job *job, struct fabric_hsd *result);
void fabric_hsd_free(struct fabric_hsd *result);

/* The flows of a stage on a link: the first `room` of them, by source. Returns how many there
 * are. */
uint32_t fabric_hsd_flows(const struct fabric_hsd_job *job, uint32_t stage, uint32_t link,
			  struct fabric_flow *flows, uint32_t room);

/* The links of the way from a host to another, in their order: at most FABRIC_HOPS_MAX. Returns
 * how many, or -ENETUNREACH if it does not arrive. */
#define FABRIC_HOPS_MAX 64 /* as InfiniBand; a table from a file may send around in circles */
int fabric_hsd_way(const struct fabric_routes *r, uint32_t from, uint32_t to, uint32_t address,
		   uint32_t links[FABRIC_HOPS_MAX]);

#endif
