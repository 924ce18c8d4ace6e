/* Long messages over several paths: the communication scheduler and the completion filter of the
 * paper on hot-spot avoidance. Which path takes what is up to a policy (src/stripe), which is asked
 * for pieces when there is something to send, and told when they have arrived.
 *
 * A path is a pair of addresses, which are known to be others (msg_where.h), and a flow label:
 * datagrams of another source port, which switches that hash flows may send another way, or may
 * not. All of them belong to one RD queue pair, which keeps the order of messages to a peer
 * whatever path they take, so what ends a message (a write with immediate, or DONE) can go over any
 * of them; and which sends what is on a path that has fallen silent over another one.
 */
#ifndef WEFT_MSG_STRIPE_H
#define WEFT_MSG_STRIPE_H

#include <infiniband/verbs.h>
#include "stripe.h"
#include "stripe_auto.h"
#include "util_list.h"
#include "msg_use.h"

struct msg_ep;
struct msg_op;

/* The paths to one peer. */
struct msg_paths {
	struct stripe_conf conf; /* the endpoint's, for as many paths as there are */
	struct stripe_peer state;
	void *way[STRIPE_PATHS_MAX]; /* what the port's post() wants */
	struct msg_use use;
	uint64_t watched;                      /* when the port was last asked for silent ways */
	uint64_t down_until[STRIPE_PATHS_MAX]; /* those are not used; then they are tried again */
	uint64_t down_for[STRIPE_PATHS_MAX];
	uint32_t ip[STRIPE_PATHS_MAX]; /* the peer's address of each, in network order */
	/* So many of them, the first, have addresses of their own. */
	uint32_t addresses;
	uint64_t before; /* bytes that have arrived over paths that these took the place of */
	uint32_t users;  /* messages under way */
	bool old;        /* to be freed with the last of them */
};

/* Known to be distinct; else some may be hashed onto the same way. */
static inline bool msg_paths_distinct(const struct msg_paths *p)
{
	return p->addresses == p->conf.paths;
}

/* A message under way. */
struct msg_strip {
	struct list_head link; /* on ep->strips */
	struct list_head turn; /* on ep->turns, or alone */
	struct msg_op *op;
	bool called; /* it is its turn */
	struct stripe_msg msg;
	struct msg_paths *paths; /* that it takes to its end */
	struct msg_part *part;   /* that was begun and is not all posted; NULL: none is */
	uint64_t left;           /* of it */
};

/* A piece of a message, of one work request or, where memory ends between, several. */
struct msg_part {
	struct msg_part *next; /* free */
	struct msg_part *all;  /* the next of all */
	struct msg_op *op;
	struct stripe_piece piece;
	uint64_t began;
	uint32_t posted; /* work requests under way */
};

/* Whether a message, or an operation, of so many bytes is to be divided. To be asked once of each.
 */
bool msg_stripe_asks(struct msg_ep *ep, uint32_t peer, uint64_t len);
/* An operation begins that was asked about; all of it has arrived. */
void msg_stripe_begun(struct msg_ep *ep, struct msg_op *op);
void msg_stripe_arrived(struct msg_ep *ep, const struct msg_op *op);
/* Whether messages of so many bytes are rather read than written, both ways. */
bool msg_stripe_reads(const struct msg_ep *ep, uint32_t peer, uint64_t len);
/* Whether what is left of an operation goes that way; it then has op->strip. */
bool msg_stripe_wanted(struct msg_ep *ep, struct msg_op *op);
/* Posts what may be under way now. 0; -EAGAIN or -ENOBUFS: no room. */
int msg_stripe_post(struct msg_ep *ep, struct msg_op *op);
/* A work request of this part is done. */
void msg_stripe_done(struct msg_ep *ep, struct msg_part *part, int err);
/* More is to be posted when its turn comes. */
bool msg_stripe_waits(const struct msg_op *op);
void msg_stripe_end(struct msg_ep *ep, struct msg_op *op);

void msg_paths_free(struct msg_ep *ep, struct msg_paths *paths);
/* Also what is under way when the endpoint closes. */
void msg_strips_free(struct msg_ep *ep);

#endif
