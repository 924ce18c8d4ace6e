/* Tunables: what is accepted, what is refused and in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util_tune.h"

enum { T_STR, T_UINT, T_BOOL, T_ENUM, T_TIME, T_ANY };
static const struct util_tunable table[] = {
	[T_STR] = {.name = "WEFT_T_STR", .type = UTIL_TUNE_STR, .help = "a text"},
	[T_UINT] = {.name = "WEFT_T_UINT",
		    .type = UTIL_TUNE_UINT,
		    .def = "1k",
		    .min = 16,
		    .max = 65536,
		    .help = "a ring"},
	[T_BOOL] = {.name = "WEFT_T_BOOL",
		    .type = UTIL_TUNE_BOOL,
		    .def = "yes",
		    .help = "a switch"},
	[T_ENUM] = {.name = "WEFT_T_ENUM",
		    .type = UTIL_TUNE_ENUM,
		    .def = "two",
		    .choices = "one|two|three",
		    .help = "a choice"},
	[T_TIME] = {.name = "WEFT_T_TIME",
		    .type = UTIL_TUNE_DURATION,
		    .def = "20us",
		    .min = 1000,
		    .max = 1000000000,
		    .help = "a time"},
	[T_ANY] = {.name = "WEFT_T_ANY", .type = UTIL_TUNE_UINT, .def = "0", .help = "any"},
	{0},
};

struct good {
	int index;
	const char *text;
	uint64_t num;
};

static void test_accepted(void **state)
{
	static const struct good cases[] = {
		{T_UINT, "16", 16},         {T_UINT, "65536", 65536},
		{T_UINT, "0x20", 32},       {T_UINT, "4k", 4096},
		{T_UINT, "64K", 65536},     {T_ANY, "2M", 2 << 20},
		{T_ANY, "1G", 1 << 30},     {T_ANY, "18446744073709551615", UINT64_MAX},
		{T_BOOL, "yes", 1},         {T_BOOL, "OFF", 0},
		{T_BOOL, "1", 1},           {T_BOOL, "0", 0},
		{T_BOOL, "true", 1},        {T_BOOL, "n", 0},
		{T_ENUM, "one", 0},         {T_ENUM, "three", 2},
		{T_TIME, "1000ns", 1000},   {T_TIME, "5", 5000},
		{T_TIME, "5us", 5000},      {T_TIME, "7ms", 7000000},
		{T_TIME, "1s", 1000000000}, {T_UINT, "020", 20},
		{T_UINT, "020k", 20480},    {T_TIME, "010us", 10000},
	};
	struct util_tune_value v;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		why[0] = '\0';
		if (util_tune_parse(&table[cases[i].index], cases[i].text, &v, why, sizeof(why)))
			fail_msg("%s: %s", cases[i].text, why);
		assert_true(v.num == cases[i].num);
	}
}

struct bad {
	int index;
	const char *text, *why;
};

static void test_refused(void **state)
{
	static const struct bad cases[] = {
		{T_UINT, "15", "WEFT_T_UINT=15 is too small: expected number, 16 to 65536"},
		{T_UINT, "65537", "WEFT_T_UINT=65537 is too large: expected number, 16 to 65536"},
		{T_UINT, "-1", "WEFT_T_UINT=-1 is not understood: expected number, 16 to 65536"},
		{T_UINT, "12q", "WEFT_T_UINT=12q is not understood: expected number, 16 to 65536"},
		{T_UINT, " 20", "WEFT_T_UINT= 20 is not understood: expected number, 16 to 65536"},
		{T_ANY, "18446744073709551616",
		 "WEFT_T_ANY=18446744073709551616 is too large: expected number"},
		{T_ANY, "18446744073709551615k",
		 "WEFT_T_ANY=18446744073709551615k is too large: expected number"},
		{T_BOOL, "perhaps", "WEFT_T_BOOL=perhaps is not understood: expected yes or no"},
		{T_ENUM, "tw", "WEFT_T_ENUM=tw is not understood: expected one of one|two|three"},
		{T_ENUM, "two|three",
		 "WEFT_T_ENUM=two|three is not understood: expected one of one|two|three"},
		{T_TIME, "5 us",
		 "WEFT_T_TIME=5 us is not understood: expected time with ns, us, ms or s (a number "
		 "alone: us), 1us to 1s"},
		{T_TIME, "2s",
		 "WEFT_T_TIME=2s is too large: expected time with ns, us, ms or s (a number alone: "
		 "us), 1us to 1s"},
	};
	struct util_tune_value v;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int ret = util_tune_parse(&table[cases[i].index], cases[i].text, &v, why,
					  sizeof(why));

		assert_int_equal(ret, -EINVAL);
		assert_string_equal(why, cases[i].why);
	}
}

static void test_defaults(void **state)
{
	(void)state;
	for (int i = 0; table[i].name; i++)
		unsetenv(table[i].name);
	setenv("WEFT_T_UINT", "", 1); /* set but empty is not set */
	assert_null(util_tune_str(&table[T_STR]));
	assert_int_equal(util_tune_uint(&table[T_UINT]), 1024);
	assert_true(util_tune_bool(&table[T_BOOL]));
	assert_int_equal(util_tune_enum(&table[T_ENUM]), 1);
	assert_int_equal(util_tune_ns(&table[T_TIME]), 20000);
	assert_string_equal(util_tune_str(&table[T_TIME]), "20us");
}

static void test_environment(void **state)
{
	(void)state;
	setenv("WEFT_T_STR", "10.0.0.1", 1);
	setenv("WEFT_T_UINT", "2k", 1);
	setenv("WEFT_T_BOOL", "off", 1);
	setenv("WEFT_T_ENUM", "three", 1);
	setenv("WEFT_T_TIME", "3ms", 1);
	assert_string_equal(util_tune_str(&table[T_STR]), "10.0.0.1");
	assert_int_equal(util_tune_uint(&table[T_UINT]), 2048);
	assert_false(util_tune_bool(&table[T_BOOL]));
	assert_int_equal(util_tune_enum(&table[T_ENUM]), 2);
	assert_int_equal(util_tune_ns(&table[T_TIME]), 3000000);
}

/* A bad value: said once per read on standard error, and the default kept. */
static void test_complaint(void **state)
{
	int saved = dup(STDERR_FILENO), fds[2];
	unsigned long value;
	char line[512];
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDERR_FILENO);
	setenv("WEFT_T_UINT", "7", 1);
	value = util_tune_uint(&table[T_UINT]);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_int_equal(value, 1024);
	n = read(fds[0], line, sizeof(line) - 1);
	assert_true(n > 0);
	line[n] = '\0';
	assert_non_null(strstr(line, "error: WEFT_T_UINT=7 is too small: expected number, "
				     "16 to 65536; using the default, 1k\n"));
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_defaults),  cmocka_unit_test(test_environment),
		cmocka_unit_test(test_complaint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
