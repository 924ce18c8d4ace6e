/* What a read that finds nothing does, for all endpoints of the process together: who sleeps while
 * it reads one queue must be woken by what comes for another. */
#include <sched.h>
#include "util_clock.h"
#include "ofi.h"

static struct ofi_watch all = {.epoll = -1, .event = -1};
static struct util_lock idle_lock; /* of the next four: one thread waits, others come and go */
static struct ofi_wait wait;
static uint64_t yields, sleeps;
static uint32_t empties;
static atomic_bool came; /* something, since the last empty read */

/* Empty reads. As long as a queue is polled, the device's thread leaves all of them alone, also
 * those of endpoints that nobody polls: what these have to do next must not wait for their owner.
 */
#define OTHERS_EVERY 16

int ofi_idle_add(struct ofi_ep *ep)
{
	return ofi_watch_add(&all, ep);
}

void ofi_idle_remove(struct ofi_ep *ep)
{
	ofi_watch_remove(&all, ep);
}

void ofi_idle_fini(void)
{
	ofi_watch_fini(&all);
	ofi_watch_init(&all);
}

void ofi_idle_notify(void)
{
	ofi_watch_notify(&all);
}

void ofi_idle_busy(void)
{
	/* relaxed: a hint. Reading first keeps the line shared. */
	if (!atomic_load_explicit(&came, memory_order_relaxed))
		atomic_store_explicit(&came, true, memory_order_relaxed);
}

void ofi_idle_stats(uint64_t *y, uint64_t *s)
{
	util_lock(&idle_lock);
	*y = yields;
	*s = sleeps;
	util_unlock(&idle_lock);
}

/* All endpoints of the process tell what they have done. */
void ofi_idle_tell(void)
{
	util_lock(&all.lock);
	for (uint32_t i = 0; i < all.n; i++)
		ofi_stats_print(all.ep[i]);
	util_unlock(&all.lock);
}

static bool step(bool may_sleep)
{
	uint64_t now = ofi_wait_wants_time(&wait) ? util_cpu_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
	enum ofi_wait_step what = ofi_wait_empty(&ofi_conf.wait, &wait, now);
	bool again = true;

	if (++empties % OTHERS_EVERY == 0)
		ofi_watch_progress(&all);
	if (what == OFI_STEP_RETURN)
		return false;
	if (what == OFI_STEP_SLEEP && may_sleep) {
		sleeps++;
		now = util_now_ns();
		again = !ofi_watch_arm(&all) || ofi_watch_sleep(&all, ofi_conf.wait.sleep_ns);
		ofi_wait_slept(&ofi_conf.wait, &wait, again, util_now_ns() - now);
	} else {
		yields++;
		sched_yield();
	}
	return again;
}

bool ofi_idle_empty(bool may_sleep)
{
	bool again;

	if (!util_trylock(&idle_lock))
		return false;
	if (atomic_load_explicit(&came, memory_order_relaxed)) {
		atomic_store_explicit(&came, false, memory_order_relaxed);
		ofi_wait_came(&wait);
	}
	again = step(may_sleep);
	util_unlock(&idle_lock);
	return again;
}
