/* The registration cache against a model: a small memory whose pages have versions, a device
 * that remembers which versions it was given, and a monitor that can be late, lose things, refuse.
 * test_msg_monitor.c has the kernel's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "msg_cache.h"
#include "util_rand.h"

#define PAGE   ((size_t)4096)
#define PAGES  64u
#define BASE   ((uintptr_t)0x700000)
#define REGS   512u
#define EVENTS 64u
#define HELD   12u

struct mr {
	struct msg_span s;
	uint32_t version[PAGES];
	uint64_t put; /* when it was last put back */
	uint32_t refs;
	bool live, kept;
};

struct rig {
	struct msg_cache c;
	struct util_rand rand;
	struct mr mr[REGS], *last;
	uint32_t live, device_max;
	size_t device_span; /* longest that can be registered */
	uint32_t version[PAGES];
	bool armed[PAGES], hole[PAGES], unwatchable[PAGES];
	struct msg_span events[EVENTS];
	uint32_t n_events;
	bool lost, busy, dead;
	struct msg_region *held[HELD];
	uint64_t now, n_full, n_wide;
};

static uint32_t page_of(uintptr_t addr)
{
	assert_true(addr >= BASE && addr <= BASE + PAGES * PAGE && addr % PAGE == 0);
	return (uint32_t)((addr - BASE) / PAGE);
}

static bool within(struct msg_span a, struct msg_span b)
{
	return a.start >= b.start && a.end <= b.end;
}

/* Device. */

static int dev_reg(void *arg, struct msg_span s, void **out)
{
	struct rig *r = arg;
	struct mr *mr = NULL;

	assert_true(s.start < s.end);
	if (s.end - s.start > r->device_span)
		return -EINVAL;
	for (uint32_t i = page_of(s.start); i < page_of(s.end); i++) {
		if (r->hole[i])
			return -EFAULT;
	}
	if (r->live >= r->device_max) {
		r->n_full++;
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < REGS && !mr; i++)
		mr = r->mr[i].live ? NULL : &r->mr[i];
	assert_non_null(mr);
	*mr = (struct mr){.s = s, .live = true};
	memcpy(mr->version, r->version, sizeof(mr->version));
	r->live++;
	r->last = mr;
	*out = mr;
	return 0;
}

static bool good(const struct rig *r, const struct mr *mr)
{
	for (uint32_t i = page_of(mr->s.start); i < page_of(mr->s.end); i++) {
		if (mr->version[i] != r->version[i])
			return false;
	}
	return true;
}

/* Only what is unused goes; and if neither a change nor a larger one is the reason, the one that
 * was unused longest. */
static void dev_dereg(void *arg, void *p)
{
	struct rig *r = arg;
	struct mr *mr = p;
	bool merged = r->last && r->last->live && r->last != mr && within(mr->s, r->last->s);

	assert_true(mr->live);
	assert_int_equal(mr->refs, 0);
	if (mr->kept && good(r, mr) && !r->lost && !r->dead && !merged) {
		for (uint32_t i = 0; i < REGS; i++) {
			const struct mr *o = &r->mr[i];

			assert_false(o->live && o->kept && !o->refs && good(r, o) &&
				     o->put < mr->put);
		}
	}
	mr->live = false;
	r->live--;
}

static const struct msg_reg_ops dev_ops = {.reg = dev_reg, .dereg = dev_dereg};

/* Monitor. */

static int mon_watch(void *arg, struct msg_span s)
{
	struct rig *r = arg;

	if (r->dead)
		return -ENODEV;
	for (uint32_t i = page_of(s.start); i < page_of(s.end); i++) {
		if (r->unwatchable[i])
			return -EINVAL;
	}
	for (uint32_t i = page_of(s.start); i < page_of(s.end); i++)
		r->armed[i] = true;
	return 0;
}

static void mon_unwatch(void *arg, struct msg_span s)
{
	struct rig *r = arg;

	for (uint32_t i = page_of(s.start); i < page_of(s.end); i++)
		r->armed[i] = false;
}

static int mon_next(void *arg, struct msg_span *s)
{
	struct rig *r = arg;

	if (r->dead)
		return -ENODEV;
	if (r->busy)
		return -EAGAIN;
	if (r->lost) {
		/* those that were lost, and the rest with them; `lost` ends with the call */
		if (!r->n_events)
			return 0;
		r->n_events = 0;
		return -EOVERFLOW;
	}
	if (!r->n_events)
		return 0;
	*s = r->events[0];
	memmove(r->events, r->events + 1, --r->n_events * sizeof(r->events[0]));
	return 1;
}

static const struct msg_watch_ops mon_ops = {
	.watch = mon_watch, .unwatch = mon_unwatch, .next = mon_next};

/* Steps. */

static struct msg_span some_pages(struct rig *r, uint32_t max)
{
	uint32_t n = 1 + (uint32_t)util_rand_below(&r->rand, max);
	uint32_t at = (uint32_t)util_rand_below(&r->rand, PAGES - n + 1);

	return (struct msg_span){BASE + at * PAGE, BASE + (at + n) * PAGE};
}

static void change(struct rig *r)
{
	struct msg_span s = some_pages(r, 6);
	bool tell = false, unmap = util_rand_below(&r->rand, 2);

	for (uint32_t i = page_of(s.start); i < page_of(s.end); i++) {
		tell |= r->armed[i];
		r->version[i]++;
		if (unmap)
			r->armed[i] = false;
		r->hole[i] = !util_rand_below(&r->rand, 16);
		r->unwatchable[i] = !util_rand_below(&r->rand, 24);
		if (r->unwatchable[i])
			r->armed[i] = false;
	}
	if (!tell)
		return;
	if (r->n_events == EVENTS)
		r->lost = true;
	else
		r->events[r->n_events++] = s;
}

static bool expect_hit(const struct rig *r, struct msg_span s)
{
	if (r->dead || r->busy || (r->lost && r->n_events))
		return false;
	for (uint32_t i = 0; i < r->c.n; i++) {
		const struct mr *mr = r->c.slots[i].region->mr;

		if (within(s, mr->s) && good(r, mr))
			return true;
	}
	return false;
}

static void check_bound(const struct rig *r)
{
	const struct msg_cache *c = &r->c;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		assert_true(c->slots[i].region->kept);
		bytes += c->slots[i].span.end - c->slots[i].span.start;
		if (i)
			assert_true(c->slots[i - 1].span.start < c->slots[i].span.start &&
				    c->slots[i - 1].span.end < c->slots[i].span.end);
	}
	assert_int_equal(bytes, c->bytes);
	assert_true(list_empty(&c->unused) ||
		    (c->n <= c->conf.max_regions && bytes <= c->conf.max_bytes));
}

/* After everything was heard: what can be found is good, and watched; nothing else is. */
static void check_watched(const struct rig *r)
{
	bool need[PAGES] = {false};

	for (uint32_t i = 0; i < r->c.n; i++) {
		const struct mr *mr = r->c.slots[i].region->mr;

		assert_true(good(r, mr));
		for (uint32_t k = page_of(mr->s.start); k < page_of(mr->s.end); k++)
			need[k] = true;
	}
	assert_memory_equal(need, r->armed, sizeof(need));
}

static void got(struct rig *r, struct msg_region *reg, struct msg_span s, bool hit)
{
	struct mr *mr = reg->mr;

	assert_true(mr->live && within(s, reg->span));
	assert_int_equal(mr->s.start, reg->span.start);
	assert_int_equal(mr->s.end, reg->span.end);
	assert_true(good(r, mr));
	if (!hit) {
		mr->kept = reg->kept;
		assert_true(reg->span.end - reg->span.start <= 2 * (s.end - s.start) + PAGE);
		r->n_wide += reg->span.end - reg->span.start > s.end - s.start;
	}
	mr->refs++;
}

/* Nothing is registered. */
static int look(struct rig *r, uint32_t slot, uintptr_t addr, size_t len)
{
	uint32_t live = r->live;
	bool deaf = !r->c.conf.watch || r->busy || r->dead;
	int err = msg_cache_find(&r->c, (void *)addr, len, &r->held[slot]);

	assert_true(r->live <= live);
	if (err)
		assert_int_equal(err, deaf ? -EAGAIN : -ENOENT);
	return err;
}

static void get(struct rig *r, uint32_t slot)
{
	struct msg_span s = some_pages(r, util_rand_below(&r->rand, 4) ? 5 : 20);
	uintptr_t skew = util_rand_below(&r->rand, PAGE), cut = util_rand_below(&r->rand, PAGE);
	size_t len = s.end - s.start - skew;
	uint64_t hits = r->c.stats.hits;
	bool hit = expect_hit(r, s), holes = false, only_look = !util_rand_below(&r->rand, 4);
	int err;

	len -= len > cut + PAGE ? cut : 0;
	for (uint32_t i = page_of(s.start); i < page_of(s.end); i++)
		holes |= r->hole[i];
	err = only_look ? look(r, slot, s.start + skew, len)
			: msg_cache_get(&r->c, (void *)(s.start + skew), len, &r->held[slot]);
	if (err && only_look) {
		r->held[slot] = NULL;
		assert_false(hit);
	} else if (err) {
		r->held[slot] = NULL;
		assert_false(hit);
		switch (err) {
		case -EFAULT:
			assert_true(holes);
			break;
		case -EINVAL:
			assert_true(s.end - s.start > r->device_span);
			break;
		default:
			assert_int_equal(err, -ENOMEM);
			assert_true(r->live >= r->device_max);
		}
	} else {
		assert_int_equal(r->c.stats.hits - hits, hit);
		got(r, r->held[slot], s, hit);
	}
	r->lost = r->lost && r->n_events;
	if (!r->busy && !r->dead)
		check_watched(r);
}

static void put(struct rig *r, uint32_t slot)
{
	struct mr *mr = r->held[slot]->mr;

	mr->refs--;
	mr->put = ++r->now;
	mr->kept = r->held[slot]->kept; /* else it goes for a reason that is past */
	msg_cache_put(&r->c, r->held[slot]);
	r->held[slot] = NULL;
}

static void rig_init(struct rig *r, uint64_t start, bool off)
{
	struct msg_cache_conf conf = {.page = PAGE,
				      .reg = &dev_ops,
				      .reg_arg = r,
				      .watch = off ? NULL : &mon_ops,
				      .watch_arg = r};

	memset(r, 0, sizeof(*r));
	util_rand_seed(&r->rand, start);
	conf.max_regions = (uint32_t)util_rand_below(&r->rand, 24);
	conf.max_bytes = util_rand_below(&r->rand, 2 * PAGES) * PAGE;
	r->device_max = 1 + (uint32_t)util_rand_below(&r->rand, 40);
	r->device_span = (8 + util_rand_below(&r->rand, 40)) * PAGE;
	msg_cache_init(&r->c, &conf);
}

static void rig_free(struct rig *r)
{
	bool none[PAGES] = {false};

	for (uint32_t i = 0; i < HELD; i++) {
		if (r->held[i])
			put(r, i);
	}
	msg_cache_flush(&r->c);
	assert_int_equal(r->c.n, 0);
	assert_int_equal(r->c.bytes, 0);
	assert_int_equal(r->live, 0);
	assert_memory_equal(none, r->armed, sizeof(none));
	msg_cache_free(&r->c);
}

static void step(struct rig *r)
{
	uint32_t slot = (uint32_t)util_rand_below(&r->rand, HELD);

	switch (util_rand_below(&r->rand, 40)) {
	case 0:
		msg_cache_flush(&r->c);
		assert_true(list_empty(&r->c.unused));
		break;
	case 1:
		r->busy = !r->busy;
		break;
	case 2:
		for (uint32_t i = util_rand_below(&r->rand, 8) ? 0 : 4 * EVENTS; i; i--)
			change(r);
		break;
	case 3 ... 10:
		change(r);
		break;
	default:
		if (r->held[slot])
			put(r, slot);
		else
			get(r, slot);
		r->busy = false;
	}
	check_bound(r);
}

static uint64_t seed; /* printed when something fails */

static void test_model(void **state)
{
	const char *env = getenv("SEED");
	uint64_t first = env ? strtoull(env, NULL, 0) : 1, n = env ? 1 : 400;
	struct msg_cache_stats all = {0};
	uint64_t full = 0, wide = 0;
	static struct rig r;

	(void)state;
	for (seed = first; seed < first + n; seed++) {
		rig_init(&r, seed, false);
		for (int i = 0; i < 2000; i++)
			step(&r);
		all.hits += r.c.stats.hits;
		all.misses += r.c.stats.misses;
		all.passed += r.c.stats.passed;
		all.evicted += r.c.stats.evicted;
		all.merged += r.c.stats.merged;
		all.invalid += r.c.stats.invalid;
		full += r.n_full;
		wide += r.n_wide;
		rig_free(&r);
	}
	printf("hits %lu misses %lu passed %lu evicted %lu merged %lu invalid %lu; device full "
	       "%lu, widened %lu\n",
	       all.hits, all.misses, all.passed, all.evicted, all.merged, all.invalid, full, wide);
	assert_true(env || (all.hits && all.passed && all.evicted && all.merged && all.invalid &&
			    full && wide));
}

/* By hand: limits that do not bind, unless a test wants them. */
static void plain(struct rig *r, uint32_t max_regions, uint64_t max_bytes)
{
	rig_init(r, 1, false);
	r->c.conf.max_regions = max_regions;
	r->c.conf.max_bytes = max_bytes;
	r->device_max = REGS;
	r->device_span = PAGES * PAGE;
}

/* Gets and puts back; whether it was a hit. */
static bool touch(struct rig *r, uint32_t page, uint32_t n)
{
	struct msg_span s = {BASE + page * PAGE, BASE + (page + n) * PAGE};
	uint64_t hits = r->c.stats.hits;

	assert_int_equal(msg_cache_get(&r->c, (void *)(s.start + 1), n * PAGE - 2, &r->held[0]), 0);
	got(r, r->held[0], s, r->c.stats.hits > hits);
	put(r, 0);
	return r->c.stats.hits > hits;
}

static void test_basics(void **state)
{
	static struct rig r;
	struct msg_region *reg;

	(void)state;
	plain(&r, 8, PAGES * PAGE);
	assert_int_equal(msg_cache_get(&r.c, (void *)BASE, 0, &reg), -EINVAL);
	assert_int_equal(msg_cache_get(&r.c, (void *)BASE, SIZE_MAX, &reg), -EINVAL);
	assert_int_equal(msg_cache_get(&r.c, (void *)(UINTPTR_MAX - 10), 5, &reg), -EINVAL);
	assert_false(touch(&r, 3, 4));
	assert_true(touch(&r, 3, 4));
	assert_true(touch(&r, 4, 2));
	assert_false(touch(&r, 8, 1)); /* next to it is not in it */
	assert_int_equal(r.c.n, 2);
	assert_false(touch(&r, 2, 10)); /* takes both in */
	assert_int_equal(r.c.n, 1);
	assert_int_equal(r.c.stats.merged, 2);
	assert_int_equal(r.live, 1);
	rig_free(&r);
}

/* What is dropped is found no more, and nothing else is gone. */
static void test_drop(void **state)
{
	static struct rig r;
	struct msg_region *reg;

	(void)state;
	plain(&r, 8, PAGES * PAGE);
	assert_int_equal(msg_cache_find(&r.c, (void *)BASE, 0, &reg), -EINVAL);
	assert_int_equal(msg_cache_find(&r.c, (void *)BASE, 1, &reg), -ENOENT);
	assert_false(touch(&r, 3, 4));
	assert_false(touch(&r, 8, 1));
	msg_cache_drop(&r.c, (void *)(BASE + 3 * PAGE), 1);
	msg_cache_drop(&r.c, (void *)(BASE + 20 * PAGE), 10 * PAGE);
	msg_cache_drop(&r.c, (void *)BASE, 0);
	assert_int_equal(r.live, 1);
	assert_int_equal(msg_cache_find(&r.c, (void *)(BASE + 3 * PAGE), 1, &reg), -ENOENT);
	assert_true(touch(&r, 8, 1));
	rig_free(&r);
}

/* Blocks that share a page with their neighbours: what is registered stays in proportion, and
 * the second time all are there. */
static void test_blocks(void **state)
{
	static struct rig r;

	(void)state;
	plain(&r, 100, 4 * PAGES * PAGE);
	for (uint32_t i = 0; i + 4 <= PAGES; i += 3)
		assert_false(touch(&r, i, 4));
	assert_true(r.c.bytes <= 2 * PAGES * PAGE);
	for (uint32_t i = 0; i + 4 <= PAGES; i += 3)
		assert_true(touch(&r, i, 4));
	rig_free(&r);
}

static void test_limits(void **state)
{
	static struct rig r;

	(void)state;
	plain(&r, 3, 10 * PAGE);
	touch(&r, 0, 1);
	touch(&r, 10, 1);
	touch(&r, 20, 1);
	assert_true(touch(&r, 0, 1));
	assert_false(touch(&r, 30, 1));
	assert_true(touch(&r, 0, 1)); /* page 10 was unused longest */
	assert_true(touch(&r, 20, 1));
	assert_false(touch(&r, 10, 1));
	assert_false(touch(&r, 40, 10)); /* as many bytes as there may be */
	assert_int_equal(r.c.n, 1);
	assert_false(touch(&r, 40, 11)); /* more: not kept beyond its use */
	assert_int_equal(r.c.n, 0);
	rig_free(&r);
}

/* In use, and gone: found no more, but alive until it is put back. */
static void test_in_use(void **state)
{
	static struct rig r;
	struct msg_region *reg, *again;

	(void)state;
	plain(&r, 8, PAGES * PAGE);
	assert_int_equal(msg_cache_get(&r.c, (void *)BASE, 4 * PAGE, &reg), 0);
	r.events[r.n_events++] = (struct msg_span){BASE + PAGE, BASE + 2 * PAGE};
	assert_int_equal(msg_cache_get(&r.c, (void *)BASE, 4 * PAGE, &again), 0);
	assert_ptr_not_equal(reg, again);
	assert_int_equal(r.live, 2);
	msg_cache_put(&r.c, reg);
	assert_int_equal(r.live, 1);
	msg_cache_put(&r.c, again);
	assert_int_equal(r.live, 1);
	rig_free(&r);
}

/* Without a monitor, or with one that was left behind by fork: for each use. */
static void test_off(void **state)
{
	static struct rig r;

	(void)state;
	for (int off = 0; off < 2; off++) {
		rig_init(&r, 1, off);
		r.c.conf.max_regions = 100;
		r.c.conf.max_bytes = PAGES * PAGE;
		r.device_max = REGS;
		r.device_span = PAGES * PAGE;
		assert_false(touch(&r, 0, 4));
		assert_int_equal(touch(&r, 0, 4), !off);
		r.dead = true;
		assert_false(touch(&r, 0, 4));
		assert_false(touch(&r, 0, 4));
		assert_int_equal(r.live, 0);
		memset(r.armed, 0, sizeof(r.armed));
		rig_free(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_basics), cmocka_unit_test(test_drop),
		cmocka_unit_test(test_blocks), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_in_use), cmocka_unit_test(test_off),
		cmocka_unit_test(test_model),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (failed)
		fprintf(stderr, "seed %lu\n", seed);
	return failed;
}
