/* The other corrections to the paper: sequences, orders and equations. */
#include "test_fabric_theorems.h"

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
		cmocka_unit_test(test_plain_doubling),
		cmocka_unit_test(test_adversarial_ring),
		cmocka_unit_test(test_equation_7),
		cmocka_unit_test(test_drc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
