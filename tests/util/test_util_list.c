/* The intrusive list: order, deletion inside a loop, splicing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "util_list.h"

struct item {
	int value;
	struct list_head node;
};

static void fill(struct list_head *head, struct item *items, int n, int from)
{
	list_init(head);
	for (int i = 0; i < n; i++) {
		items[i].value = from + i;
		list_add_tail(&items[i].node, head);
	}
}

static void expect(struct list_head *head, const int *values, int n)
{
	struct item *it;
	int i = 0;

	list_for_each (it, head, node) {
		assert_in_range(i, 0, n - 1);
		assert_int_equal(it->value, values[i++]);
	}
	assert_int_equal(i, n);
}

static void test_empty(void **state)
{
	struct list_head head = LIST_HEAD_INIT(head);

	(void)state;
	assert_true(list_empty(&head));
	assert_null(list_first(&head, struct item, node));
	assert_null(list_last(&head, struct item, node));
	expect(&head, NULL, 0);
}

static void test_order(void **state)
{
	struct item items[3], front = {.value = 9};
	struct list_head head;

	(void)state;
	fill(&head, items, 3, 1);
	list_add(&front.node, &head);
	expect(&head, (int[]){9, 1, 2, 3}, 4);
	assert_ptr_equal(list_first(&head, struct item, node), &front);
	assert_ptr_equal(list_last(&head, struct item, node), &items[2]);
}

static void test_delete(void **state)
{
	struct item items[4], *it, *tmp;
	struct list_head head;

	(void)state;
	fill(&head, items, 4, 0);
	list_for_each_safe (it, tmp, &head, node) {
		if (it->value % 2)
			list_del(&it->node);
	}
	expect(&head, (int[]){0, 2}, 2);
	assert_true(list_empty(&items[1].node));
	list_del(&items[1].node); /* harmless the second time */
	list_del(&items[0].node);
	list_del(&items[2].node);
	assert_true(list_empty(&head));
}

static void test_splice(void **state)
{
	struct item a[2], b[2];
	struct list_head to, from;

	(void)state;
	fill(&to, a, 2, 0);
	fill(&from, b, 2, 2);
	list_splice_tail(&from, &to);
	expect(&to, (int[]){0, 1, 2, 3}, 4);
	assert_true(list_empty(&from));
	list_splice_tail(&from, &to);
	expect(&to, (int[]){0, 1, 2, 3}, 4);
	list_splice_tail(&to, &from);
	expect(&from, (int[]){0, 1, 2, 3}, 4);
	assert_true(list_empty(&to));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_delete),
		cmocka_unit_test(test_splice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
