/* The events of a simulation, in the order of their times.
 *
 * Nearly all events are put in with one of a few delays: a cable, the time of a full packet. Those
 * with the same delay come out in the order in which they went in, so each delay is a lane, a
 * plain ring, and the next event is the earliest of a few heads. Delays beyond the number of
 * lanes (last packets of any length) share a heap.
 *
 * Of events at the same time those in the lane that was made first come first; then those of
 * the heap, in the order in which they went in.
 */
#ifndef WEFT_FABRIC_SIM_EVENT_H
#define WEFT_FABRIC_SIM_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_LANES 16

/* What happens, to which link or rank, and a number more. */
struct sim_event {
	uint64_t time;
	uint64_t what; /* SIM_WHAT() */
};

#define SIM_WHAT(kind, a, b) ((uint64_t)(kind) << 60 | (uint64_t)(a) << 30 | (b))
#define SIM_NUMBER_MAX       ((1u << 30) - 1)

static inline uint32_t sim_kind(uint64_t what)
{
	return what >> 60;
}

static inline uint32_t sim_a(uint64_t what)
{
	return what >> 30 & SIM_NUMBER_MAX;
}

static inline uint32_t sim_b(uint64_t what)
{
	return what & SIM_NUMBER_MAX;
}

struct sim_lane {
	uint64_t delay;
	uint32_t kind;
	struct sim_event *ring;
	uint32_t head, tail, mask; /* head and tail count on; size − 1, 0: no ring yet */
};

struct sim_entry {
	struct sim_event e;
	uint64_t seq;
};

struct sim_events {
	uint64_t now;
	uint64_t first[SIM_LANES]; /* time of each lane's head; UINT64_MAX: it is empty */
	struct sim_lane lane[SIM_LANES];
	uint32_t lanes, fixed; /* those for good come first */
	struct sim_entry *heap;
	size_t heap_n, heap_max;
	uint64_t seq;
	bool failed; /* no memory: the simulation can not go on */
};

void sim_events_init(struct sim_events *q);
void sim_events_free(struct sim_events *q);

/* delay from now on. Finds the lane, makes one, or takes the heap. */
void sim_at(struct sim_events *q, uint64_t delay, uint64_t what);
/* The same for a delay that is not to be seen again. */
void sim_at_odd(struct sim_events *q, uint64_t delay, uint64_t what);

/* A lane for good, to be made before anything is put in, and what is put in there. */
uint32_t sim_lane(struct sim_events *q, uint32_t kind, uint64_t delay);
bool sim_lane_grow(struct sim_events *q, struct sim_lane *l);

static inline void sim_push(struct sim_events *q, uint32_t number, uint64_t what)
{
	struct sim_lane *l = &q->lane[number];

	if (l->tail - l->head > l->mask || !l->ring) {
		if (!sim_lane_grow(q, l))
			return;
	}
	if (l->head == l->tail)
		q->first[number] = q->now + l->delay;
	l->ring[l->tail++ & l->mask] = (struct sim_event){q->now + l->delay, what};
}

/* Takes out the next, and sets the time to it. False: there is none. */
bool sim_next_of_heap(struct sim_events *q, uint64_t *what);

static inline bool sim_next(struct sim_events *q, uint64_t *what)
{
	uint64_t least = q->first[0];
	uint32_t at = 0;
	struct sim_lane *l;

	for (uint32_t i = 1; i < q->lanes; i++) {
		at = q->first[i] < least ? i : at;
		least = q->first[i] < least ? q->first[i] : least;
	}
	if (q->heap_n && q->heap[0].e.time < least)
		return sim_next_of_heap(q, what);
	if (least == UINT64_MAX)
		return false;
	l = &q->lane[at];
	*what = l->ring[l->head++ & l->mask].what;
	q->first[at] = l->head == l->tail ? UINT64_MAX : l->ring[l->head & l->mask].time;
	q->now = least;
	return true;
}

#endif
