#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_lock.h"

#define SPINS    100
#define SLEEP_NS (2 * UTIL_NS_PER_MS)

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb");
#endif
}

static void futex(struct util_lock *l, int op, unsigned int value, const struct timespec *ts)
{
	syscall(SYS_futex, &l->held, op | FUTEX_PRIVATE_FLAG, value, ts, NULL, 0);
}

void util_lock_wake(struct util_lock *l)
{
	futex(l, FUTEX_WAKE, 1, NULL);
}

bool util_lock_wait(struct util_lock *l, uint64_t deadline)
{
	const struct timespec ts = {.tv_nsec = SLEEP_NS};
	bool got;

	atomic_fetch_add_explicit(&l->waiting, 1, memory_order_relaxed);
	for (unsigned int i = 0; !(got = util_trylock(l)); i++) {
		if (deadline != UINT64_MAX && util_now_ns() >= deadline)
			break;
		if (i % SPINS != SPINS - 1) {
			relax();
			continue;
		}
		atomic_fetch_add_explicit(&l->asleep, 1, memory_order_relaxed);
		futex(l, FUTEX_WAIT, 1, &ts);
		atomic_fetch_sub_explicit(&l->asleep, 1, memory_order_relaxed);
	}
	atomic_fetch_sub_explicit(&l->waiting, 1, memory_order_relaxed);
	return got;
}
