/* Data on the way: reads and writes of rendezvous, and those that the application asks for. */
#include <errno.h>
#include "msg_ep.h"

int msg_expose(struct msg_ep *ep, struct msg_op *op, bool write, uint64_t len, struct msg_pkt *p)
{
	int err = 0;

	for (unsigned int i = 0; i < op->n_iov && len && !err; i++) {
		uint64_t part = op->iov[i].iov_len < len ? op->iov[i].iov_len : len;
		struct msg_seg *s = &p->seg[p->n_seg];

		if (!part)
			continue;
		if (part > UINT32_MAX)
			err = -EMSGSIZE;
		else
			err = msg_hold(ep->dev, op->iov[i].iov_base, part, write,
				       &op->hold[p->n_seg]);
		if (err)
			break;
		s->key = op->hold[p->n_seg].mr->rkey;
		s->addr = (uintptr_t)op->iov[i].iov_base;
		s->len = (uint32_t)part;
		len -= part;
		p->n_seg++;
	}
	if (err)
		msg_unexpose(ep, op);
	return err;
}

void msg_unexpose(struct msg_ep *ep, struct msg_op *op)
{
	for (unsigned int i = 0; i < MSG_IOV; i++)
		if (op->hold[i].mr)
			msg_release(ep->dev, &op->hold[i]);
	msg_direct_back(ep, op);
}

/* It has an id meanwhile, so that msg_ep_close finds it. */
int msg_hold_local(struct msg_ep *ep, struct msg_op *op)
{
	bool write = op->kind == MSG_OP_RECV || op->kind == MSG_OP_READ;
	int err = ep->dev->all || op->id ? 0 : msg_id_new(ep, op);

	if (ep->dev->all || err)
		return err;
	err = msg_direct_rma(ep, op);
	for (unsigned int i = 0; i < op->n_iov && !op->bounce && !err; i++)
		if (op->iov[i].iov_len && !op->hold[i].mr)
			err = msg_hold(ep->dev, op->iov[i].iov_base, op->iov[i].iov_len, write,
				       &op->hold[i]);
	return err;
}

static void ended(struct msg_ep *ep, struct msg_op *op)
{
	if (op->strip) {
		op->len = op->strip->msg.bytes;
		msg_stripe_end(ep, op);
	}
	if (!ep->dev->all) {
		if (op->bounce && op->kind == MSG_OP_READ && !op->err)
			msg_scatter(op, op->bounce->data, op->len);
		msg_unexpose(ep, op);
		msg_id_free(ep, op);
	}
	if (op->phase == MSG_PHASE_READ) {
		msg_read_finish(ep, op);
		return;
	}
	if (op->kind != MSG_OP_RECV)
		msg_stripe_arrived(ep, op);
	if (op->phase == MSG_PHASE_WRITE) {
		op->len = op->room;
	} else if (op->kind == MSG_OP_WRITE && op->flags & MSG_OP_DATA && !op->err && !op->told) {
		struct msg_pkt p = {.type = MSG_WROTE, .data = (uint32_t)op->data, .len = op->len};

		op->err = msg_tx_post(ep, op->peer, &p, NULL, 0);
	}
	op->phase = MSG_PHASE_NONE;
	msg_done(ep, op, 0);
}

bool msg_rdma_go_on(struct msg_ep *ep, struct msg_op *op)
{
	int err = op->err ? op->err : msg_tx_rdma(ep, op);

	if (err == -EAGAIN || err == -ENOBUFS) {
		/* Whose peer has no room keeps nothing from others, as long as nothing of it is
		 * under way. */
		if (err == -EAGAIN && !op->len && !op->pending && !op->strip)
			msg_direct_back(ep, op);
		list_add_tail(&op->link, &ep->stalled);
		return err == -ENOBUFS;
	}
	if (!op->err)
		op->err = err;
	if (!op->pending && (op->err || !op->strip || msg_stripe_over(ep, op)))
		ended(ep, op);
	return false;
}

void msg_rdma_start(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p)
{
	op->len = 0;
	op->n_remote = p->n_seg < MSG_IOV ? p->n_seg : MSG_IOV;
	for (unsigned int i = 0; i < op->n_remote; i++)
		op->remote[i] = (struct msg_remote){
			.addr = p->seg[i].addr, .len = p->seg[i].len, .key = p->seg[i].key};
	msg_rdma_go_on(ep, op);
}

void msg_rdma_done(struct msg_ep *ep, struct msg_op *op, int err)
{
	if (!op->err)
		op->err = err;
	if (--op->pending)
		return;
	if (list_empty(&op->link)) /* else the rest is to come */
		ended(ep, op);
}
