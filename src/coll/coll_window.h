/* How far a broadcast may run ahead of those who have not come. Pure.
 *
 * A broadcast's root hears from nobody, so two banks, which are safe where everybody hears from
 * everybody (coll_bank.h), would be written to again while somebody still reads. Broadcasts have
 * memory of their own instead. What they send is cut into parts, which a communicator counts, from
 * 0 on and over all its broadcasts, the same on every rank. Part b goes to slot b mod 2 len of the
 * host that gets it. Slots are used in two halves of len parts each; half n is parts n len up to
 * (n + 1) len.
 *
 *	Whoever writes a part of half n to a host knows that all ranks of that host have left
 *	half n - 2, which was in the same slots.
 *
 * It knows from a flag, one per host and bank n mod 2, that somebody of that host has set in
 * the writer's host, to n / 2. Flags are compared for equality: so there is nothing to set for
 * the first two halves, and a number of which a byte is still missing does not count. Whoever
 * comes to a part of half n, or waits in it, sets the flag of the host that it gets the part
 * from, if nobody of its own host has: one small write in len parts, by somebody who would wait
 * anyway, to somebody who can not go on without. So it never meets a rank that has left, nor
 * overtakes the one before it, which was needed for a part that has come since.
 *
 * The writer waits for nobody but at the first part of a half, and there for one rank of each
 * host to have come, and for all to have left what is more than len parts behind.
 * test_coll_window.c tries all that can happen to a few ranks.
 */
#ifndef WEFT_COLL_WINDOW_H
#define WEFT_COLL_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Parts of a half, a power of two. */
#define COLL_WINDOW_HALF 16u
#define COLL_WINDOW      (2 * COLL_WINDOW_HALF)

static inline uint32_t coll_window_slot(uint32_t len, uint32_t part)
{
	return part % (2 * len);
}

static inline uint32_t coll_window_half(uint32_t len, uint32_t part)
{
	return part / len;
}

/* The flag that allows to write parts of this half. */
static inline uint32_t coll_window_bank(uint32_t half)
{
	return half & 1;
}

static inline uint32_t coll_window_value(uint32_t half)
{
	return half >> 1;
}

/* Whether a rank that has left so many parts has left the half before the one before this. */
static inline bool coll_window_left(uint32_t len, uint32_t half, uint32_t parts)
{
	return (int32_t)(parts - (half - 1) * len) >= 0;
}

#endif
