/* The one clock: monotonic nanoseconds. Callable from any thread.
 *
 * Modules that make decisions over time take `now` as an argument, so that tests
 * can inject it; only the edges of the program read this clock.
 */
#ifndef WEFT_UTIL_CLOCK_H
#define WEFT_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define UTIL_NS_PER_US UINT64_C(1000)
#define UTIL_NS_PER_MS UINT64_C(1000000)
#define UTIL_NS_PER_S  UINT64_C(1000000000)

static inline uint64_t util_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UTIL_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* CPU time, of a thread for instance; UINT64_MAX: there is no such clock (any more). */
static inline uint64_t util_cpu_ns(clockid_t clock)
{
	struct timespec ts;

	return clock_gettime(clock, &ts)
		       ? UINT64_MAX
		       : (uint64_t)ts.tv_sec * UTIL_NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* What is left until then, for calls that wait; NULL, for ever, if that is UINT64_MAX. */
static inline struct timespec *util_left(uint64_t until, struct timespec *ts)
{
	uint64_t now, left;

	if (until == UINT64_MAX)
		return NULL;
	now = util_now_ns();
	left = until > now ? until - now : 0;
	ts->tv_sec = (time_t)(left / UTIL_NS_PER_S);
	ts->tv_nsec = (long)(left % UTIL_NS_PER_S);
	return ts;
}

#endif
