/* Rendezvous by read: the sender says where its message is, the receiver reads it, and says so. */
#include <errno.h>
#include "msg_ep.h"

/* ---- the sender ---- */

int msg_read_announce(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_pkt p = msg_head(op, MSG_RTS);
	int err = msg_expose(ep, op, false, op->room, &p);

	if (err)
		return err;
	p.flags |= op->strip_it ? MSG_F_STRIPE : 0;
	err = msg_id_new(ep, op);
	p.id = op->id;
	if (!err)
		err = msg_tx_send(ep, op->peer, &p, NULL, 0, NULL);
	if (err) {
		msg_unexpose(ep, op);
		msg_id_free(ep, op);
		return err;
	}
	op->phase = MSG_PHASE_RTS;
	ep->stats.read++;
	return 0;
}

/* The receiver has it, or will never. */
void msg_read_done(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	struct msg_op *op = msg_id_op(ep, p->id);

	if (!op || op->phase != MSG_PHASE_RTS || op->peer != src)
		return; /* nothing that it has a say in */
	msg_unexpose(ep, op);
	msg_id_free(ep, op);
	op->phase = MSG_PHASE_NONE;
	op->len = op->room;
	msg_stripe_arrived(ep, op);
	msg_done(ep, op, 0);
}

/* ---- the receiver ---- */

void msg_read_finish(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_pkt p = {.type = MSG_DONE, .id = op->peer_id};
	int err = msg_tx_post(ep, op->src, &p, NULL, 0);

	if (err == -EHOSTUNREACH)
		err = 0; /* a message is here or not, whatever has become of its sender */
	op->phase = MSG_PHASE_NONE;
	msg_done(ep, op, err ? err : op->over ? -EMSGSIZE : 0);
}

void msg_read_start(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p)
{
	op->peer_id = p->id;
	op->phase = MSG_PHASE_READ;
	op->strip_it = p->flags & MSG_F_STRIPE;
	if (p->len >= ep->conf.stripe_min)
		ep->peers[op->src].hot = op->strip_it;
	if (op->strip_it)
		stripe_auto_heard(&ep->crowd);
	msg_rdma_start(ep, op, p);
}
