/* Tags of communicators' messages: no two at a time have the same, whoever gives them out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll_tags.h"

enum { SET = 4 };

static struct coll_tags *new_tags(int most, uint32_t rank, uint32_t ranks)
{
	struct coll_tags *t = calloc(1, sizeof(*t));

	assert_non_null(t);
	coll_tags_share(t, most, SET, rank, ranks);
	return t;
}

/* All ranks give out all that they have; each tag of the MPI's is given once at most. */
static void all_once(int most, uint32_t ranks, uint32_t each)
{
	uint8_t *seen = calloc((size_t)most + 1, 1);

	assert_non_null(seen);
	for (uint32_t r = 0; r < ranks; r++) {
		struct coll_tags *t = new_tags(most, r, ranks);

		for (uint32_t i = 0; i < each; i++) {
			int tag = coll_tags_give(t);

			assert_true(tag >= 0 && tag + SET - 1 <= most);
			for (int k = 0; k < SET; k++)
				assert_int_equal(seen[tag + k]++, 0);
		}
		assert_int_equal(coll_tags_give(t), -1);
		free(t);
	}
	free(seen);
}

static void test_ranks_differ(void **state)
{
	(void)state;
	all_once(32767, 1, COLL_MAX_COMMS); /* the fewest that MPI allows an MPI to have */
	all_once(32767, 48, 170);
	all_once(32767, 8192, 1);
	all_once(32767, 8193, 0); /* one too many: communicators are left to the MPI */
	all_once((1 << 20) - 1, 7, COLL_MAX_COMMS);
	all_once((1 << 22) - 1, 4096, 256);
}

/* No number overflows at the end of an MPI's tags. */
static void test_last_of_many(void **state)
{
	struct coll_tags *t = new_tags(INT32_MAX, COLL_MAX_RANKS - 1, COLL_MAX_RANKS);
	int tag;

	(void)state;
	for (uint32_t i = 0; i < 20 * COLL_MAX_COMMS; i++) {
		tag = coll_tags_give(t);
		assert_true(tag >= 0);
		coll_tags_back(t, tag);
	}
	free(t);
}

/* What comes back at once is given again only after all others of the share. */
static void test_late(void **state)
{
	const int most = (1 << 20) - 1;
	const uint32_t ranks = 16, share = (1u << 20) / 16 / SET;
	struct coll_tags *t = new_tags(most, 3, ranks);
	uint8_t *seen = calloc((size_t)most + 1, 1);
	int kept = coll_tags_give(t), tag;

	(void)state;
	assert_non_null(seen);
	for (uint32_t i = 0; i < share - share / COLL_MAX_COMMS; i++) {
		tag = coll_tags_give(t);
		assert_int_equal(seen[tag]++, 0);
		coll_tags_back(t, tag);
	}
	for (uint32_t i = 0; i < 3 * share; i++) {
		tag = coll_tags_give(t);
		assert_int_not_equal(tag, kept);
		coll_tags_back(t, tag);
	}
	free(seen);
	free(t);
}

/* Communicators that come and go in any order. */
static void test_any_order(void **state)
{
	struct coll_tags *t = new_tags((1 << 20) - 1, 200, 256);
	int have[COLL_MAX_COMMS];
	uint32_t n = 0;

	(void)state;
	srand(7);
	for (int i = 0; i < 200000; i++) {
		if (n < 300 && rand() % 2) {
			int tag = coll_tags_give(t);

			assert_true(tag >= 0);
			for (uint32_t k = 0; k < n; k++)
				assert_int_not_equal(have[k], tag);
			have[n++] = tag;
		} else if (n) {
			uint32_t k = (uint32_t)rand() % n;

			coll_tags_back(t, have[k]);
			have[k] = have[--n];
		}
	}
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks_differ),
		cmocka_unit_test(test_last_of_many),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
