/* What arrives: packets of peers, and messages that were there before their receive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_log.h"
#include "msg_ep.h"

static void scatter(struct msg_op *op, const uint8_t *from, uint64_t len)
{
	for (unsigned int i = 0; i < op->n_iov && len; i++) {
		uint64_t part = op->iov[i].iov_len < len ? op->iov[i].iov_len : len;

		memcpy(op->iov[i].iov_base, from, part);
		from += part;
		len -= part;
	}
}

static void eager(struct msg_ep *ep, struct msg_op *op, uint32_t src, const struct msg_pkt *p,
		  const uint8_t *body)
{
	msg_matched(op, src, p);
	op->len = p->len - op->over;
	scatter(op, body, op->len);
	msg_done(ep, op, op->over ? -EMSGSIZE : 0);
}

static void deliver(struct msg_ep *ep, struct msg_op *op, uint32_t src, const struct msg_pkt *p,
		    const uint8_t *body)
{
	if (p->type == MSG_EAGER)
		eager(ep, op, src, p, body);
	else
		msg_rndv_read(ep, op, src, p);
}

static void keep(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p, const uint8_t *body)
{
	size_t len = p->type == MSG_EAGER ? p->len : 0;
	struct msg_early *e = calloc(1, sizeof(*e) + len);

	if (e) {
		e->unexp.tag = p->tag;
		e->unexp.src = src;
		e->pkt = *p;
		memcpy(e->body, body, len);
		if (!msg_match_store(msg_match_of(ep, p->flags & MSG_F_TAGGED), &e->unexp))
			return;
		free(e);
	}
	util_log(UTIL_LOG_ERROR, "no memory for a message that nobody has asked for: it is lost");
}

void msg_rx_early(struct msg_ep *ep, struct msg_op *op, struct msg_early *e)
{
	deliver(ep, op, e->unexp.src, &e->pkt, e->body);
	free(e);
}

static void message(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p, const uint8_t *body)
{
	struct msg_recv *r;

	ep->peers[src].seen++;
	r = msg_match_take(msg_match_of(ep, p->flags & MSG_F_TAGGED), src, p->tag);
	if (r)
		deliver(ep, container_of(r, struct msg_op, recv), src, p, body);
	else
		keep(ep, src, p, body);
}

void msg_rx_packet(struct msg_ep *ep, const struct ibv_wc *wc, const uint8_t *buf)
{
	struct msg_pkt p;
	struct msg_addr from;
	size_t body;
	uint32_t src;

	if (msg_wire_decode(&p, buf, wc->byte_len, &body)) {
		util_log(UTIL_LOG_INFO, "a packet that makes no sense is ignored");
		return;
	}
	from = (struct msg_addr){.ip = p.ip, .qpn = wc->src_qp, .qkey = p.qkey};
	src = msg_peer_get(ep, &from);
	if (src == UINT32_MAX) {
		util_log(UTIL_LOG_ERROR, "no memory for a peer: its message is lost");
		return;
	}
	switch (p.type) {
	case MSG_EAGER:
	case MSG_RTS:
		message(ep, src, &p, buf + body);
		break;
	case MSG_DONE:
		msg_rndv_done(ep, src, &p);
		break;
	default:
		break;
	}
}
