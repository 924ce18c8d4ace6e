/* Faults in registered memory become errors.
 *
 * Hardware pins what is registered; a library cannot. An application that unmaps a
 * registered buffer, and a peer that then reads it, must not bring the process down.
 * Asking the kernel before every copy would cost a system call, so the copy simply
 * happens, and a fault inside it jumps back out. Every other fault is handed to
 * whoever handled it before.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>
#include "util_device.h"
#include "wire_crc32c.h"
#include "rnic_mem.h"
#include "rnic_tune.h"

/* initial-exec: the handler must not allocate thread-local storage. */
static __thread __attribute__((tls_model("initial-exec"))) sigjmp_buf *volatile guard;
static struct sigaction old_segv, old_bus;

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	const struct sigaction *old = sig == SIGBUS ? &old_bus : &old_segv;

	if (guard) {
		/* As it was, whoever stands between the kernel and us: ThreadSanitizer
		 * blocks everything, and the next fault would be the last. */
		pthread_sigmask(SIG_SETMASK, &((ucontext_t *)uc)->uc_sigmask, NULL);
		siglongjmp(*guard, 1);
	}
	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(sig, info, uc);
	} else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
		old->sa_handler(sig);
	} else {
		/* Not ours and nobody's: restore the default; the instruction runs again
		 * and the process dies of its own fault, core and all. */
		signal(sig, SIG_DFL);
		if (info->si_code <= 0)
			raise(sig); /* sent by kill(2): it would not come again */
	}
}

static void install(void)
{
	struct sigaction sa = {.sa_sigaction = on_fault,
			       .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

	if (!util_tune_bool(rnic_tune(RNIC_TUNE_GUARD)))
		return;
	sigemptyset(&sa.sa_mask);
	sigaction(SIGSEGV, &sa, &old_segv);
	sigaction(SIGBUS, &sa, &old_bus);
}

void rnic_guard_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, install);
}

/* sigsetjmp must be called from the frame that does the work, hence a macro. The
 * fences keep the compiler from moving the work out of the guarded region. (After a
 * fault there is no UTIL_DEVICE_END: ThreadSanitizer ends all of them before a handler.) */
#define GUARDED(work)                                                                              \
	do {                                                                                       \
		sigjmp_buf env;                                                                    \
		if (sigsetjmp(env, 0)) {                                                           \
			guard = NULL;                                                              \
			return RNIC_MEM_FAULT;                                                     \
		}                                                                                  \
		UTIL_DEVICE_BEGIN;                                                                 \
		guard = &env;                                                                      \
		atomic_signal_fence(memory_order_seq_cst);                                         \
		work;                                                                              \
		atomic_signal_fence(memory_order_seq_cst);                                         \
		guard = NULL;                                                                      \
		UTIL_DEVICE_END;                                                                   \
	} while (0)

enum rnic_mem_error rnic_guard_copy(void *dst, const void *src, size_t len)
{
	GUARDED(memcpy(dst, src, len));
	return RNIC_MEM_OK;
}

enum rnic_mem_error rnic_guard_copy_crc(void *dst, const void *src, size_t len, uint32_t *crc)
{
	GUARDED(*crc = wire_crc32c_copy(*crc, dst, src, len));
	return RNIC_MEM_OK;
}

enum rnic_mem_error rnic_guard_crc(const void *data, size_t len, uint32_t *crc)
{
	GUARDED(*crc = wire_crc32c(*crc, data, len));
	return RNIC_MEM_OK;
}

/* sequentially consistent: stands in for the atomic unit of an adapter, which every
 * other agent sees in one order */
enum rnic_mem_error rnic_guard_fetch_add(uint64_t *word, uint64_t add, uint64_t *old)
{
	GUARDED(*old = __atomic_fetch_add(word, add, __ATOMIC_SEQ_CST));
	return RNIC_MEM_OK;
}

enum rnic_mem_error rnic_guard_cmp_swap(uint64_t *word, uint64_t compare, uint64_t swap,
					uint64_t *old)
{
	*old = compare;
	GUARDED(__atomic_compare_exchange_n(word, old, swap, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST));
	return RNIC_MEM_OK;
}
