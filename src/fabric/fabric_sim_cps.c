#include "fabric_sim_cps.h"

static uint32_t cps_send(void *ctx, uint32_t rank, uint32_t stage,
			 struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX])
{
	const struct fabric_sim_cps *c = ctx;
	uint32_t s = fabric_sim_sample(stage, c->stages, c->cps->stages), n = 0, to;

	/* Too many are for the simulation to refuse. */
	while ((to = fabric_cps_nth(c->cps, s, rank, n)) != FABRIC_NONE) {
		if (n < FABRIC_SIM_PARTS_MAX)
			part[n] = (struct fabric_sim_part){.to = to, .bytes = c->bytes};
		n++;
	}
	return n;
}

void fabric_sim_cps(struct fabric_sim_traffic *traffic, struct fabric_sim_cps *c)
{
	if (c->stages > c->cps->stages)
		c->stages = c->cps->stages;
	traffic->stages = c->stages;
	traffic->send = cps_send;
	traffic->ctx = c;
}
