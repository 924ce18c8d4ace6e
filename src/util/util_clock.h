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

#endif
