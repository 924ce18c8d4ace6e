#include <errno.h>
#include <stdlib.h>

#include "msg_spec.h"

/* Most senders meet one RTR at a time. */
#define HELD_FIRST 4

/* ---- the sender ------------------------------------------------------------------------------ */

void msg_ledger_init(struct msg_ledger *l, uint32_t first, struct msg_spec_stats *stats)
{
	*l = (struct msg_ledger){.sent = first, .stats = stats};
}

void msg_ledger_free(struct msg_ledger *l)
{
	free(l->log);
	free(l->held);
	*l = (struct msg_ledger){.sent = l->sent, .stats = l->stats};
}

static bool is_for(const struct msg_rtr *rtr, uint64_t tag)
{
	return !((rtr->tag ^ tag) & ~rtr->ignore);
}

/* How many of the last n messages are of the envelope. */
static uint32_t count_sent(const struct msg_ledger *l, const struct msg_rtr *rtr, uint32_t n)
{
	uint32_t count = 0;

	for (uint32_t i = 1; i <= n; i++)
		count += is_for(rtr, l->log[(l->sent - i) % MSG_LEDGER_LOG]);
	return count;
}

static int make_room(struct msg_ledger *l)
{
	uint32_t cap = l->cap ? 2 * l->cap : HELD_FIRST;
	struct msg_held *held;

	if (l->n_held == MSG_LEDGER_HELD)
		return -ENOBUFS;
	if (l->n_held < l->cap)
		return 0;
	held = realloc(l->held, cap * sizeof(*held));
	if (!held)
		return -ENOMEM;
	l->held = held;
	l->cap = cap;
	return 0;
}

static int hold(struct msg_ledger *l, const struct msg_rtr *rtr)
{
	uint32_t crossed = l->sent - rtr->seen, before;
	int rc;

	if (crossed > UINT32_MAX / 2)
		return -EPROTO;
	/* The log begins with the first RTR; what was sent before is not in it. */
	if (!l->log)
		l->log = calloc(MSG_LEDGER_LOG, sizeof(*l->log));
	if (!l->log)
		return -ENOMEM;
	if (crossed > l->logged)
		return -ESTALE;
	before = count_sent(l, rtr, crossed);
	if (before > rtr->ahead)
		return -ESTALE;
	rc = make_room(l);
	if (rc)
		return rc;
	l->held[l->n_held++] = (struct msg_held){*rtr, rtr->ahead - before};
	return 0;
}

int msg_ledger_rtr(struct msg_ledger *l, const struct msg_rtr *rtr)
{
	int rc = hold(l, rtr);

	l->stats->came++;
	if (rc == -ESTALE)
		l->stats->stale++;
	else if (rc)
		l->stats->dropped++;
	return rc;
}

void msg_ledger_withdraw(struct msg_ledger *l, uint32_t id)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < l->n_held; i++)
		if (l->held[i].rtr.id != id)
			l->held[n++] = l->held[i];
	l->stats->dropped += l->n_held - n;
	l->n_held = n;
}

/* Takes those off that are for this message, and returns how many. Only one can be live; should a
 * withdrawal be under way there may be more, and the one that came last is the live one. */
static uint32_t take_held(struct msg_ledger *l, uint64_t tag, struct msg_rtr *last)
{
	uint32_t n = 0, taken = 0;

	for (uint32_t i = 0; i < l->n_held; i++) {
		struct msg_held *h = &l->held[i];
		bool counts = is_for(&h->rtr, tag);

		if (counts && !h->left) {
			*last = h->rtr;
			taken++;
			continue;
		}
		h->left -= counts;
		l->held[n++] = *h;
	}
	l->n_held = n;
	return taken;
}

const struct msg_rtr *msg_ledger_next(const struct msg_ledger *l, uint64_t tag, uint64_t length,
				      bool rendezvous)
{
	for (uint32_t i = l->n_held; i-- && rendezvous;) {
		const struct msg_held *h = &l->held[i];

		if (is_for(&h->rtr, tag) && !h->left)
			return length <= h->rtr.length ? &h->rtr : NULL;
	}
	return NULL;
}

bool msg_ledger_sent(struct msg_ledger *l, uint64_t tag, uint64_t length, bool rendezvous,
		     struct msg_rtr *use)
{
	uint32_t number = l->sent++, taken;
	struct msg_rtr rtr;
	bool used;

	if (!l->log)
		return false;
	l->log[number % MSG_LEDGER_LOG] = tag;
	if (l->logged < MSG_LEDGER_LOG)
		l->logged++;
	taken = take_held(l, tag, &rtr);
	used = taken && rendezvous && length <= rtr.length;
	l->stats->used += used;
	l->stats->dropped += taken - used;
	if (used)
		*use = rtr;
	return used;
}

/* ---- the receiver ---------------------------------------------------------------------------- */

bool msg_spec_may_ask(const struct msg_ask *a, struct msg_ahead ahead, uint64_t length,
		      uint64_t eager_max, uint32_t out)
{
	return a->state == MSG_ASK_NONE && ahead.clear && length > eager_max &&
	       out < MSG_LEDGER_HELD;
}

void msg_ask_out(struct msg_ask *a, uint32_t id, const struct msg_recv *r, struct msg_ahead ahead,
		 uint32_t seen, uint64_t length, struct msg_rtr *rtr)
{
	*a = (struct msg_ask){id, MSG_ASK_OUT};
	*rtr = (struct msg_rtr){
		.id = id,
		.tag = r->tag,
		.ignore = r->ignore,
		.seen = seen,
		.ahead = ahead.same,
		.length = length,
	};
}

bool msg_ask_matched(struct msg_ask *a)
{
	bool out = a->state == MSG_ASK_OUT || a->state == MSG_ASK_BACK;

	a->state = MSG_ASK_NONE;
	return out;
}

int msg_ask_put(struct msg_ask *a, struct msg_ask *named)
{
	bool moved = named && named->state == MSG_ASK_MOVED;

	if (!named || !msg_ask_live(named) || (a != named && !moved))
		return -EPROTO;
	named->state = MSG_ASK_USED;
	return moved ? MSG_PUT_GHOST : MSG_PUT_WAIT;
}

int msg_ask_notice(struct msg_ask *a)
{
	if (a->state != MSG_ASK_USED)
		return -EPROTO;
	a->state = MSG_ASK_NONE;
	return 0;
}

bool msg_ask_back(struct msg_ask *a)
{
	if (a->state != MSG_ASK_OUT)
		return false;
	a->state = MSG_ASK_BACK;
	return true;
}

void msg_ask_move(struct msg_ask *a, struct msg_ask *ghost)
{
	*ghost = (struct msg_ask){a->id, MSG_ASK_MOVED};
	*a = (struct msg_ask){0};
}

bool msg_ask_answered(struct msg_ask *a)
{
	if (a->state != MSG_ASK_BACK && a->state != MSG_ASK_MOVED)
		return false;
	a->state = MSG_ASK_NONE;
	return true;
}
