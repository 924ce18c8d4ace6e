/* MPI_Barrier: in the host, whoever comes last tells the others; between hosts, each master tells
 * several others in each round, as many as were the fastest in the first call. */
#include "coll_barrier.h"

#include "coll_here.h"
#include "coll_plan.h"
#include "coll_rounds.h"

static int between_hosts(struct coll_comm *c, uint32_t call, bool last)
{
	int ret = last ? 0 : coll_here_wait(c, call, COLL_WORD_HERE);

	if (!ret)
		ret = coll_rounds(c, call, &c->plan->dissem);
	if (!ret)
		coll_here_set(c, call, COLL_WORD_DONE);
	return ret;
}

static int barrier(void *arg, enum coll_variant v)
{
	struct coll_comm *c = arg;
	uint32_t call = coll_begin(c);
	bool last = coll_here_arrive(c, call, NULL, NULL);
	int ret = 0;

	(void)v;
	if (c->hosts > 1 && coll_is_master(c))
		ret = between_hosts(c, call, last);
	else if (last)
		coll_here_set(c, call, c->hosts > 1 ? COLL_WORD_HERE : COLL_WORD_DONE);
	if (!ret)
		ret = coll_here_wait(c, call, COLL_WORD_DONE);
	return ret;
}

static int by_mpi(const void *arg)
{
	return PMPI_Barrier(*(const MPI_Comm *)arg);
}

bool coll_barrier(MPI_Comm comm, int *ret)
{
	struct coll_comm *c = coll_comm_of(comm, NULL, NULL);
	struct coll_job job = {
		.op = COLL_BARRIER,
		.can = 1u << COLL_DISSEM,
		.ours = barrier,
		.ours_arg = c,
		.mpi = by_mpi,
		.mpi_arg = &comm,
	};

	return c ? coll_plan_run(c, comm, &job, ret) : coll_comm_early(comm, by_mpi, &comm, ret);
}
