/* The tables are whole: every figure has a name of its own, and is measured or says why not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "repro.h"

static unsigned int seconds;
static const struct repro_experiment *seen[256];
static size_t n_seen;

static void budget(const struct repro_experiment *x)
{
	for (size_t i = 0; i < n_seen; i++)
		if (seen[i] == x)
			return;
	for (size_t i = 0; i < n_seen; i++)
		assert_string_not_equal(seen[i]->name, x->name);
	seen[n_seen++] = x;
	seconds += x->seconds[REPRO_QUICK];
	for (int m = 0; m < REPRO_MODES; m++) {
		assert_true(x->rounds[m] >= 1 && x->rounds[m] <= REPRO_ROUNDS_MAX);
		assert_true(x->seconds[m] >= 1);
	}
	for (const struct repro_step *s = x->steps; s->command; s++)
		assert_true(s->label && s->takes && s->takes->y);
}

static void check(const struct repro_figure *f, void *arg)
{
	size_t claims = 0;

	(void)arg;
	assert_non_null(repro_paper_of(f));
	assert_true(f->shows && *f->shows);
	assert_int_equal(repro_each(f->name, NULL, NULL), 1);
	if (!f->experiment) {
		assert_true(f->why && *f->why && !f->claims);
		return;
	}
	budget(f->experiment);
	for (const struct repro_claim *c = f->claims; c && c->says; c++) {
		claims++;
		assert_true(c->published && *c->published && c->a);
		assert_true(!isnan(c->want) || !isnan(c->neutral));
	}
	assert_true(claims > 0 && claims <= REPRO_CLAIMS_MAX);
}

static void whole(void **state)
{
	(void)state;
	assert_int_equal(repro_each("hsal", NULL, NULL), 17);
	assert_int_equal(repro_each("fattree", NULL, NULL), 6 + 3);
	assert_int_equal(repro_each("thesis", NULL, NULL), 1 + 9 + 15 + 19 + 10 + 8 + 6);
	assert_int_equal(repro_each("arrival", NULL, NULL), 4 + 1);
	assert_int_equal(repro_each("onetomany", NULL, NULL), 7);
	repro_each("all", check, NULL);
	assert_true(seconds <= 20 * 60);
}

static void commands(void **state)
{
	char *q = repro_command("a {1|2} {x} ${p% *} {|b}", REPRO_QUICK);
	char *f = repro_command("a {1|2} {x} ${p% *} {|b}", REPRO_FULL);

	(void)state;
	assert_string_equal(q, "a 1 {x} ${p% *} ");
	assert_string_equal(f, "a 2 {x} ${p% *} b");
	free(q);
	free(f);
	assert_string_equal(repro_nearest("hsal/fig"), "hsal/fig1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(whole), cmocka_unit_test(commands)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
