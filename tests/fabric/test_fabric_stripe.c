/* Striping: the equations by hand, and what policies do on the 144-port switch of the paper. */
#include "test_fabric_sim.h"

#include "fabric_sim_stripe.h"

static struct fabric_stripe policy(const char *text)
{
	struct fabric_stripe s;
	char why[256] = "";

	if (fabric_stripe_parse(&s, text, why, sizeof(why)))
		fail_msg("%s", why);
	return s;
}

static void assert_close(double got, double want, double by)
{
	if (!(got - want <= by && want - got <= by))
		fail_msg("%.15g, expected %.15g", got, want);
}

static void test_names(void **state)
{
	static const char *const good[] = {"original", "hsam:4", "hsam:16", "bss:12,3", "bss:16,1"};
	static const char *const bad[] = {
		"",        "hsam",     "hsam:",    "hsam:0",           "hsam:17",
		"hsam:4x", "bss:4",    "bss:4,",   "bss:4,0",          "bss:4,5",
		"bss:0,0", "bss:4,2,", "Original", "bss:99999999999,1"};
	char text[FABRIC_STRIPE_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct fabric_stripe s = policy(good[i]);

		fabric_stripe_print(&s, text);
		assert_string_equal(text, good[i]);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct fabric_stripe s = {7, 7, 7};
		char why[256] = "";

		assert_int_equal(fabric_stripe_parse(&s, bad[i], why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 20);
		assert_int_equal(s.paths, 7);
	}
}

/* ---- equations ---- */

static void test_begin(void **state)
{
	struct fabric_stripe s = policy("bss:4,2");
	struct fabric_share share[FABRIC_STRIPE_PATHS_MAX];
	double w[4];

	(void)state;
	fabric_stripe_begin(&s, w);
	for (int i = 0; i < 4; i++)
		assert_close(w[i], .25, 1e-12);
	assert_int_equal(fabric_stripe_divide(&s, w, 1001, share), 2);
	assert_int_equal(share[0].path, 0);
	assert_int_equal(share[1].path, 1);
	assert_int_equal(share[0].bytes, 500);
	assert_int_equal(share[1].bytes, 501);
}

/* Equation 3 with numbers. Both halves of a message; one took three times as long: of W_batch
 * = 1/2 the rates give 3/8 and 1/8, and α = .95 takes 95 % of the way from 1/4. */
static void test_learn(void **state)
{
	struct fabric_stripe s = policy("bss:4,2");
	struct fabric_share share[FABRIC_STRIPE_PATHS_MAX];
	double w[4];

	(void)state;
	fabric_stripe_begin(&s, w);
	fabric_stripe_divide(&s, w, 1000, share);
	fabric_stripe_learn(&s, w, share, (uint64_t[]){300, 100}, 2);
	assert_close(w[0], .05 * .25 + .95 * .125, 1e-12);
	assert_close(w[1], .05 * .25 + .95 * .375, 1e-12);
	assert_close(w[2], .25, 1e-12);
	/* The heaviest first: 1 and, of those that were not used, 2. */
	assert_int_equal(fabric_stripe_divide(&s, w, 1000, share), 2);
	assert_int_equal(share[0].path, 1);
	assert_int_equal(share[1].path, 2);
	assert_true(share[0].bytes > share[1].bytes);
	/* Nothing is learnt from no shares, and a time of 0 is no division by it. */
	fabric_stripe_learn(&s, w, share, (uint64_t[]){0, 0}, 0);
	assert_close(w[2], .25, 1e-12);
	fabric_stripe_learn(&s, w, share, (uint64_t[]){0, 0}, 2);
	assert_close(w[0] + w[1] + w[2] + w[3], 1, 1e-12);
}

/* Paths of fixed rates: HSAM gives them what they can carry, so that all end together. */
static void test_converges(void **state)
{
	static const double rate[] = {4, 1, 2, 1};
	struct fabric_stripe s = policy("hsam:4");
	struct fabric_share share[FABRIC_STRIPE_PATHS_MAX];
	uint64_t time[4];
	double w[4];

	(void)state;
	fabric_stripe_begin(&s, w);
	for (int k = 0; k < 10; k++) {
		uint32_t n = fabric_stripe_divide(&s, w, 1 << 20, share);

		for (uint32_t i = 0; i < n; i++)
			time[i] = (uint64_t)(1000 * (double)share[i].bytes / rate[share[i].path]);
		fabric_stripe_learn(&s, w, share, time, n);
	}
	for (int i = 0; i < 4; i++)
		assert_close(w[i], rate[i] / 8, 1e-4);
}

/* Weight moves within the batch only, so a batch of one learns nothing: as the equations are, a
 * bad path is never left. */
static void test_batch_of_one(void **state)
{
	struct fabric_stripe s = policy("bss:12,1");
	struct fabric_share share[FABRIC_STRIPE_PATHS_MAX];
	double w[12];

	(void)state;
	fabric_stripe_begin(&s, w);
	for (int k = 0; k < 5; k++) {
		assert_int_equal(fabric_stripe_divide(&s, w, 1000, share), 1);
		assert_int_equal(share[0].path, 0);
		assert_int_equal(share[0].bytes, 1000);
		fabric_stripe_learn(&s, w, share, (uint64_t[]){1000000}, 1);
		assert_close(w[0], 1.0 / 12, 1e-12);
	}
}

/* Any weights and sizes: shares add up, none is empty, no path twice, in the order of weight, and
 * each within a byte of what it should have. */
static void test_divide(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int k = 0; k < 20000; k++) {
		struct fabric_stripe s = {.paths = 1 + splitmix64(&seed) % FABRIC_STRIPE_PATHS_MAX};
		struct fabric_share share[FABRIC_STRIPE_PATHS_MAX];
		double w[FABRIC_STRIPE_PATHS_MAX], total = 0;
		uint64_t bytes = splitmix64(&seed) >> splitmix64(&seed) % 64, sum = 0;
		uint32_t n, seen = 0;

		s.batch = 1 + (uint32_t)(splitmix64(&seed) % s.paths);
		for (uint32_t i = 0; i < s.paths; i++)
			w[i] = (double)(splitmix64(&seed) >> 1 >> splitmix64(&seed) % 63) / 1e18 +
			       1e-30;
		n = fabric_stripe_divide(&s, w, bytes, share);
		assert_true(n <= s.batch);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(share[i].bytes > 0);
			assert_false(seen >> share[i].path & 1);
			assert_true(!i || w[share[i].path] <= w[share[i - 1].path]);
			seen |= 1u << share[i].path;
			sum += share[i].bytes;
			total += w[share[i].path];
		}
		assert_int_equal(sum, bytes);
		if (n == s.batch && bytes < 1u << 30)
			for (uint32_t i = 0; i < n; i++)
				assert_true((double)share[i].bytes -
						    (double)bytes * w[share[i].path] / total <
					    1.001);
	}
}

/* ---- the 144-port switch ---- */

static const char *const policies[] = {"original", "hsam:4",   "bss:4,2",
				       "bss:8,2",  "bss:12,3", "hsam:12"};

struct study {
	const char *name;
	uint32_t ranks, step, rounds;
	uint64_t bytes;
	bool distinct;
};

/* The mean over some seeds of the time of the last round, in microseconds. */
static double last_round(const struct study *s, const char *name, uint32_t seeds)
{
	double us = 0;

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct fabric_routing rule = {
			.kind = s->distinct ? FABRIC_DMODK : FABRIC_RANDOM, .seed = seed, .lmc = 4};
		uint64_t ps[32];
		uint32_t hosts[144];
		struct fabric_sim_stripes what = {.rings = s->step > 0,
						  .step = s->step,
						  .ranks = s->ranks,
						  .hosts = hosts,
						  .bytes = s->bytes,
						  .policy = policy(name),
						  .draw = s->distinct,
						  .seed = seed,
						  .addresses = 12,
						  .rounds = s->rounds};
		char why[256] = "";
		struct world w;

		for (uint32_t i = 0; i < 144; i++)
			hosts[i] = i;
		world_make(&w, "2;12,12;1,12;1,1", rule);
		if (fabric_sim_stripes(&w.routes, &fabric_sim_ddr, &what, ps, NULL, why,
				       sizeof(why)))
			fail_msg("%s, seed %llu: %s", name, (unsigned long long)seed, why);
		us += (double)ps[s->rounds - 1] / 1e6 / seeds;
		world_free(&w);
	}
	return us;
}

/* Every policy that uses several paths is well below the original. Which of them is the best
 * is printed, not demanded: it depends on what a stripe costs and on how long is learnt. */
static void test_policies(void **state)
{
	static const struct study studies[] = {
		{"alltoall, hashed paths", 48, 0, 4, 65536, false},
		{"alltoall, distinct paths", 48, 0, 4, 65536, true},
		{"displaced ring, step 12, hashed", 24, 12, 16, 524288, false},
		{"displaced ring, step 12, distinct", 24, 12, 16, 524288, true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(studies); i++) {
		double us[COUNT(policies)];

		print_message("%s, %u ranks, %llu bytes:\n", studies[i].name, studies[i].ranks,
			      (unsigned long long)studies[i].bytes);
		for (size_t p = 0; p < COUNT(policies); p++) {
			us[p] = last_round(&studies[i], policies[p], 2);
			print_message("  %-9s %8.1f us, %.2f of the original\n", policies[p], us[p],
				      us[p] / us[0]);
			if (p)
				assert_true(us[p] < .85 * us[0]);
		}
	}
}

static void test_study_refused(void **state)
{
	struct fabric_sim_stripes good = {.ranks = 4,
					  .hosts = (uint32_t[]){0, 1, 2, 3},
					  .bytes = 10000,
					  .policy = policy("hsam:4"),
					  .addresses = 4,
					  .rounds = 1},
				  bad;
	struct fabric_sim_config c = fabric_sim_ddr;
	char why[256];
	uint64_t ps;
	struct world w;

	(void)state;
	world_make(&w, "2;2,2;1,2;1,1", (struct fabric_routing){.kind = FABRIC_DMODK, .lmc = 2});
	assert_int_equal(fabric_sim_stripes(&w.routes, &c, &good, &ps, NULL, why, sizeof(why)), 0);
	assert_true(ps > 0);
	for (int i = 0; i < 5; i++) {
		bad = good;
		if (i == 0)
			bad.ranks = 1;
		else if (i == 1)
			bad.step = 4;
		else if (i == 2)
			bad.addresses = 5;
		else if (i == 3)
			bad.addresses = 3;
		else
			c.progress = FABRIC_SIM_ASYNC;
		why[0] = 0;
		assert_int_equal(
			fabric_sim_stripes(&w.routes, &c, &bad, &ps, NULL, why, sizeof(why)),
			-EINVAL);
		assert_true(strlen(why) > 20);
	}
	world_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),        cmocka_unit_test(test_begin),
		cmocka_unit_test(test_learn),        cmocka_unit_test(test_converges),
		cmocka_unit_test(test_batch_of_one), cmocka_unit_test(test_divide),
		cmocka_unit_test(test_policies),     cmocka_unit_test(test_study_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
