/* Whole flows on a simulated network: what reliability and congestion control come to.
 * Every scenario prints its numbers; the limits are what the device needs. */
#include "sim.h"

#define MBIT  UINT64_C(1000000)
#define QUEUE (20 * MS) /* what a shaped link holds */

/* A link with its 20 ms of queue and no loss of its own; its jitter is the time of a packet. */
static struct sim_link link_of(uint64_t rate, uint32_t packet)
{
	uint64_t jitter = packet * 8 * SEC / rate;

	return (struct sim_link){
		.rate = rate,
		.delay = 50 * US,
		.queue = rate / 8 * (QUEUE / MS) / 1000,
		.jitter = jitter < MS ? jitter : MS,
	};
}

static double used(uint64_t bytes, uint64_t rate, uint64_t time)
{
	return (double)bytes * 8 / ((double)rate * (double)time / (double)SEC);
}

static void assert_least(double value, double least)
{
	if (value < least)
		fail_msg("%.4f is less than %.4f", value, least);
}

static void assert_most(double value, double most)
{
	if (value > most)
		fail_msg("%.4f is more than %.4f", value, most);
}

/* The worst of all spans of `n` bins between two times, as a part of the link's rate. */
static double worst_span(const struct sim_rd *f, uint64_t rate, uint64_t from, uint64_t to,
			 unsigned int n)
{
	double worst = 1e9;

	for (; from + n * SIM_BIN <= to; from += SIM_BIN) {
		double u = used(sim_rd_bytes(f, from, from + n * SIM_BIN), rate, n * SIM_BIN);

		worst = u < worst ? u : worst;
	}
	return worst;
}

/* ---- one flow --------------------------------------------------------------------------- */

static void fill(uint64_t seed, uint64_t rate, uint32_t packet, uint64_t time)
{
	struct sim_link there = link_of(rate, packet), back = link_of(rate, packet);
	struct sim_rd f;
	struct sim sim;
	double u;

	sim_init(&sim, seed);
	sim_rd_init(&f, packet, &there, &back);
	f.first = UINT32_MAX - 1000;
	sim_rd_start(&sim, &f, sim.now, SIM_FOREVER);
	sim_run(&sim, SEC + time);
	u = used(sim_rd_bytes(&f, SEC + SIM_BIN, SEC + time), rate, time - SIM_BIN);
	printf("fill %5llu Mbit/s, packets of %u: used %.4f, lost %llu of %llu, timeouts %llu\n",
	       (unsigned long long)(rate / MBIT), packet, u,
	       (unsigned long long)f.paths[0].lost_packets, (unsigned long long)sim_rd_sent(&f),
	       (unsigned long long)sim_rd_timeouts(&f));
	assert_least(u, 0.99);
	assert_int_equal(sim_rd_timeouts(&f), 0);
	assert_int_equal(f.duplicates, 0);
	sim_rd_free(&f);
	sim_free(&sim);
}

static void test_fill(void **state)
{
	uint64_t seed = test_seed("fill", 1);

	(void)state;
	fill(seed, 10 * MBIT, 1500, 10 * SEC);
	fill(seed, 10 * MBIT, 9000, 10 * SEC);
	fill(seed, 100 * MBIT, 1500, 10 * SEC);
	fill(seed, 100 * MBIT, 9000, 10 * SEC);
	fill(seed, 10000 * MBIT, 1500, 300 * MS);
	fill(seed, 10000 * MBIT, 9000, 1 * SEC);
}

/* No shaping, a receiver's socket of 1 MB that is emptied at 4 GB/s. */
static void test_fast(void **state)
{
	struct sim_link there = {.rate = 32000 * MBIT, .delay = 20 * US, .queue = 1 << 20};
	struct sim_link back = there;
	uint64_t seed = test_seed("fast", 1);

	(void)state;
	for (unsigned int n = 1; n <= 4; n *= 4) {
		struct sim_rd f[4];
		uint64_t bytes = 0, lost = 0, timeouts = 0;
		struct sim sim;
		double u;

		there.busy_until = back.busy_until = there.last = back.last = 0;
		sim_init(&sim, seed);
		for (unsigned int i = 0; i < n; i++) {
			sim_rd_init(&f[i], 9000, &there, &back);
			sim_rd_start(&sim, &f[i], sim.now + i * MS, SIM_FOREVER);
		}
		sim_run(&sim, SEC + 400 * MS);
		for (unsigned int i = 0; i < n; i++) {
			bytes += sim_rd_bytes(&f[i], SEC + SIM_BIN, SEC + 4 * SIM_BIN);
			lost += f[i].paths[0].lost_packets;
			timeouts += sim_rd_timeouts(&f[i]);
			sim_rd_free(&f[i]);
		}
		u = used(bytes, there.rate, 3 * SIM_BIN);
		printf("fast: %u flows, used %.4f, lost %llu, timeouts %llu\n", n, u,
		       (unsigned long long)lost, (unsigned long long)timeouts);
		assert_least(u, 0.99);
		assert_most((double)timeouts, 4);
		sim_free(&sim);
	}
}

/* ---- sharing ---------------------------------------------------------------------------- */

/* Returns the part that the latecomer has. One run may be lucky; many have to be fair. */
static double share_two(uint64_t seed, uint64_t rate, uint32_t packet)
{
	struct sim_link there = link_of(rate, packet), back = link_of(rate, packet);
	struct sim_rd f[2];
	struct sim sim;
	double a, b;

	sim_init(&sim, seed);
	for (int i = 0; i < 2; i++) {
		sim_rd_init(&f[i], packet, &there, &back);
		sim_rd_start(&sim, &f[i], sim.now + (uint64_t)i * 2 * SEC, SIM_FOREVER);
	}
	sim_run(&sim, 25 * SEC);
	a = used(sim_rd_bytes(&f[0], 5 * SEC, 25 * SEC), rate, 20 * SEC);
	b = used(sim_rd_bytes(&f[1], 5 * SEC, 25 * SEC), rate, 20 * SEC);
	printf("share: %3llu Mbit/s, %u: %.3f and %.3f, the latecomer has %.3f; timeouts %llu\n",
	       (unsigned long long)(rate / MBIT), packet, a, b, b / (a + b),
	       (unsigned long long)sim_rd_timeouts(&f[0]) + sim_rd_timeouts(&f[1]));
	assert_least(a + b, 0.99);
	assert_least(b / (a + b), 0.37);
	assert_most(b / (a + b), 0.63);
	sim_rd_free(&f[0]);
	sim_rd_free(&f[1]);
	sim_free(&sim);
	return b / (a + b);
}

static void test_share(void **state)
{
	uint64_t seed = test_seed("share", 1);
	double sum = 0;

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		sum += share_two(seed + i, 10 * MBIT, 1500);
		sum += share_two(seed + i, 100 * MBIT, 1500);
		sum += share_two(seed + i, 100 * MBIT, 9000);
	}
	assert_least(sum / 12, 0.45);
	assert_most(sum / 12, 0.55);
}

static void against_tcp(uint64_t seed, uint64_t rate, uint32_t packet, bool first, bool reno)
{
	struct sim_link there = link_of(rate, packet), back = link_of(rate, packet);
	struct sim_tcp *t = calloc(1, sizeof(*t));
	struct sim_rd f;
	struct sim sim;
	double a, b;

	assert_non_null(t);
	sim_init(&sim, seed);
	sim_rd_init(&f, packet, &there, &back);
	sim_rd_start(&sim, &f, sim.now + (first ? 0 : 2 * SEC), SIM_FOREVER);
	if (reno)
		sim_tcp_reno(t);
	else
		sim_tcp_cubic(t);
	sim_tcp_start(&sim, t, packet, &there, &back, sim.now + (first ? 2 * SEC : 0));
	sim_run(&sim, 35 * SEC);
	a = used(sim_rd_bytes(&f, 5 * SEC, 35 * SEC), rate, 30 * SEC);
	b = used(sim_tcp_bytes(t, 5 * SEC, 35 * SEC), rate, 30 * SEC);
	printf("against %s: %3llu Mbit/s, %u: %.3f, TCP %.3f; our part %.3f\n",
	       reno ? "Reno" : "CUBIC", (unsigned long long)(rate / MBIT), packet, a, b,
	       a / (a + b));
	assert_least(a + b, 0.98);
	/* Who grows slower and gives up less is hit less often when the drops are single ones;
	 * that is between CUBIC and Reno, not between us and TCP. */
	assert_least(a / (a + b), 0.4);
	assert_most(a / (a + b), reno ? 0.65 : 0.62);
	sim_rd_free(&f);
	sim_free(&sim);
	free(t);
}

static void test_tcp(void **state)
{
	uint64_t seed = test_seed("tcp", 1);

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		against_tcp(seed + i, 100 * MBIT, 1500, true, i & 1);
		against_tcp(seed + i, 100 * MBIT, 1500, false, i & 1);
		against_tcp(seed + i, 100 * MBIT, 9000, i & 2, i & 1);
		against_tcp(seed + i, 10 * MBIT, 1500, i & 2, i & 1);
	}
}

#define INCAST 16

/* All send to one, beginning within a millisecond. */
static void incast(uint64_t seed, uint64_t rate, uint32_t packet, uint64_t time, double least,
		   double always)
{
	struct sim_link there = link_of(rate, packet), back = link_of(rate, packet);
	double sum = 0, worst = 1, best = 0, first = 1;
	struct sim_rd f[INCAST];
	uint64_t timeouts = 0, lost = 0, sent = 0;
	struct sim sim;

	sim_init(&sim, seed);
	for (int i = 0; i < INCAST; i++) {
		sim_rd_init(&f[i], packet, &there, &back);
		sim_rd_start(&sim, &f[i], sim.now + util_rand_below(&sim.r, MS), SIM_FOREVER);
	}
	sim_run(&sim, SEC + time);
	for (int i = 0; i < INCAST; i++) {
		double u = used(sim_rd_bytes(&f[i], SEC, SEC + time), rate, time);
		double v = worst_span(&f[i], rate / INCAST, SEC, SEC + time, 20);

		sum += u;
		worst = u < worst ? u : worst;
		best = u > best ? u : best;
		first = v < first ? v : first;
		timeouts += sim_rd_timeouts(&f[i]);
		lost += f[i].paths[0].lost_packets;
		sent += sim_rd_sent(&f[i]);
		sim_rd_free(&f[i]);
	}
	printf("incast: %llu Mbit/s, %u: used %.4f, of its share the worst sender has %.2f, the "
	       "best %.2f, the worst in any 2 s %.2f; lost %.4f, timeouts %llu\n",
	       (unsigned long long)(rate / MBIT), packet, sum, worst * INCAST, best * INCAST, first,
	       (double)lost / (double)sent, (unsigned long long)timeouts);
	assert_least(sum, 0.99);
	assert_least(worst * INCAST, least);
	assert_least(first, always);
	sim_free(&sim);
}

static void test_incast(void **state)
{
	uint64_t seed = test_seed("incast", 1);

	(void)state;
	incast(seed, 100 * MBIT, 1500, 10 * SEC, 0.7, 0.4);
	incast(seed, 100 * MBIT, 9000, 10 * SEC, 0.6, 0.1);
	/* The queue does not even hold the least window of each: there are timeouts, which are
	 * a lottery, but over some seconds everybody gets through. */
	incast(seed, 10 * MBIT, 1500, 20 * SEC, 0.4, 0);
	incast(seed, 10 * MBIT, 9000, 20 * SEC, 0.3, 0);
}

/* ---- adversity -------------------------------------------------------------------------- */

/* Time for n packets over a fast link that is bad, in both directions. */
static void bad(uint64_t seed, unsigned int loss, unsigned int dup, unsigned int reorder,
		double least)
{
	struct sim_link there = link_of(10000 * MBIT, 1500), back;
	const uint64_t n = 50000;
	struct sim_rd f;
	struct sim sim;
	double over, rate;

	there.loss = loss;
	there.dup = dup;
	there.reorder = reorder;
	there.reorder_by = 200 * US;
	back = there;
	sim_init(&sim, seed);
	sim_rd_init(&f, 1500, &there, &back);
	f.first = UINT32_MAX - 20000;
	sim_rd_start(&sim, &f, sim.now, n);
	f.paths[0].order = UINT32_MAX - 30000;
	sim_run(&sim, 60 * SEC);
	assert_int_equal(f.arrived, n);
	assert_true(f.done_at > 0);
	over = (double)sim_rd_sent(&f) / (double)n;
	rate = (double)n * 1500 * 8 / ((double)(f.done_at - SEC) / (double)SEC) / 1e6;
	printf("bad: %u.%u %% loss, %u %% dup, %u %% reorder: %.0f Mbit/s, sent %.3f times, "
	       "timeouts "
	       "%llu, spurious %llu, duplicates %llu\n",
	       loss / 100, loss % 100, dup / 100, reorder / 100, rate, over,
	       (unsigned long long)sim_rd_timeouts(&f), (unsigned long long)f.paths[0].spurious,
	       (unsigned long long)f.duplicates);
	assert_most(over, 1.0 + 1.5 * loss / 10000 + 1.5 * reorder / 10000 + 0.01);
	assert_least(rate, least);
	/* With five packets on the way there is one acknowledgement for each round trip, and
	 * when that is lost only a probe helps. */
	assert_most((double)sim_rd_timeouts(&f), (double)n * loss / 10000 / 4 + 1);
	sim_rd_free(&f);
	sim_free(&sim);
}

static void test_bad(void **state)
{
	uint64_t seed = test_seed("bad", 1);

	(void)state;
	bad(seed, 500, 200, 500, 150);
	bad(seed, 500, 0, 0, 150);
	bad(seed, 0, 0, 500, 1000);
	bad(seed, 10, 0, 0, 2000);
	bad(seed, 0, 1000, 0, 9500);
}

static void outage(uint64_t seed, uint64_t rate, uint32_t packet, uint64_t from, uint64_t to)
{
	struct sim_link there = link_of(rate, packet), back = link_of(rate, packet);
	struct sim_rd f;
	struct sim sim;
	double soon, later;

	there.down_from = back.down_from = from;
	there.down_to = back.down_to = to;
	sim_init(&sim, seed);
	sim_rd_init(&f, packet, &there, &back);
	sim_rd_start(&sim, &f, sim.now, SIM_FOREVER);
	sim_run(&sim, to + 3 * SEC);
	assert_true(sim_rd_bytes(&f, from + SIM_BIN, to) == 0);
	soon = used(sim_rd_bytes(&f, to + 3 * SIM_BIN, to + 4 * SIM_BIN), rate, SIM_BIN);
	later = used(sim_rd_bytes(&f, to + 4 * SIM_BIN, to + 30 * SIM_BIN), rate, 26 * SIM_BIN);
	printf("outage of %llu ms: 0.3 s after it %.3f, then %.3f; timeouts %llu\n",
	       (unsigned long long)((to - from) / MS), soon, later,
	       (unsigned long long)sim_rd_timeouts(&f));
	assert_least(soon, 0.9);
	assert_least(later, 0.99);
	sim_rd_free(&f);
	sim_free(&sim);
}

static void test_outage(void **state)
{
	uint64_t seed = test_seed("outage", 1);

	(void)state;
	outage(seed, 100 * MBIT, 1500, 3 * SEC, 4 * SEC);
	outage(seed, 100 * MBIT, 9000, 3 * SEC, 4 * SEC);
	outage(seed, 10 * MBIT, 1500, 3 * SEC, 4 * SEC);
	outage(seed, 1000 * MBIT, 9000, 3 * SEC, 4 * SEC);
	outage(seed, 100 * MBIT, 1500, 3 * SEC, 5300 * MS);
}

/* A burst, a long silence, a burst: the second is no slower than the first. */
static void test_silence(void **state)
{
	struct sim_link there = link_of(100 * MBIT, 1500), back = link_of(100 * MBIT, 1500);
	struct sim_rd f;
	struct sim sim;
	double first, second;

	(void)state;
	sim_init(&sim, test_seed("silence", 1));
	sim_rd_init(&f, 1500, &there, &back);
	sim_rd_start(&sim, &f, sim.now, 1000);
	sim_run(&sim, 2 * SEC);
	first = (double)(f.done_at - SEC) / 1e6;
	assert_true(f.done_at && rd_path_deadline(&f.paths[0]) == UINT64_MAX);
	assert_null(f.board.ring);
	sim_rd_start(&sim, &f, 60 * SEC, 2000);
	sim_run(&sim, 61 * SEC);
	assert_true(f.done_at > 0);
	second = (double)(f.done_at - 60 * SEC) / 1e6;
	printf("silence of a minute: 1.5 MB take %.2f ms before and %.2f ms after; timeouts %llu\n",
	       first, second, (unsigned long long)sim_rd_timeouts(&f));
	assert_most(first, 125);
	assert_most(second, 125);
	assert_int_equal(sim_rd_timeouts(&f), 0);
	sim_rd_free(&f);
	sim_free(&sim);
}

/* Messages of a few packets, one at a time, on a path that loses: tails must not cost much. */
static void test_tails(void **state)
{
	struct sim_link there = link_of(10000 * MBIT, 1500), back;
	const unsigned int n = 1000;
	struct sim_rd f;
	struct sim sim;
	double mean;

	(void)state;
	there.loss = 500;
	back = there;
	sim_init(&sim, test_seed("tails", 1));
	sim_rd_init(&f, 1500, &there, &back);
	for (unsigned int i = 1; i <= n; i++) {
		sim_rd_start(&sim, &f, sim.now, 4 * i);
		for (int guard = 0; guard < 100000 && !f.done_at; guard++)
			sim_run(&sim, sim.now + 20 * US);
		assert_true(f.done_at > 0);
	}
	mean = (double)(sim.now - SEC) / n / 1e6;
	printf("tails: a message of 4 packets takes %.3f ms at 5 %% loss; timeouts %llu, sent %.3f "
	       "times\n",
	       mean, (unsigned long long)sim_rd_timeouts(&f), (double)sim_rd_sent(&f) / (4 * n));
	assert_most(mean, 1.5);
	sim_rd_free(&f);
	sim_free(&sim);
}

/* One of two paths dies for good. */
static void test_two_paths(void **state)
{
	struct sim_link there[2] = {link_of(100 * MBIT, 1500), link_of(100 * MBIT, 1500)};
	struct sim_link back[2] = {link_of(100 * MBIT, 1500), link_of(100 * MBIT, 1500)};
	double before, after;
	struct sim_rd f;
	struct sim sim;

	(void)state;
	there[1].down_from = back[1].down_from = 3 * SEC;
	there[1].down_to = back[1].down_to = UINT64_MAX;
	sim_init(&sim, test_seed("two paths", 1));
	sim_rd_init(&f, 1500, &there[0], &back[0]);
	f.there[1] = &there[1];
	f.back[1] = &back[1];
	f.n_paths = 2;
	f.first = UINT32_MAX - 30000;
	sim_rd_start(&sim, &f, sim.now, SIM_FOREVER);
	sim_run(&sim, 6 * SEC);
	before = used(sim_rd_bytes(&f, 1500 * MS, 3 * SEC), 100 * MBIT, 1500 * MS);
	after = used(sim_rd_bytes(&f, 3300 * MS, 6 * SEC), 100 * MBIT, 2700 * MS);
	printf("two paths: %.3f of one while both live, %.3f from 0.3 s after one died on; "
	       "duplicates %llu\n",
	       before, after, (unsigned long long)f.duplicates);
	assert_true(f.dead[1] && !f.dead[0]);
	assert_int_equal(f.paths[1].cc.flight, 0);
	assert_least(before, 1.95);
	assert_least(after, 0.98);
	sim_rd_free(&f);
	sim_free(&sim);
}

/* Half a minute with everything at once: other flows come and go, some loss, short outages.
 * The link is never idle for long, and the flow never gets nothing. */
static void test_endurance(void **state)
{
	struct sim_link there = link_of(100 * MBIT, 1500), back = link_of(100 * MBIT, 1500);
	double worst, all = 0;
	struct sim_rd f[4];
	struct sim sim;

	(void)state;
	there.loss = 5;
	there.reorder = 5;
	there.reorder_by = MS;
	back.loss = 100;
	there.down_from = 12 * SEC;
	there.down_to = 12 * SEC + 50 * MS;
	sim_init(&sim, test_seed("endurance", 1));
	for (uint64_t i = 0; i < 4; i++) {
		sim_rd_init(&f[i], i == 3 ? 9000 : 1500, &there, &back);
		f[i].first = UINT32_MAX - 10000;
		sim_rd_start(&sim, &f[i], SEC + i * 3 * SEC, i ? 30000 : SIM_FOREVER);
	}
	sim_run(&sim, 31 * SEC);
	worst = worst_span(&f[0], 100 * MBIT, SEC, 31 * SEC, 10);
	for (int i = 0; i < 4; i++)
		all += used(sim_rd_bytes(&f[i], SEC, 31 * SEC), 100 * MBIT, 30 * SEC);
	printf("endurance: used %.4f, our worst second %.3f, timeouts %llu\n", all, worst,
	       (unsigned long long)sim_rd_timeouts(&f[0]));
	assert_least(all, 0.97);
	assert_least(worst, 0.05);
	for (int i = 0; i < 4; i++)
		sim_rd_free(&f[i]);
	sim_free(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill),      cmocka_unit_test(test_fast),
		cmocka_unit_test(test_share),     cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_incast),    cmocka_unit_test(test_bad),
		cmocka_unit_test(test_outage),    cmocka_unit_test(test_silence),
		cmocka_unit_test(test_tails),     cmocka_unit_test(test_two_paths),
		cmocka_unit_test(test_endurance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
