/* Congestion control, event by event. What it does to a link is in test_rd_sim.c. */
#include "test_rd.h"
#include "rd_cc.h"

#define MSS 1500u
#define CAP (1u << 20)

/* A sender that is always limited, one packet per acknowledgement. */
struct flow {
	struct rd_cc cc;
	uint32_t sent, acked; /* orders */
	uint64_t now;
};

static void flow_init(struct flow *f, uint32_t order)
{
	rd_cc_init(&f->cc, MSS, CAP);
	f->sent = order;
	f->acked = order;
	f->now = SEC;
}

static void fill(struct flow *f)
{
	while (rd_cc_room(&f->cc) >= MSS) {
		rd_cc_sent(&f->cc, MSS);
		f->sent++;
	}
}

static void ack_one(struct flow *f, uint64_t rtt)
{
	rd_cc_acked(&f->cc, MSS, f->acked++, f->sent, rtt, true, f->now);
}

/* Acknowledges all that is on the way; the acknowledgements let more out. */
static void round_trip(struct flow *f, uint64_t rtt)
{
	uint32_t end = f->sent;

	f->now += rtt;
	while (f->acked != end) {
		ack_one(f, rtt);
		fill(f);
	}
}

static void lose_one(struct flow *f)
{
	rd_cc_lost(&f->cc, MSS, f->acked++, f->sent, f->now);
}

static void test_start(void **state)
{
	struct rd_cc cc;

	(void)state;
	rd_cc_init(&cc, 1500, CAP);
	assert_int_equal(cc.window, 14600);
	rd_cc_init(&cc, 1000, CAP);
	assert_int_equal(cc.window, 10000);
	rd_cc_init(&cc, 9000, CAP);
	assert_int_equal(cc.window, 18000);
	rd_cc_init(&cc, 1500, 4000);
	assert_int_equal(cc.window, 4000);
	rd_cc_init(&cc, 9000, 4000); /* a cap that no two packets fit under */
	assert_int_equal(rd_cc_room(&cc), 18000);
}

static void test_room(void **state)
{
	struct rd_cc cc;

	(void)state;
	rd_cc_init(&cc, 1500, CAP);
	rd_cc_sent(&cc, 14000);
	assert_int_equal(rd_cc_room(&cc), 600);
	rd_cc_sent(&cc, 1500);
	assert_int_equal(rd_cc_room(&cc), 0);
	rd_cc_probe(&cc);
	assert_int_equal(rd_cc_room(&cc), 1500);
	rd_cc_sent(&cc, 1500);
	assert_int_equal(rd_cc_room(&cc), 0);
	rd_cc_forget(&cc, 17000);
	assert_int_equal(cc.flight, 0);
	assert_int_equal(cc.window, 14600);
	rd_cc_forget(&cc, 1); /* never below nothing */
	assert_int_equal(cc.flight, 0);
}

/* Slow start doubles with each round trip, up to the cap. */
static void test_slow_start(void **state)
{
	struct flow f;

	(void)state;
	flow_init(&f, UINT32_MAX - 20);
	fill(&f);
	for (int i = 0; i < 3; i++) {
		uint32_t w = f.cc.window;

		round_trip(&f, 100 * US);
		assert_in_range(f.cc.window, 2 * w - 2 * MSS, 2 * w);
	}
	for (int i = 0; i < 6; i++)
		round_trip(&f, 100 * US);
	assert_int_equal(f.cc.window, CAP);
}

/* A queue that builds up ends slow start before something is lost. */
static void test_hystart(void **state)
{
	struct flow f;
	uint32_t w;

	(void)state;
	flow_init(&f, 0);
	fill(&f);
	round_trip(&f, 1 * MS);
	round_trip(&f, 1 * MS);
	assert_int_equal(f.cc.css, 0);
	round_trip(&f, 7 * MS);
	assert_int_not_equal(f.cc.css, 0);
	w = f.cc.window;
	round_trip(&f, 9 * MS);
	assert_in_range(f.cc.window, w + w / 5, w + w / 3);
	for (int i = 0; i < 6; i++)
		round_trip(&f, 9 * MS);
	assert_true(f.cc.threshold != UINT32_MAX);
	assert_true(f.cc.window < CAP);
	/* One bad round is no queue: back to doubling. */
	flow_init(&f, 0);
	fill(&f);
	round_trip(&f, 1 * MS);
	round_trip(&f, 1 * MS);
	round_trip(&f, 7 * MS);
	round_trip(&f, 1 * MS);
	assert_int_equal(f.cc.css, 0);
}

static void test_one_reduction(void **state)
{
	struct flow f;
	uint32_t w;

	(void)state;
	flow_init(&f, UINT32_MAX - 100);
	fill(&f);
	for (int i = 0; i < 4; i++)
		round_trip(&f, 100 * US);
	w = f.cc.window;
	lose_one(&f);
	assert_int_equal(f.cc.window, w * 7 / 10);
	lose_one(&f);
	ack_one(&f, 100 * US);
	lose_one(&f);
	assert_int_equal(f.cc.window, w * 7 / 10);
	/* All of that flight: neither growth nor another reduction. */
	while (f.acked != f.sent)
		ack_one(&f, 100 * US);
	assert_int_equal(f.cc.flight, 0);
	assert_int_equal(f.cc.window, w * 7 / 10);
}

/* In avoidance the window is reduced some round trips later, and does not grow meanwhile; earlier,
 * if round trips become shorter. */
static void waits(uint64_t later, int rounds)
{
	struct flow f;
	uint32_t w;

	flow_init(&f, UINT32_MAX - 300);
	fill(&f);
	for (int i = 0; i < 4; i++)
		round_trip(&f, 1 * MS);
	lose_one(&f);
	for (int i = 0; i < 8; i++)
		round_trip(&f, 1 * MS);
	w = f.cc.window;
	lose_one(&f);
	fill(&f);
	for (int i = 0; i < rounds; i++) {
		round_trip(&f, i < 3 ? 1 * MS : later);
		assert_int_equal(f.cc.window, w);
		if (i < 3)
			lose_one(&f);
		fill(&f);
		assert_int_equal(f.cc.window, w);
	}
	round_trip(&f, later);
	round_trip(&f, later);
	assert_in_range(f.cc.window, w * 6 / 10, w * 6 / 10 + MSS);
	/* Once: what was lost before was paid for. */
	w = f.cc.window;
	round_trip(&f, 1 * MS);
	assert_in_range(f.cc.window, w, w + MSS);
}

static void test_waits(void **state)
{
	(void)state;
	waits(1 * MS, 9);
	waits(850 * US, 3);
}

/* ... unless much is lost. */
static void test_waits_not(void **state)
{
	struct flow f;
	uint32_t w;

	(void)state;
	flow_init(&f, 0);
	fill(&f);
	for (int i = 0; i < 4; i++)
		round_trip(&f, 1 * MS);
	lose_one(&f);
	for (int i = 0; i < 8; i++)
		round_trip(&f, 1 * MS);
	w = f.cc.window;
	for (uint32_t i = 0; i < w / MSS / 8; i++)
		lose_one(&f);
	assert_int_equal(f.cc.window, w);
	lose_one(&f);
	assert_int_equal(f.cc.window, w * 7 / 10);
}

/* With short round trips it grows as Reno would, corrected for the smaller reductions. */
static void test_friendly(void **state)
{
	struct flow f;
	uint32_t w;

	(void)state;
	flow_init(&f, 0);
	fill(&f);
	for (int i = 0; i < 4; i++)
		round_trip(&f, 1 * MS);
	lose_one(&f);
	while (f.acked != f.sent)
		ack_one(&f, 1 * MS);
	fill(&f);
	w = f.cc.window;
	for (int i = 0; i < 34; i++)
		round_trip(&f, 1 * MS);
	assert_in_range(f.cc.window, w + 15 * MSS, w + 21 * MSS);
}

/* With long ones it is cubic: after K it has the old window again, whatever the RTT. */
static void test_cubic(void **state)
{
	struct flow f;
	uint32_t w;

	(void)state;
	flow_init(&f, 0);
	fill(&f);
	while (f.cc.window < 600000)
		round_trip(&f, 200 * MS);
	w = f.cc.window;
	lose_one(&f);
	while (f.acked != f.sent)
		ack_one(&f, 200 * MS);
	fill(&f);
	round_trip(&f, 200 * MS);
	/* K = cbrt(0.3 w / mss / 0.4) s */
	assert_in_range(f.cc.k, 6000, 8500);
	for (uint64_t end = f.now + f.cc.k * MS; f.now < end;)
		round_trip(&f, 200 * MS);
	assert_in_range(f.cc.window, w - w / 20, w + w / 20);
	for (uint64_t end = f.now + 600 * SEC; f.now < end;)
		round_trip(&f, 200 * MS);
	assert_int_equal(f.cc.window, CAP);
}

static void test_unlimited(void **state)
{
	struct flow f;
	uint32_t w;

	(void)state;
	flow_init(&f, 0);
	w = f.cc.window;
	for (int i = 0; i < 1000; i++) {
		rd_cc_sent(&f.cc, MSS);
		f.sent++;
		rd_cc_acked(&f.cc, MSS, f.acked++, f.sent, 100 * US, false, f.now);
	}
	assert_int_equal(f.cc.window, w);
}

/* However often nothing is heard: the least window, and the threshold of the first time. */
static void test_timeout(void **state)
{
	struct flow f;
	uint32_t w;

	(void)state;
	flow_init(&f, 0);
	fill(&f);
	for (int i = 0; i < 4; i++)
		round_trip(&f, 100 * US);
	w = f.cc.window;
	for (int i = 0; i < 5; i++) {
		while (f.acked != f.sent)
			lose_one(&f);
		rd_cc_timeout(&f.cc);
		assert_int_equal(f.cc.window, 2 * MSS);
		fill(&f);
	}
	assert_int_equal(f.cc.threshold, w * 7 / 10);
	for (int i = 0; i < 8; i++)
		round_trip(&f, 100 * US);
	assert_true(f.cc.window >= w * 7 / 10);
}

static void test_least(void **state)
{
	struct flow f;

	(void)state;
	flow_init(&f, 0);
	for (int i = 0; i < 50; i++) {
		fill(&f);
		lose_one(&f);
		while (f.acked != f.sent)
			ack_one(&f, 100 * US);
	}
	assert_in_range(f.cc.window, 2 * MSS, 2 * MSS + MSS / 2);
}

/* A reduction that is four billion transmissions ago does not seem to be in the future. */
static void test_old_reduction(void **state)
{
	struct flow f;
	uint32_t w;

	(void)state;
	flow_init(&f, 0);
	fill(&f);
	lose_one(&f);
	w = f.cc.window;
	for (int i = 0; i < 5; i++) {
		f.acked += UINT32_C(1000000000);
		f.sent += UINT32_C(1000000000);
		for (int j = 0; j < 40; j++)
			round_trip(&f, 100 * US);
		assert_true(f.cc.window > w);
		w = f.cc.window;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),         cmocka_unit_test(test_room),
		cmocka_unit_test(test_slow_start),    cmocka_unit_test(test_hystart),
		cmocka_unit_test(test_one_reduction), cmocka_unit_test(test_friendly),
		cmocka_unit_test(test_waits),         cmocka_unit_test(test_waits_not),
		cmocka_unit_test(test_cubic),         cmocka_unit_test(test_unlimited),
		cmocka_unit_test(test_timeout),       cmocka_unit_test(test_least),
		cmocka_unit_test(test_old_reduction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
