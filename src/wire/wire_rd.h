/* RD on the wire: reliable datagrams on UDP, spoken only between two Weft devices.
 * docs/rd.md draws every byte; this file is what it is drawn from.
 *
 * Two queue pairs that talk to each other are a *pair*. Each of them has given the other
 * a number, the *id*, which must be in every packet; it is random, so a packet that has it
 * was sent by somebody who was told, and a packet of an earlier life does not have it.
 *
 * A pair has two *lanes* in each direction, each with packet sequence numbers of its own:
 * requests (lane 0) and responses (lane 1). A request may have to wait for the peer's
 * application; a response never does, so it must not queue behind one.
 *
 * Every packet begins with the same 28 bytes, big-endian but for the CRC:
 *
 *    0  CRC32C of everything after itself, least significant byte first (4)
 *    4  'W'
 *    5  version 2 (high nibble), type (low nibble)
 *    6  flags
 *    7  count: of ACK, the 64-bit words that follow; else 0
 *    8  id (8): the receiver's for this pair; of INIT 0
 *   16  psn (4): of DATA its own, of NAK the one refused; else 0
 *   20  ack[0] (4): the next psn that its sender expects in lane 0
 *   24  ack[1] (4): the same of lane 1
 *   28  body
 *
 * Bodies: INIT, CHALLENGE, ACCEPT and REFUSE carry a hello; DATA a DDP segment (wire_rdmap.h)
 * with its payload, or when SKIP is set nothing, or the number (4) that the message has among
 * those that take a receive; ACK a bitmap; NAK a reason; RESET, PROBE and
 * BYE nothing. Lengths must fit exactly.
 *
 * Pure: no sockets, no allocation. Decoders accept any bytes.
 */
#ifndef WEFT_WIRE_RD_H
#define WEFT_WIRE_RD_H

#include "wire_rdmap.h"

#define WIRE_RD_HDR     28
#define WIRE_RD_VERSION 2
#define WIRE_RD_LANES   2

enum wire_rd_type {
	WIRE_RD_INIT = 1,      /* asks for a pair; without a cookie it is answered by ... */
	WIRE_RD_CHALLENGE = 2, /* ... this, which costs the answerer no memory */
	WIRE_RD_ACCEPT = 3,
	WIRE_RD_REFUSE = 4, /* the hello's cookie holds the reason, enum wire_rd_refusal */
	WIRE_RD_DATA = 5,
	WIRE_RD_ACK = 6,
	WIRE_RD_NAK = 7,
	WIRE_RD_RESET = 8, /* there is no pair of this id (which is the one in `id`: the one
			    * that the receiver of the RESET has used) */
	WIRE_RD_PROBE = 9, /* asks for an ACK */
	WIRE_RD_BYE = 10,  /* the pair is over */
};

enum wire_rd_flag {
	WIRE_RD_RESPONSE = 1, /* DATA, ACK: lane 1 */
	WIRE_RD_SKIP = 2,     /* DATA: this psn will never have contents */
	WIRE_RD_ASK = 4,      /* DATA: nothing follows for now, acknowledge soon */
};

enum wire_rd_refusal {
	WIRE_RD_NO_QP = 1, /* no such queue pair */
	WIRE_RD_QKEY = 2,
	WIRE_RD_FULL = 3, /* as many peers as it can have */
};

/* Why a request is refused. All but RNR and READY end the request with an error. */
enum wire_rd_reason {
	WIRE_RD_RNR = 1,       /* no receive posted; arg is the RNR timer code */
	WIRE_RD_ACCESS = 2,    /* no key allows it */
	WIRE_RD_INVALID = 3,   /* longer than the receive, or not aligned */
	WIRE_RD_OPERATION = 4, /* the peer failed: its memory is gone */
	WIRE_RD_READY = 5,     /* no refusal: a receive was posted, try again */
};

struct wire_rd {
	uint8_t type, flags, count;
	uint64_t id;
	uint32_t psn, ack[WIRE_RD_LANES];
};

/* Body of INIT, CHALLENGE, ACCEPT, REFUSE:
 *    0  life (8): of its sender's queue pair, made anew with every reset; never 0
 *    8  id (8): what the receiver shall put into its packets to the sender
 *   16  cookie (8): of INIT what a CHALLENGE gave, or 0; of CHALLENGE the cookie
 *   24  src_qpn (4), 28 dst_qpn (4): 24 bits each
 *   32  qkey (4)
 *   36  mtu (2): the largest UDP payload that its sender wants to get, 0 (2)
 *   40  room (4): bytes that its sender's socket can hold
 *   44  0 (4) */
struct wire_rd_hello {
	uint64_t life, id, cookie;
	uint32_t src_qpn, dst_qpn, qkey, room;
	uint16_t mtu;
};
#define WIRE_RD_HELLO   48
#define WIRE_RD_MTU_MIN 256 /* a smaller mtu is refused: -EPROTO */

/* Body of NAK: reason, arg, 0 (2). */
struct wire_rd_nak {
	uint8_t reason, arg;
};
#define WIRE_RD_NAK_LEN 4

/* Body of a SKIP for a message that would have taken a receive: its number, as the DDP header
 * has it in MSN. Others have none. */
#define WIRE_RD_SKIP_LEN 4
size_t wire_rd_skip_encode(uint32_t ssn, void *buf);
uint32_t wire_rd_skip_decode(const void *buf);

/* Payload of the Terminate in lane 1 that answers a Read or an Atomic that was refused:
 * the handle that the request named (4), reason (1), 0 (3). */
struct wire_rd_error {
	uint32_t handle;
	uint8_t reason; /* enum wire_rd_reason, ACCESS to OPERATION */
};
#define WIRE_RD_ERROR_LEN 8

/* Body of ACK: bit i (from the least significant) of word w stands for the psn
 * ack[lane] + 1 + 64 w + i. The one at ack[lane] itself is missing by definition. */
#define WIRE_RD_SACK_MAX 128 /* words: 8192 packets */

/* Writes the 28 bytes, the CRC excluded. Returns WIRE_RD_HDR. */
size_t wire_rd_encode(const struct wire_rd *h, void *buf);
/* Writes the CRC of a whole packet. */
void wire_rd_seal(void *packet, size_t len);
/* Writes a CRC that was computed piece by piece over everything after the first 4 bytes. */
void wire_rd_put_crc(void *packet, uint32_t crc);
/* Whether it may be one of ours, to tell RD from UD before anything is checked. */
bool wire_rd_is(const void *packet, size_t len);
/* Checks a whole packet: -EPROTO when it is not one of ours (version, type, unknown flags or
 * flags that the type does not have, count, length for its type), -EBADMSG when the CRC is
 * wrong; else WIRE_RD_HDR, where the body starts. */
int wire_rd_decode(struct wire_rd *h, const void *packet, size_t len);

/* Bodies. Encoders return the length; decoders 0 or -EPROTO. */
size_t wire_rd_hello_encode(const struct wire_rd_hello *h, void *buf);
int wire_rd_hello_decode(struct wire_rd_hello *h, const void *buf, size_t len);
size_t wire_rd_nak_encode(const struct wire_rd_nak *n, void *buf);
int wire_rd_nak_decode(struct wire_rd_nak *n, const void *buf, size_t len);
size_t wire_rd_error_encode(const struct wire_rd_error *e, void *buf);
int wire_rd_error_decode(struct wire_rd_error *e, const void *buf, size_t len);
size_t wire_rd_sack_encode(const uint64_t *words, unsigned int n, void *buf);
void wire_rd_sack_decode(uint64_t *words, unsigned int n, const void *buf);

/* The DDP segment of a DATA packet without SKIP. Returns the length of the DDP header; the
 * payload follows. -EPROTO when the opcode does not belong into the lane (requests: Write, the
 * Sends with and without immediate or solicited event, Immediate, Read Request, Atomic
 * Request; responses: Read Response, Atomic Response, Terminate), or Read Request, Atomic Request,
 * Immediate, Atomic Response or Terminate are not whole in this one segment with exactly the
 * payload that they have. A tagged segment's TO plus its length must not wrap. */
int wire_rd_seg_decode(struct wire_seg *seg, const struct wire_rd *h, const void *body, size_t len);

#endif
