#include <complex.h>
#include <errno.h>
#include <string.h>
#include "ofi_atomic.h"

/* What can be done with values of a type. */
enum { ORDER = 1, BITS = 2 };

struct type {
	size_t size;
	unsigned int can;
	void (*apply)(unsigned int op, uint8_t *target, const uint8_t *operand,
		      const uint8_t *compare, uint8_t *result, size_t n);
};

/* ---- one value ------------------------------------------------------------------------------- */

/* Integers are added and multiplied without a sign: they wrap, and no width is promoted to one
 * that may not. `t` is what is there, `a` the operand, `c` what it is compared with. */
#define INT_SUM(T)   ((T)((uint64_t)t + (uint64_t)a))
#define INT_PROD(T)  ((T)((uint64_t)t * (uint64_t)a))
#define REAL_SUM(T)  (t + a)
#define REAL_PROD(T) (t * a)

#define COMMON_CASES(T, SUM, PROD)                                                                 \
	case FI_SUM:                                                                               \
		return SUM(T);                                                                     \
	case FI_PROD:                                                                              \
		return PROD(T);                                                                    \
	case FI_LOR:                                                                               \
		return (T)(t != 0 || a != 0);                                                      \
	case FI_LAND:                                                                              \
		return (T)(t != 0 && a != 0);                                                      \
	case FI_LXOR:                                                                              \
		return (T)((t != 0) != (a != 0));                                                  \
	case FI_ATOMIC_WRITE:                                                                      \
		return a;                                                                          \
	case FI_CSWAP:                                                                             \
		return c == t ? a : t;                                                             \
	case FI_CSWAP_NE:                                                                          \
		return c != t ? a : t;

#define ORDER_CASES                                                                                \
	case FI_MIN:                                                                               \
		return a < t ? a : t;                                                              \
	case FI_MAX:                                                                               \
		return a > t ? a : t;                                                              \
	case FI_CSWAP_LE:                                                                          \
		return c <= t ? a : t;                                                             \
	case FI_CSWAP_LT:                                                                          \
		return c < t ? a : t;                                                              \
	case FI_CSWAP_GE:                                                                          \
		return c >= t ? a : t;                                                             \
	case FI_CSWAP_GT:                                                                          \
		return c > t ? a : t;

#define BIT_CASES(T)                                                                               \
	case FI_BOR:                                                                               \
		return (T)(t | a);                                                                 \
	case FI_BAND:                                                                              \
		return (T)(t & a);                                                                 \
	case FI_BXOR:                                                                              \
		return (T)(t ^ a);                                                                 \
	case FI_MSWAP:                                                                             \
		return (T)((a & c) | (t & ~c));

/* ---- memory ---------------------------------------------------------------------------------- */

/* The application's own processor works on that memory, too (Open MPI's one-sided operations lock
 * and count with it), so what it can do in one step is done in one step here. The rest is atomic
 * among operations of peers only. */
#define IN_ONE_STEP(_) _(uint8_t) _(uint16_t) _(uint32_t) _(uint64_t)

static bool in_one_step(const void *at, size_t size)
{
	return size <= 8 && !(size & (size - 1)) && (uintptr_t)at % size == 0;
}

static void load(void *to, const void *at, size_t size)
{
#define CASE(T)                                                                                    \
	case sizeof(T):                                                                            \
		__atomic_load((const T *)at, (T *)to, __ATOMIC_SEQ_CST);                           \
		return;
	if (in_one_step(at, size))
		switch (size) {
			IN_ONE_STEP(CASE)
		}
#undef CASE
	memcpy(to, at, size);
}

/* False: it was no longer the old value. */
static bool replace(void *at, void *old, void *new, size_t size)
{
#define CASE(T)                                                                                    \
	case sizeof(T):                                                                            \
		return __atomic_compare_exchange((T *)at, (T *)old, (T *)new, false,               \
						 __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	if (in_one_step(at, size))
		switch (size) {
			IN_ONE_STEP(CASE)
		}
#undef CASE
	memcpy(at, new, size);
	return true;
}

/* ---- many ------------------------------------------------------------------------------------ */

/* Buffers need not be aligned: values are copied. The cases are statements. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define DEFINE(name, T, CASES)                                                                     \
	static T one_##name(unsigned int op, T t, T a, T c)                                        \
	{                                                                                          \
		(void)c;                                                                           \
		switch (op) {                                                                      \
			CASES                                                                      \
		default: /* FI_ATOMIC_READ */                                                      \
			return t;                                                                  \
		}                                                                                  \
	}                                                                                          \
	static void apply_##name(unsigned int op, uint8_t *target, const uint8_t *operand,         \
				 const uint8_t *compare, uint8_t *result, size_t n)                \
	{                                                                                          \
		for (size_t i = 0; i < n; i++) {                                                   \
			size_t at = i * sizeof(T);                                                 \
			T t, a = 0, c = 0, r;                                                      \
                                                                                                   \
			if (operand)                                                               \
				memcpy(&a, operand + at, sizeof(T));                               \
			if (compare)                                                               \
				memcpy(&c, compare + at, sizeof(T));                               \
			do {                                                                       \
				load(&t, target + at, sizeof(T));                                  \
				r = one_##name(op, t, a, c);                                       \
			} while (operand && !replace(target + at, &t, &r, sizeof(T)));             \
			if (result)                                                                \
				memcpy(result + at, &t, sizeof(T));                                \
		}                                                                                  \
	}
/* NOLINTEND(bugprone-macro-parentheses) */

#define INT_CASES(T)     COMMON_CASES(T, INT_SUM, INT_PROD) ORDER_CASES BIT_CASES(T)
#define REAL_CASES(T)    COMMON_CASES(T, REAL_SUM, REAL_PROD) ORDER_CASES
#define COMPLEX_CASES(T) COMMON_CASES(T, REAL_SUM, REAL_PROD)

#define TYPES(_)                                                                                   \
	_(FI_INT8, i8, int8_t, INT_CASES, ORDER | BITS)                                            \
	_(FI_UINT8, u8, uint8_t, INT_CASES, ORDER | BITS)                                          \
	_(FI_INT16, i16, int16_t, INT_CASES, ORDER | BITS)                                         \
	_(FI_UINT16, u16, uint16_t, INT_CASES, ORDER | BITS)                                       \
	_(FI_INT32, i32, int32_t, INT_CASES, ORDER | BITS)                                         \
	_(FI_UINT32, u32, uint32_t, INT_CASES, ORDER | BITS)                                       \
	_(FI_INT64, i64, int64_t, INT_CASES, ORDER | BITS)                                         \
	_(FI_UINT64, u64, uint64_t, INT_CASES, ORDER | BITS)                                       \
	_(FI_FLOAT, f, float, REAL_CASES, ORDER)                                                   \
	_(FI_DOUBLE, d, double, REAL_CASES, ORDER)                                                 \
	_(FI_FLOAT_COMPLEX, fc, float complex, COMPLEX_CASES, 0)                                   \
	_(FI_DOUBLE_COMPLEX, dc, double complex, COMPLEX_CASES, 0)                                 \
	_(FI_LONG_DOUBLE, ld, long double, REAL_CASES, ORDER)                                      \
	_(FI_LONG_DOUBLE_COMPLEX, ldc, long double complex, COMPLEX_CASES, 0)

#define DEFINE_TYPE(id, name, T, CASES, can) DEFINE(name, T, CASES(T))
TYPES(DEFINE_TYPE)

#define ENTRY(id, name, T, CASES, can_do) [id] = {sizeof(T), can_do, apply_##name},
static const struct type types[] = {TYPES(ENTRY)};

/* ---- which of them --------------------------------------------------------------------------- */

static const struct type *type_of(unsigned int type)
{
	return type < sizeof(types) / sizeof(types[0]) ? &types[type] : NULL;
}

size_t ofi_atomic_size(unsigned int type)
{
	return type_of(type) ? type_of(type)->size : 0;
}

static unsigned int needs(unsigned int op)
{
	switch (op) {
	case FI_MIN:
	case FI_MAX:
	case FI_CSWAP_LE:
	case FI_CSWAP_LT:
	case FI_CSWAP_GE:
	case FI_CSWAP_GT:
		return ORDER;
	case FI_BOR:
	case FI_BAND:
	case FI_BXOR:
	case FI_MSWAP:
		return BITS;
	default:
		return 0;
	}
}

bool ofi_atomic_valid(enum ofi_atomic_class class, unsigned int type, unsigned int op)
{
	bool compares = op >= FI_CSWAP && op <= FI_MSWAP;

	if (!type_of(type) || op > FI_MSWAP || needs(op) & ~type_of(type)->can)
		return false;
	if (op == FI_ATOMIC_READ)
		return class == OFI_ATOMIC_FETCH;
	return compares == (class == OFI_ATOMIC_COMPARE);
}

int ofi_atomic_job(const struct msg_atomic_job *job)
{
	enum ofi_atomic_class class = job->compare  ? OFI_ATOMIC_COMPARE
				      : job->result ? OFI_ATOMIC_FETCH
						    : OFI_ATOMIC_WRITE;
	const struct type *type = type_of(job->type);

	if (!ofi_atomic_valid(class, job->type, job->code) || job->count * type->size != job->len ||
	    !job->operand != (job->code == FI_ATOMIC_READ))
		return -EINVAL;
	type->apply(job->code, job->target, job->operand, job->compare, job->result, job->count);
	return 0;
}
