/* Reductions as programs call them, by small names and by large ones. */
#ifndef WEFT_COLL_MPI_REDUCE_H
#define WEFT_COLL_MPI_REDUCE_H

#include <mpi.h>

struct coll_reduce_args {
	const void *sendbuf;
	void *recvbuf;
	MPI_Count count;
	const int *counts; /* of MPI_Reduce_scatter, as wide as the program has them */
	const MPI_Count *large;
	MPI_Datatype type;
	MPI_Op op;
	MPI_Comm comm;
	int (*mpi)(const void *args); /* the MPI's own */
};

/* All return what the program gets, whoever has done it. */
int coll_mpi_allreduce(const struct coll_reduce_args *a);
int coll_mpi_reduce_scatter_block(const struct coll_reduce_args *a);
int coll_mpi_reduce_scatter(const struct coll_reduce_args *a);

#endif
