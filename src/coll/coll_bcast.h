/* MPI_Bcast. What is sent goes in parts, each once into the shared memory of every host, from
 * where its ranks take it as they come, without waiting for each other. Parts have a window of
 * slots there (coll_window.h), which is what makes it safe that the root hears from nobody.
 *
 *	direct  the root writes to every other host by itself, first to those that are known to have
 *		room: nobody waits for anybody but the root
 *	tree    hosts pass it on along a binomial tree of their places (coll_tree.h), by their
 *		masters: the root has fewer to write to, but who is below a late master waits for it
 *
 * What says that a part has come: to the master, the word that the write carries. But the
 * master may be late, and the others need not wait for it, if the provider places data
 * meanwhile: each part has its number and a sum of all its bytes before it (coll_sum.h), so
 * whoever looks can tell whether all of it is there.
 */
#ifndef WEFT_COLL_BCAST_H
#define WEFT_COLL_BCAST_H

#include <stdbool.h>

#include "coll_comm.h"

struct coll_bcast_args {
	void *buf;
	MPI_Count count;
	MPI_Datatype type;
	int root;
	MPI_Comm comm;
	int (*mpi)(const struct coll_bcast_args *args); /* the MPI's own */
};

/* Returns whether it is done, with *ret for the program; false: the MPI shall do it. */
bool coll_bcast(const struct coll_bcast_args *args, int *ret);

/* Where in a host's shared memory the memory for it begins, and how much that is. */
uint64_t coll_bcast_at(const struct coll_comm *c, uint32_t host);
size_t coll_bcast_room(uint32_t hosts);

#endif
