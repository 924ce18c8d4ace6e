/* Queue pairs.
 *
 * A queue pair is two half machines that share a connection: the *requester* turns
 * send work requests into messages and completes them (rnic_req.c), the *responder*
 * executes the messages of the peer's requester (rnic_rsp.c). UD has neither, its
 * datagrams complete at once (rnic_ud.c).
 *
 * Requests of an RC queue pair are numbered from 1 in the order of posting; a write
 * with immediate counts twice, because on the wire it is two messages. The responder
 * acknowledges by number, and a completion is reported only when everything before
 * it is complete.
 */
#ifndef WEFT_RNIC_QP_H
#define WEFT_RNIC_QP_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <infiniband/verbs.h>
#include "wire_weft.h"
#include "rnic_cq.h"
#include "rnic_ctx.h"
#include "rnic_engine.h"
#include "rnic_mem.h"
#include "rnic_rq.h"

struct rnic_conn;
struct rnic_listener;

/* Where a datagram goes. */
struct rnic_ah {
	struct ibv_ah ibv; /* first */
	struct in_addr addr;
	uint8_t sgid_index;
	bool multicast;
	uint32_t mgid_hash; /* tells groups apart that share an IP address */
	uint32_t label;     /* RD: which of our ports to send from */
};

struct rnic_swqe {
	uint64_t wr_id;
	uint64_t remote_addr; /* with `keep`: where a copy is to be made, and its local key */
	uint64_t compare_add, swap;
	uint32_t rkey;
	uint32_t imm;    /* as the application gave it; also the key to invalidate */
	uint32_t length; /* of the payload */
	uint32_t seq;    /* number of its (last) message */
	uint32_t msn;    /* on its DDP queue, once has_msn */
	uint8_t opcode;  /* enum ibv_wr_opcode */
	uint8_t flags;   /* enum ibv_send_flags */
	bool has_msn;
	bool answered;  /* read or atomic: the response is here */
	bool inl;       /* the payload follows in place of sge */
	bool keep;      /* what sge has will be the poster's again: see rnic_swqe_keep */
	uint8_t status; /* enum ibv_wc_status: a local error that waits for its turn */
	int num_sge;
	struct in_addr dst; /* UD, RD */
	uint32_t dst_qpn, qkey, mgid_hash, label;
	uint8_t sgid_index;
	struct ibv_sge sge[];
};

/* The send queue. `lock` serialises posting; everything else needs the engine's lock.
 * Indices only grow. */
struct rnic_sq {
	struct util_lock lock;
	uint32_t cap, max_wr, max_sge, max_inline;
	size_t stride;
	uint8_t *ring;
	/* RD, whose requests complete in any order: which slot each position of the ring
	 * has; a slot that is free again takes the position at head. Else NULL: its own. */
	uint32_t *slots;
	atomic_uint head; /* oldest that is not complete */
	/* A request has its place until its completion was taken out of the completion queue,
	 * as with adapters: else one who posts until there is no room could make more
	 * completions than fit there. Those without one give it up when they complete. */
	atomic_uint polled, quiet;
	uint32_t tx;   /* next to transmit */
	uint32_t tail; /* next to be posted */
	uint32_t seq;  /* of the last one posted */

	/* ibv_wr_*: written under `lock`, published by wr_complete. */
	uint32_t build;
	uint32_t build_seq;
	struct rnic_swqe *cur;
	int build_err;
};

struct rnic_req {
	uint64_t off;      /* of the message at sq.tx that is sent */
	bool write_done;   /* of a write with immediate, only the immediate is left */
	uint32_t send_msn; /* last used on queue 0 */
	uint32_t read_msn; /* last used on queue 1 */
	uint32_t begun;    /* index behind the last request of which anything went out */
	uint32_t sent_seq; /* last request that went out whole */
	uint32_t acked;
	uint32_t paced;     /* sent_seq when quick acknowledgements were last asked for */
	uint32_t reads;     /* reads and atomics without an answer */
	uint32_t read_head; /* index of the oldest of them */
	uint64_t read_off;  /* bytes of its answer that are here */
	bool rnr;           /* told to wait */
	bool staged;        /* never send payload from where it lies */
	uint32_t rnr_seq;
	uint64_t rnr_deadline;   /* UINT64_MAX: waits for ever */
	struct rnic_timer timer; /* retry and RNR */
	struct rnic_due due;     /* to tell the peer that we wait */
	uint64_t progress, progress_seen, stalled_since;
};

struct rnic_rsp {
	uint32_t done;  /* requests executed */
	uint32_t acked; /* what the peer knows of that */
	uint32_t send_msn, read_msn;
	bool receiving;                     /* wqe holds a receive that is being filled */
	bool dropping;                      /* UC: the rest of this message is thrown away */
	uint64_t off;                       /* bytes of the Send that are here */
	bool spare;                         /* UC: wqe holds a receive whose message was given up */
	uint64_t write_len, last_write_len; /* of the write under way, of the last one */
	uint32_t write_stag;                /* where the write under way goes on */
	uint64_t write_to;
	bool write_bad, last_write_bad; /* UC: some of it was refused */
	struct rnic_rwqe *wqe;
	unsigned int damaged; /* times that the request under way failed its CRC */
	bool waiting;         /* sent RNR or DAMAGED; discards until RETRY */
	bool told;            /* IBV_EVENT_COMM_EST */
	struct list_head wait_link;
};

struct rnic_qp {
	union {
		struct ibv_qp ibv;
		struct ibv_qp_ex ex;
	}; /* first */
	struct rnic_engine *e;
	struct rnic_ctx *ctx;
	bool has_ex;
	bool sq_sig_all;
	uint32_t create_flags;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr; /* as set by modify_qp */
	struct rnic_cq *scq, *rcq;
	struct rnic_srq *srq;
	struct rnic_rq own_rq, *rq;
	struct rnic_sq sq;
	uint32_t async_taken;
	bool last_wqe_told, drained_told;

	/* RC and UC */
	struct rnic_listener *listener;
	struct rnic_conn *conn;     /* carries our requests */
	struct rnic_conn *rsp_conn; /* carries the peer's; another one only when the
				     * queue pair is connected to itself */
	struct in_addr peer;
	bool lost; /* was connected; never again until reset */
	uint64_t backoff;
	struct rnic_timer connect_timer;
	struct rnic_req req;
	struct rnic_rsp rsp;

	/* UD */
	struct rnic_io ud_io;
	uint32_t ud_msn;
	unsigned int ud_burst; /* datagrams to ask for; 0 after an empty pass */
	struct rnic_ud_fast *ud_fast;
	struct sockaddr_in ud_run_to; /* where the last ud_run sends went */
	unsigned int ud_run;
	struct list_head groups;

	struct rnic_rd *rd;
};

static inline bool rnic_is_rd(const struct rnic_qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_DRIVER;
}

/* The domain whose memory receives name. */
static inline struct ibv_pd *rnic_recv_pd(const struct rnic_qp *qp)
{
	return qp->srq ? qp->srq->ibv.pd : qp->ibv.pd;
}

static inline struct rnic_qp *rnic_qp(struct ibv_qp *qp)
{
	return (struct rnic_qp *)qp;
}

/* The state is written under the engine's lock, and read there, or here without it.
 * relaxed: who must not miss a change looks again under the lock. */
static inline enum ibv_qp_state rnic_qp_state(const struct rnic_qp *qp)
{
	return __atomic_load_n(&qp->ibv.state, __ATOMIC_RELAXED);
}

static inline void rnic_qp_set_state(struct rnic_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->ibv.state, state, __ATOMIC_RELAXED);
}

static inline struct rnic_swqe *rnic_swqe_at(const struct rnic_qp *qp, uint32_t slot)
{
	return (struct rnic_swqe *)(qp->sq.ring + slot * qp->sq.stride);
}

static inline struct rnic_swqe *rnic_swqe(struct rnic_qp *qp, uint32_t i)
{
	i &= qp->sq.cap - 1;
	return rnic_swqe_at(qp, qp->sq.slots ? qp->sq.slots[i] : i);
}

static inline uint32_t rnic_sq_head(const struct rnic_qp *qp)
{
	return atomic_load_explicit(&qp->sq.head, memory_order_relaxed);
}

/* Whether another request can be posted at `tail`. acquire: pairs with the release of whoever
 * took the completion out, or did without one. */
static inline bool rnic_sq_room(struct rnic_sq *sq, uint32_t tail)
{
	return tail - atomic_load_explicit(&sq->polled, memory_order_acquire) -
		       atomic_load_explicit(&sq->quiet, memory_order_acquire) <
	       sq->max_wr;
}

static inline bool rnic_is_read(const struct rnic_swqe *w)
{
	return w->opcode == IBV_WR_RDMA_READ || w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* ---- rnic_qp.c ---- */

/* To the error state: everything outstanding is flushed, the connection let go.
 * Idempotent. */
void rnic_qp_error(struct rnic_qp *qp);
void rnic_qp_reset(struct rnic_qp *qp);
struct ibv_qp *rnic_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
/* rnic_modify.c: the IPv4 address of an address vector. 0 or errno. */
int rnic_resolve_addr(const struct rnic_device *dev, const struct ibv_ah_attr *ah,
		      struct in_addr *addr);
/* Send side only, for UC and UD. */
void rnic_qp_sq_error(struct rnic_qp *qp);
/* Completes the oldest request of the send queue and frees its slot. */
void rnic_complete_send(struct rnic_qp *qp, enum ibv_wc_status status);
enum ibv_wc_opcode rnic_wc_opcode(uint8_t wr_opcode);
/* Receives, as rnic_rq_hold and rnic_rq_take; tells of an SRQ that runs low. */
bool rnic_recv_hold(struct rnic_qp *qp, struct rnic_rwqe *wqe, struct list_head *waiter);
bool rnic_recv_take(struct rnic_qp *qp, struct rnic_rwqe *wqe, struct list_head *waiter);
/* A request is over, and is reported or not. False: the completion is lost. */
bool rnic_sent(struct rnic_qp *qp, const struct ibv_wc *wc, bool report);
/* Fills in what is common and queues it. `wc` needs opcode, flags, lengths. */
void rnic_complete_recv(struct rnic_qp *qp, struct ibv_wc *wc, bool solicited);
void rnic_flush_sq(struct rnic_qp *qp);

/* ---- rnic_post.c, rnic_wr.c ---- */

int rnic_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int rnic_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int rnic_sq_check(const struct rnic_qp *qp, enum ibv_wr_opcode op);
/* Whether the state allows posting to the send queue. 0 or errno. */
int rnic_may_post(const struct rnic_qp *qp);
/* The copy is made, if it has not been, and is what is sent from now on. By plain loads: who posts
 * what is not there gets what memcpy would have given him. */
void rnic_swqe_keep(struct rnic_swqe *w);
/* Somebody else has made it. */
void rnic_swqe_kept(struct rnic_swqe *w);
void rnic_swqe_set_ah(struct rnic_swqe *w, const struct rnic_ah *ah, uint32_t qpn, uint32_t qkey);
/* Makes what was posted visible and starts it. Engine's lock held. */
void rnic_sq_publish(struct rnic_qp *qp, uint32_t tail, uint32_t seq);
void rnic_wr_ops(struct rnic_qp *qp);
uint64_t rnic_wr_ops_known(enum ibv_qp_type type);

/* ---- rnic_req.c: the requester ---- */

void rnic_req_init(struct rnic_qp *qp);
uint64_t rnic_rnr_ns(uint8_t code); /* IBTA's encoding of the RNR timer */
void rnic_req_reset(struct rnic_qp *qp);
/* Work was posted, or the connection came up or went: start the retry clock. */
void rnic_req_watch(struct rnic_qp *qp);
/* Payload that is sent from where it lies: it belongs at offset `at` of the frame that
 * was built without it. */
struct rnic_direct {
	const void *data;
	size_t len, at;
};
/* Below this, copying is cheaper than a piece more in the call. */
#define RNIC_DIRECT_MIN 8192

/* Builds the next request frame; 0 when there is nothing (now). */
size_t rnic_req_frame(struct rnic_qp *qp, uint8_t *buf, struct rnic_direct *direct);
void rnic_req_ack(struct rnic_qp *qp, uint32_t seq);
void rnic_req_rnr(struct rnic_qp *qp, uint32_t seq, uint8_t timer);
void rnic_req_ready(struct rnic_qp *qp, uint32_t seq);
void rnic_req_damaged(struct rnic_qp *qp, uint32_t seq);
int rnic_req_read_resp(struct rnic_qp *qp, const struct wire_seg *seg, const uint8_t *payload,
		       size_t len, struct wire_term *why);
int rnic_req_atomic_resp(struct rnic_qp *qp, const struct wire_seg *seg, const uint8_t *payload,
			 size_t len, struct wire_term *why);
void rnic_req_terminated(struct rnic_qp *qp, const struct wire_term *t);
/* Tells the peer how urgent acknowledgements are. */
void rnic_req_pace(struct rnic_qp *qp);
/* Whether everything that has begun is complete. */
bool rnic_req_drained(const struct rnic_qp *qp);
/* Reports what is complete, in order. */
void rnic_req_reap(struct rnic_qp *qp);
/* The request at the head failed. */
void rnic_req_fail(struct rnic_qp *qp, enum ibv_wc_status status);

/* ---- rnic_rsp.c: the responder ---- */

/* Executes one request segment. 0, or -EPROTO with *why: answer with a Terminate. */
int rnic_rsp_segment(struct rnic_qp *qp, struct rnic_conn *conn, const struct wire_seg *seg,
		     const uint8_t *payload, size_t len, struct wire_term *why);
void rnic_rsp_retry(struct rnic_qp *qp, uint32_t seq);
/* The request under way failed its CRC: ask for it again. False: too often. */
bool rnic_rsp_damaged(struct rnic_qp *qp, struct rnic_conn *conn);
/* A receive was posted: tell the peers that wait for one. */
void rnic_rsp_wake(struct rnic_engine *e, struct rnic_rq *rq);
void rnic_rsp_reset(struct rnic_qp *qp);

/* ---- rnic_ud.c, rnic_mcast.c ---- */

int rnic_ud_open(struct rnic_qp *qp);
void rnic_ud_close(struct rnic_qp *qp);
void rnic_ud_pump(struct rnic_qp *qp);
/* Reads one of the queue pair's sockets and delivers. `ask`: the kernel must be asked
 * which of our addresses a datagram was sent to, else it is number sgid_index. */
bool rnic_ud_drain(struct rnic_qp *qp, int fd, bool ask, uint8_t sgid_index, uint32_t events);
/* A connected socket for this destination, or -1 (rnic_ud_fast.c). */
int rnic_ud_fast(struct rnic_qp *qp, const struct sockaddr_in *to, uint8_t sgid_index);
void rnic_ud_fast_close(struct rnic_qp *qp);
/* Binds a second socket to the address and port of the first. 0 or -errno. */
int rnic_bind_beside(int first, int second, const struct sockaddr_in *own);
/* A message may be 64 KB and comes in one piece; the kernel's default holds three of
 * them. It is cut to net.core.rmem_max without complaint. */
#define RNIC_UD_SOCKBUF (4 << 20)

void rnic_ud_deliver(struct rnic_qp *qp, const struct wire_seg *seg, const uint8_t *payload,
		     size_t len, struct sockaddr_in *from, struct in_addr to);
/* One datagram into the engine's buffer: its length or -1; then what it says. *to is
 * changed only if the kernel tells. */
ssize_t rnic_ud_recv(struct rnic_engine *e, int fd, struct sockaddr_in *from, struct in_addr *to);
bool rnic_ud_decode(struct rnic_engine *e, struct wire_seg *seg, size_t len);
/* The IP group of a multicast GID; false when it is none. */
bool rnic_mcast_map(const union ibv_gid *gid, struct in_addr *addr, uint32_t *hash);

#define RNIC_UD_INDEX   0xff     /* low byte of a UD queue pair's number */
#define RNIC_MCAST_QPN  0xffffff /* what multicast datagrams are addressed to */
#define RNIC_MCAST_PORT 0xffff

#endif
