/* What the engine says is done: to counters, and to completion queues. Called with the engine's
 * lock held. */
#include "ofi.h"

static void report(struct ofi_op *op)
{
	if (op->ep->closing) {
		ofi_op_free(op);
		return;
	}
	ofi_idle_busy(); /* also if it is only counted, and completion queues are read in vain */
	if (op->cntr)
		ofi_cntr_count(op->cntr, op->op.err);
	if (op->cq && (op->report || op->op.err))
		ofi_cq_push(op->cq, op);
	else
		ofi_op_free(op);
}

/* An entry for something that no operation of the application stands for. */
static struct ofi_op *new_event(struct ofi_ep *ep)
{
	struct ofi_op *ev = ofi_pool_get(&ep->events);

	if (!ev) {
		OFI_WARN(CQ, "no memory: a completion is lost\n");
		return NULL;
	}
	ev->ep = ep;
	ev->event = true;
	ev->bounce = NULL;
	ev->op.err = 0;
	ev->op.over = 0;
	ev->op.tag = 0;
	return ev;
}

/* One of the messages of a receive of many. */
static void part_done(struct ofi_ep *ep, const struct msg_op *part)
{
	struct ofi_op *whole = container_of(part->whole, struct ofi_op, multi);
	struct ofi_op *ev = new_event(ep);

	if (!ev)
		return;
	ev->op.err = part->err;
	ev->op.src = part->src;
	ev->op.len = part->len;
	ev->op.over = part->over;
	ev->op.tag = part->tag;
	ev->op.data = part->data;
	ev->op.iov[0] = part->iov[0];
	ev->op.n_iov = 1;
	ev->context = whole->context;
	ev->flags = whole->flags | (part->flags & MSG_OP_DATA ? FI_REMOTE_CQ_DATA : 0);
	ev->cq = whole->cq;
	ev->cntr = whole->cntr;
	ev->report = whole->report;
	report(ev);
}

/* The buffer is the application's again: told even to those that want to hear of nothing, since
 * they could not know it otherwise. It is no message, and has no other flag, or MPICH would take it
 * for one (fi_cq(3)); counters do not see it. */
static void multi_over(struct ofi_op *op)
{
	op->flags = FI_MULTI_RECV;
	op->cntr = NULL;
	op->op.len = 0;
	op->op.src = MSG_ANY_SRC;
	op->report = true;
	report(op);
}

void ofi_done(void *arg, struct msg_op *m)
{
	struct ofi_ep *ep = arg;
	struct ofi_op *op;

	if (m->flags & MSG_OP_PART) {
		part_done(ep, m);
		return;
	}
	op = container_of(m, struct ofi_op, op);
	if (m->kind == MSG_OP_RECV) {
		atomic_store_explicit(&op->busy, false, memory_order_relaxed);
		if (op->discard) {
			ofi_op_free(op);
			return;
		}
		if (m->flags & MSG_OP_MULTI) {
			multi_over(op);
			return;
		}
		if (m->flags & MSG_OP_DATA)
			op->flags |= FI_REMOTE_CQ_DATA;
	}
	report(op);
}

void ofi_written(void *arg, uint32_t src, uint64_t data, uint64_t len)
{
	struct ofi_ep *ep = arg;
	struct ofi_op *ev = new_event(ep);

	if (!ev)
		return;
	ev->op.src = src;
	ev->op.data = data;
	ev->op.len = len;
	ev->op.iov[0].iov_base = NULL;
	ev->context = NULL;
	ev->flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
	ev->cq = ep->rx_cq;
	ev->cntr = NULL;
	ev->report = true;
	report(ev);
}
