/* Time for measuring loops: one monotonic clock, and deadlines that cost nothing to
 * carry through a spin loop. */
#ifndef WEFT_BENCH_TIME_H
#define WEFT_BENCH_TIME_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define BENCH_MS 1000000ull
#define BENCH_S  1000000000ull

static inline uint64_t bench_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * BENCH_S + (uint64_t)ts.tv_nsec;
}

/* For loops that spin on a raw socket: after many empty turns in a row, lets somebody else
 * have the core. Where nobody wants it, it costs a system call among hundreds; on a busy
 * machine a process that spins on and on is put off for whole time slices when its
 * message comes. Polling a verbs device has the same manners. */
static inline void bench_yield(uint32_t *empty)
{
	if ((++*empty & 127) == 0)
		sched_yield();
}

/* For spin loops: looks at the clock once in 1,024 turns, so that the bound on the
 * loop does not show up in what the loop measures. */
static inline bool bench_expired(uint32_t *spins, uint64_t deadline)
{
	return (++*spins & 1023) == 0 && bench_now() > deadline;
}

#endif
