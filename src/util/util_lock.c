#include <sched.h>
#include <time.h>
#include "util_clock.h"
#include "util_lock.h"

#define SPINS  100
#define YIELDS 1000
#define NAP_NS (50 * UTIL_NS_PER_US)

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

static bool try(struct util_lock *l)
{
	return !atomic_load_explicit(&l->held, memory_order_relaxed) &&
	       !atomic_exchange_explicit(&l->held, 1, memory_order_acquire);
}

bool util_lock_wait(struct util_lock *l, uint64_t deadline)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	bool got;

	atomic_fetch_add_explicit(&l->waiting, 1, memory_order_relaxed);
	for (unsigned int i = 0; !(got = try(l)); i++) {
		if (deadline != UINT64_MAX && util_now_ns() >= deadline)
			break;
		if (i < SPINS)
			relax();
		else if (i < SPINS + YIELDS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_relaxed);
	return got;
}
