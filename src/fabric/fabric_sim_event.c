#include "fabric_sim_event.h"

#include <stdlib.h>
#include <string.h>

void sim_events_init(struct sim_events *q)
{
	memset(q, 0, sizeof(*q));
	for (int i = 0; i < SIM_LANES; i++)
		q->first[i] = UINT64_MAX;
}

void sim_events_free(struct sim_events *q)
{
	for (uint32_t i = 0; i < q->lanes; i++)
		free(q->lane[i].ring);
	free(q->heap);
}

/* ---- lanes ---- */

uint32_t sim_lane(struct sim_events *q, uint32_t kind, uint64_t delay)
{
	q->lane[q->lanes] = (struct sim_lane){.delay = delay, .kind = kind};
	q->fixed++;
	return q->lanes++;
}

/* One that has this delay, a new one, or one that is not in use. SIM_LANES: there is none. */
static uint32_t find_lane(struct sim_events *q, uint32_t kind, uint64_t delay)
{
	uint32_t unused = SIM_LANES;

	for (uint32_t i = q->fixed; i < q->lanes; i++) {
		if (q->lane[i].kind == kind && q->lane[i].delay == delay)
			return i;
		if (q->first[i] == UINT64_MAX)
			unused = i;
	}
	if (q->lanes < SIM_LANES)
		unused = q->lanes++;
	if (unused < SIM_LANES) {
		q->lane[unused].kind = kind;
		q->lane[unused].delay = delay;
	}
	return unused;
}

/* Twice the room; the events keep their order. */
bool sim_lane_grow(struct sim_events *q, struct sim_lane *l)
{
	uint32_t size = l->ring ? 2 * (l->mask + 1) : 64;
	struct sim_event *ring;

	ring = size <= 1u << 30 ? malloc(size * sizeof(*ring)) : NULL;
	if (!ring) {
		q->failed = true;
		return false;
	}
	for (uint32_t i = l->head; i != l->tail; i++)
		ring[i & (size - 1)] = l->ring[i & l->mask];
	free(l->ring);
	l->ring = ring;
	l->mask = size - 1;
	return true;
}

/* ---- the heap ---- */

static bool before(const struct sim_entry *a, const struct sim_entry *b)
{
	return a->e.time != b->e.time ? a->e.time < b->e.time : a->seq < b->seq;
}

static void heap_push(struct sim_events *q, struct sim_event e)
{
	struct sim_entry entry = {e, q->seq++};
	size_t i = q->heap_n;

	if (q->heap_n == q->heap_max) {
		size_t max = q->heap_max ? 2 * q->heap_max : 64;
		struct sim_entry *heap = realloc(q->heap, max * sizeof(*heap));

		if (!heap) {
			q->failed = true;
			return;
		}
		q->heap = heap;
		q->heap_max = max;
	}
	q->heap_n++;
	for (; i > 0 && before(&entry, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = entry;
}

bool sim_next_of_heap(struct sim_events *q, uint64_t *what)
{
	struct sim_entry last = q->heap[--q->heap_n];
	size_t i = 0, child;

	q->now = q->heap[0].e.time;
	*what = q->heap[0].e.what;
	for (; (child = 2 * i + 1) < q->heap_n; i = child) {
		if (child + 1 < q->heap_n && before(&q->heap[child + 1], &q->heap[child]))
			child++;
		if (!before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
	}
	q->heap[i] = last;
	return true;
}

void sim_at_odd(struct sim_events *q, uint64_t delay, uint64_t what)
{
	heap_push(q, (struct sim_event){q->now + delay, what});
}

void sim_at(struct sim_events *q, uint64_t delay, uint64_t what)
{
	uint32_t number = find_lane(q, sim_kind(what), delay);

	if (number < SIM_LANES)
		sim_push(q, number, what);
	else
		sim_at_odd(q, delay, what);
}
