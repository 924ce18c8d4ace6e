/* The trampolines of verbs_tramp.S for processors that it does not know: slower, since
 * every call copies its arguments, but in C. Needs GCC.
 *
 * WEFT_VERBS_TRAMP_C chooses them on any processor, for tests. */
#include "verbs_real.h"

#include <stdatomic.h>

#if (!defined(__x86_64__) && !defined(__aarch64__)) || defined(WEFT_VERBS_TRAMP_C)

/* More bytes of stacked arguments than any libibverbs function has. */
#define STACK_ARGS 64

#define VERBS_FORWARD(i, n, v, kind) +1
#define VERBS_COMPAT(i, n, v, kind)  +1
#define VERBS_REAL(i, n, v, kind)    +1
#define VERBS_ABSENT(i, n, v, kind)  +1
#define VERBS_OBJECT(n, v, size)
extern VERBS_HIDDEN void *_Atomic verbs_real_slot[];
void *_Atomic verbs_real_slot[0
#include "verbs_real.def"
];
#undef VERBS_FORWARD
#undef VERBS_COMPAT
#undef VERBS_REAL
#undef VERBS_ABSENT

/* The symbols have other types elsewhere; here only their names matter. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define TRAMP(i, symbol)                                                                           \
	void *symbol(void *unused)                                                                 \
	{                                                                                          \
		void *args = __builtin_apply_args();                                               \
		void *target = atomic_load_explicit(&verbs_real_slot[i], memory_order_relaxed);    \
                                                                                                   \
		(void)unused;                                                                      \
		if (!target)                                                                       \
			target = verbs_real_resolve(i);                                            \
		__builtin_return(__builtin_apply((void (*)(void))target, args, STACK_ARGS));       \
	}

#define VERBS_FORWARD(i, n, v, kind) VERBS_EXPORT TRAMP(i, n)
#define VERBS_COMPAT(i, n, v, kind)                                                                \
	VERBS_EXPORT TRAMP(i, verbs_compat_##i) __asm__(".symver verbs_compat_" #i ", " #n "@" #v);
#define VERBS_REAL(i, n, v, kind)   VERBS_HIDDEN TRAMP(i, verbs_real_##n)
#define VERBS_ABSENT(i, n, v, kind) VERBS_HIDDEN TRAMP(i, verbs_real_##n)
#include "verbs_real.def"

#endif
