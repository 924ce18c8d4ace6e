/* What a communicator's operations need beyond its memory, but for alltoall in a way that is named:
 * the tree of its hosts, how a barrier is done best, what things take, and what was chosen so far.
 *
 * Made at the first of these operations, by all ranks together.
 */
#ifndef WEFT_COLL_PLAN_H
#define WEFT_COLL_PLAN_H

#include "coll_clock.h"
#include "coll_comm.h"
#include "coll_dissem.h"
#include "coll_model.h"
#include "coll_tree.h"

/* A row of choosers for each operation, and two for ordered ones. */
#define COLL_ROWS (COLL_OPS + 2)

struct coll_plan {
	bool usable;               /* agreed */
	struct coll_tree tree;     /* of hosts */
	uint32_t levels;           /* of the tree that places are known in; agreed */
	struct coll_dissem dissem; /* of hosts; of no ranks: not known yet; agreed */
	struct {                   /* what the first barrier has tried */
		struct coll_dissem dissem[COLL_DISSEM_TRIES];
		uint64_t ns[COLL_DISSEM_TRIES], tmp[COLL_DISSEM_TRIES]; /* ns: agreed */
		uint32_t count;                                         /* 0: there was no choice */
	} tried;
	struct coll_cost cost; /* agreed */
	struct coll_shape shape;
	uint32_t calls; /* of operations that it was asked for, but for loose ones; agreed */
	double spread;  /* of arrivals on this host, a moving mean, ns */
	struct coll_chooser chooser[COLL_ROWS][COLL_CLASSES];
	bool used[COLL_ROWS][COLL_CLASSES];
	/* What all agree by. */
	struct coll_clock clock;
	double last[COLL_ALL_TRIES], tmp[COLL_ALL_TRIES];
	struct coll_said {
		struct coll_times times;
		double spread;
	} all, of_others;
};

#define COLL_MAX_HOSTS 1024 /* of a communicator for which there is a plan */

void coll_plan_end(struct coll_comm *c);

/* An operation, with all that decides how it is done: that must be the same on every rank. */
struct coll_job {
	enum coll_op op;
	size_t bytes;
	bool loose;   /* ranks may leave before all have come, whoever does it */
	bool ordered; /* of a reduction: as it is done in ours, so the MPI's own is no choice */
	uint64_t own; /* of a loose one: bytes of this rank, which need not be those of others */
	unsigned int
		can; /* a bit for each variant of ours that would do; 0: only if it is forced */
	int (*ours)(void *arg, enum coll_variant v); /* 0 or -errno */
	void *ours_arg;
	int (*mpi)(const void *arg); /* the MPI's own */
	const void *mpi_arg;
};

/* Does it, by what the environment says or by what is best. Now and then this is where all ranks
 * agree on times. Returns whether it is done, with *ret for the program; false: the MPI shall do
 * it. */
bool coll_plan_run(struct coll_comm *c, MPI_Comm comm, const struct coll_job *job, int *ret);

/* The same, but it is no operation that this library could do: the MPI's own does it, unless the
 * communicator is broken. */
bool coll_plan_leave(struct coll_comm *c, MPI_Comm comm, const struct coll_job *job, int *ret);

/* What was chosen and why, for WEFT_COLL_STATS. */
void coll_plan_say(const struct coll_comm *c);

#endif
