/* Striping: what policies do on the 144-port switch of the paper. */
#include "test_fabric_sim.h"

#include "fabric_sim_stripe.h"

static struct stripe_conf policy(const char *text)
{
	struct stripe_conf s;
	char why[256] = "";

	if (stripe_parse(&s, text, why, sizeof(why)))
		fail_msg("%s", why);
	return s;
}

/* ---- the 144-port switch ---- */

static const char *const policies[] = {"original", "hsam:4",  "bss:4,2",   "bss:8,2", "bss:12,3",
				       "hsam:12",  "pull:12", "pull:12,6", "hop:12"};

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

/* Further parts of messages: all of each arrives, however ranks go on and whatever posting costs.
 */
static void test_pieces(void **state)
{
	static const char *const names[] = {"pull:4", "pull:4,2", "hop:4", "roundrobin:4"};
	struct world w;

	(void)state;
	world_make(&w, "2;4,4;1,4;1,1", (struct fabric_routing){.kind = FABRIC_DMODK, .lmc = 2});
	for (uint32_t k = 0; k < 4 * COUNT(names); k++) {
		struct fabric_sim_config c = fabric_sim_ddr;
		uint32_t hosts[16];
		struct fabric_sim_stripes what = {.ranks = 16,
						  .hosts = hosts,
						  .bytes = 200001,
						  .policy = policy(names[k / 4]),
						  .addresses = 4,
						  .rounds = 1};
		struct fabric_sim_result r = {0};
		char why[256] = "";
		uint64_t ps;

		for (uint32_t i = 0; i < 16; i++)
			hosts[i] = i;
		c.progress = k & 1 ? FABRIC_SIM_IN_STEP : FABRIC_SIM_EXCHANGE;
		c.post_ns = k & 2 ? 0 : 1000;
		if (fabric_sim_stripes(&w.routes, &c, &what, &ps, &r, why, sizeof(why)))
			fail_msg("%s: %s", names[k / 4], why);
		assert_int_equal(r.bytes, 16 * 15 * 200001);
		/* Pieces of 4 KB, 48 of them, but fewer and longer ones where they are divided. */
		if (k < 12)
			assert_true(r.parts > 16 * 15 * 30);
		else
			assert_int_equal(r.parts, 16 * 15);
	}
	world_free(&w);
}

static uint32_t too_many(void *ctx, uint32_t rank, uint32_t stage,
			 struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX])
{
	(void)ctx;
	(void)stage;
	for (uint32_t i = 0; i < FABRIC_SIM_PARTS_MAX; i++)
		part[i] = (struct fabric_sim_part){.to = rank ^ 1, .bytes = 1000};
	return FABRIC_SIM_PARTS_MAX;
}

static void test_more_refused(void **state)
{
	struct fabric_sim_config c = fabric_sim_ddr;
	struct fabric_sim_traffic t = {.ranks = 2,
				       .hosts = (uint32_t[]){0, 1},
				       .stages = 1,
				       .send = too_many,
				       .more = too_many};
	struct fabric_sim_result r = {0};
	char why[256] = "";
	struct world w;

	(void)state;
	world_make(&w, "2;2,2;1,2;1,1", (struct fabric_routing){.kind = FABRIC_DMODK});
	c.progress = FABRIC_SIM_ASYNC;
	assert_int_equal(fabric_sim(&w.routes, &c, &t, &r, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "follow"));
	c.progress = FABRIC_SIM_IN_STEP;
	assert_int_equal(fabric_sim(&w.routes, &c, &t, &r, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "at most 32"));
	world_free(&w);
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
		cmocka_unit_test(test_policies),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_more_refused),
		cmocka_unit_test(test_study_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
