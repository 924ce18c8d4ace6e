/* Fat trees recognised in networks: shuffled, renamed, with other ports. */
#include "test_fabric_shape.h"

#include <time.h>

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
		cmocka_unit_test(test_round_trips), cmocka_unit_test(test_same_numbers),
		cmocka_unit_test(test_writer),      cmocka_unit_test(test_two_rails),
		cmocka_unit_test(test_no_trees),    cmocka_unit_test(test_compare),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
