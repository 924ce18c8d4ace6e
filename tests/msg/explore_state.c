/* A state as bytes, and a step in words. */
#include <stdio.h>

#include "explore.h"

static uint8_t *bytes_of_rtr(uint8_t *p, const struct msg_rtr *rtr)
{
	*p++ = (uint8_t)rtr->id;
	*p++ = (uint8_t)rtr->seen;
	*p++ = (uint8_t)rtr->ahead;
	return p;
}

static uint8_t *bytes_of_message(uint8_t *p, const struct message *m)
{
	*p++ = m->len;
	*p++ = (uint8_t)(m->kind | m->write << 2 | m->owed << 5);
	*p++ = (uint8_t)(m->id << 2 | m->done << 1 | m->received);
	*p++ = (uint8_t)(m->arrived | m->handled << 1 | (m->want + 1) << 2);
	*p++ = m->flag;
	return p;
}

static uint8_t *bytes_of_sender(uint8_t *p, const struct sender *s, bool thesis)
{
	*p++ = (uint8_t)s->sent;
	*p++ = (uint8_t)s->n_notes;
	*p++ = (uint8_t)s->ledger.n_held;
	/* The log begins with the first RTR, and how far it reaches makes a difference. */
	*p++ = (uint8_t)(s->ledger.logged << 1 | (s->ledger.log != NULL));
	for (unsigned int i = 0; i < s->sent; i++)
		p = bytes_of_message(p, &s->msg[i]);
	*p++ = (uint8_t)s->n_out;
	for (unsigned int i = 0; i < s->n_out; i++)
		*p++ = s->out[i].m ? 0 : (uint8_t)s->out[i].id;
	for (unsigned int i = 0; i < s->n_notes; i++) {
		*p++ = (uint8_t)(s->note[i].what << 4 | s->note[i].index);
		p = bytes_of_rtr(p, &s->note[i].rtr);
	}
	for (unsigned int i = 0; i < s->ledger.n_held; i++) {
		*p++ = (uint8_t)s->ledger.held[i].rtr.id;
		*p++ = (uint8_t)s->ledger.held[i].left;
	}
	if (!thesis)
		return p;
	*p++ = s->thesis.n_held;
	*p++ = (uint8_t)(s->thesis.eager_flag | s->thesis.stopping << 1 | s->thesis.resuming << 2 |
			 s->thesis.stopped << 3);
	*p++ = s->thesis.stop_index;
	for (unsigned int i = 0; i < s->thesis.n_held; i++)
		p = bytes_of_rtr(p, &s->thesis.held[i]);
	return p;
}

static uint8_t *bytes_of_receive(uint8_t *p, const struct receive *r)
{
	*p++ = (uint8_t)(r->state | r->ask.state << 4);
	*p++ = (uint8_t)(r->asks | r->key << 4);
	*p++ = r->put ? (uint8_t)(r->put->src << 4 | r->put->index | 0x80) : 0;
	*p++ = r->in_it ? (uint8_t)(r->in_it->src << 4 | r->in_it->index | 0x80) : 0;
	return p;
}

static uint8_t *bytes_of_ghosts(uint8_t *p, const struct world *w)
{
	for (unsigned int i = 0; i < MAX_RECVS * MAX_ASKS; i++) {
		const struct ghost *g = &w->ghost[i];

		if (!g->ask.id)
			continue;
		*p++ = (uint8_t)(i + 0x80);
		*p++ = (uint8_t)(g->ask.state | g->key << 4 | g->here << 5);
		*p++ = g->in_it ? (uint8_t)(g->in_it->src << 4 | g->in_it->index | 0x80) : 0;
		*p++ = g->to ? (uint8_t)(g->to - w->recv + 1) : 0;
	}
	return p;
}

size_t world_bytes(const struct world *w, uint8_t *out)
{
	uint8_t *p = out;

	*p++ = (uint8_t)w->next_op;
	*p++ = (uint8_t)(w->cancelling + 1);
	*p++ = w->reduce ? (uint8_t)(w->busy + 1) : 0;
	*p++ = (uint8_t)w->n_inbox;
	*p++ = (uint8_t)w->n_unexp;
	for (unsigned int i = 0; i < SENDERS; i++)
		if (w->prog->n_sends[i])
			p = bytes_of_sender(p, &w->sender[i], is_thesis(w));
	for (unsigned int i = 0; i < w->n_recvs; i++)
		p = bytes_of_receive(p, &w->recv[i]);
	p = bytes_of_ghosts(p, w);
	for (unsigned int i = 0; i < w->n_inbox; i++) {
		const struct arrival *a = &w->inbox[i];

		*p++ = (uint8_t)(a->src << 4 | a->notice << 7 | (a->m ? a->m->index : 0x40));
		*p++ = (uint8_t)a->id;
	}
	/* Between senders, the order of arrival is part of it. */
	for (unsigned int i = 0; i < w->n_unexp; i++)
		*p++ = (uint8_t)(w->unexp[i]->src << 4 | w->unexp[i]->index);
	return (size_t)(p - out);
}

void step_print(const struct world *w, struct step s)
{
	const struct message *m = &w->sender[s.who].msg[s.what];
	static const char *const kind[] = {"EAGER", "RTS", "PUT"};
	const struct prog_op *op;

	switch ((enum step_kind)s.kind) {
	case SEND:
		m = &w->sender[s.who].msg[w->sender[s.who].sent - 1];
		printf("  A%u sends s%u, length %u: %s", s.who, m->index + 1u, m->len,
		       kind[m->kind]);
		printf(m->kind == PUT ? " with RTR %u\n" : "\n", m->id);
		break;
	case ARRIVE:
		printf("  what A%u sent first arrives\n", s.who);
		break;
	case BEGIN:
		printf("  A%u's s%u begins to be written by RTR %u\n", s.who, s.what + 1u, m->id);
		break;
	case WRITE:
		printf("  A%u's s%u is written by RTR %u\n", s.who, s.what + 1u, m->id);
		break;
	case NOTICE:
		printf("  the notice of A%u's s%u arrives\n", s.who, s.what + 1u);
		break;
	case HANDLE:
		printf("  B handles what arrived first\n");
		break;
	case OP:
		op = &w->prog->op[w->next_op - 1];
		printf("  B %s r%u\n", op->what == OP_POST ? "posts" : "cancels",
		       op->what == OP_POST ? w->n_recvs : op->src + 1);
		break;
	case SETTLE:
		printf("  B ends the cancel\n");
		break;
	case ASK:
		printf("  r%u sends RTR %u\n", s.what + 1u, w->recv[s.what].ask.id);
		break;
	case NOTE:
		printf("  A%u takes in an RTR or a note\n", s.who);
		break;
	case DONE:
		printf("  the read of A%u's s%u is done\n", s.who, s.what + 1u);
		break;
	}
}
