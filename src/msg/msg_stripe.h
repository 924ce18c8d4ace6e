/* Long messages over several paths: the communication scheduler and the completion filter of the
 * paper on hot-spot avoidance. Which path takes what is up to a policy (src/stripe), which is asked
 * for pieces when there is something to send, and told when they have arrived.
 *
 * With RD, a path is a flow label: datagrams of another source port, which switches that hash flows
 * send another way. All of them belong to one queue pair, which keeps the order of messages to a
 * peer whatever path they take, so what ends a message (a write with immediate, or DONE) can go
 * over any of them; and which sends what is on a path that has fallen silent over another one.
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
#include "util_list.h"

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
	struct msg_plan whole;            /* of what is short, where paths are connections */
	void *way[STRIPE_PATHS_MAX];      /* what the port's post() wants */
	uint64_t bytes[STRIPE_PATHS_MAX]; /* that have arrived */
	uint32_t doubt[STRIPE_PATHS_MAX]; /* messages that have lost something on it */
};

/* A message under way. */
struct msg_strip {
	struct list_head link; /* on ep->strips */
	struct stripe_msg msg;
	struct msg_part *part; /* that was begun and is not all posted; NULL: none is */
	uint64_t left;         /* of it */
	bool whole;            /* it is short */
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

/* ---- msg_stripe.c ---- */
/* Whether what is left of an operation goes that way; it then has op->strip. 0; -EAGAIN: not yet.
 */
int msg_stripe_wanted(struct msg_ep *ep, struct msg_op *op);
/* Whether it ends with finishes. */
bool msg_stripe_fins(const struct msg_ep *ep, const struct msg_op *op);
/* Posts what may be under way now. 0; -EAGAIN or -ENOBUFS: no room. */
int msg_stripe_post(struct msg_ep *ep, struct msg_op *op);
/* A work request of this part is done. */
void msg_stripe_done(struct msg_ep *ep, struct msg_part *part, int err);
/* Nothing of it is left to be done. */
bool msg_stripe_over(const struct msg_ep *ep, const struct msg_op *op);
void msg_stripe_end(struct msg_ep *ep, struct msg_op *op);

/* What the policy of a message knows. */
struct stripe_conf *msg_stripe_conf(struct msg_paths *paths, const struct msg_strip *s);
struct stripe_peer *msg_stripe_state(struct msg_paths *paths, const struct msg_strip *s);
struct msg_paths *msg_paths_of(struct msg_ep *ep, const struct msg_op *op);
void msg_part_free(struct msg_ep *ep, struct msg_part *part);
void msg_paths_free(struct msg_ep *ep, struct msg_paths *paths);
/* Also what is under way when the endpoint closes. */
void msg_strips_free(struct msg_ep *ep);

/* ---- msg_lost.c: connections that fail ---- */
/* One is connected, has failed; if it is a path of anybody's. */
void msg_path_up(struct msg_ep *ep, uint32_t peer, uint32_t path);
void msg_path_down(struct msg_ep *ep, uint32_t peer, uint32_t path);
/* Messages have yet to find out what has come over it before it failed. */
bool msg_path_in_doubt(const struct msg_ep *ep, uint32_t peer, uint32_t path);
/* A message has lost something on a path. */
void msg_stripe_lose(struct msg_ep *ep, struct msg_op *op, uint32_t path);
void msg_stripe_hold(struct msg_strip *s, struct msg_part *part);
/* When nothing of it is under way on paths that have failed, goes on from there. 0 or -errno. */
int msg_stripe_recover(struct msg_ep *ep, struct msg_op *op);
/* An AGAIN. */
void msg_stripe_again(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);
/* It waits for one, and for nothing else. */
bool msg_stripe_waits(const struct msg_op *op);
/* It ends, whatever it waits for. */
void msg_stripe_forget(struct msg_ep *ep, struct msg_op *op);

#endif
