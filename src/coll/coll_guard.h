/* Whoever is inside an operation of the MPI's own can not be told that somebody it waits for has
 * died, and the MPI may not notice: so a thread looks for the others in its place. If one of them
 * is gone, and the MPI does not return by itself, the process ends: there is no way out of the
 * call.
 *
 * The thread is made when it is first needed. It has nothing to do with calls that are over within
 * a second, and sleeps for good where there are none: a call costs three stores and a look.
 */
#ifndef WEFT_COLL_GUARD_H
#define WEFT_COLL_GUARD_H

#include "coll_comm.h"

/* The thread sleeps until it is woken, or does not exist. */
extern atomic_bool coll_guard_asleep;
void coll_guard_wake(void);

static inline void coll_guard_enter(struct coll_inside *in, uint32_t op)
{
	/* Odd even if somebody has left the call before by a jump out of an error handler. */
	uint32_t turn = (atomic_load_explicit(&in->turn, memory_order_relaxed) | 1) + 2;

	atomic_store_explicit(&in->op, op, memory_order_relaxed);
	/* release: who sees that we are inside sees what was set up before. */
	atomic_store_explicit(&in->turn, turn, memory_order_release);
	/* relaxed: that the thread sleeps may be seen too late here; see sleep_well(). */
	if (atomic_load_explicit(&coll_guard_asleep, memory_order_relaxed))
		coll_guard_wake();
}

static inline void coll_guard_leave(struct coll_inside *in)
{
	uint32_t turn = atomic_load_explicit(&in->turn, memory_order_relaxed);

	atomic_store_explicit(&in->turn, turn + 1, memory_order_release);
}

/* Does an operation by the MPI's own. One thread at a time is in an operation of a communicator. */
static inline int coll_guard_run(struct coll_comm *c, enum coll_op op, int (*mpi)(const void *arg),
				 const void *arg)
{
	int ret;

	coll_guard_enter(&c->inside, (uint32_t)op);
	ret = mpi(arg);
	coll_guard_leave(&c->inside);
	return ret;
}

/* While a communicator is set up, which is all by the MPI, too, nothing is known of its ranks but
 * what `world`, which has all of them, knows. Nobody looks if that is broken already: then the
 * program goes on without those who are gone, and makes a communicator of the others. One at a
 * time. Returns whether it is looked at, and then has to be left. */
bool coll_guard_setup(struct coll_comm *world);
void coll_guard_setup_end(struct coll_comm *world);

/* A communicator that was removed from the table is not looked at any more. */
void coll_guard_fence(void);
/* At the end of MPI, before communicators end. */
void coll_guard_end(void);

#endif
