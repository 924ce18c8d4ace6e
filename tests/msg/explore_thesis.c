/* The protocol as it is printed in the thesis (4.2.2 and 4.2.3), for one envelope, in its most
 * favourable reading: the stop ends with the acknowledgement or the `done` of the very RTS that
 * carried it, and resuming takes nothing for granted. It is here to be refuted.
 */
#include <string.h>

#include "explore.h"

/* "Each incoming RTR will be assigned to the first send request in the posted queue" that has sent
 * an RTS and has had neither RTR nor acknowledgement. */
static struct message *first_owed(struct sender *s)
{
	for (unsigned int i = 0; i < s->sent; i++)
		if (s->msg[i].owed)
			return &s->msg[i];
	return NULL;
}

/* "The sender can now remove all matching RTRs", and says so with the next RTS. */
static void end_stop(struct thesis *t)
{
	t->n_held = 0;
	t->stopping = t->eager_flag = false;
	t->resuming = true;
}

static void settled(struct sender *s, struct message *m)
{
	m->owed = false;
	if (s->thesis.stopping && s->thesis.stop_index == m->index)
		end_stop(&s->thesis);
}

void thesis_note(struct sender *s, const struct note *n)
{
	struct message *m = first_owed(s);

	if (n->what == NOTE_DONE)
		settled(s, &s->msg[n->index]);
	else if (n->what == NOTE_ACK && m)
		settled(s, m);
	else if (n->what == NOTE_RTR && m)
		m->owed = false;
	else if (n->what == NOTE_RTR)
		s->thesis.held[s->thesis.n_held++] = n->rtr;
}

bool thesis_sent(struct sender *s, struct message *m, struct msg_rtr *use)
{
	struct thesis *t = &s->thesis;

	if (m->len <= EAGER_MAX) {
		t->eager_flag = true;
		return false;
	}
	if (t->eager_flag && !t->stopping) {
		t->stopping = true;
		t->stop_index = m->index;
		m->flag = 's';
	} else if (!t->stopping && t->resuming) {
		t->resuming = false;
		m->flag = 'r';
	} else if (!t->stopping && t->n_held && m->len <= t->held[0].length) {
		*use = t->held[0];
		t->n_held--;
		memmove(&t->held[0], &t->held[1], t->n_held * sizeof(t->held[0]));
		return true;
	}
	m->owed = true;
	return false;
}

void thesis_came(struct world *w, const struct message *m)
{
	if (m->flag)
		w->sender[m->src].thesis.stopped = m->flag == 's';
}

/* "No matching RTR message will be sent if there is any matching Rreq in the Recvq that has not
 * sent an RTR message." It is asked at posting. */
bool thesis_may_ask(const struct world *w, const struct receive *r)
{
	if (w->sender[r->recv.src].thesis.stopped)
		return false;
	for (const struct receive *i = w->recv; i < r; i++)
		if (i->state == POSTED && i->ask.state != MSG_ASK_OUT)
			return false;
	return true;
}

/* A receive that finds an RTS acknowledges it. One "which has already sent an RTR does not need to
 * send an ACK", and one that was posted without an RTR is not spoken of. */
void thesis_took(struct world *w, const struct receive *r, const struct message *m, bool was_posted)
{
	bool silent = was_posted && (w->mutant == THESIS || r->asks);

	if (m->kind == RTS && !silent)
		world_note(w, m->src, (struct note){.what = NOTE_ACK});
}
