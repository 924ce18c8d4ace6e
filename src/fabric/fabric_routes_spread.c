/* Who can not have the cable of the rule is given another.
 *
 * How high the water stands if all of them were poured over the cables that lead to any is the
 * least that the most can be. First each takes the cable that was agreed on, if there is one; the
 * others take the cheapest that has room. Cables that have more then give some away.
 *
 * Where every cable leads to all, that is enough. Otherwise a destination may find that all cables
 * which lead to it are full. Then others are moved: a breadth-first search from cable to cable,
 * each of which can give one of its destinations to the next, for one that has room. If there is
 * none, the cables it has seen are all full of destinations that can go nowhere else, so that no
 * choice could do with less, and the water rises. (That is the maximum flow by augmenting paths,
 * of destinations to cables.) */
#include "fabric_routes_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NOWHERE UINT16_MAX /* more than FABRIC_ROUTES_PORTS_MAX */

struct pour {
	struct fabric_lost *lost;
	uint32_t n, up, kinds;
	const uint8_t *lead;
	uint32_t *load;
	struct fabric_alike *alike;
	uint32_t most;
	/* Of the search, once there is one: */
	uint32_t *count; /* by kind and cable: those that were given */
	uint32_t *queue;
	uint32_t *before, *kind; /* by cable: that which can give it one, of this kind */
};

static bool leads(const struct pour *x, uint32_t kind, uint32_t q)
{
	return x->lead[(size_t)kind * x->up + q];
}

/* ---- how high ---- */

static uint64_t room_below(const struct pour *x, const uint8_t *useful, uint32_t level)
{
	uint64_t room = 0;

	for (uint32_t q = 0; q < x->up; q++)
		if (useful[q] && x->load[q] < level)
			room += level - x->load[q];
	return room;
}

/* If n are poured over the useful cables. */
static uint32_t water(const struct pour *x, const uint8_t *useful, uint32_t n)
{
	uint32_t lo = 0, hi = 0;

	for (uint32_t q = 0; q < x->up; q++)
		hi = x->load[q] > hi ? x->load[q] : hi;
	hi += n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (room_below(x, useful, mid) < n)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* All over all cables, and each kind over those that lead to it: a cable that lost many has much
 * room, which is of no use to those that it does not lead to. */
static uint32_t least_most(const struct pour *x, uint8_t *useful)
{
	uint32_t most = 0, level;

	memset(useful, 0, x->up);
	for (uint32_t i = 0, n; i < x->n; i += n) {
		uint32_t kind = x->lost[i].kind;

		for (n = 1; i + n < x->n && x->lost[i + n].kind == kind; n++)
			;
		level = water(x, x->lead + (size_t)kind * x->up, n);
		most = level > most ? level : most;
		for (uint32_t q = 0; q < x->up; q++)
			useful[q] |= leads(x, kind, q);
	}
	level = water(x, useful, x->n);
	return level > most ? level : most;
}

/* ---- by agreement and cost ---- */

/* The cheapest with room for one, from the cable of the rule on; FABRIC_NONE: none has. */
static uint32_t cheapest(const struct pour *x, const struct fabric_lost *e, uint64_t *cost)
{
	uint32_t best = FABRIC_NONE;

	for (uint32_t i = 1; i < x->up; i++) {
		uint32_t q = e->q + i < x->up ? e->q + i : e->q + i - x->up;
		uint64_t c;

		if (!leads(x, e->kind, q) || x->load[q] >= x->most)
			continue;
		c = fabric_alike_cost(x->alike, e, q);
		if (best == FABRIC_NONE || c < *cost) {
			best = q;
			*cost = c;
		}
	}
	return best;
}

static void take(struct pour *x, struct fabric_lost *e, uint32_t q)
{
	fabric_alike_take(x->alike, e, q);
	e->to = (uint16_t)q;
	x->load[q]++;
}

static void agree(struct pour *x)
{
	uint64_t cost = 0;

	for (uint32_t i = 0; i < x->n; i++) {
		uint32_t q = fabric_alike_agreed(x->alike, &x->lost[i]);

		x->lost[i].to = NOWHERE;
		if (q == FABRIC_NONE || !leads(x, x->lost[i].kind, q))
			continue;
		x->lost[i].to = (uint16_t)q;
		x->load[q]++;
	}
	for (uint32_t i = 0; i < x->n; i++) {
		uint32_t q =
			x->lost[i].to == NOWHERE ? cheapest(x, &x->lost[i], &cost) : FABRIC_NONE;

		if (q != FABRIC_NONE)
			take(x, &x->lost[i], q);
	}
}

/* One that a cable has too many gets another, or none. */
static bool give_one(struct pour *x, uint32_t from)
{
	struct fabric_lost *one = NULL;
	uint32_t to = FABRIC_NONE;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < x->n; i++) {
		uint64_t cost = 0;
		uint32_t q;

		if (x->lost[i].to != from)
			continue;
		q = cheapest(x, &x->lost[i], &cost);
		if (!one || (q != FABRIC_NONE && cost < least)) {
			one = &x->lost[i];
			to = q;
			least = q == FABRIC_NONE ? UINT64_MAX : cost;
		}
	}
	if (!one)
		return false; /* all are kept */
	x->load[from]--;
	one->to = NOWHERE;
	if (to != FABRIC_NONE)
		take(x, one, to);
	return true;
}

/* ---- moving others ---- */

#define UNSEEN UINT32_MAX
#define FIRST  (UINT32_MAX - 1)

static uint32_t see(struct pour *x, uint32_t n, uint32_t kind, uint32_t before)
{
	for (uint32_t q = 0; q < x->up; q++)
		if (leads(x, kind, q) && x->before[q] == UNSEEN) {
			x->before[q] = before;
			x->kind[q] = kind;
			x->queue[n++] = q;
		}
	return n;
}

/* A cable with room, or the one with the fewest that was seen, to which the water rises. */
static uint32_t seek(struct pour *x, uint32_t kind)
{
	uint32_t n, best;

	for (uint32_t q = 0; q < x->up; q++)
		x->before[q] = UNSEEN;
	n = see(x, 0, kind, FIRST);
	best = x->queue[0];
	for (uint32_t i = 0; i < n; i++) {
		uint32_t q = x->queue[i];

		if (x->load[q] < x->load[best])
			best = q;
		if (x->load[best] < x->most)
			return best;
		for (uint32_t c = 0; c < x->kinds && n < x->up; c++)
			if (x->count[(size_t)c * x->up + q])
				n = see(x, n, c, q);
	}
	x->most = x->load[best] + 1;
	return best;
}

/* One of a kind goes from a cable to another. */
static void move(struct pour *x, uint32_t kind, uint32_t from, uint32_t to)
{
	uint32_t i = 0;

	while (i + 1 < x->n && (x->lost[i].kind != kind || x->lost[i].to != from))
		i++;
	x->lost[i].to = (uint16_t)to;
	x->load[from]--;
	x->load[to]++;
	x->count[(size_t)kind * x->up + from]--;
	x->count[(size_t)kind * x->up + to]++;
}

static void make_room(struct pour *x, struct fabric_lost *e)
{
	uint32_t q = seek(x, e->kind);

	while (x->before[q] != FIRST) {
		move(x, x->kind[q], x->before[q], q);
		q = x->before[q];
	}
	take(x, e, q);
	x->count[(size_t)e->kind * x->up + q]++;
}

static int begin_search(struct pour *x)
{

	x->count = calloc((size_t)x->kinds * x->up, sizeof(*x->count));
	x->queue = malloc(x->up * sizeof(*x->queue));
	x->before = malloc(x->up * sizeof(*x->before));
	x->kind = malloc(x->up * sizeof(*x->kind));
	if (!x->count || !x->queue || !x->before || !x->kind)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->n; i++)
		if (x->lost[i].to != NOWHERE)
			x->count[(size_t)x->lost[i].kind * x->up + x->lost[i].to]++;
	return 0;
}

/* ---- all ---- */

static int pour(struct pour *x)
{
	int ret = 0;

	agree(x);
	for (uint32_t q = 0; q < x->up; q++)
		while (x->load[q] > x->most && give_one(x, q))
			;
	for (uint32_t i = 0; !ret && i < x->n; i++) {
		if (x->lost[i].to != NOWHERE)
			continue;
		if (!x->count)
			ret = begin_search(x);
		if (!ret)
			make_room(x, &x->lost[i]);
	}
	return ret;
}

int fabric_spread(struct fabric_losses *lost, const struct fabric_losses *all, uint32_t *load,
		  struct fabric_alike *alike)
{
	struct pour x = {.lost = lost->at,
			 .n = (uint32_t)lost->n,
			 .up = all->up,
			 .kinds = all->kinds,
			 .lead = all->lead,
			 .load = load,
			 .alike = alike};
	uint8_t *useful = malloc(x.up);
	int ret = -ENOMEM;

	if (useful) {
		x.most = least_most(&x, useful);
		ret = pour(&x);
	}
	free(x.count);
	free(x.queue);
	free(x.before);
	free(x.kind);
	free(useful);
	return ret;
}
