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

static char why[COLL_WHY_MAX];

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
	assert_int_equal(coll_choice_parse("alltoall=direct, bcast=tree", &c, why, sizeof(why)), 0);
	assert_true(c.variant[COLL_ALLTOALL] == COLL_DIRECT && c.variant[COLL_BCAST] == COLL_TREE);
	assert_int_equal(coll_choice_parse("reduce_scatter_block=tree", &c, why, sizeof(why)), 0);
	assert_int_equal(c.variant[COLL_REDUCE_SCATTER], COLL_TREE);
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

/* What would be right is said, and has room beside any word. */
static void test_why(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"alltoall=foo", "alltoall has no variant 'foo'; it has auto, mpi, direct, "
				 "pap_direct, shm_direct, pap_shm_direct"},
		{"reduce_scatter_block=dissem",
		 "reduce_scatter has no variant 'dissem'; it has auto, mpi, tree, halving"},
		{"barrier=mpi,foo=mpi",
		 "there is no operation 'foo'; there are alltoall, alltoallv, allgather, bcast, "
		 "allreduce, reduce_scatter, barrier"},
		{"mpi", "'mpi' is not OPERATION=VARIANT; auto, off, or for example "
			"alltoall=pap_direct"},
	};
	static const struct {
		const char *before, *after, *last;
	} around[] = {
		{"", "", "alltoall=pap_direct"},
		{"", "=mpi", "reduce_scatter, barrier"},
		{"alltoall=", "", "pap_shm_direct"},
	};
	struct coll_choice c;
	char text[400], x[301] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(coll_choice_parse(cases[i].text, &c, why, sizeof(why)), -EINVAL);
		assert_string_equal(why, cases[i].why);
	}
	memset(x, 'x', sizeof(x) - 1);
	for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
		snprintf(text, sizeof(text), "%s%s%s", around[i].before, x, around[i].after);
		assert_int_equal(coll_choice_parse(text, &c, why, sizeof(why)), -EINVAL);
		assert_string_equal(why + strlen(why) - strlen(around[i].last), around[i].last);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
