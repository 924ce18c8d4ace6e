/* A lock for what takes microseconds at most: taken with one atomic operation, given back with a
 * store. A pthread mutex needs an atomic operation at both ends, to learn whether somebody
 * sleeps; on the way of a message through shared memory that was a seventh of the time.
 *
 * Who waits spins for a moment, then sleeps until it is woken. Whoever gives the lock back looks
 * for sleepers, without the fence that would make sure to see one who is just about to sleep: so
 * nobody sleeps for more than two milliseconds at a time. It takes a store that is on its
 * way for longer than a system call takes to begin, so that hardly ever matters.
 *
 * There is no queue. Who takes the lock again and again, as those do that poll, asks
 * util_lock_wanted and lets others go first.
 */
#ifndef WEFT_UTIL_LOCK_H
#define WEFT_UTIL_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero is open. */
struct util_lock {
	atomic_uint held;
	atomic_uint waiting; /* how many, ... */
	atomic_uint asleep;  /* ... and how many of them sleep */
};

static inline bool util_trylock(struct util_lock *l)
{
	/* relaxed: keeps those that try in vain from taking the line away from the holder.
	 * acquire: what the last holder did is seen. */
	return !atomic_load_explicit(&l->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&l->held, 1, memory_order_acquire);
}

/* Whether somebody waits. A hint. */
static inline bool util_lock_wanted(struct util_lock *l)
{
	return atomic_load_explicit(&l->waiting, memory_order_relaxed);
}

/* Out of line; use util_lock and util_unlock. Until `deadline` (util_now_ns; UINT64_MAX: for
 * ever). False: it has passed. */
bool util_lock_wait(struct util_lock *l, uint64_t deadline);
void util_lock_wake(struct util_lock *l);

static inline void util_lock(struct util_lock *l)
{
	if (atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
		util_lock_wait(l, UINT64_MAX);
}

static inline void util_unlock(struct util_lock *l)
{
	/* release: pairs with the acquire of the next holder. relaxed: see above. */
	atomic_store_explicit(&l->held, 0, memory_order_release);
	if (atomic_load_explicit(&l->asleep, memory_order_relaxed))
		util_lock_wake(l);
}

#endif
