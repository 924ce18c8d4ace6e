/* Fat trees recognised in networks that have more than a tree: storage and gateways at spines,
 * however many, and switches with hosts that were plugged into leaves. */
#include "test_fabric_shape.h"

struct extras {
	const struct plan *p;
	struct util_rand r;
	FILE *f;
	uint32_t n, hosts, edges; /* nodes; hosts and switches among them */
	uint32_t cables;
	uint32_t *used; /* by node: spare ports */
};

#define SPARE 64

static uint32_t some(struct extras *x, uint32_t level)
{
	const struct fabric_pgft *g = &x->p->t.pgft;

	return g->first[level] + util_rand_below(&x->r, g->nodes[level]);
}

static bool has_room(const struct extras *x, uint32_t node, uint32_t ports)
{
	return x->used[node] + ports <= SPARE;
}

/* A cable from port `from` of what is being written to a node. */
static void plug(struct extras *x, uint32_t from, uint32_t node)
{
	fprintf(x->f, "[%u] \"S-%016x\"[%u]\n", from, 0x1000 + node * 16,
		fabric_tree_ports(&x->p->t, node) + ++x->used[node]);
	x->cables++;
}

/* Hosts with one port each at one switch. */
static void storage(struct extras *x, uint32_t node, uint32_t n)
{
	for (uint32_t i = 0; i < n && has_room(x, node, 1); i++) {
		fprintf(x->f, "Ca 1 \"H-f%05x0\" # \"stor%u HCA-1\"\n", x->n, x->n);
		plug(x, 1, node);
		x->n++, x->hosts++;
	}
}

static void gateway(struct extras *x, uint32_t level)
{
	uint32_t a = some(x, level), b = some(x, level);

	if (!has_room(x, a, 2) || !has_room(x, b, 2))
		return;
	fprintf(x->f, "Ca 2 \"H-f%05x0\" # \"gw%u HCA-1\"\n", x->n, x->n);
	plug(x, 1, a);
	plug(x, 2, b);
	x->n++, x->hosts++;
}

/* A switch with hosts, plugged into one or two others. */
static void edge(struct extras *x, uint32_t hosts, uint32_t a, uint32_t b)
{
	uint32_t id = x->n++;

	if (!has_room(x, a, 2) || !has_room(x, b, 2))
		return;
	fprintf(x->f, "Switch 99 \"S-f%05x0\" # \"edge%u\"\n", id, id);
	plug(x, 90, a);
	plug(x, 91, b);
	for (uint32_t i = 1; i <= hosts; i++, x->n++, x->cables++)
		fprintf(x->f, "Ca 1 \"H-f%05x0\" # \"at%u HCA-1\"\n[1] \"S-f%05x0\"[%u]\n", x->n,
			x->n, id, i);
	x->edges++;
	x->hosts += hosts;
}

/* Fewer hosts at spines than a third of those of the tree: what more there is would be a network of
 * another kind. */
static void at_spines(struct extras *x)
{
	const struct fabric_pgft *g = &x->p->t.pgft;
	uint32_t level = 2 + util_rand_below(&x->r, g->h - 1), most = fabric_hosts(g) / 4;

	switch (util_rand_below(&x->r, 4)) {
	case 0: /* from a few to more than a leaf has, at one */
		storage(x, some(x, level), 1 + util_rand_below(&x->r, g->m[1] + 3));
		break;
	case 1: /* at some */
		for (uint32_t i = util_rand_below(&x->r, 6); i > 0 && x->hosts < most; i--)
			storage(x, some(x, level), 1 + util_rand_below(&x->r, g->m[1]));
		break;
	case 2: /* at each of the top */
		for (uint32_t i = 0; i < g->nodes[g->h] && x->hosts < most; i++)
			storage(x, g->first[g->h] + i, 1);
		break;
	}
	for (uint32_t i = util_rand_below(&x->r, 4); i > 0 && x->hosts < most; i--)
		gateway(x, level);
}

/* A spine has as many neighbours as this; an edge switch must have less than half. */
static bool tells_edges_apart(const struct fabric_pgft *g)
{
	return g->m[2] + (g->h > 2 ? g->w[3] : 0) > 4;
}

static void at_leaves(struct extras *x)
{
	const struct fabric_pgft *g = &x->p->t.pgft;
	uint32_t hosts = 1 + util_rand_below(&x->r, g->m[1]), a = some(x, 1), b = some(x, 1);

	switch (util_rand_below(&x->r, 4)) {
	case 0:
		edge(x, hosts, a, a);
		break;
	case 1:
		if (tells_edges_apart(g))
			edge(x, hosts, a, b);
		break;
	}
}

/* At most one cable of a node: a leaf with a single one is like an edge switch at a spine. */
static void cut(struct plan *p, uint32_t cable)
{
	const struct fabric_pgft *g = &p->t.pgft;
	struct fabric_node n = fabric_cable(g, cable).lower;

	for (uint32_t i = 0; i < fabric_up_ports(g, n.level); i++) {
		struct fabric_cable c = fabric_cable_up(g, n, i);

		if (!fabric_tree_has_cable(&p->t, fabric_cable_number(g, &c)))
			return;
	}
	fabric_tree_cut(&p->t, cable);
}

static const char *const texts[] = {
	"3;4,4,8;1,4,4;1,1,1",  "3;3,3,4;1,3,3;1,1,1",      "3;8,4,4;1,4,4;1,2,1",
	"3;12,6,4;1,6,4;1,2,1", "3;4,4,4;1,4,2;1,1,2",      "2;18,18;1,9;1,2",
	"2;12,12;1,12;1,1",     "3;6,6,12;1,6,6;1,1,1",     "2;6,12;1,3;1,2",
	"3;2,3,4;1,3,3;1,1,1",  "4;3,3,3,4;1,3,3,3;1,1,1,1"};

/* One network; what is wrong with the reading, or NULL. */
static const char *wrong(const char *text, uint64_t seed, uint32_t cuts, bool leaves)
{
	struct plan p = plan(text, (struct scramble){seed, true, false, false});
	struct extras x = {.p = &p, .used = calloc(fabric_nodes(&p.t.pgft), 4)};
	uint32_t hosts = p.t.pgft.cables[1], cables = fabric_cables(&p.t.pgft);
	char why[256], got[FABRIC_TUPLE_MAX], *more;
	static char result[600];
	struct fabric_defects d = {0};
	struct fabric_net *net;
	struct fabric_tree t;
	size_t size;

	x.f = open_memstream(&more, &size);
	util_rand_seed(&x.r, seed);
	p.spare = SPARE;
	at_spines(&x);
	if (leaves)
		at_leaves(&x);
	for (uint32_t i = 0; i < cuts; i++)
		cut(&p, hosts + util_rand_below(&x.r, cables - hosts));
	fclose(x.f);
	p.extra = more;
	net = net_of(&p);
	result[0] = 0;
	if (fabric_shape(&t, net, &d, why, sizeof(why))) {
		snprintf(result, sizeof(result), "refused: %s", why);
		fabric_net_free(net);
		free(net);
	} else {
		fabric_pgft_print(&t.pgft, got);
		if (strcmp(got, text) != 0 || t.n_nodes_gone ||
		    t.n_cables_gone != p.t.n_cables_gone || d.count > p.t.n_cables_gone + x.edges ||
		    d.count < x.edges + (cuts > 0))
			snprintf(result, sizeof(result), "%s, %u defects: %s", got, d.count,
				 d.count ? d.text[d.kept - 1] : "");
		else
			check_tree(&t, x.cables, x.hosts + x.edges);
		fabric_tree_free(&t);
	}
	fabric_defects_free(&d);
	free(x.used);
	free(more);
	free_plan(&p);
	return result[0] ? result : NULL;
}

static uint32_t count_wrong(uint32_t seeds, uint32_t cuts, bool leaves)
{
	uint32_t n = 0;

	for (size_t i = 0; i < COUNT(texts); i++)
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			const char *what = wrong(texts[i], seed, seed % (cuts + 1), leaves);

			if (what)
				print_message("%s, seed %llu: %s\n", texts[i],
					      (unsigned long long)seed, what);
			n += what != NULL;
		}
	return n;
}

static void test_spines(void **state)
{
	(void)state;
	assert_int_equal(count_wrong(100, 0, false), 0);
}

static void test_edges(void **state)
{
	(void)state;
	assert_int_equal(count_wrong(100, 0, true), 0);
}

static void test_cuts(void **state)
{
	(void)state;
	assert_int_equal(count_wrong(100, 3, true), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spines),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
