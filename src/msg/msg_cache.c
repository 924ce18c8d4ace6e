#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "msg_cache.h"

/* Searching. */

/* How many regions start at `addr` or before. */
static uint32_t n_start(const struct msg_cache *c, uintptr_t addr)
{
	uint32_t low = 0, n = c->n;

	while (n) {
		uint32_t half = n / 2;

		if (c->slots[low + half].span.start <= addr) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

/* How many regions end at `addr` or before. */
static uint32_t n_end(const struct msg_cache *c, uintptr_t addr)
{
	uint32_t low = 0, n = c->n;

	while (n) {
		uint32_t half = n / 2;

		if (c->slots[low + half].span.end <= addr) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

static struct msg_region *find(const struct msg_cache *c, struct msg_span s)
{
	/* Of those that start early enough, the last one ends last. */
	uint32_t i = n_start(c, s.start);

	return i && c->slots[i - 1].span.end >= s.end ? c->slots[i - 1].region : NULL;
}

static uint64_t length(struct msg_span s)
{
	return s.end - s.start;
}

/* Watching. */

/* Of s, only what no other region needs to be watched. */
static void unwatch(struct msg_cache *c, struct msg_span s)
{
	for (uint32_t i = n_end(c, s.start); s.start < s.end; i++) {
		struct msg_span gap = s;

		if (i < c->n && c->slots[i].span.start < s.end) {
			gap.end = c->slots[i].span.start;
			s.start = c->slots[i].span.end;
		} else {
			s.start = s.end;
		}
		if (gap.start < gap.end)
			c->conf.watch->unwatch(c->conf.watch_arg, gap);
	}
}

/* Going. */

static void dereg(struct msg_cache *c, struct msg_region *r)
{
	c->conf.reg->dereg(c->conf.reg_arg, r->mr);
	free(r);
}

/* The regions [from, to) are found no more; those in use live on until they are put back. */
static void forget(struct msg_cache *c, uint32_t from, uint32_t to)
{
	struct msg_region *r, *tmp;
	struct list_head gone;

	if (from >= to)
		return;
	list_init(&gone);
	for (uint32_t i = from; i < to; i++) {
		r = c->slots[i].region;
		c->bytes -= length(r->span);
		r->kept = false;
		list_del(&r->link);
		list_add_tail(&r->link, &gone);
	}
	memmove(&c->slots[from], &c->slots[to], (c->n - to) * sizeof(c->slots[0]));
	c->n -= to - from;
	list_for_each_safe (r, tmp, &gone, link) {
		unwatch(c, r->span);
		list_del(&r->link);
		if (!r->refs)
			dereg(c, r);
	}
}

static bool evict(struct msg_cache *c)
{
	struct msg_region *r = list_first(&c->unused, struct msg_region, link);
	uint32_t i;

	if (!r)
		return false;
	i = n_start(c, r->span.start);
	forget(c, i - 1, i);
	c->stats.evicted++;
	return true;
}

static void trim(struct msg_cache *c)
{
	while (c->n > c->conf.max_regions || c->bytes > c->conf.max_bytes) {
		if (!evict(c))
			return;
	}
}

static void invalidate(struct msg_cache *c, struct msg_span s)
{
	uint32_t from = n_end(c, s.start), to = from;

	while (to < c->n && c->slots[to].span.start < s.end)
		to++;
	c->stats.invalid += to - from;
	forget(c, from, to);
}

/* 0: what can be found is good. */
static int hear(struct msg_cache *c)
{
	struct msg_span s;
	int ret;

	if (!c->conf.watch)
		return -ENODEV;
	while ((ret = c->conf.watch->next(c->conf.watch_arg, &s))) {
		if (ret == -EAGAIN)
			return ret;
		if (ret < 0)
			s = (struct msg_span){0, UINTPTR_MAX};
		invalidate(c, s);
		if (ret < 0 && ret != -EOVERFLOW)
			return ret;
	}
	return 0;
}

/* Coming. */

static int region_new(struct msg_cache *c, struct msg_span s, struct msg_region **out)
{
	struct msg_region *r = malloc(sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	*r = (struct msg_region){.span = s, .refs = 1};
	list_init(&r->link);
	err = c->conf.reg->reg(c->conf.reg_arg, s, &r->mr);
	if (err) {
		free(r);
		return err;
	}
	c->in_use++;
	*out = r;
	return 0;
}

static bool grow(struct msg_cache *c)
{
	uint32_t cap = c->cap ? 2 * c->cap : 16;
	struct msg_cache_slot *slots;

	if (c->n < c->cap)
		return true;
	slots = realloc(c->slots, cap * sizeof(*slots));
	if (!slots)
		return false;
	c->slots = slots;
	c->cap = cap;
	return true;
}

static void insert(struct msg_cache *c, struct msg_region *r)
{
	/* None starts where r does and is not within it. */
	uint32_t from = r->span.start ? n_start(c, r->span.start - 1) : 0;
	uint32_t to = n_end(c, r->span.end), gone = to > from ? to - from : 0;

	/* First r, so that what r needs is watched without a break. */
	memmove(&c->slots[from + 1], &c->slots[from], (c->n - from) * sizeof(c->slots[0]));
	c->slots[from] = (struct msg_cache_slot){r->span, r};
	c->n++;
	c->bytes += length(r->span);
	r->kept = true;
	c->stats.merged += gone;
	forget(c, from + 1, from + 1 + gone);
}

/* s and what it overlaps, if that is not too much more. */
static struct msg_span with_neighbours(const struct msg_cache *c, struct msg_span s)
{
	uint32_t from = n_end(c, s.start), to = n_start(c, s.end - 1);
	struct msg_span all = s;

	if (from >= to)
		return s;
	if (c->slots[from].span.start < s.start)
		all.start = c->slots[from].span.start;
	if (c->slots[to - 1].span.end > s.end)
		all.end = c->slots[to - 1].span.end;
	return length(all) / 2 <= length(s) && length(all) <= c->conf.max_bytes ? all : s;
}

static int pass(struct msg_cache *c, struct msg_span s, struct msg_region **out)
{
	int err = region_new(c, s, out);

	if (!err)
		c->stats.passed++;
	return err;
}

static int keep(struct msg_cache *c, struct msg_span s, struct msg_region **out)
{
	struct msg_span all = with_neighbours(c, s);
	int err;

	if (!grow(c))
		return pass(c, s, out);
	/* Before the device looks up the pages: what changes after that must be told. */
	if (c->conf.watch->watch(c->conf.watch_arg, all))
		return pass(c, s, out);
	err = region_new(c, all, out);
	if (err && length(all) > length(s))
		err = region_new(c, s, out);
	if (!err)
		insert(c, *out);
	unwatch(c, all);
	trim(c);
	return err;
}

static void hold(struct msg_cache *c, struct msg_region *r)
{
	if (!r->refs++) {
		list_del(&r->link);
		c->in_use++;
	}
}

/* Whole pages, or nothing at all. */
static struct msg_span whole_pages(const struct msg_cache *c, const void *addr, size_t len)
{
	uintptr_t mask = c->conf.page - 1, start = (uintptr_t)addr, last = start + len - 1;

	if (!len || last < start || last > UINTPTR_MAX - c->conf.page)
		return (struct msg_span){0, 0};
	return (struct msg_span){start & ~mask, (last | mask) + 1};
}

/* Whether it is worth trying again, now that n of the unused have gone. */
static bool make_room(struct msg_cache *c, int err, unsigned int n)
{
	bool some = false;

	if (err != -ENOMEM && err != -ENOSPC && err != -EAGAIN)
		return false;
	while (n-- && evict(c))
		some = true;
	return some;
}

static int miss(struct msg_cache *c, struct msg_span s, bool sure, struct msg_region **out)
{
	int err;

	/* Twice as many go with each attempt: few attempts, whatever their number. */
	for (unsigned int n = 1;; n *= 2) {
		err = sure ? keep(c, s, out) : pass(c, s, out);
		if (!make_room(c, err, n))
			return err;
	}
}

/* Whether what is not found is not there; *out is NULL then. */
static bool look(struct msg_cache *c, struct msg_span s, struct msg_region **out)
{
	bool sure = !hear(c);

	*out = sure ? find(c, s) : NULL;
	if (*out) {
		c->stats.hits++;
		hold(c, *out);
	}
	return sure;
}

int msg_cache_find(struct msg_cache *c, const void *addr, size_t len, struct msg_region **out)
{
	struct msg_span s = whole_pages(c, addr, len);

	if (!length(s))
		return -EINVAL;
	if (!look(c, s, out))
		return -EAGAIN;
	return *out ? 0 : -ENOENT;
}

int msg_cache_get(struct msg_cache *c, const void *addr, size_t len, struct msg_region **out)
{
	struct msg_span s = whole_pages(c, addr, len);
	bool sure;
	int err;

	if (!length(s))
		return -EINVAL;
	sure = look(c, s, out);
	if (*out)
		return 0;
	err = miss(c, s, sure, out);
	if (!err)
		c->stats.misses++;
	return err;
}

void msg_cache_put(struct msg_cache *c, struct msg_region *r)
{
	assert(r->refs);
	if (--r->refs)
		return;
	c->in_use--;
	if (!r->kept) {
		dereg(c, r);
		return;
	}
	list_add_tail(&r->link, &c->unused);
	trim(c);
}

void msg_cache_drop(struct msg_cache *c, const void *addr, size_t len)
{
	struct msg_span s = whole_pages(c, addr, len);

	if (length(s))
		invalidate(c, s);
}

void msg_cache_flush(struct msg_cache *c)
{
	while (evict(c))
		;
}

void msg_cache_init(struct msg_cache *c, const struct msg_cache_conf *conf)
{
	*c = (struct msg_cache){.conf = *conf};
	list_init(&c->unused);
}

void msg_cache_free(struct msg_cache *c)
{
	assert(!c->in_use);
	msg_cache_flush(c);
	free(c->slots);
	c->slots = NULL;
}
