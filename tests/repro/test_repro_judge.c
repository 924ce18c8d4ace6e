/* Values and verdicts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "repro.h"

static enum repro_verdict judge(enum repro_sense sense, double want, double neutral, double a,
				double b, double c)
{
	struct repro_claim claim = {
		.says = "x", .sense = sense, .want = want, .neutral = neutral, .tolerance = 0.1};
	struct repro_outcome o;
	double v[] = {a, b, c};

	repro_judge(&claim, v, 3, &o);
	return o.verdict;
}

static void verdicts(void **state)
{
	(void)state;
	assert_int_equal(judge(REPRO_AT_LEAST, 2, 1, 2.1, 2.2, 2.0), REPRO_REPRODUCED);
	assert_int_equal(judge(REPRO_AT_LEAST, 2, 1, 1.1, 1.2, 1.3), REPRO_SAME_DIRECTION);
	/* One round below the neutral value: that may be chance. */
	assert_int_equal(judge(REPRO_AT_LEAST, 2, 1, 0.9, 2.2, 2.3), REPRO_NOT_HERE);
	assert_int_equal(judge(REPRO_AT_LEAST, 2, 1, 0.8, 0.7, 0.9), REPRO_NOT_HERE);
	assert_int_equal(judge(REPRO_AT_MOST, 0.5, 1, 0.5, 0.4, 0.45), REPRO_REPRODUCED);
	assert_int_equal(judge(REPRO_AT_MOST, 0.5, 1, 0.8, 0.9, 0.85), REPRO_SAME_DIRECTION);
	assert_int_equal(judge(REPRO_AT_MOST, NAN, 1, 0.8, 0.9, 0.85), REPRO_REPRODUCED);
	assert_int_equal(judge(REPRO_AT_MOST, NAN, 1, 0.8, 1.1, 0.85), REPRO_NOT_HERE);
	assert_int_equal(judge(REPRO_ABOUT, 4, 1, 4.1, 3.9, 4), REPRO_REPRODUCED);
	assert_int_equal(judge(REPRO_ABOUT, 4, 1, 2, 2, 2), REPRO_SAME_DIRECTION);
	assert_int_equal(judge(REPRO_ABOUT, 1, NAN, 1.5, 1.5, 1.5), REPRO_NOT_HERE);
	assert_int_equal(judge(REPRO_ABOUT, 4, 1, NAN, NAN, NAN), REPRO_NOT_HERE);
}

/* 95 percent: of five values all, of six the outermost, of nine all but one at each end. */
static void intervals(void **state)
{
	static const struct repro_claim c = {.says = "x", .want = NAN, .neutral = NAN};
	double v[9] = {9, 1, 8, 2, 7, 3, 6, 4, 5};
	struct repro_outcome o;

	(void)state;
	repro_judge(&c, v, 9, &o);
	assert_true(o.value == 5 && o.low == 2 && o.high == 8);
	repro_judge(&c, v, 6, &o); /* sorted now: 1 to 6 */
	assert_true(o.value == 3.5 && o.low == 1 && o.high == 6);
}

static double value(enum repro_function f, double ax, double bx, const struct repro_data *d)
{
	struct repro_claim c = {.function = f, .a = "a", .b = "b", .ax = ax, .bx = bx};

	return repro_value(&c, d);
}

static void values(void **state)
{
	struct repro_data d = {0};

	(void)state;
	assert_int_equal(repro_add(&d, "a", 2, 6), 0);
	assert_int_equal(repro_add(&d, "a", 1, 3), 0);
	assert_int_equal(repro_add(&d, "a", 1, 99), 0); /* the first counts */
	assert_int_equal(repro_add(&d, "b", 1, 6), 0);
	assert_int_equal(repro_add(&d, "b", 2, 4), 0);
	assert_true(value(REPRO_VALUE, 1, 0, &d) == 3);
	assert_true(value(REPRO_RATIO, 2, 1, &d) == 1);
	assert_true(value(REPRO_GAIN, 1, 1, &d) == 50);
	assert_true(value(REPRO_LEAST, 0, 0, &d) == 0.5);
	assert_true(value(REPRO_MOST, 0, 0, &d) == 1.5);
	assert_true(value(REPRO_BELOW, 0, 0, &d) == 0.5);
	assert_true(value(REPRO_RISE, 0, 0, &d) == 2);
	assert_true(value(REPRO_LOWEST, 0, 0, &d) == 1);
	assert_true(value(REPRO_MAXIMUM, 0, 0, &d) == 6);
	assert_true(isnan(value(REPRO_VALUE, 7, 0, &d)));
	repro_clear(&d);
}

static void taking(void **state)
{
	static const struct repro_take takes[] = {{.series = "s ",
						   .rows = "rows",
						   .where = "by=x,n=3",
						   .key = "k",
						   .x = "size",
						   .y = "us.median"},
						  {0}};
	static const struct repro_take columns[] = {{.series = "c", .x = "1", .y = "3"}, {0}};
	struct repro_step s = {.label = "l ", .command = "", .takes = takes};
	static const char json[] =
		"{\"rows\":[{\"by\":\"x\",\"n\":3,\"k\":\"z\",\"size\":8,\"us\":{\"median\":2.5}},"
		"{\"by\":\"y\",\"n\":3,\"k\":\"z\",\"size\":9,\"us\":{\"median\":2.5}}]}";
	static const char table[] = "# head\n10 x 5.5\n20 y 6.5\n";
	static const struct repro_take medians[] = {{.rows = "series",
						     .where = "name=round,params.size=1",
						     .key = "params.type",
						     .x = "params.n",
						     .y = "samples"},
						    {0}};
	static const char samples[] =
		"{\"series\":[{\"name\":\"round\",\"params\":{\"type\":\"rc\",\"size\":1,\"n\":4},"
		"\"samples\":[3,1,null,2]},{\"name\":\"packet\",\"params\":{\"type\":\"rc\","
		"\"size\":1,\"n\":5},\"samples\":[3]},{\"name\":\"round\",\"params\":{\"type\":"
		"\"rc\",\"size\":1,\"n\":6},\"samples\":[]}]}";
	struct repro_data d = {0};
	char why[160];

	(void)state;
	assert_int_equal(repro_take(&s, json, strlen(json), &d, why), 1);
	assert_true(repro_at(repro_find(&d, "l s z"), 8) == 2.5);
	assert_true(repro_take(&s, "{}", 2, &d, why) < 0);
	assert_true(repro_take(&s, "no", 2, &d, why) < 0);
	s.takes = columns;
	s.table = true;
	assert_int_equal(repro_take(&s, table, strlen(table), &d, why), 2);
	assert_true(repro_at(repro_find(&d, "l c"), 20) == 6.5);
	s = (struct repro_step){.label = "", .command = "", .takes = medians};
	assert_int_equal(repro_take(&s, samples, strlen(samples), &d, why), 1);
	assert_true(repro_at(repro_find(&d, "rc"), 4) == 2);
	repro_clear(&d);
}

/* The whole is bounded whatever the parts take; who is cheap gets what the machine may be slow by.
 */
static void budgets(void **state)
{
	double left = 1000, spent = 0;

	(void)state;
	/* Enough for all: no more than a part may ever need. */
	assert_true(repro_budget(1e9, 10, 1e6) == 50);
	assert_true(repro_budget(INFINITY, 10, 1) == 50);
	assert_true(repro_budget(0, 10, 40) == 0);
	assert_true(repro_budget(-3, 10, 40) == 0);
	/* 40 parts, each of which takes all that it may. */
	for (int i = 0; i < 40; i++) {
		double weights = (40 - i) * repro_weight(20), b = repro_budget(left, 20, weights);

		assert_true(b > 0 && b <= left + 1e-9);
		left -= b;
		spent += b;
	}
	assert_true(spent <= 1000.001);
	/* One that needed little leaves it to the others. */
	assert_true(repro_budget(1000, 20, 4 * repro_weight(20)) >
		    repro_budget(500, 20, 40 * repro_weight(20)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(verdicts), cmocka_unit_test(intervals), cmocka_unit_test(values),
		cmocka_unit_test(taking),   cmocka_unit_test(budgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
