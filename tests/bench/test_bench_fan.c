/* The instrument against a device whose times are known: what it reports must be what the device
 * was made to take. No clock, no network: time is a number that the simulated device advances. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "fan_round.h"
#include "fan_type.h"

#define MAX_N 64

/* A message occupies the sender's program for `overhead`, then its link for gap + size / rate;
 * it travels for `latency`, the peer answers at once, and the answer comes in over node 0's one
 * link, too. The program sees one answer in `overhead`. */
struct device {
	uint64_t now, overhead, gap, latency, per_kb;
	size_t size;
	uint64_t tx_free, rx_free;
	uint64_t arrives[MAX_N];
	unsigned int n;
	bool mcast;
	unsigned int lose_every, sent;
	unsigned int settled, die_at, checks;
};

static uint64_t occupied(const struct device *d)
{
	return d->gap + d->per_kb * d->size / 1024;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void travel(struct device *d, unsigned int i)
{
	uint64_t at_peer = d->tx_free + d->latency;

	d->rx_free = later(d->rx_free, at_peer + d->latency) + occupied(d);
	d->arrives[i] = d->rx_free;
}

static int dev_send(void *arg, unsigned int i, uint32_t seq)
{
	struct device *d = arg;

	(void)seq;
	d->now += d->overhead;
	d->tx_free = later(d->tx_free, d->now) + occupied(d);
	if (d->lose_every && ++d->sent % d->lose_every == 0)
		return 0;
	if (!d->mcast) {
		travel(d, i);
		return 0;
	}
	for (unsigned int k = 0; k < d->n; k++)
		travel(d, k);
	return 0;
}

/* Waits for the next answer as a program does that polls: the clock goes on. */
static int dev_poll(void *arg, uint32_t seq, unsigned int *who)
{
	struct device *d = arg;
	uint64_t first = UINT64_MAX;

	(void)seq;
	for (unsigned int i = 0; i < d->n; i++)
		if (d->arrives[i] && d->arrives[i] < first) {
			first = d->arrives[i];
			*who = i;
		}
	if (first == UINT64_MAX) {
		d->now += 1000;
		return 0;
	}
	d->now = later(d->now, first) + d->overhead;
	d->arrives[*who] = 0;
	return 1;
}

static uint64_t dev_now(void *arg)
{
	return ((struct device *)arg)->now;
}

static int dev_check(void *arg)
{
	struct device *d = arg;

	return d->die_at && ++d->checks >= d->die_at ? -ECONNRESET : 0;
}

static void dev_settle(void *arg)
{
	struct device *d = arg;

	d->settled++;
	memset(d->arrives, 0, sizeof(d->arrives));
}

static const struct fan_ops ops = {dev_send, dev_poll, dev_now, dev_check, dev_settle};

static int measure(struct device *d, unsigned int n, size_t rounds, struct fan_times *t)
{
	struct fan_plan plan = {.n = n,
				.msgs = d->mcast ? 1 : n,
				.rounds = rounds,
				.budget = UINT64_MAX / 2,
				.deadline = UINT64_MAX / 2,
				.lost_ns = d->lose_every ? 200000000 : 0};

	d->n = n;
	d->now = 1000000;
	assert_int_equal(fan_times_alloc(t, &plan), 0);
	return fan_rounds(&ops, d, &plan, t);
}

/* One peer: 2 (o + g + L) exactly, in every round, the first too. */
static void one_peer(void **state)
{
	struct device d = {.overhead = 300, .gap = 700, .latency = 4000};
	struct fan_times t;

	(void)state;
	assert_int_equal(measure(&d, 1, 50, &t), 0);
	assert_int_equal(t.rounds, 50);
	for (size_t r = 0; r < t.rounds; r++) {
		assert_int_equal(t.round[r], 2 * (300 + 700 + 4000));
		assert_int_equal(t.trip[r], t.round[r]);
		assert_int_equal(t.post[r], 300);
	}
	fan_times_free(&t);
}

/* The gap is longer than the overhead: the links are what n messages wait for, one after the
 * other. Each packet's own time grows with its place. */
static void many_peers(void **state)
{
	for (unsigned int n = 1; n <= MAX_N; n *= 2) {
		struct device d = {.overhead = 300, .gap = 700, .latency = 4000};
		struct fan_times t;

		(void)state;
		assert_int_equal(measure(&d, n, 20, &t), 0);
		assert_int_equal(t.rounds, 20);
		for (size_t r = 0; r < t.rounds; r++) {
			assert_int_equal(t.round[r], 2 * (300 + 4000) + 700 * (n + 1));
			/* A program that still sends sees the first answers late. */
			uint64_t seen = 300 * n;

			for (unsigned int i = 0; i < n; i++) {
				seen = later(seen, 300 + 2 * 4000 + 700 * (i + 2)) + 300;
				assert_int_equal(t.post[r * n + i], 300);
				assert_int_equal(t.trip[r * n + i], seen - 300 * i);
			}
		}
		fan_times_free(&t);
	}
}

/* Bandwidth: what two sizes differ by is the link's rate, and nothing else. */
static void bandwidth(void **state)
{
	struct device d = {.overhead = 300, .gap = 700, .latency = 4000, .per_kb = 1000};
	struct fan_times small, large;

	(void)state;
	d.size = 1024;
	assert_int_equal(measure(&d, 8, 10, &small), 0);
	d.size = 1 << 20;
	d.tx_free = d.rx_free = 0;
	assert_int_equal(measure(&d, 8, 10, &large), 0);
	/* Nine times over a link: eight messages out, pipelined with their answers. */
	assert_int_equal(large.round[0] - small.round[0], 9 * 1000 * 1023);
	fan_times_free(&small);
	fan_times_free(&large);
}

static void multicast(void **state)
{
	struct device d = {.overhead = 300, .gap = 700, .latency = 4000, .mcast = true};
	struct fan_times t;

	(void)state;
	assert_int_equal(measure(&d, 16, 10, &t), 0);
	for (size_t r = 0; r < t.rounds; r++) {
		/* One message out, sixteen back. */
		assert_int_equal(t.round[r], 2 * (300 + 4000) + 700 * 17);
		assert_int_equal(t.trip[r * 16], 2 * (300 + 4000) + 700 * 2);
		assert_int_equal(t.trip[r * 16 + 15], t.round[r]);
	}
	fan_times_free(&t);
}

/* Rounds with a loss are counted and are not among the times. */
static void losses(void **state)
{
	struct device d = {.overhead = 300, .gap = 700, .latency = 4000, .lose_every = 10};
	struct fan_times t;

	(void)state;
	assert_int_equal(measure(&d, 4, 20, &t), 0);
	assert_int_equal(t.lost, 8);
	assert_int_equal(t.rounds, 12);
	assert_int_equal(d.settled, 8);
	for (size_t r = 0; r < t.rounds; r++)
		assert_int_equal(t.round[r], 2 * (300 + 4000) + 700 * 5);
	fan_times_free(&t);
}

static void ends(void **state)
{
	struct device d = {.overhead = 300, .gap = 700, .latency = 4000, .lose_every = 1};
	struct fan_plan plan = {
		.n = 2, .msgs = 2, .rounds = 1000, .budget = UINT64_MAX / 2, .deadline = 5000000};
	struct fan_times t;

	(void)state;
	d.n = 2;
	assert_int_equal(fan_times_alloc(&t, &plan), 0);
	/* A peer that is silent where nothing may be lost: the deadline. */
	assert_int_equal(fan_rounds(&ops, &d, &plan, &t), -ETIMEDOUT);
	assert_true(d.now < 7000000);
	/* One that is known to be dead. */
	plan.deadline = UINT64_MAX / 2;
	d.die_at = 3;
	assert_int_equal(fan_rounds(&ops, &d, &plan, &t), -ECONNRESET);
	assert_int_equal(t.rounds, 0);
	/* No round begins when the budget is used up. */
	d.lose_every = d.die_at = 0;
	plan.budget = 10 * 10700 - 1;
	assert_int_equal(fan_rounds(&ops, &d, &plan, &t), 0);
	assert_int_equal(t.rounds, 10);
	fan_times_free(&t);
}

/* Every combination is there once, and either measured or explained. */
static void types(void **state)
{
	bool seen[FAN_SERVICES][FAN_FUNCS] = {0};
	unsigned int n = 0, missing = 0;

	(void)state;
	for (const struct fan_type *t = fan_types; t->name; t++, n++) {
		assert_false(seen[t->service][t->func]);
		seen[t->service][t->func] = true;
		assert_ptr_equal(fan_type_find(t->name), t);
		assert_true(!t->how == !!t->why);
		missing += !!t->why;
	}
	assert_int_equal(n, FAN_SERVICES * FAN_FUNCS);
	assert_int_equal(missing, 8);
	assert_null(fan_type_find("rc"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_peer),  cmocka_unit_test(many_peers),
		cmocka_unit_test(bandwidth), cmocka_unit_test(multicast),
		cmocka_unit_test(losses),    cmocka_unit_test(ends),
		cmocka_unit_test(types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
