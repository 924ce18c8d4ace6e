/* Short transfers straight from, or into, the application's memory, on devices that can not use
 * memory unless it is registered (chapter 5 of the thesis).
 *
 * What is used often enough (msg_reuse.h) is registered, and the registration kept in the cache. A
 * message goes as its header from a buffer of the endpoint, and its bytes from where they are; it
 * is done when the device is. All else is copied: messages into the packet, what is written to a
 * peer or read from it by way of a buffer of the endpoint. Longer ones are never copied.
 *
 * An operation that holds memory has an id meanwhile, so that msg_ep_close finds it. */
#include <errno.h>
#include <string.h>
#include "msg_ep.h"

#define PART_DEFAULT 25 /* percent, as in the thesis */

/* On first use: costs are measured then. If they can not be, everything is copied. */
static void prepare(struct msg_ep *ep)
{
	uint32_t least[MSG_COSTS_CLASSES], part = ep->conf.reuse_part;
	bool all = ep->conf.reuse == MSG_REUSE_YES;
	struct msg_costs costs;
	bool known = !all && !msg_dev_costs(ep->dev, &costs);

	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++)
		least[i] = all     ? 1
			   : known ? msg_costs_frequent(costs.of[i].n, part ? part : PART_DEFAULT)
				   : MSG_COSTS_NEVER;
	msg_reuse_init(&ep->reuse, least, !all);
}

/* Registrations are not kept: it pays each time, or never. */
static bool pays_each_time(const struct msg_ep *ep, uint64_t len)
{
	uint32_t class = msg_costs_class(len);

	return class < MSG_COSTS_CLASSES && ep->reuse.least[class] == 1;
}

static int hold_kept(struct msg_ep *ep, struct msg_op *op, const struct iovec *v)
{
	enum msg_reuse_say say = msg_reuse_use(&ep->reuse, v->iov_base, (uint32_t)v->iov_len);
	int err;

	if (say == MSG_REUSE_COPY)
		return -ENOENT;
	err = msg_hold_kept(ep->dev, v->iov_base, v->iov_len, say == MSG_REUSE_REGISTER,
			    &op->hold[0]);
	if (!err)
		msg_reuse_kept(&ep->reuse);
	else if (err != -EAGAIN)
		msg_reuse_lost(&ep->reuse);
	return err < 0 ? err : 0;
}

/* The only piece of an operation that is not empty; NULL: there are several. */
static const struct iovec *only_piece(const struct msg_op *op)
{
	return op->n_iov == 1 ? op->iov : NULL;
}

/* Whether it is used directly: held, then, and named. */
static bool held(struct msg_ep *ep, struct msg_op *op, bool write)
{
	const struct iovec *v = only_piece(op);
	int err;

	if (ep->reuse.state == MSG_REUSE_OFF)
		prepare(ep);
	if (!v)
		return false;
	if (ep->dev->cached)
		err = hold_kept(ep, op, v);
	else if (pays_each_time(ep, op->room))
		err = msg_hold(ep->dev, v->iov_base, v->iov_len, write, &op->hold[0]);
	else
		err = -ENOENT;
	if (!err && !op->id) {
		err = msg_id_new(ep, op);
		if (err)
			msg_release(ep->dev, &op->hold[0]);
	}
	return !err;
}

static void count(struct msg_ep *ep, const struct msg_op *op)
{
	ep->stats.direct++;
	ep->stats.direct_bytes += op->room;
}

/* ---- messages ---- */

static bool is_wanted(const struct msg_ep *ep, const struct msg_op *op)
{
	/* What goes inline is copied once, anyway. What may have to go again, over another
	 * connection, has to be kept. */
	return !ep->dev->all && op->room > ep->max_inline && !(op->flags & MSG_OP_INJECT) &&
	       ep->conf.reuse != MSG_REUSE_NO && !msg_flow_keeps(ep, op->peer);
}

bool msg_direct_send(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p, int *err)
{
	if (!is_wanted(ep, op))
		return false;
	if (!held(ep, op, false)) {
		op->asked = true;
		return false;
	}
	*err = msg_tx_direct(ep, op, p);
	if (*err) {
		msg_direct_end(ep, op);
		msg_reuse_undo(&ep->reuse);
	} else {
		count(ep, op);
	}
	return true;
}

/* It will come back: all that is one use. */
void msg_direct_refused(struct msg_ep *ep, const struct msg_op *op)
{
	if (op->asked)
		msg_reuse_undo(&ep->reuse);
}

void msg_direct_end(struct msg_ep *ep, struct msg_op *op)
{
	msg_unexpose(ep, op);
	msg_id_free(ep, op);
}

/* ---- remote memory ---- */

static void gather(const struct msg_op *op, uint8_t *to)
{
	for (unsigned int i = 0; i < op->n_iov; i++) {
		if (op->iov[i].iov_len)
			memcpy(to, op->iov[i].iov_base, op->iov[i].iov_len);
		to += op->iov[i].iov_len;
	}
}

int msg_direct_rma(struct msg_ep *ep, struct msg_op *op)
{
	bool read = op->kind == MSG_OP_READ;
	struct msg_tx *tx = ep->tx_free;

	if ((!read && op->kind != MSG_OP_WRITE) || op->bounce || op->hold[0].mr || !op->room ||
	    op->room > msg_eager_max(ep, op->peer))
		return 0;
	if (!tx)
		return -ENOBUFS;
	/* Asked once, however often there is no room for it. */
	if (!op->asked && ep->conf.reuse != MSG_REUSE_NO && held(ep, op, read)) {
		count(ep, op);
		return 0;
	}
	op->asked = true;
	ep->tx_free = tx->next;
	op->bounce = tx;
	if (!read)
		gather(op, tx->data);
	return 0;
}

void msg_direct_back(struct msg_ep *ep, struct msg_op *op)
{
	if (!op->bounce)
		return;
	op->bounce->next = ep->tx_free;
	ep->tx_free = op->bounce;
	op->bounce = NULL;
}
