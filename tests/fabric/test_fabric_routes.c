/* Routes on fabrics as they are: the formula in all its forms, and tables around what is missing,
 * compared with a search that knows nothing but the list of cables. */
#include "test_fabric.h"

#include <time.h>

#include "fabric_routes.h"
#include "util_rand.h"

static const struct fabric_routing rules[] = {
	{.kind = FABRIC_DMODK},
	{.kind = FABRIC_DMODK, .lmc = 2},
	{.kind = FABRIC_RANDOM, .seed = 5},
	{.kind = FABRIC_RANDOM, .seed = 6, .lmc = 1},
};

/* ---- the formula ---- */

static uint32_t port_of(const struct fabric_tree *t, uint32_t cable, bool up)
{
	return up ? fabric_tree_lower_port(t, cable) : fabric_tree_upper_port(t, cable);
}

/* Each table against single steps. */
static void check_rows(const struct fabric_routes *r)
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

static void check_whole(const struct fabric_tree *tree, const struct fabric_routing *rule)
{
	const struct fabric_pgft *t = &tree->pgft;
	struct fabric_routes r;

	assert_int_equal(fabric_routes_make(&r, tree, rule, NULL), 0);
	assert_null(r.table);
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

/* ---- what is missing ---- */

static void take_away(struct fabric_tree *t, struct util_rand *rand)
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

static void search(const struct fabric_tree *t, uint32_t host, struct search *s)
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

static void check_walk(const struct fabric_routes *r, uint32_t from, uint32_t host,
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

	rule.table = NULL;
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

/* ---- balance ---- */

/* Of one switch: how many destinations each up-going cable has, how many of them by the rule, and
 * the last that it was given. */
struct spread {
	uint32_t load[64], kept[64], last[64];
	uint32_t total, alive, most, most_kept;
	bool equal; /* every cable leads wherever any does */
};

static bool up_leads(const struct fabric_routes *r, struct fabric_node n, uint32_t q, size_t e)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	struct fabric_cable c = fabric_cable_up(p, n, q);
	size_t row = fabric_number(p, c.upper) - p->first[1];

	return fabric_tree_has_cable(r->tree, fabric_cable_number(p, &c)) &&
	       r->table[row * fabric_routes_entries(r) + e];
}

static void measure(const struct fabric_routes *r, struct fabric_node n, struct spread *x)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	uint32_t up = fabric_up_ports(p, n.level), lmc = r->rule.lmc;
	bool goes_up;

	*x = (struct spread){.equal = true};
	for (uint32_t q = 0; q < up; q++) {
		struct fabric_cable c = fabric_cable_up(p, n, q);

		x->alive += fabric_tree_has_cable(r->tree, fabric_cable_number(p, &c));
		x->last[q] = FABRIC_NONE;
	}
	for (uint32_t e = 0; e < fabric_routes_entries(r); e++) {
		uint32_t a = e & ((1u << lmc) - 1), leading = 0, q;
		uint32_t cable = fabric_routes_step(r, fabric_number(p, n), e >> lmc, a, &goes_up);

		if (cable == FABRIC_NONE || !goes_up)
			continue;
		q = fabric_cable(p, cable).q;
		x->load[q]++;
		x->total++;
		if (fabric_route(p, &r->rule, n, e >> lmc, a).first == q)
			x->kept[q]++;
		else
			x->last[q] = e;
		for (uint32_t i = 0; i < up; i++)
			leading += up_leads(r, n, i, e);
		x->equal &= leading == x->alive;
	}
	for (uint32_t q = 0; q < up; q++) {
		x->most = x->load[q] > x->most ? x->load[q] : x->most;
		x->most_kept = x->kept[q] > x->most_kept ? x->kept[q] : x->most_kept;
	}
}

/* Who was given away last went to a cable with the fewest, or to one with not more than the mean
 * and an eighth; so where all cables lead to all, nothing is above that unless the rule had it
 * there. */
static uint32_t check_balance(const struct fabric_routes *r)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	uint32_t equal = 0;

	for (uint32_t node = p->first[1]; node < fabric_nodes(p); node++) {
		struct fabric_node n = fabric_node(p, node);
		uint32_t up = fabric_up_ports(p, n.level), entries, enough;
		struct spread x;

		if (!up || !fabric_tree_has_node(r->tree, node))
			continue;
		measure(r, n, &x);
		entries = (fabric_hosts(p) - p->M[n.level]) << r->rule.lmc;
		enough = x.alive ? entries * 9 / (8 * x.alive) + 1 : 0;
		for (uint32_t q = 0; q < up; q++)
			for (uint32_t i = 0; x.last[q] != FABRIC_NONE && i < up; i++)
				if (up_leads(r, n, i, x.last[q]))
					assert_true(x.load[q] <= x.load[i] + 1 ||
						    x.load[q] <= enough);
		if (!x.equal || !x.alive)
			continue;
		assert_true(x.most <= (enough > x.most_kept ? enough : x.most_kept));
		equal++;
	}
	return equal;
}

static void test_around(void **state)
{
	enum { CASES = 60 };
	uint32_t done = 0, equal = 0;

	(void)state;
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
			assert_non_null(r.table);
			check_rows(&r);
			check_around(&r);
			equal += check_balance(&r);
			fabric_routes_free(&r);
			fabric_tree_free(&t);
			done++;
		}
	print_message("%u fabrics, %u switches whose cables all lead to all\n", done, equal);
	assert_true(equal > 500);
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

/* How many destinations come down the cables between switches, from whatever leaf: in a permutation
 * no link has more flows. Returns the worst. */
static uint32_t worst_down(const struct fabric_routes *r)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	uint32_t links = 2 * fabric_cables(p), worst = 0;
	uint32_t *count = calloc(links, sizeof(*count)), *last = calloc(links, sizeof(*last));

	assert_true(count && last);
	for (uint32_t j = 0; j < fabric_hosts(p); j++)
		for (uint32_t leaf = p->first[1]; leaf < p->first[2]; leaf++) {
			uint32_t node = leaf, cable;
			bool up;

			while (cable = fabric_routes_step(r, node, j, 0, &up),
			       cable != FABRIC_NONE) {
				struct fabric_cable c = fabric_cable(p, cable);
				uint32_t link = fabric_link(cable, up);

				if (!up && c.lower.level > 0 && last[link] != j + 1) {
					last[link] = j + 1;
					count[link]++;
					worst = count[link] > worst ? count[link] : worst;
				}
				node = fabric_number(p, up ? c.upper : c.lower);
			}
		}
	free(count);
	free(last);
	return worst;
}

static uint32_t worst_down_without(const char *text, const uint32_t *gone, size_t n)
{
	struct fabric_pgft pgft = tree(text);
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct fabric_routes r;
	struct fabric_tree t;
	uint32_t worst;

	fabric_tree_init(&t, &pgft);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(fabric_tree_remove(&t, gone[i]), 0);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	worst = worst_down(&r);
	fabric_routes_free(&r);
	fabric_tree_free(&t);
	return worst;
}

/* All leaves take the same detour to a destination, each to another cable of its leaf. One is what
 * the rule has on a whole tree; any choice has two where as many hosts as before share fewer
 * cables. When switches are missing at several places, not all can agree. */
static void test_down(void **state)
{
	/* Of 1944: 108 leaves, 108 above them, 18 to a sub-tree, and 54 at the top. */
	const uint32_t leaf = 1944, second = leaf + 108, top = second + 108;
	const uint32_t gone[] = {top + 9, second + 4, second + 5 * 18 + 14};

	(void)state;
	assert_int_equal(worst_down_without("2;12,12;1,6;1,2", (uint32_t[]){156}, 0), 1);
	assert_int_equal(worst_down_without("2;12,12;1,6;1,2", (uint32_t[]){156 + 4}, 1), 2);
	assert_int_equal(worst_down_without("2;12,12;1,6;1,2", (uint32_t[]){156, 159}, 2), 2);
	assert_int_equal(worst_down_without("2;18,18;1,9;1,2", (uint32_t[]){342, 349}, 2), 2);
	assert_int_equal(worst_down_without("3;18,18,6;1,18,3;1,1,6", gone, 0), 1);
	assert_int_equal(worst_down_without("3;18,18,6;1,18,3;1,1,6", gone, 1), 2);
	assert_in_range(worst_down_without("3;18,18,6;1,18,3;1,1,6", gone, 2), 2, 3);
	assert_in_range(worst_down_without("3;18,18,6;1,18,3;1,1,6", gone, 3), 2, 3);
}

/* A top switch of 144 is gone. Ten cables of each leaf are left for 132 destinations: eleven each
 * by the rule, and 22 that have to go elsewhere. */
static void test_top_gone(void **state)
{
	struct fabric_pgft pgft = tree("2;12,12;1,6;1,2");
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct fabric_routes r;
	struct fabric_tree t;
	struct spread x;

	(void)state;
	fabric_tree_init(&t, &pgft);
	assert_int_equal(fabric_tree_remove(&t, pgft.first[2] + 4), 0);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	for (uint32_t i = 0; i < 12; i++) {
		measure(&r, (struct fabric_node){1, i}, &x);
		assert_int_equal(x.total, 132);
		assert_int_equal(x.alive, 10);
		for (uint32_t q = 0; q < 12; q++)
			assert_in_range(x.load[q], q % 6 == 4 ? 0 : 12, q % 6 == 4 ? 0 : 15);
	}
	fabric_routes_free(&r);
	fabric_tree_free(&t);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),    cmocka_unit_test(test_index),
		cmocka_unit_test(test_around),   cmocka_unit_test(test_around_index),
		cmocka_unit_test(test_top_gone), cmocka_unit_test(test_down),
		cmocka_unit_test(test_large),    cmocka_unit_test(test_million),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
