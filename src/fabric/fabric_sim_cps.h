/* A collective as the traffic of a simulation: in each stage every rank sends one message of the
 * same size, or none; of a file's, also several, which share the host's bus packet by packet and
 * are on the wire when all are. */
#ifndef WEFT_FABRIC_SIM_CPS_H
#define WEFT_FABRIC_SIM_CPS_H

#include "fabric_cps.h"
#include "fabric_sim.h"

struct fabric_sim_cps {
	const struct fabric_cps *cps;
	uint64_t bytes;
	/* Of so many stages spread evenly over all of the collective. At least all: all of them. */
	uint32_t stages;
};

/* Sets stages, send and ctx of the traffic; *c must live as long. For ASYNC and IN_STEP. */
void fabric_sim_cps(struct fabric_sim_traffic *traffic, struct fabric_sim_cps *c);

#endif
