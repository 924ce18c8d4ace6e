/* Messages between endpoints: what a libfabric provider, or any other library for messages, stands
 * on.
 *
 * An *endpoint* is one queue pair that reaches every other endpoint (RD, <weft/weftdv.h>), with
 * receive buffers of its own, and the two queues of tag matching. A *peer* is another endpoint,
 * known by its address and numbered from 0 on. An *operation* is the caller's memory until it is
 * done: a send, a receive, a read or a write of the peer's memory.
 *
 * Short messages are sent *eagerly*, into the buffers of the other endpoint, and copied from there.
 * Longer ones are announced, and moved straight between the buffers of the two applications by
 * RDMA: for now the receiver reads them (msg_rndv.c).
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
#include "util_list.h"
#include "msg_match.h"
#include "msg_spec.h"

#define MSG_IOV 4

struct msg_dev;
struct msg_ep;

/* The name of an endpoint. */
struct msg_addr {
	uint32_t ip; /* IPv4, network order */
	uint32_t qpn, qkey;
};

enum msg_op_kind { MSG_OP_SEND, MSG_OP_RECV, MSG_OP_READ, MSG_OP_WRITE };

enum msg_op_flag {
	MSG_OP_TAGGED = 1,
	MSG_OP_DATA = 2,    /* data goes along with a send; came along with what was received */
	MSG_OP_INJECT = 4,  /* the buffer is the caller's again when the call returns */
	MSG_OP_DELIVER = 8, /* a send is done when the message is in the receiver's buffer */
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
	uint32_t src;  /* of a receive: whose message it is; tag and data are its, too */
	uint64_t len;  /* bytes moved */
	uint64_t over; /* bytes of the message that did not fit */

	/* Private. */
	struct msg_recv recv;
	struct msg_ask ask;
	struct list_head link; /* on a list of the endpoint */
	uint64_t room;         /* bytes in iov */
	uint32_t id;           /* by which the peer names it; 0: none */
	uint32_t peer_id;      /* and by which we name the peer's */
	uint32_t pending;      /* work requests under way */
	unsigned int next;     /* of the remote pieces, the next to be read or written ... */
	uint64_t off;          /* ... and how much of it has been */
	void *mr[MSG_IOV];
};

struct msg_ep_conf {
	uint32_t eager_max;  /* longer messages go by rendezvous */
	uint32_t rx_buffers; /* of that length */
	uint32_t depth;      /* work requests under way */
	bool wait;           /* somebody may want to sleep: msg_ep_fd */
	void (*done)(void *arg, struct msg_op *op);
	void *arg;
};

/* A device by its name, NULL: the first that can do it. 0 or -errno. */
int msg_dev_open(const char *name, struct msg_dev **out);
void msg_dev_close(struct msg_dev *dev);

int msg_ep_open(struct msg_dev *dev, const struct msg_ep_conf *conf, struct msg_ep **out);
/* What is not done yet is forgotten, not reported. */
void msg_ep_close(struct msg_ep *ep);
struct msg_addr msg_ep_addr(const struct msg_ep *ep);
/* The peer of this address, made if need be. 0 or -errno. */
int msg_ep_peer(struct msg_ep *ep, const struct msg_addr *addr, uint32_t *peer);
struct msg_addr msg_peer_addr(struct msg_ep *ep, uint32_t peer);

/* 0: `done` will be, or has been, called. -EAGAIN: not now, try again after some progress. Other
 * errors: the operation was refused. */
int msg_send(struct msg_ep *ep, struct msg_op *op);
int msg_post_recv(struct msg_ep *ep, struct msg_op *op);
int msg_rma(struct msg_ep *ep, struct msg_op *op);
/* 0: it will be done, cancelled or not. -ENOENT: it is too late. */
int msg_cancel(struct msg_ep *ep, struct msg_op *op);

/* Handles what has come; returns how much that was. */
int msg_progress(struct msg_ep *ep);
/* A descriptor that becomes readable when there is something, if it was armed before; msg_ep_arm
 * returns false if there is something already. -1: conf.wait was not set. */
int msg_ep_fd(const struct msg_ep *ep);
bool msg_ep_arm(struct msg_ep *ep);

/* Memory that peers may use by its key. 0 or -errno. */
int msg_reg(struct msg_dev *dev, void *addr, size_t len, bool write, void **mr, uint32_t *key);
void msg_dereg(void *mr);

#endif
