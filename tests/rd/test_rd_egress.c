/* The queue of the own interface: how much may wait in it, and that its rate is found. */
#include "test_rd.h"
#include "rd_egress.h"

/* An interface that sends `rate` bytes in a millisecond, asked whenever rd_egress says so. What
 * comes in between, acknowledgements, asks every `acks` ns; 0: none come. */
struct link {
	struct rd_egress g;
	uint64_t now, sent, worst, idle;
	double queued, stuck; /* the second is part of the first, and does not leave */
	double rate;
	double bucket, tokens; /* what may leave at once after a pause; what of it there is */
};

static void pass(struct link *l, uint64_t ns)
{
	double out = l->tokens + l->rate * (double)ns / MS;

	l->tokens = 0;
	if (out > l->queued - l->stuck) {
		double over = out - (l->queued - l->stuck);

		l->idle += (uint64_t)(over / l->rate * MS);
		l->tokens = over < l->bucket ? over : l->bucket;
		out = l->queued - l->stuck;
	}
	l->queued -= out;
	l->now += ns;
}

/* All that may go, goes: there is always more. */
static void run(struct link *l, uint64_t ns, uint64_t acks)
{
	uint64_t end = l->now + ns;

	l->idle = l->sent = l->worst = 0;
	while (l->now < end) {
		uint32_t q = (uint32_t)l->queued, room = rd_egress_room(&l->g, q, l->now);
		uint64_t at;

		if (room > 256 * 1024)
			room = 256 * 1024; /* of which a window consists */
		rd_egress_put(&l->g, room);
		l->queued += room;
		l->sent += room;
		if (l->queued > (double)l->worst)
			l->worst = (uint64_t)l->queued;
		at = rd_egress_when(&l->g, (uint32_t)l->queued, l->now);
		if (acks && at > l->now + acks)
			at = l->now + acks;
		pass(l, at > l->now ? at - l->now : 1000);
	}
}

static void test_finds_rate(void **state)
{
	static const double rates[] = {1250, 12500, 125000, 1250000}; /* 10 Mbit/s to 10 Gbit/s */

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
		for (uint64_t acks = 0; acks <= 50000; acks += 50000) {
			struct link l = {.rate = rates[i], .now = 1};

			run(&l, 500 * MS, acks);
			run(&l, 100 * MS, acks);
			assert_in_range(l.g.rate, rates[i] * 0.8, rates[i] * 1.2);
			/* Never idle, and the queue short. */
			assert_in_range(l.idle, 0, MS);
			assert_in_range(l.sent + 32768, rates[i] * 97, rates[i] * 103 + 98304);
			assert_in_range(l.worst, 1, rates[i] * 2.5 + 32768);
		}
}

/* The link becomes faster, and slower. */
static void test_follows(void **state)
{
	struct link l = {.rate = 12500, .now = 1};

	(void)state;
	run(&l, 200 * MS, 0);
	l.rate = 125000;
	run(&l, 100 * MS, 0);
	run(&l, 100 * MS, 0);
	assert_in_range(l.g.rate, 100000, 150000);
	assert_in_range(l.sent, 97 * 125000, 103 * 125000);
	l.rate = 12500;
	run(&l, 200 * MS, 0);
	run(&l, 100 * MS, 0);
	assert_in_range(l.g.rate, 10000, 15000);
	assert_in_range(l.worst, 1, 2.5 * 12500 + 32768);
}

/* Where nothing ever waits there is no limit, and none is learned. */
static void test_open(void **state)
{
	struct rd_egress g = {0};

	(void)state;
	for (uint64_t now = 1; now < 100 * MS; now += 10000) {
		assert_int_equal(rd_egress_room(&g, 0, now), UINT32_MAX);
		assert_int_equal(rd_egress_piece(&g), UINT32_MAX);
		rd_egress_put(&g, 65536);
	}
	assert_int_equal(g.rate, 0);
}

/* Pauses of the program are not taken for a slow link. */
static void test_pauses(void **state)
{
	struct link l = {.rate = 125000, .now = 1};

	(void)state;
	run(&l, 100 * MS, 0);
	for (int i = 0; i < 50; i++) {
		pass(&l, 20 * MS);
		run(&l, 5 * MS, 0);
		assert_in_range(l.g.rate, 100000, 160000);
	}
}

/* What a shaper lets through at once after a pause is not taken for its rate. */
static void test_bucket(void **state)
{
	struct link l = {.rate = 12500, .now = 1, .bucket = 32768};

	(void)state;
	run(&l, 100 * MS, 0);
	for (int i = 0; i < 50; i++) {
		pass(&l, 20 * MS);
		run(&l, 10 * MS, 50000);
		assert_in_range(l.g.rate, 10000, 25000);
	}
}

/* What a neighbour that does not answer leaves in the queue holds up the others for some
 * milliseconds; and again when there is more of it. It counts again when it leaves. */
static void test_stuck(void **state)
{
	struct link l = {.rate = 12500, .now = 1};

	(void)state;
	run(&l, 100 * MS, 50000);
	for (int i = 0; i < 3; i++) {
		l.stuck += 100000;
		l.queued += 100000;
		rd_egress_put(&l.g, 100000);
		run(&l, 200 * MS, 50000);
		assert_true(l.idle < 30 * MS);
		run(&l, 200 * MS, 50000);
		assert_true(l.idle < 5 * MS);
	}
	l.queued -= l.stuck;
	l.stuck = 0;
	run(&l, 200 * MS, 50000);
	assert_true(l.idle < 5 * MS);
	assert_true(l.worst < 64 * 1024);
}

/* Answers stay in bounds for whatever the kernel says. */
static void test_extremes(void **state)
{
	static const uint32_t q[] = {0, 1, 8192, 1 << 20, INT32_MAX};
	struct rd_egress g = {0};
	uint64_t now = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint32_t queued = q[(unsigned int)i * 7 % 5];

		now += (uint64_t)i * 7919 % (3 * MS);
		rd_egress_room(&g, queued, now);
		assert_true(rd_egress_when(&g, queued, now) >= now);
		assert_true(rd_egress_piece(&g) > 0);
		rd_egress_put(&g, UINT32_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_rate), cmocka_unit_test(test_follows),
		cmocka_unit_test(test_open),       cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_bucket),     cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
