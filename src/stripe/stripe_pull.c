/* Self-clocked pieces: each path takes the next piece when it is done with one. Nothing has to be
 * learnt for that, and what changes is followed within one message. With a batch, on those paths
 * that were the fastest lately; on all, if that was not lately: who sends to one after the other
 * meets others on each path the next time. */
#include "stripe_in.h"

static void pull_init(const struct stripe_conf *c, struct stripe_peer *p)
{
	/* Where this begins among paths that nobody knows yet: not where all others do. */
	p->turn = (uint32_t)util_rand_below(&p->rand, c->paths);
}

/* The usable ones from p->turn on, the fastest first. */
static uint32_t sort(const struct stripe_conf *c, const struct stripe_peer *p, uint32_t *path)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->paths; i++) {
		uint32_t k = (p->turn + i) % c->paths, at = n;
		double rate = stripe_remembered(c, p, k, c->batch);

		if (!stripe_usable(c, p, k))
			continue;
		for (; at > 0 && stripe_remembered(c, p, path[at - 1], c->batch) < rate; at--)
			path[at] = path[at - 1];
		path[at] = k;
		n++;
	}
	return n;
}

static void choose(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m)
{
	uint32_t n = sort(c, p, m->order), most = m->fresh ? c->batch : c->paths;

	m->paths = n < most ? n : most;
}

static void pull_begin(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m)
{
	stripe_rate_begin(c, m);
	choose(c, p, m);
}

static bool pull_next(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		      struct stripe_piece *piece)
{
	for (uint32_t i = 0; i < m->paths; i++)
		if (!stripe_usable(c, p, m->order[i])) {
			choose(c, p, m);
			break;
		}
	return stripe_rate_next(c, p, m, m->order, m->paths, piece);
}

static void pull_done(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		      const struct stripe_piece *piece, uint64_t began, uint64_t now)
{
	/* What a path has while all share the line is not what it would have among few, and next to
	 * those would look bad for ever. */
	if (m->fresh || c->batch == c->paths)
		stripe_rate_done(p, m, piece, began, now);
}

static void pull_end(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		     uint64_t now)
{
	stripe_rate_end(c, p, m, now);
}

/* As one that nobody has tried. */
static void pull_heal(const struct stripe_conf *c, struct stripe_peer *p, uint32_t path)
{
	(void)c;
	p->weight[path] = 0;
}

const struct stripe_policy stripe_pull = {"pull",    pull_init, pull_begin, pull_next,
					  pull_done, pull_end,  pull_heal};
