/* Calls made into operations of the engine. */
#include <stdlib.h>
#include <string.h>
#include "ofi.h"

/* Unless told otherwise a send is done when the device has it. FI_TRANSMIT_COMPLETE wants to know
 * that it has left, and the first that is heard of that is that it has arrived. */
static uint8_t engine_flags(const struct ofi_call *c)
{
	return (uint8_t)((c->flags & FI_TAGGED ? MSG_OP_TAGGED : 0) |
			 (c->flags & FI_REMOTE_CQ_DATA ? MSG_OP_DATA : 0) |
			 (c->flags & FI_INJECT ? MSG_OP_INJECT : 0) |
			 (c->flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE) ? MSG_OP_DELIVER
										   : 0));
}

static ssize_t check(const struct ofi_ep *ep, enum msg_op_kind kind, const struct ofi_call *c)
{
	size_t len = 0;

	if (!ep->msg)
		return -FI_EOPBADSTATE;
	if (c->n_iov > MSG_IOV || (c->n_iov && !c->iov))
		return -FI_EINVAL;
	for (size_t i = 0; i < c->n_iov; i++)
		if (__builtin_add_overflow(len, c->iov[i].iov_len, &len))
			return -FI_EINVAL;
	if (kind == MSG_OP_RECV)
		return 0;
	return len > (c->flags & FI_INJECT ? ep->inject_max : OFI_MAX_MSG) ? -FI_EMSGSIZE : 0;
}

struct ofi_op *ofi_op_new(struct ofi_ep *ep, enum msg_op_kind kind, const struct ofi_call *c,
			  ssize_t *err)
{
	uint32_t peer = MSG_ANY_SRC;
	struct ofi_op *op;

	*err = check(ep, kind, c);
	if (!*err &&
	    (kind != MSG_OP_RECV || (ep->caps & FI_DIRECTED_RECV && c->addr != FI_ADDR_UNSPEC)))
		*err = ofi_ep_peer(ep, c->addr, &peer);
	if (*err)
		return NULL;
	op = ofi_pool_get(&ep->ops);
	if (!op) {
		*err = -FI_ENOMEM;
		return NULL;
	}
	ofi_idle_busy(); /* who has something to do does not just wait */
	op->op.kind = (uint8_t)kind;
	op->op.flags = engine_flags(c);
	op->op.peer = peer;
	op->op.tag = c->tag;
	op->op.ignore = c->ignore;
	op->op.data = c->data;
	op->op.n_iov = (unsigned int)c->n_iov;
	op->op.n_remote = 0;
	op->op.iov[0] = (struct iovec){NULL, 0};
	for (size_t i = 0; i < c->n_iov; i++)
		op->op.iov[i] = c->iov[i];
	op->ep = ep;
	op->context = c->context;
	op->bounce = NULL;
	op->report = c->flags & FI_COMPLETION;
	op->event = op->discard = false;
	return op;
}

void ofi_op_free(struct ofi_op *op)
{
	if (op->bounce) {
		free(op->bounce);
		op->bounce = NULL;
	}
	if (op->event)
		ofi_pool_put(&op->ep->events, op);
	else
		ofi_pool_put(&op->ep->ops, op);
}

ssize_t ofi_op_refused(struct ofi_op *op, int err)
{
	atomic_store_explicit(&op->busy, false, memory_order_relaxed);
	ofi_op_free(op);
	return ofi_errno(err);
}

int ofi_op_bounce(struct ofi_op *op)
{
	struct msg_op *m = &op->op;
	size_t len = 0, at = 0;

	for (unsigned int i = 0; i < m->n_iov; i++)
		len += m->iov[i].iov_len;
	op->bounce = malloc(len ? len : 1);
	if (!op->bounce)
		return -FI_ENOMEM;
	for (unsigned int i = 0; i < m->n_iov; i++) {
		if (m->iov[i].iov_len)
			memcpy((uint8_t *)op->bounce + at, m->iov[i].iov_base, m->iov[i].iov_len);
		at += m->iov[i].iov_len;
	}
	m->iov[0] = (struct iovec){op->bounce, len};
	m->n_iov = 1;
	m->flags &= (uint8_t)~MSG_OP_INJECT;
	return 0;
}

/* ---- messages, tagged and not ---------------------------------------------------------------- */

ssize_t ofi_send(struct ofi_ep *ep, const struct ofi_call *c)
{
	ssize_t ret;
	struct ofi_op *op = ofi_op_new(ep, MSG_OP_SEND, c, &ret);
	int err;

	if (!op)
		return ret;
	op->flags = FI_SEND | (c->flags & FI_TAGGED ? FI_TAGGED : FI_MSG);
	op->cq = ep->tx_cq;
	op->cntr = ep->cntr[OFI_SEND];
	err = msg_send(ep->msg, &op->op);
	return err ? ofi_op_refused(op, err) : 0;
}

/* Whoever gets a message to throw it away: nobody hears of it. */
static ssize_t discard(struct ofi_ep *ep, struct msg_early *claimed)
{
	struct ofi_call c = {.addr = FI_ADDR_UNSPEC};
	ssize_t ret;
	struct ofi_op *sink = ofi_op_new(ep, MSG_OP_RECV, &c, &ret);
	int err;

	if (!sink)
		return ret;
	sink->discard = true;
	err = msg_recv_claimed(ep->msg, &sink->op, claimed);
	return err ? ofi_op_refused(sink, err) : 0;
}

/* It is over, without the engine. */
static void finish(struct ofi_op *op)
{
	struct ofi_cq *cq = op->cq;

	/* Nothing of a message is in the application's buffer. */
	op->op.iov[0].iov_base = NULL;
	op->op.over = 0;
	if (!op->op.err && !op->report) {
		ofi_op_free(op);
		return;
	}
	ofi_cq_push(cq, op);
	/* The engine's lock is not there to put this in order for one who falls asleep. */
	atomic_thread_fence(memory_order_seq_cst);
	ofi_watch_notify(&cq->watch);
	ofi_idle_notify();
}

/* The result of a look is a completion like others; that of one in vain is an error. */
static ssize_t peek(struct ofi_op *op, const struct ofi_call *c)
{
	struct msg_early *claimed = NULL;
	int err = msg_peek(op->ep->msg, &op->op,
			   c->flags & (FI_CLAIM | FI_DISCARD) ? &claimed : NULL);

	if (err && err != -ENOMSG)
		return ofi_op_refused(op, err);
	if (!err && c->flags & FI_DISCARD)
		err = (int)discard(op->ep, claimed);
	else if (!err && c->flags & FI_CLAIM)
		((struct fi_context *)c->context)->internal[0] = claimed;
	op->op.err = err;
	if (op->op.flags & MSG_OP_DATA)
		op->flags |= FI_REMOTE_CQ_DATA;
	finish(op);
	return 0;
}

static ssize_t receive_claimed(struct ofi_op *op, const struct ofi_call *c)
{
	struct fi_context *ctx = c->context;
	struct msg_early *claimed = ctx->internal[0];
	int err;

	if (!claimed)
		return ofi_op_refused(op, -FI_EINVAL);
	ctx->internal[0] = NULL;
	if (!(c->flags & FI_DISCARD)) {
		err = msg_recv_claimed(op->ep->msg, &op->op, claimed);
		return err ? ofi_op_refused(op, err) : 0;
	}
	op->op.err = (int)discard(op->ep, claimed);
	op->op.len = 0;
	op->op.src = MSG_ANY_SRC;
	finish(op);
	return 0;
}

ssize_t ofi_recv(struct ofi_ep *ep, const struct ofi_call *c)
{
	ssize_t ret;
	struct ofi_op *op;
	int err;

	if (c->flags & (FI_CLAIM | FI_PEEK) && (!c->context || !ep->rx_cq))
		return -FI_EINVAL;
	if (c->flags & FI_MULTI_RECV && !(c->flags & (FI_CLAIM | FI_PEEK)) && c->n_iov != 1)
		return -FI_EINVAL;
	op = ofi_op_new(ep, MSG_OP_RECV, c, &ret);
	if (!op)
		return ret;
	op->flags = FI_RECV | (c->flags & FI_TAGGED ? FI_TAGGED : FI_MSG);
	op->cq = ep->rx_cq;
	op->cntr = ep->cntr[OFI_RECV];
	if (c->flags & FI_PEEK)
		return peek(op, c);
	if (c->flags & FI_CLAIM)
		return receive_claimed(op, c);
	if (c->flags & FI_MULTI_RECV) {
		op->op.flags |= MSG_OP_MULTI;
		op->multi.least = ep->min_multi_recv;
	}
	/* relaxed: it is for fi_cancel, which the application calls after this */
	atomic_store_explicit(&op->busy, true, memory_order_relaxed);
	err = msg_post_recv(ep->msg, &op->op);
	return err ? ofi_op_refused(op, err) : 0;
}
