/* Rendezvous by read: the sender says where its message is, the receiver reads it, and says so. */
#include <errno.h>
#include <string.h>
#include "msg_ep.h"

static void forget(struct msg_op *op)
{
	for (unsigned int i = 0; i < MSG_IOV; i++) {
		if (op->mr[i])
			msg_dereg(op->mr[i]);
		op->mr[i] = NULL;
	}
}

/* ---- the sender ---- */

int msg_rndv_announce(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_pkt p = msg_head(op, MSG_RTS);
	int err = msg_id_new(ep, op);

	for (unsigned int i = 0; i < op->n_iov && !err; i++) {
		struct msg_seg *s = &p.seg[p.n_seg];

		if (!op->iov[i].iov_len)
			continue;
		s->addr = (uintptr_t)op->iov[i].iov_base;
		s->len = (uint32_t)op->iov[i].iov_len;
		err = msg_reg(ep->dev, op->iov[i].iov_base, op->iov[i].iov_len, false,
			      &op->mr[p.n_seg++], &s->key);
	}
	p.id = op->id;
	if (!err)
		err = msg_tx_control(ep, op->peer, &p);
	if (err) {
		forget(op);
		msg_id_free(ep, op);
	}
	return err;
}

/* The receiver has it, or will never. */
void msg_rndv_done(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	struct msg_op *op = msg_id_op(ep, p->id);

	if (!op || op->kind != MSG_OP_SEND || op->peer != src)
		return; /* nothing that it has a say in */
	forget(op);
	msg_id_free(ep, op);
	op->len = op->room;
	msg_done(ep, op, 0);
}

/* ---- the receiver ---- */

static void finish(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_pkt p = {.type = MSG_DONE, .id = op->peer_id};

	if (msg_tx_control(ep, op->src, &p) == -EAGAIN) {
		list_add_tail(&op->link, &ep->stalled);
		return;
	}
	msg_done(ep, op, op->over ? -EMSGSIZE : 0);
}

/* From where it stopped for want of room. */
void msg_rndv_go_on(struct msg_ep *ep, struct msg_op *op)
{
	int err = msg_tx_rdma(ep, op, op->kind == MSG_OP_WRITE);

	if (err == -EAGAIN) {
		list_add_tail(&op->link, &ep->stalled);
		return;
	}
	if (err && !op->err)
		op->err = err;
	if (!op->pending && op->kind == MSG_OP_RECV)
		finish(ep, op);
	else if (!op->pending)
		msg_done(ep, op, 0);
}

void msg_rndv_read(struct msg_ep *ep, struct msg_op *op, uint32_t src, const struct msg_pkt *p)
{
	msg_matched(op, src, p);
	op->len = op->off = op->next = 0;
	op->peer_id = p->id;
	op->n_remote = p->n_seg < MSG_IOV ? p->n_seg : MSG_IOV;
	for (unsigned int i = 0; i < op->n_remote; i++)
		op->remote[i] = (struct msg_remote){
			.addr = p->seg[i].addr, .len = p->seg[i].len, .key = p->seg[i].key};
	msg_rndv_go_on(ep, op);
}

void msg_rndv_rdma_done(struct msg_ep *ep, struct msg_op *op)
{
	if (op->pending)
		return;
	if (op->next < op->n_remote && op->len < op->room && !op->err)
		return; /* the rest is stalled */
	if (op->kind == MSG_OP_RECV)
		finish(ep, op);
	else
		msg_done(ep, op, 0);
}
