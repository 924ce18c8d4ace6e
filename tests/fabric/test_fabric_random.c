/* The random table: the entries themselves, and what it does to a pattern. */
#include "test_fabric.h"

#include "fabric_route.h"

/* Drawn one after the other, as the rule is written down; every entry is compared. */
static void check_table(const char *text, uint64_t seed, uint32_t lmc)
{
	struct fabric_routing r = {.kind = FABRIC_RANDOM, .seed = seed, .lmc = lmc};
	struct fabric_pgft t = tree(text);
	uint64_t state = seed;

	for (uint32_t g = 0; g < fabric_nodes(&t); g++)
		for (uint32_t j = 0; j < fabric_hosts(&t); j++)
			for (uint32_t a = 0; a < 1u << lmc; a++) {
				struct fabric_node n = fabric_node(&t, g);
				struct fabric_ports p = fabric_route(&t, &r, n, j, a);
				uint64_t x = splitmix64(&state);
				uint32_t l = n.level, want;

				if (p.count == 0)
					continue;
				if (p.up)
					want = (uint32_t)(x % (t.w[l + 1] * t.p[l + 1]));
				else
					want = j / t.M[l - 1] % t.m[l] +
					       (uint32_t)(x % t.p[l]) * t.m[l];
				assert_int_equal(p.first, want);
				assert_int_equal(p.count, 1);
			}
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		check_table(trees[i], 0, 0);
		check_table(trees[i], UINT64_MAX - 3, 0);
		check_table(trees[i], 42, 2);
	}
}

/* These were computed once and must never change: tables are compared between tools. */
static void test_pinned(void **state)
{
	static const uint32_t want[] = {0, 2, 2, 10, 6, 0, 0, 7, 6, 9, 5, 6, 4, 5, 5, 0};
	struct fabric_pgft t = tree("2;12,12;1,12;1,1");
	struct fabric_routing r = {.kind = FABRIC_RANDOM, .seed = 1};

	(void)state;
	for (uint32_t j = 0; j < COUNT(want); j++)
		assert_int_equal(fabric_route(&t, &r, (struct fabric_node){1, 0}, 12 + j, 0).first,
				 want[j]);
}

static void test_even(void **state)
{
	struct fabric_pgft t = tree("2;12,12;1,6;1,2");
	struct fabric_routing r = {.kind = FABRIC_RANDOM};
	uint32_t up[12] = {0}, cable[2] = {0}, n = 0, m = 0;

	(void)state;
	for (r.seed = 0; r.seed < 20; r.seed++)
		for (uint32_t j = 0; j < 144; j++) {
			for (uint32_t i = 0; i < 12; i++) {
				struct fabric_ports p =
					fabric_route(&t, &r, (struct fabric_node){1, i}, j, 0);

				if (p.up)
					up[p.first]++, n++;
			}
			for (uint32_t i = 0; i < 6; i++, m++)
				cable[fabric_route(&t, &r, (struct fabric_node){2, i}, j, 0).first /
				      12]++;
		}
	/* 31,680 and 17,280 draws: five standard deviations. */
	for (int i = 0; i < 12; i++)
		assert_true(abs((int)up[i] - (int)n / 12) < 5 * 50);
	assert_true(abs((int)cable[0] - (int)m / 2) < 5 * 66);
}

/* The largest number of flows on a link: hosts 0 … 23, i sends to i + 12. */
static uint32_t worst_degree(const struct fabric_pgft *t, const struct fabric_routing *r)
{
	uint32_t up[2][12] = {{0}}, down[2][12] = {{0}}, worst = 0;

	for (uint32_t i = 0; i < 24; i++) {
		uint32_t to = (i + 12) % 24;
		struct fabric_node leaf = fabric_cable_up(t, (struct fabric_node){0, i}, 0).upper;
		struct fabric_ports p = fabric_route(t, r, leaf, to, 0);
		struct fabric_node top = fabric_cable_up(t, leaf, p.first).upper;

		up[leaf.index][p.first]++;
		p = fabric_route(t, r, top, to, 0);
		assert_int_equal(fabric_cable_down(t, top, p.first).lower.index, to / 12);
		down[to / 12][top.index]++;
	}
	for (int i = 0; i < 24; i++) {
		worst = up[0][i % 12] > worst ? up[0][i % 12] : worst;
		worst = up[1][i % 12] > worst ? up[1][i % 12] : worst;
		worst = down[i / 12][i % 12] > worst ? down[i / 12][i % 12] : worst;
	}
	return worst;
}

/* What a static table that knows nothing of the pattern costs: on average the worst link
 * carries three and a quarter flows, where D-Mod-K has one. */
static void test_degree(void **state)
{
	enum { SEEDS = 4000 };
	static const struct {
		uint32_t degree;
		double share, within;
	} want[] = {{2, .10, .02}, {3, .60, .03}, {4, .25, .03}, {5, .04, .015}, {6, .004, .004}};
	struct fabric_pgft t = tree("2;12,12;1,12;1,1");
	struct fabric_routing r = {.kind = FABRIC_DMODK};
	uint32_t seen[13] = {0}, sum = 0;

	(void)state;
	assert_int_equal(worst_degree(&t, &r), 1);
	r.kind = FABRIC_RANDOM;
	for (r.seed = 1; r.seed <= SEEDS; r.seed++) {
		uint32_t d = worst_degree(&t, &r);

		seen[d]++;
		sum += d;
	}
	for (size_t i = 0; i < COUNT(want); i++) {
		double share = (double)seen[want[i].degree] / SEEDS;

		print_message("degree %u: %.4f\n", want[i].degree, share);
		assert_true(share > want[i].share - want[i].within &&
			    share < want[i].share + want[i].within);
	}
	print_message("mean %.3f\n", (double)sum / SEEDS);
	assert_true(sum > 3.20 * SEEDS && sum < 3.30 * SEEDS);
	assert_int_equal(seen[0] + seen[1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_even),
		cmocka_unit_test(test_degree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
