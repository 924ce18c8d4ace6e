/* Receives that are cancelled, and what becomes of their RTRs. */
#include "explore.h"

/* A receive into which something was written has its message. */
static bool may_move(const struct world *w, const struct receive *r)
{
	if (!moves(w) || (w->mutant == RIGHT_SOME && (r - w->recv) % 2))
		return false;
	return !r->in_it || w->mutant == MOVE_WRITTEN;
}

static void get_back(struct world *w, struct receive *r)
{
	uint32_t id = r->ask.id;
	struct ghost *g;

	if (!msg_ask_back(&r->ask))
		return;
	if (w->mutant != NO_WITHDRAW)
		world_note(w, r->recv.src, (struct note){.what = NOTE_WITHDRAW, .rtr.id = id});
	if (!may_move(w, r))
		return;
	g = ghost_of(w, id);
	msg_ask_move(&r->ask, &g->ask);
	r->key = false;
	g->key = w->mutant != MOVE_FREED;
	g->in_it = r->in_it;
}

bool cancel_settled(const struct world *w)
{
	for (unsigned int i = 0; i < w->n_recvs && w->mutant != BACK_EARLY; i++)
		if (w->recv[i].ask.state == MSG_ASK_BACK)
			return false;
	return true;
}

/* A cancel that had to wait has failed, if all can be moved: the message was sent before. */
void cancel_end(struct world *w, bool settled_late)
{
	struct receive *r = &w->recv[w->cancelling];
	bool could = oracle_cancel(w, (unsigned int)w->cancelling);

	if (could != msg_recv_posted(&r->recv))
		world_bad(w, "a cancel succeeds or fails where it must not");
	w->cancelling = -1;
	if (could && w->mutant == RIGHT_MOVE && settled_late)
		world_bad(w, "a cancel has waited for nothing");
	if (!could || w->bad)
		return;
	msg_match_cancel(&w->match, &r->recv);
	r->state = CANCELLED;
	if (r->in_it)
		world_bad(w, "a receive is cancelled, but something was written into it");
}

void cancel_begin(struct world *w, unsigned int at)
{
	struct msg_recv *r = &w->recv[at].recv;

	if (w->recv[at].state != POSTED)
		return;
	w->cancelling = (int)at;
	do {
		get_back(w, container_of(r, struct receive, recv));
		r = msg_match_behind(&w->match, r);
	} while (r && w->mutant != MOVE_ALONE);
	if (cancel_settled(w))
		cancel_end(w, false);
}
