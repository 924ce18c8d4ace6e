/* What endpoints send to each other: little-endian, at the front of a Send. Decoders accept any
 * bytes; what does not make sense is -EPROTO.
 *
 *	 0  type            1  flags           2  segments (2)
 *	 4  IPv4 address of the sender's device, network order: with the queue pair number that the
 *	    device reports it names the endpoint
 *	 8  tag            16  CQ data (4)
 *	20  Q_Key of the sender (4); between connected peers the number of the packet instead
 *	24  length of the message
 *	32  EAGER: the message. Others: body
 *
 * Body of RTS, PUT and CTS: two ids (4 each), then for each segment address (8), key (4), length
 * (4). The ids are: of the send, and in a PUT that of the RTR; in a CTS, of the send and of the
 * receive. Of RTR: id, key (4 each), mask, address (8 each), seen, ahead (4 each); tag and length
 * are the header's. Of ATOMIC: id (4), code (1), type (1), flags (2), count, key (4 each), address
 * (8); then operand and second operand, of the same length. Of all others: two ids; HERE has IPv4
 * addresses behind them, network order, and their length is the header's.
 *
 * Connected peers may have several connections. Their packets are numbered, and handled in that
 * order whichever way they have come (msg_order.h); but FIN, which belongs to what was written over
 * the same connection before it, has no number.
 */
#ifndef WEFT_MSG_WIRE_H
#define WEFT_MSG_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include "msg.h"
#include "msg_way.h"

#define MSG_HDR      32
#define MSG_SEGS     8 /* pieces of memory that one rendezvous names */
#define MSG_SEG_LEN  16
#define MSG_ADDRS    16 /* addresses that a HERE tells */
#define MSG_WIRE_MAX (MSG_HDR + 8 + MSG_SEGS * MSG_SEG_LEN)

enum msg_type {
	/* Messages: these are numbered by their order. */
	MSG_EAGER = 1,
	MSG_RTS, /* the receiver is to read it, or, without segments, to send a CTS */
	MSG_PUT, /* it is being written, as an RTR has allowed */
	/* About them. */
	MSG_CTS,      /* write it there */
	MSG_DONE,     /* id: the send that was read */
	MSG_RTR,      /* id: the receive */
	MSG_WITHDRAW, /* id: the RTR that is asked back */
	MSG_ANSWER,   /* id: of a WITHDRAW */
	MSG_WROTE,    /* with data: of a write before it */
	/* Executed by the other side's processor. */
	MSG_ATOMIC,
	MSG_ATOMIC_RSP, /* id: of the operation; id2: errno; what was there before */
	/* About ways. Who does not know these, or does not answer, is reached by its one address.
	 */
	MSG_WHERE, /* id: a number; by which further addresses is the endpoint reached? */
	MSG_HERE,  /* id: of the WHERE; 1 to MSG_ADDRS addresses */
	/* Of messages that are written over several connections (msg_finish.c). */
	MSG_FINISH, /* id: of the receive; length: so much of it has come this way */
	MSG_LOST,   /* id: of the receive, or 0; id2: of the send. tag: the path that has failed,
		     * data: the number of its queue pair */
	MSG_AGAIN,  /* id: of the send; tag: the path; id2: 1 if nothing is missing any more */
	MSG_TYPE_LAST = MSG_AGAIN,
};

enum msg_flag {
	MSG_F_TAGGED = 1,
	MSG_F_DATA = 2,    /* the header's data is the application's */
	MSG_F_OPERAND = 4, /* an atomic operation has one; ... */
	MSG_F_COMPARE = 8, /* ... has a second one; ... */
	MSG_F_RESULT = 16, /* ... is asked for what was there before */
	MSG_F_STRIPE = 32, /* of an RTS: the way is crowded, or who sends it wants it divided */
};

struct msg_seg {
	uint64_t addr;
	uint32_t key, len;
};

struct msg_pkt {
	uint8_t type, flags;
	uint32_t ip; /* network order */
	union {
		uint32_t qkey;
		uint32_t seq; /* between connected peers */
	};
	uint32_t data;
	uint64_t tag, len;
	uint32_t id, id2; /* id2: of the RTR, in a PUT */
	/* RTS, PUT, CTS, and one of them in RTR and ATOMIC: where the data is, or goes */
	struct msg_seg seg[MSG_SEGS];
	unsigned int n_seg;
	uint64_t ignore;
	uint32_t seen, ahead;
	uint8_t code, kind; /* of an atomic operation */
	uint32_t count;
};

/* What endpoints that want to be connected tell each other in datagrams (msg_rc.h):
 *
 *	 0  magic          4  type, path MTU, reads served at once, path
 *	 8  queue pair, first PSN, queue pair that it is connected to or 0 (4 each)
 *	20  address: GID (16), queue pair, Q_Key (4 each), LID (2), 0 (2)
 *	48  token (4): the same in all of one endpoint to another, known to these two only
 *	52  how often this path has been connected before (2), LMC (1), 0 (1)
 *	56  where the queue pair is: GID (16), LID (2), 0 (2)
 */
#define MSG_HELLO_LEN 76

enum msg_hello_type { MSG_HELLO_CALL = 1, MSG_HELLO_ANSWER };

struct msg_hello {
	uint8_t type, mtu, reads;
	uint8_t path; /* below STRIPE_PATHS_MAX */
	uint32_t qpn, psn, other;
	struct msg_addr from;
	uint32_t token;
	uint16_t epoch;
	struct msg_place at;
};

void msg_hello_encode(const struct msg_hello *h, uint8_t *buf);
/* 0 or -EPROTO. */
int msg_hello_decode(struct msg_hello *h, const uint8_t *buf, size_t len);

/* Returns the length, at most MSG_WIRE_MAX; without the message of EAGER. */
size_t msg_wire_encode(const struct msg_pkt *p, uint8_t *buf);
/* *body: where the message of EAGER, the body of an ATOMIC or the list of a HERE begins. 0 or
 * -EPROTO. */
int msg_wire_decode(struct msg_pkt *p, const uint8_t *buf, size_t len, size_t *body);
/* The number of an encoded packet. */
uint32_t msg_wire_seq(const uint8_t *buf);

#endif
