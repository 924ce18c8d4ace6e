/* What coll_boot.c does for coll_attr.c. */
#ifndef WEFT_COLL_BOOT_H
#define WEFT_COLL_BOOT_H

#include "coll_comm.h"

/* Collective. c is all zero; world: coll_world_ranks() of comm. Returns 0 on all ranks, or -errno
 * on all. */
int coll_boot(struct coll_comm *c, MPI_Comm comm, const int *world);
/* Frees it, and c. */
void coll_unboot(struct coll_comm *c);

#endif
