/* What coll_boot.c does for coll_attr.c. */
#ifndef WEFT_COLL_BOOT_H
#define WEFT_COLL_BOOT_H

#include "coll_comm.h"

/* Collective. c is all zero but for priv, which is MPI_COMM_NULL. Returns 0 on all ranks, or
 * -errno on all. */
int coll_boot(struct coll_comm *c, MPI_Comm comm);
/* Frees it, and c. */
void coll_unboot(struct coll_comm *c, bool finalizing);

#endif
