/* The names that programs call, once for each width of counts: whoever includes it says
 *
 *	NAME(Alltoall), OWN(Alltoall)   what the program calls, and what the MPI calls it
 *	COUNT, DISPL                    the types of counts and displacements
 *	COUNTS, DISPLS                  the members of struct coll_each for lists of them
 *
 * Calls by small and by large names go the same ways: in one operation some ranks may use these and
 * others those.
 */
#include "coll_allgather.h"
#include "coll_alltoall.h"
#include "coll_bcast.h"
#include "coll_mpi_reduce.h"

#define EXPORT __attribute__((visibility("default")))

static int alltoall(const struct coll_alltoall_args *a)
{
	return OWN(Alltoall)(a->sendbuf, (COUNT)a->sendcount, a->sendtype, a->recvbuf,
			     (COUNT)a->recvcount, a->recvtype, a->comm);
}

EXPORT int NAME(Alltoall)(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype,
			  void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm)
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
	return OWN(Alltoallv)(a->sendbuf, a->send.COUNTS, a->send.DISPLS, a->sendtype, a->recvbuf,
			      a->recv.COUNTS, a->recv.DISPLS, a->recvtype, a->comm);
}

EXPORT int NAME(Alltoallv)(const void *sendbuf, const COUNT sendcounts[], const DISPL sdispls[],
			   MPI_Datatype sendtype, void *recvbuf, const COUNT recvcounts[],
			   const DISPL rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
	struct coll_alltoall_args args = {
		.sendbuf = sendbuf,
		.send = {.COUNTS = sendcounts, .DISPLS = sdispls},
		.sendtype = sendtype,
		.recvbuf = recvbuf,
		.recv = {.COUNTS = recvcounts, .DISPLS = rdispls},
		.recvtype = recvtype,
		.comm = comm,
		.mpi = alltoallv,
	};
	int ret;

	return coll_alltoall(COLL_ALLTOALLV, &args, &ret) ? ret : alltoallv(&args);
}

static int allgather(const struct coll_allgather_args *a)
{
	return OWN(Allgather)(a->sendbuf, (COUNT)a->sendcount, a->sendtype, a->recvbuf,
			      (COUNT)a->recvcount, a->recvtype, a->comm);
}

EXPORT int NAME(Allgather)(const void *sendbuf, COUNT sendcount, MPI_Datatype sendtype,
			   void *recvbuf, COUNT recvcount, MPI_Datatype recvtype, MPI_Comm comm)
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
	return OWN(Bcast)(a->buf, (COUNT)a->count, a->type, a->root, a->comm);
}

EXPORT int NAME(Bcast)(void *buf, COUNT count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct coll_bcast_args args = {buf, count, type, root, comm, bcast};
	int ret;

	return coll_bcast(&args, &ret) ? ret : bcast(&args);
}

/* ---- reductions ---- */

static int allreduce(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return OWN(Allreduce)(a->sendbuf, a->recvbuf, (COUNT)a->count, a->type, a->op, a->comm);
}

EXPORT int NAME(Allreduce)(const void *sendbuf, void *recvbuf, COUNT count, MPI_Datatype type,
			   MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {
		.sendbuf = sendbuf,
		.recvbuf = recvbuf,
		.count = count,
		.type = type,
		.op = op,
		.comm = comm,
		.mpi = allreduce,
	};

	return coll_mpi_allreduce(&a);
}

static int reduce_scatter_block(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return OWN(Reduce_scatter_block)(a->sendbuf, a->recvbuf, (COUNT)a->count, a->type, a->op,
					 a->comm);
}

EXPORT int NAME(Reduce_scatter_block)(const void *sendbuf, void *recvbuf, COUNT count,
				      MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {
		.sendbuf = sendbuf,
		.recvbuf = recvbuf,
		.count = count,
		.type = type,
		.op = op,
		.comm = comm,
		.mpi = reduce_scatter_block,
	};

	return coll_mpi_reduce_scatter_block(&a);
}

static int reduce_scatter(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return OWN(Reduce_scatter)(a->sendbuf, a->recvbuf, a->COUNTS, a->type, a->op, a->comm);
}

EXPORT int NAME(Reduce_scatter)(const void *sendbuf, void *recvbuf, const COUNT counts_of[],
				MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {
		.sendbuf = sendbuf,
		.recvbuf = recvbuf,
		.COUNTS = counts_of,
		.type = type,
		.op = op,
		.comm = comm,
		.mpi = reduce_scatter,
	};

	return coll_mpi_reduce_scatter(&a);
}
