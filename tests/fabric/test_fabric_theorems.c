/* What the paper proves, on every tree of four kinds of switches; its table 3; and each correction
 * to it. */
#include "test_fabric.h"

#include "fabric_hsd.h"
#include "fabric_order.h"
#include "fabric_rlft.h"

static const char *const table3[] = {"2;12,12;1,6;1,2", "2;18,18;1,9;1,2",
				     "3;12,12,12;1,12,6;1,1,2", "3;18,18,6;1,18,3;1,1,6"};

/* Sequences that are free of contention as shift is. */
static const char *const along[] = {"ring",     "dissemination", "tournament",
				    "binomial", "topo-recdbl",   "topo-rechalv"};

/* Sanitizers make this ten to thirty times slower. They look for other faults than the theorems',
 * and get every seventh tree, stage or set where there are thousands. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { THIN = 7 };
#else
enum { THIN = 1 };
#endif

/* ---- a job ---- */

struct scene {
	struct fabric_tree tree;
	struct fabric_routes routes;
	struct fabric_set set;
	uint32_t *hosts, *index, n;
};

static void route(struct scene *s, const char *routing, bool compact)
{
	struct fabric_routing rule;
	char why[256] = "";

	if (fabric_routing_parse(&rule, routing, why, sizeof(why)))
		fail_msg("%s", why);
	if (compact)
		assert_non_null(s->index = fabric_set_index(&s->set, &s->tree));
	assert_int_equal(fabric_routes_make(&s->routes, &s->tree, &rule, s->index), 0);
}

static void place(struct scene *s, const char *order)
{
	char why[256] = "";

	if (fabric_order_of(&s->tree, &s->set, order, s->hosts, &s->n, why, sizeof(why)))
		fail_msg("%s", why);
}

/* All hosts, or without K:SEED. D-Mod-K on their numbers, ranks ascending. */
static void build(struct scene *s, const struct fabric_pgft *t, const char *exclude, bool compact)
{
	char why[256] = "";

	*s = (struct scene){0};
	fabric_tree_init(&s->tree, t);
	if (exclude ? fabric_set_exclude(&s->set, &s->tree, exclude, why, sizeof(why))
		    : fabric_set_all(&s->set, &s->tree))
		fail_msg("%s", why);
	s->hosts = malloc(fabric_hosts(t) * sizeof(*s->hosts));
	assert_non_null(s->hosts);
	route(s, "dmodk", compact);
	place(s, "routing");
}

static void drop(struct scene *s)
{
	fabric_routes_free(&s->routes);
	fabric_set_free(&s->set);
	fabric_tree_free(&s->tree);
	free(s->hosts);
	free(s->index);
}

static struct fabric_hsd hsd_every(struct scene *s, const char *sequence, uint32_t stride)
{
	struct fabric_hsd_job job = {.routes = &s->routes, .hosts = s->hosts, .stride = stride};
	struct fabric_cps c;
	struct fabric_hsd r;
	char why[320] = "";

	if (fabric_cps_parse(&c, sequence, s->n, &s->tree.pgft, why, sizeof(why)))
		fail_msg("%s", why);
	job.cps = &c;
	assert_int_equal(fabric_hsd(&job, &r), 0);
	assert_int_equal(r.worst.lost, 0);
	fabric_cps_free(&c);
	return r;
}

static struct fabric_hsd hsd(struct scene *s, const char *sequence)
{
	return hsd_every(s, sequence, 0);
}

static void check_one(struct scene *s, const char *sequence)
{
	struct fabric_hsd r = hsd(s, sequence);
	char text[FABRIC_TUPLE_MAX];

	fabric_pgft_print(&s->tree.pgft, text);
	if (r.worst.all > 1)
		fail_msg("%s, %u ranks: %s has degree %u", text, s->n, sequence, r.worst.all);
}

/* ---- every RLFT ---- */

enum { HOSTS_MAX = 4096 };

typedef void visit(const struct fabric_pgft *t);

/* Level l of a tree whose levels below have m, and the cables to them p. With K ports down and K
 * up, p_l divides K; at the top there are 2K ports down. */
static uint32_t enumerate(uint32_t K, uint32_t l, uint32_t hosts, struct fabric_pgft *t,
			  uint32_t thin, visit *see)
{
	char text[FABRIC_TUPLE_MAX];
	uint32_t count = 0;

	for (uint32_t p = 1; p <= (l == 1 ? 1 : K); p++) {
		if (K % p)
			continue;
		t->p[l] = p;
		t->w[l] = l == 1 ? 1 : K / p;
		t->m[l] = 2 * K / p;
		if (hosts * t->m[l] <= HOSTS_MAX) {
			struct fabric_pgft whole;

			t->h = l;
			fabric_pgft_print(t, text);
			whole = tree(text);
			if (count++ % thin == 0)
				see(&whole);
		}
		/* Levels that join nothing, m_l = 1, could be stacked for ever. */
		t->m[l] = K / p;
		if (t->m[l] > 1 && l < FABRIC_LEVELS_MAX && hosts * t->m[l] <= HOSTS_MAX)
			count += enumerate(K, l + 1, hosts * t->m[l], t, thin, see);
	}
	return count;
}

static uint32_t every_rlft(const uint32_t *radices, size_t n, uint32_t thin, visit *see)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n; i++) {
		struct fabric_pgft t = {0};

		count += enumerate(radices[i] / 2, 1, 1, &t, thin, see);
	}
	return count;
}

/* Switches that few trees can be made of, and those that hundreds can. */
static const uint32_t few[] = {4, 6, 10, 18}, many[] = {8, 12, 24, 36};

static void check_theorem_1(const struct fabric_pgft *t, uint32_t stride)
{
	struct fabric_rlft rules;
	struct fabric_hsd r;
	struct scene s;

	assert_true(fabric_rlft_check(t, &rules));
	build(&s, t, NULL, false);
	r = hsd_every(&s, "shift", stride);
	if (r.worst.all != 1) {
		char text[FABRIC_TUPLE_MAX];

		fabric_pgft_print(t, text);
		fail_msg("%s: shift has degree %u", text, r.worst.all);
	}
	for (size_t i = 0; i < COUNT(along) && (stride == THIN || fabric_hosts(t) < 1000); i++)
		check_one(&s, along[i]);
	drop(&s);
}

static void see_all_stages(const struct fabric_pgft *t)
{
	check_theorem_1(t, THIN);
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	while (b) {
		uint32_t c = a % b;

		a = b;
		b = c;
	}
	return a;
}

/* As many as take part of a millisecond, at distances that have no divisor with the tree in common.
 */
static void see_some_stages(const struct fabric_pgft *t)
{
	uint32_t n = fabric_hosts(t), stride = 1 + n * n / 65536;

	while (gcd(stride, n) > 1)
		stride++;
	check_theorem_1(t, stride);
}

/* No up-going port has more than one flow in any stage of a shift; nor in what a shift includes,
 * nor in recursive doubling along the tree. */
static void test_theorem_1(void **state)
{
	(void)state;
	assert_int_equal(every_rlft(few, COUNT(few), 1, see_all_stages), 59);
	assert_int_equal(every_rlft(many, COUNT(many), THIN, see_some_stages), 2147);
}

/* How a switch of level l chooses among the cables to the child that has host j below. */
typedef uint32_t down_cable(const struct fabric_pgft *t, uint32_t l, uint32_t j);

static uint32_t by_climb(const struct fabric_pgft *t, uint32_t l, uint32_t j)
{
	return j / t->W[l] % t->p[l];
}

static uint32_t by_number(const struct fabric_pgft *t, uint32_t l, uint32_t j)
{
	return j % t->p[l];
}

static uint32_t always_first(const struct fabric_pgft *t, uint32_t l, uint32_t j)
{
	(void)t;
	(void)l;
	(void)j;
	return 0;
}

/* All that goes to host j from anywhere: a leaf sends all of its hosts' the same way, and what has
 * been seen once goes on the same way. Returns whether all down-going ports that it passes had no
 * other destination. */
static bool own_ports(const struct fabric_pgft *t, uint32_t j, down_cable *choose, uint32_t *seen,
		      uint32_t *owner)
{
	bool own = true;

	for (uint32_t leaf = 0; leaf < t->nodes[1]; leaf++) {
		struct fabric_node n = {1, leaf};

		while (n.level > 0 && seen[fabric_number(t, n)] != j + 1) {
			struct fabric_cable c;
			uint32_t l = n.level, *o;

			seen[fabric_number(t, n)] = j + 1;
			if (!fabric_is_below(t, n, j)) {
				n = fabric_cable_up(t, n, j / t->W[l] % fabric_up_ports(t, l))
					    .upper;
				continue;
			}
			c = fabric_cable_down(
				t, n, j / t->M[l - 1] % t->m[l] + choose(t, l, j) * t->m[l]);
			o = &owner[fabric_cable_number(t, &c)];
			own &= *o == 0 || *o == j + 1;
			*o = j + 1;
			n = c.lower;
		}
	}
	return own;
}

static bool theorem_2(const struct fabric_pgft *t, down_cable *choose)
{
	uint32_t *seen = calloc(fabric_nodes(t), sizeof(*seen));
	uint32_t *owner = calloc(fabric_cables(t), sizeof(*owner));
	bool holds = true;

	assert_true(seen && owner);
	for (uint32_t j = 0; j < fabric_hosts(t); j++)
		holds &= own_ports(t, j, choose, seen, owner);
	free(seen);
	free(owner);
	return holds;
}

static void see_theorem_2(const struct fabric_pgft *t)
{
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	char text[FABRIC_TUPLE_MAX];

	fabric_pgft_print(t, text);
	if (!theorem_2(t, by_climb))
		fail_msg("%s: a down-going port has two destinations", text);
	/* And this is what our routing does: at the switches above a host. */
	for (uint32_t j = 0; j < fabric_hosts(t); j += 1 + fabric_hosts(t) / 50)
		for (uint32_t l = 1; l <= t->h; l++) {
			struct fabric_node n = {l, j / t->M[l] * t->W[l] + j % t->W[l]};

			assert_int_equal(fabric_route(t, &rule, n, j, 0).first,
					 j / t->M[l - 1] % t->m[l] + by_climb(t, l, j) * t->m[l]);
		}
}

static void see_small_theorem_2(const struct fabric_pgft *t)
{
	if (fabric_hosts(t) <= 1200 / THIN)
		see_theorem_2(t);
}

/* No down-going port of the whole tree has more than one destination, whoever sends. */
static void test_theorem_2(void **state)
{
	(void)state;
	every_rlft(few, COUNT(few), 1, see_theorem_2);
	every_rlft(many, COUNT(many), THIN, see_small_theorem_2);
}

/* With other choices among parallel cables it does not hold, except by accident: the destinations
 * of a switch are W_l apart, and if that has no divisor in common with p_l, j mod p_l spreads them.
 */
static void test_down_cables(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct fabric_pgft t = tree(table3[i]);

		assert_true(theorem_2(&t, by_climb));
		assert_int_equal(theorem_2(&t, by_number), gcd(t.W[t.h], t.p[t.h]) == 1);
		assert_false(theorem_2(&t, always_first));
	}
}

/* ---- table 3 ---- */

static void test_full_trees(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct fabric_pgft t = tree(table3[i]);

		see_all_stages(&t);
	}
}

/* 11,664 hosts; every 97th stage, which is prime to all that the tree is made of. */
static void test_large_tree(void **state)
{
	struct fabric_pgft t = tree("3;18,18,36;1,18,18;1,1,1");
	struct fabric_hsd r;
	struct scene s;

	(void)state;
	build(&s, &t, NULL, false);
	r = hsd_every(&s, "shift", 97);
	assert_int_equal(r.stages, 121);
	assert_int_equal(r.worst.all, 1);
	drop(&s);
}

struct spread {
	double mean, least, most, leaf;
};

static struct spread over_orders(const char *tuple, const char *sequence)
{
	struct fabric_pgft t = tree(tuple);
	struct spread v = {.least = 1e9};
	struct scene s;

	build(&s, &t, NULL, false);
	for (uint32_t seed = 1; seed <= 25; seed++) {
		struct fabric_hsd r;
		char order[32];

		snprintf(order, sizeof(order), "random:%u", seed);
		place(&s, order);
		r = hsd_every(&s, sequence, s.n > 1000 && !strcmp(sequence, "shift") ? THIN : 1);
		v.mean += r.avg_max_hsd / 25;
		v.leaf += r.avg_max_leaf_up / 25;
		v.least = r.avg_max_hsd < v.least ? r.avg_max_hsd : v.least;
		v.most = r.avg_max_hsd > v.most ? r.avg_max_hsd : v.most;
	}
	drop(&s);
	return v;
}

static struct spread check_spread(const char *tuple, const char *sequence, double want,
				  double tolerance)
{
	struct spread v = over_orders(tuple, sequence);

	print_message("%s %s: %.3f (%.3f to %.3f), leaves up %.3f\n", tuple, sequence, v.mean,
		      v.least, v.most, v.leaf);
	if (want < v.least || want > v.most || v.mean < want - tolerance ||
	    v.mean > want + tolerance)
		fail_msg("%s %s: %.3f (%.3f to %.3f), expected %.2f", tuple, sequence, v.mean,
			 v.least, v.most, want);
	return v;
}

static void test_random_orders(void **state)
{
	static const double shift[] = {3.74, 4.34, 5.41, 5.44};
	static const double doubling[] = {2.83, 3.35, 4.10, 4.16};

	(void)state;
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct spread v =
			check_spread(table3[i], "shift", shift[i], THIN > 1 ? 0.04 : 0.02);

		check_spread(table3[i], "topo-recdbl", doubling[i], 0.1);
		/* What was printed for 1728 are the leaves' up-going links alone. */
		if (i == 2)
			assert_true(v.leaf > 5.22 && v.leaf < 5.26);
	}
}

/* ---- parts of trees ---- */

/* Item 1: hosts left out at random, routes by their numbers. */
static void test_random_parts(void **state)
{
	static const struct {
		const char *tuple;
		uint32_t out;
	} cases[] = {{table3[0], 24}, {table3[1], 36}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fabric_pgft t = tree(cases[i].tuple);

		for (uint32_t seed = 1; seed <= 30; seed++) {
			struct fabric_hsd r;
			struct scene s;
			char text[32];

			snprintf(text, sizeof(text), "%u:%u", cases[i].out, seed);
			build(&s, &t, text, false);
			r = hsd(&s, "shift");
			if (r.worst.all < 2 || r.avg_max_hsd < 1.7 || r.avg_max_hsd > 2.1)
				fail_msg("%s without %s: %u, on average %.3f", cases[i].tuple, text,
					 r.worst.all, r.avg_max_hsd);
			drop(&s);
		}
	}
}

/* The same with any set of hosts. */
static void build_set(struct scene *s, const struct fabric_pgft *t, const uint32_t *hosts,
		      uint32_t n, bool compact)
{
	*s = (struct scene){0};
	fabric_tree_init(&s->tree, t);
	s->set.hosts = malloc(n * sizeof(*hosts));
	s->hosts = malloc(n * sizeof(*hosts));
	assert_true(s->set.hosts && s->hosts);
	memcpy(s->set.hosts, hosts, n * sizeof(*hosts));
	s->set.count = n;
	route(s, "dmodk", compact);
	place(s, "compact");
}

/* Without hosts from … to−1. */
static void check_gap(const struct fabric_pgft *t, uint32_t from, uint32_t to)
{
	uint32_t *hosts = malloc(fabric_hosts(t) * sizeof(*hosts)), n = 0;
	struct scene s;

	assert_non_null(hosts);
	for (uint32_t i = 0; i < fabric_hosts(t); i++)
		if (i < from || i >= to)
			hosts[n++] = i;
	build_set(&s, t, hosts, n, false);
	check_one(&s, "shift");
	drop(&s);
	free(hosts);
}

/* Item 1: with one run left out, or whole sub-trees of the top, it is free of contention. */
static void test_contiguous_parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fabric_pgft t = tree(table3[i]);
		uint32_t unit = t.M[t.h - 1], n = fabric_hosts(&t);

		for (uint32_t from = 0; from + 2 * unit <= n; from += 5)
			check_gap(&t, from, from + 2 * unit);
		for (uint32_t from = 0; from < n - unit; from += unit)
			check_gap(&t, from, from + unit);
	}
}

static bool compact_holds(const struct fabric_pgft *t, const uint32_t *hosts, uint32_t n)
{
	struct scene s;
	bool holds;

	build_set(&s, t, hosts, n, true);
	holds = hsd(&s, "shift").worst.all <= 1;
	drop(&s);
	return holds;
}

static uint32_t sets_seen;

static void see_all_sets(const struct fabric_pgft *t)
{
	uint32_t hosts[16], unit = t->M[t->h - 1];

	if (fabric_hosts(t) != 16)
		return;
	for (uint32_t bits = 1; bits < 1u << 16; bits += THIN) {
		uint32_t n = 0;

		if ((uint32_t)__builtin_popcount(bits) % unit)
			continue;
		for (uint32_t i = 0; i < 16; i++)
			if (bits >> i & 1)
				hosts[n++] = i;
		if (!compact_holds(t, hosts, n))
			fail_msg("hosts %04x of a tree of %u levels", bits, t->h);
		sets_seen++;
	}
}

/* Item 3: with the compact index, any set whose size is a multiple of M_h−1. All of 16 hosts. */
static void test_compact_index(void **state)
{
	(void)state;
	sets_seen = 0;
	every_rlft((const uint32_t[]){4, 8, 16}, 3, 1, see_all_sets);
	print_message("%u sets of hosts\n", sets_seen);
	assert_true(sets_seen > 100000 / THIN / 2);
}

/* The same on larger trees, at random. */
static void test_compact_parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct fabric_pgft t = tree(table3[i]);

		for (uint32_t k = 1; k < (i < 2 ? t.m[t.h] : 3); k++) {
			struct scene s;
			char text[32];

			snprintf(text, sizeof(text), "%u:%u", k * t.M[t.h - 1], k);
			build(&s, &t, text, true);
			check_one(&s, "shift");
			check_one(&s, "dissemination");
			drop(&s);
		}
	}
}

/* Item 2: a multiple of W_h is not enough; the parallel cables of the top count, too. */
static void test_product_of_w(void **state)
{
	struct fabric_pgft t = tree(table3[0]);
	uint32_t blocked = 0;

	(void)state;
	assert_int_equal(t.W[t.h], 6);
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct scene s;
		char text[32];

		snprintf(text, sizeof(text), "18:%u", seed);
		build(&s, &t, text, true);
		blocked += hsd(&s, "shift").worst.all > 1;
		drop(&s);
	}
	assert_int_equal(blocked, 20);
}

/* Item 5: doubling along the tree on compact ranks. */
static void test_topo_parts(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct fabric_pgft t = tree(table3[i]);
		uint32_t unit = t.M[t.h - 1], least = 1;

		while (2 * least <= t.m[t.h])
			least *= 2;
		for (uint32_t n = least; n < t.m[t.h]; n++) {
			struct scene s;
			char text[32];

			snprintf(text, sizeof(text), "%u:%u", (t.m[t.h] - n) * unit, n);
			build(&s, &t, text, true);
			check_one(&s, "topo-recdbl");
			check_one(&s, "topo-rechalv");
			drop(&s);
		}
	}
}

/* ---- other corrections ---- */

static bool all_powers_of_two(const struct fabric_pgft *t)
{
	for (uint32_t l = 1; l <= t->h; l++)
		if (t->m[l] & (t->m[l] - 1))
			return false;
	return true;
}

static void see_doubling(const struct fabric_pgft *t)
{
	struct fabric_hsd r;
	struct scene s;
	char text[FABRIC_TUPLE_MAX];

	/* A single switch has no contention, and two leaves with all cables between them may. */
	if (t->h == 1 || (t->h == 2 && t->m[2] == 2))
		return;
	build(&s, t, NULL, false);
	r = hsd(&s, "recdbl");
	fabric_pgft_print(t, text);
	if (r.worst.all != (all_powers_of_two(t) ? 1 : 2))
		fail_msg("%s: recdbl has degree %u", text, r.worst.all);
	drop(&s);
}

/* Item 4: plain recursive doubling has degree 2, unless every m_l is a power of two. */
static void test_plain_doubling(void **state)
{
	(void)state;
	every_rlft(few, COUNT(few), 1, see_doubling);
	every_rlft(many, COUNT(many), THIN, see_doubling);
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct fabric_pgft t = tree(table3[i]);

		see_doubling(&t);
	}
}

/* Item 6. */
static void test_adversarial_ring(void **state)
{
	static const uint32_t want[] = {11, 17, 12, 18};

	(void)state;
	for (size_t i = 0; i < COUNT(table3); i++) {
		struct fabric_pgft t = tree(table3[i]);
		struct fabric_hsd r;
		struct scene s;

		build(&s, &t, NULL, false);
		place(&s, "adversarial");
		r = hsd(&s, "ring");
		assert_int_equal(r.worst.all, want[i]);
		assert_int_equal(r.worst.leaf_up, want[i]);
		drop(&s);
	}
}

/* Equations (6) and (7) as printed, with the stages (4) and (5) before and after. As a file. */
static void write_printed(const struct fabric_pgft *t, FILE *f)
{
	uint32_t n = fabric_hosts(t);

	for (uint32_t l = 1; l <= t->h; l++) {
		uint32_t bits = 31 - (uint32_t)__builtin_clz(t->m[l]);
		uint32_t below = t->M[l - 1], M = t->M[l], E = below << bits;

		for (uint32_t i = 0; i + E < n; i++)
			if ((i + E) % M >= E)
				fprintf(f, "%u>%u ", i + E, i);
		fputc('\n', f);
		for (uint32_t s = 0; s < bits; s++, fputc('\n', f))
			for (uint32_t i = 0; i < n; i++) {
				uint32_t to = ((i / below) ^ (1u << s)) * below + i % below;

				if (l == 1)
					to = (i % M ^ 1u << s) + i / M * M;
				if (i % M < E && to < n)
					fprintf(f, "%u>%u ", i, to);
			}
		for (uint32_t i = 0; i + E < n; i++)
			if ((i + E) % M >= E)
				fprintf(f, "%u>%u ", i, i + E);
		fputc('\n', f);
	}
}

enum { RANKS = 1728, WORDS = RANKS / 64 };

static uint32_t complete_ranks(const struct fabric_cps *c)
{
	static uint64_t has[RANKS][WORDS], after[RANKS][WORDS];
	uint32_t complete = 0;

	memset(has, 0, sizeof(has));
	for (uint32_t i = 0; i < RANKS; i++)
		has[i][i / 64] |= UINT64_C(1) << i % 64;
	for (uint32_t s = 0; s < c->stages; s++) {
		memcpy(after, has, sizeof(has));
		for (uint32_t i = 0; i < RANKS; i++) {
			uint32_t to = fabric_cps_to(c, s, i);

			for (uint32_t k = 0; to != FABRIC_NONE && k < WORDS; k++)
				after[to][k] |= has[i][k];
		}
		memcpy(has, after, sizeof(has));
	}
	for (uint32_t i = 0; i < RANKS; i++) {
		bool all = true;

		for (uint32_t k = 0; k < WORDS; k++)
			all &= has[i][k] == UINT64_MAX;
		complete += all;
	}
	return complete;
}

static void test_equation_7(void **state)
{
	struct fabric_pgft t = tree(table3[2]);
	struct fabric_hsd_job job;
	struct fabric_hsd r;
	struct fabric_cps c;
	struct scene s;
	FILE *f = tmpfile();
	char why[256] = "";

	(void)state;
	assert_non_null(f);
	write_printed(&t, f);
	rewind(f);
	if (fabric_cps_read(&c, f, "printed", RANKS, why, sizeof(why)))
		fail_msg("%s", why);
	fclose(f);
	assert_int_equal(complete_ranks(&c), 576);
	build(&s, &t, NULL, false);
	job = (struct fabric_hsd_job){.routes = &s.routes, .cps = &c, .hosts = s.hosts};
	assert_int_equal(fabric_hsd(&job, &r), 0);
	assert_int_equal(r.worst.all, 1);
	fabric_cps_free(&c);
	/* As corrected. */
	assert_int_equal(fabric_cps_parse(&c, "topo-recdbl", RANKS, &t, why, sizeof(why)), 0);
	assert_int_equal(complete_ranks(&c), RANKS);
	drop(&s);
}

/* Displaced rings of 24 ranks on two leaves, step 12: with D-Mod-K alone on all links; of random
 * tables, the degrees that twelve balls in twelve bins, twice, have. */
static void test_drc(void **state)
{
	static const double want[] = {0, 0, .10, .60, .25, .04, .004};
	enum { TABLES = 4000 };
	struct fabric_pgft t = tree("2;12,12;1,12;1,1");
	uint32_t hosts[24], seen[13] = {0};
	double mean = 0;
	struct scene s;

	(void)state;
	for (uint32_t i = 0; i < 24; i++)
		hosts[i] = i;
	build_set(&s, &t, hosts, 24, false);
	for (uint32_t step = 1; step < 24; step++) {
		char text[16];

		snprintf(text, sizeof(text), "drc:%u", step);
		check_one(&s, text);
	}
	for (uint32_t seed = 1; seed <= TABLES; seed++) {
		struct fabric_routing rule = {.kind = FABRIC_RANDOM, .seed = seed};
		uint32_t degree;

		fabric_routes_free(&s.routes);
		assert_int_equal(fabric_routes_make(&s.routes, &s.tree, &rule, NULL), 0);
		degree = hsd(&s, "drc:12").worst.all;
		seen[degree]++;
		mean += (double)degree / TABLES;
	}
	print_message("random tables: degree %.3f on average\n", mean);
	assert_true(mean > 3.20 && mean < 3.30);
	for (uint32_t i = 0; i < COUNT(want); i++) {
		double p = (double)seen[i] / TABLES, off = p - want[i];

		if (off > 0.03 || off < -0.03 || (i == 6 && seen[i] == 0))
			fail_msg("degree %u with probability %.4f, expected %.3f", i, p, want[i]);
	}
	drop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_theorem_1),      cmocka_unit_test(test_theorem_2),
		cmocka_unit_test(test_down_cables),    cmocka_unit_test(test_full_trees),
		cmocka_unit_test(test_large_tree),     cmocka_unit_test(test_random_orders),
		cmocka_unit_test(test_random_parts),   cmocka_unit_test(test_contiguous_parts),
		cmocka_unit_test(test_compact_index),  cmocka_unit_test(test_compact_parts),
		cmocka_unit_test(test_product_of_w),   cmocka_unit_test(test_topo_parts),
		cmocka_unit_test(test_plain_doubling), cmocka_unit_test(test_adversarial_ring),
		cmocka_unit_test(test_equation_7),     cmocka_unit_test(test_drc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
