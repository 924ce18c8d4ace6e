#include "stripe_auto.h"

static bool divide(struct stripe_auto *a)
{
	a->span = a->span ? 2 * a->span : STRIPE_AUTO_FIRST;
	if (a->span > STRIPE_AUTO_MOST)
		a->span = STRIPE_AUTO_MOST;
	a->left = a->span - 1;
	a->calm = 0;
	return true;
}

bool stripe_auto(struct stripe_auto *a, uint64_t lost)
{
	bool more = lost > a->lost;

	a->lost = lost;
	if (a->left) {
		/* The last of them goes undivided. What is lost with it is seen by the next. */
		return --a->left;
	}
	if (more)
		return divide(a);
	/* What was long ago is forgotten. */
	if (++a->calm >= STRIPE_AUTO_FIRST) {
		a->calm = 0;
		a->span /= 2;
		if (a->span < STRIPE_AUTO_FIRST)
			a->span = 0;
	}
	return false;
}
