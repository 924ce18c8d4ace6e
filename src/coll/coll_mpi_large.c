/* The large names that programs call, with counts as wide as memory, where the MPI has them (MPI
 * 4). They go the same ways as the small ones, since in one call some ranks may use these and
 * others those. */
#include <mpi.h>

#if MPI_VERSION >= 4

#include "coll_allgather.h"
#include "coll_alltoall.h"
#include "coll_bcast.h"
#include "coll_mpi_reduce.h"

#define EXPORT __attribute__((visibility("default")))

static int alltoall(const struct coll_alltoall_args *a)
{
	return PMPI_Alltoall_c(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf, a->recvcount,
			       a->recvtype, a->comm);
}

EXPORT int MPI_Alltoall_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			  void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
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
	return PMPI_Alltoallv_c(a->sendbuf, a->send.large, a->send.far, a->sendtype, a->recvbuf,
				a->recv.large, a->recv.far, a->recvtype, a->comm);
}

EXPORT int MPI_Alltoallv_c(const void *sendbuf, const MPI_Count sendcounts[],
			   const MPI_Aint sdispls[], MPI_Datatype sendtype, void *recvbuf,
			   const MPI_Count recvcounts[], const MPI_Aint rdispls[],
			   MPI_Datatype recvtype, MPI_Comm comm)
{
	struct coll_alltoall_args args = {
		.sendbuf = sendbuf,
		.send = {.large = sendcounts, .far = sdispls},
		.sendtype = sendtype,
		.recvbuf = recvbuf,
		.recv = {.large = recvcounts, .far = rdispls},
		.recvtype = recvtype,
		.comm = comm,
		.mpi = alltoallv,
	};
	int ret;

	return coll_alltoall(COLL_ALLTOALLV, &args, &ret) ? ret : alltoallv(&args);
}

static int allgather(const struct coll_allgather_args *a)
{
	return PMPI_Allgather_c(a->sendbuf, a->sendcount, a->sendtype, a->recvbuf, a->recvcount,
				a->recvtype, a->comm);
}

EXPORT int MPI_Allgather_c(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype,
			   void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
	struct coll_allgather_args args = {
		.sendbuf = sendbuf,
		.sendcount = sendcount,
		.sendtype = sendtype,
		.recvbuf = recvbuf,
		.recvcount = recvcount,
		.recvtype = recvtype,
		.comm = comm,
		.mpi = allgather,
	};
	int ret;

	return coll_allgather(&args, &ret) ? ret : allgather(&args);
}

static int bcast(const struct coll_bcast_args *a)
{
	return PMPI_Bcast_c(a->buf, a->count, a->type, a->root, a->comm);
}

EXPORT int MPI_Bcast_c(void *buf, MPI_Count count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct coll_bcast_args args = {buf, count, type, root, comm, bcast};
	int ret;

	return coll_bcast(&args, &ret) ? ret : bcast(&args);
}

static int allreduce(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return PMPI_Allreduce_c(a->sendbuf, a->recvbuf, a->count, a->type, a->op, a->comm);
}

EXPORT int MPI_Allreduce_c(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype type,
			   MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {sendbuf, recvbuf, count, NULL,     NULL,
				     type,    op,      comm,  allreduce};

	return coll_mpi_allreduce(&a);
}

static int reduce_scatter_block(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return PMPI_Reduce_scatter_block_c(a->sendbuf, a->recvbuf, a->count, a->type, a->op,
					   a->comm);
}

EXPORT int MPI_Reduce_scatter_block_c(const void *sendbuf, void *recvbuf, MPI_Count count,
				      MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {
		sendbuf, recvbuf, count, NULL, NULL, type, op, comm, reduce_scatter_block};

	return coll_mpi_reduce_scatter_block(&a);
}

static int reduce_scatter(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return PMPI_Reduce_scatter_c(a->sendbuf, a->recvbuf, a->large, a->type, a->op, a->comm);
}

EXPORT int MPI_Reduce_scatter_c(const void *sendbuf, void *recvbuf, const MPI_Count counts[],
				MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {sendbuf, recvbuf, 0,    NULL,          counts,
				     type,    op,      comm, reduce_scatter};

	return coll_mpi_reduce_scatter(&a);
}

#endif
