/* What was sent over a path, in the order in which it was: losses and timeouts. */
#include "rd_board_impl.h"

/* How much longer than a round trip a packet may take that was overtaken: a quarter, and at
 * least the time by which a receiver may delay one acknowledgement more than another. */
#define REORDER_MIN     UINT64_C(100000)
#define REORDER_PACKETS 3
/* Quarters of a round trip by which the wait grows at most, and the number of losses after
 * which it shrinks by one. */
#define REORDER_MAX  3
#define REORDER_KEEP 64

void rd_path_init(struct rd_path *p, uint32_t mss, uint32_t cap)
{
	*p = (struct rd_path){0};
	list_init(&p->flight);
	list_init(&p->lost);
	rd_cc_init(&p->cc, mss, cap);
}

/* ---- flight and lost ------------------------------------------------------------------------- */

/* Off its path, which gets its bytes back without an opinion. */
void rd_path_detach(struct rd_sent *s)
{
	list_del(&s->link);
	if (s->lost)
		s->board->n_lost--;
	else
		rd_cc_forget(&s->path->cc, s->bytes);
}

/* Puts a record that is on no list onto p's list of lost ones, where those of the same board
 * are in order of number. What is lost is nearly always the highest so far; the search is for
 * what was sent again and lost again. */
static void lost_add(struct rd_path *p, struct rd_sent *s)
{
	struct rd_board *b = s->board;
	struct list_head *before = &p->lost, *at;

	if (b->n_lost++ && rd_seq_before(s->psn, b->lost_high)) {
		for (at = p->lost.prev; at != &p->lost; at = at->prev) {
			struct rd_sent *o = list_entry(at, struct rd_sent, link);

			if (o->board == b && rd_seq_before(o->psn, s->psn))
				break;
			if (o->board == b)
				before = at;
		}
	} else {
		b->lost_high = s->psn;
	}
	s->path = p;
	s->lost = true;
	list_insert_between(&s->link, before->prev, before);
}

struct rd_sent *rd_path_lost(const struct rd_path *p)
{
	return list_first(&p->lost, struct rd_sent, link);
}

static void lose(struct rd_path *p, struct rd_sent *s, uint64_t now)
{
	list_del(&s->link);
	rd_cc_lost(&p->cc, s->bytes, s->order, p->order, now);
	lost_add(p, s);
	p->lost_packets++;
}

void rd_path_transmit(struct rd_path *p, struct rd_sent *s, uint32_t bytes, uint64_t now)
{
	if (list_empty(&p->flight))
		p->heard = now;
	s->path = p;
	s->when = now;
	s->order = p->order++;
	s->bytes = bytes;
	s->lost = false;
	s->moved = false;
	list_add_tail(&s->link, &p->flight);
	rd_cc_sent(&p->cc, bytes);
	p->sent_packets++;
}

static void move_list(struct list_head *list, struct rd_path *to)
{
	struct rd_sent *s, *tmp;

	list_for_each_safe (s, tmp, list, link) {
		rd_path_detach(s);
		lost_add(to, s);
		s->moved = true;
		s->blamed = false;
	}
}

void rd_path_move(struct rd_path *from, struct rd_path *to)
{
	move_list(&from->lost, to);
	move_list(&from->flight, to);
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

/* Whether an acknowledgement of a packet that was sent more than once may be one of its last
 * transmission: not if it came sooner than a round trip takes (RFC 8985, 6.2). The least ever
 * seen is a weak bound when there is a queue, so while samples keep coming they are used. */
static bool plausible(const struct rd_path *p, const struct rd_sent *s, uint64_t now)
{
	uint64_t rtt = p->rtt.smoothed < p->rtt.latest ? p->rtt.smoothed : p->rtt.latest;

	if (s->times == 1)
		return true;
	/* Without a bound, believe it: who believes nothing learns nothing, and sends one packet
	 * with each timeout. */
	if (p->rtt.samples < RD_RTT_MANY)
		return true;
	rtt -= rtt / 4;
	if (p->backoff || rtt < p->rtt.least)
		rtt = p->rtt.least;
	return now - s->when >= rtt;
}

/* A packet that was found lost because others overtook it is acknowledged, although it was not
 * sent again or too recently for that: it was only late. More patience from now on, but no more
 * than one step with each round trip. */
static void was_late(struct rd_path *p, uint64_t now)
{
	p->blamed = 0;
	if (p->reorder == REORDER_MAX || (p->reorder && now - p->reorder_when < p->rtt.smoothed))
		return;
	p->reorder++;
	p->reorder_when = now;
}

/* One packet was acknowledged: tells its path. */
void rd_path_got(struct rd_path *p, struct rd_sent *s, uint64_t now)
{
	if (s->moved)
		return; /* it went over another path, whatever that has become */
	if (s->blamed &&
	    (s->lost || (p->rtt.samples == RD_RTT_MANY && now - s->when < p->rtt.least)))
		was_late(p, now);
	if (s->lost)
		p->spurious++;
	else
		p->got_bytes += s->bytes;
	if (!p->got) {
		p->got = true;
		p->heard = now;
		p->got_order = s->order;
		p->got_rtt = 0;
	}
	if (!rd_seq_before(s->order, p->got_order)) {
		p->got_order = s->order;
		if (s->times == 1)
			p->got_rtt = now > s->when ? now - s->when : 1;
	}
	if (p->acked_any && rd_seq_before(s->order, p->acked_order))
		return;
	if (!plausible(p, s, now))
		return;
	p->acked_any = true;
	p->acked_order = s->order;
	p->acked_when = s->when;
}

/* ---- loss and time --------------------------------------------------------------------------- */

static uint64_t timeout(const struct rd_path *p)
{
	return p->heard + rd_rtt_timeout(&p->rtt, p->all, p->backoff + p->held);
}

/* Karn's second rule: whoever sends everything again before the answer can come never gets a
 * sample that would tell him so. The doubled timeout is kept until there is one. */
static void hold(struct rd_path *p)
{
	if (p->got_rtt)
		p->held = 0;
	else if (p->held + p->backoff < 8)
		p->held += p->backoff;
	p->backoff = 0;
}

/* When a packet that was overtaken counts as lost. */
static uint64_t patience(const struct rd_path *p)
{
	uint64_t rtt = p->rtt.smoothed > p->rtt.latest ? p->rtt.smoothed : p->rtt.latest;
	uint64_t late = rtt / 4 * (1 + p->reorder);

	return rtt + (late > REORDER_MIN ? late : REORDER_MIN);
}

static bool overtaken(const struct rd_path *p, const struct rd_sent *s)
{
	return p->acked_any && rd_seq_before(s->order, p->acked_order);
}

static void blame(struct rd_path *p, struct rd_sent *s, uint64_t now)
{
	lose(p, s, now);
	s->blamed = true;
	if (p->reorder && ++p->blamed >= REORDER_KEEP) {
		p->blamed = 0;
		p->reorder--;
	}
}

/* The flight is in order of transmission, so the search ends at the first that may still
 * arrive. */
static unsigned int find_lost(struct rd_path *p, uint64_t now)
{
	struct rd_sent *s, *tmp;
	unsigned int n = 0;

	list_for_each_safe (s, tmp, &p->flight, link) {
		bool many = !p->reorder && p->acked_order - s->order >= REORDER_PACKETS;

		if (!overtaken(p, s) || (!many && now < s->when + patience(p)))
			break;
		blame(p, s, now);
		n++;
	}
	return n;
}

/* Whether the packets that were just acknowledged were sent when the window was full: only
 * then they tell that a larger one would be of use. */
static bool was_full(struct rd_path *p)
{
	if (p->limited) {
		p->limited = false;
		p->full_any = true;
		p->full = p->order;
	}
	if (p->full_any && !rd_seq_before(p->got_order, p->full))
		p->full_any = false;
	return p->full_any;
}

unsigned int rd_path_settle(struct rd_path *p, uint64_t now)
{
	if (!p->got)
		return 0;
	if (p->got_rtt)
		rd_rtt_sample(&p->rtt, p->got_rtt);
	if (p->got_rtt && p->all)
		rd_rtt_sample(p->all, p->got_rtt);
	rd_cc_acked(&p->cc, p->got_bytes, p->got_order, p->order, p->got_rtt, was_full(p), now);
	p->got = false;
	p->got_bytes = 0;
	hold(p);
	return find_lost(p, now);
}

uint64_t rd_path_deadline(const struct rd_path *p)
{
	const struct rd_sent *s = list_first(&p->flight, struct rd_sent, link);
	uint64_t t;

	if (!s)
		return UINT64_MAX;
	t = timeout(p);
	if (overtaken(p, s) && s->when + patience(p) < t)
		t = s->when + patience(p);
	return t;
}

/* The oldest is sent again, to hear something. That it is lost is not known, so the window
 * stays as it is. */
static unsigned int probe(struct rd_path *p)
{
	struct rd_sent *s = list_first(&p->flight, struct rd_sent, link);

	rd_path_detach(s);
	lost_add(p, s);
	s->blamed = false;
	rd_cc_probe(&p->cc);
	return 1;
}

static unsigned int lose_all(struct rd_path *p, uint64_t now)
{
	struct rd_sent *s, *tmp;
	unsigned int n = 0;

	list_for_each_safe (s, tmp, &p->flight, link) {
		lose(p, s, now);
		s->blamed = false;
		n++;
	}
	rd_cc_timeout(&p->cc);
	return n;
}

unsigned int rd_path_expire(struct rd_path *p, uint64_t now)
{
	unsigned int n;

	if (now < rd_path_deadline(p))
		return 0;
	n = find_lost(p, now);
	if (n || now < timeout(p))
		return n;
	p->timeouts++;
	p->heard = now;
	if (p->backoff < UINT8_MAX)
		p->backoff++;
	return p->backoff == 1 ? probe(p) : lose_all(p, now);
}
