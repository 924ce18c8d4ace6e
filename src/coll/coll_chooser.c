#include "coll_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	AT_ONCE = 3,  /* times that ways are tried, one behind the other, ... */
	PERIOD = 128, /* ... and calls until they are again, four times as many after each */
	LONGEST = 1 << 15,
	LONG = 16 << 10, /* bytes from which on a program may have few calls, and each takes long */
	LONG_TRIES = 3,
	LONG_PERIOD = 32,
	MEMORY = 4, /* of the times that all have agreed, so many count */
};

#define FAR   8.0  /* times the best that is predicted: not tried. Predictions are rough */
#define NEAR  2.0  /* times the best that was measured and weighed: tried again */
#define OUT   64.0 /* likewise, after LONGEST: five calls of it cost one percent of these */
#define SHORT 3e6  /* ns of the best that was measured: tried again at once */
#define NOISE 0.9  /* of what is used now: better than that, and it is left */
#define SURE  0.75 /* likewise, for the MPI's own, unless LONG */
#define WHOLE 1.5  /* times the least whole time: beyond that, it counts, ... */
#define MOST  4.0  /* ... as a factor of at most that */

/* What was measured, with all that the whole time adds to it. */
static double weighed(const struct coll_tried *w)
{
	return w->agreed * fmax(w->factor, 1);
}

/* The shortest time, predicted or measured. */
static double best_of(const struct coll_chooser *c, bool measured)
{
	double best = INFINITY;

	for (int v = 0; v < COLL_VARIANTS; v++) {
		const struct coll_tried *w = &c->way[v];
		double t = measured ? weighed(w) : w->predicted;

		if (w->candidate && !(measured && t == 0) && t < best)
			best = t;
	}
	return best;
}

/* What is used is always among them: others are compared with it. */
static bool to_try(const struct coll_chooser *c, const struct coll_tried *w)
{
	if (!w->candidate)
		return false;
	return !c->agreed || w->agreed == 0 || w == &c->way[c->best] ||
	       weighed(w) <= c->reach * best_of(c, true);
}

static uint32_t how_many_to_try(const struct coll_chooser *c)
{
	uint32_t n = 0;

	for (int v = 0; v < COLL_VARIANTS; v++)
		n += to_try(c, &c->way[v]);
	return n;
}

/* What to do until all agree the next time. */
static void plan(struct coll_chooser *c)
{
	uint32_t n, period = c->tries < COLL_TRIES ? LONG_PERIOD : PERIOD;
	bool far;

	c->reach = NEAR;
	far = how_many_to_try(c) < 2;
	if (far)
		period = LONGEST;
	for (uint32_t i = AT_ONCE; i < c->agreed && period < LONGEST; i++)
		period *= 4;
	/* What is further away is looked at again, but very seldom: arrivals may have changed, or
	 * its first tries have met something that is over. */
	if (period >= LONGEST)
		c->reach = OUT;
	n = how_many_to_try(c);
	c->calls = 0;
	/* With one way only there is nothing to find out. */
	c->trying = n > 1 ? n * c->tries : 0;
	/* More tries follow at once if they cost little: of ways that are close, a few tell little,
	 * and the first of all may have met memory and connections that nobody had used before. */
	if (far || c->agreed >= AT_ONCE || (c->agreed && best_of(c, true) > SHORT))
		c->until = period + c->trying;
	else
		c->until = c->trying;
}

/* Ranks may leave these before all have come. Of such, the MPI's own is what is used before
 * anything was measured, whatever is predicted, so that it has to be. */
static bool may_leave(enum coll_op op)
{
	return op == COLL_ALLTOALLV || op == COLL_BCAST;
}

void coll_chooser_init(struct coll_chooser *c, unsigned int allowed, const struct coll_cost *cost,
		       const struct coll_shape *shape, enum coll_op op, size_t bytes)
{
	double best;

	memset(c, 0, sizeof(*c));
	c->best = COLL_MPI;
	c->tries = bytes < LONG ? COLL_TRIES : LONG_TRIES;
	for (int v = 0; v < COLL_VARIANTS; v++) {
		c->way[v].predicted =
			coll_model_predict(cost, shape, op, (enum coll_variant)v, bytes);
		c->way[v].candidate = (allowed >> v & 1) && isfinite(c->way[v].predicted);
	}
	best = best_of(c, false);
	for (int v = 0; v < COLL_VARIANTS; v++) {
		bool kept = v == COLL_MPI && may_leave(op);

		c->way[v].candidate =
			c->way[v].candidate && (kept || c->way[v].predicted <= FAR * best);
		if (c->way[v].candidate && c->way[v].predicted == best)
			c->best = (enum coll_variant)v;
	}
	plan(c);
}

/* In each round they begin with another: a program whose calls alternate must not have each of them
 * done in one way. */
static uint32_t first_of_round(const struct coll_chooser *c, uint32_t round)
{
	return ((c->agreed * c->tries + round + 1) * UINT32_C(2654435761)) >> 16;
}

static bool is_try(const struct coll_chooser *c)
{
	return c->trying && c->calls >= c->until - c->trying;
}

/* Tries take turns, so that all ways meet the same weather, and come at the end of a period: until
 * then what is best is used. */
enum coll_variant coll_chooser_next(const struct coll_chooser *c)
{
	uint32_t turn, n;

	if (!is_try(c))
		return c->best;
	n = how_many_to_try(c);
	turn = c->calls - (c->until - c->trying);
	turn = (turn % n + first_of_round(c, turn / n) % n) % n;
	for (int v = 0; v < COLL_VARIANTS; v++)
		if (to_try(c, &c->way[v]) && turn-- == 0)
			return (enum coll_variant)v;
	return c->best;
}

void coll_chooser_note(struct coll_chooser *c, enum coll_variant v, const struct coll_took *took)
{
	struct coll_tried *w = &c->way[v];

	/* Only tries count: what was measured in between met other weather. */
	if (is_try(c) && w->count < c->tries)
		w->own[w->count++] = *took;
	c->calls++;
}

bool coll_chooser_pass(struct coll_chooser *c)
{
	if (is_try(c))
		return false;
	c->calls++;
	return true;
}

bool coll_chooser_due(const struct coll_chooser *c)
{
	return c->trying && c->calls >= c->until;
}

void coll_chooser_lasts(const struct coll_chooser *c, double offset, double last[COLL_ALL_TRIES])
{
	for (int v = 0; v < COLL_VARIANTS; v++) {
		const struct coll_tried *w = &c->way[v];

		for (uint32_t i = 0; i < COLL_TRIES; i++) {
			bool known = i < w->count && w->own[i].last > 0;

			last[(uint32_t)v * COLL_TRIES + i] = known ? w->own[i].last + offset : 0;
		}
	}
}

void coll_chooser_correct(struct coll_chooser *c, double offset,
			  const double latest[COLL_ALL_TRIES])
{
	for (int v = 0; v < COLL_VARIANTS; v++) {
		struct coll_tried *w = &c->way[v];

		for (uint32_t i = 0; i < w->count; i++) {
			struct coll_took *own = &w->own[i];

			/* Below 0 on a rank whose clock is thought to be behind: what counts is
			 * the mean of all, to which a clock that is wrong matters least so. */
			if (own->last > 0)
				own->ns +=
					own->last + offset - latest[(uint32_t)v * COLL_TRIES + i];
		}
	}
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, uint32_t n)
{
	qsort(v, n, sizeof(*v), by_time);
	return v[n / 2];
}

/* How often a way was tried in calls of a kind, and the medians. */
static uint32_t of_kind(const struct coll_tried *w, uint32_t kind, double *ns, double *whole)
{
	double own[2][COLL_TRIES] = {{0}};
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		if (w->own[i].kind != kind)
			continue;
		own[0][n] = w->own[i].ns;
		own[1][n++] = w->own[i].whole;
	}
	*ns = n ? median(own[0], n) : 0;
	*whole = n ? median(own[1], n) : 0;
	return n;
}

/* How many calls of a kind there were, if all ways that were tried have had some; or 0. */
static uint32_t compared(const struct coll_chooser *c, uint32_t kind)
{
	uint32_t sum = 0;
	double ns, whole;

	for (int v = 0; v < COLL_VARIANTS; v++) {
		uint32_t n = of_kind(&c->way[v], kind, &ns, &whole);

		if (c->way[v].count && !n)
			return 0;
		sum += n;
	}
	return sum;
}

/* Kinds count by how often they come. */
void coll_chooser_report(const struct coll_chooser *c, struct coll_times *times)
{
	double all = 0;

	memset(times, 0, sizeof(*times));
	for (uint32_t kind = 0; kind < COLL_CLASSES; kind++) {
		uint32_t n = compared(c, kind);

		all += n;
		for (int v = 0; v < COLL_VARIANTS && n; v++) {
			double ns, whole;

			of_kind(&c->way[v], kind, &ns, &whole);
			times->ns[v] += n * ns;
			times->whole[v] += n * whole;
		}
	}
	for (int v = 0; v < COLL_VARIANTS && all > 0; v++) {
		times->ns[v] /= all;
		times->whole[v] /= all;
	}
}

/* What the whole time adds. The time after the last arrival forgives a way that keeps late ranks
 * from arriving, since those who wait in it take their cores; the whole time does not. But that is
 * mostly the wait for the last, whoever does the operation, and changes from call to call: so only
 * large differences count, and only between ways that were tried in the same weather. What was not
 * tried now keeps what it had. */
static void weigh(struct coll_chooser *c)
{
	double least = INFINITY;

	for (int v = 0; v < COLL_VARIANTS; v++)
		if (c->way[v].now && c->way[v].whole > 0)
			least = fmin(least, c->way[v].whole);
	for (int v = 0; v < COLL_VARIANTS; v++)
		if (c->way[v].now)
			c->way[v].factor = fmax(1, c->way[v].whole / least / WHOLE);
}

/* What ways are compared by, where one is chosen: even the whole time is not everything. */
static double score(const struct coll_chooser *c, enum coll_variant v)
{
	return c->way[v].agreed * fmin(fmax(c->way[v].factor, 1), MOST);
}

/* Whether a way is so much better than another that it is no accident. The MPI's own is what a
 * program would have without us: it is left only for what is better for sure, and taken back for
 * what is hardly better. Among other ways it also takes a fifth longer than when it is used all the
 * time, and ours take less, which long messages hide. */
static bool beats(const struct coll_chooser *c, enum coll_variant v, enum coll_variant other)
{
	bool is_long = c->tries < COLL_TRIES;
	double limit = v == COLL_MPI ? 1 / NOISE : other == COLL_MPI && !is_long ? SURE : NOISE;

	return c->way[v].agreed > 0 && score(c, v) <= limit * score(c, other);
}

/* What was measured best. */
static enum coll_variant fastest(const struct coll_chooser *c)
{
	enum coll_variant best = c->best;

	for (int v = 0; v < COLL_VARIANTS; v++)
		if (c->way[v].candidate && c->way[v].agreed > 0 &&
		    (!c->way[best].agreed || score(c, (enum coll_variant)v) < score(c, best)))
			best = (enum coll_variant)v;
	return best;
}

/* What is to be used, by what was measured. The MPI's own is what is in use before there is any. */
static enum coll_variant choose(const struct coll_chooser *c)
{
	enum coll_variant best = fastest(c);
	bool leaves_mpi = !c->agreed || c->best == COLL_MPI;

	if (best != COLL_MPI && c->way[COLL_MPI].agreed > 0 &&
	    (leaves_mpi ? !beats(c, best, COLL_MPI) : beats(c, COLL_MPI, best)))
		best = COLL_MPI;
	/* The first time nothing is in use yet that would be left. */
	return !c->agreed || beats(c, best, c->best) ? best : c->best;
}

/* The mean of all, as long as they are few; later ones move it less. */
static void learn(double *known, double now, uint32_t times)
{
	*known += (now - *known) / times;
}

void coll_chooser_agree(struct coll_chooser *c, const struct coll_times *times)
{
	double near = NEAR * best_of(c, true);
	enum coll_variant best;

	for (int v = 0; v < COLL_VARIANTS; v++) {
		struct coll_tried *w = &c->way[v];
		double ns = times->ns[v], whole = times->whole[v];

		w->count = 0;
		w->now = false;
		/* 0: it was not tried. Less: clocks were not compared well enough, or are not
		 * equally fast. */
		if (!w->candidate || !(ns > 0) || !isfinite(ns))
			continue;
		if (weighed(w) > near)
			w->times = 0; /* what is known is from long ago */
		if (w->times < MEMORY)
			w->times++;
		w->now = true;
		learn(&w->agreed, ns, w->times);
		learn(&w->whole, whole > 0 && isfinite(whole) ? whole : 0, w->times);
	}
	weigh(c);
	best = choose(c);
	c->changed += c->agreed > 0 && best != c->best;
	c->best = best;
	c->agreed++;
	plan(c);
}
