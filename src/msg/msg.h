/* Messages between endpoints: what a libfabric provider, or any other library for messages, stands
 * on.
 *
 * An *endpoint* reaches every other endpoint, over one queue pair (RD, <weft/weftdv.h>) or over one
 * or several for each that are connected when they are needed (RC); it has receive buffers of its
 * own, and the two queues of tag matching. A *peer* is another endpoint, known by its address and
 * numbered from 0 on. An *operation* is the caller's memory until it is done: a send, a receive, a
 * read or a write of the peer's memory.
 *
 * Short messages are sent *eagerly*, into the buffers of the other endpoint, and copied from there.
 * Longer ones are announced, and moved straight between the buffers of the two applications by
 * RDMA. Each way to do that is in a file of its own: the receiver reads them (msg_read.c); the
 * sender writes them when the receiver says where (msg_write.c), or at once if the receiver has
 * said so before (msg_put.c). msg_choose.h says which it is.
 *
 * Nothing happens by itself but what the device does: msg_progress, and every call that starts
 * something, handle what has come. All functions of an endpoint may be called from any thread.
 * `done` is called with the endpoint's lock held; it must not call back.
 */
#ifndef WEFT_MSG_H
#define WEFT_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "stripe.h"
#include "util_list.h"
#include "msg_match.h"
#include "msg_reuse.h"
#include "msg_spec.h"

#define MSG_IOV 4

struct ibv_mr;
struct msg_dev;
struct msg_mem;
struct msg_region;
struct msg_tx;
struct msg_early; /* a message that no receive was there for */
struct msg_ep;

/* The name of an endpoint. Without holes: two are the same if their bytes are. */
struct msg_addr {
	union {
		uint8_t gid[16];
		struct {
			uint8_t prefix[12];
			uint32_t ip; /* of a GID that is an IPv4 address; network order */
		};
	};
	uint32_t qpn, qkey;
	uint16_t lid; /* 0: none */
	uint16_t zero;
};
_Static_assert(sizeof(struct msg_addr) == 28, "it is sent as it is");

enum msg_op_kind {
	MSG_OP_SEND,
	MSG_OP_RECV,
	MSG_OP_READ,
	MSG_OP_WRITE,
	MSG_OP_ATOMIC,
	MSG_OP_GHOST, /* the engine's own: what is left of a receive, see msg_ghost.c */
};

enum msg_op_flag {
	MSG_OP_TAGGED = 1,
	MSG_OP_DATA = 2,   /* data goes along with a send or a write; came with what was received */
	MSG_OP_INJECT = 4, /* the buffer is the caller's again when the call returns */
	MSG_OP_DELIVER = 8, /* a send is done when the message is in the receiver's buffer */
	MSG_OP_MULTI = 16,  /* a receive of many messages, one behind the other, see msg_multi */
	MSG_OP_PART = 32,   /* a message of those: not the caller's operation, gone after `done` */
};

/* Own memory that a device may use for a while. */
struct msg_hold {
	struct ibv_mr *mr;         /* NULL: nothing */
	struct msg_region *region; /* of the cache, whose registration it is; or NULL */
};

/* A piece of a peer's memory. */
struct msg_remote {
	uint64_t addr, len;
	uint32_t key;
};

struct msg_op {
	/* The caller's. */
	uint8_t kind, flags;
	uint32_t peer; /* of a receive: MSG_ANY_SRC, or the only one whose messages are wanted */
	uint64_t tag, ignore, data;
	struct iovec iov[MSG_IOV];
	unsigned int n_iov, n_remote;
	struct msg_remote remote[MSG_IOV];

	/* The result. */
	int err; /* 0 or -errno: -ECANCELED, -EMSGSIZE (truncated), -EHOSTUNREACH (gone), ... */
	uint32_t src;            /* of a receive: whose message it is; tag and data are its, too */
	uint64_t len;            /* bytes moved */
	uint64_t over;           /* bytes of the message that did not fit */
	struct msg_multi *whole; /* of a part */

	/* Private. */
	struct msg_recv recv;
	struct msg_ask ask;
	struct list_head link;   /* on a list of the endpoint */
	uint64_t room;           /* bytes in iov */
	uint8_t phase;           /* enum msg_phase */
	bool cancel;             /* wanted, when RTRs have been got back */
	uint64_t posted;         /* when; 0: nobody wants to know */
	uint32_t id;             /* by which the peer names it; 0: none */
	uint32_t peer_id;        /* and by which we name the peer's */
	uint32_t pending;        /* work requests under way */
	struct msg_strip *strip; /* NULL: it goes over one path */
	bool strip_it;           /* it is to be divided */
	bool told;               /* of a write: its data goes along with it */
	struct msg_share *share; /* of a receive: what has come over each path; NULL: nothing has */
	struct msg_hold hold[MSG_IOV];
	struct msg_tx *bounce; /* a read or a write: by way of it; NULL: straight */
	bool asked;            /* whether it could go straight: no */
};

/* A receive of many messages (MSG_OP_MULTI): iov[0] is filled with them, one behind the other,
 * until less than `least` bytes are left. `done` is called for each with an operation of the
 * engine's own (MSG_OP_PART; `whole` is this one, iov[0] is where the message lies), and with this
 * one when all of that is over. */
struct msg_multi {
	struct msg_op op;
	uint64_t least;
	/* Private. */
	uint64_t used;
	uint32_t parts; /* messages that are not done */
	bool filling;   /* with messages that were there before */
};

/* An operation on memory of a peer that other such operations do not interrupt. Done by the peer's
 * processor, when it makes progress: codes and types are whatever conf.atomic knows. */
struct msg_atomic {
	struct msg_op op; /* iov: the operand, if there is one; remote[0]: on what */
	uint8_t code, type;
	uint32_t count; /* elements */
	struct iovec compare[MSG_IOV], result[MSG_IOV];
	unsigned int n_compare, n_result;
};

/* What conf.atomic is to do: as many bytes at `target` as `len`, and likewise for the others; NULL
 * where there is none. What was there before goes to result. */
struct msg_atomic_job {
	uint8_t code, type;
	uint32_t count;
	uint64_t len;
	void *target, *result;
	const void *operand, *compare;
};

/* Whether short transfers go straight from the application's memory. The own device can use all of
 * it; where it has to be registered: */
enum msg_reusing {
	MSG_REUSE_AUTO, /* from buffers that are used often enough */
	MSG_REUSE_YES,  /* from all */
	MSG_REUSE_NO,
};

struct msg_ep_conf {
	struct stripe_conf stripe; /* of long messages; no policy: over one path */
	bool stripe_auto;          /* only where a single path is crowded */
	uint64_t stripe_min;       /* those of so many bytes and more */
	bool live;                 /* what their paths carry is shown (msg_live.h) */
	uint32_t eager_max;        /* longer messages go by rendezvous */
	uint32_t eager_far;  /* the same, over a network that is software; if more than eager_max */
	uint32_t rx_buffers; /* of that length */
	uint32_t depth;      /* work requests under way */
	bool wait;           /* somebody may want to sleep: msg_ep_fd */
	uint32_t connect_ms; /* RC: a peer that has not answered for so long is gone; 0: 10 s */
	uint64_t linger;     /* ns that closing waits, at most, until peers have what was sent */
	uint64_t alive; /* ns of waiting after which peers are asked if they are there; 0: never */
	bool write;     /* the sender writes long messages, rather than the receiver reads */
	bool speculate; /* receives of long messages are told to the sender in advance, ... */
	uint32_t usage; /* ... as long as so many percent of that is used; 0: always */
	enum msg_reusing reuse;
	uint32_t reuse_part; /* often enough: percent of what is worth registering; 0: 25 */
	void (*done)(void *arg, struct msg_op *op);
	/* 0 or -errno. Called with the lock held. NULL: there are no atomic operations. */
	int (*atomic)(const struct msg_atomic_job *job);
	/* A peer has written to our memory, and sent data with that. NULL: nobody cares. */
	void (*written)(void *arg, uint32_t src, uint64_t data, uint64_t len);
	void *arg;
};

/* What an endpoint has done, since it was opened. */
struct msg_stats {
	uint64_t eager, read, written, put; /* messages sent, by protocol */
	uint64_t received, unexpected;
	uint64_t bytes_sent, bytes_received;
	uint64_t rtr_sent, rtr_hit; /* and what became of them: the message was put */
	uint64_t rtr_came, rtr_used, rtr_dropped, rtr_stale;
	uint64_t stops, resumptions; /* of speculation, by envelope */
	uint64_t reads, writes, atomics;
	uint64_t cache_hits, cache_misses; /* of the device, whoever has used it */
	uint64_t packets, resent;          /* of RD over UDP */
	uint64_t late;                     /* packets that were copied when they were under way */
	/* Copies that were saved by memory that is registered, and their bytes; the table of
	 * buffers (msg_reuse.h), if there is one, and what it takes. */
	uint64_t direct, direct_bytes;
	enum msg_reuse_state reuse;
	uint32_t reuse_buffers, reuse_frequent;
	uint64_t reuse_bytes, reuse_stops, reuse_rests;
};

enum msg_transport {
	MSG_AUTO, /* RD if the device has it, else RC */
	MSG_RD,
	MSG_RC,
};

enum msg_caching {
	MSG_CACHE_AUTO, /* on if registering memory takes longer than looking it up */
	MSG_CACHE_ON,
	MSG_CACHE_OFF,
};

struct msg_dev_conf {
	const char *name; /* NULL: the first that can do it, Weft's own before others */
	enum msg_transport transport;
	enum msg_caching cache; /* of registrations */
	/* Local memory is registered piece by piece, even where one registration could cover all of
	 * it, as it has to be elsewhere. For tests, and to measure what that costs. */
	bool piecewise;
};

/* Where Weft's libibverbs.so.1 is, if it does not stand beside this code; before all else. */
void msg_verbs_at(const char *path);
/* 0 or -errno. */
int msg_dev_open_conf(const struct msg_dev_conf *conf, struct msg_dev **out);
/* A device by its name, or NULL; all else as it comes. */
int msg_dev_open(const char *name, struct msg_dev **out);
/* As verbs calls it; as long as it is open. */
const char *msg_dev_name(const struct msg_dev *dev);
/* What the addresses of its endpoints have in common: qpn and qkey are 0. */
struct msg_addr msg_dev_addr(const struct msg_dev *dev);
/* MSG_RD or MSG_RC. */
enum msg_transport msg_dev_transport(const struct msg_dev *dev);
/* Whether operations make progress while nobody calls. */
bool msg_dev_moves(const struct msg_dev *dev);
/* Whether all memory can be sent from, without registering it. */
bool msg_dev_takes_all(const struct msg_dev *dev);
void msg_dev_close(struct msg_dev *dev);

int msg_ep_open(struct msg_dev *dev, const struct msg_ep_conf *conf, struct msg_ep **out);
/* From now on: so that both can be measured on one endpoint. */
void msg_ep_reuse(struct msg_ep *ep, enum msg_reusing how);
/* Waits, conf.linger at most, until peers have acknowledged what was sent, and serves them
 * meanwhile. Nobody waits for peers that are gone. */
void msg_ep_linger(struct msg_ep *ep);
/* Lingers first. What is not done then is forgotten, not reported. */
void msg_ep_close(struct msg_ep *ep);
struct msg_addr msg_ep_addr(const struct msg_ep *ep);
/* The peer of this address, made if need be. 0 or -errno: -EINVAL if the transport can not reach
 * such a one. */
int msg_ep_peer(struct msg_ep *ep, const struct msg_addr *addr, uint32_t *peer);
struct msg_addr msg_peer_addr(struct msg_ep *ep, uint32_t peer);

/* 0: `done` will be, or has been, called. -EAGAIN: not now, try again after some progress. Other
 * errors: the operation was refused. */
int msg_send(struct msg_ep *ep, struct msg_op *op);
int msg_post_recv(struct msg_ep *ep, struct msg_op *op);
int msg_rma(struct msg_ep *ep, struct msg_op *op);
/* At most msg_atomic_max(ep) bytes of operand and compare together, and as many of result. */
int msg_atomic(struct msg_ep *ep, struct msg_atomic *a);
size_t msg_atomic_max(const struct msg_ep *ep);
/* Whether a message is there that this receive would get: 0, and what it is in src, tag, data, len,
 * flags; else -ENOMSG. With `claimed`, it is kept for msg_recv_claimed. To throw it away, receive
 * it into nothing: n_iov is 0. */
int msg_peek(struct msg_ep *ep, struct msg_op *op, struct msg_early **claimed);
int msg_recv_claimed(struct msg_ep *ep, struct msg_op *op, struct msg_early *claimed);
/* 0: it will be done, cancelled or not. -ENOENT: it is too late. */
int msg_cancel(struct msg_ep *ep, struct msg_op *op);

/* Handles what has come; returns how much that was. */
int msg_progress(struct msg_ep *ep);
/* A descriptor that becomes readable when there is something, if it was armed before; msg_ep_arm
 * returns false if there is something already. -1: conf.wait was not set. */
int msg_ep_fd(const struct msg_ep *ep);
bool msg_ep_arm(struct msg_ep *ep);
/* Somebody has slept, and nothing came: peers of whom something is awaited may be asked whether
 * they are there. */
void msg_slept(struct msg_ep *ep);
/* Whether the progress thread of the device, if it has one, makes progress for the endpoint while
 * nobody else does. It does not, to begin with, nor once the call that ends it has returned. */
void msg_ep_serve(struct msg_ep *ep, bool on);

void msg_ep_stats(struct msg_ep *ep, struct msg_stats *out);

/* The paths to a peer, where messages were divided. */
struct msg_path_stats {
	uint32_t ip; /* of the peer, in network order */
	uint32_t paths;
	double weight[STRIPE_PATHS_MAX]; /* as the policy has it: shares, or bytes per ns */
	uint64_t bytes[STRIPE_PATHS_MAX];
	uint64_t busy[STRIPE_PATHS_MAX]; /* ns in which something was under way */
	uint32_t to[STRIPE_PATHS_MAX];   /* its address, by path; 0: of no interest */
	uint32_t addresses; /* so many paths have some of their own, the others share them */
	uint64_t before; /* bytes over the paths that were there before more addresses were known */
};

/* Of the first such peer from *peer on, which then is the next one's number. False: there is no
 * further one. */
bool msg_ep_paths(struct msg_ep *ep, uint32_t *peer, struct msg_path_stats *out);

/* Memory that peers may use by its key. 0 or -errno. */
int msg_reg(struct msg_dev *dev, void *addr, size_t len, bool write, struct msg_mem **mem,
	    uint32_t *key);
void msg_dereg(struct msg_mem *mem);

#endif
