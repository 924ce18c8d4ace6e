/* Names of endpoints, and what they are for the network. */
#include "coll_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Unlike others only at its end. */
static void name_of(uint32_t i, uint8_t name[COLL_NAME_MAX])
{
	memset(name, 0, COLL_NAME_MAX);
	snprintf((char *)name, COLL_NAME_MAX, "%050u", i);
}

static void test_many(void **state)
{
	enum { N = 5000 };
	struct coll_names s = {0};
	uint8_t name[COLL_NAME_MAX];
	uint64_t addr;

	(void)state;
	for (uint32_t i = 0; i < N; i++) {
		name_of(i, name);
		assert_false(coll_names_find(&s, name, &addr));
		assert_int_equal(coll_names_add(&s, name, 3 * i), 0);
	}
	for (uint32_t i = 0; i < N; i++) {
		name_of(i, name);
		assert_true(coll_names_find(&s, name, &addr));
		assert_int_equal(addr, 3 * i);
	}
	name_of(N, name);
	assert_false(coll_names_find(&s, name, &addr));
	assert_int_equal(s.n, N);
	coll_names_free(&s);
	name_of(0, name);
	assert_false(coll_names_find(&s, name, &addr));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
