#include "stripe_auto.h"

#define HOLD_MOST (64 * STRIPE_AUTO_HOLD)
#define CALM      8 /* times that little was lost, after which the rest is forgotten */

static double rate_of(const struct stripe_auto_pace *p)
{
	return p->ns ? (double)p->bytes / (double)p->ns : 0;
}

static bool are_many(const struct stripe_auto *a)
{
	return a->peak > STRIPE_AUTO_MANY;
}

/* So many tell something: of those that go at once most arrive at the end. */
static bool is_enough(const struct stripe_auto *a, const struct stripe_auto_pace *p)
{
	return p->n >= STRIPE_AUTO_ENOUGH && p->n >= 2 * a->peak;
}

static void divide(struct stripe_auto *a)
{
	a->rate = rate_of(&a->single);
	a->divided = (struct stripe_auto_pace){0};
	a->trial = !a->span;
	a->left = a->trial ? 1 : a->span;
	a->calm = 0;
	a->peak = a->out;
}

/* A span is over. The next one begins at once, or some go undivided. */
static void judge(struct stripe_auto *a)
{
	double gain = are_many(a) ? STRIPE_AUTO_MANY_GAIN : a->heard ? 1 : STRIPE_AUTO_GAIN;

	/* Of a span it is not certain that something has arrived by now. */
	if (a->divided.n && rate_of(&a->divided) < gain * a->rate) {
		a->held = a->held ? 2 * a->held : STRIPE_AUTO_HOLD;
		a->held = a->held < HOLD_MOST ? a->held : HOLD_MOST;
		a->hold = a->held;
		a->span = 0;
		a->left = 0;
		return;
	}
	a->held = 0;
	if (a->trial) {
		a->trial = false;
		a->left = a->span = STRIPE_AUTO_FIRST;
	} else {
		a->span = 4 * a->span < STRIPE_AUTO_MOST ? 4 * a->span : STRIPE_AUTO_MOST;
	}
}

/* What comes from here on tells something. */
static void look_from(struct stripe_auto *a, uint64_t sent, uint64_t lost)
{
	a->sent = sent;
	a->lost = lost;
	a->single = (struct stripe_auto_pace){0};
}

/* A path that something else keeps busy settles for what is left of it, and loses nothing more. */
static bool is_crowded(const struct stripe_auto *a, uint64_t sent, uint64_t lost, double link)
{
	bool lossy = a->heard || (lost - a->lost) * STRIPE_AUTO_LOST >= sent - a->sent;
	double full = are_many(a) ? STRIPE_AUTO_MANY_FULL : STRIPE_AUTO_FULL;
	double rate = rate_of(&a->single);

	if (link <= 0) /* not known */
		return lossy;
	return rate < (lossy ? full : STRIPE_AUTO_SLOW) * link;
}

/* Enough were sent undivided. */
static void look(struct stripe_auto *a, uint64_t sent, uint64_t lost, double link)
{
	if (is_crowded(a, sent, lost, link)) {
		divide(a);
	} else if (++a->calm >= CALM) {
		a->calm = 0;
		a->span = 0;
		a->held /= 2;
	}
	look_from(a, sent, lost);
	a->heard = false;
	a->peak = a->out;
}

bool stripe_auto(struct stripe_auto *a, uint64_t sent, uint64_t lost, double link)
{
	if (++a->out > a->peak)
		a->peak = a->out;
	if (a->left) {
		if (a->trial ? is_enough(a, &a->divided) : !--a->left)
			judge(a);
		look_from(a, sent, lost);
	} else if (a->hold) {
		a->hold--;
		look_from(a, sent, lost);
	} else if ((a->heard || sent - a->sent >= STRIPE_AUTO_SENT) && is_enough(a, &a->single)) {
		look(a, sent, lost, link);
	}
	return a->left;
}

void stripe_auto_heard(struct stripe_auto *a)
{
	a->heard = true;
	a->hold -= a->hold < STRIPE_AUTO_HEARD ? a->hold : STRIPE_AUTO_HEARD;
}

void stripe_auto_done(struct stripe_auto *a, bool divided, uint64_t bytes, uint64_t began,
		      uint64_t now)
{
	struct stripe_auto_pace *p = divided ? &a->divided : &a->single;

	a->out -= a->out > 0;
	if (began < a->until)
		began = a->until;
	if (now > began) {
		p->ns += now - began;
		a->until = now;
	}
	p->bytes += bytes;
	p->n += bytes > 0;
}
