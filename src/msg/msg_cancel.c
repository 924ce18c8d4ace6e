/* Receives that are taken back. If peers have been told of them, or of receives behind them that
 * count on them, these RTRs are asked back, and moved to ghosts; only where that can not be, the
 * answers have to be waited for (docs/rendezvous.md). */
#include <errno.h>
#include "msg_ep.h"

static struct msg_op *behind(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_recv *r = msg_match_behind(&ep->match[1], &op->recv);

	return r ? container_of(r, struct msg_op, recv) : NULL;
}

static void take_off(struct msg_ep *ep, struct msg_op *op)
{
	msg_match_cancel(msg_match_of(ep, op->flags & MSG_OP_TAGGED), &op->recv);
	msg_end_recv(ep, op, -ECANCELED);
}

static int ask_back(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_pkt p = {.type = MSG_WITHDRAW, .id = op->id};
	int err;

	if (!msg_ask_back(&op->ask))
		return 0;
	err = msg_tx_post(ep, op->peer, &p, NULL, 0);
	if (err)
		op->ask.state = MSG_ASK_OUT;
	else
		msg_ghost_take(ep, op);
	return err;
}

static bool has_to_wait(struct msg_ep *ep, struct msg_op *op)
{
	for (; op; op = behind(ep, op))
		if (op->ask.state == MSG_ASK_BACK)
			return true;
	return false;
}

int msg_cancel_start(struct msg_ep *ep, struct msg_op *op)
{
	bool named = op->flags & MSG_OP_TAGGED && op->peer != MSG_ANY_SRC;
	int err = 0;

	if (op->cancel)
		return 0;
	for (struct msg_op *o = named ? op : NULL; o && !err; o = behind(ep, o))
		err = ask_back(ep, o);
	if (err)
		return err;
	if (!named || !has_to_wait(ep, op)) {
		take_off(ep, op);
		return 0;
	}
	op->cancel = true;
	list_add_tail(&op->link, &ep->cancelling);
	ep->peers[op->peer].cancels++;
	return 0;
}

void msg_cancel_forget(struct msg_ep *ep, struct msg_op *op)
{
	op->cancel = false;
	list_del(&op->link);
	ep->peers[op->peer].cancels--;
}

void msg_cancel_check(struct msg_ep *ep, uint32_t peer)
{
	struct list_head *at = ep->cancelling.next;

	while (at != &ep->cancelling) {
		struct msg_op *op = list_entry(at, struct msg_op, link);

		at = at->next;
		if (op->peer != peer || has_to_wait(ep, op))
			continue;
		msg_cancel_forget(ep, op);
		take_off(ep, op);
	}
}

void msg_cancel_answer(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	struct msg_op *op = msg_id_op(ep, p->id);

	if (op && op->kind == MSG_OP_GHOST && op->src == src) {
		msg_ghost_answer(ep, op);
		return;
	}
	if (!op || op->kind != MSG_OP_RECV || op->recv.src != src || !msg_ask_answered(&op->ask))
		return;
	msg_unexpose(ep, op);
	msg_id_free(ep, op);
	ep->peers[src].out--;
	msg_cancel_check(ep, src);
}

/* ---- the sender ---- */

void msg_cancel_withdraw(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	struct msg_pkt answer = {.type = MSG_ANSWER, .id = p->id};

	msg_ledger_withdraw(&ep->peers[src].ledger, p->id);
	/* Should there be no memory, the other one waits; there is nothing else to be done. */
	msg_tx_post(ep, src, &answer, NULL, 0);
}
