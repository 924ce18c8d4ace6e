/* A lock for what takes microseconds at most: taken with one atomic operation, given back with a
 * store. A pthread mutex needs an atomic operation at both ends, to learn whether somebody
 * sleeps; on the way of a message through shared memory that was a seventh of the time.
 *
 * Who waits spins for a moment, then offers the core, then naps: on a machine with fewer cores than
 * threads the holder is often not running, and under real-time scheduling offering the core is
 * not enough. While somebody waits, util_trylock fails: who tries again and again, as those do
 * that poll, does not keep others out.
 */
#ifndef WEFT_UTIL_LOCK_H
#define WEFT_UTIL_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* All zero is open. */
struct util_lock {
	atomic_uint held;
	atomic_uint waiting; /* how many */
};

static inline bool util_trylock(struct util_lock *l)
{
	/* relaxed: a courtesy, nothing is concluded from it. The looks also keep those that try
	 * in vain from taking the line away from the holder. */
	if (atomic_load_explicit(&l->waiting, memory_order_relaxed) ||
	    atomic_load_explicit(&l->held, memory_order_relaxed))
		return false;
	/* acquire: what the last holder did is seen */
	return !atomic_exchange_explicit(&l->held, 1, memory_order_acquire);
}

/* Until `deadline` (util_now_ns; UINT64_MAX: for ever). False: it has passed. */
bool util_lock_wait(struct util_lock *l, uint64_t deadline);

static inline void util_lock(struct util_lock *l)
{
	if (atomic_exchange_explicit(&l->held, 1, memory_order_acquire))
		util_lock_wait(l, UINT64_MAX);
}

static inline void util_unlock(struct util_lock *l)
{
	/* release: pairs with the acquire of the next holder */
	atomic_store_explicit(&l->held, 0, memory_order_release);
}

#endif
