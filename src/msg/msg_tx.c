/* Work requests out.
 *
 * Packets are short enough to go inline, or are copied into a buffer of the endpoint: nobody waits
 * for their completion, what the peer does about them is what counts. (Except for those whose bytes
 * stay where they are, msg_direct.c.) Those that answer a peer can
 * not be refused for want of room in the send queue; they wait in line (msg_tx_post), and nothing
 * overtakes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "msg_ep.h"

struct msg_wait {
	struct msg_wait *next;
	uint32_t len;
	uint8_t buf[];
};

static int post(struct msg_ep *ep, uint32_t peer, void *way, struct ibv_send_wr *wr)
{
	struct msg_peer *p = &ep->peers[peer];
	int err = p->dead ? -EHOSTUNREACH : ep->port->post(ep, peer, way, wr);

	p->met |= !err && wr->opcode == IBV_WR_SEND;
	return err;
}

/* Whoever asks need not know whether there is no room for anybody, or not for one peer. */
static int any_room(int err)
{
	return err == -ENOBUFS ? -EAGAIN : err;
}

static size_t head(const struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p, uint8_t *buf)
{
	const struct msg_flow *f = ep->peers[peer].flow;
	struct msg_pkt full = *p;

	full.ip = ep->dev->addr.ip;
	if (f)
		full.seq = f->seq;
	else
		full.qkey = ep->qkey;
	return msg_wire_encode(&full, buf);
}

/* A packet is sure to be sent, and has its place in the order. */
static void numbered(struct msg_ep *ep, uint32_t peer)
{
	if (ep->peers[peer].flow)
		ep->peers[peer].flow->seq++;
}

/* ---- packets --------------------------------------------------------------------------------- */

static int send_inline(struct msg_ep *ep, uint32_t peer, struct ibv_sge *buf, int n,
		       struct msg_op *report)
{
	/* Somebody may sleep until there is room: a queue that is full has some that complete. */
	bool tell = report || ep->quiet >= ep->conf.depth / 4;
	struct ibv_send_wr wr = {.wr_id = report ? msg_wr_id(report, MSG_WR_OP)
						 : msg_wr_peer(peer, MSG_WR_PEER),
				 .sg_list = buf,
				 .num_sge = n,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_INLINE | (tell ? IBV_SEND_SIGNALED : 0)};
	int err = post(ep, peer, NULL, &wr);

	if (!err)
		ep->quiet = tell ? 0 : ep->quiet + 1;
	return err;
}

static struct ibv_send_wr tx_wr(const struct msg_tx *tx, struct ibv_sge *sge, int n)
{
	return (struct ibv_send_wr){.wr_id = msg_wr_id(tx, MSG_WR_TX),
				    .sg_list = sge,
				    .num_sge = n,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED};
}

/* The first free packet is posted; `as` says whose it is. */
static void take_tx(struct msg_ep *ep, struct msg_tx as)
{
	struct msg_tx *tx = ep->tx_free;

	ep->tx_free = tx->next;
	as.data = tx->data;
	*tx = as;
}

/* The first free packet, of which so many bytes are filled in, and what is to follow them. */
static int post_tx(struct msg_ep *ep, void *way, struct msg_tx as, size_t len,
		   const struct ibv_sge *more)
{
	struct msg_tx *tx = ep->tx_free;
	struct ibv_sge sge[2] = {{(uintptr_t)tx->data, (uint32_t)len, ep->tx_mr->lkey}};
	struct ibv_send_wr wr = tx_wr(tx, sge, more ? 2 : 1);
	int err;

	if (more)
		sge[1] = *more;
	err = post(ep, as.peer, way, &wr);
	if (!err)
		take_tx(ep, as);
	return err;
}

/* From so many bytes on, to copy what is under way already, or not at all, is worth the longer
 * list: to another host, and through shared memory (docs/reuse.md has what was measured). */
#define LATE_FAR  2048
#define LATE_NEAR 4096

/* The device sends from where the data is, and the copy is made behind the message's back. Only
 * where there is a key for all memory. */
static int send_keep(struct msg_ep *ep, uint32_t peer, struct ibv_sge *buf, int n,
		     struct msg_op *report)
{
	struct msg_tx *tx = ep->tx_free;
	struct ibv_send_wr wr = tx_wr(tx, buf, n);
	int err;

	if (ep->peers[peer].dead)
		return -EHOSTUNREACH;
	for (int i = 0; i < n; i++)
		buf[i].lkey = ep->dev->all->lkey;
	err = ep->port->post_keep(ep, peer, &wr, tx->data);
	ep->peers[peer].met |= !err;
	if (!err)
		take_tx(ep, (struct msg_tx){.op = report, .peer = peer});
	return err;
}

static int send_copy(struct msg_ep *ep, uint32_t peer, struct ibv_sge *buf, int n, size_t len,
		     struct msg_op *report)
{
	struct msg_tx *tx = ep->tx_free;
	uint8_t *to;

	if (!tx)
		return -ENOBUFS;
	if (ep->late && len >= (ep->peers[peer].far ? LATE_FAR : LATE_NEAR) && n <= MSG_IOV + 1) {
		int err = send_keep(ep, peer, buf, n, report);

		ep->stats.late += !err;
		if (err != -EOPNOTSUPP)
			return err;
	}
	to = tx->data;
	for (int i = 0; i < n; i++) {
		memcpy(to, (const void *)(uintptr_t)buf[i].addr, buf[i].length);
		to += buf[i].length;
	}
	return post_tx(ep, NULL, (struct msg_tx){.op = report, .peer = peer},
		       (size_t)(to - tx->data), NULL);
}

/* report: whose MSG_WR_OP, or MSG_WR_TX, it is; NULL: nobody's. */
static int send_bytes(struct msg_ep *ep, uint32_t peer, struct ibv_sge *buf, int n,
		      struct msg_op *report)
{
	size_t len = 0;

	if (msg_flow_keeps(ep, peer))
		return msg_flow_send(ep, peer, buf, n, report);
	for (int i = 0; i < n; i++)
		len += buf[i].length;
	return len <= ep->max_inline ? send_inline(ep, peer, buf, n, report)
				     : send_copy(ep, peer, buf, n, len, report);
}

static struct ibv_sge piece(const void *at, size_t len)
{
	return (struct ibv_sge){(uintptr_t)at, (uint32_t)len, 0};
}

/* ---- packets that wait, each peer's in a line of its own ---- */

static void next_waiting(struct msg_peer *p)
{
	struct msg_wait *w = p->wait;

	p->wait = w->next;
	free(w);
}

/* 0: none is left. */
static int flush_peer(struct msg_ep *ep, uint32_t peer)
{
	struct msg_wait *w;

	while ((w = ep->peers[peer].wait)) {
		struct ibv_sge buf = piece(w->buf, w->len);
		int err = send_bytes(ep, peer, &buf, 1, NULL);

		if (err == -EAGAIN || err == -ENOBUFS)
			return err;
		next_waiting(&ep->peers[peer]);
	}
	return 0;
}

void msg_tx_flush(struct msg_ep *ep)
{
	uint32_t *at = &ep->wait_first;

	while (*at != UINT32_MAX) {
		struct msg_peer *p = &ep->peers[*at];
		int err = flush_peer(ep, *at);

		if (err == -ENOBUFS)
			return;
		if (err)
			at = &p->wait_next;
		else
			*at = p->wait_next;
	}
}

void msg_tx_drop(struct msg_ep *ep)
{
	for (uint32_t i = 0; i < ep->n_peers; i++)
		while (ep->peers[i].wait)
			next_waiting(&ep->peers[i]);
	ep->wait_first = UINT32_MAX;
}

static void wait_in_line(struct msg_ep *ep, uint32_t peer, struct msg_wait *w)
{
	struct msg_peer *p = &ep->peers[peer];

	w->next = NULL;
	if (p->wait) {
		p->last->next = w;
	} else {
		p->wait = w;
		p->wait_next = ep->wait_first;
		ep->wait_first = peer;
	}
	p->last = w;
}

/* Whether others are to go before. */
static bool has_to_wait(struct msg_ep *ep, uint32_t peer)
{
	if (ep->wait_first != UINT32_MAX)
		msg_tx_flush(ep);
	return ep->peers[peer].wait;
}

int msg_tx_send(struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p, const struct iovec *iov,
		unsigned int n_iov, struct msg_op *report)
{
	uint8_t hdr[MSG_WIRE_MAX];
	struct ibv_sge buf[MSG_PIECES] = {piece(hdr, head(ep, peer, p, hdr))};
	int n = 1, err;

	if (has_to_wait(ep, peer))
		return -EAGAIN;
	for (unsigned int i = 0; i < n_iov; i++)
		if (iov[i].iov_len)
			buf[n++] = piece(iov[i].iov_base, iov[i].iov_len);
	err = send_bytes(ep, peer, buf, n, report);
	if (!err)
		numbered(ep, peer);
	return any_room(err);
}

int msg_tx_direct(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p)
{
	struct ibv_sge body = {(uintptr_t)op->iov[0].iov_base, (uint32_t)op->room,
			       op->hold[0].mr->lkey};
	struct msg_tx *tx;
	int err;

	if (has_to_wait(ep, op->peer))
		return -EAGAIN;
	tx = ep->tx_free; /* flushing may have taken the last one */
	if (!tx)
		return -EAGAIN;
	err = post_tx(ep, NULL, (struct msg_tx){.op = op, .peer = op->peer},
		      head(ep, op->peer, p, tx->data), &body);
	if (!err)
		numbered(ep, op->peer);
	return any_room(err);
}

int msg_tx_post(struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p, const void *body,
		size_t len)
{
	struct iovec iov = {(void *)body, len};
	struct msg_wait *w;
	size_t n;
	int err = msg_tx_send(ep, peer, p, &iov, 1, NULL);

	if (err != -EAGAIN)
		return err;
	w = malloc(sizeof(*w) + MSG_WIRE_MAX + len);
	if (!w)
		return -ENOMEM;
	n = head(ep, peer, p, w->buf);
	numbered(ep, peer);
	if (len)
		memcpy(w->buf + n, body, len);
	w->len = (uint32_t)(n + len);
	wait_in_line(ep, peer, w);
	return 0;
}

int msg_tx_finish(struct msg_ep *ep, struct msg_op *op, uint64_t share, struct msg_part *part,
		  void *way)
{
	struct msg_pkt p = {.type = MSG_FINISH, .id = op->peer_id, .len = share};
	struct msg_tx *tx = ep->tx_free;
	int err;

	if (!tx)
		return -ENOBUFS;
	err = post_tx(ep, way, (struct msg_tx){.part = part, .peer = op->peer},
		      head(ep, op->peer, &p, tx->data), NULL);
	op->pending += !err;
	return err;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* The part [off, off + len) of the local buffer. */
static int local(const struct msg_ep *ep, const struct msg_op *op, uint64_t off, uint64_t len,
		 struct ibv_sge *sge)
{
	int n = 0;

	if (op->bounce && len) {
		sge[0] = (struct ibv_sge){(uintptr_t)op->bounce->data + off, (uint32_t)len,
					  ep->tx_mr->lkey};
		return 1;
	}
	for (unsigned int i = 0; i < op->n_iov && len; i++) {
		uint64_t part = op->iov[i].iov_len;

		if (off >= part) {
			off -= part;
			continue;
		}
		part = part - off < len ? part - off : len;
		sge[n++] =
			(struct ibv_sge){(uintptr_t)op->iov[i].iov_base + off, (uint32_t)part,
					 ep->dev->all ? ep->dev->all->lkey : op->hold[i].mr->lkey};
		len -= part;
		off = 0;
	}
	return n;
}

/* What one work request may move. */
#define PART_MAX (UINT32_C(1) << 30)

uint64_t msg_rdma_len(const struct msg_op *op)
{
	uint64_t len = 0;

	for (unsigned int i = 0; i < op->n_remote; i++)
		len += op->remote[i].len;
	return len < op->room ? len : op->room;
}

/* What is there, of the peer's memory, and as much as follows, of at most *n bytes. */
static struct msg_remote remote_at(const struct msg_op *op, uint64_t at, uint64_t *n)
{
	const struct msg_remote *r = op->remote;

	for (; at >= r->len; r++)
		at -= r->len;
	*n = *n < r->len - at ? *n : r->len - at;
	*n = *n < PART_MAX ? *n : PART_MAX;
	return (struct msg_remote){.addr = r->addr + at, .len = *n, .key = r->key};
}

/* Whether a write's data can go along with it, as its immediate. Otherwise it is told in a packet
 * of its own when all has arrived: if the write is none, or more than one request, of which the
 * receiver would not know the length; if it does not know us yet; and over connections, which may
 * be several, so that packets have to be numbered. */
static bool tells_data(const struct msg_ep *ep, const struct msg_op *op)
{
	return op->kind == MSG_OP_WRITE && op->flags & MSG_OP_DATA && !ep->port->connected &&
	       !((uint32_t)op->data & MSG_IMM_NAME) && ep->peers[op->peer].met && !op->strip &&
	       op->n_remote == 1 && msg_rdma_len(op) <= PART_MAX;
}

/* A send over one queue pair ends with a notice, which comes behind all the rest. */
static enum ibv_wr_opcode opcode(const struct msg_ep *ep, const struct msg_op *op, uint64_t end)
{
	bool notice = op->kind == MSG_OP_SEND ? !msg_stripe_fins(ep, op) : op->told;

	if (op->kind == MSG_OP_RECV || op->kind == MSG_OP_READ)
		return IBV_WR_RDMA_READ;
	return notice && end == msg_rdma_len(op) ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
}

/* From there on, at most *n bytes, and how many it was. */
static int post_rdma(struct msg_ep *ep, struct msg_op *op, uint64_t at, uint64_t *n, uint64_t wr_id,
		     void *way)
{
	struct msg_remote r = remote_at(op, at, n);
	struct ibv_sge sge[MSG_IOV];
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = local(ep, op, at, *n, sge),
		.opcode = opcode(ep, op, at + *n),
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(op->kind == MSG_OP_WRITE ? (uint32_t)op->data : op->peer_id),
		.wr = {.rdma = {.remote_addr = r.addr, .rkey = r.key}}};
	int err = post(ep, msg_rdma_peer(op), way, &wr);

	if (!err)
		op->pending++;
	return err;
}

uint64_t msg_tx_part(struct msg_ep *ep, struct msg_op *op, uint64_t at, uint64_t most,
		     struct msg_part *part, void *way, int *err)
{
	*err = post_rdma(ep, op, at, &most, msg_wr_id(part, MSG_WR_PART), way);
	return most;
}

int msg_tx_rdma(struct msg_ep *ep, struct msg_op *op)
{
	uint64_t len = msg_rdma_len(op);
	int err = msg_hold_local(ep, op);

	if (!err)
		err = msg_stripe_wanted(ep, op);
	if (!op->len)
		op->told = !err && len && tells_data(ep, op);
	if (!err && op->strip)
		return msg_stripe_post(ep, op);
	while (!err && op->len < len) {
		uint64_t n = len - op->len;

		err = post_rdma(ep, op, op->len, &n, msg_wr_id(op, MSG_WR_OP), NULL);
		if (!err)
			op->len += n;
	}
	return err;
}
