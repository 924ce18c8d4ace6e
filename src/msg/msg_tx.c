/* Work requests out.
 *
 * Packets are short enough to go inline, or are copied into a buffer of the endpoint: nobody waits
 * for their completion, what the peer does about them is what counts. Those that answer a peer can
 * not be refused for want of room in the send queue; they wait in line (msg_tx_post), and nothing
 * overtakes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "msg_ep.h"

struct waiting {
	struct list_head link;
	uint32_t peer;
	size_t len;
	uint8_t buf[];
};

static uint64_t wr_id(const void *ptr, unsigned int what)
{
	return (uintptr_t)ptr | what;
}

static uint64_t wr_peer(uint32_t peer)
{
	return (uint64_t)peer << 2 | MSG_WR_PEER;
}

static void begin(struct msg_ep *ep, uint64_t id, unsigned int flags)
{
	ibv_wr_start(ep->ex);
	ep->ex->wr_id = id;
	ep->ex->wr_flags = flags;
}

static void to_peer(struct msg_ep *ep, uint32_t peer)
{
	const struct msg_peer *p = &ep->peers[peer];

	ibv_wr_set_ud_addr(ep->ex, p->ah, p->addr.qpn, p->addr.qkey);
}

static int end(struct msg_ep *ep)
{
	int err = ibv_wr_complete(ep->ex);

	return err == ENOMEM ? -EAGAIN : -err;
}

static size_t head(const struct msg_ep *ep, const struct msg_pkt *p, uint8_t *buf)
{
	struct msg_pkt full = *p;

	full.ip = ep->dev->ip;
	full.qkey = ep->qkey;
	return msg_wire_encode(&full, buf);
}

/* ---- packets --------------------------------------------------------------------------------- */

static int send_inline(struct msg_ep *ep, uint32_t peer, const struct ibv_data_buf *buf, size_t n,
		       struct msg_op *report)
{
	begin(ep, report ? wr_id(report, MSG_WR_OP) : wr_peer(peer),
	      report ? IBV_SEND_SIGNALED : 0);
	ibv_wr_send(ep->ex);
	to_peer(ep, peer);
	ibv_wr_set_inline_data_list(ep->ex, n, buf);
	return end(ep);
}

static int send_copy(struct msg_ep *ep, uint32_t peer, const struct ibv_data_buf *buf, size_t n,
		     struct msg_op *report)
{
	struct msg_tx *tx = ep->tx_free;
	uint8_t *to;
	int err;

	if (!tx)
		return -EAGAIN;
	to = tx->data;
	for (size_t i = 0; i < n; i++) {
		memcpy(to, buf[i].addr, buf[i].length);
		to += buf[i].length;
	}
	begin(ep, wr_id(tx, MSG_WR_TX), IBV_SEND_SIGNALED);
	ibv_wr_send(ep->ex);
	to_peer(ep, peer);
	ibv_wr_set_sge(ep->ex, ep->tx_mr->lkey, (uintptr_t)tx->data, (uint32_t)(to - tx->data));
	err = end(ep);
	if (!err) {
		ep->tx_free = tx->next;
		tx->op = report;
		tx->peer = peer;
	}
	return err;
}

/* report: whose MSG_WR_OP, or MSG_WR_TX, it is; NULL: nobody's. */
static int send_bytes(struct msg_ep *ep, uint32_t peer, const struct ibv_data_buf *buf, size_t n,
		      struct msg_op *report)
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += buf[i].length;
	return len <= ep->max_inline ? send_inline(ep, peer, buf, n, report)
				     : send_copy(ep, peer, buf, n, report);
}

int msg_tx_flush(struct msg_ep *ep)
{
	struct waiting *w;

	while ((w = list_first(&ep->waiting, struct waiting, link))) {
		struct ibv_data_buf buf = {w->buf, w->len};

		if (send_bytes(ep, w->peer, &buf, 1, NULL) == -EAGAIN)
			return -EAGAIN;
		list_del(&w->link);
		free(w);
	}
	return 0;
}

void msg_tx_drop(struct msg_ep *ep)
{
	struct waiting *w;

	while ((w = list_first(&ep->waiting, struct waiting, link))) {
		list_del(&w->link);
		free(w);
	}
}

int msg_tx_send(struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p, const struct iovec *iov,
		unsigned int n_iov, struct msg_op *report)
{
	uint8_t hdr[MSG_WIRE_MAX];
	struct ibv_data_buf buf[2 * MSG_IOV + 1] = {{hdr, head(ep, p, hdr)}};
	size_t n = 1;

	if (msg_tx_flush(ep))
		return -EAGAIN;
	for (unsigned int i = 0; i < n_iov; i++)
		if (iov[i].iov_len)
			buf[n++] = (struct ibv_data_buf){iov[i].iov_base, iov[i].iov_len};
	return send_bytes(ep, peer, buf, n, report);
}

int msg_tx_post(struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p, const void *body,
		size_t len)
{
	struct iovec iov = {(void *)body, len};
	struct waiting *w;
	size_t n;
	int err = msg_tx_send(ep, peer, p, &iov, 1, NULL);

	if (err != -EAGAIN)
		return err;
	w = malloc(sizeof(*w) + MSG_WIRE_MAX + len);
	if (!w)
		return -ENOMEM;
	n = head(ep, p, w->buf);
	if (len)
		memcpy(w->buf + n, body, len);
	w->peer = peer;
	w->len = n + len;
	list_add_tail(&w->link, &ep->waiting);
	return 0;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* The part [off, off + len) of the local buffer. */
static int local(const struct msg_ep *ep, const struct msg_op *op, uint64_t off, uint64_t len,
		 struct ibv_sge *sge)
{
	int n = 0;

	for (unsigned int i = 0; i < op->n_iov && len; i++) {
		uint64_t part = op->iov[i].iov_len;

		if (off >= part) {
			off -= part;
			continue;
		}
		part = part - off < len ? part - off : len;
		sge[n++] = (struct ibv_sge){(uintptr_t)op->iov[i].iov_base + off, (uint32_t)part,
					    ep->dev->all->lkey};
		len -= part;
		off = 0;
	}
	return n;
}

/* What one work request may move. */
#define PART_MAX (UINT32_C(1) << 30)

static uint64_t next_part(const struct msg_op *op)
{
	uint64_t part = op->remote[op->next].len - op->off;

	if (part > op->room - op->len)
		part = op->room - op->len;
	return part < PART_MAX ? part : PART_MAX;
}

static bool is_last(const struct msg_op *op, uint64_t part)
{
	return op->len + part == op->room ||
	       (op->next + 1 == op->n_remote && op->off + part == op->remote[op->next].len);
}

static void start_rdma(struct msg_ep *ep, const struct msg_op *op, uint64_t part)
{
	const struct msg_remote *r = &op->remote[op->next];

	if (op->kind == MSG_OP_RECV || op->kind == MSG_OP_READ)
		ibv_wr_rdma_read(ep->ex, r->key, r->addr + op->off);
	else if (op->kind == MSG_OP_SEND && is_last(op, part))
		ibv_wr_rdma_write_imm(ep->ex, r->key, r->addr + op->off, htobe32(op->peer_id));
	else
		ibv_wr_rdma_write(ep->ex, r->key, r->addr + op->off);
}

int msg_tx_rdma(struct msg_ep *ep, struct msg_op *op)
{
	while (op->next < op->n_remote && op->len < op->room) {
		uint64_t part = next_part(op);
		struct ibv_sge sge[MSG_IOV];
		int n = local(ep, op, op->len, part, sge), err;

		begin(ep, wr_id(op, MSG_WR_OP), IBV_SEND_SIGNALED);
		start_rdma(ep, op, part);
		to_peer(ep, op->kind == MSG_OP_RECV ? op->src : op->peer);
		ibv_wr_set_sge_list(ep->ex, (size_t)n, sge);
		err = end(ep);
		if (err)
			return err;
		op->pending++;
		op->len += part;
		op->off += part;
		if (op->off == op->remote[op->next].len) {
			op->next++;
			op->off = 0;
		}
	}
	return 0;
}
