/* Routing: every route arrives; D-Mod-K is the paper's, and so are its theorems. */
#include "test_fabric.h"

#include "fabric_route.h"

static struct fabric_routing routing(const char *text)
{
	struct fabric_routing r;
	char why[256] = "";

	if (fabric_routing_parse(&r, text, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return r;
}

/* ---- every route arrives ---- */

static struct fabric_node follow(const struct fabric_pgft *t, struct fabric_node n, bool up,
				 uint32_t port)
{
	return up ? fabric_cable_up(t, n, port).upper : fabric_cable_down(t, n, port).lower;
}

/* Follows all ports that a routing gives, ecmp's alternatives too. Having gone down once a
 * flow never goes up again, so no way is longer than 2·h. */
static void arrive(const struct fabric_pgft *t, const struct fabric_routing *r,
		   struct fabric_node n, uint32_t host, uint32_t a, bool down, uint32_t hops)
{
	struct fabric_ports p = fabric_route(t, r, n, host, a);

	assert_true(hops <= 2 * t->h);
	if (n.level == 0 && n.index == host) {
		assert_int_equal(p.count, 0);
		return;
	}
	assert_true(p.count >= 1);
	assert_true(!p.up || !down);
	assert_true(p.first + (p.count - 1) * p.stride <
		    (p.up ? fabric_up_ports(t, n.level) : fabric_down_ports(t, n.level)));
	if (r->kind != FABRIC_ECMP)
		assert_int_equal(p.count, 1);
	/* Alternatives: the first, the last and one between stand for all on large trees. */
	for (uint32_t i = 0; i<p.count; i += p.count> 4 ? p.count / 3 : 1)
		arrive(t, r, follow(t, n, p.up, p.first + i * p.stride), host, a, !p.up, hops + 1);
}

static void test_arrival(void **state)
{
	static const char *const names[] = {"dmodk",     "ecmp",  "random:1",
					    "random:99", "lmc:1", "lmc:3"};

	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);

		for (size_t k = 0; k < COUNT(names); k++) {
			struct fabric_routing r = routing(names[k]);

			for (uint32_t s = 0; s < fabric_hosts(&t); s++)
				for (uint32_t j = 0; j < fabric_hosts(&t); j++)
					for (uint32_t a = 0; a < 1u << r.lmc; a++)
						arrive(&t, &r, (struct fabric_node){0, s}, j, a,
						       false, 0);
		}
	}
}

static void test_ecmp_all(void **state)
{
	struct fabric_routing r = routing("ecmp");

	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);

		for (uint32_t g = 0; g < fabric_nodes(&t); g++)
			for (uint32_t j = 0; j < fabric_hosts(&t); j++) {
				struct fabric_node n = fabric_node(&t, g);
				struct fabric_ports p = fabric_route(&t, &r, n, j, 0);

				if (p.up) {
					assert_int_equal(p.first, 0);
					assert_int_equal(p.stride, 1);
					assert_int_equal(p.count, fabric_up_ports(&t, n.level));
				} else if (n.level) {
					assert_int_equal(p.count, t.p[n.level]);
				}
				/* All parallel cables to one child. */
				for (uint32_t k = 1; !p.up && k < p.count; k++)
					assert_int_equal(
						follow(&t, n, false, p.first).index,
						follow(&t, n, false, p.first + k * p.stride).index);
			}
	}
}

/* ---- D-Mod-K ---- */

/* Equation (1), with its product. */
static uint32_t paper_up(const struct fabric_pgft *t, uint32_t l, uint32_t j)
{
	uint32_t product = 1;

	for (uint32_t k = 1; k <= l; k++)
		product *= t->w[k];
	return j / product % (t->w[l + 1] * t->p[l + 1]);
}

/* Among the parallel cables to the child that holds j, cable ⌊j/W_l⌋ mod p_l, which is down
 * port a_l(j) + k·m_l. */
static uint32_t paper_down(const struct fabric_pgft *t, uint32_t l, uint32_t j)
{
	uint32_t product = 1, digit = j;

	for (uint32_t k = 1; k <= l; k++)
		product *= t->w[k];
	for (uint32_t k = 1; k < l; k++)
		digit /= t->m[k];
	return digit % t->m[l] + j / product % t->p[l] * t->m[l];
}

static void test_dmodk(void **state)
{
	struct fabric_routing r = routing("dmodk");

	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);

		for (uint32_t g = 0; g < fabric_nodes(&t); g++)
			for (uint32_t j = 0; j < fabric_hosts(&t); j++) {
				struct fabric_node n = fabric_node(&t, g);
				struct fabric_ports p = fabric_route(&t, &r, n, j, 0);

				assert_int_equal(p.up, !fabric_is_below(&t, n, j));
				if (p.up)
					assert_int_equal(p.first, paper_up(&t, n.level, j));
				else if (n.level)
					assert_int_equal(p.first, paper_down(&t, n.level, j));
			}
	}
}

/* ---- theorems 1 and 2 ---- */

struct flows {
	const struct fabric_pgft *t;
	uint32_t *up, *down; /* by cable */
};

static struct flows flows_new(const struct fabric_pgft *t)
{
	struct flows f = {t, calloc(fabric_cables(t), 4), calloc(fabric_cables(t), 4)};

	assert_true(f.up && f.down);
	return f;
}

static void flows_free(struct flows *f)
{
	free(f->up);
	free(f->down);
}

static void flow_add(struct flows *f, const struct fabric_routing *r, uint32_t from, uint32_t to,
		     uint32_t a)
{
	struct fabric_node n = {0, from};

	for (;;) {
		struct fabric_ports p = fabric_route(f->t, r, n, to, a);
		struct fabric_cable c;

		if (!p.count)
			return;
		c = p.up ? fabric_cable_up(f->t, n, p.first) : fabric_cable_down(f->t, n, p.first);
		(p.up ? f->up : f->down)[fabric_cable_number(f->t, &c)]++;
		n = p.up ? c.upper : c.lower;
	}
}

/* The worst directed link over all stages of the shift. */
static uint32_t worst_shift(const struct fabric_pgft *t, const struct fabric_routing *r, uint32_t a)
{
	uint32_t n = fabric_hosts(t), worst = 0;
	struct flows f = flows_new(t);

	for (uint32_t s = 1; s < n; s++) {
		memset(f.up, 0, fabric_cables(t) * 4);
		memset(f.down, 0, fabric_cables(t) * 4);
		for (uint32_t i = 0; i < n; i++)
			flow_add(&f, r, i, (i + s) % n, a);
		for (uint32_t c = 0; c < fabric_cables(t); c++) {
			worst = f.up[c] > worst ? f.up[c] : worst;
			worst = f.down[c] > worst ? f.down[c] : worst;
		}
	}
	flows_free(&f);
	return worst;
}

/* Trees that obey the rules of section IV.C. */
static const char *const rlfts[] = {
	"2;12,12;1,6;1,2",     "2;4,4;1,2;1,2",
	"2;4,8;1,4;1,1",       "2;6,4;1,2;1,3",
	"2;6,2;1,1;1,6",       "3;4,4,4;1,4,2;1,1,2",
	"3;2,2,4;1,2,2;1,1,1", "3;4,2,4;1,2,2;1,2,2",
	"3;3,3,2;1,3,1;1,1,3", "4;2,2,2,4;1,2,2,2;1,1,1,1",
};

static void check_rlft(const struct fabric_pgft *t)
{
	uint32_t k = t->m[1] * t->p[1];

	assert_int_equal(t->w[1] * t->p[1], 1);
	for (uint32_t l = 1; l < t->h; l++) {
		assert_int_equal(t->m[l] * t->p[l], k);
		assert_int_equal(t->w[l + 1] * t->p[l + 1], k);
	}
	assert_int_equal(t->m[t->h] * t->p[t->h], 2 * k);
}

static void test_theorems(void **state)
{
	struct fabric_routing r = routing("dmodk"), lmc = routing("lmc:2");

	(void)state;
	for (size_t i = 0; i < COUNT(rlfts); i++) {
		struct fabric_pgft t = tree(rlfts[i]);

		check_rlft(&t);
		assert_int_equal(worst_shift(&t, &r, 0), 1);
		for (uint32_t a = 0; a < 4; a++)
			assert_int_equal(worst_shift(&t, &lmc, a), 1);
	}
}

/* Theorem 2 says more: a down-going port leads to one destination at all. */
static void test_one_destination(void **state)
{
	struct fabric_routing r = routing("lmc:2");

	(void)state;
	for (size_t i = 0; i < COUNT(rlfts); i++) {
		struct fabric_pgft t = tree(rlfts[i]);
		uint32_t *to = calloc(fabric_cables(&t), 4);

		for (uint32_t a = 0; a < 4; a++) {
			memset(to, 0, fabric_cables(&t) * 4);
			for (uint32_t j = 0; j < fabric_hosts(&t); j++)
				for (uint32_t s = 0; s < fabric_hosts(&t); s++) {
					struct fabric_node n = {0, s};
					struct fabric_ports p;

					while (p = fabric_route(&t, &r, n, j, a), p.count) {
						struct fabric_cable c;
						uint32_t *was;

						if (p.up) {
							n = follow(&t, n, true, p.first);
							continue;
						}
						c = fabric_cable_down(&t, n, p.first);
						was = &to[fabric_cable_number(&t, &c)];
						assert_true(*was == 0 || *was == j + 1);
						*was = j + 1;
						n = c.lower;
					}
				}
		}
		free(to);
	}
}

/* ---- LMC ---- */

/* How a climb from one host to another is, as one number: its ports. */
static uint64_t way(const struct fabric_pgft *t, const struct fabric_routing *r, uint32_t from,
		    uint32_t to, uint32_t a)
{
	struct fabric_node n = {0, from};
	uint64_t ports = 0, scale = 1;

	for (;;) {
		struct fabric_ports p = fabric_route(t, r, n, to, a);

		if (!p.up)
			return ports;
		ports += p.first * scale;
		scale *= fabric_up_ports(t, n.level);
		n = follow(t, n, true, p.first);
	}
}

static uint32_t ways(const struct fabric_pgft *t, uint32_t from, uint32_t to)
{
	uint32_t n = 1;

	for (uint32_t l = 0; from / t->M[l] != to / t->M[l]; l++)
		n *= fabric_up_ports(t, l);
	return n;
}

static void test_lmc_ways(void **state)
{
	struct fabric_routing r = routing("lmc:3"), plain = routing("dmodk");

	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);
		uint32_t n = fabric_hosts(&t);

		for (uint32_t s = 0; s < n; s += 1 + n / 40)
			for (uint32_t j = 0; j < n; j++) {
				uint32_t distinct = ways(&t, s, j) < 8 ? ways(&t, s, j) : 8;

				assert_true(way(&t, &r, s, j, 0) == way(&t, &plain, s, j, 0));
				for (uint32_t a = 0; a < distinct; a++)
					for (uint32_t b = 0; b < a; b++)
						assert_true(way(&t, &r, s, j, a) !=
							    way(&t, &r, s, j, b));
			}
	}
}

/* Going down, an address has the cable that a climb to it from elsewhere would use. */
static void test_lmc_down(void **state)
{
	struct fabric_routing r = routing("lmc:3");

	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);
		uint32_t n = fabric_hosts(&t);

		for (uint32_t g = n; g < fabric_nodes(&t); g++)
			for (uint32_t k = 0; k < 8 * n; k++) {
				struct fabric_node at = fabric_node(&t, g), child;
				struct fabric_ports down = fabric_route(&t, &r, at, k / 8, k % 8),
						    up;

				child = fabric_cable_down(&t, at, (down.first + 1) % t.m[at.level])
						.lower;
				up = fabric_route(&t, &r, child, k / 8, k % 8);
				if (down.up || !up.up)
					continue; /* not above it, or it has one child only */
				assert_int_equal(down.first / t.m[at.level],
						 up.first / t.w[at.level]);
			}
	}
}

/* ---- names ---- */

static void test_routing_names(void **state)
{
	static const char *const good[] = {
		"dmodk",    "ecmp",  "random:0", "random:18446744073709551615",
		"random:7", "lmc:1", "lmc:7"};
	static const struct {
		const char *text, *words;
	} bad[] = {
		{"", "'' is no routing; known are dmodk, ecmp, random:SEED and lmc:K"},
		{"DMODK", "no routing"},
		{"dmodk ", "'dmodk ' is no routing"},
		{"dmodk:1", "no routing"},
		{"random", "random needs a number, such as random:1"},
		{"lmc", "lmc needs a number"},
		{"random:", "'' is no seed for random; expected a number, such as random:1"},
		{"random:-1", "'-1' is no seed"},
		{"random:1x", "'1x' is no seed"},
		{"random: 1", "' 1' is no seed"},
		{"random:0x10", "'0x10' is no seed"},
		{"random:18446744073709551616",
		 "'18446744073709551616' of random is too large; the most is 18446744073709551615"},
		{"random:99999999999999999999999999999999999999999999999999999999999999999999",
		 "too large"},
		{"lmc:", "'' is no LMC"},
		{"lmc:8",
		 "LMC '8' is too large; a host has 2^LMC addresses, and the most is lmc:7"},
		{"lmc:18446744073709551617", "too large"},
		{"lmc:-1", "'-1' is no LMC; expected a number from 0 to 7"},
		{"lmc:2.5", "is no LMC"},
		{"\x1b[2J", "'\\x1b[2J' is no routing"},
	};
	char text[FABRIC_ROUTING_NAME_MAX], why[256];
	struct fabric_routing r;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		r = routing(good[i]);
		fabric_routing_print(&r, text);
		assert_string_equal(text, good[i]);
	}
	r = routing("lmc:0");
	fabric_routing_print(&r, text);
	assert_string_equal(text, "dmodk");
	for (size_t i = 0; i < COUNT(bad); i++) {
		if (fabric_routing_parse(&r, bad[i].text, why, sizeof(why)) != -EINVAL)
			fail_msg("'%s' was accepted", bad[i].text);
		if (!strstr(why, bad[i].words))
			fail_msg("'%s' was refused with \"%s\"", bad[i].text, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_arrival),         cmocka_unit_test(test_ecmp_all),
		cmocka_unit_test(test_dmodk),           cmocka_unit_test(test_theorems),
		cmocka_unit_test(test_one_destination), cmocka_unit_test(test_lmc_ways),
		cmocka_unit_test(test_lmc_down),        cmocka_unit_test(test_routing_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
