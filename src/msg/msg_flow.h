/* Packets to and from a connected peer: numbered, and each handled once, whichever connections they
 * have taken (msg_order.h).
 *
 * As long as there is one connection, they go and are forgotten. Where there are several, each is
 * kept until it is known to have arrived, and goes again over another one if its own has failed;
 * should it have arrived nevertheless, its number tells. The policy roundrobin has messages that
 * are sent eagerly take the next connection each, all else takes the first that there is. */
#ifndef WEFT_MSG_FLOW_H
#define WEFT_MSG_FLOW_H

#include <stdbool.h>
#include <stdint.h>
#include "util_list.h"
#include "msg_order.h"

struct ibv_sge;
struct msg_ep;
struct msg_op;
struct msg_tx;

struct msg_flow {
	uint32_t seq;           /* of the next packet */
	struct list_head kept;  /* packets that may not have arrived, by number */
	struct msg_order order; /* of those that come */
	uint32_t turn;          /* of roundrobin: the next path */
	uint32_t token, theirs; /* of datagrams (msg_rc.h); theirs, if it is known */
	bool known;
};

/* NULL: no memory. */
struct msg_flow *msg_flow_new(void);
void msg_flow_free(struct msg_flow *f);

/* Whether packets to a peer are kept. */
bool msg_flow_keeps(const struct msg_ep *ep, uint32_t peer);
/* The bytes of a packet, as msg_tx_send() has made them. 0, -EAGAIN, -ENOBUFS or another error. */
int msg_flow_send(struct msg_ep *ep, uint32_t peer, const struct ibv_sge *buf, int n,
		  struct msg_op *report);
/* One has arrived, or not. False: it is not known, and goes again. */
bool msg_flow_sent(struct msg_ep *ep, struct msg_tx *tx, int err);
/* Sends those again that have to. */
void msg_flow_flush(struct msg_ep *ep);

#endif
