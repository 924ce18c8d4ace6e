/* Endpoints at work: what the application starts. */
#include <errno.h>
#include <string.h>
#include "msg_choose.h"
#include "msg_ep.h"

/* ---- messages ---- */

static void start(struct msg_op *op)
{
	op->room = 0;
	for (unsigned int i = 0; i < op->n_iov; i++)
		op->room += op->iov[i].iov_len;
	op->err = 0;
	op->len = op->over = op->posted = 0;
	op->pending = 0;
	op->strip = NULL;
	op->strip_it = false;
	op->told = false;
	op->share = NULL;
	op->id = 0;
	op->phase = MSG_PHASE_NONE;
	op->cancel = false;
	op->whole = NULL;
	op->ask = (struct msg_ask){0};
	memset(&op->recv, 0, sizeof(op->recv));
	memset(op->hold, 0, sizeof(op->hold));
	op->bounce = NULL;
	op->asked = false;
	list_init(&op->link);
}

static int send_eager(struct msg_ep *ep, struct msg_op *op)
{
	bool report = op->flags & MSG_OP_DELIVER && !(op->flags & MSG_OP_INJECT);
	struct msg_pkt p = msg_head(op, MSG_EAGER);
	int err;

	if (msg_direct_send(ep, op, &p, &err)) {
		report = true;
	} else {
		err = msg_tx_send(ep, op->peer, &p, op->iov, op->n_iov, report ? op : NULL);
		if (err)
			msg_direct_refused(ep, op);
	}
	if (err)
		return err;
	ep->stats.eager++;
	if (!report)
		msg_packet_sent(ep, op, 0);
	return 0;
}

/* The message takes its place in the order only when nothing can refuse it any more. After that
 * `op` may be the caller's again. */
static int send_message(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_ledger *l = op->flags & MSG_OP_TAGGED ? &ep->peers[op->peer].ledger : NULL;
	uint64_t tag = op->tag, len = op->room;
	uint32_t eager_max = msg_eager_max(ep, op->peer);
	bool rendezvous = len > eager_max;
	const struct msg_rtr *rtr = l ? msg_ledger_next(l, tag, len, rendezvous) : NULL;
	struct msg_rtr used;
	bool read;
	int err;

	if (rendezvous)
		msg_stripe_ask(ep, op);
	read = rendezvous && msg_stripe_reads(ep, op->peer, len);
	switch (msg_choose(len, eager_max, !ep->conf.write, rtr && !read)) {
	case MSG_BY_EAGER:
		err = send_eager(ep, op);
		break;
	case MSG_BY_PUT:
		err = msg_put_send(ep, op, rtr);
		if (!err)
			msg_rdma_go_on(ep, op);
		break;
	case MSG_BY_WRITE:
		err = msg_write_announce(ep, op);
		break;
	default:
		err = msg_read_announce(ep, op);
		break;
	}
	if (err) {
		msg_stripe_refused(ep, op);
		return err;
	}
	ep->stats.bytes_sent += len;
	if (l)
		msg_ledger_sent(l, tag, len, rendezvous && !read, &used);
	return 0;
}

int msg_send(struct msg_ep *ep, struct msg_op *op)
{
	int err;

	start(op);
	util_lock(&ep->lock);
	/* The RTR for this message may have come, and lie there. */
	if (op->room > msg_eager_max(ep, op->peer))
		msg_progress_locked(ep);
	err = ep->peers[op->peer].dead ? -EHOSTUNREACH : send_message(ep, op);
	if (err == -EAGAIN)
		msg_progress_locked(ep);
	util_unlock(&ep->lock);
	return err;
}

static int post_recv(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_match *m = msg_match_of(ep, op->flags & MSG_OP_TAGGED);
	struct msg_unexp *u;
	int err;

	if (op->flags & MSG_OP_MULTI) {
		struct msg_multi *multi = container_of(op, struct msg_multi, op);

		multi->used = multi->parts = 0;
		return msg_rx_early_parts(ep, multi) ? msg_match_post(m, &op->recv) : 0;
	}
	u = msg_match_find(m, op->peer, op->recv.tag, op->recv.ignore);
	if (u) {
		msg_match_drop(m, u);
		msg_rx_early(ep, op, container_of(u, struct msg_early, unexp));
		return 0;
	}
	if (op->peer != MSG_ANY_SRC && ep->peers[op->peer].dead)
		return -EHOSTUNREACH;
	err = msg_match_post(m, &op->recv);
	if (!err)
		msg_put_ask(ep, op);
	return err;
}

static void start_recv(struct msg_op *op)
{
	start(op);
	op->recv.tag = op->tag;
	op->recv.ignore = op->flags & MSG_OP_TAGGED ? op->ignore : UINT64_MAX;
	op->recv.src = op->peer;
}

int msg_post_recv(struct msg_ep *ep, struct msg_op *op)
{
	int err;

	start_recv(op);
	util_lock(&ep->lock);
	/* A message that is announced needs no RTR. For short ones there is none anyway. */
	if (op->room > msg_eager_max(ep, op->peer))
		msg_progress_locked(ep);
	err = post_recv(ep, op);
	util_unlock(&ep->lock);
	return err;
}

/* ---- probing ---- */

int msg_peek(struct msg_ep *ep, struct msg_op *op, struct msg_early **claimed)
{
	struct msg_match *m = msg_match_of(ep, op->flags & MSG_OP_TAGGED);
	struct msg_unexp *u;
	struct msg_early *e;

	start_recv(op);
	util_lock(&ep->lock);
	msg_progress_locked(ep);
	u = msg_match_find(m, op->peer, op->recv.tag, op->recv.ignore);
	if (u) {
		e = container_of(u, struct msg_early, unexp);
		msg_matched(op, u->src, &e->pkt);
		op->len = e->pkt.len;
		op->over = 0;
		if (claimed) {
			msg_match_drop(m, u);
			list_add_tail(&u->all, &ep->claimed);
			*claimed = e;
		}
	}
	util_unlock(&ep->lock);
	return u ? 0 : -ENOMSG;
}

int msg_recv_claimed(struct msg_ep *ep, struct msg_op *op, struct msg_early *claimed)
{
	start_recv(op);
	util_lock(&ep->lock);
	list_del(&claimed->unexp.all);
	msg_rx_early(ep, op, claimed);
	util_unlock(&ep->lock);
	return 0;
}

/* ---- others ---- */

int msg_rma(struct msg_ep *ep, struct msg_op *op)
{
	int err = 0;

	start(op);
	util_lock(&ep->lock);
	if (ep->peers[op->peer].dead)
		err = -EHOSTUNREACH;
	else
		msg_rdma_go_on(ep, op);
	if (op->kind == MSG_OP_READ)
		ep->stats.reads++;
	else
		ep->stats.writes++;
	util_unlock(&ep->lock);
	return err;
}

int msg_atomic(struct msg_ep *ep, struct msg_atomic *a)
{
	int err;

	start(&a->op);
	util_lock(&ep->lock);
	err = ep->peers[a->op.peer].dead ? -EHOSTUNREACH : msg_atomic_send(ep, a);
	if (err == -EAGAIN)
		msg_progress_locked(ep);
	util_unlock(&ep->lock);
	return err;
}

int msg_cancel(struct msg_ep *ep, struct msg_op *op)
{
	int err = -ENOENT;

	util_lock(&ep->lock);
	if (op->kind == MSG_OP_RECV && msg_recv_posted(&op->recv))
		err = msg_cancel_start(ep, op);
	util_unlock(&ep->lock);
	return err;
}

void msg_ep_stats(struct msg_ep *ep, struct msg_stats *out)
{
	util_lock(&ep->lock);
	*out = ep->stats;
	out->rtr_came = ep->spec.came;
	out->rtr_used = ep->spec.used;
	out->rtr_dropped = ep->spec.dropped;
	out->rtr_stale = ep->spec.stale;
	out->stops = ep->adapt.stops;
	out->resumptions = ep->adapt.resumptions;
	out->reuse = ep->reuse.state;
	out->reuse_buffers = ep->reuse.n;
	out->reuse_frequent = ep->reuse.frequent;
	out->reuse_bytes = msg_reuse_bytes(&ep->reuse);
	out->reuse_stops = ep->reuse.stops;
	out->reuse_rests = ep->reuse.rests;
	if (ep->port->stats)
		ep->port->stats(ep, out);
	util_unlock(&ep->lock);
	util_lock(&ep->dev->cache_lock);
	out->cache_hits = ep->dev->cache.stats.hits;
	out->cache_misses = ep->dev->cache.stats.misses;
	util_unlock(&ep->dev->cache_lock);
}
