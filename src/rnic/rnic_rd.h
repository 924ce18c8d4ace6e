/* Reliable datagram queue pairs.
 *
 * One queue pair, many peers. A *peer* is a queue pair somewhere that we exchange packets
 * with; it is known by its life, a number that it drew when it was made or reset. A *path* is a
 * way to a peer: one of its addresses, one of our sockets. Work requests name a path; which
 * peer is at its end is found out once, by an exchange of hellos (rnic_rd_pair.c), and two paths
 * may turn out to lead to the same one.
 *
 * Requests and responses are *messages*: a range of packet sequence numbers of one lane, sent
 * over one path (rnic_rd_tx.c). What arrives is placed at once; what it means, a completion, a
 * read to execute, is an *event* that waits until everything before it has arrived
 * (rnic_rd_rsp.c). What may be sent when, and what is lost, is decided by src/rd, which knows
 * neither sockets nor clocks. Sockets are in rnic_rd_io.c.
 *
 * Everything here needs the engine's lock.
 */
#ifndef WEFT_RNIC_RD_H
#define WEFT_RNIC_RD_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include "rd_board.h"
#include "rd_egress.h"
#include "rd_rx.h"
#include "wire_rd.h"
#include "util_clock.h"
#include "rnic_fault.h"
#include "rnic_qp.h"
#include "weft/weftdv.h"

#define RNIC_RD_INDEX 0xfe /* low byte of an RD queue pair's number */
/* What a packet costs the receiver's socket beyond its length, roughly. */
#define RNIC_RD_OVERHEAD 256
#define RNIC_RD_READS    128 /* reads and atomics of one peer at a time, in each direction */
/* Packets of one peer that came before their turn and mean something, and receives that its
 * unfinished messages hold. More are dropped and have to come again. */
#define RNIC_RD_EVENTS 1024
#define RNIC_RD_HOLDS  256

enum { RNIC_RD_REQ, RNIC_RD_RSP }; /* lanes */

struct rnic_rd;
struct rnic_rd_peer;
struct rnic_rd_path;

enum rnic_rd_kind {
	RNIC_RD_SEND,
	RNIC_RD_WRITE,
	RNIC_RD_WRITE_IMM, /* the last packet is the immediate */
	RNIC_RD_READ,
	RNIC_RD_ATOMIC,
	RNIC_RD_READ_RSP,
	RNIC_RD_ATOMIC_RSP,
	RNIC_RD_ERROR_RSP,
};

struct rnic_rd_msg {
	struct list_head link; /* on lane->msgs in order of numbers, until acknowledged */
	struct list_head tx;   /* on path->tx while something of it is to be sent */
	struct rnic_rd_path *path;
	uint8_t kind;
	uint8_t lane;
	bool skip;     /* failed: what is left of it are empty packets */
	bool numbered; /* has its packet sequence numbers */
	bool arrived;  /* all of it has; what was sent before it perhaps not */
	bool executed; /* ... that too: it is on peer->unanswered, if anywhere */
	uint8_t grant; /* shared memory: by which the receiver fetches it, counted from 1; 0: not */
	uint32_t first; /* ... which begin here */
	uint32_t n;     /* packets */
	uint32_t sent;  /* packets from the first on that need no first transmission */
	uint32_t acked;
	uint32_t seg;    /* payload of a full packet */
	uint32_t length; /* of the payload */
	uint32_t ssn;    /* number among the messages that take a receive */
	uint64_t begun;  /* when its first packet went out; 0: not yet */
	uint64_t copy;   /* shared memory: where in the ring the only copy of it is; 0: elsewhere */
};

/* A work request of ours. There is one for each slot of the send queue. */
struct rnic_rd_req {
	struct rnic_rd_msg msg; /* first */
	struct rnic_rd *rd;
	uint32_t slot;
	uint32_t qkey;
	uint32_t handle; /* what a response names it by; 0: expects none */
	uint32_t got;    /* bytes of the response */
	uint8_t status;  /* enum ibv_wc_status, once it has failed */
	bool answered;
	struct list_head wait; /* on group->waiting, while its path is not up */
};

/* A response that we owe. */
struct rnic_rd_job {
	struct rnic_rd_msg msg; /* first */
	uint32_t handle;
	uint32_t rkey;
	uint64_t addr;
	uint64_t value; /* of an atomic; of an error its reason */
};

struct rnic_rd_lane {
	struct rd_board board;
	struct rd_rx rx;
	uint32_t next; /* number for the next message's first packet */
	struct list_head msgs;
	bool held; /* some messages are not numbered yet */
};

/* What a peer needs only while there is something going on. Idle peers sleep: of them only the
 * next numbers are kept. */
struct rnic_rd_awake {
	struct rnic_rd_lane lane[WIRE_RD_LANES];
	struct rnic_rd_peer *peer;
	struct list_head link; /* on rd->awake, the one that was used last at the end */
	struct rnic_due due;   /* acknowledgements */
	struct list_head holds, events;
	struct list_head starved_link; /* on rd->starved */
	/* While requests wait for a receive: those from this number on, at the longest until; the
	 * one that had to wait last, and when it fails. */
	uint32_t rnr_psn;
	uint64_t rnr_until, rnr_deadline;
	struct rnic_rd_msg *rnr_msg;
};

/* A receive that a message of this peer has taken and not yet filled. */
struct rnic_rd_hold {
	struct list_head link; /* on the peer's holds, in order of ssn */
	uint32_t ssn;
	bool spent;           /* its receive is used up, the message refused */
	uint8_t status;       /* ... with this */
	struct rnic_rwqe wqe; /* last */
};

/* Something to be done when its turn comes. */
struct rnic_rd_event {
	struct list_head link; /* on the peer's events, in order of psn */
	uint32_t psn;
	uint8_t opcode; /* of the packet */
	uint32_t ssn;
	uint32_t length, imm;
	struct rnic_rd_path *from;
	union {
		struct wire_read_req read;
		struct wire_atomic_req atomic;
	};
};

struct rnic_rd_peer {
	struct rnic_rd *rd;
	struct list_head link;              /* on rd->peers */
	struct list_head paths;             /* at least one */
	struct rd_rtt rtt;                  /* of all of them */
	uint64_t life, local_id, remote_id; /* remote_id 0: not accepted yet */
	struct rnic_rd_peer *namesake;      /* the next of this life's low half */
	uint64_t doubted; /* since somebody else claims its place; 0: nobody does */
	bool spoke;       /* it has said something since */
	bool named;       /* an address handle led here */
	uint32_t qpn;
	struct in_addr addr; /* where it was found first */
	uint16_t mtu;
	uint32_t room;
	bool shm_tried;
	struct rnic_rd_shm *shm;   /* the peer is on this host, and linked */
	struct rnic_rd_lane *lane; /* of a struct rnic_rd_awake; NULL: asleep */
	struct {
		uint32_t tx, rx;
	} next[WIRE_RD_LANES]; /* numbers of a sleeper */

	/* Sending. */
	struct list_head unanswered; /* reads and atomics whose request is acknowledged */
	uint32_t ssn;                /* of the next message that takes a receive */
	uint32_t ssn_una;            /* of the oldest that is not finished */
	uint32_t reads;              /* that we wait for */
	bool rnr;                    /* requests wait for a receive of the peer */
	uint64_t waiting;            /* since when we wait for anything; 0: we do not */
	uint64_t heard;              /* a packet of this peer last came */
	uint64_t refused; /* since when its machine says that nobody listens; 0: it does not */

	/* Receiving. */
	uint64_t data_at;  /* when a request packet last came */
	uint32_t ssn_done; /* the next to complete */
	uint32_t ssn_held; /* the next that has no receive yet */
	uint32_t n_holds, n_events, n_jobs;
	bool starved;     /* told the peer that there is no receive */
	bool refused_one; /* ... and the message that was to have it has not come again yet */
	uint32_t starved_psn;
	struct rnic_rd_path *reply; /* where acknowledgements go */
	bool owe[WIRE_RD_LANES];
	uint32_t unacked;         /* bytes received since the last acknowledgement */
	struct list_head touched; /* on rd->touched: packets came in this pass */
	bool urgent;              /* something is missing, or came twice: say so at once */
	bool asked;               /* the peer waits for an acknowledgement */
	bool naked;               /* said in this batch that there is no receive */
	struct rnic_timer timer;  /* reads, receives and RNR */
};

enum rnic_rd_path_state { RNIC_RD_PATH_CONTACT, RNIC_RD_PATH_UP };

/* A path that was asked so often, for half a second, is not waited for where there is another. */
#define RNIC_RD_OVERDUE 6

struct rnic_rd_path {
	struct rd_path p; /* first */
	struct rnic_rd *rd;
	struct rnic_rd_peer *peer; /* NULL before the first answer */
	struct rnic_rd_sock *sock;
	struct rnic_rd_path *chain; /* in rd->paths */
	struct list_head link;      /* on peer->paths; while in contact, on rd->contacts */
	struct list_head all;       /* on rd->all_paths */
	struct list_head tx[WIRE_RD_LANES];
	struct list_head turn; /* on rd->turns while it waits to be sent */
	struct in_addr addr;
	uint32_t qpn; /* named by an address handle; 0: only seen */
	uint16_t port;
	uint8_t sgid;
	uint8_t state;
	uint32_t label;
	struct rnic_rd_group *group; /* while in contact */
	struct rnic_timer timer;     /* retransmission; while in contact, of the INIT */

	uint32_t qkey;
	uint8_t tries, challenges;
	bool alone;        /* is not one of the peers that we know, whatever it says */
	uint8_t last_lane; /* of the last packet */
	union {
		struct { /* while in contact */
			uint64_t nonce, cookie, since, refused;
		};
		struct { /* afterwards, for reports */
			uint64_t completions, completed_bytes, per_kb;
		};
	};
};

/* Work requests to one queue pair number whose path is not up yet. They wait together, so
 * that two paths of one peer, of which nobody knows yet that they are, keep their order. */
struct rnic_rd_group {
	struct rnic_rd_group *chain;
	uint32_t qpn;
	struct list_head waiting;
	uint32_t contacts; /* paths of this number that are in contact */
};

struct rnic_rd_sock {
	struct rnic_io io; /* first */
	struct rnic_rd *rd;
	struct list_head link; /* on rd->socks */
	uint32_t label;
	unsigned int burst;
	bool fast;    /* connected to to_addr:to_port */
	bool gro;     /* ... and receives glued datagrams */
	uint8_t full; /* packets in a row that speak for the other way */
	struct in_addr to_addr;
	uint16_t to_port;
	uint8_t sgid;
	bool queued; /* something may wait in the own interface */
	/* What the kernel did not take. */
	uint8_t *pend;
	size_t pend_len, pend_seg;
	struct sockaddr_in pend_to;
	uint8_t pend_sgid;
};

#define RNIC_RD_BURST 64

struct rnic_rd {
	struct rnic_qp *qp;
	struct rnic_engine *e;
	uint64_t life;
	uint64_t secret[2];
	uint64_t timeout; /* ns */
	uint8_t rnr_retry;
	uint16_t mtu;
	uint32_t room;
	uint32_t max_peers;
	bool gso;
	struct rnic_rd_req *reqs;   /* one for each slot */
	uint32_t handle;            /* the last one given */
	struct rnic_table *ids;     /* low half of local_id → peer */
	struct rnic_table *lives;   /* low half of life → peers, chained */
	struct rnic_table *handles; /* → request that waits for a response */
	struct rnic_table *addrs;   /* → number of peers there */
	struct list_head awake;
	uint32_t n_awake;
	struct list_head peers, all_paths, contacts, socks, touched, starved;
	uint32_t n_peers, n_paths, n_label;
	struct rnic_rd_path **paths; /* by address handle: hash chains */
	struct rnic_rd_group **groups;
	uint32_t path_mask, group_mask;
	struct rd_pool pool;
	struct rnic_rd_sock *main;
	struct rnic_rd_sock *fast;
	struct rnic_rd_path *run_path; /* the last run_n bursts all went there */
	uint32_t run_n;
	uint64_t evicted;         /* when room was last made */
	uint64_t rx_now;          /* the time, while a batch of packets is taken in; 0: not now */
	uint64_t tx_now;          /* when packets were last sent */
	uint64_t heard_resets_at; /* when RESETs that came were last counted anew */
	uint32_t heard_resets;
	uint64_t resets_at; /* when RESETs were last counted anew */
	uint32_t resets;
	struct rnic_fault fault;
	struct rnic_rd_port *port; /* NULL: no shared memory */
	struct list_head links;    /* of shared memory */
	struct list_head delayed;  /* datagrams that faults hold back */
	uint32_t n_delayed;
	struct rnic_timer fault_timer;
	struct weftdv_rd_stats stats;
	struct rnic_due broken;   /* a completion was lost: to the error state, later */
	struct rnic_due returned; /* a receive was given back: whoever waits is told, later */

	struct list_head turns;       /* paths with something to send, see rnic_rd_turn.c */
	struct rnic_timer turn_timer; /* when the next may */
	struct rd_egress egress;
	struct rd_rtt rtt; /* of all peers: what to expect of a new one */

	bool posting;   /* the program is in a call, and would rather go on */
	uint32_t kb_ns; /* what sending takes, on average */

	/* The burst under construction: packets to one place, in the engine's buffer. */
	struct {
		size_t len, seg;
		unsigned int n, max; /* packets */
		bool closed;         /* a shorter packet was the last */
	} burst;
};

static inline struct rnic_rd_req *rnic_rd_req(struct rnic_rd_msg *m)
{
	return (struct rnic_rd_req *)m;
}

/* The time. Taking in packets, that of the pass will do, unless something was sent since. */
static inline uint64_t rnic_rd_now(const struct rnic_rd *rd)
{
	return rd->rx_now > rd->tx_now ? rd->rx_now : util_now_ns();
}

static inline struct rnic_rd_job *rnic_rd_job(struct rnic_rd_msg *m)
{
	return (struct rnic_rd_job *)m;
}

/* The work request of one of our messages. */
static inline struct rnic_swqe *rnic_rd_swqe(const struct rnic_rd_msg *m)
{
	const struct rnic_rd_req *r = (const struct rnic_rd_req *)m;

	return rnic_swqe_at(r->rd->qp, r->slot);
}

static inline bool rnic_rd_takes_receive(const struct rnic_rd_msg *m)
{
	return m->kind == RNIC_RD_SEND || m->kind == RNIC_RD_WRITE_IMM;
}

static inline bool rnic_rd_is_read(const struct rnic_rd_msg *m)
{
	return m->kind == RNIC_RD_READ || m->kind == RNIC_RD_ATOMIC;
}

/* Where a path leads. */
static inline struct sockaddr_in rnic_rd_place(const struct rnic_rd_path *path)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr = path->addr, .sin_port = htons(path->port)};
}

/* The peer has something to do at the end of the batch (rnic_rd_settle). */
static inline void rnic_rd_touch(struct rnic_rd_peer *peer)
{
	if (list_empty(&peer->touched))
		list_add_tail(&peer->touched, &peer->rd->touched);
}

/* Why memory is refused to a peer; and what a refusal, ACCESS to OPERATION, makes of a request. */
static inline enum wire_rd_reason rnic_rd_reason(enum rnic_mem_error err)
{
	return err == RNIC_MEM_FAULT ? WIRE_RD_OPERATION : WIRE_RD_ACCESS;
}

static inline enum ibv_wc_status rnic_rd_status(uint8_t reason)
{
	return reason == WIRE_RD_ACCESS    ? IBV_WC_REM_ACCESS_ERR
	       : reason == WIRE_RD_INVALID ? IBV_WC_REM_INV_REQ_ERR
					   : IBV_WC_REM_OP_ERR;
}

/* ---- rnic_rd.c: the queue pair ---- */

int rnic_rd_open(struct rnic_qp *qp);
void rnic_rd_close(struct rnic_qp *qp);
/* After the last pass that could touch it. */
void rnic_rd_free(struct rnic_rd *rd);
void rnic_rd_reset(struct rnic_qp *qp);
/* To the error state: everything outstanding is flushed. */
void rnic_rd_flush(struct rnic_qp *qp);
/* Attributes were set: how long to wait for whom. */
void rnic_rd_modified(struct rnic_qp *qp, int mask);
/* Slots [tx, tail) of the send queue were posted. */
void rnic_rd_post(struct rnic_qp *qp);
/* A request is over, successful unless it has a status. */
void rnic_rd_complete(struct rnic_rd_req *r);
/* How long it took counts for its path. */
void rnic_rd_learn(struct rnic_rd_req *r);
/* A receive was posted. */
void rnic_rd_wake(struct rnic_rd *rd);
void rnic_rd_fail(struct rnic_rd_req *r, enum ibv_wc_status status);
/* A message has arrived in the receive `wr_id`, which is used up. */
struct rnic_rd_arrival {
	uint64_t wr_id;
	uint32_t len;
	__be32 imm;
	uint8_t status; /* enum ibv_wc_status */
	bool write;     /* what came was a write, the receive only its notice */
	bool has_imm, solicited;
};
void rnic_rd_received(struct rnic_rd_peer *peer, const struct rnic_rd_arrival *a);
/* A receive that was taken is not used: another message may have it. */
void rnic_rd_return(struct rnic_rd *rd, const struct rnic_rwqe *wqe);

/* ---- rnic_rd_path.c ---- */

/* By what an address handle and a number name; find: NULL, get: makes it. */
struct rnic_rd_path *rnic_rd_path_find(struct rnic_rd *rd, struct in_addr addr, uint32_t qpn,
				       uint8_t sgid, uint32_t label);
struct rnic_rd_path *rnic_rd_path_get(struct rnic_rd *rd, struct in_addr addr, uint32_t qpn,
				      uint8_t sgid, uint32_t label, uint32_t qkey);
/* The path that a packet of this peer came over, made if there is none yet. */
struct rnic_rd_path *rnic_rd_path_seen(struct rnic_rd_peer *peer, struct rnic_rd_sock *sock,
				       const struct sockaddr_in *from, uint8_t sgid);
/* The peer at its end is known. */
void rnic_rd_path_up(struct rnic_rd_path *path, struct rnic_rd_peer *peer);
void rnic_rd_path_free(struct rnic_rd_path *path);
/* Queues a request: at its peer, or until its path is up. */
void rnic_rd_route(struct rnic_rd_path *path, struct rnic_rd_req *r);
void rnic_rd_contact_over(struct rnic_rd_path *path);
void rnic_rd_contact_failed(struct rnic_rd_path *path, enum ibv_wc_status status);
/* Whether nobody has answered for so long that requests rather go another way, if there is one. */
bool rnic_rd_overdue(const struct rnic_rd_path *path);
/* Nobody answers: what waits goes over another path of the same queue pair, if there is one. */
void rnic_rd_divert(struct rnic_rd_path *path);

/* ---- rnic_rd_pair.c: finding out who is there ---- */

void rnic_rd_contact(struct rnic_rd_path *path);
void rnic_rd_contact_fire(struct rnic_rd_path *path, uint64_t now);
void rnic_rd_hello(struct rnic_rd *rd, struct rnic_rd_sock *sock, const struct sockaddr_in *from,
		   uint8_t sgid, const struct wire_rd *h, const uint8_t *body);

/* ---- rnic_rd_peer.c: peers ---- */

/* The peer of this life. A life is no secret, so anybody can claim one: it counts together with
 * the address, with an id that only the peer can know (0: none), or while we are asking. */
struct rnic_rd_peer *rnic_rd_peer_find(const struct rnic_rd *rd, uint64_t life, struct in_addr addr,
				       uint64_t id);
/* Any that has this life and has answered. */
struct rnic_rd_peer *rnic_rd_peer_namesake(const struct rnic_rd *rd, uint64_t life);
/* NULL: no memory, or no room. */
struct rnic_rd_peer *rnic_rd_peer_new(struct rnic_rd *rd, struct in_addr addr,
				      const struct wire_rd_hello *hello, uint64_t id);
/* It has told the id that it wants to see. */
void rnic_rd_peer_accepted(struct rnic_rd_peer *peer, uint64_t remote_id);
/* A peer that has never answered is of no use without somebody who asks it. */
void rnic_rd_peer_unasked(struct rnic_rd *rd, struct rnic_rd_peer *peer);
/* Makes sure that it has its lanes. False: no memory. */
bool rnic_rd_peer_wake(struct rnic_rd_peer *peer);
/* Those that have not been used for long go to sleep, if too many are awake. */
void rnic_rd_peers_rest(struct rnic_rd *rd);
/* Of a peer that is awake. */
static inline struct rnic_rd_awake *rnic_rd_awake(const struct rnic_rd_peer *peer)
{
	return container_of(peer->lane, struct rnic_rd_awake, lane[0]);
}
static inline struct rnic_due *rnic_rd_due_of(struct rnic_rd_peer *peer)
{
	return &rnic_rd_awake(peer)->due;
}
/* It is given up: everything outstanding fails with `status`. */
void rnic_rd_peer_dead(struct rnic_rd_peer *peer, enum ibv_wc_status status, const char *why);
void rnic_rd_peer_free(struct rnic_rd_peer *peer);
/* Somebody's machine says that nobody listens there. */
void rnic_rd_unreachable(struct rnic_rd *rd, const struct sockaddr_in *where);
/* A peer that we expect something of: watches that it lives. */
void rnic_rd_watch(struct rnic_rd_peer *peer, uint64_t now);
/* Whether anything is expected of the peer. */
bool rnic_rd_expects(const struct rnic_rd_peer *peer);
/* Gives up a peer that has been silent for too long. True: it is gone. */
bool rnic_rd_check_alive(struct rnic_rd_peer *peer, uint64_t now);

/* ---- rnic_rd_build.c: packets ---- */

/* Packet i of a message: its length, and the packet itself. */
size_t rnic_rd_packet_len(const struct rnic_rd_msg *m, uint32_t i);
size_t rnic_rd_build(struct rnic_rd_peer *peer, struct rnic_rd_msg *m, uint32_t i, bool ask,
		     uint8_t *buf);

/* ---- rnic_rd_tx.c: messages out ---- */

void rnic_rd_send(struct rnic_rd_peer *peer, struct rnic_rd_msg *m);
/* Gives numbers to messages that have waited for them. */
void rnic_rd_number(struct rnic_rd_peer *peer, unsigned int lane);
/* One packet: its length. 0: nothing may go. */
int rnic_rd_send_one(struct rnic_rd_path *path, uint64_t now);
/* The same of a request of one short packet, if that is the next: it need not wait for room in the
 * window, which data may fill that goes the other way than what it asks for. */
int rnic_rd_send_brief(struct rnic_rd_path *path, uint64_t now);
void rnic_rd_ack_in(struct rnic_rd_peer *peer, unsigned int lane, uint32_t next,
		    const uint64_t *sack, unsigned int n);
void rnic_rd_nak_in(struct rnic_rd_peer *peer, uint32_t psn, const struct wire_rd_nak *nak);
void rnic_rd_path_arm(struct rnic_rd_path *path);
void rnic_rd_path_fire(struct rnic_timer *t, uint64_t now);
/* A packet without data; psn is 0 but for NAK. */
void rnic_rd_control(struct rnic_rd_peer *peer, struct rnic_rd_path *path, enum wire_rd_type type,
		     uint32_t psn, const void *body, size_t len);
void rnic_rd_ack_out(struct rnic_rd_peer *peer, unsigned int lane);
/* What is left of a message becomes empty packets. */
void rnic_rd_skip(struct rnic_rd_peer *peer, struct rnic_rd_msg *m);

/* ---- rnic_rd_turn.c: who may send now ---- */

/* The path has something to send, now or when its turn comes. */
void rnic_rd_turn(struct rnic_rd_path *path, uint64_t now);
/* ... and all paths of a peer. */
void rnic_rd_pump(struct rnic_rd_peer *peer);
void rnic_rd_turn_fire(struct rnic_timer *t, uint64_t now);

/* ---- rnic_rd_rx.c: packets in ---- */

void rnic_rd_packet(struct rnic_rd *rd, struct rnic_rd_sock *sock, const struct sockaddr_in *from,
		    uint8_t sgid, const uint8_t *data, size_t len);
/* The end of a batch of packets: acknowledgements, and what may go now. */
void rnic_rd_settle(struct rnic_rd *rd);
void rnic_rd_events(struct rnic_rd_peer *peer);
void rnic_rd_due(struct rnic_due *d);
void rnic_rd_peer_fire(struct rnic_timer *t, uint64_t now);
void rnic_rd_give_back(struct rnic_rd_peer *peer);
/* Responses, however they came. `all`: there is no more, wherever the data went. */
void rnic_rd_got_data(struct rnic_rd_peer *peer, uint32_t handle, uint64_t off,
		      const uint8_t *payload, size_t len, bool all);
/* The read that waits for this; NULL: nobody does. */
struct rnic_rd_req *rnic_rd_reader(struct rnic_rd_peer *peer, uint32_t handle);
void rnic_rd_got_value(struct rnic_rd_peer *peer, uint32_t handle, uint64_t value);
void rnic_rd_got_error(struct rnic_rd_peer *peer, uint32_t handle, uint8_t reason);
void rnic_rd_read_failed(struct rnic_rd_peer *peer, uint32_t handle, enum ibv_wc_status status);

/* ---- rnic_rd_rsp.c: requests of peers ---- */

/* A read: what is to be answered, the data or an error. */
void rnic_rd_read(struct rnic_rd *rd, uint32_t rkey, uint64_t addr, uint32_t len,
		  struct rnic_rd_job *job);
/* An atomic: what is to be answered, RNIC_RD_ATOMIC_RSP or RNIC_RD_ERROR_RSP, and its value. */
struct rnic_rd_atomic {
	bool add;
	uint32_t rkey;
	uint64_t addr;
	uint64_t arg[2]; /* what to add; or what to compare with, and what to put in its place */
};
enum rnic_rd_kind rnic_rd_atomic(struct rnic_rd *rd, const struct rnic_rd_atomic *a,
				 uint64_t *value);

void rnic_rd_request_in(struct rnic_rd_peer *peer, const struct wire_rd *h,
			const struct wire_seg *seg, const uint8_t *payload, size_t len);
void rnic_rd_skip_in(struct rnic_rd_peer *peer, const struct wire_rd *h, const uint8_t *body,
		     size_t len);

/* ---- rnic_rd_faults.c ---- */

void rnic_rd_faults_init(struct rnic_rd *rd);
void rnic_rd_faults_send(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
			 uint8_t *data, size_t len, size_t seg);
/* What is held back of a socket, or of all (NULL), is lost. */
void rnic_rd_faults_forget(struct rnic_rd *rd, const struct rnic_rd_sock *sock);

/* ---- rnic_rd_io.c: sockets ---- */

/* One call; seg: the length of each datagram but the last. */
void rnic_rd_transmit(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		      const uint8_t *data, size_t len, size_t seg);

int rnic_rd_io_open(struct rnic_rd *rd);
void rnic_rd_io_close(struct rnic_rd *rd);
/* Frees memory only. */
void rnic_rd_io_discard(struct rnic_rd *rd);
struct rnic_rd_sock *rnic_rd_sock(struct rnic_rd *rd, uint32_t label);
/* One datagram, not part of a burst. */
void rnic_rd_io_send(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		     uint8_t *data, size_t len);
/* Room for the next packet of a burst, at most `mtu` bytes; then its true length. */
uint8_t *rnic_rd_io_room(struct rnic_rd_path *path, size_t mtu);
void rnic_rd_io_put(struct rnic_rd_path *path, size_t len);
void rnic_rd_io_flush(struct rnic_rd_path *path);
/* Bytes that wait in the own machine. */
uint32_t rnic_rd_io_queued(struct rnic_rd *rd);
/* Whether the socket takes something now. */
static inline bool rnic_rd_io_ready(const struct rnic_rd_sock *sock)
{
	return !sock->pend_len;
}

#endif
