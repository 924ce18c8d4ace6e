/* Node orders: the portable shuffle, files that people and programs write, who takes part, and the
 * worst order. */
#include "test_fabric.h"

#include <unistd.h>

#include "fabric_order.h"

#define TREE "2;12,2;1,12;1,1" /* 24 hosts */

static char path[64];

/* Writes the order file; returns "file:…" of it. */
static const char *file(const char *bytes, size_t len)
{
	static char text[80];
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	snprintf(text, sizeof(text), "file:%s", path);
	return text;
}

static void check_order(const char *text, const uint32_t *want, uint32_t n)
{
	struct fabric_pgft t = tree(TREE);
	uint32_t hosts[24], count = 99;
	char why[256] = "";

	if (fabric_order(&t, text, hosts, &count, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	assert_int_equal(count, n);
	assert_memory_equal(hosts, want, n * sizeof(*want));
}

static void check_refused(const char *text, int code, const char *words)
{
	struct fabric_pgft t = tree(TREE);
	uint32_t hosts[24], count;
	char why[256] = "";

	assert_int_equal(fabric_order(&t, text, hosts, &count, why, sizeof(why)), -code);
	if (!strstr(why, words))
		fail_msg("refused with \"%s\", without \"%s\"", why, words);
	for (const char *p = why; *p; p++)
		assert_true(*p >= ' ' && *p < 0x7f);
}

static void test_routing_order(void **state)
{
	uint32_t want[24];

	(void)state;
	for (uint32_t i = 0; i < 24; i++)
		want[i] = i;
	check_order("routing", want, 24);
}

/* The rule, written down a second time: for i = n−1 … 1 swap with next() mod (i+1). */
static void test_random_order(void **state)
{
	static const uint64_t seeds[] = {0, 1, 7, 1234567, UINT64_MAX};
	static const uint32_t pinned[24] = {7, 20, 21, 12, 23, 22, 11, 3, 5,  16, 18, 15,
					    4, 19, 10, 8,  6,  9,  13, 1, 14, 0,  2,  17};

	(void)state;
	check_order("random:1", pinned, 24);
	for (size_t k = 0; k < COUNT(seeds); k++) {
		uint64_t s = seeds[k];
		uint32_t want[24];
		char text[40];

		for (uint32_t i = 0; i < 24; i++)
			want[i] = i;
		for (uint32_t i = 23; i > 0; i--) {
			uint32_t j = (uint32_t)(splitmix64(&s) % (i + 1)), x = want[i];

			want[i] = want[j];
			want[j] = x;
		}
		snprintf(text, sizeof(text), "random:%llu", (unsigned long long)seeds[k]);
		check_order(text, want, 24);
	}
}

static void test_no_order(void **state)
{
	(void)state;
	check_refused("", EINVAL,
		      "'' is no order; known are routing, compact, adversarial, random:SEED and "
		      "file:F");
	check_refused("Routing", EINVAL, "'Routing' is no order");
	check_refused("routing ", EINVAL, "is no order");
	check_refused("random", EINVAL, "is no order");
	check_refused("random:", EINVAL, "'' is no seed for random");
	check_refused("random:x", EINVAL, "'x' is no seed");
	check_refused("random:18446744073709551616", EINVAL, "too large");
	check_refused("file:", EINVAL, "needs the name of a file");
	check_refused("file", EINVAL, "is no order");
	check_refused("\n\n", EINVAL, "'\\x0a\\x0a' is no order");
}

#define FILE_OF(s) file(s, sizeof(s) - 1)
#define ORDER(...)                                                                                 \
	(const uint32_t[])                                                                         \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void test_files(void **state)
{
	(void)state;
	check_order(FILE_OF("h3\nh1\nh2\n"), ORDER(3, 1, 2), 3);
	check_order(FILE_OF("h3\nh1\nh23"), ORDER(3, 1, 23), 3);
	check_order(FILE_OF("h3\r\nh1\r\n\r\nh2\r\n"), ORDER(3, 1, 2), 3);
	check_order(FILE_OF("# all\n\n  h3 # third\n\t\n\th1#x\n #h5\nh0  max_slots=1 slots=1 "
			    "#slots=3\n"),
		    ORDER(3, 1, 0), 3);
	check_order(FILE_OF("\n\n\nh0\n\n\n"), ORDER(0), 1);
	check_order(FILE_OF("h0:1 binding=user:0,1 ifhn=ib0\nh1 user-name=x cpus=1#x\n"),
		    ORDER(0, 1), 2);
	/* As launchers and Slurm have them. */
	check_order(FILE_OF("h5:1\nh7:1\n"), ORDER(5, 7), 2);
	check_order(FILE_OF("h5,h1\nh2\n"), ORDER(5, 1, 2), 3);
	check_order(FILE_OF("h[9-11,3],h0 # x\nh1[2-3,5]\n"), ORDER(9, 10, 11, 3, 0, 12, 13, 15),
		    8);
	check_order(FILE_OF("h[1-2][0-1]:1\n"), ORDER(10, 11, 20, 21), 4);
}

static void test_rankfiles(void **state)
{
	(void)state;
	check_order(FILE_OF("rank 0=h3 slot=0\nrank 1=h1 slot=0\n"), ORDER(3, 1), 2);
	check_order(FILE_OF("# x\nrank  2=h9 slot=1:0-3\n\nrank 0=h3\nrank 1=h1 slot=7 # x\r\n"),
		    ORDER(3, 1, 9), 3);
	check_refused(FILE_OF("rank 0=h3\nrank 0=h1\n"), EINVAL, "': rank 0 is in line 1 already");
	check_refused(FILE_OF("rank 3=h3\nrank 0=h1\n"), EINVAL,
		      "': rank 3, but there is no rank 1; expected 0 to 1");
	check_refused(FILE_OF("rank 0=h3\nrank 1=h3\n"), EINVAL, "'h3' is in line 1 already");
	check_refused(FILE_OF("rank 0=h3\nh1\n"), EINVAL, "': no rank, behind lines of a rankfile");
	check_refused(FILE_OF("h1\nrank 0=h3\n"), EINVAL, "': a rank, behind lines of a hostfile");
	check_refused(FILE_OF("rank 0=h99\n"), EINVAL, "'h99' is no host");
	check_refused(FILE_OF("rank 0 h1\n"), EINVAL,
		      "'0' is not understood; expected rank N=HOST slot=S");
	check_refused(FILE_OF("rank 0=\n"), EINVAL, "'0=' is not understood");
	check_refused(FILE_OF("rank 0x=h1\n"), EINVAL, "expected the number of a rank");
	check_refused(FILE_OF("rank 4294967295=h1\n"), EINVAL, "expected the number of a rank");
	check_refused(FILE_OF("rank 0=h1 slots=1\n"), EINVAL, "'slots=1' is not understood");
	check_refused(FILE_OF("rank 0=h1 slot=\n"), EINVAL, "'slot=' is not understood");
}

static void test_bad_files(void **state)
{
	(void)state;
	/* Nothing behind a name is read over. */
	check_refused(FILE_OF("h5\nh0 h1 h2\n"), EINVAL,
		      "': 'h1' is not understood; expected one host per line");
	check_refused(FILE_OF("h5\nh0 h1 h2\n"), EINVAL, "line 2 of '");
	check_refused(FILE_OF("h0 max slots=1\n"), EINVAL, "'max' is not understood");
	check_refused(FILE_OF("h0 slot=1\n"), EINVAL, "'slot=1' is not understood");
	check_refused(FILE_OF("h0 slots=\n"), EINVAL, "'slots=' is not understood");
	check_refused(FILE_OF("h0 =1\n"), EINVAL, "'=1' is not understood");
	check_refused(FILE_OF("h0 slots=x\n"), EINVAL,
		      "'slots=x' is not understood; expected a number of ranks");
	check_refused(FILE_OF("h0 slots=0\n"), EINVAL, "expected a number of ranks");
	check_refused(FILE_OF("h0 max-slots=-1\n"), EINVAL, "expected a number of ranks");
	check_refused(FILE_OF("h0 slots=18446744073709551616\n"), EINVAL, "a number of ranks");
	check_refused(FILE_OF("h0:0\n"), EINVAL, "no ranks on a host; expected host:1");
	check_refused(FILE_OF("h0:4294967297\n"), EINVAL, "expected host:1");
	/* One rank per host: what asks for more is not just read over. */
	check_refused(FILE_OF("h0 slots=1\nh1 max_slots=9 slots=2\n"), EINVAL,
		      "': a host runs one rank here; expected slots=1");
	check_refused(FILE_OF("h0 slots=16"), EINVAL, "line 1 of '");
	check_refused(FILE_OF("h0\nh1:16\n"), EINVAL, "expected host:1");
	check_refused(FILE_OF("h[0-3]:2\n"), EINVAL, "expected host:1");
	check_refused(FILE_OF("h0\nh24\n"), EINVAL,
		      "': 'h24' is no host of this tree; its hosts are h0 to h23");
	check_refused(FILE_OF("# x\n\nh0\r\nhost7\n"), EINVAL, "line 4 of '");
	check_refused(FILE_OF("h00\n"), EINVAL, "'h00' is no host");
	check_refused(FILE_OF("7\n"), EINVAL, "'7' is no host");
	check_refused(FILE_OF("h1,h24\n"), EINVAL, "'h24' is no host");
	check_refused(FILE_OF("h1,\n"), EINVAL, "'' is no host");
	check_refused(FILE_OF("h1,h1\n"), EINVAL, "'h1' is in line 1 already");
	check_refused(FILE_OF("h1:x\n"), EINVAL, "'h1:x' is no host");
	check_refused(FILE_OF("h1:\n"), EINVAL, "'h1:' is no host");
	check_refused(FILE_OF("h[2-1]\n"), EINVAL, "'h[2-1]' is no list of hosts; expected such");
	check_refused(FILE_OF("h[1-2\n"), EINVAL, "'h[1-2' is no list of hosts");
	check_refused(FILE_OF("h[]\n"), EINVAL, "'h[]' is no list of hosts");
	check_refused(FILE_OF("h[1,x]\n"), EINVAL, "'h[1,x]' is no list of hosts");
	check_refused(FILE_OF("h[1-]\n"), EINVAL, "'h[1-]' is no list of hosts");
	check_refused(FILE_OF("h[1,]\n"), EINVAL, "'h[1,]' is no list of hosts");
	check_refused(FILE_OF("h[0-9999999999]\n"), EINVAL, "is no list of hosts");
	check_refused(FILE_OF("h[0-999999999]\n"), EINVAL, "'h24' is no host");
	check_refused(FILE_OF("h[01-02]\n"), EINVAL, "'h01' is no host");
	check_refused(FILE_OF("h[1-3,2]\n"), EINVAL, "'h2' is in line 1 already");
	check_refused(FILE_OF("h[1]x[1]x[1]x[1]x[1]\n"), EINVAL, "is no list of hosts");
	check_refused(FILE_OF("h1\ns1.0\n"), EINVAL, "'s1.0' is a switch; ranks run on hosts");
	check_refused(FILE_OF("h1\n\nh2\nh1\n"), EINVAL,
		      "'h1' is in line 1 already; a host may be named once");
	check_refused(FILE_OF("h1\n\nh2\nh1\n"), EINVAL, "line 4 of '");
	check_refused(FILE_OF(""), EINVAL, "names no host; expected one of h0 to h23 per line");
	check_refused(FILE_OF("\n# nothing\n  \r\n"), EINVAL, "names no host");
	check_refused(FILE_OF("h1\nh2\0\n"), EINVAL, "line 2 of '");
	check_refused(FILE_OF("h1\nh2\0\n"), EINVAL, "zero byte");
	check_refused(FILE_OF("\0"), EINVAL, "zero byte");
	check_refused(FILE_OF("h1 # \0\n"), EINVAL, "zero byte");
	check_refused(FILE_OF("h1\n\xef\xbb\xbfh2\n"), EINVAL, "'\\xef\\xbb\\xbfh2' is no host");
	check_refused(FILE_OF("\x1b[31mh1\n"), EINVAL, "'\\x1b[31mh1' is no list");
}

static void test_unreadable(void **state)
{
	(void)state;
	check_refused("file:/nonexistent/order", ENOENT,
		      "can not open '/nonexistent/order': No such file");
	check_refused("file:/tmp", EISDIR, "can not read '/tmp': Is a directory");
}

/* A line of megabytes: as a comment it is nothing, as a name it is none. */
static void test_huge_lines(void **state)
{
	enum { HUGE_LINE = 4 << 20 };
	char *line = malloc(HUGE_LINE + 5);

	(void)state;
	assert_non_null(line);
	memset(line, 'h', HUGE_LINE);
	strcpy(line + HUGE_LINE, "\nh1\n");
	check_refused(file(line, HUGE_LINE + 4), EINVAL, "hhhhhh...' is no host");
	line[0] = '#';
	check_order(file(line, HUGE_LINE + 4), ORDER(1), 1);
	memset(line, ' ', HUGE_LINE);
	check_order(file(line, HUGE_LINE + 4), ORDER(1), 1);
	line[0] = 'h';
	line[1] = '2';
	check_order(file(line, HUGE_LINE + 4), ORDER(2, 1), 2);
	memset(line, '\n', HUGE_LINE);
	check_order(file(line, HUGE_LINE + 4), ORDER(1), 1);
	memset(line, '0', HUGE_LINE);
	line[0] = 'h';
	check_refused(file(line, HUGE_LINE + 4), EINVAL, "is no host");
	free(line);
}

/* Every host named, backwards, and one more. */
static void test_full_file(void **state)
{
	char text[24 * 5 + 8] = "";
	uint32_t want[24];
	size_t at = 0;

	(void)state;
	for (uint32_t i = 0; i < 24; i++) {
		want[i] = 23 - i;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "h%u\n", want[i]);
	}
	check_order(file(text, at), want, 24);
	strcat(text, "h9\n");
	check_refused(file(text, strlen(text)), EINVAL, "'h9' is in line 15 already");
}

/* ---- who takes part ---- */

static void test_set_all(void **state)
{
	struct fabric_pgft t = tree(TREE);
	struct fabric_tree fabric;
	struct fabric_set s;
	uint32_t *index;

	(void)state;
	fabric_tree_init(&fabric, &t);
	assert_int_equal(fabric_tree_remove(&fabric, 0), 0);
	assert_int_equal(fabric_tree_remove(&fabric, 13), 0);
	assert_int_equal(fabric_set_all(&s, &fabric), 0);
	assert_int_equal(s.count, 22);
	assert_int_equal(s.hosts[0], 1);
	assert_int_equal(s.hosts[12], 14);
	index = fabric_set_index(&s, &fabric);
	assert_non_null(index);
	for (uint32_t i = 0, at = 0; i < 24; i++)
		assert_int_equal(index[i], i == 0 || i == 13 ? FABRIC_NONE : at++);
	free(index);
	fabric_set_free(&s);
	fabric_tree_free(&fabric);
}

/* The rule once more: 0 … N−1 shuffled, the first K are out. */
static void test_exclude(void **state)
{
	struct fabric_pgft t = tree(TREE);
	struct fabric_tree fabric;
	char why[256];

	(void)state;
	fabric_tree_init(&fabric, &t);
	for (uint32_t k = 0; k < 24; k++) {
		uint64_t seed = 1000 + k;
		uint32_t all[24], at = 0;
		bool out[24] = {0};
		struct fabric_set s;
		char text[40];

		snprintf(text, sizeof(text), "%u:%u", k, 1000 + k);
		if (fabric_set_exclude(&s, &fabric, text, why, sizeof(why)))
			fail_msg("%s: %s", text, why);
		for (uint32_t i = 0; i < 24; i++)
			all[i] = i;
		for (uint32_t i = 23; i > 0; i--) {
			uint32_t j = (uint32_t)(splitmix64(&seed) % (i + 1)), x = all[i];

			all[i] = all[j];
			all[j] = x;
		}
		for (uint32_t i = 0; i < k; i++)
			out[all[i]] = true;
		assert_int_equal(s.count, 24 - k);
		for (uint32_t i = 0; i < 24; i++)
			if (!out[i])
				assert_int_equal(s.hosts[at++], i);
		fabric_set_free(&s);
	}
}

static void test_bad_exclude(void **state)
{
	static const char *const bad[][2] = {
		{"", "'' does not say whom to exclude; expected K:SEED"},
		{"5", "'5' does not say whom"},
		{":5", "':5' does not say whom"},
		{"x:5", "'x:5' does not say whom"},
		{"99999999999999999999999999:5", "does not say whom"},
		{"24:5", "24 of 24 hosts can not be excluded; expected at most 23"},
		{"5:", "'' is no seed in '5:'; expected K:SEED with a number, such as 5:1"},
		{"5:x", "'x' is no seed in '5:x'"},
	};
	struct fabric_pgft t = tree(TREE);
	struct fabric_tree fabric;

	(void)state;
	fabric_tree_init(&fabric, &t);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct fabric_set s;
		char why[256] = "";

		assert_int_equal(fabric_set_exclude(&s, &fabric, bad[i][0], why, sizeof(why)),
				 -EINVAL);
		if (!strstr(why, bad[i][1]))
			fail_msg("refused with \"%s\", without \"%s\"", why, bad[i][1]);
		assert_null(s.hosts);
	}
}

static void test_set_file(void **state)
{
	struct fabric_pgft t = tree(TREE);
	uint32_t hosts[24], count, want[] = {2, 3, 5, 20};
	struct fabric_tree fabric;
	struct fabric_set s;
	char why[256] = "";

	(void)state;
	fabric_tree_init(&fabric, &t);
	assert_int_equal(fabric_tree_remove(&fabric, 7), 0);
	FILE_OF("h20 slots=16\nh[2-3]\nh5:4 max_slots=8\n");
	assert_int_equal(fabric_set_file(&s, &fabric, path, why, sizeof(why)), 0);
	assert_int_equal(s.count, 4);
	assert_memory_equal(s.hosts, want, sizeof(want));
	assert_int_equal(fabric_order_of(&fabric, &s, "compact", hosts, &count, why, sizeof(why)),
			 0);
	assert_int_equal(count, 4);
	assert_memory_equal(hosts, want, sizeof(want));
	/* An order of these, and of others. */
	assert_int_equal(
		fabric_order_of(&fabric, &s, FILE_OF("h5\nh20\n"), hosts, &count, why, sizeof(why)),
		0);
	assert_int_equal(count, 2);
	assert_int_equal(hosts[0], 5);
	assert_int_equal(
		fabric_order_of(&fabric, &s, FILE_OF("h5\nh6\n"), hosts, &count, why, sizeof(why)),
		-EINVAL);
	assert_non_null(
		strstr(why, "'h6' does not take part; expected one of the 4 hosts that do"));
	fabric_set_free(&s);
	FILE_OF("h20\nh7\n");
	assert_int_equal(fabric_set_file(&s, &fabric, path, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "line 2 of '"));
	assert_non_null(strstr(why, "'h7' is missing in this fabric"));
	assert_null(s.hosts);
	fabric_tree_free(&fabric);
}

/* ---- the adversary ---- */

/* For the ring in this order: of each leaf, the most flows on one of its up-going ports; of these
 * the least. */
static uint32_t least_leaf_port(const struct fabric_pgft *t, const uint32_t *hosts, uint32_t n)
{
	uint32_t ports = fabric_up_ports(t, 1), leaves = t->nodes[1] / t->W[1], least = n;
	uint32_t *flows = calloc((size_t)leaves * ports, sizeof(*flows));

	assert_non_null(flows);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t from = hosts[i] / t->m[1], to = hosts[(i + 1) % n];

		if (from != to / t->m[1])
			flows[from * ports + to / t->W[1] % ports]++;
	}
	for (uint32_t leaf = 0; leaf < leaves; leaf++) {
		uint32_t most = 0;

		for (uint32_t q = 0; q < ports; q++)
			if (flows[leaf * ports + q] > most)
				most = flows[leaf * ports + q];
		least = most < least ? most : least;
	}
	free(flows);
	return least;
}

static void check_permutation(const struct fabric_set *s, const uint32_t *hosts, uint32_t count)
{
	uint8_t *seen = calloc(1, s->hosts[s->count - 1] + 1);

	assert_non_null(seen);
	assert_int_equal(count, s->count);
	for (uint32_t i = 0; i < s->count; i++)
		seen[s->hosts[i]] = 1;
	for (uint32_t i = 0; i < count; i++) {
		assert_true(hosts[i] <= s->hosts[s->count - 1] && seen[hosts[i]]);
		seen[hosts[i]] = 0;
	}
	free(seen);
}

static void test_adversarial(void **state)
{
	static const struct {
		const char *tree;
		uint32_t degree;
	} known[] = {
		{"2;12,12;1,6;1,2", 11},          {"2;18,18;1,9;1,2", 17},
		{"3;12,12,12;1,12,6;1,1,2", 12},  {"3;18,18,6;1,18,3;1,1,6", 18},
		{"3;18,18,36;1,18,18;1,1,1", 18}, {"2;4,8;1,4;1,1", 4},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(known); i++) {
		struct fabric_pgft t = tree(known[i].tree);
		uint32_t *hosts = malloc(fabric_hosts(&t) * sizeof(*hosts)), count;
		char why[256];

		assert_non_null(hosts);
		assert_int_equal(fabric_order(&t, "adversarial", hosts, &count, why, sizeof(why)),
				 0);
		assert_int_equal(least_leaf_port(&t, hosts, count), known[i].degree);
		free(hosts);
	}
}

/* Of any tree and any part of it, it is an order. */
static void test_adversarial_parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);
		uint32_t n = fabric_hosts(&t), hosts[256], count;
		struct fabric_tree fabric;
		char why[256], text[40];

		fabric_tree_init(&fabric, &t);
		for (uint32_t k = 0; k < n; k++) {
			struct fabric_set s;
			int ret;

			snprintf(text, sizeof(text), "%u:%zu", k, i);
			assert_int_equal(fabric_set_exclude(&s, &fabric, text, why, sizeof(why)),
					 0);
			ret = fabric_order_of(&fabric, &s, "adversarial", hosts, &count, why,
					      sizeof(why));
			assert_int_equal(ret, t.h < 2 ? -EINVAL : 0);
			if (!ret)
				check_permutation(&s, hosts, count);
			fabric_set_free(&s);
		}
	}
}

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/weft-order-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routing_order),     cmocka_unit_test(test_random_order),
		cmocka_unit_test(test_no_order),          cmocka_unit_test(test_files),
		cmocka_unit_test(test_rankfiles),         cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_unreadable),        cmocka_unit_test(test_huge_lines),
		cmocka_unit_test(test_full_file),         cmocka_unit_test(test_set_all),
		cmocka_unit_test(test_exclude),           cmocka_unit_test(test_bad_exclude),
		cmocka_unit_test(test_set_file),          cmocka_unit_test(test_adversarial),
		cmocka_unit_test(test_adversarial_parts),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
