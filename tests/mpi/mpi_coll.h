/* Collectives, checked by pattern on any communicator; mpi_coll.c runs them as they are,
 * mpi_icoll.c in their non-blocking forms. */
#ifndef WEFT_TESTS_MPI_COLL_H
#define WEFT_TESTS_MPI_COLL_H

#include "mpi_test.h"

struct coll {
	MPI_Comm comm; /* MPI_COMM_NULL on ranks that are not in it */
	const char *name;
	int rank, size;
	int remote; /* size of the other group of an intercommunicator */
	int side;   /* of an intercommunicator: 0 or 1, which group this rank is in */
	int nonblocking;
};

/* Waits in one of several ways. */
void coll_wait(MPI_Request *req);

/* COLL(c, Bcast, Ibcast, arguments without the request) */
#define COLL(c, name, iname, ...)                                                                  \
	do {                                                                                       \
		if ((c)->nonblocking) {                                                            \
			MPI_Request coll_req_;                                                     \
			MPI_##iname(__VA_ARGS__, &coll_req_);                                      \
			coll_wait(&coll_req_);                                                     \
		} else {                                                                           \
			MPI_##name(__VA_ARGS__);                                                   \
		}                                                                                  \
	} while (0)

/* Parts; to be called by all ranks of the program. */
void coll_move(const struct coll *c);   /* barrier, bcast, gather, scatter, allgather, alltoall */
void coll_reduce(const struct coll *c); /* reductions and scans */
void coll_inter(const struct coll *c);  /* the same on an intercommunicator */
void coll_neighbour(int nonblocking);   /* on topologies that it makes itself */

/* Everything on the world and on parts of it. */
void coll_everywhere(int nonblocking);

#endif
