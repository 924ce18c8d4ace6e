/* Every interleaving of small programs, see explore.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "explore.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- programs -------------------------------------------------------------------------------- */

#define S(tag_, lens_)                                                                             \
	{                                                                                          \
		.tag = (tag_), .lens = (lens_)                                                     \
	}
#define R(src_, tag_, ignore_, len_)                                                               \
	{                                                                                          \
		.what = OP_POST, .src = (src_), .tag = (tag_), .ignore = (ignore_), .len = (len_)  \
	}
#define R7 R(0, 7, 0, LONG)
#define C(at_)                                                                                     \
	{                                                                                          \
		.what = OP_CANCEL, .src = (at_)                                                    \
	}
#define ANY MSG_ANY_SRC

/* Sends of EITHER length are eager or by rendezvous, as the search likes. */
#define S7 S(7, EITHER)
#define S8 S(8, EITHER)

/* The counterexamples of docs/rendezvous.md: fixed lengths, so that the search is in them. */
static const struct prog silent = {
	"RTS consumed silently",     {2}, 3, {{S(7, SET(LONG)), S(7, SET(LONG))}},
	{R(0, 7, 0, SHORT), R7, R7},
};
static const struct prog silent_any = {
	"RTS consumed silently by any source", {2}, 3, {{S(7, SET(LONG)), S(7, SET(LONG))}},
	{R(ANY, 7, 0, LONG), R7, R7},
};
static const struct prog purged = {
	"RTR purged",
	{4},
	5,
	{{S(7, SET(SHORT)), S(7, SET(LONG)), S(7, SET(LONG)), S(7, SET(LONG))}},
	{R7, R7, R7, R7, R7},
};

static const struct prog one_cancel = {
	"cancel the first of two", {2}, 3, {{S7, S7}}, {R7, R7, C(0)},
};
static const struct prog wild_ahead = {
	"any source ahead", {1, 1}, 2, {{S7}, {S7}}, {R(ANY, 7, 0, LONG), R7},
};

/* Which mutant is found out by which program. */
static const struct prog two_receives = {
	"two receives", {2}, 2, {{S7, S7}}, {R7, R7},
};
static const struct prog cancel_last = {
	"cancel with nothing to come", {1}, 3, {{S7}}, {R7, R7, C(1)},
};

static const struct prog only_cancel = {
	"cancel the only one", {1}, 2, {{S7}}, {R7, C(0)},
};

#define WRONG_RECV "a PUT names another receive than the one that must have it"

static const struct {
	const struct prog *prog;
	enum mutant mutant;
	const char *name, *why;
} wrong[] = {
	{&two_receives, IGNORE_AHEAD, "`ahead` is ignored", WRONG_RECV},
	{&two_receives, IGNORE_CROSSED, "`seen` is ignored", "an RTR is held for ever"},
	{&wild_ahead, ASK_UNCLEAR, "an RTR with a wildcard ahead", WRONG_RECV},
	{&one_cancel, MOVE_ALONE, "a cancel leaves those behind alone",
	 "a receive has the data of another message"},
	{&cancel_last, NO_WITHDRAW, "a moved RTR is not withdrawn", "an RTR is held for ever"},
	{&only_cancel, MOVE_WRITTEN, "an RTR is moved whose data comes",
	 "a receive is cancelled, but something was written into it"},
	{&only_cancel, MOVE_FREED, "a ghost does not wait for the answer",
	 "a write under a key that is dead"},
	{&one_cancel, MOVE_OWN, "a ghost is a receive's", WRONG_RECV},
	{&one_cancel, BACK_EARLY, "the answers are not waited for",
	 "a receive has the data of another message"},
	{&one_cancel, BACK_ASKS, "an RTR counts on what is being cancelled",
	 "a receive has the data of another message"},
	{&silent, THESIS, "as printed, eager predicted", WRONG_RECV},
	{&silent_any, THESIS, "as printed, any source", WRONG_RECV},
	{&purged, THESIS_ACK, "as printed, all acknowledged", WRONG_RECV},
};

static const struct prog small[] = {
	{"few receives", {4}, 2, {{S7, S7, S7, S7}}, {R7, R7}},
	{"truncation",
	 {3},
	 3,
	 {{S(7, ANY_LEN), S(7, ANY_LEN), S(7, ANY_LEN)}},
	 {R7, R(0, 7, 0, SHORT), R(0, 7, 0, VAST)}},
	{"any source among named",
	 {4},
	 5,
	 {{S7, S7, S7, S7}},
	 {R7, R(ANY, 7, 0, LONG), R7, R(ANY, 7, 0, LONG), R7}},
	{"two senders, any source first",
	 {2, 1},
	 4,
	 {{S7, S7}, {S7}},
	 {R(ANY, 7, 0, LONG), R7, R(1, 7, 0, LONG), R7}},
	{"any tag, two receives",
	 {3},
	 3,
	 {{S7, S8, S7}},
	 {R(0, 0, ALL_TAGS, LONG), R7, R(0, 0, ALL_TAGS, LONG)}},
	{"cancel", {2}, 4, {{S7, S7}}, {R7, R7, C(0), R7}},
	{"cancel twice", {2}, 5, {{S7, S7}}, {R7, R7, C(0), R7, C(1)}},
	{"cancel before any tag", {3}, 4, {{S7, S8, S7}}, {R7, R(0, 0, ALL_TAGS, LONG), C(0), R7}},
	{"cancel any source",
	 {2, 1},
	 4,
	 {{S7, S7}, {S7}},
	 {R(ANY, 7, 0, LONG), R7, C(0), R(1, 7, 0, LONG)}},
	{"cancel with truncation",
	 {2},
	 4,
	 {{S(7, ANY_LEN), S(7, ANY_LEN)}},
	 {R(0, 7, 0, VAST), R7, C(0), R(0, 7, 0, SHORT)}},
};

/* Some seconds together. */
static const struct prog full[] = {
	{"one envelope", {4}, 5, {{S7, S7, S7, S7}}, {R7, R7, R7, R7, R7}},
	{"truncation, four sends",
	 {4},
	 3,
	 {{S(7, ANY_LEN), S(7, ANY_LEN), S(7, ANY_LEN), S(7, ANY_LEN)}},
	 {R7, R(0, 7, 0, SHORT), R(0, 7, 0, VAST)}},
	{"any source first", {4}, 5, {{S7, S7, S7, S7}}, {R(ANY, 7, 0, LONG), R7, R7, R7, R7}},
	{"two senders",
	 {2, 2},
	 4,
	 {{S7, S7}, {S7, S7}},
	 {R(0, 7, 0, LONG), R(ANY, 7, 0, LONG), R(1, 7, 0, LONG), R(0, 7, 0, LONG)}},
	{"any tag",
	 {4},
	 5,
	 {{S7, S8, S7, S8}},
	 {R7, R(0, 0, ALL_TAGS, LONG), R(0, 8, 0, LONG), R(0, 8, 0, LONG), R7}},
	{"any tag first",
	 {4},
	 5,
	 {{S8, S7, S7, S8}},
	 {R(0, 0, ALL_TAGS, LONG), R7, R(0, 8, 0, LONG), R(0, 0, ALL_TAGS, LONG), R7}},
	{"any tag of any source",
	 {2, 2},
	 4,
	 {{S7, S8}, {S8, S7}},
	 {R7, R(ANY, 0, ALL_TAGS, LONG), R(0, 8, 0, LONG), R(1, 0, ALL_TAGS, LONG)}},
	{"cancel in the middle", {3}, 4, {{S7, S7, S7}}, {R7, R7, R7, C(1)}},
	{"cancel the last", {3}, 4, {{S7, S7, S7}}, {R7, R7, C(1), R7}},
	{"cancel any tag", {3}, 4, {{S7, S8, S7}}, {R(0, 0, ALL_TAGS, LONG), R7, C(0), R7}},
};

/* Minutes. */
static const struct prog lengthy[] = {
	{"one envelope, truncation",
	 {4},
	 5,
	 {{S(7, ANY_LEN), S(7, ANY_LEN), S(7, ANY_LEN), S(7, ANY_LEN)}},
	 {R7, R(0, 7, 0, VAST), R(0, 7, 0, SHORT), R(0, 7, 0, VAST), R7}},
	{"two senders, five receives",
	 {2, 2},
	 5,
	 {{S7, S7}, {S7, S7}},
	 {R7, R(1, 7, 0, LONG), R(ANY, 7, 0, LONG), R7, R(1, 7, 0, LONG)}},
	{"cancel the first, three sends", {3}, 5, {{S7, S7, S7}}, {R7, R7, C(0), R7, R7}},
	{"cancel in the middle, four sends", {4}, 5, {{S7, S7, S7, S7}}, {R7, R7, R7, C(1), R7}},
	{"cancel the first, four sends", {4}, 4, {{S7, S7, S7, S7}}, {R7, R7, C(0), R7}},
	{"cancel twice, three sends", {3}, 5, {{S7, S7, S7}}, {R7, R7, C(0), R7, C(1)}},
};

/* ---- tests ----------------------------------------------------------------------------------- */

static bool lengthy_wanted(void)
{
	const char *value = getenv("WEFT_TEST_LONG");

	return value && *value && strcmp(value, "0") != 0;
}

/* Sanitizers make a walk ten times as long. */
static bool full_wanted(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return lengthy_wanted();
#else
	return true;
#endif
}

static uint64_t total_searches, total_states;

/* Explores one program. Returns the number of PUTs at all its ends. */
static uint64_t must_hold_with(const struct prog *p, enum mutant rules)
{
	struct search *s = malloc(sizeof(*s));
	uint64_t puts;

	assert_non_null(s);
	search_run(s, p, rules, true);
	if (s->bad) {
		search_print(s);
		fail_msg("%s: %s", p->name, s->bad);
	}
	assert_true(s->ends);
	total_searches++;
	total_states += s->met.n;
	puts = s->puts;
	search_free(s);
	free(s);
	return puts;
}

static bool has_cancel(const struct prog *p)
{
	for (unsigned int i = 0; i < p->n_ops; i++)
		if (p->op[i].what != OP_POST)
			return true;
	return false;
}

static uint64_t must_hold_quietly(const struct prog *p)
{
	if (!has_cancel(p))
		return must_hold_with(p, RIGHT);
	return must_hold_with(p, RIGHT_MOVE) + must_hold_with(p, RIGHT_BACK);
}

static void must_hold(const struct prog *p)
{
	uint64_t before = total_states, puts = must_hold_quietly(p);

	printf("%-36s %9llu states\n", p->name, (unsigned long long)(total_states - before));
	fflush(stdout);
	/* Not to speculate at all would be right as well. */
	assert_true(puts);
}

static void print_total(void)
{
	printf("%llu states, %llu searches so far\n", (unsigned long long)total_states,
	       (unsigned long long)total_searches);
}

static void must_hold_all(const struct prog *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		must_hold(&p[i]);
	print_total();
}

static void test_counterexamples(void **state)
{
	(void)state;
	must_hold(&silent);
	must_hold(&silent_any);
	must_hold(&purged);
}

static void test_small(void **state)
{
	(void)state;
	must_hold_all(small, COUNT(small));
}

/* Some receives are moved and some have to be waited for. */
static void test_some_moved(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(small); i++)
		if (has_cancel(&small[i]))
			must_hold_with(&small[i], RIGHT_SOME);
	print_total();
}

/* Data and notices in any order, also where nothing is cancelled. */
static void test_any_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(small); i++)
		if (!has_cancel(&small[i]))
			must_hold_with(&small[i], RIGHT_BACK);
	print_total();
}

/* ---- all programs of a kind ---- */

static const struct prog_op kinds[] = {
	R7,
	R(0, 8, 0, LONG),
	R(ANY, 7, 0, LONG),
	R(0, 0, ALL_TAGS, LONG),
	R(ANY, 0, ALL_TAGS, LONG),
};

/* n receives, whose kinds are the digits of `code`. `cancel`, unless negative, is the one that is
 * cancelled, when `after` have been posted. */
static void make(struct prog *p, unsigned int n, unsigned int code, int cancel, unsigned int after)
{
	static char name[64];

	snprintf(name, sizeof(name), "kinds %u of %u, cancel %d after %u", code, n, cancel, after);
	p->name = name;
	p->n_ops = 0;
	for (unsigned int i = 0; i < n; i++, code /= COUNT(kinds)) {
		p->op[p->n_ops++] = kinds[code % COUNT(kinds)];
		if (cancel >= 0 && i + 1 == after)
			p->op[p->n_ops++] =
				(struct prog_op){.what = OP_CANCEL, .src = (uint32_t)cancel};
	}
}

/* Sequences of n receives of all kinds, as they are or with each of them cancelled at each time,
 * for two tags from one sender and one from another. */
static void must_hold_kinds(unsigned int n, bool cancels)
{
	struct prog p = {.n_sends = {2, 1}, .send = {{S7, S8}, {S7}}};
	unsigned int codes = 1;
	uint64_t puts = 0;

	for (unsigned int i = 0; i < n; i++)
		codes *= COUNT(kinds);
	for (unsigned int code = 0; code < codes; code++) {
		make(&p, n, code, -1, 0);
		puts += must_hold_quietly(&p);
		for (unsigned int cancel = 0; cancels && cancel < n; cancel++) {
			for (unsigned int after = cancel + 1; after <= n; after++) {
				make(&p, n, code, (int)cancel, after);
				puts += must_hold_quietly(&p);
			}
		}
	}
	assert_true(puts);
	print_total();
}

static void test_kinds(void **state)
{
	(void)state;
	must_hold_kinds(2, full_wanted());
	if (full_wanted())
		must_hold_kinds(3, lengthy_wanted());
	if (lengthy_wanted())
		must_hold_kinds(4, false);
}

static void test_full(void **state)
{
	(void)state;
	if (!full_wanted())
		skip();
	must_hold_all(full, COUNT(full));
}

static void test_lengthy(void **state)
{
	(void)state;
	if (!lengthy_wanted())
		skip();
	must_hold_all(lengthy, COUNT(lengthy));
}

/* The right rules hold for each of these programs, so it is the mutant that is found. */
static void test_mutants(void **state)
{
	struct search *s = malloc(sizeof(*s));

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		must_hold(wrong[i].prog);
		search_run(s, wrong[i].prog, wrong[i].mutant, true);
		if (!s->bad)
			fail_msg("nothing found: %s", wrong[i].name);
		printf("Found: %s. ", wrong[i].name);
		search_print(s);
		assert_string_equal(s->bad, wrong[i].why);
		search_free(s);
	}
	free(s);
}

/* What the search leaves out because it is the same in another order is the same. */
static void test_reduction(void **state)
{
	struct search *s = malloc(sizeof(*s));
	uint64_t ends, sum;

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < COUNT(small); i++) {
		if (has_cancel(&small[i]))
			continue;
		search_run(s, &small[i], RIGHT, true);
		assert_null(s->bad);
		ends = s->ends;
		sum = s->ends_hash;
		search_free(s);
		search_run(s, &small[i], RIGHT, false);
		assert_null(s->bad);
		assert_int_equal(s->ends, ends);
		assert_true(s->ends_hash == sum);
		search_free(s);
	}
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counterexamples), cmocka_unit_test(test_small),
		cmocka_unit_test(test_some_moved),      cmocka_unit_test(test_any_order),
		cmocka_unit_test(test_kinds),           cmocka_unit_test(test_full),
		cmocka_unit_test(test_lengthy),         cmocka_unit_test(test_mutants),
		cmocka_unit_test(test_reduction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
