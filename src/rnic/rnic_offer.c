/* A poller that finds nothing: somebody may need its core to produce what it waits for.
 *
 * One that polls alone yields. Where several threads of the process poll, that can do great harm:
 * mostly they do so inside a library that has a lock of its own (MPICH, UCX), so who yields has
 * that lock, and the core goes to one of the others, which finds the lock taken and sleeps on it,
 * and back. Where processes are scheduled in groups (sessions, containers), Linux 6.18 then keeps
 * going back and forth between these two, a hundred thousand times in a second, and whoever else
 * wants the core, of any process, waits for seconds; half a minute in the worst case seen. So they
 * sleep until something comes, once a yield has shown that the core is wanted.
 */
#include <poll.h>
#include <sched.h>
#include <time.h>
#include "util_clock.h"
#include "rnic_engine.h"

/* Empty polls in a row before the poller offers its core to others: few when somebody
 * took the offer last time, many when nobody did, because asking costs latency. */
#define YIELD_MIN      8
#define YIELD_MAX      256
#define YIELD_TAKEN_NS (5 * UTIL_NS_PER_US)
/* So long after a change of pollers there are several, ... */
#define SEVERAL_NS (10 * UTIL_NS_PER_MS)
/* ... and so long after an offer was taken they sleep, before the next is made. */
#define CROWDED_NS (10 * UTIL_NS_PER_MS)
/* At most so long at a time: what comes by a way that is not ours (memory that is shared with the
 * next process, say) wakes nobody here, and others may wait for the library's lock. Three threads
 * in each of eight ranks on two cores: with half of it everything takes a fifth longer. */
#define NAP_NS (100 * UTIL_NS_PER_US)

void rnic_offer_init(struct rnic_engine *e)
{
	atomic_store(&e->yield_after, YIELD_MIN);
}

static bool several(struct rnic_engine *e, uint64_t now)
{
	uint64_t changed = atomic_load_explicit(&e->poller_changed, memory_order_relaxed);

	return changed && now < changed + SEVERAL_NS;
}

static void nap(struct rnic_engine *e, uint64_t now, uint64_t until)
{
	uint64_t end = until < now + NAP_NS ? until : now + NAP_NS;
	struct pollfd pfd = {.fd = e->epfd, .events = POLLIN};
	struct timespec ts = {.tv_nsec = (long)(end - now)};

	/* The progress thread stays parked: whatever comes wakes us. */
	atomic_store_explicit(&e->last_poll, end, memory_order_relaxed);
	ppoll(&pfd, 1, &ts, NULL);
	atomic_store_explicit(&e->last_poll, util_now_ns(), memory_order_relaxed);
}

static void yield(struct rnic_engine *e, uint64_t now, unsigned int after)
{
	sched_yield();
	if (util_now_ns() - now > YIELD_TAKEN_NS) {
		after = YIELD_MIN;
		atomic_store_explicit(&e->crowded_until, now + CROWDED_NS, memory_order_relaxed);
	} else if (after < YIELD_MAX) {
		after *= 2;
	}
	atomic_store_explicit(&e->yield_after, after, memory_order_relaxed);
}

void rnic_offer_core(struct rnic_engine *e, uint64_t until)
{
	unsigned int after = atomic_load_explicit(&e->yield_after, memory_order_relaxed);
	uint64_t now;

	if (atomic_fetch_add_explicit(&e->empty_polls, 1, memory_order_relaxed) < after)
		return;
	now = util_now_ns();
	if (until > now && several(e, now) &&
	    now < atomic_load_explicit(&e->crowded_until, memory_order_relaxed))
		nap(e, now, until);
	else
		yield(e, now, after);
	atomic_store_explicit(&e->empty_polls, 0, memory_order_relaxed);
}
