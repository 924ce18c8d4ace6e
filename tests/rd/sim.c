/* Events in a binary heap; links. */
#include <string.h>

#include "sim.h"

void sim_init(struct sim *sim, uint64_t seed)
{
	*sim = (struct sim){.now = SEC};
	util_rand_seed(&sim->r, seed);
}

void sim_free(struct sim *sim)
{
	for (size_t i = 0; i < sim->n; i++)
		free(sim->heap[i].arg);
	free(sim->heap);
}

static bool sooner(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->serial < b->serial;
}

void sim_at(struct sim *sim, uint64_t at, sim_fn fn, void *obj, void *arg)
{
	struct sim_event e = {at, sim->serial++, fn, obj, arg};
	size_t i = sim->n++;

	if (sim->n > sim->cap) {
		sim->cap = sim->cap ? 2 * sim->cap : 1024;
		sim->heap = realloc(sim->heap, sim->cap * sizeof(e));
		assert_non_null(sim->heap);
	}
	for (; i && sooner(&e, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = e;
}

static struct sim_event take_first(struct sim *sim)
{
	struct sim_event first = sim->heap[0], last = sim->heap[--sim->n];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < sim->n) {
		if (child + 1 < sim->n && sooner(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (!sooner(&sim->heap[child], &last))
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = last;
	return first;
}

void sim_run(struct sim *sim, uint64_t until)
{
	while (sim->n && sim->heap[0].at <= until) {
		struct sim_event e = take_first(sim);

		sim->now = e.at;
		e.fn(sim, e.obj, e.arg);
		free(e.arg);
	}
	sim->now = until;
}

static bool chance(struct sim *sim, unsigned int of_10000)
{
	return of_10000 && util_rand_below(&sim->r, 10000) < of_10000;
}

static void deliver(struct sim *sim, struct sim_link *link, sim_fn fn, void *obj, void *packet)
{
	uint64_t at = link->busy_until + link->delay;

	if (link->jitter)
		at += util_rand_below(&sim->r, link->jitter);
	if (at < link->last)
		at = link->last;
	link->last = at;
	if (chance(sim, link->reorder))
		at += util_rand_below(&sim->r, link->reorder_by);
	sim_at(sim, at, fn, obj, packet);
}

/* The queue is never stored: its length is how long the link will be busy with it. */
void sim_link_send(struct sim *sim, struct sim_link *link, uint32_t bytes, sim_fn fn, void *obj,
		   void *packet, size_t len)
{
	uint64_t ahead = link->busy_until > sim->now ? link->busy_until - sim->now : 0;
	bool down = sim->now >= link->down_from && sim->now < link->down_to;

	if (down || ahead * link->rate / 8 / SEC + bytes > link->queue || chance(sim, link->loss)) {
		link->dropped++;
		free(packet);
		return;
	}
	link->packets++;
	link->bytes += bytes;
	link->busy_until = sim->now + ahead + bytes * 8 * SEC / link->rate;
	if (chance(sim, link->dup)) {
		void *copy = malloc(len);

		assert_non_null(copy);
		deliver(sim, link, fn, obj, memcpy(copy, packet, len));
	}
	deliver(sim, link, fn, obj, packet);
}
