/* Every layer's table of tunables: well-formed, and no name twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "util_tune.h"
#include "rnic.h"
#include "verbs_tune.h"

static const struct util_tunable *const tables[] = {rnic_tunables, verbs_tunables, util_tunables};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static void test_well_formed(void **state)
{
	const struct util_tunable *t;
	struct util_tune_value v;
	char why[256];

	(void)state;
	for (size_t i = 0; i < TABLES; i++) {
		util_tune_for_each (t, tables[i]) {
			assert_memory_equal(t->name, "WEFT_", 5);
			assert_non_null(t->help);
			assert_int_equal(t->help[strlen(t->help) - 1], '.');
			assert_null(strchr(t->help, '\n'));
			if (t->type == UTIL_TUNE_ENUM)
				assert_non_null(t->choices);
			/* Only a string can do without a default. */
			if (t->type != UTIL_TUNE_STR)
				assert_non_null(t->def);
			if (t->def && util_tune_parse(t, t->def, &v, why, sizeof(why)))
				fail_msg("%s", why);
		}
	}
}

static int count(const char *name)
{
	const struct util_tunable *t;
	int n = 0;

	for (size_t i = 0; i < TABLES; i++)
		util_tune_for_each (t, tables[i])
			n += !strcmp(t->name, name);
	return n;
}

static void test_unique(void **state)
{
	const struct util_tunable *t;

	(void)state;
	for (size_t i = 0; i < TABLES; i++)
		util_tune_for_each (t, tables[i])
			assert_int_equal(count(t->name), 1);
	/* What the options of `weft verbs` set. */
	assert_int_equal(count("WEFT_ADDR"), 1);
	assert_int_equal(count("WEFT_NETDEV"), 1);
	assert_int_equal(count("WEFT_LOG"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_well_formed),
		cmocka_unit_test(test_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
