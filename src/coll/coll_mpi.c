/* The names that programs call. */
#include <mpi.h>

#include "coll_alltoall.h"
#include "coll_comm.h"

#define EXPORT __attribute__((visibility("default")))

static int alltoall(const struct coll_alltoall_args *a)
{
	return PMPI_Alltoall(a->sendbuf, (int)a->sendcount, a->sendtype, a->recvbuf,
			     (int)a->recvcount, a->recvtype, a->comm);
}

EXPORT int MPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
			int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	struct coll_alltoall_args args = {
		.sendbuf = sendbuf,
		.sendcount = sendcount,
		.sendtype = sendtype,
		.recvbuf = recvbuf,
		.recvcount = recvcount,
		.recvtype = recvtype,
		.comm = comm,
		.mpi = alltoall,
	};
	int ret;

	return coll_alltoall(COLL_ALLTOALL, &args, &ret) ? ret : alltoall(&args);
}

static int alltoallv(const struct coll_alltoall_args *a)
{
	return PMPI_Alltoallv(a->sendbuf, a->send.counts, a->send.displs, a->sendtype, a->recvbuf,
			      a->recv.counts, a->recv.displs, a->recvtype, a->comm);
}

EXPORT int MPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
			 MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
			 const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
	struct coll_alltoall_args args = {
		.sendbuf = sendbuf,
		.send = {.counts = sendcounts, .displs = sdispls},
		.sendtype = sendtype,
		.recvbuf = recvbuf,
		.recv = {.counts = recvcounts, .displs = rdispls},
		.recvtype = recvtype,
		.comm = comm,
		.mpi = alltoallv,
	};
	int ret;

	return coll_alltoall(COLL_ALLTOALLV, &args, &ret) ? ret : alltoallv(&args);
}

/* Communicators have ended in it. */
EXPORT int MPI_Finalize(void)
{
	int ret = PMPI_Finalize();

	coll_comm_close();
	return ret;
}
