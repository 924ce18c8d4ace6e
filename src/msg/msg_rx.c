/* What arrives: packets of peers, and messages that were there before their receive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_log.h"
#include "msg_ep.h"

void msg_scatter(struct msg_op *op, const uint8_t *from, uint64_t len)
{
	for (unsigned int i = 0; i < op->n_iov && len; i++) {
		uint64_t part = op->iov[i].iov_len < len ? op->iov[i].iov_len : len;

		if (part)
			memcpy(op->iov[i].iov_base, from, part);
		from += part;
		len -= part;
	}
}

/* A message, wherever its data is. */
struct came {
	uint32_t src;
	const struct msg_pkt *p;
	const uint8_t *body;
	struct msg_ghost *ghost; /* of a PUT that has found one; or NULL */
};

/* A receive gets its message. */
static void deliver(struct msg_ep *ep, struct msg_op *op, const struct came *m)
{
	const struct msg_pkt *p = m->p;
	enum msg_match_result r = msg_put_matched(ep, op, m->src, p, m->ghost);

	ep->stats.received++;
	ep->stats.bytes_received += p->len;
	if (r == MSG_MATCH_COMES)
		return;
	msg_matched(op, m->src, p);
	if (r == MSG_MATCH_BROKEN) {
		msg_done(ep, op, -EPROTO);
	} else if (m->ghost) {
		op->len = p->len - op->over;
		msg_ghost_deliver(ep, m->ghost, op);
	} else if (p->type == MSG_EAGER) {
		op->len = p->len - op->over;
		msg_scatter(op, m->body, op->len);
		msg_done(ep, op, op->over ? -EMSGSIZE : 0);
	} else if (p->n_seg) {
		msg_read_start(ep, op, p);
	} else {
		msg_write_clear(ep, op, p);
	}
}

/* ---- receives of many messages ---- */

static uint64_t left(const struct msg_multi *m)
{
	return m->op.iov[0].iov_len - m->used;
}

/* What the next message gets: all that is left, of which it uses what it needs. */
static struct msg_op *next_part(struct msg_multi *m, uint64_t len)
{
	struct msg_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	op->kind = MSG_OP_RECV;
	op->flags = (uint8_t)((m->op.flags & MSG_OP_TAGGED) | MSG_OP_PART);
	op->whole = m;
	op->iov[0] = (struct iovec){(uint8_t *)m->op.iov[0].iov_base + m->used, left(m)};
	op->n_iov = 1;
	op->room = left(m);
	list_init(&op->link);
	m->used += len < left(m) ? len : left(m);
	m->parts++;
	return op;
}

static bool is_full(const struct msg_multi *m)
{
	return !left(m) || left(m) < m->least;
}

void msg_done(struct msg_ep *ep, struct msg_op *op, int err)
{
	struct msg_multi *m = op->whole;

	if (!op->err)
		op->err = err;
	ep->conf.done(ep->conf.arg, op);
	if (!m)
		return;
	free(op);
	if (!--m->parts && !msg_recv_posted(&m->op.recv) && !m->filling)
		ep->conf.done(ep->conf.arg, &m->op);
}

void msg_end_recv(struct msg_ep *ep, struct msg_op *op, int err)
{
	if (op->flags & MSG_OP_MULTI && container_of(op, struct msg_multi, op)->parts)
		op->err = err; /* ends with its last part */
	else
		msg_done(ep, op, err);
}

static void deliver_part(struct msg_ep *ep, struct msg_multi *m, const struct came *c)
{
	struct msg_op *part = next_part(m, c->p->len);

	if (!part) {
		util_log(UTIL_LOG_ERROR, "no memory to receive a message: it is lost");
		if (c->ghost)
			msg_ghost_drop(ep, c->ghost);
		return;
	}
	if (is_full(m) && msg_recv_posted(&m->op.recv))
		msg_match_cancel(msg_match_of(ep, m->op.flags & MSG_OP_TAGGED), &m->op.recv);
	deliver(ep, part, c);
}

/* ---- messages that were early ---- */

static struct came early(const struct msg_early *e)
{
	return (struct came){e->unexp.src, &e->pkt, e->body, e->ghost};
}

static void keep(struct msg_ep *ep, const struct came *m)
{
	const struct msg_pkt *p = m->p;
	size_t len = p->type == MSG_EAGER ? p->len : 0;
	struct msg_early *e = malloc(sizeof(*e) + len);

	if (e) {
		e->unexp = (struct msg_unexp){.tag = p->tag, .src = m->src};
		e->pkt = *p;
		e->ghost = m->ghost;
		memcpy(e->body, m->body, len);
		ep->stats.unexpected++;
		if (!msg_match_store(msg_match_of(ep, p->flags & MSG_F_TAGGED), &e->unexp)) {
			if (m->ghost)
				m->ghost->kept = true;
			return;
		}
		free(e);
	}
	util_log(UTIL_LOG_ERROR, "no memory for a message that nobody has asked for: it is lost");
}

void msg_rx_early(struct msg_ep *ep, struct msg_op *op, struct msg_early *e)
{
	struct came m = early(e);

	deliver(ep, op, &m);
	free(e);
}

bool msg_rx_early_parts(struct msg_ep *ep, struct msg_multi *m)
{
	struct msg_match *q = msg_match_of(ep, m->op.flags & MSG_OP_TAGGED);
	struct msg_unexp *u;

	m->filling = true;
	while (!is_full(m) &&
	       (u = msg_match_find(q, m->op.peer, m->op.recv.tag, m->op.recv.ignore))) {
		struct msg_early *e = container_of(u, struct msg_early, unexp);
		struct came c = early(e);

		msg_match_drop(q, u);
		deliver_part(ep, m, &c);
		free(e);
	}
	m->filling = false;
	if (!is_full(m))
		return true;
	if (!m->parts)
		ep->conf.done(ep->conf.arg, &m->op);
	return false;
}

/* ---- packets ---- */

static void message(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p, const uint8_t *body)
{
	struct msg_match *m = msg_match_of(ep, p->flags & MSG_F_TAGGED);
	struct msg_recv *r = msg_match_peek(m, src, p->tag);
	struct came c = {src, p, body, p->type == MSG_PUT ? msg_ghost_put(ep, src, p) : NULL};
	static atomic_bool told;
	struct msg_op *op;

	if (p->flags & MSG_F_TAGGED)
		ep->peers[src].seen++;
	if (!r) {
		if (p->type == MSG_PUT && !c.ghost)
			util_log_once(&told, UTIL_LOG_ERROR,
				      "a message is lost: it was not asked for");
		else
			keep(ep, &c);
		return;
	}
	op = container_of(r, struct msg_op, recv);
	if (op->flags & MSG_OP_MULTI) {
		deliver_part(ep, container_of(op, struct msg_multi, op), &c);
		return;
	}
	msg_match_take(m, src, p->tag);
	deliver(ep, op, &c);
}

static void handle(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p, const uint8_t *body)
{
	switch (p->type) {
	case MSG_EAGER:
	case MSG_RTS:
		message(ep, src, p, body);
		break;
	case MSG_PUT:
		message(ep, src, p, body);
		if (ep->port->connected)
			msg_finish_check(ep, p->id2);
		break;
	case MSG_CTS:
		msg_write_start(ep, src, p);
		break;
	case MSG_DONE:
		msg_read_done(ep, src, p);
		break;
	case MSG_RTR:
		msg_put_rtr(ep, src, p);
		break;
	case MSG_WITHDRAW:
		msg_cancel_withdraw(ep, src, p);
		break;
	case MSG_ANSWER:
		msg_cancel_answer(ep, src, p);
		break;
	case MSG_WROTE:
		if (ep->conf.written)
			ep->conf.written(ep->conf.arg, src, p->data, p->len);
		break;
	case MSG_ATOMIC:
		msg_atomic_do(ep, src, p, body);
		break;
	case MSG_ATOMIC_RSP:
		msg_atomic_answer(ep, src, p, body);
		break;
	case MSG_WHERE:
		msg_where_asked(ep, src, p->id);
		break;
	case MSG_HERE:
		msg_where_told(ep, src, p->id, body, p->len);
		break;
	case MSG_LOST:
		if (ep->port->connected)
			msg_finish_lost(ep, src, p);
		break;
	case MSG_AGAIN:
		msg_stripe_again(ep, src, p);
		break;
	default:
		break;
	}
}

/* Of a connected peer: whether it is its turn. */
static bool in_turn(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p, const uint8_t *buf,
		    size_t len)
{
	switch (msg_order_came(&ep->peers[src].flow->order, p->seq, buf, len)) {
	case MSG_TURN_NOW:
		return true;
	case MSG_TURN_FAR:
		util_log(UTIL_LOG_INFO, "a packet whose number makes no sense is ignored");
		return false;
	case MSG_TURN_LOST:
		util_log(UTIL_LOG_ERROR, "no memory for a packet: its sender is given up");
		msg_peer_died(ep, src);
		return false;
	default:
		return false;
	}
}

/* Those whose turn it is now. */
static void others(struct msg_ep *ep, uint32_t src)
{
	struct msg_kept *k;
	struct msg_pkt p;
	size_t body;

	while ((k = msg_order_next(&ep->peers[src].flow->order))) {
		if (!msg_wire_decode(&p, k->buf, k->len, &body))
			handle(ep, src, &p, k->buf + body);
		free(k);
	}
}

void msg_rx_packet(struct msg_ep *ep, const struct ibv_wc *wc, const uint8_t *buf)
{
	struct msg_pkt p;
	size_t body;
	uint32_t src;

	if (msg_wire_decode(&p, buf, wc->byte_len, &body)) {
		util_log(UTIL_LOG_INFO, "a packet that makes no sense is ignored");
		return;
	}
	src = ep->port->source(ep, wc, &p);
	if (src == UINT32_MAX) {
		util_log(UTIL_LOG_ERROR, "no memory for a peer: its message is lost");
		return;
	}
	if (!ep->port->connected) {
		handle(ep, src, &p, buf + body);
	} else if (p.type == MSG_FINISH) {
		msg_finish_share(ep, wc, src, &p);
	} else if (in_turn(ep, src, &p, buf, wc->byte_len)) {
		handle(ep, src, &p, buf + body);
		others(ep, src);
	}
}
