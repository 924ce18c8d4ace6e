/* The simulator in small: rates, latencies and blocking that can be computed by hand. */
#include "test_fabric_sim.h"

#include "fabric_sim_event.h"

static double mbs(uint64_t bytes, uint64_t ps)
{
	return (double)bytes / (double)ps * 1e6;
}

/* ---- rates ---- */

static void test_one_flow(void **state)
{
	struct list *l = list_make(4, 1);
	struct world w;

	(void)state;
	world_make(&w, "2;2,2;1,2;1,1", dmodk);
	list_put(l, 0, 0, 3, 20000000);
	assert_near(mbs(20000000, list_run(l, &w, &fabric_sim_paper).ps), 3250, .001);
	world_free(&w);
	free(l);
}

static void test_two_into_one(void **state)
{
	struct list *l = list_make(4, 1);
	struct world w;

	(void)state;
	world_make(&w, "2;2,2;1,2;1,1", dmodk);
	list_put(l, 0, 0, 3, 5000000);
	list_put(l, 1, 0, 3, 5000000);
	for (int fifo = 0; fifo < 2; fifo++) {
		struct fabric_sim_config c = fabric_sim_paper;

		c.fifo = fifo;
		list_run(l, &w, &c);
		assert_near(mbs(5000000, l->ps[0][0][0]), 1625, .01);
		assert_near(mbs(5000000, l->ps[1][0][0]), 1625, .01);
	}
	world_free(&w);
	free(l);
}

/* Eight hosts of a leaf have one cable up. */
static void test_shared_link(void **state)
{
	struct world w;

	(void)state;
	world_make(&w, "2;8,2;1,1;1,1", dmodk);
	for (uint32_t k = 1; k <= 8; k++) {
		double want = 4000.0 / k < 3250 ? 4000.0 / k : 3250;
		struct list *l = list_make(16, 1);
		struct fabric_sim_result r;

		for (uint32_t i = 0; i < k; i++)
			list_put(l, i, 0, 8 + i, 4000000);
		r = list_run(l, &w, &fabric_sim_paper);
		for (uint32_t i = 0; i < k; i++)
			assert_near(mbs(4000000, l->ps[i][0][0]), want, .01);
		assert_near(r.bandwidth, k * want / (16 * 3250), .01);
		free(l);
	}
	world_free(&w);
}

/* Parts of a message share the bus of their host, on any paths. */
static void test_parts(void **state)
{
	struct fabric_routing rule = {.kind = FABRIC_DMODK, .lmc = 2};
	struct list *l = list_make(8, 1);
	struct fabric_sim_result r = {0};
	struct world w;
	uint32_t used = 0;

	(void)state;
	world_make(&w, "2;4,2;1,4;1,1", rule);
	l->parts = 4;
	for (uint32_t p = 0; p < 4; p++)
		l->part[0][0][p] = (struct fabric_sim_part){5, p, 1000000};
	r.busy_ps = calloc(2 * fabric_cables(&w.tree.pgft), sizeof(uint64_t));
	assert_non_null(r.busy_ps);
	assert_int_equal(list_try(l, &w, &fabric_sim_paper, &r, (char[256]){0}), 0);
	for (uint32_t p = 0; p < 4; p++)
		assert_near(mbs(1000000, l->ps[0][0][p]), 3250 / 4., .01);
	/* Up-going cables of the first leaf: each address its own. */
	for (uint32_t c = 8; c < 12; c++)
		used += r.busy_ps[fabric_link(c, true)] == 250 * UINT64_C(1000000);
	assert_int_equal(used, 4);
	free(r.busy_ps);
	world_free(&w);
	free(l);
}

/* ---- latency ---- */

/* The head passes cables and switches, the host takes in the rest at its own rate. */
static void check_latency(const struct world *w, uint32_t to, uint32_t links, uint32_t bytes)
{
	struct fabric_sim_config c = fabric_sim_paper;
	struct list *l = list_make(RANKS, 1);
	uint64_t rest = (bytes * UINT64_C(1000000) + 3249) / 3250;

	assert_int_equal(links_between(w, 0, to, 0), links);
	list_put(l, 0, 0, to, bytes);
	for (int fifo = 0; fifo < 2; fifo++) {
		c.fifo = fifo;
		assert_int_equal(list_run(l, w, &c).ps,
				 links * 25000 + (links - 1) * 100000 + rest);
	}
	c.cable_ns = 7;
	c.switch_ns = 1;
	c.post_ns = 500;
	assert_int_equal(list_run(l, w, &c).ps, 500000 + links * 7000 + (links - 1) * 1000 + rest);
	assert_int_equal(l->ps[0][0][0], links * 7000 + (links - 1) * 1000 + rest);
	free(l);
}

static void test_latency(void **state)
{
	static const uint32_t bytes[] = {1, 64, 100, 2047, 2048};
	struct world w;

	(void)state;
	world_make(&w, "3;4,4,4;1,4,2;1,1,2", dmodk);
	for (size_t i = 0; i < COUNT(bytes); i++) {
		check_latency(&w, 1, 2, bytes[i]);
		check_latency(&w, 4, 4, bytes[i]);
		check_latency(&w, 63, 6, bytes[i]);
	}
	world_free(&w);
}

/* ---- head-of-line blocking ---- */

/* One switch; T is the time of a packet, delays are none. Ranks 0 and 1 send to 2 at time 0, and
 * rank 0 has the first turn. Rank 1 sends to 3, too, from T on, when its first packet is on
 * the wire. That packet is served by the switch from T to 2T. In one queue the other waits
 * behind it, from 2T to 3T, though its output is free. With queues by output both go at T. */
static void test_head_of_line(void **state)
{
	struct fabric_sim_config c = {.link_mbs = 4000,
				      .host_mbs = 4000,
				      .mtu = 2048,
				      .aggregate = 1,
				      .buffer = 4096,
				      .host_buffer = 4096,
				      .reads = 2};
	const uint64_t T = 2048 * 250;
	struct list *l = list_make(4, 2);
	struct world w;

	(void)state;
	world_make(&w, "1;4;1;1", dmodk);
	list_put(l, 0, 0, 2, 2048);
	list_put(l, 1, 0, 2, 2048);
	list_put(l, 1, 1, 3, 2048);
	for (int fifo = 0; fifo < 2; fifo++) {
		c.fifo = fifo;
		assert_int_equal(list_run(l, &w, &c).ps, fifo ? 3 * T : 2 * T);
		assert_int_equal(l->ps[0][0][0], T);
		assert_int_equal(l->ps[1][0][0], 2 * T);
		assert_int_equal(l->ps[1][1][0], fifo ? 2 * T : T);
	}
	/* An input that can send one packet at once is as bad here. */
	c.fifo = false;
	c.reads = 1;
	assert_int_equal(list_run(l, &w, &c).ps, 3 * T);
	world_free(&w);
	free(l);
}

/* Host 0 and two hosts of the last leaf send to 8, and get a third of its rate each. Host 1 sends
 * to 10, which nobody else does; its packets go up and down by the same cables as those of host 0,
 * one of these after one of those (8 and 10 are reached by the same spine). Where the buffers
 * before host 8's leaf are full, it gets no more than host 0 does, with any queues, since they
 * share the room; where all fits into the buffers, it gets its half of the cable. */
static void test_victim(void **state)
{
	struct fabric_sim_config c = fabric_sim_paper;
	struct list *l = list_make(12, 1);
	struct world w;

	(void)state;
	world_make(&w, "2;4,3;1,2;1,1", dmodk);
	list_put(l, 0, 0, 8, 4000000);
	list_put(l, 9, 0, 8, 4000000);
	list_put(l, 11, 0, 8, 4000000);
	list_put(l, 1, 0, 10, 4000000);
	for (int fifo = 0; fifo < 2; fifo++) {
		c.fifo = fifo;
		list_run(l, &w, &c);
		assert_near(mbs(4000000, l->ps[0][0][0]), 3250 / 3.0, .02);
		assert_near(mbs(4000000, l->ps[1][0][0]), 3250 / 3.0, .06);
	}
	c.fifo = false;
	c.buffer = 16 << 20;
	list_run(l, &w, &c);
	assert_near(mbs(4000000, l->ps[1][0][0]), 2000, .02);
	/* By the other spine it is not touched. */
	c = fabric_sim_paper;
	l->part[1][0][0].to = 7;
	list_run(l, &w, &c);
	assert_near(mbs(4000000, l->ps[1][0][0]), 3250, .002);
	world_free(&w);
	free(l);
}

/* ---- the queue of events ---- */

static void test_events(void **state)
{
	enum { N = 20000 };
	static uint64_t due[N];
	struct sim_events q;
	uint32_t put = 0, out = 0, lanes[3];
	uint64_t s = 5, what, last = 0;

	(void)state;
	sim_events_init(&q);
	for (uint32_t i = 0; i < 3; i++)
		lanes[i] = sim_lane(&q, i, 100 * (i + 1));
	while (out < N) {
		while (put < N && (put == out || splitmix64(&s) % 3)) {
			uint64_t delay = splitmix64(&s) % (put % 2 ? 40 : 400);
			uint32_t kind = splitmix64(&s) % 6;

			if (kind < 3) {
				sim_push(&q, lanes[kind], SIM_WHAT(kind, put, 7));
				delay = 100 * (kind + 1);
			} else if (kind == 3) {
				sim_at_odd(&q, delay, SIM_WHAT(kind, put, 7));
			} else {
				sim_at(&q, delay, SIM_WHAT(kind, put, 7));
			}
			due[put++] = q.now + delay;
		}
		assert_true(sim_next(&q, &what));
		assert_true(q.now >= last);
		assert_int_equal(q.now, due[sim_a(what)]);
		assert_int_equal(sim_b(what), 7);
		due[sim_a(what)] = UINT64_MAX; /* never twice */
		last = q.now;
		out++;
	}
	assert_false(sim_next(&q, &what));
	assert_false(q.failed);
	sim_events_free(&q);
}

static void test_sample(void **state)
{
	(void)state;
	assert_int_equal(fabric_sim_sample(0, 4, 1943), 0);
	assert_int_equal(fabric_sim_sample(3, 4, 1943), 1457);
	assert_int_equal(fabric_sim_sample(3, 11, 11), 3);
	assert_int_equal(fabric_sim_sample(3, 20, 11), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),      cmocka_unit_test(test_sample),
		cmocka_unit_test(test_one_flow),    cmocka_unit_test(test_two_into_one),
		cmocka_unit_test(test_shared_link), cmocka_unit_test(test_parts),
		cmocka_unit_test(test_latency),     cmocka_unit_test(test_head_of_line),
		cmocka_unit_test(test_victim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
