/* MPI_Barrier: in the host, whoever comes last tells the others; between hosts, each master tells
 * several others in each round (coll_dissem.h), as many as is best by what was measured.
 *
 * From one host at most one message comes in a call: distances of different rounds never meet. */
#include "coll_barrier.h"

#include "coll_here.h"
#include "coll_plan.h"

static int round_of(struct coll_comm *c, uint32_t call, uint32_t round)
{
	const struct coll_dissem *d = &c->plan->dissem;
	uint32_t width = coll_dissem_width(d, round);
	int ret = 0;

	for (uint32_t k = 0; k < width && !ret; k++) {
		uint32_t to = coll_dissem_to(d, c->host, round, k);

		ret = coll_put_slot(c, call, coll_master(c, to), COLL_ROUND, c->memory, 0,
				    c->mem.desc);
	}
	for (uint32_t k = 0; k < width && !ret; k++)
		ret = coll_there_wait(c, call, COLL_ROUND, coll_dissem_from(d, c->host, round, k));
	return ret;
}

static int between_hosts(struct coll_comm *c, uint32_t call, bool last)
{
	int ret = last ? 0 : coll_here_wait(c, call, COLL_WORD_HERE);

	for (uint32_t i = 0; i < c->plan->dissem.rounds && !ret; i++)
		ret = round_of(c, call, i);
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

	return c && coll_plan_run(c, comm, &job, ret);
}
