/* What the environment says. */
#ifndef WEFT_COLL_ENV_H
#define WEFT_COLL_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_kinds.h"
#include "util_tune.h"

extern const struct util_tunable coll_tunables[];

#define COLL_AFTER_MAX 255u

struct coll_env {
	struct coll_choice choice;
	const char *provider;
	const char *topology; /* NULL: none */
	size_t copy_max;      /* longest message of a pair of one host that is copied */
	size_t copy_far;      /* and of different hosts */
	bool shm;             /* among ranks of a host */
	bool fetch;           /* from the memory of other ranks of a host */
	bool same_sums;       /* added in one order only */
	unsigned int comms;   /* that may be there at a time */
	unsigned int after;   /* so many calls they are set up */
	bool stats;
	uint64_t patience; /* ns, with the MPI's own after somebody was lost; 0: no end */
};

/* Read once. */
const struct coll_env *coll_env(void);
/* What all ranks have agreed on, at the beginning of all. */
void coll_env_settle(bool off, bool same_sums, unsigned int after);

#endif
