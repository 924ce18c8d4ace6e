/* The verbs API, wherever it comes from.
 *
 * A libfabric provider is loaded into processes that may have rdma-core's libibverbs already, where
 * there is no software RNIC, and it must not bring a second one into everybody's scope. So this
 * layer links no libibverbs: it loads Weft's, which stands beside it, by its path, and the ibv_
 * functions that the layer uses are defined here, hidden, as jumps into that one. The code above
 * is ordinary verbs code. (Weft's library serves hardware, too.)
 */
#ifndef WEFT_MSG_VERBS_H
#define WEFT_MSG_VERBS_H

#include <infiniband/verbs.h>
#include "verbs_dv.h"

/* Loads the library, once per process. 0 or -errno; -ENOENT: it is not there, or too old. */
int msg_verbs_load(void);

/* What only Weft's own device offers. Valid once loaded. */
const struct verbs_dv_ops *msg_verbs_dv(void);

#endif
