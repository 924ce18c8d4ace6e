/* weft fabric sim --stripe: messages divided over several paths. */
#ifndef WEFT_CLI_FABRIC_STRIPE_H
#define WEFT_CLI_FABRIC_STRIPE_H

#include "cli_fabric.h"
#include "fabric_sim.h"
#include "stripe.h"

#define CLI_FABRIC_POLICIES_MAX 16

struct cli_fabric_stripe {
	struct fabric_sim_config config;
	struct stripe_conf policy[CLI_FABRIC_POLICIES_MAX];
	unsigned int n;
	bool paths;         /* were asked for */
	bool hashed;        /* paths are as switches hash them; otherwise distinct */
	uint32_t addresses; /* of a host, that paths are among; 0: as many as there are ways */
	uint32_t step;      /* of displaced rings; 0: all to all */
	uint32_t rounds;
	uint64_t bytes;
};

int cli_fabric_stripe(const struct cli_fabric_args *a, struct cli_fabric_stripe *s);

#endif
