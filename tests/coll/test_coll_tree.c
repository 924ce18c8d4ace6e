/* Reductions and broadcasts along trees: played for every number of members, and their links
 * counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_tree.h"
#include "fabric_hsd.h"
#include "util_rand.h"

enum { MEMBERS = 200, WORDS = (MEMBERS + 63) / 64 };

/* Sanitizers make this ten times slower, and find nothing more in more of the same. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { THIN = 7 };
#else
enum { THIN = 1 };
#endif

/* ---- places ---- */

/* Hosts of a tree by their numbers: m hosts in a leaf, and so on up. */
static void places_by(struct coll_place *p, uint32_t n, const uint32_t *hosts,
		      const struct fabric_pgft *t)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t host = hosts ? hosts[i] : i;

		p[i] = (struct coll_place){.number = host};
		for (uint32_t l = 1; l <= t->h; l++)
			p[i].group[l - 1] = host / t->M[l];
	}
}

static struct fabric_pgft tree_of(const char *text)
{
	struct fabric_pgft t;
	char why[256] = "";

	if (fabric_pgft_parse(&t, text, why, sizeof(why)))
		fail_msg("%s", why);
	return t;
}

/* ---- playing a reduction ---- */

struct sum {
	uint64_t of[WORDS];
};

/* Nothing may be added twice. */
static void add(struct sum *to, const struct sum *what)
{
	for (size_t w = 0; w < WORDS; w++) {
		assert_int_equal(to->of[w] & what->of[w], 0);
		to->of[w] |= what->of[w];
	}
}

/* Both ends of each message agree on it. */
static void check_peer(const struct coll_tree *t, uint32_t i, struct coll_step s, uint32_t stage)
{
	struct coll_step other;

	assert_true(s.peer < t->n && s.peer != i);
	other = coll_tree_step(t, s.peer, stage);
	assert_int_equal(other.peer, i);
	if (s.kind == COLL_STEP_SWAP)
		assert_int_equal(other.kind, COLL_STEP_SWAP);
	else if (s.kind == COLL_STEP_SEND)
		assert_true(other.kind == COLL_STEP_ADD || other.kind == COLL_STEP_TAKE);
	else
		assert_int_equal(other.kind, COLL_STEP_SEND);
}

static void play(const struct coll_tree *t)
{
	static struct sum have[MEMBERS], before[MEMBERS];
	struct sum all = {{0}};

	memset(have, 0, sizeof(have));
	for (uint32_t i = 0; i < t->n; i++) {
		have[i].of[i / 64] = UINT64_C(1) << i % 64;
		all.of[i / 64] |= UINT64_C(1) << i % 64;
	}
	for (uint32_t stage = 0; stage < coll_tree_stages(t); stage++) {
		memcpy(before, have, sizeof(have));
		for (uint32_t i = 0; i < t->n; i++) {
			struct coll_step s = coll_tree_step(t, i, stage);

			if (s.kind == COLL_STEP_NONE)
				continue;
			check_peer(t, i, s, stage);
			if (s.kind == COLL_STEP_ADD || s.kind == COLL_STEP_SWAP)
				add(&have[i], &before[s.peer]);
			else if (s.kind == COLL_STEP_TAKE)
				have[i] = before[s.peer];
		}
	}
	for (uint32_t i = 0; i < t->n; i++)
		assert_memory_equal(&have[i], &all, sizeof(all));
}

/* ---- playing halves ---- */

/* Each member has one number for each element. Those that fold are as before, so only the cube. */
static void play_halves(const struct coll_tree *t, size_t count)
{
	uint32_t p = 1u << t->bits;
	uint64_t *sum = calloc(p * count + 1, sizeof(*sum));
	uint64_t *old = calloc(p * count + 1, sizeof(*old));

	assert_true(sum && old);
	for (uint32_t c = 0; c < p; c++)
		for (size_t e = 0; e < count; e++)
			sum[c * count + e] = (uint64_t)c * 1000003 + e;
	for (uint32_t k = 0; k < t->bits; k++) {
		uint32_t flip = 1u << k;

		memcpy(old, sum, p * count * sizeof(*sum));
		for (uint32_t c = 0; c < p; c++) {
			struct coll_part had = coll_tree_part(t, t->cube[c], k, count);
			struct coll_part keep = coll_tree_part(t, t->cube[c], k + 1, count);
			struct coll_part peer = coll_tree_part(t, t->cube[c ^ flip], k + 1, count);

			assert_int_equal(keep.count + peer.count, had.count);
			for (size_t e = keep.first; e < keep.first + keep.count; e++)
				sum[c * count + e] += old[(c ^ flip) * count + e];
		}
	}
	for (uint32_t k = t->bits; k-- > 0;) {
		uint32_t flip = 1u << k;

		memcpy(old, sum, p * count * sizeof(*sum));
		for (uint32_t c = 0; c < p; c++) {
			struct coll_part peer = coll_tree_part(t, t->cube[c ^ flip], k + 1, count);

			for (size_t e = peer.first; e < peer.first + peer.count; e++)
				sum[c * count + e] = old[(c ^ flip) * count + e];
		}
	}
	for (uint32_t c = 0; c < p; c++)
		for (size_t e = 0; e < count; e++)
			assert_true(sum[c * count + e] ==
				    (uint64_t)p * (p - 1) / 2 * 1000003 + p * (uint64_t)e);
	free(sum);
	free(old);
}

/* ---- playing a broadcast ---- */

static void play_bcast(const struct coll_tree *t, uint32_t root)
{
	uint32_t queue[MEMBERS], got = 1;
	bool has[MEMBERS] = {false};

	assert_int_equal(coll_tree_parent(t, root, root), COLL_NONE);
	queue[0] = root;
	has[root] = true;
	for (uint32_t i = 0; i < got; i++)
		for (uint32_t k = 0, to; (to = coll_tree_child(t, root, queue[i], k)) != COLL_NONE;
		     k++) {
			assert_true(to < t->n && !has[to]);
			assert_int_equal(coll_tree_parent(t, root, to), queue[i]);
			has[to] = true;
			queue[got++] = to;
		}
	assert_int_equal(got, t->n);
}

static void play_all(const struct coll_tree *t)
{
	assert_true(1u << t->bits <= t->n);
	assert_int_equal(t->n_given, t->n - (1u << t->bits));
	play(t);
	for (uint32_t root = 0; root < t->n; root += 1 + t->n / 5)
		play_bcast(t, root);
}

/* ---- every number ---- */

static void test_no_places(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= MEMBERS; n += n < 20 ? 1 : THIN) {
		struct coll_tree t;

		assert_int_equal(coll_tree_make(&t, n, NULL, 0), 0);
		/* As everybody does it: a power of two, and one fold if that is not all. */
		assert_true(2u << t.bits > n);
		assert_int_equal(t.folds, 1u << t.bits != n);
		play_all(&t);
		for (uint32_t root = 0; root < n; root++)
			play_bcast(&t, root);
		coll_tree_free(&t);
	}
}

static const char *const rlfts[] = {
	"1;24;1;1",
	"2;12,2;1,12;1,1",
	"2;12,12;1,6;1,2",
	"2;18,18;1,9;1,2",
	"3;4,4,8;1,4,4;1,1,1",
	"3;4,4,4;1,4,2;1,1,2",
	"3;6,6,12;1,6,6;1,1,1",
	"3;3,3,6;1,3,3;1,1,1",
	"3;5,5,10;1,5,5;1,1,1",
	"4;2,2,2,4;1,2,2,2;1,1,1,1",
};

static void test_along_trees(void **state)
{
	struct coll_place p[MEMBERS];

	(void)state;
	for (size_t i = 0; i < sizeof(rlfts) / sizeof(rlfts[0]); i++) {
		struct fabric_pgft f = tree_of(rlfts[i]);

		for (uint32_t n = 1; n <= fabric_hosts(&f) && n <= MEMBERS; n += THIN) {
			struct coll_tree t;

			places_by(p, n, NULL, &f);
			assert_int_equal(coll_tree_make(&t, n, p, f.h), 0);
			/* A fold for each level that is no power of two, at most. */
			assert_true(t.folds <= f.h);
			play_all(&t);
			coll_tree_free(&t);
		}
	}
}

/* Any hosts in any order, and places that no tree has. */
static void test_any_places(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 3000; seed += THIN) {
		struct coll_place p[MEMBERS];
		struct util_rand r;
		struct coll_tree t;
		uint32_t n, levels;

		util_rand_seed(&r, seed);
		n = 1 + (uint32_t)util_rand_below(&r, MEMBERS);
		levels = (uint32_t)util_rand_below(&r, COLL_LEVELS_MAX + 1);
		for (uint32_t i = 0; i < n; i++) {
			p[i].number = (uint32_t)util_rand_below(&r, 3);
			for (uint32_t l = 0; l < COLL_LEVELS_MAX; l++)
				p[i].group[l] = (uint32_t)util_rand_below(&r, 1 + seed % 17);
		}
		assert_int_equal(coll_tree_make(&t, n, p, levels), 0);
		play_all(&t);
		coll_tree_free(&t);
	}
}

static void test_halves(void **state)
{
	static const size_t counts[] = {0, 1, 2, 3, 7, 64, 65, 1000};
	struct fabric_pgft f = tree_of("2;12,12;1,6;1,2");
	struct coll_place p[MEMBERS];

	(void)state;
	for (uint32_t n = 1; n <= 144; n += n < 20 ? 1 : 5 * THIN) {
		struct coll_tree t;

		places_by(p, n, NULL, &f);
		assert_int_equal(coll_tree_make(&t, n, p, f.h), 0);
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
			play_halves(&t, counts[c]);
		coll_tree_free(&t);
	}
}

/* By hand: 24 hosts of two leaves of twelve: eight of each leaf form the cube, the other four of
 * each fold within it; the last bit is the only exchange between leaves. */
static void test_two_leaves(void **state)
{
	struct fabric_pgft f = tree_of("2;12,2;1,12;1,1");
	struct coll_place p[24];
	struct coll_tree t;

	(void)state;
	places_by(p, 24, NULL, &f);
	assert_int_equal(coll_tree_make(&t, 24, p, 2), 0);
	assert_int_equal(t.bits, 4);
	assert_int_equal(t.folds, 1);
	for (uint32_t i = 0; i < 24; i++) {
		if (i % 12 >= 8) {
			assert_int_equal(coll_tree_step(&t, i, 0).peer, i - 8);
			continue;
		}
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(coll_tree_step(&t, i, 1 + k).peer / 12, i / 12);
		assert_int_equal(coll_tree_step(&t, i, 4).peer, (i + 12) % 24);
	}
	coll_tree_free(&t);
}

static void test_refused(void **state)
{
	struct coll_tree t;

	(void)state;
	assert_int_equal(coll_tree_make(&t, 0, NULL, 0), -EINVAL);
	assert_int_equal(coll_tree_make(&t, (1u << 24) + 1, NULL, 0), -EINVAL);
	assert_int_equal(coll_tree_make(&t, 4, NULL, COLL_LEVELS_MAX + 1), -EINVAL);
	coll_tree_free(&t);
}

/* ---- links ---- */

/* A schedule as the text of a pattern (fabric_cps.h): one line per stage. Members are the hosts of
 * their numbers, so ranks are hosts. */
static char *reduction_text(const struct coll_tree *t)
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (uint32_t stage = 0; stage < coll_tree_stages(t); stage++) {
		for (uint32_t i = 0; i < t->n; i++) {
			struct coll_step s = coll_tree_step(t, i, stage);

			if (s.kind == COLL_STEP_SEND || s.kind == COLL_STEP_SWAP)
				fprintf(f, "%u>%u ", i, s.peer);
		}
		fprintf(f, "\n");
	}
	fclose(f);
	return text;
}

/* In the k-th step everybody who has it passes it on over half the distance of the step before. */
static char *bcast_text(const struct coll_tree *t, uint32_t root)
{
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (uint32_t d = 1u << 24; d; d /= 2) {
		for (uint32_t i = 0; i < t->n; i++) {
			uint32_t from = coll_tree_parent(t, root, i);

			if (from != COLL_NONE && (i + t->n - from) % t->n == d)
				fprintf(f, "%u>%u ", from, i);
		}
		fprintf(f, "\n");
	}
	fclose(f);
	return text;
}

static uint32_t worst_degree(const struct fabric_routes *r, uint32_t n, char *text)
{
	uint32_t hosts[MEMBERS], worst;
	struct fabric_hsd_job job = {.routes = r, .hosts = hosts, .threads = 1};
	struct fabric_hsd result;
	struct fabric_cps cps;
	char why[256] = "";
	FILE *f;

	for (uint32_t i = 0; i < n; i++)
		hosts[i] = i;
	assert_non_null(f = fmemopen(text, strlen(text), "r"));
	if (fabric_cps_read(&cps, f, "schedule", n, why, sizeof(why)))
		fail_msg("%u members: %s", n, why);
	fclose(f);
	job.cps = &cps;
	assert_int_equal(fabric_hsd(&job, &result), 0);
	assert_int_equal(result.worst.lost, 0);
	worst = result.worst.all;
	fabric_hsd_free(&result);
	fabric_cps_free(&cps);
	free(text);
	return worst;
}

static void check_links(const struct fabric_routes *r, uint32_t n)
{
	const struct fabric_pgft *f = &r->tree->pgft;
	struct coll_place p[MEMBERS];
	struct coll_tree t;

	places_by(p, n, NULL, f);
	assert_int_equal(coll_tree_make(&t, n, p, f->h), 0);
	assert_int_equal(worst_degree(r, n, reduction_text(&t)), 1);
	assert_int_equal(worst_degree(r, n, bcast_text(&t, 0)), 1);
	/* Around the end, a shift is one again where all hosts take part. */
	for (uint32_t root = 1; n == fabric_hosts(f) && root < n; root += 7)
		assert_int_equal(worst_degree(r, n, bcast_text(&t, root)), 1);
	coll_tree_free(&t);
}

/* The first n hosts, for every n: no two messages of a stage share a link. */
static void test_links(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rlfts) / sizeof(rlfts[0]); i++) {
		struct fabric_routing rule = {.kind = FABRIC_DMODK};
		struct fabric_pgft f = tree_of(rlfts[i]);
		struct fabric_routes routes;
		struct fabric_tree tree;

		fabric_tree_init(&tree, &f);
		assert_int_equal(fabric_routes_make(&routes, &tree, &rule, NULL), 0);
		for (uint32_t n = 2; n <= fabric_hosts(&f) && n <= MEMBERS; n += THIN)
			check_links(&routes, n);
		fabric_routes_free(&routes);
		fabric_tree_free(&tree);
	}
}

/* What the count would see: without places, doubling does not follow the tree. */
static void test_links_without_places(void **state)
{
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct fabric_pgft f = tree_of("2;12,12;1,6;1,2");
	struct fabric_routes routes;
	struct fabric_tree tree;
	struct coll_tree t;

	(void)state;
	fabric_tree_init(&tree, &f);
	assert_int_equal(fabric_routes_make(&routes, &tree, &rule, NULL), 0);
	assert_int_equal(coll_tree_make(&t, 144, NULL, 0), 0);
	assert_int_equal(worst_degree(&routes, 144, reduction_text(&t)), 2);
	coll_tree_free(&t);
	fabric_routes_free(&routes);
	fabric_tree_free(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_places),  cmocka_unit_test(test_along_trees),
		cmocka_unit_test(test_any_places), cmocka_unit_test(test_halves),
		cmocka_unit_test(test_two_leaves), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_links),      cmocka_unit_test(test_links_without_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
