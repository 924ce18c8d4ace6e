/* The ledger of the sender, rule by rule and against a model; the states of a receive's RTR. That
 * both sides together are right is for test_msg_explore to show. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "msg_spec.h"
#include "util_rand.h"

static struct msg_ledger l;
static struct msg_spec_stats stats;
static bool no_memory;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return no_memory ? NULL : __real_realloc(p, size);
}

static int setup(void **state)
{
	(void)state;
	memset(&stats, 0, sizeof(stats));
	no_memory = false;
	msg_ledger_init(&l, 0, &stats);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	msg_ledger_free(&l);
	return 0;
}

static int rtr(uint32_t id, uint64_t tag, uint64_t ignore, uint32_t seen, uint32_t ahead)
{
	struct msg_rtr r = {.id = id,
			    .tag = tag,
			    .ignore = ignore,
			    .seen = seen,
			    .ahead = ahead,
			    .length = 100};

	return msg_ledger_rtr(&l, &r);
}

/* The id of the RTR that is used; 0: none. */
static uint32_t sent_len(uint64_t tag, uint64_t length, bool rendezvous)
{
	struct msg_rtr use = {0};

	return msg_ledger_sent(&l, tag, length, rendezvous, &use) ? use.id : 0;
}

static uint32_t sent(uint64_t tag)
{
	return sent_len(tag, 100, true);
}

/* ---- the ledger ------------------------------------------------------------------------------ */

static void test_uses(void **state)
{
	(void)state;
	assert_int_equal(rtr(1, 7, 0, 0, 0), 0);
	assert_int_equal(sent(8), 0);
	assert_int_equal(sent(7), 1);
	assert_int_equal(sent(7), 0);
	assert_int_equal(stats.came, 1);
	assert_int_equal(stats.used, 1);
	assert_int_equal(l.n_held, 0);
}

static void test_drops_what_does_not_suit(void **state)
{
	(void)state;
	rtr(1, 7, 0, 0, 0);
	rtr(2, 7, 0, 0, 1);
	rtr(3, 7, 0, 0, 2);
	assert_int_equal(sent_len(7, 5, false), 0);  /* eager */
	assert_int_equal(sent_len(7, 101, true), 0); /* would be truncated */
	assert_int_equal(sent_len(7, 100, true), 3);
	assert_int_equal(stats.dropped, 2);
}

static void test_ahead(void **state)
{
	(void)state;
	rtr(1, 7, 0, 0, 2); /* two receives ahead that sent no RTR */
	assert_int_equal(sent(7), 0);
	assert_int_equal(sent(9), 0);
	assert_int_equal(sent(7), 0);
	assert_int_equal(sent(7), 1);
}

static void test_mask(void **state)
{
	(void)state;
	rtr(1, 0x70, 0xf, 0, 1);
	assert_int_equal(sent(0x80), 0);
	assert_int_equal(sent(0x7a), 0);
	assert_int_equal(sent(0x75), 1);
}

/* The log begins when the first RTR comes, so that one must not have crossed anything. */
static void test_crossing(void **state)
{
	(void)state;
	sent(7);
	assert_int_equal(rtr(1, 7, 0, 0, 5), -ESTALE);
	sent(7);
	sent(8);
	sent(7);
	assert_int_equal(rtr(2, 7, 0, 1, 1), -ESTALE); /* two were sent: it was for the second */
	assert_int_equal(rtr(3, 7, 0, 1, 2), 0);
	assert_int_equal(rtr(4, 7, 0, 4, 1), 0); /* has seen them all */
	assert_int_equal(stats.stale, 2);
	assert_int_equal(sent(7), 3);
	assert_int_equal(sent(7), 4);
}

static void test_log_is_short(void **state)
{
	(void)state;
	rtr(1, 1, 0, 0, 0);
	for (int i = 0; i < MSG_LEDGER_LOG + 10; i++)
		sent(7);
	assert_int_equal(rtr(2, 8, 0, 9, 0), -ESTALE);
	assert_int_equal(rtr(3, 8, 0, 10, 0), 0);
	assert_int_equal(rtr(4, 7, 0, 10, MSG_LEDGER_LOG), 0);
	assert_int_equal(sent(7), 4);
}

static void test_wrap(void **state)
{
	(void)state;
	msg_ledger_init(&l, UINT32_MAX - 2, &stats);
	rtr(1, 1, 0, UINT32_MAX - 2, 0);
	for (int i = 0; i < 8; i++)
		sent(i % 2 ? 7 : 8); /* 7 is sent four times */
	assert_int_equal(l.sent, 5);
	assert_int_equal(rtr(2, 7, 0, UINT32_MAX - 2, 3), -ESTALE);
	assert_int_equal(rtr(3, 7, 0, UINT32_MAX - 2, 4), 0);
	assert_int_equal(rtr(4, 7, 0, UINT32_MAX - 3, 9), -ESTALE);
	assert_int_equal(sent(7), 3);
}

static void test_lies(void **state)
{
	(void)state;
	sent(7);
	assert_int_equal(rtr(1, 7, 0, 2, 0), -EPROTO);
	assert_int_equal(rtr(1, 7, 0, 1u << 31, 0), -EPROTO);
	assert_int_equal(l.n_held, 0);
}

static void test_bound(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < MSG_LEDGER_HELD; i++)
		assert_int_equal(rtr(i + 1, i, 0, 0, 0), 0);
	assert_int_equal(rtr(1000, 7, 0, 0, 1), -ENOBUFS);
	assert_int_equal(stats.dropped, 1);
	for (uint32_t i = 0; i < MSG_LEDGER_HELD; i++)
		assert_int_equal(sent(i), i + 1);
	assert_int_equal(rtr(1001, 7, 0, MSG_LEDGER_HELD, 0), 0);
}

static void test_no_memory(void **state)
{
	(void)state;
	no_memory = true;
	assert_int_equal(rtr(1, 7, 0, 0, 0), -ENOMEM);
	assert_int_equal(sent(7), 0);
	no_memory = false;
	assert_int_equal(rtr(2, 7, 0, 1, 0), 0);
	for (uint32_t i = 3; i < 6; i++)
		assert_int_equal(rtr(i, 7, 0, 1, i - 2), 0);
	no_memory = true;
	assert_int_equal(rtr(6, 7, 0, 1, 4), -ENOMEM); /* the first four have their room */
	assert_int_equal(sent(7), 2);
	assert_int_equal(stats.dropped, 2);
}

static void test_withdraw(void **state)
{
	(void)state;
	rtr(1, 7, 0, 0, 0);
	rtr(2, 7, 0, 0, 1);
	msg_ledger_withdraw(&l, 1);
	msg_ledger_withdraw(&l, 99);
	assert_int_equal(stats.dropped, 1);
	assert_int_equal(sent(7), 0);
	assert_int_equal(sent(7), 2);
}

/* Without order on the way back an old one may be held still: the newest is live. */
static void test_two_for_one_message(void **state)
{
	(void)state;
	rtr(1, 7, 0, 0, 0);
	rtr(2, 7, 0, 0, 0);
	assert_int_equal(sent(7), 2);
	assert_int_equal(l.n_held, 0);
	assert_int_equal(stats.used, 1);
	assert_int_equal(stats.dropped, 1);
}

/* ---- against a model ------------------------------------------------------------------------- */

#define N 400

struct model_rtr {
	uint64_t tag, ignore;
	uint32_t target; /* the message that it is for; N: none of them */
	uint32_t id;
};

static bool is_of(const struct model_rtr *m, uint64_t tag)
{
	return !((m->tag ^ tag) & ~m->ignore);
}

/* The message of its envelope, from `seen` on, that has `ahead` before it. */
static uint32_t target_of(const struct model_rtr *m, const uint64_t *tags, uint32_t seen,
			  uint32_t ahead)
{
	for (uint32_t i = seen; i < N; i++)
		if (is_of(m, tags[i]) && !ahead--)
			return i;
	return N;
}

/* All tags are known beforehand to the model, so it knows which message an RTR is for when it is
 * made; the ledger only knows the past. */
static void run_model(uint64_t seed, uint32_t first)
{
	struct model_rtr of[N] = {0};
	uint64_t tags[N];
	struct util_rand r;

	util_rand_seed(&r, seed);
	msg_ledger_init(&l, first, &stats);
	for (int i = 0; i < N; i++)
		tags[i] = util_rand_below(&r, 4);
	for (uint32_t i = 0, id = 1; i < N; i++) {
		while (util_rand_below(&r, 2)) {
			uint32_t back = (uint32_t)util_rand_below(&r, 40), seen, ahead, t;
			struct model_rtr m = {util_rand_below(&r, 4), util_rand_below(&r, 2), 0,
					      id++};
			int rc;

			seen = i > back ? i - back : 0;
			ahead = (uint32_t)util_rand_below(&r, 12);
			t = m.target = target_of(&m, tags, seen, ahead);
			rc = rtr(m.id, m.tag, m.ignore, first + seen, ahead);
			if (t < i && rc != -ESTALE)
				fail_msg("too late, but %d, seed %llu", rc,
					 (unsigned long long)seed);
			if (!rc && t < N)
				of[t] = m;
			else if (rc && rc != -ESTALE && rc != -ENOBUFS)
				fail_msg("%d, seed %llu", rc, (unsigned long long)seed);
		}
		if (sent(tags[i]) != of[i].id)
			fail_msg("message %u, seed %llu", i, (unsigned long long)seed);
	}
	msg_ledger_free(&l);
}

static void test_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++)
		run_model(seed, seed % 2 ? 0 : UINT32_MAX - 200);
	assert_true(stats.used > 10000 && stats.stale > 1000);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static void test_may_ask(void **state)
{
	struct msg_ahead clear = {.same = 3, .clear = true}, unclear = {.clear = false};
	struct msg_ask a = {0};

	(void)state;
	assert_true(msg_spec_may_ask(&a, clear, 101, 100, 0));
	assert_false(msg_spec_may_ask(&a, clear, 100, 100, 0));
	assert_false(msg_spec_may_ask(&a, unclear, 101, 100, 0));
	assert_true(msg_spec_may_ask(&a, clear, 101, 100, MSG_LEDGER_HELD - 1));
	assert_false(msg_spec_may_ask(&a, clear, 101, 100, MSG_LEDGER_HELD));
	a.state = MSG_ASK_OUT;
	assert_false(msg_spec_may_ask(&a, clear, 101, 100, 0));
}

static void ask(struct msg_ask *a, uint32_t id)
{
	struct msg_recv r = {.tag = 7, .ignore = 8, .src = 1};
	struct msg_ahead ahead = {.same = 2, .clear = true};
	struct msg_rtr out;

	msg_ask_out(a, id, &r, ahead, 5, 1000, &out);
	assert_int_equal(out.id, id);
	assert_int_equal(out.tag, 7);
	assert_int_equal(out.ignore, 8);
	assert_int_equal(out.seen, 5);
	assert_int_equal(out.ahead, 2);
	assert_int_equal(out.length, 1000);
	assert_int_equal(a->state, MSG_ASK_OUT);
}

static void test_put(void **state)
{
	struct msg_ask a = {0}, b = {0};

	(void)state;
	ask(&a, 1);
	ask(&b, 2);
	assert_int_equal(msg_ask_notice(&a), -EPROTO);
	assert_int_equal(msg_ask_put(&b, &a), -EPROTO);
	assert_int_equal(msg_ask_put(NULL, &a), -EPROTO);
	assert_int_equal(msg_ask_put(&a, &a), MSG_PUT_WAIT);
	assert_int_equal(msg_ask_put(&a, &a), -EPROTO);
	assert_int_equal(msg_ask_notice(&a), 0);
	assert_int_equal(msg_ask_notice(&a), -EPROTO);
	/* An id of old, for whatever receive. */
	assert_int_equal(msg_ask_put(&b, NULL), -EPROTO);
	assert_int_equal(msg_ask_put(NULL, NULL), -EPROTO);
	assert_true(msg_ask_matched(&b));
	assert_false(msg_ask_matched(&b));
}

static void moved(struct msg_ask *a, struct msg_ask *ghost, uint32_t id)
{
	ask(a, id);
	assert_true(msg_ask_back(a));
	msg_ask_move(a, ghost);
	assert_int_equal(ghost->id, id);
	assert_int_equal(a->state, MSG_ASK_NONE);
	assert_true(msg_ask_live(ghost));
}

static void test_move(void **state)
{
	struct msg_ask a = {0}, b = {0}, ghost = {0};

	(void)state;
	moved(&a, &ghost, 1);
	ask(&a, 2); /* may ask again */
	/* Not used: the answer ends it, once. */
	assert_int_equal(msg_ask_notice(&ghost), -EPROTO);
	assert_true(msg_ask_answered(&ghost));
	assert_false(msg_ask_answered(&ghost));
	assert_int_equal(msg_ask_put(&a, &ghost), -EPROTO);
	/* Used for whatever receive, whose own RTR is of no more use; the answer finds nothing. */
	moved(&a, &ghost, 3);
	ask(&b, 4);
	assert_int_equal(msg_ask_put(&b, &ghost), MSG_PUT_GHOST);
	assert_true(msg_ask_matched(&b));
	assert_false(msg_ask_answered(&ghost));
	assert_int_equal(msg_ask_put(&b, &ghost), -EPROTO);
	assert_int_equal(msg_ask_notice(&ghost), 0);
	assert_int_equal(msg_ask_notice(&ghost), -EPROTO);
	/* For none. */
	moved(&a, &ghost, 5);
	assert_int_equal(msg_ask_put(NULL, &ghost), MSG_PUT_GHOST);
	assert_int_equal(msg_ask_notice(&ghost), 0);
}

static void test_back(void **state)
{
	struct msg_ask a = {0};

	(void)state;
	assert_false(msg_ask_back(&a));
	assert_false(msg_ask_answered(&a));
	/* Not used. */
	ask(&a, 1);
	assert_true(msg_ask_back(&a));
	assert_false(msg_ask_back(&a));
	assert_true(msg_ask_live(&a));
	assert_true(msg_ask_answered(&a));
	assert_false(msg_ask_live(&a));
	/* Used before the sender was told. */
	ask(&a, 2);
	assert_true(msg_ask_back(&a));
	assert_int_equal(msg_ask_put(&a, &a), MSG_PUT_WAIT);
	assert_false(msg_ask_answered(&a));
	assert_int_equal(msg_ask_notice(&a), 0);
	/* Matched otherwise: the sender has dropped it. */
	ask(&a, 3);
	assert_true(msg_ask_back(&a));
	assert_true(msg_ask_matched(&a));
	assert_false(msg_ask_answered(&a));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_uses),     TEST(test_drops_what_does_not_suit),
		TEST(test_ahead),    TEST(test_mask),
		TEST(test_crossing), TEST(test_log_is_short),
		TEST(test_wrap),     TEST(test_lies),
		TEST(test_bound),    TEST(test_no_memory),
		TEST(test_withdraw), TEST(test_two_for_one_message),
		TEST(test_model),    TEST(test_may_ask),
		TEST(test_put),      TEST(test_move),
		TEST(test_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
