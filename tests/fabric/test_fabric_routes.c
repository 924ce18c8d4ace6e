/* Routes on fabrics as they are: the formula in all its forms; large fabrics; refusals. */
#include "test_fabric_routes.h"

#include <sys/resource.h>
#include <time.h>

#include "fabric_mod.h"

/* ---- the formula ---- */

static void check_whole(const struct fabric_tree *tree, const struct fabric_routing *rule)
{
	const struct fabric_pgft *t = &tree->pgft;
	struct fabric_routes r;

	assert_int_equal(fabric_routes_make(&r, tree, rule, NULL), 0);
	assert_null(r.table);
	assert_null(r.around);
	for (uint32_t node = 0; node < fabric_nodes(t); node++)
		for (uint32_t j = 0; j < fabric_hosts(t); j++)
			for (uint32_t a = 0; a < 1u << rule->lmc; a++) {
				struct fabric_node n = fabric_node(t, node);
				struct fabric_ports p = fabric_route(t, rule, n, j, a);
				uint32_t cable;
				bool up;

				cable = fabric_routes_step(&r, node, j, a, &up);
				if (p.count == 0) {
					assert_int_equal(cable, FABRIC_NONE);
					continue;
				}
				assert_int_equal(up, p.up);
				assert_int_equal(port_of(tree, cable, up),
						 n.level == 0 ? p.first + 1
						 : p.up       ? p.first + 1 +
								  fabric_down_ports(t, n.level)
							: p.first + 1);
			}
	check_rows(&r);
	fabric_routes_free(&r);
}

static void test_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft pgft = tree(trees[i]);
		struct fabric_tree t;

		fabric_tree_init(&t, &pgft);
		for (size_t k = 0; k < COUNT(rules); k++)
			check_whole(&t, &rules[k]);
		fabric_tree_free(&t);
	}
}

/* Every third host is left out: its number stands for it. Up-going ports are what D-Mod-K says of
 * the position, and with positions that are the numbers nothing changes. */
static void test_index(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft pgft = tree(trees[i]);
		uint32_t n = fabric_hosts(&pgft), *index = malloc(n * sizeof(*index)), next = 0;
		struct fabric_routes r, plain;
		struct fabric_tree t;

		assert_non_null(index);
		fabric_tree_init(&t, &pgft);
		for (uint32_t lmc = 0; lmc < 3; lmc++) {
			struct fabric_routing rule = {.kind = FABRIC_DMODK, .lmc = lmc};

			for (uint32_t j = 0; j < n; j++)
				index[j] = j;
			assert_int_equal(fabric_routes_make(&r, &t, &rule, index), 0);
			assert_int_equal(fabric_routes_make(&plain, &t, &rule, NULL), 0);
			for (uint32_t node = 0; node < fabric_nodes(&pgft); node++)
				for (uint32_t e = 0; e < n << lmc; e++) {
					uint32_t j = e >> lmc, a = e & ((1u << lmc) - 1);
					bool up[2];

					assert_int_equal(
						fabric_routes_step(&r, node, j, a, &up[0]),
						fabric_routes_step(&plain, node, j, a, &up[1]));
				}
			check_rows(&r);
			next = 0;
			for (uint32_t j = 0; j < n; j++)
				index[j] = j % 3 == 1 ? FABRIC_NONE : next++;
			check_rows(&r);
			for (uint32_t j = 1; pgft.h > 1 && j < n; j++) {
				uint32_t key = index[j] == FABRIC_NONE ? j : index[j], cable;
				struct fabric_cable c;
				bool up;

				if (fabric_is_below(&pgft, (struct fabric_node){1, 0}, j))
					continue;
				cable = fabric_routes_step(&r, pgft.first[1], j, 0, &up);
				c = fabric_cable(&pgft, cable);
				assert_true(up);
				assert_int_equal(c.q, key / pgft.W[1] % fabric_up_ports(&pgft, 1));
			}
		}
		free(index);
		fabric_tree_free(&t);
	}
}

/* ---- large ones ---- */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static uint64_t sum_rows(const struct fabric_routes *r, uint32_t step)
{
	uint16_t *row = malloc(fabric_routes_entries(r) * sizeof(*row));
	uint64_t sum = 0;

	assert_non_null(row);
	for (uint32_t node = r->tree->pgft.first[1]; node < fabric_nodes(&r->tree->pgft);
	     node += step) {
		assert_int_equal(fabric_routes_row(r, node, row), 0);
		sum = sum * 31 + row[node % fabric_routes_entries(r)];
	}
	free(row);
	return sum;
}

static void test_large(void **state)
{
	struct fabric_pgft pgft = tree("3;18,18,36;1,18,18;1,1,1");
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct search s = {malloc(fabric_nodes(&pgft)), malloc(fabric_nodes(&pgft))};
	struct util_rand rand;
	struct fabric_routes r;
	struct fabric_tree t;
	double begin;

	(void)state;
	assert_true(s.down && s.any);
	fabric_tree_init(&t, &pgft);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	begin = now();
	print_message("sum %llx, ", (unsigned long long)sum_rows(&r, 1));
	print_message("all tables of 11,664 hosts: %.3f s\n", now() - begin);
	util_rand_seed(&rand, 1);
	for (int i = 0; i < 60; i++) {
		uint32_t node = (uint32_t)util_rand_below(&rand, 1620) + 11664;
		uint32_t cable = (uint32_t)util_rand_below(&rand, fabric_cables(&pgft));

		assert_int_equal(i < 12 ? fabric_tree_remove(&t, node) : fabric_tree_cut(&t, cable),
				 0);
	}
	begin = now();
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	print_message("with 12 switches and 48 cables missing: %.3f s\n", now() - begin);
	/* Ways only: which link waits for which would be 70,000² bytes. */
	for (int i = 0; i < 20; i++) {
		uint32_t host = (uint32_t)util_rand_below(&rand, 11664);

		search(&t, host, &s);
		for (uint32_t from = 0; from < fabric_nodes(&pgft); from += 7)
			if (from != host)
				check_walk(&r, from, host, 0, &s, NULL);
	}
	free(s.down);
	free(s.any);
	fabric_routes_free(&r);
	fabric_tree_free(&t);
}

/* Every hundredth table of a million hosts. */
static void test_million(void **state)
{
	struct fabric_pgft pgft = tree("3;100,100,100;1,100,100;1,1,1");
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct fabric_routes r;
	struct fabric_tree t;
	double begin = now();

	(void)state;
	fabric_tree_init(&t, &pgft);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	print_message("sum %llx, ", (unsigned long long)sum_rows(&r, 100));
	print_message("300 of 30,000 tables: %.3f s\n", now() - begin);
	fabric_tree_free(&t);
}

/* A million with faults: only what is different is stored, and found quickly. */
static void test_million_around(void **state)
{
	static const char *const gone[] = {"s2.0", "s3.17", "h9", "s1.30"};
	struct fabric_pgft pgft = tree("3;100,100,100;1,100,100;1,1,1");
	struct search s = {malloc(fabric_nodes(&pgft)), malloc(fabric_nodes(&pgft))};
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct fabric_routes r;
	struct fabric_tree t;
	struct util_rand rand;
	struct rusage usage;
	uint64_t pairs;
	double begin = now();

	(void)state;
	assert_true(s.down && s.any);
	fabric_tree_init(&t, &pgft);
	for (size_t i = 0; i < COUNT(gone); i++) {
		uint32_t node;

		assert_int_equal(fabric_tree_find(&t, gone[i], &node), 0);
		assert_int_equal(fabric_tree_remove(&t, node), 0);
	}
	assert_int_equal(fabric_tree_cut(&t, pgft.first_cable[2] + 123456), 0);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	assert_int_equal(fabric_routes_unreachable(&r, &pairs), 0);
	/* The hundred of s1.30 and all others, in both directions, and among themselves. */
	assert_int_equal(pairs, UINT64_C(2) * 100 * (999999 - 100) + 100 * 99);
	print_message("a million hosts with five faults: %.3f s\n", now() - begin);
	util_rand_seed(&rand, 1);
	for (int i = 0; i < 3; i++) {
		/* In the sub-tree that lost a switch, by the port that led there; and any. */
		uint32_t host = i ? (uint32_t)util_rand_below(&rand, 1000000) : 4300;

		search(&t, host, &s);
		for (uint32_t from = 0; from < 1000000; from += 997)
			if (from != host && fabric_tree_has_node(&t, from))
				check_walk(&r, from, host, 0, &s, NULL);
	}
	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	assert_true(usage.ru_maxrss < 1024 * 1024);
	free(s.down);
	free(s.any);
	fabric_routes_free(&r);
	fabric_tree_free(&t);
}

/* ---- refusals ---- */

static void test_refused(void **state)
{
	struct fabric_pgft pgft = tree("2;4,4;1,2;1,2"), wide = tree("1;40000;1;1");
	struct fabric_pgft wider = tree("1;70000;1;1");
	struct fabric_routing ecmp = {.kind = FABRIC_ECMP}, rule = {.kind = FABRIC_DMODK};
	uint16_t *row = malloc(70000 * sizeof(*row));
	struct fabric_routes r;
	struct fabric_tree t;

	(void)state;
	assert_non_null(row);
	fabric_tree_init(&t, &pgft);
	assert_int_equal(fabric_routes_make(&r, &t, &ecmp, NULL), -EINVAL);
	fabric_tree_free(&t);
	fabric_tree_init(&t, &wide);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	assert_int_equal(fabric_routes_row(&r, 40000, row), 0);
	assert_int_equal(row[39999], 40000);
	assert_int_equal(fabric_tree_cut(&t, 3), 0);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), -ERANGE);
	fabric_tree_free(&t);
	fabric_tree_init(&t, &wider);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	assert_int_equal(fabric_routes_row(&r, 70000, row), -ERANGE);
	fabric_tree_free(&t);
	free(row);
}

/* Remainders without a division. */
static void test_mod(void **state)
{
	struct util_rand rand;

	(void)state;
	util_rand_seed(&rand, 3);
	for (uint64_t by = 2; by < 40000; by += by < 300 ? 1 : 977) {
		struct fabric_mod m = fabric_mod(by);

		for (uint64_t i = 0; i < 100; i++) {
			uint64_t x = util_rand_next(&rand), edge = x / by * by;

			assert_int_equal(fabric_mod_of(&m, x), x % by);
			assert_int_equal(fabric_mod_of(&m, edge), 0);
			assert_int_equal(fabric_mod_of(&m, edge - 1), (edge - 1) % by);
			assert_int_equal(fabric_mod_of(&m, UINT64_MAX - i), (UINT64_MAX - i) % by);
			assert_int_equal(fabric_mod_of(&m, i), i % by);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_index),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_million),
		cmocka_unit_test(test_million_around),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_mod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
