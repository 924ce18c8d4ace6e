/* Matching against a model, two arrays that are searched from the front, under random operations;
 * and the few cases that chance does not meet. WEFT_TEST_SEED gives another seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "msg_match.h"
#include "util_rand.h"

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

static bool scarce; /* there is no memory for tables */

void *__wrap_calloc(size_t n, size_t size)
{
	return scarce ? NULL : __real_calloc(n, size);
}

/* ---- the model ------------------------------------------------------------------------------- */

#define MOST 6000

/* What a run is about: how many different things there are, how long the queues get. */
struct profile {
	const char *name;
	unsigned int masks, tags, sources, length, steps;
	unsigned int shift; /* of the tags' varying bits */
	unsigned int any;   /* per cent of receives of any source */
};

static const struct profile profiles[] = {
	{"one tag", 1, 1, 2, 100, 3000, 0, 0},
	{"MPI", 2, 30, 5, 100, 5000, 0, 20},
	{"high tags", 2, 30, 5, 100, 5000, 48, 20},
	{"more masks than classes", 24, 8, 3, 60, 8000, 0, 30},
	{"just as many", 4, 8, 3, 60, 8000, 0, 50},
	{"short, changing kinds", 24, 8, 3, 4, 8000, 0, 30},
	{"hardly anything matches", 3, 100000, 300, MOST - 100, 14000, 20, 5},
	{"long, same tags", 2, 4, 3, 1500, 6000, 0, 1},
};

struct world {
	struct util_rand r;
	const struct profile *p;
	struct msg_match m;
	uint64_t masks[32];
	struct msg_recv *recv[MOST];
	struct msg_unexp *unexp[MOST];
	unsigned int n_recv, n_unexp;
	/* What a callback expects. */
	struct msg_recv *lost_recv[MOST];
	struct msg_unexp *lost_unexp[MOST];
	unsigned int lost_recvs, lost_unexps;
	bool anew; /* the callbacks post and store again */
};

static unsigned int below(struct world *w, uint64_t n)
{
	return (unsigned int)util_rand_below(&w->r, n);
}

static bool fits(uint64_t a, uint64_t b, uint64_t ignore)
{
	return (a & ~ignore) == (b & ~ignore);
}

static unsigned int place_recv(const struct world *w, const struct msg_recv *r)
{
	unsigned int i = 0;

	while (i < w->n_recv && w->recv[i] != r)
		i++;
	return i;
}

static void remove_recv(struct world *w, unsigned int i)
{
	memmove(&w->recv[i], &w->recv[i + 1], (--w->n_recv - i) * sizeof(w->recv[0]));
}

static void remove_unexp(struct world *w, unsigned int i)
{
	memmove(&w->unexp[i], &w->unexp[i + 1], (--w->n_unexp - i) * sizeof(w->unexp[0]));
}

static struct msg_recv *model_take(const struct world *w, uint32_t src, uint64_t tag)
{
	for (unsigned int i = 0; i < w->n_recv; i++) {
		const struct msg_recv *r = w->recv[i];

		if ((r->src == MSG_ANY_SRC || r->src == src) && fits(r->tag, tag, r->ignore))
			return w->recv[i];
	}
	return NULL;
}

static struct msg_unexp *model_find(const struct world *w, uint32_t src, uint64_t tag, uint64_t ign)
{
	for (unsigned int i = 0; i < w->n_unexp; i++) {
		const struct msg_unexp *u = w->unexp[i];

		if ((src == MSG_ANY_SRC || src == u->src) && fits(u->tag, tag, ign))
			return w->unexp[i];
	}
	return NULL;
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint32_t any_peer(struct world *w)
{
	return below(w, w->p->sources);
}

static uint64_t any_tag(struct world *w)
{
	return (uint64_t)below(w, w->p->tags) << w->p->shift;
}

static uint32_t recv_src(struct world *w)
{
	return below(w, 100) < w->p->any ? MSG_ANY_SRC : any_peer(w);
}

static uint64_t any_mask(struct world *w)
{
	return w->masks[below(w, w->p->masks)];
}

static void post(struct world *w, uint32_t src, uint64_t tag, uint64_t ignore)
{
	struct msg_recv *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	*r = (struct msg_recv){.tag = tag, .ignore = ignore, .src = src};
	assert_false(msg_recv_posted(r));
	assert_int_equal(msg_match_post(&w->m, r), 0);
	assert_true(msg_recv_posted(r));
	w->recv[w->n_recv++] = r;
}

static void store(struct world *w, uint32_t src, uint64_t tag)
{
	struct msg_unexp *u = calloc(1, sizeof(*u));

	assert_non_null(u);
	*u = (struct msg_unexp){.tag = tag, .src = src};
	assert_int_equal(msg_match_store(&w->m, u), 0);
	w->unexp[w->n_unexp++] = u;
}

/* A message arrives. Sometimes it is stored although it matches, and sometimes lost. */
static void step_message(struct world *w)
{
	uint32_t src = any_peer(w);
	uint64_t tag = any_tag(w);
	struct msg_recv *want = model_take(w, src, tag);

	assert_ptr_equal(msg_match_peek(&w->m, src, tag), want);
	if (w->n_unexp < w->p->length && !below(w, 8)) {
		store(w, src, tag);
		return;
	}
	assert_ptr_equal(msg_match_take(&w->m, src, tag), want);
	if (want) {
		assert_false(msg_recv_posted(want));
		remove_recv(w, place_recv(w, want));
		free(want);
	} else if (w->n_unexp < w->p->length && below(w, 8)) {
		store(w, src, tag);
	}
}

static void step_receive(struct world *w)
{
	uint32_t src = recv_src(w);
	uint64_t tag = any_tag(w), ignore = any_mask(w);
	struct msg_unexp *u = model_find(w, src, tag, ignore);

	assert_ptr_equal(msg_match_find(&w->m, src, tag, ignore), u);
	if (u && below(w, 8)) {
		unsigned int i = 0;

		while (w->unexp[i] != u)
			i++;
		msg_match_drop(&w->m, u);
		remove_unexp(w, i);
		free(u);
	} else if (w->n_recv < w->p->length) {
		post(w, src, tag, ignore);
	}
}

static void step_cancel(struct world *w)
{
	unsigned int i = w->n_recv ? below(w, w->n_recv) : 0;
	struct msg_recv *r = w->recv[i];

	if (!w->n_recv)
		return;
	msg_match_cancel(&w->m, r);
	assert_false(msg_recv_posted(r));
	remove_recv(w, i);
	free(r);
}

static void step_discard(struct world *w)
{
	unsigned int i = w->n_unexp ? below(w, w->n_unexp) : 0;

	if (!w->n_unexp)
		return;
	msg_match_drop(&w->m, w->unexp[i]);
	free(w->unexp[i]);
	remove_unexp(w, i);
}

/* ---- what is ahead --------------------------------------------------------------------------- */

static bool same(const struct msg_recv *a, const struct msg_recv *b)
{
	return a->src == b->src && a->ignore == b->ignore && fits(a->tag, b->tag, a->ignore);
}

static bool in_the_way(const struct msg_recv *a, const struct msg_recv *r)
{
	return (a->src == MSG_ANY_SRC || a->src == r->src) &&
	       fits(a->tag, r->tag, a->ignore | r->ignore);
}

static void check_ahead(struct world *w, unsigned int at)
{
	const struct msg_recv *r = w->recv[at];
	struct msg_ahead got = msg_match_ahead(&w->m, r);
	bool clear = r->src != MSG_ANY_SRC;
	uint32_t n = 0;

	for (unsigned int i = 0; i < at; i++) {
		if (same(w->recv[i], r))
			n++;
		else if (in_the_way(w->recv[i], r))
			clear = false;
	}
	if (got.clear) {
		assert_true(clear);
		assert_int_equal(got.same, n);
	} else if (at <= 32) { /* not much to look at, so there was no reason to be careful */
		assert_false(clear);
	}
}

static void check_behind(struct world *w, unsigned int at)
{
	const struct msg_recv *r = w->recv[at];
	unsigned int i = at + 1;

	while (i < w->n_recv && !same(w->recv[i], r))
		i++;
	assert_ptr_equal(msg_match_behind(&w->m, r), i < w->n_recv ? w->recv[i] : NULL);
}

static void step_ahead(struct world *w)
{
	if (!w->n_recv)
		return;
	check_ahead(w, below(w, w->n_recv));
	check_ahead(w, below(w, w->n_recv < 33 ? w->n_recv : 33));
	check_behind(w, below(w, w->n_recv));
}

/* ---- death ----------------------------------------------------------------------------------- */

static void lost_recv(void *arg, struct msg_recv *r)
{
	struct world *w = arg;
	uint32_t src = r->src;

	assert_false(msg_recv_posted(r));
	assert_ptr_equal(r, w->lost_recv[w->lost_recvs++]);
	free(r);
	/* A new one, even of the peer that died, is none of what this is about. */
	if (w->anew && !below(w, 3))
		post(w, src, any_tag(w), any_mask(w));
}

static void lost_unexp(void *arg, struct msg_unexp *u)
{
	struct world *w = arg;
	uint32_t src = u->src;

	assert_ptr_equal(u, w->lost_unexp[w->lost_unexps++]);
	free(u);
	if (w->anew && !below(w, 3))
		store(w, src, any_tag(w));
}

static unsigned int expect_recvs(struct world *w, uint32_t src)
{
	unsigned int kept = 0, n = 0;

	for (unsigned int i = 0; i < w->n_recv; i++) {
		if (src == MSG_ANY_SRC || w->recv[i]->src == src)
			w->lost_recv[n++] = w->recv[i];
		else
			w->recv[kept++] = w->recv[i];
	}
	w->n_recv = kept;
	return n;
}

static unsigned int expect_unexps(struct world *w, uint32_t src)
{
	unsigned int kept = 0, n = 0;

	for (unsigned int i = 0; i < w->n_unexp; i++) {
		if (src == MSG_ANY_SRC || w->unexp[i]->src == src)
			w->lost_unexp[n++] = w->unexp[i];
		else
			w->unexp[kept++] = w->unexp[i];
	}
	w->n_unexp = kept;
	return n;
}

static void die(struct world *w, uint32_t src, bool recvs, bool unexps)
{
	unsigned int n_recvs = recvs ? expect_recvs(w, src) : 0;
	unsigned int n_unexps = unexps ? expect_unexps(w, src) : 0;

	w->lost_recvs = w->lost_unexps = 0;
	msg_match_drop_src(&w->m, src, recvs ? lost_recv : NULL, unexps ? lost_unexp : NULL, w);
	assert_int_equal(w->lost_recvs, n_recvs);
	assert_int_equal(w->lost_unexps, n_unexps);
}

static void step_death(struct world *w)
{
	w->anew = below(w, 2);
	die(w, below(w, 10) ? any_peer(w) : MSG_ANY_SRC, below(w, 4), below(w, 4));
	w->anew = false;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void choose_masks(struct world *w)
{
	/* The first are MPI's: a protocol bit, and everything. The others concern bits that tags
	 * differ in, mostly, so that they include each other, overlap, or do not. */
	static const uint64_t first[] = {UINT64_C(1) << 63, UINT64_MAX, 0, 1};

	for (unsigned int i = 0; i < 32; i++)
		w->masks[i] = i < 4 ? first[i] : (uint64_t)below(w, 32) << w->p->shift;
}

static void step(struct world *w)
{
	unsigned int what = below(w, 1000);

	if (what < 500)
		step_receive(w);
	else if (what < 900)
		step_message(w);
	else if (what < 930)
		step_cancel(w);
	else if (what < 950)
		step_discard(w);
	else if (what < 998 || w->p->length > 1000)
		step_ahead(w);
	else
		step_death(w);
}

static void run(const struct profile *p, uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	print_message("%s: seed %llu\n", p->name, (unsigned long long)seed);
	util_rand_seed(&w->r, seed);
	w->p = p;
	choose_masks(w);
	assert_int_equal(msg_match_init(&w->m), 0);
	for (unsigned int i = 0; i < p->steps; i++)
		step(w);
	die(w, 0, true, true);
	die(w, MSG_ANY_SRC, true, true);
	assert_int_equal(w->n_recv + w->n_unexp, 0);
	assert_null(msg_match_find(&w->m, MSG_ANY_SRC, 0, UINT64_MAX));
	msg_match_free(&w->m);
	free(w);
}

static void test_random(void **state)
{
	const char *s = getenv("WEFT_TEST_SEED");
	uint64_t seed = s ? strtoull(s, NULL, 0) : 1;

	(void)state;
	for (size_t k = 0; k < sizeof(profiles) / sizeof(profiles[0]); k++) {
		for (uint64_t i = 0; i < (profiles[k].length > 1000 ? 3 : 25); i++)
			run(&profiles[k], seed + i);
	}
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Without memory the first of a kind is refused, and has left nothing behind. A table that can not
 * grow goes on as it is. */
static void test_memory(void **state)
{
	struct msg_recv r[200] = {{.tag = 7, .src = 3}};
	struct msg_unexp u[200] = {{.tag = 7, .src = 3}};
	struct msg_match m;

	(void)state;
	assert_int_equal(msg_match_init(&m), 0);
	scarce = true;
	assert_int_equal(msg_match_post(&m, &r[0]), -ENOMEM);
	assert_int_equal(msg_match_store(&m, &u[0]), -ENOMEM);
	assert_false(msg_recv_posted(&r[0]));
	assert_null(msg_match_take(&m, 3, 7));
	assert_null(msg_match_find(&m, 3, 7, 0));
	assert_null(msg_match_find(&m, MSG_ANY_SRC, 7, 0));
	scarce = false;
	for (uint32_t i = 0; i < 200; i++) {
		r[i] = (struct msg_recv){.tag = i, .src = 3};
		u[i] = (struct msg_unexp){.tag = i, .src = i};
		assert_int_equal(msg_match_post(&m, &r[i]), 0);
		assert_int_equal(msg_match_store(&m, &u[i]), 0);
		scarce = true;
	}
	scarce = false;
	for (uint32_t i = 0; i < 200; i++) {
		assert_ptr_equal(msg_match_take(&m, 3, i), &r[i]);
		assert_ptr_equal(msg_match_find(&m, i, 0, UINT64_MAX), &u[i]);
	}
	msg_match_free(&m);
}

/* As MPI would use it: named receives, one of any source among them. */
static void test_ahead(void **state)
{
	const uint64_t bit = UINT64_C(1) << 62;
	struct msg_recv r[] = {
		{.tag = 5, .ignore = bit, .src = 1},
		{.tag = 5 | bit, .ignore = bit, .src = 1}, /* the same: the bit is ignored */
		{.tag = 5, .ignore = bit, .src = MSG_ANY_SRC},
		{.tag = 5, .ignore = bit, .src = 1},
		{.tag = 6, .ignore = bit, .src = 1},
	};
	struct msg_match m;
	struct msg_ahead a;

	(void)state;
	assert_int_equal(msg_match_init(&m), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(msg_match_post(&m, &r[i]), 0);
	a = msg_match_ahead(&m, &r[1]);
	assert_true(a.clear && a.same == 1);
	assert_false(msg_match_ahead(&m, &r[2]).clear);
	assert_false(msg_match_ahead(&m, &r[3]).clear);
	a = msg_match_ahead(&m, &r[4]);
	assert_true(a.clear && a.same == 0);
	assert_ptr_equal(msg_match_behind(&m, &r[1]), &r[3]);
	msg_match_cancel(&m, &r[2]);
	msg_match_cancel(&m, &r[1]);
	a = msg_match_ahead(&m, &r[3]);
	assert_true(a.clear && a.same == 1);
	assert_ptr_equal(msg_match_take(&m, 1, 5 | bit), &r[0]);
	assert_int_equal(msg_match_ahead(&m, &r[3]).same, 0);
	msg_match_free(&m);
}

/* What a model can not see: that tables grow, and that nobody looks through long queues. */
static void test_cost(void **state)
{
	struct msg_recv *r = calloc(1001, sizeof(*r));
	struct msg_match m;

	(void)state;
	assert_non_null(r);
	assert_int_equal(msg_match_init(&m), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		r[i] = (struct msg_recv){.tag = i, .src = 1};
		assert_int_equal(msg_match_post(&m, &r[i]), 0);
	}
	assert_int_equal(m.class[0].table.keys, 1000);
	assert_true(m.class[0].table.bits >= 10);
	r[1000] = (struct msg_recv){.tag = 0, .ignore = UINT64_MAX, .src = 2};
	assert_int_equal(msg_match_post(&m, &r[1000]), 0);
	assert_false(msg_match_ahead(&m, &r[1000]).clear); /* it is, but who knows */
	assert_true(msg_match_ahead(&m, &r[999]).clear);
	for (uint32_t i = 0; i < 970; i++)
		msg_match_cancel(&m, &r[i]);
	assert_true(msg_match_ahead(&m, &r[1000]).clear);
	msg_match_free(&m);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ahead),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_cost),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
