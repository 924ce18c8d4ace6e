/* Ways around what is missing, compared with a search. */
#include "test_fabric_routes.h"

/* Takes links away that wait for none that is left; all must go. */
static void check_no_circle(struct waits *w)
{
	uint32_t *count = calloc(w->links, sizeof(*count)),
		 *queue = calloc(w->links, sizeof(*queue));
	uint32_t n = 0;

	assert_true(count && queue);
	for (uint32_t i = 0; i < w->links; i++) {
		for (uint32_t k = 0; k < w->links; k++)
			count[i] += w->for_link[(size_t)i * w->links + k];
		if (!count[i])
			queue[n++] = i;
	}
	for (uint32_t at = 0; at < n; at++)
		for (uint32_t i = 0; i < w->links; i++)
			if (w->for_link[(size_t)i * w->links + queue[at]] && --count[i] == 0)
				queue[n++] = i;
	assert_int_equal(n, w->links);
	free(count);
	free(queue);
}

/* Does this link lead to the host that was searched for? */
static bool leads(const struct fabric_tree *t, uint32_t cable, bool up, const struct search *s)
{
	struct fabric_cable c = fabric_cable(&t->pgft, cable);

	if (!fabric_tree_has_cable(t, cable))
		return false;
	return up ? s->any[fabric_number(&t->pgft, c.upper)]
		  : s->down[fabric_number(&t->pgft, c.lower)];
}

/* The rule's cable is kept where it leads there. */
static void check_kept(const struct fabric_routes *r, const struct fabric_routes *rule,
		       const struct search *s, uint32_t host, uint32_t address)
{
	const struct fabric_pgft *p = &r->tree->pgft;

	for (uint32_t node = 0; node < fabric_nodes(p); node++) {
		bool up, rule_up;
		uint32_t cable = fabric_routes_step(r, node, host, address, &up);
		uint32_t wanted = fabric_routes_step(rule, node, host, address, &rule_up);

		if (wanted != FABRIC_NONE && leads(r->tree, wanted, rule_up, s))
			assert_int_equal(cable, wanted);
	}
}

static void check_around(const struct fabric_routes *r)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	struct search s = {malloc(fabric_nodes(p)), malloc(fabric_nodes(p))};
	struct waits w = {.links = 2 * fabric_cables(p)};
	struct fabric_routes rule = *r;

	rule.around = NULL;
	w.for_link = calloc(w.links, w.links);
	assert_true(s.down && s.any && w.for_link);
	for (uint32_t host = 0; host < fabric_hosts(p); host++) {
		search(r->tree, host, &s);
		for (uint32_t a = 0; a < 1u << r->rule.lmc; a++) {
			for (uint32_t from = 0; from < fabric_nodes(p); from++)
				if (from != host)
					check_walk(r, from, host, a, &s, &w);
			check_kept(r, &rule, &s, host, a);
		}
	}
	check_no_circle(&w);
	free(w.for_link);
	free(s.down);
	free(s.any);
}

/* Counted from host to host, and from the search. */
static void check_lost_pairs(const struct fabric_routes *r)
{
	const struct fabric_tree *t = r->tree;
	uint32_t hosts = fabric_hosts(&t->pgft);
	struct search s = {malloc(fabric_nodes(&t->pgft)), malloc(fabric_nodes(&t->pgft))};
	uint64_t pairs, lost = 0;

	assert_true(s.down && s.any);
	for (uint32_t j = 0; j < hosts; j++) {
		search(t, j, &s);
		for (uint32_t i = 0; i < hosts; i++)
			lost += i != j && !s.any[i] && fabric_tree_has_node(t, i) &&
				fabric_tree_has_node(t, j);
	}
	assert_int_equal(fabric_routes_unreachable(r, &pairs), 0);
	assert_int_equal(pairs, lost);
	free(s.down);
	free(s.any);
}

/* Is a table as if the tree were whole? */
static void check_by_rule(const struct fabric_routes *r)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	struct fabric_routes rule = *r;

	rule.around = NULL;
	for (uint32_t node = p->first[1]; node < fabric_nodes(p); node++) {
		bool same = true, up[2];

		for (uint32_t e = 0; e < fabric_routes_entries(r); e++) {
			uint32_t j = e >> r->rule.lmc, a = e & ((1u << r->rule.lmc) - 1);

			same &= fabric_routes_step(r, node, j, a, &up[0]) ==
				fabric_routes_step(&rule, node, j, a, &up[1]);
		}
		assert_int_equal(fabric_routes_by_rule(r, node), same);
		assert_true(fabric_routes_by_rule(&rule, node));
	}
}

/* Switches whose tables are said to be the same have the same. */
static void check_same(const struct fabric_routes *r)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	size_t n = fabric_routes_entries(r);
	uint16_t *a = malloc(n * sizeof(*a)), *b = malloc(n * sizeof(*b));
	uint32_t same = 0, nodes = fabric_nodes(p);

	for (uint32_t node = p->first[1] + 1; node < nodes; node++) {
		assert_true(fabric_routes_same(r, node, node));
		if (!fabric_tree_has_node(r->tree, node - 1) ||
		    !fabric_tree_has_node(r->tree, node) || !fabric_routes_same(r, node - 1, node))
			continue;
		same++;
		assert_int_equal(fabric_routes_row(r, node - 1, a), 0);
		assert_int_equal(fabric_routes_row(r, node, b), 0);
		assert_memory_equal(a, b, n * sizeof(*a));
	}
	if (r->rule.kind == FABRIC_RANDOM)
		assert_int_equal(same, 0);
	free(a);
	free(b);
}

static void see(const struct fabric_routes *r, void *arg)
{
	(void)arg;
	check_same(r);
	check_rows(r);
	check_around(r);
	check_lost_pairs(r);
	check_by_rule(r);
}

static void test_around(void **state)
{
	(void)state;
	every_fault(see, NULL);
}

/* With an index: the same, of positions. */
static void test_around_index(void **state)
{
	uint32_t index[144];

	(void)state;
	for (uint32_t seed = 100; seed < 110; seed++) {
		struct fabric_pgft pgft = tree("2;12,12;1,6;1,2");
		struct fabric_routing rule = {.kind = FABRIC_DMODK};
		struct fabric_routes r;
		struct util_rand rand;
		struct fabric_tree t;
		uint32_t next = 0;

		print_message("seed %u\r", seed);
		util_rand_seed(&rand, seed);
		for (uint32_t j = 0; j < 144; j++)
			index[j] = util_rand_below(&rand, 3) ? next++ : FABRIC_NONE;
		fabric_tree_init(&t, &pgft);
		take_away(&t, &rand);
		assert_int_equal(fabric_routes_make(&r, &t, &rule, index), 0);
		check_around(&r);
		fabric_routes_free(&r);
		fabric_tree_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_around),
		cmocka_unit_test(test_around_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
