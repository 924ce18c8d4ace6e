/* Numbers as people write them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util_number.h"

static void test_decimal(void **state)
{
	uint64_t v = 7;

	(void)state;
	assert_int_equal(util_decimal("0", &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(util_decimal("18446744073709551615", &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(util_decimal("18446744073709551616", &v), -ERANGE);
	static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1K", "K"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(util_decimal(bad[i], &v), -EINVAL);
}

static void test_whole(void **state)
{
	static const struct {
		const char *text, *rest;
		uint64_t value;
	} good[] = {{"0", "", 0},
		    {"010", "", 10},
		    {"08", "", 8},
		    {"007x", "x", 7},
		    {"0x1f", "", 31},
		    {"0X10k", "k", 16},
		    {"12us", "us", 12},
		    {"0x", "x", 0},
		    {"18446744073709551615", "", UINT64_MAX},
		    {"0xffffffffffffffff", "", UINT64_MAX}};
	static const char *const bad[] = {"", "-1", "+1", " 1", "k", "x10"};
	const char *end;
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(util_whole(good[i].text, &end, &v), 0);
		assert_true(v == good[i].value);
		assert_string_equal(end, good[i].rest);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(util_whole(bad[i], &end, &v), -EINVAL);
	assert_int_equal(util_whole("18446744073709551616", &end, &v), -ERANGE);
	assert_int_equal(util_whole("0x10000000000000000", &end, &v), -ERANGE);
}

static void test_size(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {{"0", 0},           {"10", 10},       {"1K", 1024},
		    {"64k", 65536},     {"3M", 3 << 20},  {"2m", 2 << 20},
		    {"5G", 5ull << 30}, {"1g", 1u << 30}, {"16777215G", 16777215ull << 30}};
	static const char *const bad[] = {"", "K", "1KK", "1T", "-1K", "1 K", "0x1K", "1K "};
	uint64_t v;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(util_size(good[i].text, &v), 0);
		assert_true(v == good[i].value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(util_size(bad[i], &v), -EINVAL);
	assert_int_equal(util_size("17179869184G", &v), -ERANGE);
	assert_int_equal(util_size("99999999999999999999K", &v), -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decimal),
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
