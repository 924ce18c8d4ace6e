#include "msg_reuse.h"

#include <stdlib.h>
#include <string.h>

#define NONE       UINT32_MAX
#define FIRST_BUFS 64
#define LOST_MOST  20 /* doublings */

/* ---- the table ---- */

static uint32_t *chain_of(const struct msg_reuse *r, uintptr_t addr)
{
	/* The upper bits of the product depend on all of the address. */
	return &r->chain[(uint64_t)addr * UINT64_C(0x9e3779b97f4a7c15) >> (64 - r->bits)];
}

static uint32_t find(const struct msg_reuse *r, uintptr_t addr)
{
	uint32_t i = r->chain ? *chain_of(r, addr) : NONE;

	while (i != NONE && r->buf[i].addr != addr)
		i = r->buf[i].next;
	return i;
}

static void link_buf(struct msg_reuse *r, uint32_t i)
{
	uint32_t *chain = chain_of(r, r->buf[i].addr);

	r->buf[i].next = *chain;
	*chain = i;
}

static bool make_chains(struct msg_reuse *r, uint32_t n)
{
	uint32_t *chain = malloc(n * sizeof(*chain));

	if (!chain)
		return false;
	free(r->chain);
	memset(chain, 0xff, n * sizeof(*chain));
	r->chain = chain;
	r->bits = (unsigned int)__builtin_ctz(n);
	for (uint32_t i = 0; i < r->n; i++)
		link_buf(r, i);
	return true;
}

static bool make_room(struct msg_reuse *r)
{
	uint32_t cap = r->cap ? 2 * r->cap : FIRST_BUFS;
	struct msg_reuse_buf *buf;

	if (r->n < r->cap)
		return true;
	buf = realloc(r->buf, cap * sizeof(*buf));
	if (!buf)
		return false;
	r->buf = buf;
	r->cap = cap;
	return true;
}

static void empty(struct msg_reuse *r)
{
	free(r->buf);
	free(r->chain);
	r->buf = NULL;
	r->chain = NULL;
	r->n = r->cap = r->frequent = 0;
	r->last = NONE;
}

/* ---- adaptation ---- */

static void rest(struct msg_reuse *r)
{
	empty(r);
	r->state = MSG_REUSE_RESTS;
	r->rested = r->rested ? 2 * r->rested : MSG_REUSE_REST;
	r->rested = r->rested < MSG_REUSE_LONG ? r->rested : MSG_REUSE_LONG;
	r->rest = r->rested;
	r->rests++;
}

static void stop(struct msg_reuse *r)
{
	r->state = MSG_REUSE_STOPPED;
	r->looks = r->hits = 0;
	r->stops++;
}

/* A look at a table that has stopped. */
static void judge(struct msg_reuse *r, bool hit)
{
	r->hits += hit;
	if (++r->looks < MSG_REUSE_WINDOW)
		return;
	if (r->hits < MSG_REUSE_HITS)
		rest(r);
	else
		r->rested = 0; /* it was not in vain */
	r->looks = r->hits = 0;
}

/* Chains begin to grow. False: no further buffer is wanted. */
static bool grow(struct msg_reuse *r)
{
	bool full = r->n >= MSG_REUSE_MOST;

	if (full && !r->adapts) {
		empty(r);
		return make_chains(r, MSG_REUSE_FIRST);
	}
	if (full || (r->adapts && (uint64_t)r->frequent * 100 < (uint64_t)r->n * MSG_REUSE_SHARE)) {
		stop(r);
		return false;
	}
	return make_chains(r, 2 * r->n);
}

static uint32_t add(struct msg_reuse *r, uintptr_t addr)
{
	if (r->state != MSG_REUSE_GROWS)
		return NONE;
	if (r->chain ? r->n >= UINT32_C(1) << r->bits && !grow(r)
		     : !make_chains(r, MSG_REUSE_FIRST))
		return NONE;
	if (!make_room(r))
		return NONE;
	r->buf[r->n] = (struct msg_reuse_buf){.addr = addr};
	link_buf(r, r->n);
	return r->n++;
}

/* ---- uses ---- */

static bool rests(struct msg_reuse *r)
{
	if (r->state != MSG_REUSE_RESTS)
		return false;
	if (--r->rest)
		return true;
	r->state = MSG_REUSE_GROWS;
	return false;
}

enum msg_reuse_say msg_reuse_use(struct msg_reuse *r, const void *addr, uint32_t len)
{
	uint32_t class = msg_costs_class(len), i;
	struct msg_reuse_buf *b;

	r->last = NONE;
	if (class == MSG_COSTS_CLASSES || r->least[class] == MSG_COSTS_NEVER || rests(r))
		return MSG_REUSE_COPY;
	i = find(r, (uintptr_t)addr);
	if (i == NONE)
		i = add(r, (uintptr_t)addr);
	if (r->state == MSG_REUSE_STOPPED)
		judge(r, i != NONE);
	if (i == NONE || r->state == MSG_REUSE_RESTS)
		return MSG_REUSE_COPY;
	r->last = i;
	b = &r->buf[i];
	b->uses += b->uses < UINT32_MAX;
	if (len > b->len) {
		b->len = len;
		b->kept = false;
	}
	if (b->uses < (uint64_t)r->least[class] << b->lost)
		return MSG_REUSE_COPY;
	r->frequent += !b->frequent;
	b->frequent = true;
	return b->kept ? MSG_REUSE_DIRECT : MSG_REUSE_REGISTER;
}

void msg_reuse_kept(struct msg_reuse *r)
{
	if (r->last != NONE)
		r->buf[r->last].kept = true;
}

void msg_reuse_lost(struct msg_reuse *r)
{
	struct msg_reuse_buf *b;

	if (r->last == NONE)
		return;
	b = &r->buf[r->last];
	r->frequent -= b->frequent;
	b->frequent = b->kept = false;
	b->uses = 0;
	b->lost += r->adapts && b->lost < LOST_MOST;
}

void msg_reuse_undo(struct msg_reuse *r)
{
	if (r->last != NONE && r->buf[r->last].uses)
		r->buf[r->last].uses--;
	r->last = NONE;
}

/* ---- made, gone ---- */

void msg_reuse_init(struct msg_reuse *r, const uint32_t least[MSG_COSTS_CLASSES], bool adapts)
{
	*r = (struct msg_reuse){.adapts = adapts, .state = MSG_REUSE_GROWS, .last = NONE};
	memcpy(r->least, least, sizeof(r->least));
}

void msg_reuse_free(struct msg_reuse *r)
{
	empty(r);
}

size_t msg_reuse_bytes(const struct msg_reuse *r)
{
	return r->cap * sizeof(*r->buf) +
	       (r->chain ? ((size_t)1 << r->bits) * sizeof(*r->chain) : 0);
}
