/* Routes on fabrics as they are: the formula in all its forms, and tables around what is missing,
 * compared with a search that knows nothing but the list of cables. */
#include "test_fabric.h"

#include <sys/resource.h>
#include <time.h>

#include "fabric_mod.h"
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

/* ---- balance ---- */

/* Of one switch, the cables that go up or those that go down to one child: how many destinations
 * each has. */
enum { CABLES_MAX = 64, LOST_MAX = 1024 };

struct spread {
	uint32_t n;                      /* cables */
	uint32_t load[CABLES_MAX];       /* destinations of each */
	uint32_t kept[CABLES_MAX];       /* ... that have it by the rule */
	bool lead[LOST_MAX][CABLES_MAX]; /* of each other, which cables lead there */
	uint32_t lost, total;
	bool unequal; /* not all lead to all */
};

static uint32_t cable_of(const struct fabric_pgft *p, struct fabric_node n, uint32_t port, bool up)
{
	struct fabric_cable c = up ? fabric_cable_up(p, n, port) : fabric_cable_down(p, n, port);

	return fabric_cable_number(p, &c);
}

static bool cable_leads(const struct fabric_routes *r, uint32_t cable, bool up, uint32_t host,
			uint32_t address)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	struct fabric_cable c = fabric_cable(p, cable);
	uint32_t next = fabric_number(p, up ? c.upper : c.lower);
	bool any;

	return fabric_tree_has_cable(r->tree, cable) &&
	       (next == host || fabric_routes_step(r, next, host, address, &any) != FABRIC_NONE);
}

/* One destination that goes by one of these cables: ports first, first + stride, ... */
static void add(const struct fabric_routes *r, struct fabric_node n, bool up, uint32_t first,
		uint32_t stride, uint32_t host, uint32_t address, struct spread *x)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	uint32_t wanted, taken, leading = 0, alive = 0;
	struct fabric_ports rule = fabric_route(p, &r->rule, n, host, address);
	bool any;

	taken = fabric_routes_step(r, fabric_number(p, n), host, address, &any);
	if (taken == FABRIC_NONE)
		return;
	wanted = cable_of(p, n, rule.first, up);
	x->total++;
	assert_true(x->lost < LOST_MAX);
	for (uint32_t i = 0; i < x->n; i++) {
		uint32_t cable = cable_of(p, n, first + i * stride, up);
		bool leads = cable_leads(r, cable, up, host, address);

		x->load[i] += cable == taken;
		x->kept[i] += cable == wanted && leads;
		x->lead[x->lost][i] = leads;
		leading += leads;
		alive += fabric_tree_has_cable(r->tree, cable);
	}
	x->unequal |= leading < alive;
	x->lost += !cable_leads(r, wanted, up, host, address);
}

static void measure(const struct fabric_routes *r, struct fabric_node n, bool up, uint32_t child,
		    struct spread *x)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	uint32_t below = n.index / p->W[n.level] * p->M[n.level];
	uint32_t part = below + child * p->M[n.level - 1];

	*x = (struct spread){.n = up ? fabric_up_ports(p, n.level) : p->p[n.level]};
	assert_true(x->n <= CABLES_MAX);
	for (uint32_t j = 0; j < fabric_hosts(p); j++)
		for (uint32_t a = 0; a < 1u << r->rule.lmc; a++) {
			if (up && (j < below || j >= below + p->M[n.level]))
				add(r, n, true, 0, 1, j, a, x);
			if (!up && j >= part && j < part + p->M[n.level - 1])
				add(r, n, false, child, p->m[n.level], j, a, x);
		}
}

/* Kuhn's: finds the lost a place, if cables have no more than `most`, or what they keep. */
struct match {
	const struct spread *x;
	uint32_t most, load[CABLES_MAX], at[LOST_MAX];
	bool seen[CABLES_MAX];
};

static bool place(struct match *m, uint32_t e)
{
	for (uint32_t i = 0; i < m->x->n; i++) {
		if (!m->x->lead[e][i] || m->seen[i])
			continue;
		m->seen[i] = true;
		if (m->load[i] < m->most) {
			m->load[i]++;
			m->at[e] = i;
			return true;
		}
		for (uint32_t k = 0; k < m->x->lost; k++)
			if (m->at[k] == i && place(m, k)) {
				m->at[e] = i;
				return true;
			}
	}
	return false;
}

/* The least that the most can be. */
static uint32_t best_most(const struct spread *x)
{
	struct match m = {.x = x};
	uint32_t placed = 0, kept = 0;

	memset(m.at, 0xff, sizeof(m.at));
	for (uint32_t i = 0; i < x->n; i++) {
		m.load[i] = x->kept[i];
		kept = x->kept[i] > kept ? x->kept[i] : kept;
	}
	while (placed < x->lost) {
		memset(m.seen, 0, sizeof(m.seen));
		if (place(&m, placed))
			placed++;
		else
			m.most++;
	}
	return m.most > kept ? m.most : kept;
}

static uint32_t most(const struct spread *x)
{
	uint32_t load = 0;

	for (uint32_t i = 0; i < x->n; i++)
		load = x->load[i] > load ? x->load[i] : load;
	return load;
}

struct tally {
	uint32_t spread, unequal;
};

static void check_spread(const struct spread *x, struct tally *t)
{
	assert_int_equal(most(x), best_most(x));
	t->spread += x->lost > 0;
	t->unequal += x->lost > 0 && x->unequal;
}

/* On every switch the most that a cable has is as little as can be. */
static void check_balance(const struct fabric_routes *r, struct tally *t)
{
	const struct fabric_pgft *p = &r->tree->pgft;
	struct spread *x = malloc(sizeof(*x));

	assert_non_null(x);
	for (uint32_t node = p->first[1]; node < fabric_nodes(p); node++) {
		struct fabric_node n = fabric_node(p, node);

		if (!fabric_tree_has_node(r->tree, node))
			continue;
		if (n.level < p->h) {
			measure(r, n, true, 0, x);
			check_spread(x, t);
		}
		for (uint32_t i = 0; p->p[n.level] > 1 && i < p->m[n.level]; i++) {
			measure(r, n, false, i, x);
			check_spread(x, t);
		}
	}
	free(x);
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

static void test_around(void **state)
{
	enum { CASES = 60 };
	struct tally tally = {0};
	uint32_t done = 0;

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
			assert_non_null(r.around);
			check_rows(&r);
			check_around(&r);
			check_balance(&r, &tally);
			check_lost_pairs(&r);
			check_by_rule(&r);
			fabric_routes_free(&r);
			fabric_tree_free(&t);
			done++;
		}
	print_message("%u fabrics, %u times others had to be found, %u times not all would do\n",
		      done, tally.spread, tally.unequal);
	assert_true(tally.spread > 500 && tally.unequal > 500);
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

/* A top switch is gone: the lowest and the highest load of the cables that each leaf has left. */
static void top_gone(const char *text, uint32_t top, uint32_t low, uint32_t high)
{
	struct fabric_pgft pgft = tree(text);
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct spread *x = malloc(sizeof(*x));
	struct fabric_routes r;
	struct fabric_tree t;

	assert_non_null(x);
	fabric_tree_init(&t, &pgft);
	assert_int_equal(fabric_tree_remove(&t, pgft.first[2] + top), 0);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	for (uint32_t i = 0; i < pgft.nodes[1]; i++) {
		measure(&r, (struct fabric_node){1, i}, true, 0, x);
		assert_int_equal(x->total, fabric_hosts(&pgft) - pgft.M[1]);
		for (uint32_t q = 0; q < x->n; q++)
			if (q % pgft.w[2] == top)
				assert_int_equal(x->load[q], 0);
			else
				assert_in_range(x->load[q], low, high);
	}
	fabric_routes_free(&r);
	fabric_tree_free(&t);
	free(x);
}

/* Ten cables for 132 destinations, and four for 30: 14 and 8 are the least that the most can be. */
static void test_top_gone(void **state)
{
	(void)state;
	top_gone("2;12,12;1,6;1,2", 4, 12, 14);
	top_gone("2;6,6;1,3;1,2", 0, 7, 8);
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
		cmocka_unit_test(test_around),
		cmocka_unit_test(test_around_index),
		cmocka_unit_test(test_top_gone),
		cmocka_unit_test(test_down),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_million),
		cmocka_unit_test(test_million_around),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_mod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
