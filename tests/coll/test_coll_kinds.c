/* What WEFT_COLL says. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "coll_kinds.h"

static char why[160];

static void test_good(void **state)
{
	struct coll_choice c;

	(void)state;
	assert_int_equal(coll_choice_parse(NULL, &c, why, sizeof(why)), 0);
	assert_false(c.off);
	assert_int_equal(coll_choice_parse("", &c, why, sizeof(why)), 0);
	assert_int_equal(coll_choice_parse("auto", &c, why, sizeof(why)), 0);
	for (int op = 0; op < COLL_OPS; op++)
		assert_int_equal(c.variant[op], COLL_AUTO);
	assert_int_equal(coll_choice_parse("off", &c, why, sizeof(why)), 0);
	assert_true(c.off);
	assert_int_equal(
		coll_choice_parse("barrier=mpi,alltoall=pap_shm_direct", &c, why, sizeof(why)), 0);
	assert_int_equal(c.variant[COLL_BARRIER], COLL_MPI);
	assert_int_equal(c.variant[COLL_ALLTOALL], COLL_PAP_SHM_DIRECT);
	assert_int_equal(c.variant[COLL_ALLTOALLV], COLL_AUTO);
}

/* Every operation by every variant that it has, and by no other. */
static void test_all(void **state)
{
	struct coll_choice c;
	char text[80];

	(void)state;
	for (int op = 0; op < COLL_OPS; op++) {
		assert_true(coll_has(op, COLL_AUTO) && coll_has(op, COLL_MPI));
		for (int v = 0; v < COLL_VARIANTS; v++) {
			snprintf(text, sizeof(text), "%s=%s", coll_op_names[op],
				 coll_variant_names[v]);
			if (coll_has(op, v)) {
				assert_int_equal(coll_choice_parse(text, &c, why, sizeof(why)), 0);
				assert_int_equal(c.variant[op], v);
			} else {
				assert_int_equal(coll_choice_parse(text, &c, why, sizeof(why)),
						 -EINVAL);
				assert_non_null(strstr(why, "has no variant"));
			}
		}
	}
}

static void test_bad(void **state)
{
	static const char *const bad[] = {"on",
					  "alltoall",
					  "alltoall=",
					  "alltoall=dir",
					  "=direct",
					  "alltoal=direct",
					  "off,off",
					  "auto,off",
					  "alltoall=direct,,",
					  ",",
					  "alltoall=direct barrier=mpi"};
	struct coll_choice c;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		why[0] = '\0';
		assert_int_equal(coll_choice_parse(bad[i], &c, why, sizeof(why)), -EINVAL);
		assert_true(why[0]);
		for (int op = 0; op < COLL_OPS; op++)
			assert_int_equal(c.variant[op], COLL_AUTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
