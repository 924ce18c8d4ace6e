/* How evenly destinations that lost their cable are spread, compared with a matching. */
#include "test_fabric_routes.h"

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
static void check_balance(const struct fabric_routes *r, void *arg)
{
	struct tally *t = arg;
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

static void test_balance(void **state)
{
	struct tally tally = {0};

	(void)state;
	every_fault(check_balance, &tally);
	print_message("%u times others had to be found, %u times not all would do\n", tally.spread,
		      tally.unequal);
	assert_true(tally.spread > 500 && tally.unequal > 500);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_top_gone),
		cmocka_unit_test(test_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
