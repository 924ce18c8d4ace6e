/* The names that programs call. */
#include <mpi.h>

#include "coll_alltoall.h"

#define EXPORT __attribute__((visibility("default")))

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
	};
	int ret;

	return coll_alltoall(COLL_ALLTOALL, &args, &ret)
		       ? ret
		       : PMPI_Alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype,
				       comm);
}

EXPORT int MPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[],
			 MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
			 const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
	struct coll_alltoall_args args = {
		.sendbuf = sendbuf,
		.sendcounts = sendcounts,
		.sdispls = sdispls,
		.sendtype = sendtype,
		.recvbuf = recvbuf,
		.recvcounts = recvcounts,
		.rdispls = rdispls,
		.recvtype = recvtype,
		.comm = comm,
	};
	int ret;

	return coll_alltoall(COLL_ALLTOALLV, &args, &ret)
		       ? ret
		       : PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts,
					rdispls, recvtype, comm);
}
