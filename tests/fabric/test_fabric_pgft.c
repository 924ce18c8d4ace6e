/* Trees against a reference that draws the graph: every node is a tuple of digits, and two
 * ports are connected if the rules of section IV.B of the paper say so. */
#include "test_fabric.h"

struct tuple {
	uint32_t level;
	uint32_t digit[FABRIC_LEVELS_MAX + 1]; /* 1 … h */
};

/* Digit i of a node of level l: which of w_i alike switches for i ≤ l, which of m_i
 * sub-trees for i > l. */
static uint32_t radix(const struct fabric_pgft *t, uint32_t l, uint32_t i)
{
	return i <= l ? t->w[i] : t->m[i];
}

static uint32_t tuple_count(const struct fabric_pgft *t, uint32_t l)
{
	uint32_t n = 1;

	for (uint32_t i = 1; i <= t->h; i++)
		n *= radix(t, l, i);
	return n;
}

/* Nodes of a level in order, the first digit running fastest. */
static struct tuple tuple_of(const struct fabric_pgft *t, uint32_t l, uint32_t index)
{
	struct tuple n = {.level = l};

	for (uint32_t i = 1; i <= t->h; i++) {
		n.digit[i] = index % radix(t, l, i);
		index /= radix(t, l, i);
	}
	return n;
}

/* Section IV.B: "connected if and only if b_i = a_i for all the digits except for i = l+1 …
 * the k connection is between the up-going port q = b_l+1 + k·w_l+1 and the down-going port
 * r = a_l+1 + k·m_l+1". */
static bool connected(const struct fabric_pgft *t, const struct tuple *a, uint32_t q,
		      const struct tuple *b, uint32_t r)
{
	uint32_t l = a->level;

	for (uint32_t i = 1; i <= t->h; i++)
		if (i != l + 1 && a->digit[i] != b->digit[i])
			return false;
	for (uint32_t k = 0; k < t->p[l + 1]; k++)
		if (q == b->digit[l + 1] + k * t->w[l + 1] &&
		    r == a->digit[l + 1] + k * t->m[l + 1])
			return true;
	return false;
}

static void check_cable(const struct fabric_cable *c, struct fabric_node lower, uint32_t q,
			struct fabric_node upper, uint32_t r)
{
	assert_int_equal(c->lower.level, lower.level);
	assert_int_equal(c->lower.index, lower.index);
	assert_int_equal(c->q, q);
	assert_int_equal(c->upper.level, upper.level);
	assert_int_equal(c->upper.index, upper.index);
	assert_int_equal(c->r, r);
}

/* Every port of one node with every port of another. Returns how many are connected. */
static uint32_t check_pair(const struct fabric_pgft *t, struct fabric_node lower,
			   struct fabric_node upper)
{
	struct tuple a = tuple_of(t, lower.level, lower.index);
	struct tuple b = tuple_of(t, upper.level, upper.index);
	uint32_t n = 0, l = upper.level;

	for (uint32_t q = 0; q < t->w[l] * t->p[l]; q++)
		for (uint32_t r = 0; r < t->m[l] * t->p[l]; r++) {
			struct fabric_cable up = fabric_cable_up(t, lower, q);
			struct fabric_cable down = fabric_cable_down(t, upper, r);
			bool ours = up.upper.index == upper.index && up.r == r;

			assert_int_equal(ours, connected(t, &a, q, &b, r));
			assert_int_equal(down.lower.index == lower.index && down.q == q, ours);
			if (!ours)
				continue;
			check_cable(&up, lower, q, upper, r);
			check_cable(&down, lower, q, upper, r);
			n++;
		}
	return n;
}

static void test_connections(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);
		uint32_t all = 0;

		for (uint32_t l = 1; l <= t.h; l++) {
			uint32_t n = 0;

			for (uint32_t a = 0; a < tuple_count(&t, l - 1); a++)
				for (uint32_t b = 0; b < tuple_count(&t, l); b++)
					n += check_pair(&t, (struct fabric_node){l - 1, a},
							(struct fabric_node){l, b});
			assert_int_equal(t.cables[l], n);
			all += n;
		}
		assert_int_equal(fabric_cables(&t), all);
	}
}

static void test_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);
		uint32_t all = 0;

		for (uint32_t l = 0; l <= t.h; l++) {
			assert_int_equal(t.nodes[l], tuple_count(&t, l));
			assert_int_equal(t.first[l], all);
			all += t.nodes[l];
			assert_int_equal(fabric_up_ports(&t, l),
					 l < t.h ? t.w[l + 1] * t.p[l + 1] : 0);
			assert_int_equal(fabric_down_ports(&t, l), l ? t.m[l] * t.p[l] : 0);
		}
		assert_int_equal(fabric_nodes(&t), all);
		assert_int_equal(fabric_hosts(&t), tuple_count(&t, 0));
	}
}

/* The sizes that the paper, and every data sheet, give for these. */
static void test_known_sizes(void **state)
{
	static const struct {
		const char *text;
		uint32_t hosts, switches, cables;
	} known[] = {
		{"2;12,12;1,6;1,2", 144, 12 + 6, 144 + 144},
		{"2;18,18;1,9;1,2", 324, 18 + 9, 324 + 324},
		{"3;12,12,12;1,12,6;1,1,2", 1728, 144 + 144 + 72, 3 * 1728},
		{"3;18,18,6;1,18,3;1,1,6", 1944, 108 + 108 + 54, 3 * 1944},
		{"3;18,18,36;1,18,18;1,1,1", 11664, 648 + 648 + 324, 3 * 11664},
		{"4;32,32,32,32;1,32,32,32;1,1,1,1", 1048576, 4 * 32768, 4 * 1048576},
		{"8;2,2,2,2,2,2,2,2;1,2,2,2,2,2,2,2;1,1,1,1,1,1,1,1", 256, 8 * 128, 8 * 256},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(known); i++) {
		struct fabric_pgft t = tree(known[i].text);

		assert_int_equal(fabric_hosts(&t), known[i].hosts);
		assert_int_equal(fabric_nodes(&t) - fabric_hosts(&t), known[i].switches);
		assert_int_equal(fabric_cables(&t), known[i].cables);
	}
}

/* A host is below a node if it can be reached by going down only. */
static bool reaches(const struct fabric_pgft *t, struct fabric_node n, uint32_t host)
{
	if (n.level == 0)
		return n.index == host;
	for (uint32_t r = 0; r < t->m[n.level]; r++)
		if (reaches(t, fabric_cable_down(t, n, r).lower, host))
			return true;
	return false;
}

static void test_below(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);

		for (uint32_t g = 0; g < fabric_nodes(&t); g++)
			for (uint32_t j = 0; j < fabric_hosts(&t); j++)
				assert_int_equal(fabric_is_below(&t, fabric_node(&t, g), j),
						 reaches(&t, fabric_node(&t, g), j));
	}
}

static void check_node_name(const struct fabric_pgft *t, uint32_t number)
{
	struct fabric_node n = fabric_node(t, number), found = {99, 99};
	char name[FABRIC_NAME_MAX], want[64];

	assert_true(n.level <= t->h && n.index < t->nodes[n.level]);
	assert_int_equal(fabric_number(t, n), number);
	fabric_name(n, name);
	if (n.level)
		snprintf(want, sizeof(want), "s%u.%u", n.level, n.index);
	else
		snprintf(want, sizeof(want), "h%u", n.index);
	assert_string_equal(name, want);
	assert_int_equal(fabric_find(t, name, &found), 0);
	assert_int_equal(found.level, n.level);
	assert_int_equal(found.index, n.index);
}

static void test_node_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);

		for (uint32_t g = 0; g < fabric_nodes(&t); g++)
			check_node_name(&t, g);
	}
}

static void test_no_node_names(void **state)
{
	static const char *const bad[] = {
		"",
		"h",
		"s",
		"h144",
		"h-1",
		"h+1",
		"h01",
		"h00",
		"h1 ",
		" h1",
		"H1",
		"h1x",
		"h1.0",
		"s1",
		"s1.",
		"s1.12",
		"s0.0",
		"s3.0",
		"s01.0",
		"s1.00",
		"s1.0.0",
		"s.0",
		"s1.-1",
		"1",
		"s1,0",
		"h0x1",
		"h1\n",
		"h1-s1.0",
		"s1.0:0",
		"x1",
		"s2.6",
		"hh1",
		"h4294967296",
		"h4294967297",
		"s4294967297.0",
		"s1.99999999999999999999999999",
	};
	struct fabric_pgft t = tree("2;12,12;1,6;1,2");

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct fabric_node n = {7, 7};

		if (fabric_find(&t, bad[i], &n) != -ENOENT)
			fail_msg("'%s' was taken for a node", bad[i]);
		assert_int_equal(n.level, 7);
	}
}

static void check_cable_name(const struct fabric_pgft *t, uint32_t number)
{
	struct fabric_cable c = fabric_cable(t, number), found;
	char name[FABRIC_CABLE_NAME_MAX], lower[FABRIC_NAME_MAX], upper[FABRIC_NAME_MAX];
	char swapped[FABRIC_CABLE_NAME_MAX];
	uint32_t l = c.upper.level, k = c.q / t->w[l];

	assert_int_equal(fabric_cable_number(t, &c), number);
	fabric_cable_name(t, &c, name);
	fabric_name(c.lower, lower);
	fabric_name(c.upper, upper);
	assert_int_equal(strchr(name, ':') != NULL, t->p[l] > 1);
	assert_int_equal(fabric_find_cable(t, name, &found), 0);
	assert_memory_equal(&found, &c, sizeof(c));
	snprintf(swapped, sizeof(swapped), "%s-%s:%u", upper, lower, k);
	assert_int_equal(fabric_find_cable(t, swapped, &found), 0);
	assert_memory_equal(&found, &c, sizeof(c));
	*strchr(swapped, ':') = 0;
	if (t->p[l] > 1) { /* one of several has to be named */
		assert_int_equal(fabric_find_cable(t, swapped, &found), -ENOENT);
	} else {
		assert_int_equal(fabric_find_cable(t, swapped, &found), 0);
		assert_memory_equal(&found, &c, sizeof(c));
	}
}

/* Level by level, then by lower node, then by its port. */
static void test_cable_names(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);
		uint32_t number = 0;

		for (uint32_t g = 0; g < fabric_nodes(&t); g++) {
			struct fabric_node n = fabric_node(&t, g);

			for (uint32_t q = 0; q < fabric_up_ports(&t, n.level); q++) {
				struct fabric_cable c = fabric_cable_up(&t, n, q);

				assert_int_equal(fabric_cable_number(&t, &c), number);
				check_cable_name(&t, number++);
			}
		}
		assert_int_equal(number, fabric_cables(&t));
	}
}

static void test_no_cable_names(void **state)
{
	static const char *const bad[] = {
		"",
		"-",
		"h0",
		"h0-",
		"-s1.0",
		"h0-s1.1",
		"h0-h1",
		"h0-h0",
		"s1.0-s1.1",
		"h0-s2.0",
		"s2.0-h0",
		"h0-s1.0:1",
		"s1.0-s2.0:2",
		"s1.0-s2.0:",
		"s1.0-s2.0:-1",
		"h0-s1.0x",
		"h0-s1.0:0x",
		"h0--s1.0",
		"h0 s1.0",
		"h0-s1.0:00",
		"h0-s1.0-s2.0",
		"h144-s1.0",
		"s1.0-s2.6",
		"h0-s1.0 ",
		"s1.0-s2.0:4294967296",
	};
	struct fabric_pgft t = tree("2;12,12;1,6;1,2");
	struct fabric_cable c;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (fabric_find_cable(&t, bad[i], &c) != -ENOENT)
			fail_msg("'%s' was taken for a cable", bad[i]);
}

/* Numbers and names of the largest trees: nothing overflows. */
static void test_largest(void **state)
{
	static const char *const large[] = {
		"1;16777216;1;1",         "1;1;134217728;2",
		"2;4096,4096;1,4096;1,1", "8;8,8,8,8,8,8,8,8;1,1,1,1,1,1,1,1;1,1,1,1,1,1,1,1",
		"2;1,1;1,1;1,268435455",  "4;32,32,32,32;1,32,32,32;1,1,1,1",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(large); i++) {
		struct fabric_pgft t = tree(large[i]);
		uint32_t n = fabric_nodes(&t), cables = fabric_cables(&t);

		for (uint32_t k = 0; k < 1000; k++) {
			check_node_name(&t, (uint32_t)((uint64_t)k * (n - 1) / 999));
			check_cable_name(&t, (uint32_t)((uint64_t)k * (cables - 1) / 999));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connections), cmocka_unit_test(test_counts),
		cmocka_unit_test(test_known_sizes), cmocka_unit_test(test_below),
		cmocka_unit_test(test_node_names),  cmocka_unit_test(test_no_node_names),
		cmocka_unit_test(test_cable_names), cmocka_unit_test(test_no_cable_names),
		cmocka_unit_test(test_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
