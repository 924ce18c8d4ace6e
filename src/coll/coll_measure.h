/* What things take on this machine, as predictions need it.
 *
 * Collective: all ranks of the communicator call it together, and all get the same. It takes some
 * milliseconds, whatever the network's rate is, as long as 64 KB take no longer.
 */
#ifndef WEFT_COLL_MEASURE_H
#define WEFT_COLL_MEASURE_H

#include "coll_comm.h"
#include "coll_model.h"

/* 0 or -errno. */
int coll_measure(struct coll_comm *c, struct coll_cost *cost);

#endif
