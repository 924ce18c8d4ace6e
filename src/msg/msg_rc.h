/* Connected peers: a queue pair each (msg_port_rc.c), and how they get connected (msg_call.c).
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
 */
#ifndef WEFT_MSG_RC_H
#define WEFT_MSG_RC_H

#include "msg_ep.h"

#define MSG_RC_BUCKETS 1024
#define MSG_RC_DGRAMS  128 /* to be received, and as many to be sent */

struct msg_conn {
	struct msg_conn *chain; /* the next with the same hash */
	struct list_head link;  /* of those that are calling; else alone */
	struct ibv_qp *qp;
	uint32_t peer;
	uint32_t psn;
	uint32_t other;            /* the queue pair that ours is connected to; 0: not yet */
	bool up;                   /* it is known that the other is connected, too */
	uint64_t next, pause, end; /* the next call, and when to give up */
};

struct msg_rc {
	struct ibv_srq *srq;
	uint32_t left; /* work requests that may be posted: for more there is no room in ep->cq */
	struct msg_conn *by_qpn[MSG_RC_BUCKETS];

	struct list_head calling;
	int timer; /* wakes whoever sleeps while there are calls; -1: nobody does */
	uint8_t *dgram;
	struct ibv_mr *dgram_mr;
	uint32_t sent, gone; /* datagrams */
};

/* ---- msg_port_rc.c ---- */
/* Made if need be. NULL and errno: it can not be. */
struct msg_conn *msg_conn_get(struct msg_ep *ep, uint32_t peer);
/* 0 or -errno. */
int msg_conn_connect(struct msg_ep *ep, struct msg_conn *c, const struct msg_hello *h);

/* ---- msg_call.c ---- */
int msg_call_open(struct msg_ep *ep);
void msg_call_close(struct msg_ep *ep);
/* Unless it is being called already. */
void msg_call(struct msg_ep *ep, struct msg_conn *c);
/* The other one is known to be connected. */
void msg_call_up(struct msg_ep *ep, struct msg_conn *c);
/* A completion of ep->qp. */
void msg_call_completed(struct msg_ep *ep, const struct ibv_wc *wc);
int msg_call_tick(struct msg_ep *ep, uint64_t now);

#endif
