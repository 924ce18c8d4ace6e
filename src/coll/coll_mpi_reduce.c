#include "coll_mpi_reduce.h"

#include "coll_plan.h"
#include "coll_reduce.h"

/* What all of them have in common; false: nothing that is known here. */
static bool common(const struct coll_reduce_args *a, struct coll_reduce *r)
{
	if (a->count < 0 || !coll_reduce_known(a->op, a->type, &r->size, &r->inexact))
		return false;
	/* The MPI says that it is wrong without the others. */
	if (a->recvbuf == MPI_IN_PLACE)
		return false;
	if (a->count && (!a->sendbuf || !a->recvbuf))
		return false;
#ifndef OPEN_MPI
	if (a->count && a->sendbuf == a->recvbuf)
		return false;
#endif
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

	/* Who has no memory for it is wrong, and the MPI says so without the others. */
	if (!common(a, &r) || !share(a, &r) || (r.count && !a->sendbuf) || (r.bytes && !a->recvbuf))
		return leave(a, COLL_REDUCE_SCATTER);
	return coll_reduce(&r, a->comm, &ret) ? ret : a->mpi(a);
}
