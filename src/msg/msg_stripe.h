/* Long messages over several paths: the communication scheduler and the completion filter of the
 * paper on hot-spot avoidance. Which path takes what is up to a policy (src/stripe), which is asked
 * for pieces when there is something to send, and told when they have arrived.
 *
 * With RD, a path is a pair of addresses, which are known to be others (msg_where.h), and a flow
 * label: datagrams of another source port, which switches that hash flows may send another way, or
 * may not. All of them belong to one queue pair, which keeps the order of messages to a peer
 * whatever path they take, so what ends a message (a write with immediate, or DONE) can go over any
 * of them; and which sends what is on a path that has fallen silent over another one.
 *
 * With RC, a path is a connection of its own (msg_rc.h). What is written ends with a FIN on each
 * path that has carried some of it (msg_finish.c). What a connection that fails has not carried
 * goes over others, the sooner the better: reads at once, writes when the receiver has said that
 * nothing more will come of the old ones (msg_lost.c). Once there are several connections, short
 * messages take part in this: each goes whole over the first path that there is.
 */
#ifndef WEFT_MSG_STRIPE_H
#define WEFT_MSG_STRIPE_H

#include <infiniband/verbs.h>
#include "stripe.h"
#include "stripe_auto.h"
#include "util_list.h"
#include "msg_silent.h"
#include "msg_use.h"

struct msg_ep;
struct msg_op;
struct msg_pkt;

/* What a policy has to say of the paths to one peer. */
struct msg_plan {
	struct stripe_conf conf;
	struct stripe_peer state;
};

/* The paths to one peer. */
struct msg_paths {
	struct stripe_conf conf; /* the endpoint's, for as many paths as there are */
	struct stripe_peer state;
	struct msg_plan whole;       /* of what is short, where paths are connections */
	void *way[STRIPE_PATHS_MAX]; /* what the port's post() wants */
	struct msg_use use;
	uint64_t watched;                         /* when the port was last asked for silent ways */
	uint32_t silent;                          /* those, as bits */
	struct msg_silent rest[STRIPE_PATHS_MAX]; /* and when they are tried again */
	uint32_t ip[STRIPE_PATHS_MAX]; /* RD: the peer's address of each, in network order */
	/* So many of them, the first, have addresses of their own. */
	uint32_t addresses;
	uint64_t before; /* bytes that have arrived over paths that these took the place of */
	uint32_t users;  /* messages under way */
	bool old;        /* to be freed with the last of them */
	uint32_t doubt[STRIPE_PATHS_MAX]; /* messages that have lost something on it */
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
	bool whole;              /* it is short */
	/* Where paths are connections. Bytes on each that no finish has told of; that have arrived;
	 * and work requests under way. */
	uint64_t due[STRIPE_PATHS_MAX], there[STRIPE_PATHS_MAX];
	uint32_t posted[STRIPE_PATHS_MAX];
	struct msg_part *held; /* that have failed, until they may go again */
	uint32_t lost, asked; /* paths that have failed; of which the receiver was asked; as bits */
	bool here;            /* it says that it has everything */
};

/* A piece of a message, of one work request or, where memory ends between, several; or a finish,
 * of a piece without bytes. */
struct msg_part {
	struct msg_part *next; /* free, or held */
	struct msg_part *all;  /* the next of all */
	struct msg_op *op;
	struct stripe_piece piece;
	uint64_t began;
	uint32_t posted; /* work requests under way */
	bool failed;
};

/* ---- msg_paths.c ---- */
/* Makes those to a peer, if there are none, or better ones. 0; -EAGAIN: not yet; -EOPNOTSUPP: there
 * is one; or another error. */
int msg_paths_now(struct msg_ep *ep, uint32_t peer);
/* A message that has taken them is over. */
/* From time to time: silent ways are not used for a while. */
void msg_paths_watch(struct msg_ep *ep, uint32_t peer, struct msg_paths *paths, uint64_t now);
void msg_paths_leave(struct msg_ep *ep, struct msg_paths *paths);
void msg_paths_free(struct msg_ep *ep, struct msg_paths *paths);

/* ---- msg_stripe.c ---- */
/* An operation begins: whether it is to be divided, in op->strip_it. Once for each. */
void msg_stripe_ask(struct msg_ep *ep, struct msg_op *op);
/* It does not, after all; all of it has arrived. */
void msg_stripe_refused(struct msg_ep *ep, struct msg_op *op);
void msg_stripe_arrived(struct msg_ep *ep, const struct msg_op *op);
/* Whether messages of so many bytes are rather read than written, both ways. */
bool msg_stripe_reads(const struct msg_ep *ep, uint32_t peer, uint64_t len);
/* Whether what is left of an operation goes that way; it then has op->strip. 0; -EAGAIN: not yet.
 */
int msg_stripe_wanted(struct msg_ep *ep, struct msg_op *op);
/* Whether it ends with finishes. */
bool msg_stripe_fins(const struct msg_ep *ep, const struct msg_op *op);
/* Posts what may be under way now. 0; -EAGAIN or -ENOBUFS: no room. */
int msg_stripe_post(struct msg_ep *ep, struct msg_op *op);
/* A work request of this part is done. */
void msg_stripe_done(struct msg_ep *ep, struct msg_part *part, int err);
/* Who waits first for its turn may post a piece, and more if nobody else waits. */
void msg_stripe_call(struct msg_ep *ep);
/* Nothing of it is left to be done. */
bool msg_stripe_over(const struct msg_ep *ep, const struct msg_op *op);
void msg_stripe_end(struct msg_ep *ep, struct msg_op *op);

/* What the policy of a message knows. */
struct stripe_conf *msg_stripe_conf(const struct msg_strip *s);
struct stripe_peer *msg_stripe_state(const struct msg_strip *s);
/* A piece is no longer under way: so much of it has arrived, or (0 bytes) it will not. */
void msg_part_ended(struct msg_ep *ep, struct msg_strip *s, const struct msg_part *part,
		    uint64_t bytes, uint64_t now);
void msg_part_free(struct msg_ep *ep, struct msg_part *part);
/* Also what is under way when the endpoint closes. */
void msg_strips_free(struct msg_ep *ep);

/* ---- msg_lost.c: connections that fail ---- */
/* One is connected, has failed; if it is a path of anybody's. */
void msg_path_up(struct msg_ep *ep, uint32_t peer, uint32_t path);
void msg_path_down(struct msg_ep *ep, uint32_t peer, uint32_t path);
/* Messages have yet to find out what has come over it before it failed. */
bool msg_path_in_doubt(const struct msg_ep *ep, uint32_t peer, uint32_t path);
/* A message has lost something on a path, and the part of it that is not all posted, if that is
 * there. */
void msg_stripe_lose(struct msg_ep *ep, struct msg_op *op, uint32_t path);
/* Nothing of a piece that has failed is under way any more. */
void msg_stripe_hold(struct msg_ep *ep, struct msg_part *part);
/* When nothing of it is under way on paths that have failed, goes on from there. 0 or -errno. */
int msg_stripe_recover(struct msg_ep *ep, struct msg_op *op);
/* An AGAIN. */
void msg_stripe_again(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);
/* It waits for one, and for nothing else. */
bool msg_stripe_waits(const struct msg_op *op);
/* It ends, whatever it waits for. */
void msg_stripe_forget(struct msg_ep *ep, struct msg_op *op);

#endif
