/* Results: what is written is read again, files are whole or not there, and what is none is
 * refused. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench_result.h"

static char dir[] = "/tmp/test-bench-result-XXXXXX", path[64];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/result", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	remove(path);
	return rmdir(dir); /* nothing but the result was left behind */
}

static void slurp(char *text, size_t size)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, size - 1, f) : 0;

	assert_non_null(f);
	text[n] = '\0';
	fclose(f);
}

static json_t *params(const char *stack, int size)
{
	return json_pack("{s:s, s:i}", "stack", stack, "size", size);
}

static struct bench_result *example(void)
{
	struct bench_result *r = bench_result_new("weft bench mpi latency, \"quoted\"");
	struct bench_result_series *s =
		bench_result_series(r, "latency", "us", false, params("weft", 8));

	bench_result_add(s, 4.5);
	bench_result_put(s, 2, 4.25); /* and nothing came of the second round */
	s = bench_result_series(r, "bw", "MB/s", true, params("tcp, \"old\"", 8));
	bench_result_add(s, 1000);
	bench_result_env(r, "mpi", "Open MPI v4.1.4");
	return r;
}

static void written_and_read(void **state)
{
	struct bench_result *r = example(), *again;
	char why[256] = "", number[32];

	(void)state;
	assert_int_equal(bench_result_write(r, path), 0);
	assert_int_equal(bench_result_read(&again, path, why, sizeof(why)), 0);
	assert_string_equal(again->command, r->command);
	assert_string_equal(again->began, r->began);
	assert_true(again->took_s >= 0 && again->took_s < 60);
	assert_string_equal(json_string_value(json_object_get(again->env, "mpi")),
			    "Open MPI v4.1.4");
	assert_true(json_integer_value(json_object_get(again->env, "cores")) >= 1);
	assert_true(json_is_number(json_object_get(again->env, "load_after")));
	assert_int_equal(again->n, 2);
	assert_string_equal(again->series[0]->name, "latency");
	assert_false(again->series[0]->higher);
	assert_true(again->series[1]->higher);
	assert_int_equal(again->series[0]->n, 3);
	assert_true(again->series[0]->samples[0] == 4.5 && isnan(again->series[0]->samples[1]) &&
		    again->series[0]->samples[2] == 4.25);
	assert_string_equal(bench_result_param(again->series[0], "stack", number), "weft");
	assert_string_equal(bench_result_param(again->series[0], "size", number), "8");
	assert_null(bench_result_param(again->series[0], "colour", number));
	bench_result_free(again);
	bench_result_free(r);
}

static void same_parameters_same_series(void **state)
{
	struct bench_result *r = example();

	(void)state;
	assert_ptr_equal(bench_result_series(r, "latency", "us", false, params("weft", 8)),
			 r->series[0]);
	assert_ptr_not_equal(bench_result_series(r, "latency", "us", false, params("weft", 9)),
			     r->series[0]);
	assert_ptr_not_equal(bench_result_series(r, "memory", "MiB", false, params("weft", 8)),
			     r->series[0]);
	assert_int_equal(r->n, 4);
	bench_result_free(r);
}

static void csv_has_a_row_for_each_sample(void **state)
{
	struct bench_result *r = example();
	char text[1024];

	(void)state;
	assert_int_equal(bench_result_write_csv(r, path), 0);
	slurp(text, sizeof(text));
	assert_string_equal(text, "series,unit,better,stack,size,sample,value\n"
				  "latency,us,lower,weft,8,0,4.5\n"
				  "latency,us,lower,weft,8,1,\n"
				  "latency,us,lower,weft,8,2,4.25\n"
				  "bw,MB/s,higher,\"tcp, \"\"old\"\"\",8,0,1000\n");
	bench_result_free(r);
}

/* A writer that can not finish leaves what was there. */
static void nothing_is_half_written(void **state)
{
	struct bench_result *r = example();
	char text[4096], part[80];
	struct stat st;

	(void)state;
	assert_int_equal(bench_result_write(r, path), 0);
	snprintf(part, sizeof(part), "%s.part", path);
	assert_int_equal(mkdir(part, 0700), 0);
	r->command[0] = 'W';
	assert_int_equal(bench_result_write(r, path), -EISDIR);
	slurp(text, sizeof(text));
	assert_non_null(strstr(text, "\"weft bench"));
	assert_int_equal(rmdir(part), 0);
	assert_int_equal(bench_result_write(r, path), 0);
	assert_int_equal(stat(part, &st), -1);
	assert_int_equal(bench_result_write(r, "/nonexistent/result"), -ENOENT);
	/* A device stays one. */
	assert_int_equal(bench_result_write(r, "/dev/null"), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	bench_result_free(r);
}

static void variables_are_kept_but_not_obeyed(void **state)
{
	struct bench_result *r, *again;
	const json_t *vars;
	char why[256];

	(void)state;
	setenv("FI_WEFT_TEST", "a\033[2Jb\xff", 1);
	setenv("SECRET_FI_", "hidden", 1);
	r = bench_result_new("x");
	assert_int_equal(bench_result_write(r, path), 0);
	assert_int_equal(bench_result_read(&again, path, why, sizeof(why)), 0);
	vars = json_object_get(again->env, "variables");
	assert_string_equal(json_string_value(json_object_get(vars, "FI_WEFT_TEST")), "a?[2Jb?");
	assert_null(json_object_get(vars, "SECRET_FI_"));
	bench_result_free(r);
	bench_result_free(again);
	unsetenv("FI_WEFT_TEST");
}

#define HEAD                                                                                       \
	"{\"weft_bench\": 1, \"command\": \"c\", \"began\": \"b\", \"took_s\": 1, \"env\": {}, "
#define SERIES(name, better, params, samples)                                                      \
	HEAD "\"series\": [{\"name\": " name ", \"unit\": \"us\", \"better\": " better             \
	     ", \"params\": " params ", \"samples\": " samples "}]}"

static void what_is_no_result_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"{}",
		"[1]",
		"{\"weft_bench\": 2}",
		"{\"weft_bench\": 1}",
		HEAD "\"series\": {}}",
		HEAD "\"series\": [1]}",
		SERIES("\"\"", "\"lower\"", "{}", "[]"),
		SERIES("1", "\"lower\"", "{}", "[]"),
		SERIES("\"a\\nb\"", "\"lower\"", "{}", "[]"),
		SERIES("\"a\\u009bb\"", "\"lower\"", "{}", "[]"),
		SERIES("\"a\"", "\"sideways\"", "{}", "[]"),
		SERIES("\"a\"", "\"lower\"", "{\"x\": {}}", "[]"),
		SERIES("\"a\"", "\"lower\"", "[]", "[]"),
		SERIES("\"a\"", "\"lower\"", "{}", "[1, \"2\"]"),
		SERIES("\"a\"", "\"lower\"", "{}", "7"),
	};
	struct bench_result *r;
	char why[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why[0] = '\0';
		assert_int_equal(bench_result_parse(&r, bad[i], strlen(bad[i]), why, sizeof(why)),
				 -EINVAL);
		assert_null(r);
		assert_true(strlen(why) > 10);
	}
	assert_int_equal(bench_result_read(&r, "/nonexistent", why, sizeof(why)), -ENOENT);
	assert_non_null(strstr(why, "No such file"));
	assert_int_equal(bench_result_parse(&r, SERIES("\"a\"", "\"lower\"", "{}", "[1, null]"),
					    strlen(SERIES("\"a\"", "\"lower\"", "{}", "[1, null]")),
					    why, sizeof(why)),
			 0);
	bench_result_free(r);
}

static void percentages_by_difference(void **state)
{
	struct bench_result *r = bench_result_new("x");
	struct bench_result_series *a = bench_result_series(r, "overlap", "%", true,
							    params("a", 1)),
				   *b = bench_result_series(r, "overlap", "%", true,
							    params("b", 1));
	struct bench_comparison c;

	(void)state;
	for (int i = 0; i < 10; i++) {
		bench_result_add(a, 95);
		bench_result_add(b, i % 2 ? 0 : 1);
	}
	bench_result_add(a, 1); /* a round that b has not done */
	bench_result_compare(a, b, &c);
	assert_int_equal(c.verdict, BENCH_BETTER);
	assert_int_equal(c.n, 10);
	assert_true(c.ratio > 93 && c.ratio < 96);
	bench_result_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_and_read),
		cmocka_unit_test(same_parameters_same_series),
		cmocka_unit_test(csv_has_a_row_for_each_sample),
		cmocka_unit_test(nothing_is_half_written),
		cmocka_unit_test(variables_are_kept_but_not_obeyed),
		cmocka_unit_test(what_is_no_result_is_refused),
		cmocka_unit_test(percentages_by_difference),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
