#include <string.h>

#include "msg_adapt.h"

/* Fewer say nothing: two crossings at the start of a program are no reason to give up. */
#define SOON      8
#define WATCH     16
#define WATCH_MAX 4096
/* So that four of five, evenly, are four fifths of any window. */
#define WINDOW 30

void msg_adapt_init(struct msg_adapt *a, uint32_t percent)
{
	memset(a, 0, sizeof(*a));
	a->percent = percent;
}

static uint32_t set_of(uint32_t src, uint64_t tag, uint64_t ignore)
{
	uint64_t h = tag ^ src * UINT64_C(0x9E3779B97F4A7C15) ^ (ignore << 7 | ignore >> 57);

	h = (h ^ h >> 32) * UINT64_C(0xBF58476D1CE4E5B9);
	h = (h ^ h >> 29) * UINT64_C(0x94D049BB133111EB);
	return (uint32_t)(h >> 40) % MSG_ADAPT_SETS;
}

/* tag: without the ignored bits. */
static bool is_of(const struct msg_adapt_entry *e, uint32_t src, uint64_t tag, uint64_t ignore)
{
	return e->used && e->src == src && e->tag == tag && e->ignore == ignore;
}

bool msg_adapt_agrees(const struct msg_adapt *a, uint32_t src, uint64_t tag, uint64_t ignore)
{
	const struct msg_adapt_entry *e;

	tag &= ~ignore;
	e = a->entry[set_of(src, tag, ignore)];
	for (int i = 0; i < MSG_ADAPT_WAYS; i++)
		if (is_of(&e[i], src, tag, ignore))
			return !e[i].off;
	return true;
}

static struct msg_adapt_entry *get(struct msg_adapt *a, uint32_t src, uint64_t tag, uint64_t ignore)
{
	struct msg_adapt_entry *e = a->entry[set_of(src, tag, ignore)], *oldest = e;

	for (int i = 0; i < MSG_ADAPT_WAYS; i++) {
		if (is_of(&e[i], src, tag, ignore))
			return &e[i];
		/* An empty one is older than any. */
		if (!e[i].used || (oldest->used && a->clock - e[i].used > a->clock - oldest->used))
			oldest = &e[i];
	}
	*oldest = (struct msg_adapt_entry){.tag = tag, .ignore = ignore, .src = src};
	return oldest;
}

static bool pays(const struct msg_adapt *a, const struct msg_adapt_entry *e)
{
	uint32_t n = e->n < WINDOW ? e->n : WINDOW;

	return 100u * (uint32_t)__builtin_popcount(e->history) >= a->percent * n;
}

static void turn(struct msg_adapt_entry *e, bool off)
{
	e->off = off;
	e->n = 0;
	e->history = 0;
}

static void stop(struct msg_adapt *a, struct msg_adapt_entry *e)
{
	/* To have paid for a while is what the watching promised. */
	if (!e->watch || e->n > 2 * WINDOW)
		e->watch = WATCH;
	else if (e->watch < WATCH_MAX)
		e->watch = (uint16_t)(2 * e->watch);
	turn(e, true);
	a->stops++;
}

void msg_adapt_result(struct msg_adapt *a, uint32_t src, uint64_t tag, uint64_t ignore, bool asked,
		      bool hit)
{
	struct msg_adapt_entry *e = get(a, src, tag & ~ignore, ignore);

	if (!++a->clock) /* 0 says "empty" */
		a->clock = 1;
	e->used = a->clock;
	/* Those that were posted before the last change tell nothing of what it brought. */
	if (asked == e->off)
		return;
	e->history = (e->history << 1 | hit) & ((1u << WINDOW) - 1);
	if (e->n < UINT16_MAX)
		e->n++;
	if (!e->off && e->n >= SOON && !pays(a, e)) {
		stop(a, e);
	} else if (e->off && e->n >= e->watch && pays(a, e)) {
		turn(e, false);
		a->resumptions++;
	}
}
