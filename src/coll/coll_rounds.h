/* Dissemination (coll_dissem.h) between the masters of hosts, and what it takes.
 *
 * From one host at most one message comes in a call: distances of different rounds never meet.
 */
#ifndef WEFT_COLL_ROUNDS_H
#define WEFT_COLL_ROUNDS_H

#include "coll_comm.h"
#include "coll_dissem.h"

/* By each master, in this call. Returns when all of them have come to it; 0 or -errno. */
int coll_rounds(struct coll_comm *c, uint32_t call, const struct coll_dissem *d);

/* What it takes with each of these, at most COLL_DISSEM_TRIES: the median of a few turns, ns. By
 * all ranks together; masters do them, the others count their calls and have 0. 0, or -errno, and
 * then the communicator is broken. */
int coll_rounds_measure(struct coll_comm *c, const struct coll_dissem *d, uint32_t count,
			uint64_t *ns);

#endif
