/* Fat trees recognised in networks: shuffled, renamed, with other ports, damaged. */
#include "test_fabric.h"

#include <time.h>

#include "fabric_shape.h"
#include "util_rand.h"

/* ---- networks made from tuples, by other code than fabric_net_write ---- */

struct scramble {
	uint64_t seed;
	bool nodes, ports, names; /* what is shuffled */
};

struct plan {
	struct fabric_tree t; /* what is missing is taken away here */
	struct scramble how;
	/* By cable: to whom it goes instead; FABRIC_NONE: where it should. Swaps upper ends. */
	uint32_t *upper_as;
	uint32_t spare;    /* more ports of each switch */
	const char *extra; /* more text */
};

static struct plan plan(const char *text, struct scramble how)
{
	struct plan p = {.how = how};
	struct fabric_pgft g = tree(text);

	fabric_tree_init(&p.t, &g);
	p.upper_as = malloc(fabric_cables(&g) * sizeof(*p.upper_as));
	for (uint32_t i = 0; i < fabric_cables(&g); i++)
		p.upper_as[i] = i;
	return p;
}

static void free_plan(struct plan *p)
{
	free(p->upper_as);
	fabric_tree_free(&p->t);
}

static void shuffled(struct util_rand *r, bool on, uint32_t *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		a[i] = i;
	if (on)
		util_rand_shuffle(r, a, n);
}

/* The port that tuple port `port` of a node has become: a permutation for each node. */
static uint32_t renamed_port(const struct plan *p, uint32_t node, uint32_t port)
{
	uint32_t n = fabric_tree_ports(&p->t, node), a[256];
	struct util_rand r;

	if (!p->how.ports)
		return port;
	assert_true(n <= COUNT(a));
	util_rand_seed(&r, p->how.seed * 1000003 + node);
	shuffled(&r, true, a, n);
	return a[port - 1] + 1;
}

static void node_words(const struct plan *p, const uint32_t *names, uint32_t node, char *id,
		       char *name)
{
	bool host = node < fabric_hosts(&p->t.pgft);

	sprintf(id, "%c-%016x", host ? 'H' : 'S', 0x1000 + names[node] * 16);
	sprintf(name, "%s%u", host ? "host" : "sw", names[node]);
}

static void write_plan(const struct plan *p, FILE *f)
{
	const struct fabric_pgft *g = &p->t.pgft;
	uint32_t n = fabric_nodes(g), *order = malloc(n * 4), *names = malloc(n * 4);
	uint32_t *lower_of = malloc(fabric_cables(g) * 4); /* upper_as, the other way round */
	char id[32], name[32];
	struct util_rand r;

	util_rand_seed(&r, p->how.seed);
	shuffled(&r, p->how.nodes, order, n);
	shuffled(&r, p->how.names, names, n);
	for (uint32_t i = 0; i < fabric_cables(g); i++)
		lower_of[p->upper_as[i]] = i;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = order[i], ports = fabric_tree_ports(&p->t, node);

		if (!fabric_tree_has_node(&p->t, node))
			continue;
		node_words(p, names, node, id, name);
		fprintf(f, "\n%s\t%u \"%s\"\t# \"%s\"\n", id[0] == 'H' ? "Ca" : "Switch",
			ports + p->spare, id, name);
		for (uint32_t port = 1; port <= ports; port++) {
			uint32_t cable = fabric_tree_cable_at(&p->t, node, port), other, other_port;
			struct fabric_cable c;

			if (cable == FABRIC_NONE)
				continue;
			c = fabric_cable(g, cable);
			if (fabric_number(g, c.lower) == node) {
				other = fabric_number(g, fabric_cable(g, p->upper_as[cable]).upper);
				other_port = fabric_tree_upper_port(&p->t, p->upper_as[cable]);
			} else {
				other = fabric_number(g, fabric_cable(g, lower_of[cable]).lower);
				other_port = fabric_tree_lower_port(&p->t, lower_of[cable]);
			}
			node_words(p, names, other, id, name);
			fprintf(f, "[%u]\t\"%s\"[%u]\n", renamed_port(p, node, port), id,
				renamed_port(p, other, other_port));
		}
	}
	fputs(p->extra ? p->extra : "", f);
	free(order);
	free(names);
	free(lower_of);
}

/* ---- recognising them ---- */

static struct fabric_net *read_text(const char *text, size_t size)
{
	FILE *f = fmemopen((void *)text, size, "r");
	struct fabric_net *net = malloc(sizeof(*net));
	char why[256] = "";

	assert_non_null(f);
	if (fabric_net_read(net, f, "test", why, sizeof(why)))
		fail_msg("%s", why);
	fclose(f);
	return net;
}

static struct fabric_net *net_of(const struct plan *p)
{
	struct fabric_net *net;
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	write_plan(p, f);
	fclose(f);
	net = read_text(text, size);
	free(text);
	return net;
}

/* Every cable that the tree says is there goes where the tuple says; each cable of the network is
 * one of these, but `unused`; each node is one of the tree's, but `strangers`. */
static void check_tree(const struct fabric_tree *t, uint32_t unused, uint32_t strangers)
{
	const struct fabric_pgft *g = &t->pgft;
	uint32_t cables = 0, gone = 0, nodes = 0;
	uint8_t *seen = calloc(t->net->n_nodes, 1);

	for (uint32_t i = 0; i < fabric_nodes(g); i++) {
		assert_int_equal(t->net_node[i] != FABRIC_NONE, fabric_tree_has_node(t, i));
		if (t->net_node[i] == FABRIC_NONE)
			continue;
		if (!t->by_port)
			assert_int_equal(seen[t->net_node[i]]++, 0);
		assert_int_equal(t->net->nodes[t->net_node[i]].kind == FABRIC_NET_SWITCH,
				 i >= fabric_hosts(g));
		nodes++;
	}
	for (uint32_t i = 0; i < fabric_cables(g); i++) {
		struct fabric_cable c = fabric_cable(g, i);
		uint32_t lower = fabric_number(g, c.lower), upper = fabric_number(g, c.upper);
		uint32_t place;

		if (!fabric_tree_has_cable(t, i)) {
			assert_int_equal(t->lower_port[i], 0);
			gone++;
			continue;
		}
		place = fabric_net_find_port(t->net, t->net_node[lower],
					     fabric_tree_lower_port(t, i));
		assert_int_not_equal(place, UINT32_MAX);
		assert_int_equal(t->net->ports[place].peer, t->net_node[upper]);
		assert_int_equal(t->net->ports[place].peer_port, fabric_tree_upper_port(t, i));
		assert_int_equal(fabric_tree_cable_at(t, lower, fabric_tree_lower_port(t, i)), i);
		assert_int_equal(fabric_tree_cable_at(t, upper, fabric_tree_upper_port(t, i)), i);
		cables++;
	}
	assert_int_equal(gone, t->n_cables_gone);
	assert_int_equal(nodes, fabric_nodes(g) - t->n_nodes_gone);
	assert_int_equal(2 * (cables + unused), t->net->n_ports);
	if (!t->by_port)
		assert_int_equal(nodes + strangers, t->net->n_nodes);
	free(seen);
}

static struct fabric_tree shape(struct fabric_net *net, struct fabric_defects *d)
{
	struct fabric_tree t;
	char why[256] = "";

	if (fabric_shape(&t, net, d, why, sizeof(why)))
		fail_msg("%s", why);
	return t;
}

static void check_tuple(const struct fabric_tree *t, const char *want)
{
	char text[FABRIC_TUPLE_MAX];

	fabric_pgft_print(&t->pgft, text);
	assert_string_equal(text, want);
}

static void check_whole(const char *text, struct scramble how)
{
	struct plan p = plan(text, how);
	struct fabric_defects d;
	struct fabric_tree t = shape(net_of(&p), &d);

	if (d.count)
		fail_msg("%s, seed %llu: %s", text, (unsigned long long)how.seed, d.text[0]);
	check_tuple(&t, text);
	assert_true(fabric_tree_whole(&t));
	check_tree(&t, 0, 0);
	fabric_defects_free(&d);
	fabric_tree_free(&t);
	free_plan(&p);
}

static const char *const more_trees[] = {
	"2;18,18;1,9;1,2",           "3;12,12,12;1,12,6;1,1,2", "3;18,18,6;1,18,3;1,1,6",
	"3;2,2,2;1,2,2;1,1,1",       "3;4,4,8;1,4,4;1,1,1",     "2;3,7;1,5;1,1",
	"4;2,2,2,4;1,2,2,2;1,1,1,1", "3;3,2,2;2,2,2;1,1,1",
};

static void test_round_trips(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees) + COUNT(more_trees); i++) {
		const char *text = i < COUNT(trees) ? trees[i] : more_trees[i - COUNT(trees)];
		uint64_t seeds = strlen(text) > 22 ? 2 : 20;

		check_whole(text, (struct scramble){0});
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			check_whole(text, (struct scramble){seed, true, false, false});
			check_whole(text, (struct scramble){seed, false, true, false});
			check_whole(text, (struct scramble){seed, true, true, true});
		}
	}
}

/* Unless names and ports say otherwise, numbers are as they were; also when lines are shuffled. */
static void test_same_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct plan p = plan(trees[i], (struct scramble){7, true, false, false});
		struct fabric_defects d;
		struct fabric_tree t = shape(net_of(&p), &d);
		char name[FABRIC_TREE_NAME_MAX], want[FABRIC_TREE_NAME_MAX];

		for (uint32_t k = 0; k < fabric_nodes(&t.pgft); k++) {
			uint32_t found;

			sprintf(want, "%s%u", k < fabric_hosts(&t.pgft) ? "host" : "sw", k);
			fabric_tree_name(&t, k, name);
			assert_string_equal(name, want);
			assert_int_equal(fabric_tree_find(&t, want, &found), 0);
			assert_int_equal(found, k);
			sprintf(want, "0x%x", 0x1000 + k * 16);
			assert_int_equal(fabric_tree_find(&t, want, &found), 0);
			assert_int_equal(found, k);
			fabric_name(fabric_node(&t.pgft, k), want);
			assert_int_equal(fabric_tree_find(&t, want, &found), 0);
			assert_int_equal(found, k);
		}
		fabric_defects_free(&d);
		fabric_tree_free(&t);
		free_plan(&p);
	}
}

/* ---- by our own writer ---- */

static char *written(const struct fabric_tree *t, size_t *size)
{
	char *text;
	FILE *f = open_memstream(&text, size);

	assert_int_equal(fabric_net_write(t, f), 0);
	fclose(f);
	return text;
}

static void test_writer(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft g = tree(trees[i]);
		struct fabric_tree a, b, c;
		struct fabric_defects d;
		size_t size, again;
		char *text, *second;

		fabric_tree_init(&a, &g);
		text = written(&a, &size);
		b = shape(read_text(text, size), &d);
		assert_int_equal(d.count, 0);
		check_tree(&b, 0, 0);
		for (uint32_t k = 0; k < fabric_nodes(&g); k++) {
			assert_int_equal(fabric_tree_guid(&a, k), fabric_tree_guid(&b, k));
			assert_int_equal(fabric_tree_port_guid(&a, k),
					 fabric_tree_port_guid(&b, k));
		}
		for (uint32_t k = 0; k < fabric_cables(&g); k++) {
			assert_int_equal(fabric_tree_lower_port(&a, k),
					 fabric_tree_lower_port(&b, k));
			assert_int_equal(fabric_tree_upper_port(&a, k),
					 fabric_tree_upper_port(&b, k));
		}
		/* And what was read is written as the same text. */
		second = written(&b, &again);
		assert_string_equal(text, second);
		c = shape(read_text(second, again), &d);
		check_tree(&c, 0, 0);
		free(text);
		free(second);
		fabric_tree_free(&a);
		fabric_tree_free(&b);
		fabric_tree_free(&c);
	}
}

/* ---- damaged ---- */

static bool has_defect(const struct fabric_defects *d, const char *words)
{
	for (uint32_t i = 0; i < d->kept; i++)
		if (strstr(d->text[i], words))
			return true;
	for (uint32_t i = 0; i < d->kept; i++)
		print_message("  %s\n", d->text[i]);
	return false;
}

static uint32_t number(const struct plan *p, uint32_t level, uint32_t index)
{
	return fabric_number(&p->t.pgft, (struct fabric_node){level, index});
}

static uint32_t cable_up(const struct plan *p, uint32_t level, uint32_t index, uint32_t q)
{
	struct fabric_cable c = fabric_cable_up(&p->t.pgft, (struct fabric_node){level, index}, q);

	return fabric_cable_number(&p->t.pgft, &c);
}

static void swap(struct plan *p, uint32_t a, uint32_t b)
{
	uint32_t x = p->upper_as[a];

	p->upper_as[a] = p->upper_as[b];
	p->upper_as[b] = x;
}

/* Recognised as `want` with these words among exactly n defects. */
static void check_strange(struct plan *p, const char *want, uint32_t n, uint32_t unused,
			  uint32_t strangers, const char *const *words, size_t n_words)
{
	struct fabric_defects d;
	struct fabric_tree t = shape(net_of(p), &d);

	check_tuple(&t, want);
	check_tree(&t, unused, strangers);
	for (size_t i = 0; i < n_words; i++)
		if (!has_defect(&d, words[i]))
			fail_msg("\"%s\" was not found", words[i]);
	if (d.count != n)
		has_defect(&d, "\n");
	assert_int_equal(d.count, n);
	fabric_defects_free(&d);
	fabric_tree_free(&t);
	free_plan(p);
}

static void check_damaged(struct plan *p, const char *want, uint32_t n, uint32_t unused,
			  const char *const *words, size_t n_words)
{
	check_strange(p, want, n, unused, 0, words, n_words);
}

#define DAMAGED(p, want, n, unused, ...)                                                           \
	check_damaged(p, want, n, unused, (const char *const[]){__VA_ARGS__},                      \
		      COUNT(((const char *const[]){__VA_ARGS__})))

#define T144 "2;12,12;1,6;1,2"
#define T128 "3;4,4,8;1,4,4;1,1,1" /* 128 hosts, 32 + 32 + 16 switches */

static void test_missing(void **state)
{
	struct scramble plain = {0};
	struct plan p = plan(T144, plain);

	(void)state;
	/* sw147 is leaf 3, sw156 the first spine. */
	fabric_tree_remove(&p.t, 40);
	DAMAGED(&p, T144, 1, 0, "leaf sw147 has 11 hosts, the others 12");
	p = plan(T144, plain);
	for (uint32_t i = 36; i < 48; i++)
		fabric_tree_remove(&p.t, i);
	DAMAGED(&p, T144, 1, 0, "leaf sw147 has 0 hosts, the others 12");
	p = plan(T144, plain);
	fabric_tree_cut(&p.t, cable_up(&p, 1, 3, 1));
	DAMAGED(&p, T144, 1, 0, "1 cable from sw147 to sw157, the others have 2");
	p = plan(T144, plain);
	fabric_tree_cut(&p.t, cable_up(&p, 1, 3, 1));
	fabric_tree_cut(&p.t, cable_up(&p, 1, 3, 7));
	DAMAGED(&p, T144, 1, 0, "no cable from sw147 to sw157, the others have 2");
	/* A missing spine, or leaf with its hosts: nothing to compare with, a smaller whole tree.
	 */
	p = plan(T144, plain);
	fabric_tree_remove(&p.t, number(&p, 2, 4));
	check_damaged(&p, "2;12,12;1,5;1,2", 0, 0, NULL, 0);
	p = plan(T144, plain);
	fabric_tree_remove(&p.t, number(&p, 1, 3));
	for (uint32_t i = 36; i < 48; i++)
		fabric_tree_remove(&p.t, i);
	check_damaged(&p, "2;12,11;1,6;1,2", 0, 0, NULL, 0);
}

/* Most leaves have four hosts, a third of them six: nobody's hosts are left out for that. */
static void test_uneven(void **state)
{
	struct plan p = plan("2;6,12;1,6;1,1", (struct scramble){0});

	(void)state;
	for (uint32_t i = 0; i < 8; i++) {
		fabric_tree_remove(&p.t, 6 * i + 1);
		fabric_tree_remove(&p.t, 6 * i + 4);
	}
	DAMAGED(&p, "2;6,12;1,6;1,1", 8, 0, "leaf sw72 has 4 hosts, the others 6");
}

static void test_missing_of_three_levels(void **state)
{
	struct scramble plain = {0};
	struct plan p = plan(T128, plain);

	(void)state;
	/* Leaves are sw128 to sw159, level 2 sw160 to sw191, the top from sw192 on. */
	fabric_tree_remove(&p.t, number(&p, 2, 5));
	DAMAGED(&p, T128, 1, 0, "a switch of level 2 is missing above sw132");
	p = plan(T128, plain);
	fabric_tree_remove(&p.t, number(&p, 3, 5));
	DAMAGED(&p, T128, 1, 0, "a switch of level 3 is missing above sw161");
	p = plan(T128, plain);
	fabric_tree_cut(&p.t, cable_up(&p, 2, 9, 2));
	fabric_tree_cut(&p.t, cable_up(&p, 1, 30, 3));
	DAMAGED(&p, T128, 2, 0, "no cable from sw169 to sw201", "no cable from sw158 to sw191");
	p = plan(T128, plain);
	for (uint32_t i = 20; i < 24; i++)
		fabric_tree_remove(&p.t, i);
	fabric_tree_remove(&p.t, number(&p, 1, 5));
	DAMAGED(&p, T128, 1, 0, "a switch of level 1 is missing below sw164");
	p = plan(T128, plain);
	for (uint32_t i = 20; i < 24; i++)
		fabric_tree_remove(&p.t, i);
	DAMAGED(&p, T128, 1, 0, "leaf sw133 has 0 hosts, the others 4");
}

static void test_swapped(void **state)
{
	struct scramble plain = {0};
	struct plan p = plan("2;12,12;1,12;1,1", plain);

	(void)state;
	/* Leaves sw144 to sw155, spines from sw156 on: two cables crossed. */
	swap(&p, cable_up(&p, 1, 3, 1), cable_up(&p, 1, 7, 4));
	DAMAGED(&p, "2;12,12;1,12;1,1", 2, 2,
		"port 14 of sw147 goes to sw160 where sw157 was expected: mis-cabled",
		"port 17 of sw151 goes to sw157 where sw160 was expected: mis-cabled");
	/* Between two sub-trees, at both heights. */
	p = plan(T128, plain);
	swap(&p, cable_up(&p, 1, 0, 1), cable_up(&p, 1, 9, 2));
	DAMAGED(&p, T128, 2, 2, "port 6 of sw128 goes to sw170 where sw161 was expected",
		"port 7 of sw137 goes to sw161 where sw170 was expected");
	p = plan(T128, plain);
	swap(&p, cable_up(&p, 2, 0, 1), cable_up(&p, 2, 9, 2));
	DAMAGED(&p, T128, 2, 2, "port 6 of sw160 goes to sw201 where sw196 was expected",
		"port 7 of sw169 goes to sw196 where sw201 was expected");
	/* A leaf to the top, and back. */
	p = plan(T128, plain);
	swap(&p, cable_up(&p, 1, 0, 1), cable_up(&p, 2, 9, 2));
	DAMAGED(&p, T128, 2, 2, "port 6 of sw128 goes to sw201 where sw161 was expected",
		"port 7 of sw169 goes to sw161 where sw201 was expected");
	/* Hosts have no place of their own: two that are exchanged are no defect. */
	p = plan(T128, plain);
	swap(&p, cable_up(&p, 0, 0, 0), cable_up(&p, 0, 77, 0));
	check_damaged(&p, T128, 0, 0, NULL, 0);
}

static void check_extra(const char *text, const char *extra, uint32_t n, uint32_t unused,
			uint32_t strangers, const char *words)
{
	struct plan p = plan(text, (struct scramble){0});

	p.spare = 1;
	p.extra = extra;
	check_strange(&p, text, n, unused, strangers, &words, words ? 1 : 0);
}

/* Node number k of a plan has the id 0x1000 + 16·k, and its spare port is the last. */
static void test_too_much(void **state)
{
	(void)state;
	/* One host too many, at leaf 3: sw147. */
	check_extra(T144, "Ca 1 \"H-f0000\" # \"more\"\n[1] \"S-0000000000001930\"[25]\n", 1, 1, 1,
		    "leaf sw147 has 13 hosts, the others 12: host more is left out");
	/* A host at a spine, sw157; and at one of the second level of three. */
	check_extra(T144, "Ca 1 \"H-f0000\" # \"more\"\n[1] \"S-00000000000019d0\"[25]\n", 1, 1, 1,
		    "host more is at switch sw157, which is no leaf: left out");
	check_extra(T128, "Ca 1 \"H-f0000\" # \"more\"\n[1] \"S-0000000000001a50\"[9]\n", 1, 1, 1,
		    "host more is at switch sw165, which is no leaf: left out");
	/* Inside of a switch: that is no defect. */
	check_extra(T144,
		    "Ca 1 \"H-f0000\" # \"Mellanox Technologies Aggregation Node\"\n"
		    "[1] \"S-00000000000019d0\"[25]\n",
		    0, 1, 1, NULL);
	check_extra(T144, "Ca 1 \"H-f0000\" # \"more\"\n", 1, 0, 1, "host more has no cable");
	check_extra(T144, "Ca 1 \"H-f0000\"\nSwitch 9 \"S-1\"\n", 2, 0, 2,
		    "switch S-1 has no cable");
}

/* Whatever has happened: refused, or true to the network. */
static void test_heavy_damage(void **state)
{
	uint32_t refused = 0, cases = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++)
		for (size_t i = 0; i < COUNT(trees); i++) {
			struct plan p = plan(trees[i], (struct scramble){seed, true, true, true});
			uint32_t cables = fabric_cables(&p.t.pgft), nodes = fabric_nodes(&p.t.pgft);
			struct fabric_defects d = {0};
			struct fabric_tree t;
			struct fabric_net *net;
			struct util_rand r;
			char why[256] = "";

			util_rand_seed(&r, seed);
			for (uint64_t k = 0; k < seed % 11; k++)
				swap(&p, util_rand_below(&r, cables), util_rand_below(&r, cables));
			for (uint64_t k = 0; seed % 11 == 0 && k < seed % 13; k++) {
				fabric_tree_cut(&p.t, util_rand_below(&r, cables));
				fabric_tree_remove(&p.t, util_rand_below(&r, nodes));
			}
			if (p.t.n_nodes_gone == nodes) {
				free_plan(&p);
				continue;
			}
			net = net_of(&p);
			cases++;
			if (fabric_shape(&t, net, &d, why, sizeof(why))) {
				refused++;
				assert_true(strlen(why) > 10);
				fabric_net_free(net);
				free(net);
			} else {
				check_tree(&t,
					   net->n_ports / 2 - fabric_cables(&t.pgft) +
						   t.n_cables_gone,
					   net->n_nodes - fabric_nodes(&t.pgft) + t.n_nodes_gone);
				assert_true(d.count || fabric_tree_whole(&t));
				fabric_tree_free(&t);
			}
			fabric_defects_free(&d);
			free_plan(&p);
		}
	print_message("%u of %u refused\n", refused, cases);
	assert_true(refused < cases);
}

/* A lot of random damage: never wrong, and never more cables lost than there are defects. */
static void test_random_damage(void **state)
{
	static const char *const texts[] = {T144, T128, "3;4,4,4;1,4,2;1,1,2", "2;12,12;1,12;1,1",
					    "2;18,18;1,9;1,2"};
	uint32_t recognised = 0, cases = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++)
		for (size_t i = 0; i < COUNT(texts); i++) {
			struct plan p = plan(texts[i], (struct scramble){seed, true, true, true});
			uint32_t cables = fabric_cables(&p.t.pgft), n = 1 + seed % 5, unused;
			struct fabric_defects d;
			struct fabric_tree t;
			struct util_rand r;
			char why[256], text[FABRIC_TUPLE_MAX];
			struct fabric_net *net;

			util_rand_seed(&r, seed);
			for (uint32_t k = 0; k < n; k++) {
				uint32_t hosts = p.t.pgft.cables[1];

				fabric_tree_cut(&p.t, hosts + util_rand_below(&r, cables - hosts));
			}
			fabric_tree_remove(&p.t, util_rand_below(&r, p.t.pgft.first[1]));
			net = net_of(&p);
			cases++;
			if (fabric_shape(&t, net, &d, why, sizeof(why))) {
				fabric_net_free(net);
				free(net);
				print_message("%s, seed %llu: %s\n", texts[i],
					      (unsigned long long)seed, why);
				free_plan(&p);
				continue;
			}
			fabric_pgft_print(&t.pgft, text);
			unused = net->n_ports / 2 - (fabric_cables(&t.pgft) - t.n_cables_gone);
			check_tree(&t, unused,
				   net->n_nodes - fabric_nodes(&t.pgft) + t.n_nodes_gone);
			assert_true(d.count > 0 && d.count <= n + 1);
			if (!strcmp(text, texts[i]) && !unused &&
			    t.n_cables_gone == p.t.n_cables_gone)
				recognised++;
			else
				print_message("%s, seed %llu: taken for %s, %u unused\n", texts[i],
					      (unsigned long long)seed, text, unused);
			fabric_defects_free(&d);
			fabric_tree_free(&t);
			free_plan(&p);
		}
	assert_int_equal(recognised, cases);
}

/* ---- several ports ---- */

/* Each adapter has two ports, in neighbouring leaves that share their spines: that is a tree only
 * if they are hosts of their own. */
static void test_two_rails(void **state)
{
	struct fabric_pgft g = tree("2;4,4;1,4;1,1");
	struct fabric_defects d;
	struct fabric_tree t;
	char *text, *second, name[FABRIC_TREE_NAME_MAX];
	size_t size, again;
	FILE *f = open_memstream(&text, &size);
	uint32_t found;

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		fprintf(f,
			"Ca 2 \"H-%x\" # \"node%u HCA-1\"\n[1](%x) \"S-%x\"[%u]\n"
			"[2](%x) \"S-%x\"[%u]\n",
			0x100 + 16 * i, i, 0x101 + 16 * i, 0x1000 + i / 4 * 2, i % 4 + 1,
			0x102 + 16 * i, 0x1001 + i / 4 * 2, i % 4 + 1);
	for (uint32_t i = 0; i < 4; i++) {
		fprintf(f, "Switch 8 \"S-%x\" # \"leaf%u\"\n", 0x1000 + i, i);
		for (uint32_t k = 0; k < 4; k++)
			fprintf(f, "[%u] \"S-%x\"[%u]\n", k + 5, 0x2000 + k, i + 1);
	}
	for (uint32_t k = 0; k < 4; k++)
		fprintf(f, "Switch 8 \"S-%x\" # \"spine%u\"\n", 0x2000 + k, k);
	fclose(f);
	t = shape(read_text(text, size), &d);
	assert_int_equal(d.count, 0);
	assert_true(t.by_port);
	check_tuple(&t, "2;4,4;1,4;1,1");
	assert_memory_equal(&t.pgft, &g, sizeof(g));
	check_tree(&t, 0, 0);
	fabric_tree_name(&t, 5, name);
	assert_string_equal(name, "node1/2");
	assert_int_equal(fabric_tree_find(&t, "node1/2", &found), 0);
	assert_int_equal(found, 5);
	assert_int_equal(fabric_tree_find(&t, "node1/3", &found), -ENOENT);
	assert_int_equal(fabric_tree_find(&t, "0x112", &found), 0);
	assert_int_equal(found, 5);
	assert_int_equal(fabric_tree_port_guid(&t, 5), 0x112);
	second = written(&t, &again);
	free(text);
	fabric_tree_free(&t);
	t = shape(read_text(second, again), &d);
	assert_true(t.by_port && fabric_tree_whole(&t));
	check_tree(&t, 0, 0);
	fabric_tree_free(&t);
	free(second);
}

/* ---- what is no fat tree ---- */

static void check_no_tree(const char *text, const char *words)
{
	struct fabric_net *net = read_text(text, strlen(text));
	struct fabric_defects d;
	struct fabric_tree t;
	char why[256] = "";

	assert_int_equal(fabric_shape(&t, net, &d, why, sizeof(why)), -EINVAL);
	print_message("%s\n", why);
	if (!strstr(why, words))
		fail_msg("refused with \"%s\", without \"%s\"", why, words);
	fabric_net_free(net);
	free(net);
}

static void test_no_trees(void **state)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	check_no_tree("Ca 1 \"H-1\"\n", "no cables");
	check_no_tree("Switch 4 \"S-1\"\n[1] \"S-2\"[1]\nSwitch 4 \"S-2\"\n",
		      "no switch with hosts");
	check_no_tree("Switch 4 \"S-1\"\n[1] \"H-10\"[1]\nCa 1 \"H-10\"\nSwitch 4 \"S-2\"\n"
		      "[1] \"H-20\"[1]\nCa 1 \"H-20\"\n",
		      "'S-2' can not be reached from 'S-1'");
	/* A ring of switches with two hosts each. */
	for (uint32_t i = 0; i < 12; i++)
		fprintf(f,
			"Switch 4 \"S-%x\" # \"ring%u\"\n[1] \"S-%x\"[2]\n[3] \"H-%x\"[1]\n"
			"[4] \"H-%x\"[1]\nCa 1 \"H-%x\"\nCa 1 \"H-%x\"\n",
			0x100 + i, i, 0x100 + (i + 1) % 12, 0x200 + i * 16, 0x300 + i * 16,
			0x200 + i * 16, 0x300 + i * 16);
	fclose(f);
	check_no_tree(text, "no fat tree: switches 'ring0' and 'ring1' are joined");
	free(text);
}

static void test_compare(void **state)
{
	static const char *const ascending[] = {"",
						"L1-0",
						"L1-0003",
						"L1-4",
						"L1-10",
						"L1-10a",
						"L1-010b",
						"L2",
						"leaf9",
						"leaf10",
						"leaf99999999999999999999999999",
						"leaf100000000000000000000000000"};

	(void)state;
	for (size_t i = 0; i < COUNT(ascending); i++)
		for (size_t k = 0; k < COUNT(ascending); k++) {
			int c = fabric_shape_compare(ascending[i], ascending[k]);

			assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
		}
	assert_int_equal(fabric_shape_compare("a007", "a7"), 0);
}

/* 11,664 hosts: near-linear. */
static void test_large(void **state)
{
	struct plan p = plan("3;18,18,36;1,18,18;1,1,1", (struct scramble){3, true, true, true});
	struct timespec a, b, c;
	struct fabric_defects d;
	struct fabric_tree t;
	struct fabric_net *net;
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	write_plan(&p, f);
	fclose(f);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
	net = read_text(text, size);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	t = shape(net, &d);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &c);
	print_message("%zu bytes read in %.3f s, recognised in %.3f s\n", size,
		      (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9,
		      (double)(c.tv_sec - b.tv_sec) + (double)(c.tv_nsec - b.tv_nsec) / 1e9);
	assert_int_equal(d.count, 0);
	check_tuple(&t, "3;18,18,36;1,18,18;1,1,1");
	check_tree(&t, 0, 0);
	fabric_tree_free(&t);
	free_plan(&p);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_same_numbers),
		cmocka_unit_test(test_writer),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_missing_of_three_levels),
		cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_heavy_damage),
		cmocka_unit_test(test_two_rails),
		cmocka_unit_test(test_no_trees),
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
