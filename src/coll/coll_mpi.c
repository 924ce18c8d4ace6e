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

EXPORT int MPI_Init(int *argc, char ***argv)
{
	int ret = PMPI_Init(argc, argv);

	if (!ret)
		coll_comm_init();
	return ret;
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	int ret = PMPI_Init_thread(argc, argv, required, provided);

	if (!ret)
		coll_comm_init();
	return ret;
}

/* Communicators have ended in it. */
EXPORT int MPI_Finalize(void)
{
	int ret = PMPI_Finalize();

	coll_comm_close();
	return ret;
}
