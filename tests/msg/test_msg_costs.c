/* What a copy and a registration cost, and what follows from that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "ep_rig.h"
#include "msg_costs.h"

static void test_classes(void **state)
{
	(void)state;
	assert_int_equal(msg_costs_class(0), MSG_COSTS_CLASSES);
	assert_int_equal(msg_costs_class(63), MSG_COSTS_CLASSES);
	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++) {
		assert_int_equal(msg_costs_class(msg_costs_size(i)), i);
		if (i + 1 < MSG_COSTS_CLASSES)
			assert_int_equal(msg_costs_class(2 * msg_costs_size(i) - 1), i);
	}
	assert_int_equal(msg_costs_class(UINT64_MAX), MSG_COSTS_CLASSES - 1);
}

/* Inequality 5.3: more than R / (C - V), and never if V is not less than C. */
static void test_uses(void **state)
{
	(void)state;
	assert_int_equal(msg_costs_uses(6000, 200, 100), 61);
	assert_int_equal(msg_costs_uses(5999, 200, 100), 60);
	assert_int_equal(msg_costs_uses(0, 200, 100), 1);
	assert_int_equal(msg_costs_uses(1, 200, 100), 1);
	assert_int_equal(msg_costs_uses(1, 100, 100), MSG_COSTS_NEVER);
	assert_int_equal(msg_costs_uses(0, 100, 200), MSG_COSTS_NEVER);
	assert_int_equal(msg_costs_uses(1e30, 200, 100), MSG_COSTS_NEVER);
	assert_int_equal(msg_costs_uses(INFINITY, 200, 100), MSG_COSTS_NEVER);
	assert_int_equal(msg_costs_uses(0, 200, INFINITY), MSG_COSTS_NEVER);
	/* a quarter of table 5.3: the thesis' 4 KB after 15 uses */
	assert_int_equal(msg_costs_frequent(60, 25), 15);
	assert_int_equal(msg_costs_frequent(432, 25), 108);
	assert_int_equal(msg_costs_frequent(61, 25), 16);
	assert_int_equal(msg_costs_frequent(1, 25), 1);
	assert_int_equal(msg_costs_frequent(7, 100), 7);
	assert_int_equal(msg_costs_frequent(MSG_COSTS_NEVER, 25), MSG_COSTS_NEVER);
}

static void test_measured(void **state)
{
	struct msg_dev *dev = open_dev();
	struct msg_costs c, again;
	uint64_t start = util_now_ns(), first, second;
	const char *local = getenv("TEST_MSG_LOCAL");

	(void)state;
	memset(&c, 0, sizeof(c));
	memset(&again, 0, sizeof(again));
	assert_int_equal(msg_dev_costs(dev, &c), 0);
	first = util_now_ns() - start;
	start = util_now_ns();
	assert_int_equal(msg_dev_costs(dev, &again), 0);
	second = util_now_ns() - start;
	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++)
		assert_memory_equal(&c.of[i], &again.of[i], sizeof(c.of[i]));
	assert_true(second < first);
	assert_true(first < 500 * UTIL_NS_PER_MS); /* some ms, where nobody else computes */
	assert_int_equal(c.needed, local != NULL);
	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++) {
		const struct msg_cost *m = &c.of[i];

		assert_true(m->copy > 0 && m->over > 0 && m->over < 1e9 && m->reg < 1e9);
		assert_true(c.cached ? m->reg > 0 : m->reg == 0);
		assert_int_equal(m->n, msg_costs_uses(m->reg, m->copy, m->over));
	}
	/* a thousand times as many bytes */
	assert_true(c.of[MSG_COSTS_CLASSES - 1].copy > c.of[0].copy);
	msg_dev_close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_uses),
		cmocka_unit_test(test_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
