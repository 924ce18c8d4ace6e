/* MPI_Barrier. */
#ifndef WEFT_COLL_BARRIER_H
#define WEFT_COLL_BARRIER_H

#include <stdbool.h>

#include <mpi.h>

/* Returns whether it is done, with *ret for the program; false: the MPI shall do it. */
bool coll_barrier(MPI_Comm comm, int *ret);

#endif
