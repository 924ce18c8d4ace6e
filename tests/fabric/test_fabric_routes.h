/* What the tests of routes share: fabrics with something missing, and a search for ways that knows
 * nothing but the list of cables. */
#ifndef WEFT_TEST_FABRIC_ROUTES_H
#define WEFT_TEST_FABRIC_ROUTES_H

#include "test_fabric.h"

#include "fabric_routes.h"
#include "util_rand.h"

static const struct fabric_routing rules[] = {
	{.kind = FABRIC_DMODK},
	{.kind = FABRIC_DMODK, .lmc = 2},
	{.kind = FABRIC_RANDOM, .seed = 5},
	{.kind = FABRIC_RANDOM, .seed = 6, .lmc = 1},
};

static inline uint32_t port_of(const struct fabric_tree *t, uint32_t cable, bool up)
{
	return up ? fabric_tree_lower_port(t, cable) : fabric_tree_upper_port(t, cable);
}

/* Each table against single steps. */
static inline void check_rows(const struct fabric_routes *r)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint16_t *row = malloc(fabric_routes_entries(r) * sizeof(*row));

	assert_non_null(row);
	for (uint32_t node = fabric_hosts(t); node < fabric_nodes(t); node++) {
		memset(row, 0xee, fabric_routes_entries(r) * sizeof(*row));
		assert_int_equal(fabric_routes_row(r, node, row), 0);
		for (uint32_t j = 0; j < fabric_hosts(t); j++)
			for (uint32_t a = 0; a < 1u << r->rule.lmc; a++) {
				uint32_t cable, port = row[(j << r->rule.lmc) + a];
				bool up;

				cable = fabric_routes_step(r, node, j, a, &up);
				assert_int_equal(port, cable == FABRIC_NONE
							       ? 0
							       : port_of(r->tree, cable, up));
			}
	}
	free(row);
}

static inline void take_away(struct fabric_tree *t, struct util_rand *rand)
{
	const struct fabric_pgft *p = &t->pgft;
	uint32_t rate = 2 + (uint32_t)util_rand_below(rand, 30);
	uint32_t what = (uint32_t)util_rand_below(rand, 4);

	/* Cables, switches, both, or anything, hosts too; one at least. */
	if (what != 1)
		assert_int_equal(
			fabric_tree_cut(t, (uint32_t)util_rand_below(rand, fabric_cables(p))), 0);
	for (uint32_t i = 0; what != 1 && i < fabric_cables(p); i++)
		if (util_rand_below(rand, rate) == 0)
			assert_int_equal(fabric_tree_cut(t, i), 0);
	if (what == 0)
		return;
	for (uint32_t i = what == 3 ? 0 : p->first[1]; i < fabric_nodes(p); i++)
		if (util_rand_below(rand, 2 * rate) == 0)
			assert_int_equal(fabric_tree_remove(t, i), 0);
	assert_int_equal(fabric_tree_remove(t, p->first[p->h]), 0);
}

/* Where there are ways to a host: from the cables alone, level by level. */
struct search {
	bool *down, *any; /* by node */
};

static inline void search(const struct fabric_tree *t, uint32_t host, struct search *s)
{
	const struct fabric_pgft *p = &t->pgft;

	memset(s->down, 0, fabric_nodes(p));
	s->down[host] = fabric_tree_has_node(t, host);
	/* Cables are numbered level by level. */
	for (uint32_t i = 0; i < fabric_cables(p); i++) {
		struct fabric_cable c = fabric_cable(p, i);

		if (fabric_tree_has_cable(t, i) && s->down[fabric_number(p, c.lower)])
			s->down[fabric_number(p, c.upper)] = true;
	}
	memcpy(s->any, s->down, fabric_nodes(p));
	for (uint32_t i = fabric_cables(p); i-- > 0;) {
		struct fabric_cable c = fabric_cable(p, i);

		if (fabric_tree_has_cable(t, i) && s->any[fabric_number(p, c.upper)])
			s->any[fabric_number(p, c.lower)] = true;
	}
}

/* Which link waits for which. */
struct waits {
	uint32_t links;
	uint8_t *for_link; /* links × links */
};

static inline void check_walk(const struct fabric_routes *r, uint32_t from, uint32_t host,
			      uint32_t address, const struct search *s, struct waits *w)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	uint32_t node = from, last = FABRIC_NONE, cable, hops = 0;
	bool up, came_down = false;

	while (cable = fabric_routes_step(r, node, host, address, &up), cable != FABRIC_NONE) {
		struct fabric_cable c = fabric_cable(p, cable);

		assert_true(s->any[from]);
		assert_true(fabric_tree_has_cable(r->tree, cable));
		assert_int_equal(fabric_number(p, up ? c.lower : c.upper), node);
		assert_false(up && came_down);
		came_down |= !up;
		node = fabric_number(p, up ? c.upper : c.lower);
		if (w && last != FABRIC_NONE)
			w->for_link[(size_t)last * w->links + fabric_link(cable, up)] = 1;
		last = fabric_link(cable, up);
		assert_true(++hops <= 2 * p->h);
	}
	if (s->any[from])
		assert_int_equal(node, host);
	else
		assert_int_equal(node, from);
}

/* Fabrics with something missing, of every tree, by all rules. */
typedef void visit(const struct fabric_routes *r, void *arg);

static inline void every_fault(visit *see, void *arg)
{
	enum { CASES = 60 };

	for (size_t i = 0; i < COUNT(trees); i++)
		for (uint32_t seed = 1; seed <= CASES; seed++) {
			const struct fabric_routing *rule = &rules[seed % COUNT(rules)];
			struct fabric_pgft pgft = tree(trees[i]);
			struct fabric_routes r;
			struct util_rand rand;
			struct fabric_tree t;

			print_message("%s seed %u\r", trees[i], seed);
			util_rand_seed(&rand, seed);
			fabric_tree_init(&t, &pgft);
			take_away(&t, &rand);
			assert_int_equal(fabric_routes_make(&r, &t, rule, NULL), 0);
			assert_non_null(r.around);
			see(&r, arg);
			fabric_routes_free(&r);
			fabric_tree_free(&t);
		}
}

#endif
