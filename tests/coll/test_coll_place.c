/* Places of hosts, from files as Slurm's topology.conf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_place.h"
#include "util_rand.h"

static int find(const char *text, const char *name, struct coll_found *f)
{
	char *copy = strdup(text);
	int ret;

	assert_non_null(copy);
	ret = coll_place_parse(copy, name, f);
	free(copy);
	return ret;
}

static const char three_levels[] = "# a tree\n"
				   "SwitchName=s1.0 Nodes=h0,h1\n"
				   "SwitchName=s1.1 Nodes=h2,h3\n"
				   "SwitchName=s1.2 Nodes=h[04-11,20]-x,other LinkSpeed=1\n"
				   "SwitchName=t2.0 Switches=s1.0,s1.1 # two\n"
				   "switchname=t2.1 switches=s1.2\n"
				   "SwitchName=t3.0 Switches=t2.[0-1]\n";

static void expect(const char *name, uint32_t leaf, uint32_t above, uint32_t number)
{
	struct coll_found f;

	assert_int_equal(find(three_levels, name, &f), 0);
	assert_int_equal(f.levels, 3);
	assert_int_equal(f.place.group[0], leaf);
	assert_int_equal(f.place.group[1], above);
	assert_int_equal(f.place.group[2], 6);
	assert_int_equal(f.place.number, number);
}

static void test_found(void **state)
{
	(void)state;
	expect("h0", 1, 4, 0);
	expect("h3", 2, 4, 1);
	expect("h3.example.org", 2, 4, 1);
	expect("h04-x", 3, 5, 0);
	expect("h11-x", 3, 5, 7);
	expect("h20-x", 3, 5, 8);
	expect("other", 3, 5, 9);
}

static void test_not_found(void **state)
{
	static const char *const names[] = {"h",      "h4-x",    "h004-x", "h12-x", "h04-y",
					    "h04",    "s1.0",    "",       ".x",    "h0x",
					    "h04-xx", "[04-11]", "h-x"};
	struct coll_found f;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (find(three_levels, names[i], &f) != -ENOENT)
			fail_msg("'%s' was found", names[i]);
		assert_int_equal(f.levels, 0);
	}
	assert_int_equal(find("", "h0", &f), -ENOENT);
}

/* The same text is the same tree, another is not. */
static void test_same_tree(void **state)
{
	struct coll_found a, b;

	(void)state;
	find(three_levels, "h0", &a);
	find(three_levels, "h3", &b);
	assert_true(a.tree == b.tree);
	find("SwitchName=a Nodes=h0", "h0", &b);
	assert_true(a.tree != b.tree);
	assert_int_equal(b.levels, 1);
}

static void test_circle(void **state)
{
	struct coll_found f;

	(void)state;
	assert_int_equal(
		find("SwitchName=a Nodes=h0 Switches=b\nSwitchName=b Switches=a", "h0", &f),
		-EINVAL);
	assert_int_equal(find("SwitchName=a Nodes=h0 Switches=a", "h0", &f), -EINVAL);
	assert_int_equal(find("Nodes=h0", "h0", &f), -EINVAL);
}

/* What can not be understood is found wherever the host is, by its line. */
static void test_damaged(void **state)
{
	static const char *const bad[] = {
		"SwitchName=b Nodes=h[1-3",
		"SwitchName=b Nodes=h1-3]",
		"SwitchName=b Nodes=h[1-]",
		"SwitchName=b Nodes=h[]",
		"SwitchName=b Nodes=h[1,]",
		"SwitchName=b Nodes=h[a]",
		"SwitchName=b Nodes=h[1]x[2]",
		"SwitchName=b Nodes=h[1 -3]",
		"SwitchName=b Switches=a[",
		"SwitchName=b Nodes=",
		"SwitchName b Nodes=h1",
		"SwitchName=b Nodes = h1",
		"=b Nodes=h1",
		"<html>",
	};
	static const char *const good[] = {
		"",
		"  ",
		"# <html>",
		"SwitchName=b Nodes=h[1],g[2-3]x\r",
		"BlockSizes=30 # a b",
		"SwitchName=b#a b",
	};
	struct coll_found f;
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "SwitchName=a Nodes=h0\n\n%s\n", bad[i]);
		if (find(text, "h0", &f) != -EBADMSG || f.wrong != 3 || f.levels)
			fail_msg("'%s' was understood", bad[i]);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(text, sizeof(text), "SwitchName=a Nodes=h0\n\n%s\n", good[i]);
		if (find(text, "h0", &f) || f.wrong || f.levels != 1)
			fail_msg("'%s' was not understood", good[i]);
	}
	assert_int_equal(find(three_levels, "g", &f), -ENOENT);
	assert_true(f.wrong == COLL_WRONG_ELSE);
}

/* Any bytes: no harm. */
static void test_rubbish(void **state)
{
	static const char sign[] = "SwitchName=Nodes=Switches=h0123456789[]-,,# \t\nab.";
	struct coll_found f;

	(void)state;
	for (uint64_t seed = 1; seed <= 20000; seed++) {
		struct util_rand r;
		char text[200];
		size_t n;

		util_rand_seed(&r, seed);
		n = util_rand_below(&r, sizeof(text));
		for (size_t i = 0; i < n; i++)
			text[i] = sign[util_rand_below(&r, sizeof(sign) - 1)];
		text[n] = '\0';
		if (seed % 2)
			memcpy(text, "SwitchName=a Nodes=", n < 19 ? n : 19);
		coll_place_parse(text, "h0", &f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),     cmocka_unit_test(test_not_found),
		cmocka_unit_test(test_same_tree), cmocka_unit_test(test_circle),
		cmocka_unit_test(test_damaged),   cmocka_unit_test(test_rubbish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
