#include "coll_clock.h"

#include "coll_agree.h"
#include "util_clock.h"

enum { TURNS = 8 };

#define AGAIN_NS (500 * UTIL_NS_PER_MS)

static int answer(struct coll_comm *c, struct coll_clock *k, uint32_t peer)
{
	int ret = 0;

	for (int i = 0; i < TURNS && !ret; i++) {
		ret = coll_take(c, NULL, 0, peer, COLL_TAG_CLOCK);
		k->time = (double)util_now_ns();
		if (!ret)
			ret = coll_send(c, &k->time, sizeof(k->time), peer, COLL_TAG_CLOCK);
	}
	return ret;
}

/* The answer that came fastest was given halfway. */
static int ask(struct coll_comm *c, struct coll_clock *k, uint32_t first, double *ns)
{
	double best = 1e18;
	int ret = 0;

	for (int i = 0; i < TURNS && !ret; i++) {
		double from = (double)util_now_ns(), took;

		ret = coll_send(c, NULL, 0, first, COLL_TAG_CLOCK);
		if (!ret)
			ret = coll_take(c, &k->time, sizeof(k->time), first, COLL_TAG_CLOCK);
		took = (double)util_now_ns() - from;
		if (ret || took >= best)
			continue;
		best = took;
		*ns = k->time - (from + took / 2);
	}
	return ret;
}

static int compare(struct coll_comm *c, struct coll_clock *k)
{
	int ret = 0;

	for (uint32_t h = 0; h < c->hosts; h++)
		k->own[h] = 0;
	for (uint32_t h = 1; h < c->hosts && coll_is_master(c) && !ret; h++) {
		if (c->host == 0)
			ret = answer(c, k, coll_master(c, h));
		else if (c->host == h)
			ret = ask(c, k, coll_master(c, 0), &k->own[h]);
	}
	if (!ret)
		ret = coll_agree_fold(c, k->own, k->tmp, c->hosts * sizeof(k->own[0]),
				      coll_sum_doubles);
	if (!ret)
		k->offset = k->own[c->host];
	return ret;
}

/* One knows how long ago it was, and says whether it shall be done. */
int coll_clock_offset(struct coll_comm *c, struct coll_clock *k, double *ns)
{
	uint64_t now = util_now_ns();
	int ret;

	k->again = !k->compared || now - k->compared >= AGAIN_NS;
	ret = coll_agree_on(c, &k->again, sizeof(k->again));
	if (!ret && k->again) {
		ret = compare(c, k);
		k->compared = util_now_ns();
	}
	*ns = k->offset;
	return ret;
}
