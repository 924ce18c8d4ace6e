/* n-way dissemination, for every number of ranks and of ways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "coll_dissem.h"

enum { RANKS = 200 };

/* Sanitizers make this ten times slower, and find nothing more in more of the same. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { THIN = 7 };
#else
enum { THIN = 1 };
#endif

struct known {
	uint64_t of[RANKS][(RANKS + 63) / 64];
};

static void play_round(const struct coll_dissem *d, uint32_t round, struct known *now)
{
	static struct known before;
	uint32_t width = coll_dissem_width(d, round);

	before = *now;
	assert_in_range(width, 1, d->ways);
	for (uint32_t i = 0; i < d->ranks; i++) {
		bool told[RANKS] = {false};

		for (uint32_t k = 0; k < width; k++) {
			uint32_t to = coll_dissem_to(d, i, round, k);

			assert_true(to < d->ranks && to != i && !told[to]);
			assert_int_equal(coll_dissem_from(d, to, round, k), i);
			told[to] = true;
			for (size_t w = 0; w < sizeof(now->of[0]) / sizeof(now->of[0][0]); w++)
				now->of[to][w] |= before.of[i][w];
		}
	}
}

static bool complete(const struct known *k, uint32_t ranks)
{
	for (uint32_t i = 0; i < ranks; i++)
		for (uint32_t j = 0; j < ranks; j++)
			if (!(k->of[i][j / 64] >> j % 64 & 1))
				return false;
	return true;
}

/* After the last round all know of all, and one round before they do not. */
static void check(uint32_t ranks, uint32_t ways)
{
	static struct known k;
	struct coll_dissem d;

	coll_dissem_init(&d, ranks, ways);
	assert_int_equal(d.ways, ways);
	memset(&k, 0, sizeof(k));
	for (uint32_t i = 0; i < ranks; i++)
		k.of[i][i / 64] |= UINT64_C(1) << i % 64;
	for (uint32_t round = 0; round < d.rounds; round++) {
		assert_false(complete(&k, ranks));
		play_round(&d, round, &k);
	}
	if (!complete(&k, ranks))
		fail_msg("%u ranks, %u ways: incomplete", ranks, ways);
}

static void test_all_know_of_all(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= RANKS; ranks += THIN)
		for (uint32_t ways = 1; ways < ranks; ways++)
			check(ranks, ways);
}

static void test_one_rank_and_odd_ways(void **state)
{
	struct coll_dissem d;

	(void)state;
	coll_dissem_init(&d, 1, 3);
	assert_int_equal(d.rounds, 0);
	assert_int_equal(coll_dissem_best(1, 1, 1).rounds, 0);
	assert_true(coll_dissem_cost(&d, 1, 1) == 0);
	coll_dissem_init(&d, 5, 0);
	assert_int_equal(d.ways, 1);
	coll_dissem_init(&d, 5, 1000);
	assert_int_equal(d.ways, 4);
	assert_int_equal(d.rounds, 1);
	/* Many ranks: numbers do not wrap. */
	coll_dissem_init(&d, 1u << 31, 1u << 30);
	assert_int_equal(d.rounds, 2);
	assert_int_equal(coll_dissem_width(&d, 1), 1);
}

/* No number of ways is cheaper than the one that was chosen. */
static void test_best(void **state)
{
	static const double ways_long[] = {0, 0.3, 1, 2, 5, 20, 100, 1000};

	(void)state;
	for (uint32_t ranks = 2; ranks <= RANKS; ranks += THIN)
		for (size_t l = 0; l < sizeof(ways_long) / sizeof(ways_long[0]); l++) {
			struct coll_dissem best = coll_dissem_best(ranks, 1, ways_long[l]), d;
			double cost = coll_dissem_cost(&best, 1, ways_long[l]);

			for (uint32_t ways = 1; ways < ranks; ways++) {
				coll_dissem_init(&d, ranks, ways);
				if (coll_dissem_cost(&d, 1, ways_long[l]) < cost - 1e-9)
					fail_msg("%u ranks, L %.1f: %u ways are better than %u",
						 ranks, ways_long[l], ways, best.ways);
			}
		}
}

/* Known by hand: 16 ranks, messages much cheaper than the way: two rounds of three. */
static void test_sixteen(void **state)
{
	struct coll_dissem d = coll_dissem_best(16, 1, 8);

	(void)state;
	assert_int_equal(d.ways, 3);
	assert_int_equal(d.rounds, 2);
	assert_true(coll_dissem_cost(&d, 1, 8) == 24);
	assert_int_equal(coll_dissem_best(16, 1, 0.5).ways, 1);
	assert_int_equal(coll_dissem_best(16, 1, 1000).ways, 15);
}

/* What is tried, in order of rounds, is written here in another way: each of 1 … ranks − 1 that
 * no smaller one equals in rounds, unless it is far. */
static void check_tries(uint32_t ranks, double L)
{
	struct coll_dissem tries[COLL_DISSEM_TRIES], best = coll_dissem_best(ranks, 1, L), d;
	uint32_t count = coll_dissem_tries(ranks, 1, L, tries), at = 1, rounds = 0;

	assert_in_range(count, 1, COLL_DISSEM_TRIES);
	assert_memory_equal(&tries[0], &best, sizeof(best));
	for (uint32_t ways = 1; ways < ranks; ways++) {
		coll_dissem_init(&d, ranks, ways);
		if (d.rounds == rounds)
			continue;
		rounds = d.rounds;
		if (ways == best.ways ||
		    coll_dissem_cost(&d, 1, L) > COLL_DISSEM_FAR * coll_dissem_cost(&best, 1, L))
			continue;
		assert_true(at < count);
		assert_memory_equal(&tries[at++], &d, sizeof(d));
	}
	assert_int_equal(at, count);
}

static void test_tries(void **state)
{
	struct coll_dissem tries[COLL_DISSEM_TRIES];

	(void)state;
	for (uint32_t ranks = 1; ranks <= RANKS; ranks++)
		for (double L = 0.3; L < 1000; L *= 3)
			check_tries(ranks, L);
	/* With one or two there is no choice. */
	assert_int_equal(coll_dissem_tries(1, 1, 1, tries), 1);
	assert_int_equal(tries[0].rounds, 0);
	assert_int_equal(coll_dissem_tries(2, 1, 1, tries), 1);
	/* 24 by hand: 5 rounds of 1, 3 of 2, 2 of 4, 1 of 23; 4 rounds need 2 ways as 3 do. */
	assert_int_equal(coll_dissem_tries(24, 1, 20, tries), 4);
	assert_int_equal(tries[0].ways, 23);
	assert_int_equal(tries[1].ways, 1);
	assert_int_equal(tries[2].ways, 2);
	assert_int_equal(tries[3].ways, 4);
	/* Nobody sends to a thousand others just to see what it takes. */
	for (uint32_t i = coll_dissem_tries(1024, 1, 2, tries); i-- > 0;)
		assert_in_range(tries[i].ways, 1, 31);
	/* Many more than there ever are. */
	assert_in_range(coll_dissem_tries(1u << 20, 1e-9, 1, tries), 2, COLL_DISSEM_TRIES);
}

static void test_choose(void **state)
{
	(void)state;
	assert_int_equal(coll_dissem_choose((uint64_t[]){100}, 1), 0);
	assert_int_equal(coll_dissem_choose((uint64_t[]){100, 120, 300}, 3), 0);
	/* A tenth is noise, more is not. */
	assert_int_equal(coll_dissem_choose((uint64_t[]){1000, 900, 950}, 3), 0);
	assert_int_equal(coll_dissem_choose((uint64_t[]){1000, 2000, 899}, 3), 2);
	assert_int_equal(coll_dissem_choose((uint64_t[]){1000, 700, 800, 710}, 4), 1);
	/* Of equal ones that with the fewest ways. */
	assert_int_equal(coll_dissem_choose((uint64_t[]){1000, 700, 700}, 3), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_know_of_all),
		cmocka_unit_test(test_one_rank_and_odd_ways),
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_sixteen),
		cmocka_unit_test(test_tries),
		cmocka_unit_test(test_choose),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
