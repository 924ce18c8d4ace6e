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

/* op: or COLL_GUARD_... */
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

/* Does an operation by the MPI's own. One thread at a time is in an operation of a communicator.
 * Returns whether that is still there: the program's error handler may have freed it. */
static inline bool coll_guard_run(struct coll_comm *c, enum coll_op op, int (*mpi)(const void *arg),
				  const void *arg, int *ret)
{
	uint32_t id = c->id;
	uint64_t serial = c->serial;

	coll_guard_enter(&c->inside, (uint32_t)op);
	*ret = mpi(arg);
	if (*ret && !coll_comm_is(c, id, serial))
		return false;
	coll_guard_leave(&c->inside);
	return true;
}

/* While a communicator is set up, and in its first calls before that, all is by the MPI, too, and
 * nothing is known of its ranks but what `world`, the state of MPI_COMM_WORLD, knows: those of
 * `comm` count. One at a time; `world` may be NULL. Returns whether it is looked at, and then has
 * to be left. */
enum { COLL_GUARD_SETUP = COLL_OPS, COLL_GUARD_EARLY };
bool coll_guard_others(struct coll_comm *world, MPI_Comm comm, uint32_t what);
void coll_guard_others_end(struct coll_comm *world);

/* Where a thread is in such a call, or has left it by a jump out of an error handler. */
extern _Thread_local struct coll_comm *coll_guard_within;

/* At the beginning of a call: it has. */
static inline void coll_guard_out(void)
{
	if (coll_guard_within)
		coll_guard_others_end(coll_guard_within);
}

/* A communicator that was removed from the table is not looked at any more. */
void coll_guard_fence(void);
/* At the end of MPI, before communicators end. */
void coll_guard_end(void);

#endif
