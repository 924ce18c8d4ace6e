/* Packets that come over several connections are handled in their order, each once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "util_rand.h"
#include "msg_order.h"

static bool no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

static enum msg_turn came(struct msg_order *o, uint32_t seq)
{
	return msg_order_came(o, seq, &seq, sizeof(seq));
}

#define NONE UINT64_MAX

/* The number of the one whose turn it is; NONE: it has not come. */
static uint64_t next(struct msg_order *o)
{
	struct msg_kept *k = msg_order_next(o);
	uint64_t seq = NONE;

	if (k) {
		assert_int_equal(k->len, sizeof(uint32_t));
		seq = *(uint32_t *)k->buf;
	}
	free(k);
	return seq;
}

static void test_order(void **state)
{
	struct msg_order o = {0};

	(void)state;
	assert_int_equal(came(&o, 0), MSG_TURN_NOW);
	assert_true(next(&o) == NONE);
	assert_int_equal(came(&o, 3), MSG_TURN_LATER);
	assert_int_equal(came(&o, 2), MSG_TURN_LATER);
	assert_true(next(&o) == NONE);
	/* twice: kept already, and handled already */
	assert_int_equal(came(&o, 3), MSG_TURN_OVER);
	assert_int_equal(came(&o, 0), MSG_TURN_OVER);
	assert_int_equal(came(&o, 1), MSG_TURN_NOW);
	assert_int_equal(next(&o), 2);
	assert_int_equal(next(&o), 3);
	assert_true(next(&o) == NONE);
	assert_int_equal(came(&o, 2), MSG_TURN_OVER);
	assert_int_equal(o.expected, 4);
	msg_order_free(&o);
}

static void test_bounds(void **state)
{
	struct msg_order o = {.expected = 1000};

	(void)state;
	assert_int_equal(came(&o, 1000 + MSG_ORDER_WINDOW), MSG_TURN_FAR);
	assert_int_equal(came(&o, 1000 + UINT32_MAX / 2), MSG_TURN_FAR);
	assert_int_equal(came(&o, 1000 - MSG_ORDER_WINDOW - 1), MSG_TURN_FAR);
	assert_null(o.kept);
	assert_int_equal(came(&o, 999), MSG_TURN_OVER);
	assert_int_equal(came(&o, 1000 - MSG_ORDER_WINDOW + 1), MSG_TURN_OVER);
	assert_int_equal(came(&o, 1000 + MSG_ORDER_WINDOW - 1), MSG_TURN_LATER);
	no_memory = true;
	assert_int_equal(came(&o, 1001), MSG_TURN_LOST);
	no_memory = false;
	assert_int_equal(came(&o, 1001), MSG_TURN_LATER);
	assert_int_equal(o.expected, 1000);
	msg_order_free(&o);
}

/* In any order within bounds, with repetitions, and around the end of numbers. */
static void test_random(void **state)
{
	enum { PACKETS = 20000, SPAN = 200 };
	struct msg_order o = {.expected = (uint32_t)-5000};
	uint32_t first = o.expected, handled = 0;
	struct util_rand r;

	(void)state;
	util_rand_seed(&r, 4);
	while (handled < PACKETS) {
		uint32_t seq = o.expected + (uint32_t)util_rand_below(&r, SPAN) - SPAN / 8;
		uint64_t got;
		enum msg_turn t = came(&o, seq);

		assert_true(t != MSG_TURN_FAR && t != MSG_TURN_LOST);
		if (t != MSG_TURN_NOW)
			continue;
		assert_int_equal(seq, first + handled++);
		while ((got = next(&o)) != NONE)
			assert_int_equal((uint32_t)got, first + handled++);
	}
	msg_order_free(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
