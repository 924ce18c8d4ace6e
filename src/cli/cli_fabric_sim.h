/* weft fabric sim: what its files share. */
#ifndef WEFT_CLI_FABRIC_SIM_H
#define WEFT_CLI_FABRIC_SIM_H

#include "cli_fabric.h"
#include "fabric_sim_cps.h"

struct cli_fabric_sim {
	struct fabric_sim_cps traffic; /* its stages 0: all of them */
	struct fabric_sim_config config;
	bool quiet; /* does not show how far it is */
};

/* Simulates a collective in one order, or in several, and prints what came out. */
int cli_fabric_sim_run(const struct cli_fabric_args *a, const struct cli_fabric_sim *s);

/* Refuses what nobody would wait for. */
int cli_fabric_sim_bound(const struct cli_fabric *f, const struct fabric_sim_config *c,
			 double messages, uint64_t bytes);

#endif
