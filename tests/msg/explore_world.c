#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "explore.h"

/* Numbers pass the wrap within every program. */
#define FIRST_NUMBER 0xfffffffeu

/* An id is a receive and how often it had asked: the same whatever the order of asking. */
static uint32_t id_of(unsigned int recv, unsigned int asks)
{
	return recv * MAX_ASKS + asks + 1;
}

void world_init(struct world *w, const struct prog *p, enum mutant mutant, bool reduce)
{
	memset(w, 0, sizeof(*w));
	w->prog = p;
	w->mutant = mutant;
	w->reduce = reduce && !asks_back(w); /* where notes are answered, they can not wait */
	w->cancelling = w->busy = -1;
	msg_match_init(&w->match);
	for (unsigned int i = 0; i < SENDERS; i++) {
		msg_ledger_init(&w->sender[i].ledger, FIRST_NUMBER, &w->stats);
		w->seen[i] = FIRST_NUMBER;
	}
}

void world_free(struct world *w)
{
	for (unsigned int i = 0; i < SENDERS; i++)
		msg_ledger_free(&w->sender[i].ledger);
	msg_match_free(&w->match);
}

/* ---- the sender ------------------------------------------------------------------------------ */

static void do_send(struct world *w, unsigned int src, unsigned int len)
{
	struct sender *s = &w->sender[src];
	struct message *m = &s->msg[s->sent];
	struct msg_rtr use;
	bool put;

	*m = (struct message){.src = (uint8_t)src,
			      .index = (uint8_t)s->sent,
			      .len = (uint8_t)len,
			      .want = -1,
			      .unexp = {.src = src, .tag = w->prog->send[src][s->sent].tag}};
	s->sent++;
	put = is_thesis(w) ? thesis_sent(s, m, &use)
			   : msg_ledger_sent(&s->ledger, m->unexp.tag, len, len > EAGER_MAX, &use);
	s->out[s->n_out++] = (struct arrival){.m = m, .src = (uint8_t)src};
	m->kind = put ? PUT : len > EAGER_MAX ? RTS : EAGER;
	m->done = m->kind == EAGER;
	if (!put)
		return;
	m->id = use.id;
	m->write = TO_WRITE;
	if (len <= EAGER_MAX || len > use.length)
		world_bad(w, "a PUT of a message that is eager or too long");
}

static void do_note(struct world *w, unsigned int src)
{
	struct sender *s = &w->sender[src];
	struct note n = s->note[0];
	int rc = 0;

	s->n_notes--;
	memmove(&s->note[0], &s->note[1], s->n_notes * sizeof(s->note[0]));
	if (is_thesis(w)) {
		thesis_note(s, &n);
		return;
	}
	if (w->mutant == IGNORE_AHEAD)
		n.rtr.ahead = 0;
	if (w->mutant == IGNORE_CROSSED)
		n.rtr.seen = s->ledger.sent;
	if (n.what == NOTE_RTR)
		rc = msg_ledger_rtr(&s->ledger, &n.rtr);
	else
		msg_ledger_withdraw(&s->ledger, n.rtr.id);
	if (n.what == NOTE_WITHDRAW && asks_back(w))
		s->out[s->n_out++] = (struct arrival){.src = (uint8_t)src, .id = n.rtr.id};
	if (rc && rc != -ESTALE)
		world_bad(w, "an RTR is refused for another reason than being late");
}

/* ---- the network and the device of the receiver ---------------------------------------------- */

static void notify(struct world *w, struct message *m)
{
	m->write = NOTIFIED;
	w->inbox[w->n_inbox++] = (struct arrival){.m = m, .notice = true, .src = m->src};
}

static void do_arrive(struct world *w, unsigned int src)
{
	struct sender *s = &w->sender[src];
	struct arrival a = s->out[0];

	s->n_out--;
	memmove(&s->out[0], &s->out[1], s->n_out * sizeof(s->out[0]));
	w->inbox[w->n_inbox++] = a;
	if (!a.m)
		return;
	a.m->arrived = true;
}

/* What the key says decides; the rest is whether it should have. */
static struct message **key_leads_to(struct world *w, const struct message *m)
{
	struct receive *r = of_id(w, m->id);
	struct ghost *g = ghost_of(w, m->id);

	if (g->key)
		return &g->in_it;
	if (!r->key || r->ask.id != m->id) {
		world_bad(w, "a write under a key that is dead");
		return NULL;
	}
	if (r->state != POSTED && r->state != WAITING)
		world_bad(w, "a write into memory that belongs to the program");
	return &r->in_it;
}

static void do_begin(struct world *w, struct message *m)
{
	struct message **in_it = key_leads_to(w, m);

	m->write = BEGUN;
	if (!in_it)
		return;
	if (*in_it)
		world_bad(w, "two messages are written into one buffer");
	*in_it = m;
}

static void do_write(struct world *w, struct message *m)
{
	struct message **in_it;

	if (m->write == TO_WRITE)
		do_begin(w, m);
	in_it = key_leads_to(w, m);
	if (in_it && *in_it != m)
		world_bad(w, "a message is written into two buffers");
	m->write = WRITTEN;
	m->done = true;
	if (!asks_back(w))
		notify(w, m);
}

/* ---- the receiver ---------------------------------------------------------------------------- */

static void complete(struct world *w, struct receive *r, struct message *m)
{
	r->state = COMPLETE;
	r->key = false;
	r->put = NULL;
	m->received = true;
	if (m->want != r - w->recv)
		world_bad(w, "a message is delivered to the wrong receive");
	if (r->in_it && r->in_it != m)
		world_bad(w, "a receive has the data of another message");
}

static void do_read(struct world *w, struct receive *r, struct message *m)
{
	if (m->done)
		world_bad(w, "a read from memory that belongs to the program again");
	m->done = true;
	complete(w, r, m);
}

static void copy(struct world *w, struct ghost *g)
{
	if (g->to->in_it)
		world_bad(w, "a receive has the data of another message");
	g->to->in_it = g->in_it;
	complete(w, g->to, g->in_it);
}

/* What comes, or has come, into a ghost is for this receive. */
static void take_from(struct world *w, struct ghost *g, struct receive *r, struct message *m)
{
	g->to = r;
	r->state = WAITING;
	if (w->mutant == MOVE_OWN && of_id(w, m->id) != r)
		world_bad(w, "a PUT names another receive than the one that must have it");
	if (!g->here)
		return;
	if (g->in_it != m)
		world_bad(w, "a ghost has the data of another message");
	else
		copy(w, g);
}

/* The receive and the message have found each other. */
static void take(struct world *w, struct receive *r, struct message *m, bool was_posted)
{
	if (is_thesis(w))
		thesis_took(w, r, m, was_posted);
	if (msg_ask_matched(&r->ask))
		r->key = false;
	if (m->kind == EAGER)
		complete(w, r, m);
	else if (m->kind == PUT)
		take_from(w, ghost_of(w, m->id), r, m);
	else
		do_read(w, r, m);
}

static struct msg_ask *live_ask(struct world *w, const struct message *m)
{
	struct receive *r = of_id(w, m->id);
	struct ghost *g = ghost_of(w, m->id);

	if (msg_ask_live(&g->ask))
		return &g->ask;
	return msg_ask_live(&r->ask) && r->ask.id == m->id ? &r->ask : NULL;
}

static void handle_message(struct world *w, struct message *m)
{
	struct msg_recv *found = msg_match_take(&w->match, m->src, m->unexp.tag);
	struct receive *r = found ? container_of(found, struct receive, recv) : NULL;
	int rc = MSG_PUT_GHOST;

	m->handled = true;
	if (is_thesis(w))
		thesis_came(w, m);
	w->seen[m->src]++;
	oracle_message(w, m);
	if (m->want != (r ? r - w->recv : -1))
		world_bad(w, "matching differs from the oracle's");
	if (m->kind == PUT)
		rc = msg_ask_put(r ? &r->ask : NULL, live_ask(w, m));
	if (rc < 0) {
		world_bad(w, "a PUT names another receive than the one that must have it");
	} else if (rc == MSG_PUT_WAIT) {
		r->state = WAITING;
		r->put = m;
	} else if (r) {
		take(w, r, m, true);
	} else {
		msg_match_store(&w->match, &m->unexp);
	}
}

static void handle_notice(struct world *w, struct message *m)
{
	struct receive *r = of_id(w, m->id);
	struct ghost *g = ghost_of(w, m->id);

	if (g->ask.state == MSG_ASK_USED && g->in_it == m && !msg_ask_notice(&g->ask)) {
		g->key = false;
		g->here = true;
		if (g->to)
			copy(w, g);
		return;
	}
	if (r->put != m || r->in_it != m || msg_ask_notice(&r->ask))
		world_bad(w, "a notice that nobody waits for");
	else
		complete(w, r, m);
}

static void handle_answer(struct world *w, uint32_t id)
{
	struct receive *r = of_id(w, id);
	struct ghost *g = ghost_of(w, id);

	if (msg_ask_answered(&g->ask))
		g->key = false;
	else if (r->ask.id == id && msg_ask_answered(&r->ask))
		r->key = false;
}

static void do_handle(struct world *w)
{
	struct arrival a = w->inbox[0];

	w->n_inbox--;
	memmove(&w->inbox[0], &w->inbox[1], w->n_inbox * sizeof(w->inbox[0]));
	if (!a.m)
		handle_answer(w, a.id);
	else if (a.notice)
		handle_notice(w, a.m);
	else
		handle_message(w, a.m);
}

static uint32_t asks_out(const struct world *w, uint32_t src)
{
	uint32_t n = 0;

	for (unsigned int i = 0; i < w->n_recvs; i++)
		n += w->recv[i].ask.state == MSG_ASK_OUT && w->recv[i].recv.src == src;
	return n;
}

static bool may_ask(const struct world *w, unsigned int at, struct msg_ahead *ahead)
{
	const struct receive *r = &w->recv[at];

	if (r->state != POSTED || r->asks == MAX_ASKS || r->recv.src == MSG_ANY_SRC)
		return false;
	*ahead = msg_match_ahead(&w->match, &r->recv);
	if (w->mutant == ASK_UNCLEAR)
		ahead->clear = true;
	if (is_thesis(w) && !thesis_may_ask(w, r))
		return false;
	return msg_spec_may_ask(&r->ask, *ahead, r->len, EAGER_MAX, asks_out(w, r->recv.src));
}

static void do_ask(struct world *w, unsigned int at)
{
	struct note n = {.what = NOTE_RTR};
	struct receive *r = &w->recv[at];
	struct msg_ahead ahead;

	if (!may_ask(w, at, &ahead))
		return;
	msg_ask_out(&r->ask, id_of(at, r->asks++), &r->recv, ahead, w->seen[r->recv.src], r->len,
		    &n.rtr);
	r->key = true;
	world_note(w, r->recv.src, n);
}

static void do_post(struct world *w, const struct prog_op *op)
{
	unsigned int at = w->n_recvs++;
	struct receive *r = &w->recv[at];
	struct msg_unexp *u;

	r->recv = (struct msg_recv){.src = op->src, .tag = op->tag, .ignore = op->ignore};
	r->len = (uint8_t)op->len;
	r->state = POSTED;
	oracle_post(w, at);
	u = msg_match_find(&w->match, op->src, op->tag, op->ignore);
	if (u) {
		msg_match_drop(&w->match, u);
		take(w, r, container_of(u, struct message, unexp), false);
	} else if (msg_match_post(&w->match, &r->recv)) {
		world_bad(w, "no memory");
	} else if (is_thesis(w)) {
		do_ask(w, at);
	}
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void do_op(struct world *w)
{
	const struct prog_op *op = &w->prog->op[w->next_op++];

	if (op->what == OP_POST)
		do_post(w, op);
	else
		cancel_begin(w, op->src);
}

void world_step(struct world *w, struct step s)
{
	struct message *m = &w->sender[s.who].msg[s.what];

	w->busy = -1;
	if (s.kind == NOTE && w->sender[s.who].sent < w->prog->n_sends[s.who])
		w->busy = s.who;
	switch ((enum step_kind)s.kind) {
	case SEND:
		do_send(w, s.who, s.what);
		break;
	case ARRIVE:
		do_arrive(w, s.who);
		break;
	case BEGIN:
		do_begin(w, m);
		break;
	case WRITE:
		do_write(w, m);
		break;
	case NOTICE:
		notify(w, m);
		break;
	case HANDLE:
		do_handle(w);
		break;
	case OP:
		do_op(w);
		break;
	case SETTLE:
		cancel_end(w, true);
		break;
	case ASK:
		do_ask(w, s.what);
		break;
	case NOTE:
		do_note(w, s.who);
		break;
	case DONE: /* THESIS: the sender hears of the read, which has taken its time */
		m->write = NOTIFIED;
		world_note(w, s.who, (struct note){.what = NOTE_DONE, .index = s.what});
		break;
	}
}

static struct step *add(struct step *s, enum step_kind kind, unsigned int who, unsigned int what)
{
	*s = (struct step){(uint8_t)kind, (uint8_t)who, (uint8_t)what};
	return s + 1;
}

static struct step *sends(const struct world *w, unsigned int src, struct step *s)
{
	const struct sender *from = &w->sender[src];
	bool last = from->sent == w->prog->n_sends[src];

	for (unsigned int len = SHORT; !last && len <= VAST; len++)
		if (w->prog->send[src][from->sent].lens & SET(len))
			s = add(s, SEND, src, len);
	/* A note changes nothing but what the next message finds: without one it can wait. */
	if (from->n_notes && !(last && w->reduce))
		s = add(s, NOTE, src, 0);
	return s;
}

static struct step *network(const struct world *w, unsigned int src, struct step *s)
{
	const struct sender *from = &w->sender[src];

	if (from->n_out)
		s = add(s, ARRIVE, src, 0);
	for (unsigned int i = 0; i < from->sent; i++) {
		const struct message *m = &from->msg[i];

		if (m->write == TO_WRITE && (m->arrived || asks_back(w)))
			s = add(s, moves(w) ? BEGIN : WRITE, src, i);
		if (m->write == BEGUN)
			s = add(s, WRITE, src, i);
		if (m->write == WRITTEN && m->arrived)
			s = add(s, NOTICE, src, i);
		if (is_thesis(w) && m->kind == RTS && m->received && m->write == NO_WRITE)
			s = add(s, DONE, src, i);
	}
	return s;
}

/* While a receive is being cancelled, others of its envelope must not count on it. */
static bool is_barred(const struct world *w, unsigned int at)
{
	const struct msg_recv *a = &w->recv[at].recv, *b;

	if ((int)at == w->cancelling)
		return true;
	if (w->cancelling < 0 || w->mutant == BACK_ASKS)
		return false;
	b = &w->recv[w->cancelling].recv;
	return a->src == b->src && a->ignore == b->ignore && !((a->tag ^ b->tag) & ~a->ignore);
}

static struct step *receiver(const struct world *w, struct step *s)
{
	bool idle = w->cancelling < 0;
	struct msg_ahead ahead;

	if (w->n_inbox)
		s = add(s, HANDLE, 0, 0);
	if (!idle && cancel_settled(w))
		s = add(s, SETTLE, 0, 0);
	if (w->next_op < w->prog->n_ops && (idle || w->prog->op[w->next_op].what == OP_POST))
		s = add(s, OP, 0, 0);
	for (unsigned int i = 0; i < w->n_recvs; i++)
		if (!is_thesis(w) && !is_barred(w, i) && may_ask(w, i, &ahead))
			s = add(s, ASK, 0, i);
	return s;
}

static bool is_ask(struct step s)
{
	return s.kind == ASK;
}

/* Goes on without the sender's program, and ends. */
static bool is_alone(struct step s)
{
	return s.kind != SEND && s.kind != NOTE && s.kind != OP && s.kind != ASK;
}

unsigned int world_choices(struct world *w, struct step *out)
{
	struct step *s = out;
	bool must = false, alone = false;

	/* To take in a note commutes with all but a send of the same sender, so it can be put off
	 * until just before one. */
	if (w->reduce && w->busy >= 0)
		return (unsigned int)(sends(w, (unsigned int)w->busy, s) - out);
	for (unsigned int i = 0; i < SENDERS; i++)
		s = network(w, i, sends(w, i, s));
	s = receiver(w, s);
	for (struct step *i = out; i < s; i++) {
		must |= !is_ask(*i);
		alone |= is_alone(*i);
	}
	if (w->mutant == RIGHT_MOVE && w->cancelling >= 0 && !alone)
		world_bad(w, "a cancel waits for the sender's program");
	for (unsigned int i = 0; w->reduce && !must && i < SENDERS; i++)
		if (w->sender[i].n_notes)
			s = add(s, NOTE, i, 0);
	return (unsigned int)(s - out);
}

/* ---- at the end ------------------------------------------------------------------------------ */

static void end_message(struct world *w, const struct message *m)
{
	if (m->want >= 0 && !m->received)
		world_bad(w, "a message is lost");
	if (m->want >= 0 && !m->done)
		world_bad(w, "a sender does not get its buffer back");
	if (m->want < 0 && m->received)
		world_bad(w, "a message is received that should not be");
}

static void end_receive(struct world *w, const struct receive *r)
{
	if (r->state == WAITING)
		world_bad(w, "a receive waits for ever");
	if (r->key != (r->state == POSTED && r->ask.state == MSG_ASK_OUT))
		world_bad(w, "a key is alive that nobody needs");
	if (r->state != POSTED && r->ask.state != MSG_ASK_NONE)
		world_bad(w, "an RTR is out without a receive");
}

/* What is held is out, and will end when its message or its withdrawal comes. */
static void end_ledger(struct world *w, const struct msg_ledger *l)
{
	for (unsigned int i = 0; i < l->n_held; i++) {
		const struct receive *r = of_id(w, l->held[i].rtr.id);

		if (r->ask.id != l->held[i].rtr.id || r->ask.state != MSG_ASK_OUT)
			world_bad(w, "an RTR is held for ever");
	}
}

void world_end(struct world *w)
{
	for (unsigned int i = 0; i < SENDERS; i++) {
		for (unsigned int j = 0; j < w->sender[i].sent; j++)
			end_message(w, &w->sender[i].msg[j]);
		end_ledger(w, &w->sender[i].ledger);
	}
	for (unsigned int i = 0; i < w->n_recvs; i++)
		end_receive(w, &w->recv[i]);
	for (unsigned int i = 0; i < MAX_RECVS * MAX_ASKS; i++)
		if (w->ghost[i].key || msg_ask_live(&w->ghost[i].ask))
			world_bad(w, "a ghost stays for ever");
}
