/* The window of broadcasts, in every order in which things can happen to a few ranks: nothing is
 * overwritten that somebody has yet to read, and nobody waits for ever. And the sum that says that
 * a part is complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "coll_sum.h"
#include "coll_window.h"
#include "util_rand.h"

enum { HOSTS = 3, RANKS = 4, PARTS = 7, ROOM = 1 << 21 };

/* Ranks 0 and 1 are of host 0, 2 of host 1, 3 of host 2; halves of one part, so slots are the banks
 * of flags. Numbers are one more than what they stand for; 0: nothing. */
static const uint8_t host_of[RANKS] = {0, 0, 1, 2};

struct world {
	uint8_t left[RANKS];              /* parts that a rank has left: it is in the next */
	uint8_t sent[RANKS];              /* a root's: a bit per host; bit 7: its own has it */
	uint8_t slot[HOSTS][2];           /* the part that is there */
	uint8_t flag[HOSTS][HOSTS][2];    /* at a host, by another */
	uint8_t told[HOSTS][HOSTS][2];    /* by a host, to another */
	uint8_t part_to[HOSTS][2];        /* on its way: the part, and 1 */
	uint8_t flag_to[HOSTS][HOSTS][2]; /* on its way to a host, of another: the value, and 1 */
};

struct search {
	const uint8_t *roots;
	bool careless; /* does not look at flags */
	bool early;    /* says that it is ready one half too early */
	struct world *seen;
	uint32_t *table, n, bits;
	bool overwritten, stuck, full;
};

static uint32_t *place_of(struct search *s, const struct world *w)
{
	uint32_t at = (uint32_t)coll_sum(1, w, sizeof(*w)) & ((1u << s->bits) - 1);

	while (s->table[at] && memcmp(&s->seen[s->table[at] - 1], w, sizeof(*w)) != 0)
		at = (at + 1) & ((1u << s->bits) - 1);
	return &s->table[at];
}

static void found(struct search *s, const struct world *w)
{
	uint32_t *at = place_of(s, w);

	if (*at)
		return;
	if (s->n == ROOM) {
		s->full = true;
		return;
	}
	s->seen[s->n] = *w;
	*at = ++s->n;
}

static bool all_left(const struct search *s, const struct world *w, uint32_t host, uint32_t half)
{
	for (int r = 0; r < RANKS; r++)
		if (host_of[r] == host && !coll_window_left(1, half - s->early, w->left[r]))
			return false;
	return true;
}

/* Whatever was in the slot must have been read by all of the host. */
static void write_slot(struct search *s, struct world *w, uint32_t host, uint32_t part)
{
	uint8_t *slot = &w->slot[host][coll_window_slot(1, part)];

	for (int r = 0; r < RANKS; r++)
		if (host_of[r] == host && *slot && w->left[r] < *slot)
			s->overwritten = true;
	*slot = (uint8_t)(part + 1);
}

static uint32_t root_steps(struct search *s, const struct world *w, int r)
{
	uint32_t part = w->left[r], half = coll_window_half(1, part), bank = coll_window_bank(half);
	uint32_t own = host_of[r], n = 0, on_way = 0;
	struct world next;

	if (!(w->sent[r] & 0x80)) {
		if (!all_left(s, w, own, half) && !s->careless)
			return 0;
		next = *w;
		write_slot(s, &next, own, part);
		next.sent[r] |= 0x80;
		found(s, &next);
		return 1;
	}
	for (uint32_t h = 0; h < HOSTS; h++) {
		on_way += h != own && w->part_to[h][bank] == part + 1;
		if (h == own || w->sent[r] >> h & 1)
			continue;
		on_way++;
		if (w->flag[own][h][bank] != coll_window_value(half) && !s->careless)
			continue;
		next = *w;
		next.part_to[h][bank] = (uint8_t)(part + 1);
		next.sent[r] |= (uint8_t)(1 << h);
		found(s, &next);
		n++;
	}
	if (!on_way) {
		next = *w;
		next.sent[r] = 0;
		next.left[r]++;
		found(s, &next);
		n++;
	}
	return n;
}

static uint32_t other_steps(struct search *s, const struct world *w, int r)
{
	uint32_t part = w->left[r], half = coll_window_half(1, part), bank = coll_window_bank(half);
	uint32_t own = host_of[r], to = host_of[s->roots[part]], n = 0;
	struct world next;

	if (to != own && w->told[own][to][bank] != coll_window_value(half) &&
	    all_left(s, w, own, half)) {
		next = *w;
		next.told[own][to][bank] = (uint8_t)coll_window_value(half);
		next.flag_to[to][own][bank] = (uint8_t)(coll_window_value(half) + 1);
		found(s, &next);
		n++;
	}
	if (w->slot[own][coll_window_slot(1, part)] == part + 1) {
		next = *w;
		next.left[r]++;
		found(s, &next);
		n++;
	}
	return n;
}

/* Whatever is on its way arrives, in any order. */
static uint32_t arrivals(struct search *s, const struct world *w)
{
	struct world next;
	uint32_t n = 0;

	for (uint32_t i = 0; i < HOSTS * 2; i++) {
		if (!w->part_to[i / 2][i % 2])
			continue;
		next = *w;
		write_slot(s, &next, i / 2, w->part_to[i / 2][i % 2] - 1u);
		next.part_to[i / 2][i % 2] = 0;
		found(s, &next);
		n++;
	}
	for (uint32_t i = 0; i < HOSTS * HOSTS * 2; i++) {
		uint32_t to = i / 2 / HOSTS, of = i / 2 % HOSTS, bank = i % 2;

		if (!w->flag_to[to][of][bank])
			continue;
		next = *w;
		next.flag[to][of][bank] = (uint8_t)(w->flag_to[to][of][bank] - 1);
		next.flag_to[to][of][bank] = 0;
		found(s, &next);
		n++;
	}
	return n;
}

static void explore(struct search *s)
{
	struct world w = {0};

	s->bits = 22;
	s->seen = calloc(ROOM, sizeof(*s->seen));
	s->table = calloc(1u << s->bits, sizeof(*s->table));
	assert_true(s->seen && s->table);
	found(s, &w);
	for (uint32_t i = 0; i < s->n && !s->overwritten && !s->full; i++) {
		uint32_t steps, done = 0;

		w = s->seen[i];
		steps = arrivals(s, &w);
		for (int r = 0; r < RANKS; r++) {
			done += w.left[r] == PARTS;
			if (w.left[r] < PARTS)
				steps += s->roots[w.left[r]] == r ? root_steps(s, &w, r)
								  : other_steps(s, &w, r);
		}
		s->stuck = s->stuck || (!steps && done < RANKS);
	}
	free(s->seen);
	free(s->table);
}

static const uint8_t roots[][PARTS] = {
	{0, 0, 0, 0, 0, 0, 0}, {2, 2, 2, 2, 2, 2, 2}, {0, 2, 3, 1, 0, 2, 3}, {3, 3, 2, 2, 0, 1, 0},
	{0, 1, 0, 1, 0, 1, 0}, {2, 3, 2, 3, 2, 3, 2}, {1, 1, 3, 3, 1, 1, 3}, {2, 0, 0, 2, 0, 0, 2},
};

static void test_every_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++) {
		struct search s = {.roots = roots[i]};

		explore(&s);
		assert_true(s.n > 1000);
		assert_false(s.full || s.overwritten || s.stuck);
	}
}

/* The model finds what is wrong. */
static void test_careless(void **state)
{
	struct search careless = {.roots = roots[0], .careless = true};
	struct search early = {.roots = roots[0], .early = true};

	(void)state;
	explore(&careless);
	assert_true(careless.overwritten);
	explore(&early);
	assert_true(early.overwritten);
}

static void test_numbers_go_round(void **state)
{
	(void)state;
	for (uint32_t part = UINT32_MAX - 100; part != 100; part++) {
		uint32_t half = coll_window_half(COLL_WINDOW_HALF, part);
		uint32_t begin = part - part % COLL_WINDOW_HALF;

		assert_true(coll_window_left(COLL_WINDOW_HALF, half, begin - COLL_WINDOW_HALF));
		assert_true(coll_window_left(COLL_WINDOW_HALF, half, part));
		assert_false(
			coll_window_left(COLL_WINDOW_HALF, half, begin - COLL_WINDOW_HALF - 1));
	}
	/* Nothing has to be set for the first two halves. */
	for (uint32_t half = 0; half < 2; half++)
		assert_int_equal(coll_window_value(half), 0);
}

/* Any stretch of old bytes, of any length, is seen. */
static void test_sum(void **state)
{
	static uint8_t was[5000], is[5000], part[5000];
	struct util_rand r;

	(void)state;
	util_rand_seed(&r, 5);
	for (int i = 0; i < 20000; i++) {
		size_t len = 1 + util_rand_below(&r, sizeof(is)), at = util_rand_below(&r, len);
		size_t n = 1 + util_rand_below(&r, len - at);

		for (size_t k = 0; k < len && i % 64 == 0; k++) {
			was[k] = (uint8_t)util_rand_next(&r);
			is[k] = i % 128 ? was[k] ^ 1 : (uint8_t)util_rand_next(&r);
		}
		memcpy(part, is, len);
		memcpy(part + at, was + at, n);
		assert_true(memcmp(part, is, len) == 0 ||
			    coll_sum(7, part, len) != coll_sum(7, is, len));
		assert_true(coll_sum(7, is, len) != coll_sum(8, is, len));
		assert_true(coll_sum(7, is, len) != coll_sum(7, is, len - 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_order),
		cmocka_unit_test(test_careless),
		cmocka_unit_test(test_numbers_go_round),
		cmocka_unit_test(test_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
