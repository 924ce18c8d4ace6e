/* Simulations of the paper on hot-spot avoidance: alltoall and displaced rings, with messages
 * striped over the addresses of the receiver. */
#ifndef WEFT_FABRIC_SIM_STRIPE_H
#define WEFT_FABRIC_SIM_STRIPE_H

#include "fabric_sim.h"
#include "stripe.h"

/* The paper's cluster: DDR links (2000 MB/s) of 24-port switches, hosts on PCIe 1 x8. Assumed:
 * 1500 MB/s of a host, 200 ns through a switch, 1 us of CPU for each stripe and its completion;
 * the rest as in fabric_sim_paper. */
extern const struct fabric_sim_config fabric_sim_ddr;

struct fabric_sim_stripes {
	/* All ranks to all others: in step s with rank XOR s if the number of ranks is a power of
	 * two, otherwise to rank + s and from rank − s. Or in every step, displaced rings: always
	 * rank + s; and if `step` is not 0, that step only. */
	bool rings;
	uint32_t step;
	uint32_t ranks;
	const uint32_t *hosts;
	uint64_t bytes; /* of each message */
	struct stripe_conf policy;
	/* The k-th path of a pair of ranks is address (first + k) mod addresses of the receiver,
	 * first being drawn for each pair: where no two addresses of a host share a way, nor do
	 * two paths, and still nobody's first path knows of any pattern. Without: address k. */
	bool draw;
	uint64_t seed;
	uint32_t addresses; /* of these, 1 … 2^lmc */
	/* The whole is done so often, each time with what was learnt before. */
	uint32_t rounds;
	bool (*going)(void *ctx, double done); /* may be NULL */
	void *ctx;
};

/* The time of each round in ps[rounds]. Errors as of fabric_sim(). result, if not NULL, is that
 * of the last round. */
int fabric_sim_stripes(const struct fabric_routes *routes, const struct fabric_sim_config *config,
		       const struct fabric_sim_stripes *what, uint64_t *ps,
		       struct fabric_sim_result *result, char *why, size_t why_size);

#endif
