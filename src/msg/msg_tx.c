/* Work requests out. Packets without a message are short enough to go inline, and nobody waits for
 * their completion: what the peer does about them is what counts. */
#include <errno.h>
#include <string.h>
#include "msg_ep.h"

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

int msg_tx_control(struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p)
{
	uint8_t buf[MSG_WIRE_MAX];
	size_t len = head(ep, p, buf);

	begin(ep, wr_peer(peer), 0);
	ibv_wr_send(ep->ex);
	to_peer(ep, peer);
	ibv_wr_set_inline_data(ep->ex, buf, len);
	return end(ep);
}

static int eager_inline(struct msg_ep *ep, struct msg_op *op, uint8_t *hdr, size_t len, bool report)
{
	struct ibv_data_buf buf[MSG_IOV + 1] = {{.addr = hdr, .length = len}};

	for (unsigned int i = 0; i < op->n_iov; i++)
		buf[i + 1] = (struct ibv_data_buf){op->iov[i].iov_base, op->iov[i].iov_len};
	begin(ep, report ? wr_id(op, MSG_WR_OP) : wr_peer(op->peer),
	      report ? IBV_SEND_SIGNALED : 0);
	ibv_wr_send(ep->ex);
	to_peer(ep, op->peer);
	ibv_wr_set_inline_data_list(ep->ex, op->n_iov + 1, buf);
	return end(ep);
}

/* Done at once if it went inline and nobody cares when it arrives. */
int msg_tx_eager(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p)
{
	bool report = op->flags & MSG_OP_DELIVER && !(op->flags & MSG_OP_INJECT);
	struct ibv_sge sge[MSG_IOV + 1];
	struct msg_tx *tx = ep->tx_free;
	uint8_t hdr[MSG_WIRE_MAX];
	size_t len = head(ep, p, hdr);
	int err, n = 1;

	if (len + op->room <= ep->max_inline) {
		err = eager_inline(ep, op, hdr, len, report);
		if (!err && !report)
			msg_done(ep, op, 0);
		return err;
	}
	if (!tx)
		return -EAGAIN;
	memcpy(tx->hdr, hdr, len);
	sge[0] = (struct ibv_sge){(uintptr_t)tx->hdr, (uint32_t)len, ep->tx_mr->lkey};
	for (unsigned int i = 0; i < op->n_iov; i++)
		sge[n++] = (struct ibv_sge){(uintptr_t)op->iov[i].iov_base,
					    (uint32_t)op->iov[i].iov_len, ep->dev->all->lkey};
	begin(ep, wr_id(tx, MSG_WR_TX), IBV_SEND_SIGNALED);
	ibv_wr_send(ep->ex);
	to_peer(ep, op->peer);
	ibv_wr_set_sge_list(ep->ex, (size_t)n, sge);
	err = end(ep);
	if (!err) {
		ep->tx_free = tx->next;
		tx->op = op;
	}
	return err;
}

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

int msg_tx_rdma(struct msg_ep *ep, struct msg_op *op, bool write)
{
	while (op->next < op->n_remote && op->len < op->room) {
		const struct msg_remote *r = &op->remote[op->next];
		uint64_t part = r->len - op->off;
		struct ibv_sge sge[MSG_IOV];
		int n, err;

		if (part > op->room - op->len)
			part = op->room - op->len;
		if (part > PART_MAX)
			part = PART_MAX;
		n = local(ep, op, op->len, part, sge);
		begin(ep, wr_id(op, MSG_WR_OP), IBV_SEND_SIGNALED);
		if (write)
			ibv_wr_rdma_write(ep->ex, r->key, r->addr + op->off);
		else
			ibv_wr_rdma_read(ep->ex, r->key, r->addr + op->off);
		to_peer(ep, op->kind == MSG_OP_RECV ? op->src : op->peer);
		ibv_wr_set_sge_list(ep->ex, (size_t)n, sge);
		err = end(ep);
		if (err)
			return err;
		op->pending++;
		op->len += part;
		op->off += part;
		if (op->off == r->len) {
			op->next++;
			op->off = 0;
		}
	}
	return 0;
}
