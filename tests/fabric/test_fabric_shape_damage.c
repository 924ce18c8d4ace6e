/* Fat trees recognised in networks in which something is missing, plugged in wrongly or too much.
 */
#include "test_fabric_shape.h"

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
	/* At a spine, sw157, or in the second level of three: beside the tree, and no defect. */
	check_extra(T144, "Ca 1 \"H-f0000\" # \"more\"\n[1] \"S-00000000000019d0\"[25]\n", 0, 1, 1,
		    NULL);
	check_extra(T128, "Ca 1 \"H-f0000\" # \"more\"\n[1] \"S-0000000000001a50\"[9]\n", 0, 1, 1,
		    NULL);
	/* Inside of a switch: that is no defect. */
	check_extra(T144,
		    "Ca 1 \"H-f0000\" # \"Mellanox Technologies Aggregation Node\"\n"
		    "[1] \"S-00000000000019d0\"[25]\n",
		    0, 1, 1, NULL);
	check_extra(T144, "Ca 1 \"H-f0000\" # \"more\"\n", 1, 0, 1, "host more has no cable");
	check_extra(T144, "Ca 1 \"H-f0000\"\nSwitch 9 \"S-1\"\n", 2, 0, 2,
		    "switch S-1 has no cable");
}

/* Switches that hang on one leaf (sw147), on a spine (sw157), or on each other. */
static void test_hanging(void **state)
{
	char text[2048] = "Switch 36 \"S-f0000\" # \"edge\"\n[36] \"S-0000000000001930\"[25]\n";
	size_t at = strlen(text);

	(void)state;
	check_extra(T144, text, 1, 1, 1,
		    "switch edge has cables to only one switch, sw147: it is no part of the tree");
	check_extra(T144, "Switch 36 \"S-f0000\" # \"edge\"\n[36] \"S-00000000000019d0\"[25]\n", 1,
		    1, 1, "switch edge has cables to only one switch, sw157");
	check_extra(T128, "Switch 36 \"S-f0000\" # \"edge\"\n[36] \"S-0000000000001a50\"[9]\n", 1,
		    1, 1, "switch edge has cables to only one switch, sw165");
	/* With hosts: few, as many as a leaf has, more. */
	for (uint32_t i = 1; i <= 20; i++) {
		at += (size_t)sprintf(text + at, "Ca 1 \"H-e%x0\"\n[1] \"S-f0000\"[%u]\n", i, i);
		check_extra(T144, text, 1, 1 + i, 1 + i,
			    "switch edge has cables to only one switch, sw147");
	}
	/* And another behind it. */
	check_extra(T144,
		    "Switch 36 \"S-f0000\" # \"edge\"\n[36] \"S-0000000000001930\"[25]\n"
		    "Switch 36 \"S-f0001\" # \"far\"\n[1] \"S-f0000\"[30]\n[2] \"S-f0000\"[31]\n",
		    2, 3, 2, "switch far has cables to only one switch, edge");
	/* That is how it is if there is one leaf. */
	check_extra("2;5,1;1,4;1,1", "", 0, 0, 0, NULL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_missing_of_three_levels),
		cmocka_unit_test(test_swapped),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_hanging),
		cmocka_unit_test(test_heavy_damage),
		cmocka_unit_test(test_random_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
