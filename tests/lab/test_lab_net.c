/* The choice of addresses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab_net.h"

#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static void expect(const struct lab_nets *nets, uint64_t count, uint32_t net, uint32_t prefix)
{
	uint32_t got_net = 0, got_prefix = 0;

	assert_int_equal(lab_nets_choose(nets, count, &got_net, &got_prefix), 0);
	assert_int_equal(got_net, net);
	assert_int_equal(got_prefix, prefix);
}

static void first_block(void **state)
{
	struct lab_nets nets = {0};

	(void)state;
	expect(&nets, 1, IP(10, 64, 0, 0), 16);
	expect(&nets, 65536, IP(10, 64, 0, 0), 16);
	expect(&nets, 65537, IP(10, 64, 0, 0), 15);
	expect(&nets, 1 << 22, IP(10, 64, 0, 0), 10);
}

/* One address, a part, the whole and more than the block: all of them take it. */
static void taken(void **state)
{
	static const struct lab_net cases[] = {
		{IP(10, 64, 3, 7), 32}, {IP(10, 64, 0, 0), 24}, {IP(10, 64, 255, 255), 32},
		{IP(10, 64, 0, 0), 16}, {IP(10, 64, 0, 1), 15},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct lab_nets nets = {0};

		assert_int_equal(lab_nets_add(&nets, cases[i].net, cases[i].prefix), 0);
		expect(&nets, 100, IP(10, cases[i].prefix == 15 ? 66 : 65, 0, 0), 16);
		lab_nets_free(&nets);
	}
}

static void elsewhere(void **state)
{
	struct lab_nets nets = {0};
	uint32_t net, prefix;

	(void)state;
	lab_nets_add(&nets, IP(10, 64, 0, 0), 10);
	lab_nets_add(&nets, IP(10, 128, 0, 0), 9);
	expect(&nets, 100, IP(10, 0, 0, 0), 16);
	lab_nets_add(&nets, IP(10, 1, 2, 3), 8);
	expect(&nets, 100, IP(172, 16, 0, 0), 16);
	lab_nets_add(&nets, IP(172, 16, 0, 0), 12);
	assert_int_equal(lab_nets_choose(&nets, 100, &net, &prefix), -ENOSPC);
	lab_nets_free(&nets);
	assert_int_equal(lab_nets_choose(&nets, UINT64_C(1) << 33, &net, &prefix), -E2BIG);
}

/* Every block that is handed out is free, whatever is taken; until there is none left. */
static void one_after_the_other(void **state)
{
	struct lab_nets nets = {0};
	uint32_t net, prefix, n = 0;

	(void)state;
	while (!lab_nets_choose(&nets, 60000, &net, &prefix)) {
		for (size_t i = 0; i < nets.n; i++)
			assert_true(net != nets.net[i].net);
		assert_int_equal(net & 0xffff, 0);
		assert_int_equal(lab_nets_add(&nets, net, prefix), 0);
		n++;
	}
	assert_int_equal(n, 256 + 16);
	lab_nets_free(&nets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_block),
		cmocka_unit_test(taken),
		cmocka_unit_test(elsewhere),
		cmocka_unit_test(one_after_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
