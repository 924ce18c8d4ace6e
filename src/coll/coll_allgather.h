/* MPI_Allgather: blocks of a host's ranks are put together in shared memory; its master writes them
 * to the shared memory of every other host, in one piece each; ranks take what is there, host by
 * host, as it comes. Whoever is late keeps nobody from taking what the others have sent. */
#ifndef WEFT_COLL_ALLGATHER_H
#define WEFT_COLL_ALLGATHER_H

#include <stdbool.h>

#include <mpi.h>

struct coll_allgather_args {
	const void *sendbuf;
	MPI_Count sendcount;
	MPI_Datatype sendtype;
	void *recvbuf;
	MPI_Count recvcount;
	MPI_Datatype recvtype;
	MPI_Comm comm;
	int (*mpi)(const struct coll_allgather_args *args); /* the MPI's own */
};

/* Returns whether it is done, with *ret for the program; false: the MPI shall do it. */
bool coll_allgather(const struct coll_allgather_args *args, int *ret);

#endif
