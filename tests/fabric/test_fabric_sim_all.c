/* What is sent arrives, once and in order, on any tree; what can not be simulated is refused. */
#include "test_fabric_sim.h"

#include "util_rand.h"

static double mbs(uint64_t bytes, uint64_t ps)
{
	return (double)bytes / (double)ps * 1e6;
}

/* ---- everything arrives ---- */

static void random_list(struct list *l, struct util_rand *rand, uint32_t addresses)
{
	static const uint32_t sizes[] = {1, 65, 2048, 3000, 20000};

	l->parts = 1 + (uint32_t)util_rand_below(rand, 3);
	for (uint32_t s = 0; s < l->stages; s++)
		for (uint32_t r = 0; r < l->ranks; r++) {
			uint32_t to = (uint32_t)util_rand_below(rand, l->ranks);
			bool none = to == r || util_rand_below(rand, 4) == 0;

			for (uint32_t p = 0; p < l->parts; p++)
				l->part[r][s][p] = (struct fabric_sim_part){
					.to = to,
					.address = (uint32_t)util_rand_below(rand, addresses),
					.bytes = none ? 0
						      : 1 + util_rand_below(
								    rand,
								    sizes[util_rand_below(
									    rand, COUNT(sizes))]),
				};
		}
}

/* How long links are busy follows from the bytes and the ways, whatever the order was. */
static void check_busy(const struct list *l, const struct world *w, const uint64_t *busy)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 2 * fabric_cables(&w->tree.pgft); i++)
		sum += busy[i];
	for (uint32_t r = 0; r < l->ranks; r++)
		for (uint32_t s = 0; s < l->stages; s++)
			for (uint32_t p = 0; p < l->parts; p++) {
				const struct fabric_sim_part *part = &l->part[r][s][p];

				if (part->bytes)
					sum -= 250 * part->bytes *
					       links_between(w, l->hosts[r], l->hosts[part->to],
							     part->address);
			}
	assert_int_equal(sum, 0);
}

static void check_random(const char *tuple, uint64_t seed)
{
	struct util_rand rand;
	struct world w;
	struct list *l;
	struct fabric_sim_config c = fabric_sim_paper;
	struct fabric_sim_result r[2] = {{0}};
	uint64_t step[STAGES] = {0}, steps = 0;
	uint32_t n;

	util_rand_seed(&rand, seed);
	world_make(&w, tuple,
		   (struct fabric_routing){.kind = seed % 2 ? FABRIC_RANDOM : FABRIC_DMODK,
					   .seed = seed,
					   .lmc = 1});
	n = fabric_hosts(&w.tree.pgft);
	l = list_make(n < RANKS ? n : RANKS, STAGES);
	random_list(l, &rand, 2);
	c.progress = (enum fabric_sim_progress)(seed % 3);
	c.fifo = util_rand_below(&rand, 2);
	c.reads = 1 + (uint32_t)util_rand_below(&rand, 3);
	c.buffer = 2048 + (uint32_t)util_rand_below(&rand, 10000);
	c.host_buffer = 2048 + (uint32_t)util_rand_below(&rand, 10000);
	c.post_ns = (uint32_t)util_rand_below(&rand, 2) * 300;
	c.start_ns = (uint32_t)util_rand_below(&rand, 2000);
	c.seed = seed;
	for (int i = 0; i < 2; i++) {
		char why[256] = "";

		r[i].busy_ps = calloc(2 * fabric_cables(&w.tree.pgft), sizeof(uint64_t));
		r[i].stage_ps = step;
		assert_non_null(r[i].busy_ps);
		if (list_try(l, &w, &c, &r[i], why))
			fail_msg("%s, seed %llu: %s", tuple, (unsigned long long)seed, why);
		check_busy(l, &w, r[i].busy_ps);
	}
	list_run(l, &w, &c);
	assert_int_equal(r[0].ps, r[1].ps);
	assert_int_equal(r[0].events, r[1].events);
	for (uint32_t s = 0; s < STAGES; s++)
		steps += step[s];
	assert_int_equal(steps, c.progress == FABRIC_SIM_IN_STEP ? r[0].ps : 0);
	free(r[0].busy_ps);
	free(r[1].busy_ps);
	world_free(&w);
	free(l);
}

static void test_conservation(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++)
		for (uint64_t seed = 0; seed < 24; seed++)
			check_random(trees[i], seed + 1000 * i);
}

static void test_seed(void **state)
{
	struct fabric_sim_config c = fabric_sim_paper;
	struct list *l = list_make(48, 4);
	struct util_rand rand;
	struct world w;
	uint64_t ps;

	(void)state;
	world_make(&w, "2;12,12;1,6;1,2", dmodk);
	util_rand_seed(&rand, 3);
	random_list(l, &rand, 1);
	c.start_ns = 5000;
	c.seed = 1;
	ps = list_run(l, &w, &c).ps;
	assert_int_equal(list_run(l, &w, &c).ps, ps);
	c.seed = 2;
	assert_int_not_equal(list_run(l, &w, &c).ps, ps);
	world_free(&w);
	free(l);
}

/* A switch of more ports than a word has bits, all of them in turn. */
static void test_wide(void **state)
{
	struct fabric_sim_config c = fabric_sim_paper;
	struct list *l = list_make(RANKS, 1);
	struct world w;

	(void)state;
	world_make(&w, "1;200;1;1", dmodk);
	for (uint32_t r = 0; r < RANKS; r++)
		l->hosts[r] = 3 * r + 5;
	for (uint32_t r = 1; r < RANKS; r++)
		list_put(l, r, 0, 0, 20480);
	for (int fifo = 0; fifo < 2; fifo++) {
		c.fifo = fifo;
		assert_near(mbs(63 * 20480, list_run(l, &w, &c).ps), 3250, .01);
		/* Round robin: nobody is done before all others have nearly all. */
		for (uint32_t r = 1; r < RANKS; r++)
			assert_true(l->ps[r][0][0] > 8 * 63 * UINT64_C(630154));
	}
	world_free(&w);
	free(l);
}

/* ---- what goes wrong ---- */

/* Leaves 0 … 3 with two hosts each, spines 0 and 1. Flows to a leaf come by the leaf before it,
 * each taking the spines in the other order than the next: a circle of links. */
static void bad_tables(struct world *w)
{
	struct fabric_pgft t = tree("2;2,4;1,2;1,1");

	fabric_tree_init(&w->tree, &t);
	assert_int_equal(fabric_routes_empty(&w->routes, &w->tree, 0), 0);
	for (uint32_t to = 0; to < 8; to++) {
		uint32_t leaf = to / 2, first = leaf % 2, via = (leaf + 3) % 4;
		uint16_t *row[6];

		for (uint32_t i = 0; i < 6; i++)
			row[i] = w->routes.table + 8 * i; /* leaves, then spines */
		row[leaf][to] = (uint16_t)(to % 2 + 1);
		row[(leaf + 2) % 4][to] = (uint16_t)(3 + first);
		row[4 + first][to] = (uint16_t)(via + 1);
		row[via][to] = (uint16_t)(3 + !first);
		row[4 + !first][to] = (uint16_t)(leaf + 1);
	}
}

static void test_deadlock(void **state)
{
	struct fabric_sim_config c = fabric_sim_paper;
	struct list *l = list_make(8, 1);
	struct fabric_sim_result r = {0};
	char why[256] = "";
	struct world w;

	(void)state;
	bad_tables(&w);
	c.buffer = 4096;
	for (uint32_t i = 0; i < 8; i++)
		list_put(l, i, 0, (i + 4) % 8, 200000);
	assert_int_equal(list_try(l, &w, &c, &r, why), -EDEADLK);
	print_message("%s\n", why);
	assert_non_null(strstr(why, "wait for each other"));
	/* One flow alone gets through. */
	for (uint32_t i = 1; i < 8; i++)
		list_put(l, i, 0, i, 0);
	list_run(l, &w, &c);

	/* Down and up again for ever. */
	w.routes.table[8 * 5 + 4] = 2;
	assert_int_equal(list_try(l, &w, &c, &r, why), -ELOOP);
	assert_non_null(strstr(why, "from h0 to h4 does not arrive"));
	/* To a host that is not meant. */
	w.routes.table[8 * 1 + 4] = 1;
	assert_int_equal(list_try(l, &w, &c, &r, why), -EHOSTUNREACH);
	w.routes.table[8 * 0 + 4] = 0;
	assert_int_equal(list_try(l, &w, &c, &r, why), -EHOSTUNREACH);
	assert_string_equal(why, "there is no route from h0 to h4");
	world_free(&w);
	free(l);
}

static bool stop(void *ctx, double done)
{
	uint32_t *calls = ctx;

	assert_true(done >= 0 && done <= 1);
	return ++*calls < 2;
}

static uint32_t send_much(void *ctx, uint32_t rank, uint32_t stage, struct fabric_sim_part *part)
{
	(void)ctx;
	(void)stage;
	part[0] = (struct fabric_sim_part){.to = rank ^ 1, .bytes = 100000000};
	return 1;
}

static void test_cancel(void **state)
{
	static const uint32_t hosts[] = {0, 1, 2, 3};
	uint32_t calls = 0;
	struct fabric_sim_traffic t = {.ranks = 4,
				       .hosts = hosts,
				       .stages = 100,
				       .ctx = &calls,
				       .send = send_much,
				       .going = stop};
	struct fabric_sim_result r = {0};
	char why[256];
	struct world w;

	(void)state;
	world_make(&w, "1;4;1;1", dmodk);
	assert_int_equal(fabric_sim(&w.routes, &fabric_sim_paper, &t, &r, why, sizeof(why)),
			 -ECANCELED);
	assert_int_equal(calls, 2);
	world_free(&w);
}

static void refused(struct list *l, const struct world *w, struct fabric_sim_config c,
		    const char *part)
{
	struct fabric_sim_result r = {0};
	char why[256] = "";

	assert_int_equal(list_try(l, w, &c, &r, why), -EINVAL);
	if (!strstr(why, part))
		fail_msg("'%s', expected '%s'", why, part);
}

static void test_refused(void **state)
{
	struct fabric_sim_config c = fabric_sim_paper, good = c;
	struct list *l = list_make(4, 2);
	struct world w;

	(void)state;
	world_make(&w, "2;2,2;1,2;1,1", dmodk);
	refused(l, &w, (c.link_mbs = 0, c), "rate of links");
	c = good;
	refused(l, &w, (c.mtu = 0, c), "MTU");
	c = good;
	refused(l, &w, (c.aggregate = 100, c), "no room for a packet of 204800");
	refused(l, &w, (c.aggregate = 1000, c), "too large");
	c = good;
	refused(l, &w, (c.reads = 0, c), "at once");
	l->hosts[2] = 4;
	refused(l, &w, good, "rank 2 is on host 4; the hosts are 0 to 3");
	l->hosts[2] = 0;
	refused(l, &w, good, "ranks 0 and 2 are both on host 0");
	l->hosts[2] = 2;
	list_put(l, 1, 0, 4, 1);
	refused(l, &w, good, "rank 1 sends to rank 4");
	list_put(l, 1, 0, 2, 1);
	l->part[1][0][0].address = 1;
	refused(l, &w, good, "address 1 of rank 2");
	l->ranks = 0;
	refused(l, &w, good, "0 ranks");
	l->ranks = 5;
	refused(l, &w, good, "5 ranks");
	w.routes.rule.kind = FABRIC_ECMP;
	l->ranks = 4;
	refused(l, &w, good, "ecmp");
	world_free(&w);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conservation), cmocka_unit_test(test_seed),
		cmocka_unit_test(test_wide),         cmocka_unit_test(test_deadlock),
		cmocka_unit_test(test_cancel),       cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
