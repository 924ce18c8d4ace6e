/* Waiting. Ranks often share cores, and whoever is waited for may need the one that we are on: so
 * it is given up at once, and after a short while we sleep until we are woken. The short while is a
 * matter of time, not of how often the core was given up: where many wait, each time takes as long
 * as all the others want, and whoever is in that round when its data comes has its turn last. Who
 * always has the core back at once keeps nobody from it, and is awake for longer: to be woken takes
 * more than most of what is done here.
 *
 * MPI promises that messages move while a rank is inside any MPI call, also if that is this
 * library's: somebody may have to finish a send to us before it can come to the collective. So the
 * MPI is given a turn, too, by a probe for something that is never sent; but not before we sleep,
 * since it may give our core away in its turn, or sleep itself, and hears nothing of our flags.
 */
#include "coll_comm.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "coll_letter.h"
#include "util_clock.h"

#define AWAKE_NS  (50 * UTIL_NS_PER_US) /* before the first nap, ... */
#define ALONE_NS  UTIL_NS_PER_MS        /* ... if nobody else wanted the core meanwhile */
#define QUICK_NS  (20 * UTIL_NS_PER_US) /* to come back to who gives up a core nobody wants */
#define MPI_EVERY 16                    /* turns; also to look whether the others are there */
#define MOVED_NS  (20 * UTIL_NS_PER_US) /* of a turn of the MPI's: there may be more to come */
#define NAP_SHM   UTIL_NS_PER_MS        /* woken earlier by a flag */
#define NAP_BOTH  (50 * UTIL_NS_PER_US) /* not woken by the network */
#define NAP_FAR   (200 * UTIL_NS_PER_US)
#define NAP_MPI   (20 * UTIL_NS_PER_US) /* woken by nothing; then an eighth of the wait, ... */
#define NAP_MOST  UTIL_NS_PER_MS        /* ... up to that */
#define ASK_EVERY (500 * UTIL_NS_PER_MS)
#define ASK_ALL   8 /* every so many times */

/* Long messages come a piece in each turn. That it has moved something is seen from the time that
 * it has worked; not from what has passed, since it may give our core away. */
static void mpi_turn(struct coll_comm *c, struct coll_wait *w)
{
	uint64_t before;
	int flag;

	if (w->what & COLL_FOR_MPI) /* who waits for it asks it all the time */
		return;
	before = util_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	PMPI_Iprobe(MPI_ANY_SOURCE, c->tag + COLL_TAG_NONE, coll_world, &flag, MPI_STATUS_IGNORE);
	if (util_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - before > MOVED_NS)
		w->since = 0; /* awake, so that it soon has the next */
}

/* ---- whether they are there ---- */

static void answered(struct coll_comm *c, uint32_t rank, uint32_t call, int err)
{
	atomic_store(&c->peer[rank].asked, false);
	/* In a later call nobody waits for this answer. */
	if (err && c->call == call)
		coll_comm_lost(c, rank, err);
}

/* Once: a provider may take long to give somebody up. Who has been given up already, perhaps in a
 * call of another communicator, may not be written to at all any more: that is an answer, too. */
static void ask(struct coll_comm *c, uint32_t rank)
{
	struct coll_peer *p = &c->peer[rank];
	int ret;

	if (atomic_exchange(&p->asked, true))
		return;
	c->asks++;
	ret = coll_letter_ask(c, rank, c->call, answered);
	if (!ret)
		return;
	atomic_store(&p->asked, false);
	if (ret != -EAGAIN && ret != -ENOMEM) /* these: next time */
		coll_comm_lost(c, rank, ret);
}

/* Those of this host are seen by their locks, the others by what the network says of them.
 *
 * Whoever is not waited for is not asked: somebody waits for it and finds out, or knows of somebody
 * who has, and tells all. Now and then everybody is asked, in case that one is dead, too. */
static void ask_missing(struct coll_comm *c, const struct coll_wait *w, bool all)
{
	for (uint32_t i = 0; i < c->size; i++) {
		bool missing = w->what & (COLL_FOR_NET | COLL_FOR_FAR) &&
			       (!w->missing || w->missing(w->arg, i));

		if (c->peer[i].host != c->host) {
			if (c->net && (missing || all))
				ask(c, i);
		} else if (!coll_shm_alive(&c->shm, c->peer[i].local))
			coll_comm_lost(c, i, -EOWNERDEAD);
	}
}

/* ---- waiting ---- */

static uint32_t events(const struct coll_comm *c)
{
	return atomic_load_explicit(&c->shm.head->events, memory_order_acquire);
}

void coll_wait_begin(struct coll_comm *c, struct coll_wait *w, int what)
{
	w->what = c->net ? what : what & ~COLL_FOR_NET;
	w->turns = w->idle = 0;
	w->since = 0;
	w->wanted = false;
	w->nap = NAP_MPI;
	w->check = 0;
	w->checks = 0;
	w->missing = NULL;
	w->arg = NULL;
	w->seen = events(c);
}

/* Returns how much has happened. */
static int nap(struct coll_comm *c, struct coll_wait *w)
{
	struct timespec moment = {.tv_nsec = (long)w->nap};
	uint64_t ns = NAP_SHM;

	if (w->what & COLL_FOR_MPI) {
		w->nap = w->nap + w->nap / 8 < NAP_MOST ? w->nap + w->nap / 8 : NAP_MOST;
		nanosleep(&moment, NULL);
		return 0;
	}
	if (!(w->what & COLL_FOR_SHM))
		return coll_net_nap();
	if (w->what & (COLL_FOR_NET | COLL_FOR_FAR))
		ns = w->what & COLL_FOR_NET ? NAP_BOTH : NAP_FAR;
	coll_shm_sleep(&c->shm, w->seen, ns);
	return events(c) != w->seen;
}

/* Also who waits for shared memory only has to hear the answers, and what others tell. */
static void look(struct coll_comm *c, struct coll_wait *w)
{
	if (c->net)
		coll_net_progress();
	ask_missing(c, w, ++w->checks % ASK_ALL == 0);
}

static void check(struct coll_comm *c, struct coll_wait *w)
{
	uint64_t now = util_now_ns();

	if (w->check && now >= w->check)
		look(c, w);
	if (!w->check || now >= w->check)
		w->check = now + ASK_EVERY;
}

/* Whether nothing has happened for a short while only. */
static bool awake(struct coll_wait *w)
{
	uint64_t now = util_now_ns();

	if (!w->since)
		w->since = now;
	return now - w->since < (w->wanted ? AWAKE_NS : ALONE_NS);
}

static void yield_core(struct coll_wait *w)
{
	uint64_t from = util_now_ns();

	sched_yield();
	if (util_now_ns() - from > QUICK_NS)
		w->wanted = true;
}

/* Also of who waits for shared memory only: others may wait for what it has written. */
static bool has_to_help(const struct coll_comm *c)
{
	return c->net && atomic_load_explicit(&c->pending, memory_order_acquire) &&
	       !coll_net_moves();
}

int coll_wait(struct coll_comm *c, struct coll_wait *w)
{
	uint32_t seen = events(c);

	if (!(w->what & COLL_FOR_NET) && has_to_help(c))
		w->what |= COLL_FOR_NET;

	if (coll_comm_broken(c))
		return atomic_load(&c->err);
	/* Also where something happens all the time, which need not be for us. */
	if (++w->turns % MPI_EVERY == 0)
		check(c, w);
	if (w->what & COLL_FOR_NET && coll_net_progress()) {
		w->since = 0;
	} else if (w->what & COLL_FOR_SHM && seen != w->seen) {
		w->seen = seen;
		w->since = 0;
	} else if (awake(w)) {
		if (++w->idle % MPI_EVERY == 0)
			mpi_turn(c, w);
		yield_core(w);
	} else {
		check(c, w);
		if (nap(c, w))
			w->since = 0;
		else
			mpi_turn(c, w);
	}
	return 0;
}

int coll_wait_mpi(struct coll_comm *c, MPI_Request *req)
{
	struct coll_wait w;
	int done = 0, ret;

	coll_wait_begin(c, &w, COLL_FOR_NET | COLL_FOR_MPI);
	do {
		ret = PMPI_Test(req, &done, MPI_STATUS_IGNORE) ? -EIO : 0;
		if (!ret && !done)
			ret = coll_wait(c, &w);
	} while (!done && !ret);
	return ret;
}
