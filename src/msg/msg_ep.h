/* An endpoint from inside. Everything needs its lock. */
#ifndef WEFT_MSG_EP_H
#define WEFT_MSG_EP_H

#include "util_lock.h"
#include "msg.h"
#include "msg_verbs.h"
#include "msg_wire.h"

struct msg_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *all; /* the process' memory, for local use only */
	uint32_t ip;
	union ibv_gid gid;
};

struct msg_peer {
	struct msg_addr addr;
	struct ibv_ah *ah;
	uint32_t chain; /* the next with the same hash; UINT32_MAX: none */
	uint32_t seen;  /* messages of it that were processed */
	struct msg_ledger ledger;
};

/* A message that came before its receive. */
struct msg_early {
	struct msg_unexp unexp;
	struct msg_pkt pkt;
	uint8_t body[];
};

/* A work request whose header must stay where it is. */
struct msg_tx {
	struct msg_tx *next; /* free */
	struct msg_op *op;
	uint8_t hdr[MSG_WIRE_MAX];
};

/* What a work request was, in its wr_id: the rest is a pointer, a peer or a buffer. */
enum { MSG_WR_TX, MSG_WR_OP, MSG_WR_PEER, MSG_WR_RX };

struct msg_id {
	struct msg_op *op; /* NULL: free */
	uint32_t gen, next;
};

struct msg_ep {
	struct util_lock lock;
	struct msg_dev *dev;
	struct msg_ep_conf conf;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	uint32_t qkey;
	uint32_t max_inline;

	struct msg_match match[2]; /* untagged, tagged */
	struct msg_spec_stats spec;

	uint8_t *rx; /* receive buffers, ... */
	size_t rx_size;
	struct ibv_mr *rx_mr;
	uint32_t *idle; /* ... those that are not posted */
	uint32_t n_idle;
	struct msg_tx *tx, *tx_free;
	struct ibv_mr *tx_mr;

	struct msg_peer *peers;
	uint32_t n_peers, peers_cap;
	uint32_t *buckets; /* of peers by address */
	uint32_t n_buckets;

	struct msg_id *ids; /* operations that peers may name */
	uint32_t n_ids, id_free;
	struct list_head stalled; /* operations that wait for room in the send queue */
};

/* ---- msg_peer.c ---- */
/* UINT32_MAX: no memory. */
uint32_t msg_peer_get(struct msg_ep *ep, const struct msg_addr *addr);
void msg_peers_free(struct msg_ep *ep);

/* ---- msg_id.c: names of operations ---- */
int msg_id_new(struct msg_ep *ep, struct msg_op *op);
struct msg_op *msg_id_op(const struct msg_ep *ep, uint32_t id);
void msg_id_free(struct msg_ep *ep, struct msg_op *op);

/* ---- msg_tx.c: work requests out ---- */
/* A packet without a message. 0 or -EAGAIN. */
int msg_tx_control(struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p);
int msg_tx_eager(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p);
/* Reads or writes what is left of an operation. 0: all of it is under way; -EAGAIN. */
int msg_tx_rdma(struct msg_ep *ep, struct msg_op *op, bool write);

/* ---- msg_rx.c: what arrives ---- */
void msg_rx_packet(struct msg_ep *ep, const struct ibv_wc *wc, const uint8_t *buf);
/* A receive finds a message that was early. */
void msg_rx_early(struct msg_ep *ep, struct msg_op *op, struct msg_early *e);

/* ---- msg_rndv.c ---- */
int msg_rndv_announce(struct msg_ep *ep, struct msg_op *op);
void msg_rndv_read(struct msg_ep *ep, struct msg_op *op, uint32_t src, const struct msg_pkt *p);
void msg_rndv_go_on(struct msg_ep *ep, struct msg_op *op);
void msg_rndv_rdma_done(struct msg_ep *ep, struct msg_op *op);
void msg_rndv_done(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);

static inline struct msg_match *msg_match_of(struct msg_ep *ep, bool tagged)
{
	return &ep->match[tagged ? 1 : 0];
}

/* The envelope of a send. */
static inline struct msg_pkt msg_head(const struct msg_op *op, enum msg_type type)
{
	return (struct msg_pkt){.type = (uint8_t)type,
				.flags = (op->flags & MSG_OP_TAGGED ? MSG_F_TAGGED : 0) |
					 (op->flags & MSG_OP_DATA ? MSG_F_DATA : 0),
				.tag = op->tag,
				.data = (uint32_t)op->data,
				.len = op->room};
}

/* A receive has found its message. */
static inline void msg_matched(struct msg_op *op, uint32_t src, const struct msg_pkt *p)
{
	op->src = src;
	op->tag = p->tag;
	op->data = p->data;
	op->flags =
		(uint8_t)((op->flags & ~MSG_OP_DATA) | (p->flags & MSG_F_DATA ? MSG_OP_DATA : 0));
	op->over = p->len > op->room ? p->len - op->room : 0;
}

static inline void msg_done(struct msg_ep *ep, struct msg_op *op, int err)
{
	if (!op->err)
		op->err = err;
	ep->conf.done(ep->conf.arg, op);
}

#endif
