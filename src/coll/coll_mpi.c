/* The names that programs call. */
#include <mpi.h>

#include "coll_barrier.h"
#include "coll_comm.h"

#define NAME(op) MPI_##op
#define OWN(op)  PMPI_##op
#define COUNT    int
#define DISPL    int
#define COUNTS   counts
#define DISPLS   displs
#include "coll_mpi_names.h"

EXPORT int MPI_Barrier(MPI_Comm comm)
{
	int ret;

	return coll_barrier(comm, &ret) ? ret : PMPI_Barrier(comm);
}

/* Communicators have ended in it. */
EXPORT int MPI_Finalize(void)
{
	int ret = PMPI_Finalize();

	coll_comm_close();
	return ret;
}
