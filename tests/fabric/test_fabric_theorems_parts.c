/* What holds on parts of trees: each correction to what the paper says of them. */
#include "test_fabric_theorems.h"

/* Item 1: hosts left out at random, routes by their numbers. */
static void test_random_parts(void **state)
{
	const struct {
		const char *tuple;
		uint32_t out;
	} cases[] = {{table3[0], 24}, {table3[1], 36}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fabric_pgft t = tree(cases[i].tuple);

		for (uint32_t seed = 1; seed <= 30; seed++) {
			struct fabric_hsd r;
			struct scene s;
			char text[32];

			snprintf(text, sizeof(text), "%u:%u", cases[i].out, seed);
			build(&s, &t, text, false);
			r = hsd(&s, "shift");
			if (r.worst.all < 2 || r.avg_max_hsd < 1.7 || r.avg_max_hsd > 2.1)
				fail_msg("%s without %s: %u, on average %.3f", cases[i].tuple, text,
					 r.worst.all, r.avg_max_hsd);
			drop(&s);
		}
	}
}

/* Without hosts from … to−1. */
static void check_gap(const struct fabric_pgft *t, uint32_t from, uint32_t to)
{
	uint32_t *hosts = malloc(fabric_hosts(t) * sizeof(*hosts)), n = 0;
	struct scene s;

	assert_non_null(hosts);
	for (uint32_t i = 0; i < fabric_hosts(t); i++)
		if (i < from || i >= to)
			hosts[n++] = i;
	build_set(&s, t, hosts, n, false);
	check_one(&s, "shift");
	drop(&s);
	free(hosts);
}

/* Item 1: with one run left out, or whole sub-trees of the top, it is free of contention. */
static void test_contiguous_parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fabric_pgft t = tree(table3[i]);
		uint32_t unit = t.M[t.h - 1], n = fabric_hosts(&t);

		for (uint32_t from = 0; from + 2 * unit <= n; from += 5)
			check_gap(&t, from, from + 2 * unit);
		for (uint32_t from = 0; from < n - unit; from += unit)
			check_gap(&t, from, from + unit);
	}
}

static bool compact_holds(const struct fabric_pgft *t, const uint32_t *hosts, uint32_t n)
{
	struct scene s;
	bool holds;

	build_set(&s, t, hosts, n, true);
	holds = hsd(&s, "shift").worst.all <= 1;
	drop(&s);
	return holds;
}

static uint32_t sets_seen;

static void see_all_sets(const struct fabric_pgft *t)
{
	uint32_t hosts[16], unit = t->M[t->h - 1];

	if (fabric_hosts(t) != 16)
		return;
	for (uint32_t bits = 1; bits < 1u << 16; bits += THIN) {
		uint32_t n = 0;

		if ((uint32_t)__builtin_popcount(bits) % unit)
			continue;
		for (uint32_t i = 0; i < 16; i++)
			if (bits >> i & 1)
				hosts[n++] = i;
		if (!compact_holds(t, hosts, n))
			fail_msg("hosts %04x of a tree of %u levels", bits, t->h);
		sets_seen++;
	}
}

/* Item 3: with the compact index, any set whose size is a multiple of M_h−1. All of 16 hosts. */
static void test_compact_index(void **state)
{
	(void)state;
	sets_seen = 0;
	every_rlft((const uint32_t[]){4, 8, 16}, 3, 1, see_all_sets);
	print_message("%u sets of hosts\n", sets_seen);
	assert_true(sets_seen > 100000 / THIN / 2);
}

/* The same on larger trees, at random. */
static void test_compact_parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct fabric_pgft t = tree(table3[i]);

		for (uint32_t k = 1; k < (i < 2 ? t.m[t.h] : 3); k++) {
			struct scene s;
			char text[32];

			snprintf(text, sizeof(text), "%u:%u", k * t.M[t.h - 1], k);
			build(&s, &t, text, true);
			check_one(&s, "shift");
			check_one(&s, "dissemination");
			drop(&s);
		}
	}
}

/* Item 2: a multiple of W_h is not enough; the parallel cables of the top count, too. */
static void test_product_of_w(void **state)
{
	struct fabric_pgft t = tree(table3[0]);
	uint32_t blocked = 0;

	(void)state;
	assert_int_equal(t.W[t.h], 6);
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct scene s;
		char text[32];

		snprintf(text, sizeof(text), "18:%u", seed);
		build(&s, &t, text, true);
		blocked += hsd(&s, "shift").worst.all > 1;
		drop(&s);
	}
	assert_int_equal(blocked, 20);
}

/* Item 5: doubling along the tree on compact ranks. */
static void test_topo_parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct fabric_pgft t = tree(table3[i]);
		uint32_t unit = t.M[t.h - 1], least = 1;

		while (2 * least <= t.m[t.h])
			least *= 2;
		for (uint32_t n = least; n < t.m[t.h]; n++) {
			struct scene s;
			char text[32];

			snprintf(text, sizeof(text), "%u:%u", (t.m[t.h] - n) * unit, n);
			build(&s, &t, text, true);
			check_one(&s, "topo-recdbl");
			check_one(&s, "topo-rechalv");
			drop(&s);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_parts),  cmocka_unit_test(test_contiguous_parts),
		cmocka_unit_test(test_compact_index), cmocka_unit_test(test_compact_parts),
		cmocka_unit_test(test_product_of_w),  cmocka_unit_test(test_topo_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
