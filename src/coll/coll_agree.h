/* What all ranks of a communicator agree on, by messages of the MPI along a binomial tree.
 *
 * Collective, in the same order on all ranks. Nothing blocks in the MPI once the communicator is
 * set up: a rank may have died, or given up, since it was last heard of. Then the communicator is
 * broken. Returns 0 or -errno.
 */
#ifndef WEFT_COLL_AGREE_H
#define WEFT_COLL_AGREE_H

#include "coll_comm.h"

/* To and from one rank, when it is there; the caller waits. 0 or -EIO. */
int coll_send(struct coll_comm *c, const void *buf, size_t len, uint32_t to, enum coll_tag tag);
int coll_take(struct coll_comm *c, void *buf, size_t len, uint32_t from, enum coll_tag tag);

/* What rank 0 has. */
int coll_agree_on(struct coll_comm *c, void *v, size_t len);
/* v of all, put together two by two, in the same order in every run. tmp: as large. */
int coll_agree_fold(struct coll_comm *c, void *v, void *tmp, size_t len,
		    void (*fold)(void *into, const void *from, size_t len));
/* all[size]: of each rank what it has put at its place. */
int coll_agree_all(struct coll_comm *c, void *all, size_t each);
/* Whether it is true of all. */
bool coll_agree(struct coll_comm *c, bool ok);

/* For coll_agree_fold. */
void coll_sum_doubles(void *into, const void *from, size_t len);
void coll_max_doubles(void *into, const void *from, size_t len);
void coll_sum_u64(void *into, const void *from, size_t len);

#endif
