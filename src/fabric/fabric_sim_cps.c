#include "fabric_sim_cps.h"

static uint32_t cps_send(void *ctx, uint32_t rank, uint32_t stage,
			 struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX])
{
	const struct fabric_sim_cps *c = ctx;
	uint32_t s = fabric_sim_sample(stage, c->stages, c->cps->stages);

	part[0] = (struct fabric_sim_part){.to = fabric_cps_to(c->cps, s, rank), .bytes = c->bytes};
	return part[0].to != FABRIC_NONE;
}

void fabric_sim_cps(struct fabric_sim_traffic *traffic, struct fabric_sim_cps *c)
{
	if (c->stages > c->cps->stages)
		c->stages = c->cps->stages;
	traffic->stages = c->stages;
	traffic->send = cps_send;
	traffic->ctx = c;
}
