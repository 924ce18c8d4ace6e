/* Connected peers: a queue pair for each path to one (msg_conn.c), what they carry (msg_port_rc.c),
 * and how they get connected (msg_call.c).
 *
 * An endpoint *calls* a peer to which it has something to send: it makes an RC queue pair, and
 * tells its number to the UD queue pair that the peer's address names. The peer makes one, too,
 * connects it to ours, and answers with its number; then we connect ours to it. Each datagram says
 * which queue pair of the other side its sender is connected to. Who is named in one knows that
 * whatever it sends now will be received, and sends; so does who receives a message. Should both
 * call at once, each takes the other's call for an answer: there is one connection, always.
 *
 * Datagrams get lost: calls are repeated, answers only in answer to calls. They are believed if
 * they come from the queue pair in the address that they name (who knows our Q_Key has had our
 * address), and never change what was once connected. So repeated, late and forged ones do
 * nothing. The address of an endpoint has a random Q_Key, which tells it from the next one that
 * gets the same numbers.
 *
 * The first queue pair is path 0. The others are connected when the first long message is to be
 * divided among several paths (msg_stripe.c), in the same way; their datagrams say which path it
 * is. One that fails is taken out of service on both sides, and after a pause a new one is made in
 * its place, a limited number of times. Datagrams say how often that has been so: the later one is
 * right. That they may have a say in this at all, they have to know the token of the first one.
 * Packets that nobody knows to have arrived go over another queue pair then (msg_flow.c), and so do
 * reads and writes (msg_stripe.c); a peer is gone when none is left.
 */
#ifndef WEFT_MSG_RC_H
#define WEFT_MSG_RC_H

#include "msg_ep.h"

#define MSG_RC_BUCKETS 1024
#define MSG_RC_DGRAMS  128 /* to be received, and as many to be sent */

struct msg_conn {
	struct msg_conn *chain; /* the next with the same hash */
	struct msg_conn *also;  /* the next to the same peer */
	struct list_head link;  /* of those that are calling, or broken; else alone */
	struct ibv_qp *qp;
	uint32_t peer;
	uint8_t path;
	uint16_t epoch; /* so many were there before it */
	uint32_t psn;
	uint32_t other;            /* the queue pair that ours is connected to; 0: not yet */
	bool up;                   /* it is known that the other is connected, too */
	bool broken;               /* it has failed: nothing is posted any more */
	uint32_t posted;           /* work requests under way */
	uint32_t tries;            /* since it has last been well for long */
	uint64_t since;            /* when it came up */
	uint64_t next, pause, end; /* the next call, and when to give up; broken: the next try */
};

struct msg_rc {
	struct ibv_srq *srq;
	uint32_t left; /* work requests that may be posted: for more there is no room in ep->cq */
	struct msg_conn *by_qpn[MSG_RC_BUCKETS];

	struct list_head calling, broken;
	int timer; /* wakes whoever sleeps while there are such; -1: nobody does */
	uint8_t *dgram;
	struct ibv_mr *dgram_mr;
	uint32_t sent, gone; /* datagrams */
};

/* ---- msg_conn.c ---- */
/* How much goes inline, in ep->max_inline. 0 or -errno. */
int msg_conn_probe(struct msg_ep *ep);
struct msg_conn *msg_conn_find(const struct msg_ep *ep, uint32_t qpn);
/* Made if need be. NULL and errno: it can not be. */
struct msg_conn *msg_conn_get(struct msg_ep *ep, uint32_t peer, uint32_t path);
/* The first over which packets can go; NULL: there is none. */
struct msg_conn *msg_conn_ready(const struct msg_ep *ep, uint32_t peer);
/* 0 or -errno. */
int msg_conn_connect(struct msg_ep *ep, struct msg_conn *c, const struct msg_hello *h);
/* It is of no use any more: nothing comes over it from now on, what is under way fails. */
void msg_conn_failed(struct msg_ep *ep, struct msg_conn *c);
/* The peer has made a new one, its queue pair of this epoch. */
void msg_conn_outdated(struct msg_ep *ep, struct msg_conn *c, uint16_t epoch);
/* Makes those new whose time has come. */
void msg_conn_tick(struct msg_ep *ep, uint64_t now);
void msg_conn_close(struct msg_ep *ep, uint32_t peer);

/* ---- msg_call.c ---- */
int msg_call_open(struct msg_ep *ep);
void msg_call_close(struct msg_ep *ep);
/* Unless it is being called already. */
void msg_call(struct msg_ep *ep, struct msg_conn *c);
void msg_call_stop(struct msg_ep *ep, struct msg_conn *c);
/* There may be something to wait for, or nothing any more. */
void msg_call_timer(struct msg_rc *rc);
/* The other one is known to be connected. */
void msg_call_up(struct msg_ep *ep, struct msg_conn *c);
/* A completion of ep->qp. */
void msg_call_completed(struct msg_ep *ep, const struct ibv_wc *wc);
int msg_call_tick(struct msg_ep *ep, uint64_t now);

#endif
