/* What the paths to a peer are: ports, path bits, flow labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "stripe.h"
#include "msg_way.h"

static void test_flow_labels(void **state)
{
	struct msg_way_ports own = {
		.port = {{.port = 1, .gid_index = 3}, {.port = 2, .gid_index = 5}},
		.n = 2,
		.global = true};
	struct msg_place to = {.gid = {1, 2, 3}};

	(void)state;
	assert_int_equal(msg_ways_most(&own), STRIPE_PATHS_MAX);
	for (uint32_t i = 0; i < STRIPE_PATHS_MAX; i++) {
		struct ibv_ah_attr a = msg_way_ah(&own, i, &to);

		assert_int_equal(msg_way_port(&own, i)->port, 1 + i % 2);
		assert_int_equal(a.port_num, 1 + i % 2);
		assert_int_equal(a.grh.sgid_index, i % 2 ? 5 : 3);
		assert_true(a.is_global && a.grh.hop_limit);
		assert_int_equal(a.grh.flow_label, i / 2);
		assert_memory_equal(a.grh.dgid.raw, to.gid, sizeof(to.gid));
	}
}

/* As far as the LMC of both goes; where one has fewer, its paths are shared. */
static void test_path_bits(void **state)
{
	struct msg_way_ports own = {.port = {{.port = 1, .at = {.lid = 16, .lmc = 2}}}, .n = 1};
	struct msg_place to = {.lid = 32, .lmc = 1};

	(void)state;
	assert_int_equal(msg_ways_most(&own), 4);
	for (uint32_t i = 0; i < 4; i++) {
		struct ibv_ah_attr a = msg_way_ah(&own, i, &to);

		assert_int_equal(a.src_path_bits, i);
		assert_int_equal(a.dlid, 32 + i % 2);
		assert_true(!a.is_global && !a.grh.flow_label);
	}
	own.port[0].at.lmc = 0;
	assert_int_equal(msg_ways_most(&own), 1);
	own.port[1] = (struct msg_way_port){.port = 2, .at = {.lid = 64, .lmc = 3}};
	own.n = 2;
	assert_int_equal(msg_ways_most(&own), 9);
	assert_int_equal(msg_way_ah(&own, 1, &to).port_num, 2);
	assert_int_equal(msg_way_ah(&own, 5, &to).src_path_bits, 2);
	own.port[0].at.lmc = own.port[1].at.lmc = 7;
	assert_int_equal(msg_ways_most(&own), STRIPE_PATHS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow_labels),
		cmocka_unit_test(test_path_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
