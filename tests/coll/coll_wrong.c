/* An interposer that is wrong, for a test of coll_check: COLL_WRONG names the operation whose
 * results are off by a bit on the last rank, or, of MPI_Barrier, which waits for nobody. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int is_wrong(const char *op, MPI_Comm comm)
{
	const char *which = getenv("COLL_WRONG");
	int rank, size;

	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &size);
	return which && strcmp(which, op) == 0 && rank == size - 1;
}

/* The first of so many elements: of a double, what shows. */
static void spoil(const char *op, void *buf, int count, MPI_Datatype type, MPI_Comm comm)
{
	int bytes;

	PMPI_Type_size(type, &bytes);
	if (is_wrong(op, comm) && count && bytes)
		((unsigned char *)buf)[bytes < 8 ? 0 : 7] ^= 1;
}

int MPI_Alltoall(const void *send, int sends, MPI_Datatype send_type, void *recv, int recvs,
		 MPI_Datatype recv_type, MPI_Comm comm)
{
	int result = PMPI_Alltoall(send, sends, send_type, recv, recvs, recv_type, comm);

	spoil("alltoall", recv, recvs, recv_type, comm);
	return result;
}

int MPI_Alltoallv(const void *send, const int sends[], const int send_at[], MPI_Datatype send_type,
		  void *recv, const int recvs[], const int recv_at[], MPI_Datatype recv_type,
		  MPI_Comm comm)
{
	int result = PMPI_Alltoallv(send, sends, send_at, send_type, recv, recvs, recv_at,
				    recv_type, comm);
	MPI_Aint lb, extent;

	PMPI_Type_get_extent(recv_type, &lb, &extent);
	spoil("alltoallv", (char *)recv + recv_at[0] * extent, recvs[0], recv_type, comm);
	return result;
}

int MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op,
		  MPI_Comm comm)
{
	int result = PMPI_Allreduce(send, recv, count, type, op, comm);

	spoil("allreduce", recv, count, type, comm);
	return result;
}

int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	int result = PMPI_Bcast(buf, count, type, root, comm);

	spoil("bcast", buf, count, type, comm);
	return result;
}

int MPI_Barrier(MPI_Comm comm)
{
	const char *which = getenv("COLL_WRONG");

	return which && strcmp(which, "barrier") == 0 ? MPI_SUCCESS : PMPI_Barrier(comm);
}
