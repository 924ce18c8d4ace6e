/* Operators on types. */
#include <complex.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "ofi_atomic.h"

static int run(unsigned int type, unsigned int op, void *target, const void *operand,
	       const void *compare, void *result, uint32_t count)
{
	struct msg_atomic_job job = {.code = (uint8_t)op,
				     .type = (uint8_t)type,
				     .count = count,
				     .len = count * ofi_atomic_size(type),
				     .target = target,
				     .operand = operand,
				     .compare = compare,
				     .result = result};

	return ofi_atomic_job(&job);
}

#define CHECK(TYPE, T, OP, before, operand, after)                                                 \
	do {                                                                                       \
		T t_[2] = {(before), (before)}, a_[2] = {(operand), (operand)}, r_[2] = {0, 0};    \
                                                                                                   \
		assert_int_equal(run(TYPE, OP, t_, a_, NULL, r_, 2), 0);                           \
		assert_true(t_[0] == (after) && t_[1] == (after));                                 \
		assert_true(r_[0] == (before) && r_[1] == (before));                               \
		t_[0] = (before);                                                                  \
		assert_int_equal(run(TYPE, OP, t_, a_, NULL, NULL, 1), 0);                         \
		assert_true(t_[0] == (after));                                                     \
	} while (0)

#define CHECK_CSWAP(TYPE, T, OP, before, with, operand, after)                                     \
	do {                                                                                       \
		T t_ = (before), a_ = (operand), c_ = (with), r_ = 0;                              \
                                                                                                   \
		assert_int_equal(run(TYPE, OP, &t_, &a_, &c_, &r_, 1), 0);                         \
		assert_true(t_ == (after) && r_ == (before));                                      \
	} while (0)

#define CHECK_NUMBER(TYPE, T)                                                                      \
	do {                                                                                       \
		CHECK(TYPE, T, FI_MIN, 5, 3, 3);                                                   \
		CHECK(TYPE, T, FI_MIN, 3, 5, 3);                                                   \
		CHECK(TYPE, T, FI_MAX, 5, 3, 5);                                                   \
		CHECK(TYPE, T, FI_SUM, 5, 3, 8);                                                   \
		CHECK(TYPE, T, FI_PROD, 5, 3, 15);                                                 \
		CHECK(TYPE, T, FI_LOR, 0, 3, 1);                                                   \
		CHECK(TYPE, T, FI_LAND, 0, 3, 0);                                                  \
		CHECK(TYPE, T, FI_LXOR, 2, 3, 0);                                                  \
		CHECK(TYPE, T, FI_ATOMIC_WRITE, 2, 3, 3);                                          \
		CHECK_CSWAP(TYPE, T, FI_CSWAP, 4, 4, 9, 9);                                        \
		CHECK_CSWAP(TYPE, T, FI_CSWAP, 4, 5, 9, 4);                                        \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_NE, 4, 5, 9, 9);                                     \
		/* the comparison is: compare OP what is there */                                  \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_LE, 4, 4, 9, 9);                                     \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_LE, 4, 5, 9, 4);                                     \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_LT, 4, 3, 9, 9);                                     \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_LT, 4, 4, 9, 4);                                     \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_GE, 4, 5, 9, 9);                                     \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_GE, 4, 3, 9, 4);                                     \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_GT, 4, 5, 9, 9);                                     \
		CHECK_CSWAP(TYPE, T, FI_CSWAP_GT, 4, 4, 9, 4);                                     \
	} while (0)

#define CHECK_INTEGER(TYPE, T)                                                                     \
	do {                                                                                       \
		CHECK_NUMBER(TYPE, T);                                                             \
		CHECK(TYPE, T, FI_BOR, 5, 3, 7);                                                   \
		CHECK(TYPE, T, FI_BAND, 5, 3, 1);                                                  \
		CHECK(TYPE, T, FI_BXOR, 5, 3, 6);                                                  \
		CHECK_CSWAP(TYPE, T, FI_MSWAP, 0x5a, 0x0f, 0x33, 0x53);                            \
	} while (0)

#define CHECK_COMPLEX(TYPE, T)                                                                     \
	do {                                                                                       \
		CHECK(TYPE, T, FI_SUM, 1 + 2 * I, 3 + 4 * I, 4 + 6 * I);                           \
		CHECK(TYPE, T, FI_PROD, 1 + 2 * I, 3 + 4 * I, -5 + 10 * I);                        \
		CHECK(TYPE, T, FI_LAND, 2 * I, 3, 1);                                              \
		CHECK_CSWAP(TYPE, T, FI_CSWAP, 2 * I, 2 * I, 7, 7);                                \
	} while (0)

static void test_values(void **state)
{
	(void)state;
	CHECK_INTEGER(FI_INT8, int8_t);
	CHECK_INTEGER(FI_UINT8, uint8_t);
	CHECK_INTEGER(FI_INT16, int16_t);
	CHECK_INTEGER(FI_UINT16, uint16_t);
	CHECK_INTEGER(FI_INT32, int32_t);
	CHECK_INTEGER(FI_UINT32, uint32_t);
	CHECK_INTEGER(FI_INT64, int64_t);
	CHECK_INTEGER(FI_UINT64, uint64_t);
	CHECK_NUMBER(FI_FLOAT, float);
	CHECK_NUMBER(FI_DOUBLE, double);
	CHECK_NUMBER(FI_LONG_DOUBLE, long double);
	CHECK_COMPLEX(FI_FLOAT_COMPLEX, float complex);
	CHECK_COMPLEX(FI_DOUBLE_COMPLEX, double complex);
	CHECK_COMPLEX(FI_LONG_DOUBLE_COMPLEX, long double complex);
}

static void test_wrapping(void **state)
{
	(void)state;
	CHECK(FI_INT8, int8_t, FI_SUM, 127, 1, -128);
	CHECK(FI_UINT16, uint16_t, FI_PROD, 65535, 65535, 1);
	CHECK(FI_INT32, int32_t, FI_PROD, INT32_MIN, -1, INT32_MIN);
	CHECK(FI_INT64, int64_t, FI_SUM, INT64_MAX, 1, INT64_MIN);
	CHECK(FI_INT16, int16_t, FI_MIN, -1, 1, -1);
	CHECK(FI_UINT64, uint64_t, FI_MAX, UINT64_MAX, 1, UINT64_MAX);
}

static void test_read(void **state)
{
	uint32_t t[3] = {1, 2, 3}, r[3] = {0};

	(void)state;
	assert_int_equal(run(FI_UINT32, FI_ATOMIC_READ, t, NULL, NULL, r, 3), 0);
	assert_true(r[0] == 1 && r[2] == 3 && t[2] == 3);
}

static void test_unaligned(void **state)
{
	uint8_t t[9] = {0}, a[9] = {0}, r[9];

	(void)state;
	t[1] = 1;
	a[1] = 2;
	assert_int_equal(run(FI_UINT64, FI_SUM, t + 1, a + 1, NULL, r + 1, 1), 0);
	assert_int_equal(t[1], 3);
	assert_int_equal(r[1], 1);
}

/* What peers may send. */
static void test_refused(void **state)
{
	double d[2] = {1, 2}, r;
	struct msg_atomic_job job = {
		.code = FI_SUM, .type = FI_DOUBLE, .count = 2, .len = 8, .target = d, .operand = d};

	(void)state;
	assert_int_equal(ofi_atomic_job(&job), -EINVAL); /* the length is of one */
	assert_int_equal(run(FI_DOUBLE, FI_BOR, d, d, NULL, NULL, 1), -EINVAL);
	assert_int_equal(run(FI_DOUBLE, FI_CSWAP, d, d, NULL, &r, 1), -EINVAL);
	assert_int_equal(run(FI_DOUBLE, FI_SUM, d, d, d, &r, 1), -EINVAL);
	assert_int_equal(run(FI_DOUBLE, FI_SUM, d, NULL, NULL, &r, 1), -EINVAL);
	assert_int_equal(run(FI_DOUBLE, FI_ATOMIC_READ, d, d, NULL, &r, 1), -EINVAL);
	assert_int_equal(run(FI_DOUBLE, 200, d, d, NULL, NULL, 1), -EINVAL);
	assert_int_equal(run(FI_DOUBLE_COMPLEX, FI_MIN, d, d, NULL, NULL, 1), -EINVAL);
	for (unsigned int type = FI_DATATYPE_LAST; type < 256; type++)
		assert_int_equal(run(type, FI_SUM, d, d, NULL, NULL, 0), -EINVAL);
}

static void test_valid(void **state)
{
	(void)state;
	assert_true(ofi_atomic_valid(OFI_ATOMIC_WRITE, FI_INT32, FI_SUM));
	assert_true(ofi_atomic_valid(OFI_ATOMIC_FETCH, FI_INT32, FI_SUM));
	assert_false(ofi_atomic_valid(OFI_ATOMIC_COMPARE, FI_INT32, FI_SUM));
	assert_true(ofi_atomic_valid(OFI_ATOMIC_FETCH, FI_INT32, FI_ATOMIC_READ));
	assert_false(ofi_atomic_valid(OFI_ATOMIC_WRITE, FI_INT32, FI_ATOMIC_READ));
	assert_true(ofi_atomic_valid(OFI_ATOMIC_COMPARE, FI_INT32, FI_MSWAP));
	assert_false(ofi_atomic_valid(OFI_ATOMIC_COMPARE, FI_FLOAT, FI_MSWAP));
	assert_false(ofi_atomic_valid(OFI_ATOMIC_FETCH, FI_INT32, FI_CSWAP));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),  cmocka_unit_test(test_wrapping),
		cmocka_unit_test(test_read),    cmocka_unit_test(test_unaligned),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
