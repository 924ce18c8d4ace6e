/* Timers: a binary heap ordered by time. */
#include <errno.h>
#include <stdlib.h>
#include "rnic_engine.h"

void rnic_timer_init(struct rnic_timer *t, void (*fire)(struct rnic_timer *t, uint64_t now))
{
	t->at = 0;
	t->slot = -1;
	t->fire = fire;
}

static void heap_put(struct rnic_engine *e, int slot, struct rnic_timer *t)
{
	e->heap[slot] = t;
	t->slot = slot;
}

static void sift_up(struct rnic_engine *e, struct rnic_timer *t)
{
	int slot = t->slot;

	while (slot > 0 && e->heap[(slot - 1) / 2]->at > t->at) {
		heap_put(e, slot, e->heap[(slot - 1) / 2]);
		slot = (slot - 1) / 2;
	}
	heap_put(e, slot, t);
}

static void sift_down(struct rnic_engine *e, struct rnic_timer *t)
{
	int slot = t->slot;

	for (;;) {
		int child = 2 * slot + 1;

		if (child + 1 < e->n_timers && e->heap[child + 1]->at < e->heap[child]->at)
			child++;
		if (child >= e->n_timers || e->heap[child]->at >= t->at)
			break;
		heap_put(e, slot, e->heap[child]);
		slot = child;
	}
	heap_put(e, slot, t);
}

int rnic_timer_arm(struct rnic_engine *e, struct rnic_timer *t, uint64_t at)
{
	if (t->slot < 0) {
		if (e->n_timers == e->heap_cap) {
			int cap = e->heap_cap ? 2 * e->heap_cap : 64;
			struct rnic_timer **heap = realloc(e->heap, cap * sizeof(*heap));

			if (!heap)
				return -ENOMEM;
			e->heap = heap;
			e->heap_cap = cap;
		}
		t->slot = e->n_timers++;
	}
	t->at = at;
	sift_up(e, t);
	sift_down(e, t);
	rnic_engine_wake(e, at);
	return 0;
}

void rnic_timer_cancel(struct rnic_engine *e, struct rnic_timer *t)
{
	struct rnic_timer *last;
	int slot = t->slot;

	if (slot < 0)
		return;
	t->slot = -1;
	last = e->heap[--e->n_timers];
	if (last == t)
		return;
	heap_put(e, slot, last);
	sift_up(e, last);
	sift_down(e, last);
}

uint64_t rnic_timer_next(const struct rnic_engine *e)
{
	return e->n_timers ? e->heap[0]->at : UINT64_MAX;
}

void rnic_timer_run(struct rnic_engine *e, uint64_t now)
{
	while (e->n_timers && e->heap[0]->at <= now) {
		struct rnic_timer *t = e->heap[0];

		rnic_timer_cancel(e, t);
		t->fire(t, now);
	}
}
