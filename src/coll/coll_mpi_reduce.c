/* The names that programs call, of operations other than alltoall. */
#include <mpi.h>

#include "coll_allgather.h"
#include "coll_barrier.h"
#include "coll_bcast.h"
#include "coll_mpi_reduce.h"
#include "coll_plan.h"
#include "coll_reduce.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int MPI_Barrier(MPI_Comm comm)
{
	int ret;

	return coll_barrier(comm, &ret) ? ret : PMPI_Barrier(comm);
}

static int allgather(const struct coll_allgather_args *a)
{
	return PMPI_Allgather(a->sendbuf, (int)a->sendcount, a->sendtype, a->recvbuf,
			      (int)a->recvcount, a->recvtype, a->comm);
}

EXPORT int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
			 int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
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
	return PMPI_Bcast(a->buf, (int)a->count, a->type, a->root, a->comm);
}

EXPORT int MPI_Bcast(void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
	struct coll_bcast_args args = {buf, count, type, root, comm, bcast};
	int ret;

	return coll_bcast(&args, &ret) ? ret : bcast(&args);
}

/* ---- reductions ---- */

/* What all of them have in common; false: nothing that is known here. */
static bool common(const struct coll_reduce_args *a, struct coll_reduce *r)
{
	if (a->count < 0 || !coll_reduce_known(a->op, a->type, &r->size))
		return false;
	r->from = a->sendbuf == MPI_IN_PLACE ? a->recvbuf : a->sendbuf;
	r->to = a->recvbuf;
	r->type = a->type;
	r->how = a->op;
	r->mpi = a->mpi;
	r->arg = a;
	return true;
}

/* Nothing for us; a communicator is not set up for it. */
static int leave(const struct coll_reduce_args *a, enum coll_op op)
{
	struct coll_comm *c = coll_comm_known(a->comm);
	struct coll_job job = {.op = op, .mpi = a->mpi, .mpi_arg = a};
	int ret;

	return c && coll_plan_leave(c, a->comm, &job, &ret) ? ret : a->mpi(a);
}

int coll_mpi_allreduce(const struct coll_reduce_args *a)
{
	struct coll_reduce r = {.op = COLL_ALLREDUCE};
	int ret;

	if (!common(a, &r))
		return leave(a, COLL_ALLREDUCE);
	r.count = (size_t)a->count;
	r.bytes = r.count * r.size;
	return coll_reduce(&r, a->comm, &ret) ? ret : a->mpi(a);
}

int coll_mpi_reduce_scatter_block(const struct coll_reduce_args *a)
{
	struct coll_reduce r = {.op = COLL_REDUCE_SCATTER};
	int ret, rank, size;

	if (a->comm == MPI_COMM_NULL || !common(a, &r) || PMPI_Comm_rank(a->comm, &rank) ||
	    PMPI_Comm_size(a->comm, &size))
		return leave(a, COLL_REDUCE_SCATTER);
	r.count = (size_t)a->count * (size_t)size;
	r.bytes = (size_t)a->count * r.size;
	r.first = (size_t)rank * r.bytes;
	return coll_reduce(&r, a->comm, &ret) ? ret : a->mpi(a);
}

/* Which part of the vector is ours. Counts are the same on every rank. */
static bool share(const struct coll_reduce_args *a, struct coll_reduce *r)
{
	int rank, size;

	if (a->comm == MPI_COMM_NULL || !(a->counts || a->large) ||
	    PMPI_Comm_rank(a->comm, &rank) || PMPI_Comm_size(a->comm, &size))
		return false;
	for (int i = 0; i < size; i++) {
		MPI_Count n = a->large ? a->large[i] : a->counts[i];

		if (n < 0)
			return false;
		if (i == rank) {
			r->first = r->count * r->size;
			r->bytes = (size_t)n * r->size;
		}
		r->count += (size_t)n;
	}
	return true;
}

int coll_mpi_reduce_scatter(const struct coll_reduce_args *a)
{
	struct coll_reduce r = {.op = COLL_REDUCE_SCATTER};
	int ret;

	if (!common(a, &r) || !share(a, &r))
		return leave(a, COLL_REDUCE_SCATTER);
	return coll_reduce(&r, a->comm, &ret) ? ret : a->mpi(a);
}

static int allreduce(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return PMPI_Allreduce(a->sendbuf, a->recvbuf, (int)a->count, a->type, a->op, a->comm);
}

EXPORT int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype type,
			 MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {sendbuf, recvbuf, count, NULL,     NULL,
				     type,    op,      comm,  allreduce};

	return coll_mpi_allreduce(&a);
}

static int reduce_scatter_block(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return PMPI_Reduce_scatter_block(a->sendbuf, a->recvbuf, (int)a->count, a->type, a->op,
					 a->comm);
}

EXPORT int MPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int count,
				    MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {
		sendbuf, recvbuf, count, NULL, NULL, type, op, comm, reduce_scatter_block};

	return coll_mpi_reduce_scatter_block(&a);
}

static int reduce_scatter(const void *arg)
{
	const struct coll_reduce_args *a = arg;

	return PMPI_Reduce_scatter(a->sendbuf, a->recvbuf, a->counts, a->type, a->op, a->comm);
}

EXPORT int MPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int counts[],
			      MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	struct coll_reduce_args a = {sendbuf, recvbuf, 0,    counts,        NULL,
				     type,    op,      comm, reduce_scatter};

	return coll_mpi_reduce_scatter(&a);
}
