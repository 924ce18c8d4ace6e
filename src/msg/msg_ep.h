/* An endpoint from inside. Everything needs its lock. */
#ifndef WEFT_MSG_EP_H
#define WEFT_MSG_EP_H

#include "util_lock.h"
#include "msg.h"
#include "msg_adapt.h"
#include "msg_cache.h"
#include "msg_costs.h"
#include "msg_flow.h"
#include "msg_port.h"
#include "msg_reuse.h"
#include "msg_stripe.h"
#include "msg_verbs.h"
#include "msg_where.h"
#include "msg_wire.h"

struct msg_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *all; /* the process' memory, for local use only; NULL: there is no such */
	enum msg_transport transport;
	uint8_t port, gid_index;
	bool global; /* peers are named by GID, else by LID */
	bool own;    /* Weft's */
	uint8_t mtu, max_reads;
	struct msg_addr addr;       /* without what is the endpoint's */
	struct msg_way_ports ports; /* for the paths of connected peers; the first is the above */
	struct util_lock lock;
	/* What the application has registered, by key: for atomic operations, which are done with
	 * the lock held. */
	struct msg_mem **mem;
	uint32_t n_mem, mem_buckets;
	/* Of what messages need. */
	bool cached;
	struct util_lock cache_lock;
	struct msg_cache cache;
	struct msg_watcher watcher;
	/* Of short transfers; once they have been measured. */
	struct util_lock costs_lock;
	struct msg_costs costs;
	bool gauged;
	int costs_err;
};

struct msg_mem {
	struct msg_dev *dev;
	struct ibv_mr *mr;
	struct msg_mem *next;
	bool write;
};

/* ---- msg_dev.c ---- */
/* How a peer is reached. */
struct ibv_ah_attr msg_dev_ah(const struct msg_dev *dev, const struct msg_addr *a);
/* The address of an endpoint on a device that is known by an IPv4 address. */
struct msg_addr msg_addr_v4(uint32_t ip, uint32_t qpn, uint32_t qkey);
/* Memory that a key stands for; with the lock held. NULL: it does not. */
void *msg_dev_mem(const struct msg_dev *dev, uint32_t key, uint64_t addr, uint64_t len, bool write);

/* ---- msg_mem.c ---- */
int msg_dev_reg(struct msg_dev *dev, void *addr, size_t len, bool write, struct ibv_mr **out);
void msg_mem_open(struct msg_dev *dev, enum msg_caching caching);
void msg_mem_close(struct msg_dev *dev);
/* Memory for a message, until it is released. write: by whoever it is. */
int msg_hold(struct msg_dev *dev, void *addr, size_t len, bool write, struct msg_hold *h);
/* The same, of the cache, which there is; with all rights. make: if need be. 0; 1: it is not kept,
 * but for this use; or -errno, as msg_cache_get() or msg_cache_find() have it. */
int msg_hold_kept(struct msg_dev *dev, void *addr, size_t len, bool make, struct msg_hold *h);
void msg_release(struct msg_dev *dev, struct msg_hold *h);
/* What is held goes on to be known to peers, but what they write there goes to other memory of the
 * same length. 0 or an error, and nothing is changed: -EBUSY something was written, -EOPNOTSUPP the
 * device can not do it, or others use the registration, too. */
int msg_move(const struct msg_hold *h, void *to);

struct msg_conn; /* msg_rc.h */
struct msg_rc;

struct msg_peer {
	struct msg_addr addr;
	struct ibv_ah *ah;
	struct msg_conn *conn;        /* RC: NULL until it is needed; more are behind it */
	struct msg_flow *flow;        /* RC: its packets */
	struct msg_paths *paths;      /* NULL until a message is striped */
	struct msg_where *where;      /* RD: its addresses; NULL until then, too */
	struct msg_wait *wait, *last; /* packets that wait for room in the send queue */
	uint32_t wait_next;           /* the next peer for which some do; UINT32_MAX: none */
	uint32_t chain;               /* the next with the same hash; UINT32_MAX: none */
	uint32_t seen;                /* tagged messages of it that were processed */
	uint32_t out;                 /* RTRs to it, and ghosts */
	uint32_t cancels;             /* under way: no RTRs meanwhile */
	uint32_t asked;               /* the last round in which it was asked whether it is there */
	bool dead;
	bool alone;  /* there is one path to it */
	bool far;    /* a trip to it takes longer than to copy eager_far bytes */
	bool hot;    /* it has its long messages divided */
	bool unsure; /* RD: it is not known whether all that was posted has arrived */
	bool met;    /* what is posted now comes behind a packet, which says who we are */
	struct msg_ledger ledger; /* of tagged messages to it */
};

/* An RTR without a receive, and memory for the message that may still come by it. */
struct msg_ghost {
	struct msg_op op; /* for its name, its key and its RTR; phase: of a message that comes */
	uint8_t *data;
	struct msg_op *to; /* the receive that gets the message; NULL: none yet */
	bool kept;         /* some msg_early has it */
};

/* A message that came before its receive. */
struct msg_early {
	struct msg_unexp unexp;
	struct msg_pkt pkt;
	struct msg_ghost *ghost; /* where the data of a PUT is, or will be */
	uint8_t body[];
};

/* A packet that must stay where it is until it is sent. */
struct msg_tx {
	struct msg_tx *next;   /* free */
	struct msg_op *op;     /* done with it; or NULL */
	struct msg_part *part; /* whose end it tells of; or NULL */
	uint32_t peer;
	uint8_t *data;
	/* If it is kept (msg_flow.h): with others to this peer, and with those to be sent again. */
	bool kept;
	uint32_t seq, len;
	struct list_head link, again;
};

/* What a work request was, in its wr_id: the rest is a pointer, a peer or a buffer. */
enum { MSG_WR_TX, MSG_WR_OP, MSG_WR_PEER, MSG_WR_RX, MSG_WR_PART, MSG_WR_ASK };
#define MSG_WR_BITS 3
#define MSG_WR_MASK ((UINT64_C(1) << MSG_WR_BITS) - 1)

static inline uint64_t msg_wr_id(const void *ptr, unsigned int what)
{
	return (uintptr_t)ptr | what;
}

/* what: MSG_WR_PEER, a packet; MSG_WR_ASK, whether it is there */
static inline uint64_t msg_wr_peer(uint32_t peer, unsigned int what)
{
	return (uint64_t)peer << MSG_WR_BITS | what;
}

/* What an operation waits for, beside its work requests. */
enum msg_phase {
	MSG_PHASE_NONE,
	MSG_PHASE_RTS,    /* a send: for DONE, or CTS */
	MSG_PHASE_WRITE,  /* a send is being written */
	MSG_PHASE_READ,   /* a receive is being read */
	MSG_PHASE_NOTICE, /* a receive is being written by the sender */
	MSG_PHASE_ANSWER, /* an atomic operation */
};

struct msg_id {
	struct msg_op *op; /* NULL: free */
	uint32_t gen, next;
};

/* What goes inline is at most so long, ... */
#define MSG_INLINE_WANT 256
/* ... and so many pieces: header, operands. */
#define MSG_PIECES (2 * MSG_IOV + 1)

#define MSG_CONNECT_MS 10000

struct msg_ep {
	struct util_lock lock;
	struct msg_dev *dev;
	struct msg_ep_conf conf;
	const struct msg_port *port;
	struct msg_rc *rc; /* of the port, if it is RC */
	struct ibv_comp_channel *channel;
	int fd; /* of whoever waits; -1: nobody */
	struct ibv_cq *cq;
	struct ibv_qp *qp;    /* that the address names */
	struct ibv_qp_ex *ex; /* the same, if it is RD */
	uint32_t qkey;
	uint32_t max_inline;
	bool late; /* packets are copied when they are under way (msg_tx.c) */

	struct msg_match match[2]; /* untagged, tagged */
	struct msg_spec_stats spec;
	struct msg_adapt adapt;
	struct msg_reuse reuse; /* off until it is needed */
	struct msg_stats stats;

	uint8_t *rx; /* receive buffers, ... */
	size_t rx_size;
	struct ibv_mr *rx_mr;
	uint32_t *idle; /* ... those that are not posted */
	uint32_t n_idle;
	struct msg_tx *tx, *tx_free;
	struct msg_part *parts, *part_free; /* of striped messages: all, and those to be used */
	struct list_head strips;
	struct list_head turns;   /* those that have more to send, and others are before them */
	uint32_t parts_out;       /* pieces under way, of all messages */
	double pace;              /* that divided messages have had, in bytes per ns */
	struct stripe_auto crowd; /* whether the network is crowded */
	struct msg_live *live;    /* NULL: nothing is shown */
	struct msg_owns owns;     /* RD: own addresses, ... */
	struct msg_scout *scout;  /* ... and what tries peers'; NULL: none are tried */
	uint8_t *tx_data;
	struct ibv_mr *tx_mr;

	struct msg_peer *peers;
	uint32_t n_peers, peers_cap;
	uint32_t *buckets; /* of peers by address */
	uint32_t n_buckets;

	struct msg_id *ids; /* operations that peers may name */
	uint32_t n_ids, id_free;
	struct list_head stalled; /* operations that wait for room in the send queue */
	struct list_head again;   /* packets to be sent again (msg_flow.h) */
	bool drained;             /* nothing was left in ep->cq when it was last looked into */
	uint32_t wait_first;      /* the first peer for which packets do */
	uint32_t quiet;           /* packets since the last one that reports */
	struct list_head cancelling;
	struct list_head claimed; /* messages, to be received by msg_recv_claimed */
	struct list_head ghosts;

	struct {
		uint32_t polls; /* in vain */
		uint32_t round;
		uint64_t next; /* when to ask again; 0: nobody has waited yet */
	} alive;
};

/* ---- msg_peer.c ---- */
/* UINT32_MAX: no memory. */
uint32_t msg_peer_get(struct msg_ep *ep, const struct msg_addr *addr);
/* Of whom a completion without a packet is, RD; UINT32_MAX: nobody that is known, or there are two
 * who might be. */
uint32_t msg_peer_from(const struct msg_ep *ep, const struct ibv_wc *wc);
void msg_peers_free(struct msg_ep *ep);
/* Of whom an operation that has a name waits for something, UINT32_MAX: nobody. */
uint32_t msg_awaited(const struct msg_op *op);
/* It is gone: whatever waits for it ends. */
void msg_peer_died(struct msg_ep *ep, uint32_t peer);

/* ---- msg_open.c ---- */
/* ep->qp, with a random ep->qkey. */
int msg_start_qp(struct msg_ep *ep);
/* A queue pair for datagrams, with a random *qkey. timeout: as verbs has it; 0: the device's. */
int msg_bring_up(const struct msg_dev *dev, struct ibv_qp *qp, uint32_t *qkey, uint8_t timeout);

/* ---- msg_progress.c ---- */
/* msg_progress() for who has the lock. */
int msg_progress_locked(struct msg_ep *ep);
/* Posts receive buffers that are idle. */
void msg_refill(struct msg_ep *ep);
/* A message that went in one packet is done. */
void msg_packet_sent(struct msg_ep *ep, struct msg_op *op, int err);

/* ---- msg_id.c: names of operations ---- */
/* In an immediate: of those that have it, the rest is a name; all others are the data of a write.
 */
#define MSG_IMM_NAME (UINT32_C(1) << 31)
int msg_id_new(struct msg_ep *ep, struct msg_op *op);
struct msg_op *msg_id_op(const struct msg_ep *ep, uint32_t id);
void msg_id_free(struct msg_ep *ep, struct msg_op *op);
/* What was the name of one is that of another. */
void msg_id_move(struct msg_ep *ep, struct msg_op *from, struct msg_op *to);

/* ---- msg_tx.c: work requests out ---- */
/* A packet, and at most 2 * MSG_IOV pieces behind it, which are the caller's again. report: is told
 * when it has arrived; NULL: nobody is. 0, -EAGAIN or another error. */
int msg_tx_send(struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p, const struct iovec *iov,
		unsigned int n_iov, struct msg_op *report);
/* The same, of a send whose only piece is held. It is told when it has arrived. */
int msg_tx_direct(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p);
/* That a part of an operation is over, over this path; not in order with others. */
int msg_tx_finish(struct msg_ep *ep, struct msg_op *op, uint64_t share, struct msg_part *part,
		  void *way);
/* Its packet is not needed any more: it has arrived, or never will. */
void msg_tx_free(struct msg_ep *ep, struct msg_tx *tx, int err);
/* A packet that waits if there is no room. 0 or an error, but not -EAGAIN. */
int msg_tx_post(struct msg_ep *ep, uint32_t peer, const struct msg_pkt *p, const void *body,
		size_t len);
/* Sends those that wait, if possible. */
void msg_tx_flush(struct msg_ep *ep);
void msg_tx_drop(struct msg_ep *ep);
/* Reads or writes what is left of an operation; that of a send ends with a notice for peer_id.
 * 0: all of it is under way; -EAGAIN: this peer has no room; -ENOBUFS: nobody has. */
int msg_tx_rdma(struct msg_ep *ep, struct msg_op *op);
/* A part of it from there on, at most so many bytes, over this path. How many it was; *err as
 * above. */
uint64_t msg_tx_part(struct msg_ep *ep, struct msg_op *op, uint64_t at, uint64_t most,
		     struct msg_part *part, void *way, int *err);
/* How much an operation reads or writes in all. */
uint64_t msg_rdma_len(const struct msg_op *op);
static inline uint32_t msg_rdma_peer(const struct msg_op *op)
{
	return op->kind == MSG_OP_RECV ? op->src : op->peer;
}

/* ---- msg_rx.c: what arrives ---- */
void msg_rx_packet(struct msg_ep *ep, const struct ibv_wc *wc, const uint8_t *buf);
/* Puts len bytes into a receive's buffer. */
void msg_scatter(struct msg_op *op, const uint8_t *from, uint64_t len);
/* A receive finds a message that was early. */
void msg_rx_early(struct msg_ep *ep, struct msg_op *op, struct msg_early *e);
/* A receive of many messages finds those. True: there is room for more. */
bool msg_rx_early_parts(struct msg_ep *ep, struct msg_multi *m);

/* ---- msg_rdma.c: data on the way ---- */
/* From where it stopped for want of room. True: there is still none, for nobody. */
bool msg_rdma_go_on(struct msg_ep *ep, struct msg_op *op);
/* To or from where a packet says. */
void msg_rdma_start(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p);
void msg_rdma_done(struct msg_ep *ep, struct msg_op *op, int err);
/* Makes the operation's memory known to a peer, for a while. */
int msg_expose(struct msg_ep *ep, struct msg_op *op, bool write, uint64_t len, struct msg_pkt *p);
void msg_unexpose(struct msg_ep *ep, struct msg_op *op);
/* Makes it known to the own device, where that is needed. Until msg_unexpose. */
int msg_hold_local(struct msg_ep *ep, struct msg_op *op);

/* ---- msg_direct.c: short transfers without a copy ---- */
/* False: it is to be copied. */
bool msg_direct_send(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p, int *err);
/* A send that was to be copied was refused. */
void msg_direct_refused(struct msg_ep *ep, const struct msg_op *op);
/* One that was not copied is over. */
void msg_direct_end(struct msg_ep *ep, struct msg_op *op);
/* What a read or a write of a peer's memory needs, if it is a short one: its own is held, or it has
 * a buffer of the endpoint. -ENOBUFS: there is none now. */
int msg_direct_rma(struct msg_ep *ep, struct msg_op *op);
/* Gives that back. */
void msg_direct_back(struct msg_ep *ep, struct msg_op *op);

/* ---- msg_read.c: the receiver reads ---- */
int msg_read_announce(struct msg_ep *ep, struct msg_op *op);
void msg_read_start(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p);
/* What was to be read is there; or will not be. */
void msg_read_finish(struct msg_ep *ep, struct msg_op *op);
void msg_read_done(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);

/* ---- msg_write.c: the sender writes ---- */
int msg_write_announce(struct msg_ep *ep, struct msg_op *op);
void msg_write_clear(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p);
void msg_write_start(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);
/* The notice of a write that has ended, whoever has begun it. */
void msg_write_notice(struct msg_ep *ep, const struct ibv_wc *wc);
/* All of it is here. */
void msg_write_ended(struct msg_ep *ep, struct msg_op *op);

/* ---- msg_finish.c: what was written over several connections ---- */
/* A FIN. */
void msg_finish_share(struct msg_ep *ep, const struct ibv_wc *wc, uint32_t src,
		      const struct msg_pkt *p);
/* A receive, so called, is being written: maybe all of that has come before. */
void msg_finish_check(struct msg_ep *ep, uint32_t id);
/* A LOST. */
void msg_finish_lost(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);

/* ---- msg_put.c: the receiver has said where, in advance ---- */
void msg_put_ask(struct msg_ep *ep, struct msg_op *op);
void msg_put_rtr(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);
/* Announced; to be written next (msg_rdma_go_on). */
int msg_put_send(struct msg_ep *ep, struct msg_op *op, const struct msg_rtr *rtr);
enum msg_match_result {
	MSG_MATCH_DATA,   /* the message, or where it is, is in the packet */
	MSG_MATCH_COMES,  /* its data comes by itself */
	MSG_MATCH_BROKEN, /* it is not what was asked for */
};
/* A message has come for a receive, which may have asked for it. ghost: has the data of a PUT. */
enum msg_match_result msg_put_matched(struct msg_ep *ep, struct msg_op *op, uint32_t src,
				      const struct msg_pkt *p, const struct msg_ghost *ghost);
void msg_put_end(struct msg_ep *ep, struct msg_op *op);

/* ---- msg_cancel.c ---- */
int msg_cancel_start(struct msg_ep *ep, struct msg_op *op);
void msg_cancel_withdraw(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);
void msg_cancel_answer(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);
/* Those that had to wait and need not any more. */
void msg_cancel_check(struct msg_ep *ep, uint32_t peer);
/* It has got its message instead. */
void msg_cancel_forget(struct msg_ep *ep, struct msg_op *op);

/* ---- msg_ghost.c ---- */
/* The RTR of a receive, which was asked back, is a ghost's from now on. False: that can not be. */
bool msg_ghost_take(struct msg_ep *ep, struct msg_op *op);
void msg_ghost_free(struct msg_ep *ep, struct msg_ghost *g);
/* The ghost whose RTR a PUT has used; NULL: it was none's, or is none's any more. */
struct msg_ghost *msg_ghost_put(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);
/* This receive, to which all has been said about its message, gets the data. */
void msg_ghost_deliver(struct msg_ep *ep, struct msg_ghost *g, struct msg_op *to);
void msg_ghost_notice(struct msg_ep *ep, struct msg_op *op);
void msg_ghost_answer(struct msg_ep *ep, struct msg_op *op);
/* Nobody will have its message. */
void msg_ghost_drop(struct msg_ep *ep, struct msg_ghost *g);
void msg_ghosts_died(struct msg_ep *ep, uint32_t peer);
void msg_ghosts_free(struct msg_ep *ep);

/* ---- msg_alive.c ---- */
/* A poll was in vain. */
void msg_alive_check(struct msg_ep *ep);

/* ---- msg_atomic.c ---- */
int msg_atomic_send(struct msg_ep *ep, struct msg_atomic *a);
void msg_atomic_do(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p, const uint8_t *body);
void msg_atomic_answer(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p,
		       const uint8_t *body);

/* Longer messages to a peer, or from it, go by rendezvous. */
static inline uint32_t msg_eager_max(const struct msg_ep *ep, uint32_t peer)
{
	return peer != MSG_ANY_SRC && ep->peers[peer].far ? ep->conf.eager_far : ep->conf.eager_max;
}

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

/* `done`, and of a part what follows from that. */
void msg_done(struct msg_ep *ep, struct msg_op *op, int err);
/* A receive that is no longer posted, and has got no message. */
void msg_end_recv(struct msg_ep *ep, struct msg_op *op, int err);

#endif
