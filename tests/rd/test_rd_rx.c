/* The receiver's half of the sequence space, against a model that is an array of flags. */
#include <errno.h>
#include <string.h>

#include "test_rd.h"
#include "rd_rx.h"

/* ---- a naive model ---------------------------------------------------------------------- */

#define SPAN 65536 /* numbers that a run uses; seen[i] is first + i */

struct model {
	uint32_t first, next; /* next: relative to first */
	uint8_t seen[SPAN];
};

static enum rd_seen model_look(const struct model *m, uint32_t at)
{
	if (at < m->next || (at < SPAN && m->seen[at]))
		return RD_OLD;
	return at - m->next > RD_WINDOW ? RD_FAR : RD_NEW;
}

static void model_mark(struct model *m, uint32_t at)
{
	m->seen[at] = 1;
	while (m->next < SPAN && m->seen[m->next])
		m->next++;
}

static void check_sack(const struct model *m, const struct rd_rx *rx, unsigned int max)
{
	uint64_t words[RD_WINDOW / 64 + 1];
	unsigned int n = rd_rx_sack(rx, words, max), beyond = 0, last = 0;

	assert_true(n <= max);
	for (uint32_t i = 0; i < 64 * n; i++) {
		uint32_t at = m->next + 1 + i;
		uint8_t expected = at < SPAN ? m->seen[at] : 0;

		assert_int_equal((words[i / 64] >> (i % 64)) & 1, expected);
	}
	for (uint32_t at = m->next; at < SPAN && at <= m->next + RD_WINDOW; at++) {
		beyond += m->seen[at];
		if (m->seen[at])
			last = at + 1 - m->next;
	}
	assert_int_equal(rx->beyond, beyond);
	assert_int_equal(rx->high - rx->next, last);
	if (max == RD_WINDOW / 64)
		assert_int_equal(n, beyond ? (last - 1 + 63) / 64 : 0);
}

static void check(const struct model *m, const struct rd_rx *rx, struct util_rand *r)
{
	assert_int_equal(rx->next, m->first + m->next);
	if (!rx->beyond) {
		assert_null(rx->many);
		assert_true(rx->few == 0);
	}
	if (!util_rand_below(r, 64)) {
		check_sack(m, rx, RD_WINDOW / 64);
		check_sack(m, rx, (unsigned int)util_rand_below(r, 8));
	}
}

/* ---- random ----------------------------------------------------------------------------- */

/* One packet of a random kind: the next, one near, one far, one of before. */
static uint32_t pick(const struct model *m, struct util_rand *r, uint32_t spread)
{
	switch (util_rand_below(r, 8)) {
	case 0:
	case 1:
	case 2:
		return m->next;
	case 3:
		return m->next ? (uint32_t)util_rand_below(r, m->next) : 0;
	case 4:
		return m->next + RD_WINDOW - 2 + (uint32_t)util_rand_below(r, 5);
	default:
		return m->next + (uint32_t)util_rand_below(r, spread);
	}
}

static void run(uint64_t seed, uint32_t first, uint32_t spread)
{
	struct model *m = calloc(1, sizeof(*m));
	struct util_rand r;
	struct rd_rx rx;

	assert_non_null(m);
	util_rand_seed(&r, seed);
	m->first = first;
	rd_rx_init(&rx, first);
	for (int i = 0; i < 40000 && m->next < SPAN - 2 * RD_WINDOW; i++) {
		uint32_t at = pick(m, &r, spread);
		enum rd_seen seen = rd_rx_look(&rx, first + at);

		assert_int_equal(seen, model_look(m, at));
		if (seen == RD_NEW && (spread > 64 || at - m->next < 64)) {
			assert_int_equal(rd_rx_mark(&rx, first + at), 0);
			model_mark(m, at);
		} else if (seen != RD_NEW) {
			assert_int_equal(rd_rx_mark(&rx, first + at), -EINVAL);
		}
		check(m, &rx, &r);
	}
	rd_rx_free(&rx);
	free(m);
}

static void test_random(void **state)
{
	static const uint32_t spreads[] = {2, 40, 64, 65, 300, 3000, RD_WINDOW};
	uint64_t seed = test_seed("rx", 1);

	(void)state;
	for (unsigned int i = 0; i < 7; i++) {
		run(seed + i, 0, spreads[i]);
		run(seed + i, UINT32_MAX - 500, spreads[i]);
		run(seed + i, INT32_MAX - 700, spreads[i]);
	}
}

/* ---- limits ----------------------------------------------------------------------------- */

static void test_in_order(void **state)
{
	struct rd_rx rx;

	(void)state;
	rd_rx_init(&rx, UINT32_MAX - 10);
	for (uint32_t i = 0; i < 1000; i++) {
		assert_int_equal(rd_rx_mark(&rx, UINT32_MAX - 10 + i), 0);
		assert_null(rx.many);
		assert_int_equal(rx.beyond, 0);
	}
	assert_int_equal(rx.next, 989);
	rd_rx_free(&rx);
}

static void test_window(void **state)
{
	uint64_t words[RD_WINDOW / 64];
	struct rd_rx rx;

	(void)state;
	rd_rx_init(&rx, 100);
	assert_int_equal(rd_rx_look(&rx, 100 + RD_WINDOW), RD_NEW);
	assert_int_equal(rd_rx_look(&rx, 100 + RD_WINDOW + 1), RD_FAR);
	assert_int_equal(rd_rx_look(&rx, 99), RD_OLD);
	assert_int_equal(rd_rx_look(&rx, 100 + UINT32_C(0x80000000)), RD_OLD);
	/* All but the first, from the far end; then the first. */
	for (uint32_t i = RD_WINDOW; i; i--)
		assert_int_equal(rd_rx_mark(&rx, 100 + i), 0);
	assert_int_equal(rd_rx_sack(&rx, words, RD_WINDOW / 64), RD_WINDOW / 64);
	for (unsigned int i = 0; i < RD_WINDOW / 64; i++)
		assert_true(words[i] == UINT64_MAX);
	assert_int_equal(rd_rx_mark(&rx, 100), 0);
	assert_int_equal(rx.next, 100 + RD_WINDOW + 1);
	assert_null(rx.many);
	assert_int_equal(rx.cap, 64);
	assert_int_equal(rd_rx_sack(&rx, words, RD_WINDOW / 64), 0);
	rd_rx_free(&rx);
}

/* 64 packets out of order need no memory, the 65th does; the closed gap gives it back. */
static void test_memory(void **state)
{
	struct rd_rx rx;

	(void)state;
	rd_rx_init(&rx, 0);
	for (uint32_t i = 1; i <= 64; i++)
		assert_int_equal(rd_rx_mark(&rx, i), 0);
	assert_null(rx.many);
	assert_int_equal(rd_rx_mark(&rx, 65), 0);
	assert_non_null(rx.many);
	assert_int_equal(rd_rx_mark(&rx, 67), 0);
	assert_int_equal(rd_rx_mark(&rx, 0), 0);
	assert_int_equal(rx.next, 66);
	assert_non_null(rx.many);
	assert_int_equal(rd_rx_mark(&rx, 66), 0);
	assert_int_equal(rx.next, 68);
	assert_null(rx.many);
	/* Freed while a gap is open: ASan would tell of a leak. */
	assert_int_equal(rd_rx_mark(&rx, 1000), 0);
	assert_non_null(rx.many);
	rd_rx_free(&rx);
	assert_null(rx.many);
	assert_int_equal(rx.next, 68);
	assert_int_equal(rd_rx_look(&rx, 1000), RD_NEW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
