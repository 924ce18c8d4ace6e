/* Small pieces on a few paths, the slots, which are remembered from message to message. A slot
 * that is slower than its part of the line moves, the more likely the slower it is, to another
 * path. Made for paths that switches hash: nobody knows which of them share links. */
#include "stripe_in.h"

#define SLOTS_LEAST 4
#define SLOTS_MOST  8
/* Of its part of the line, a slot is slow below this. It must exceed K/(K + 1): with that many a
 * slot that shares its link with one other is to move. */
#define SLOT_SLOW 0.9
/* Of the line, a message is slow below one and fast above the other; so many in a row change
 * the number of slots. */
#define MESSAGE_SLOW 0.88
#define MESSAGE_FAST 0.93
#define SLOW_IN_ROW  2
#define FAST_IN_ROW  3

static bool in_slot(const struct stripe_peer *p, uint32_t path)
{
	for (uint32_t i = 0; i < p->slots; i++)
		if (p->slot[i] == path)
			return true;
	return false;
}

/* The better remembered of two random ones that are in no slot; false: all are. */
static bool another(const struct stripe_conf *c, struct stripe_peer *p, uint32_t *path)
{
	uint32_t unused[STRIPE_PATHS_MAX], n = 0, a, b;

	for (uint32_t i = 0; i < c->paths; i++)
		if (!in_slot(p, i) && stripe_usable(c, p, i))
			unused[n++] = i;
	if (!n)
		return false;
	a = unused[util_rand_below(&p->rand, n)];
	b = unused[util_rand_below(&p->rand, n)];
	*path = stripe_remembered(c, p, a, p->slots) >= stripe_remembered(c, p, b, p->slots) ? a
											    : b;
	return true;
}

static void drop(struct stripe_peer *p, uint32_t i)
{
	p->slots--;
	for (; i < p->slots; i++)
		p->slot[i] = p->slot[i + 1];
}

/* Slots on paths that are down move or go; there are as many as there must be, or as there are
 * paths for. */
static void fit(const struct stripe_conf *c, struct stripe_peer *p)
{
	uint32_t path;

	for (uint32_t i = p->slots; i-- > 0;) {
		if (stripe_usable(c, p, p->slot[i]))
			continue;
		if (another(c, p, &path))
			p->slot[i] = path;
		else
			drop(p, i);
	}
	while (p->slots < SLOTS_LEAST && another(c, p, &path))
		p->slot[p->slots++] = path;
}

static void hop_init(const struct stripe_conf *c, struct stripe_peer *p)
{
	/* another() divides by their number. */
	p->slots = 1;
	p->slot[0] = (uint32_t)util_rand_below(&p->rand, c->paths);
	fit(c, p);
}

static void hop_begin(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m)
{
	stripe_rate_begin(c, m);
	fit(c, p);
	stripe_rate_drift(c, p, p->slot, p->slots);
}

static bool hop_next(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		     struct stripe_piece *piece)
{
	for (uint32_t i = 0; i < p->slots; i++)
		if (!stripe_usable(c, p, p->slot[i])) {
			fit(c, p);
			break;
		}
	m->paths = p->slots;
	return stripe_rate_next(c, p, m, p->slot, p->slots, piece);
}

static double slot_rate(const struct stripe_conf *c, const struct stripe_peer *p, uint32_t i)
{
	return stripe_remembered(c, p, p->slot[i], p->slots);
}

/* The slots on paths whose rate has changed: those that are slow may move. What the old path has
 * under way arrives there. */
static void move(const struct stripe_conf *c, struct stripe_peer *p, uint32_t changed)
{
	double ref = SLOT_SLOW * stripe_line(c, p) / p->slots;

	for (uint32_t i = 0; i < p->slots; i++) {
		double rate = slot_rate(c, p, i);
		double draw = (double)(util_rand_next(&p->rand) >> 11) / 9007199254740992.0;
		uint32_t path;

		if ((changed >> p->slot[i] & 1) && rate < ref && draw < (1 - rate / ref) / 2 &&
		    another(c, p, &path))
			p->slot[i] = path;
	}
}

static void hop_done(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		     const struct stripe_piece *piece, uint64_t began, uint64_t now)
{
	uint32_t changed = stripe_rate_done(p, m, piece, began, now);

	if (changed)
		move(c, p, changed);
}

static uint32_t slowest(const struct stripe_conf *c, const struct stripe_peer *p)
{
	uint32_t at = 0;

	for (uint32_t i = 1; i < p->slots; i++)
		if (slot_rate(c, p, i) < slot_rate(c, p, at))
			at = i;
	return at;
}

static void hop_end(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		    uint64_t now)
{
	double rate = stripe_rate_end(c, p, m, now), line = stripe_line(c, p);
	uint32_t path;

	if (!(rate > 0))
		return;
	p->slow = rate < MESSAGE_SLOW * line ? p->slow + 1 : 0;
	p->fast = rate > MESSAGE_FAST * line ? p->fast + 1 : 0;
	if (p->slow >= SLOW_IN_ROW) {
		p->slow = 0;
		if (p->slots < SLOTS_MOST && another(c, p, &path))
			p->slot[p->slots++] = path;
	} else if (p->fast >= FAST_IN_ROW) {
		p->fast = 0;
		if (p->slots > SLOTS_LEAST)
			drop(p, slowest(c, p));
	}
}

static void hop_heal(const struct stripe_conf *c, struct stripe_peer *p, uint32_t path)
{
	(void)c;
	p->weight[path] = 0;
}

const struct stripe_policy stripe_hop = {"hop",    hop_init, hop_begin, hop_next,
					 hop_done, hop_end,  hop_heal};
