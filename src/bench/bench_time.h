/* Time for measuring loops: one monotonic clock, and deadlines that cost nothing to
 * carry through a spin loop. */
#ifndef WEFT_BENCH_TIME_H
#define WEFT_BENCH_TIME_H

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

/* For spin loops: looks at the clock once in 1,024 turns, so that the bound on the
 * loop does not show up in what the loop measures. */
static inline bool bench_expired(uint32_t *spins, uint64_t deadline)
{
	return (++*spins & 1023) == 0 && bench_now() > deadline;
}

#endif
