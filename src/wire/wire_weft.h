/* What Weft adds to iWARP, spoken only between two Weft devices.
 *
 * 1. The hello: private data of the MPA handshake. It names the queue pairs, so
 *    that one listening port serves 255 of them without a connection manager, and
 *    says which packet sequence number each side expects, so that a stale or
 *    guessed connection is refused.
 * 2. Control messages: opcode 0xe, untagged, queue 4. They give an RC queue pair
 *    the semantics that InfiniBand users expect and that iWARP lacks: a work
 *    request completes when the peer has executed it, and a Send that finds no
 *    receive posted waits for one.
 * 3. The datagram: what UD puts in front of a DDP segment on UDP. MPA is not
 *    needed there; its CRC moves to the front, where a receiver can scatter
 *    around it.
 *
 *        | CRC32C (4, LSB first) | 'W' | version | untagged header (18) | payload |
 *
 *    The CRC covers everything after itself. The ULP word carries the Q_Key, MO
 *    the immediate value (a datagram is never segmented), MSN a running number.
 */
#ifndef WEFT_WIRE_WEFT_H
#define WEFT_WIRE_WEFT_H

#include "wire_rdmap.h"

#define WIRE_HELLO_LEN     24
#define WIRE_HELLO_VERSION 1

enum wire_hello_type { WIRE_HELLO_RC = 1, WIRE_HELLO_UC = 2 };

struct wire_hello {
	uint8_t version;
	uint8_t type;
	uint32_t src_qpn, dst_qpn; /* 24 bits */
	uint32_t rq_psn;           /* the first that its sender expects */
	uint32_t dst_addr;         /* IPv4 that the sender believes to reach, host order */
};

/* Layout: "WEFT" | version | type | 0 (2) | src_qpn | dst_qpn | rq_psn |
 * dst_addr, all big-endian. Returns WIRE_HELLO_LEN. */
size_t wire_hello_encode(const struct wire_hello *h, void *buf);
/* 0, or -EPROTO: not ours, wrong length, reserved bits set, qpn/psn over 24 bits. */
int wire_hello_decode(struct wire_hello *h, const void *buf, size_t len);

enum wire_ctl_type {
	WIRE_CTL_ACK = 1,     /* requests up to and including `seq` are executed */
	WIRE_CTL_RNR = 2,     /* request `seq` found no receive; `arg` = RNR timer code.
			       * Requests from seq on are discarded until RETRY(seq). */
	WIRE_CTL_READY = 3,   /* a receive was posted: request `seq` may be retried */
	WIRE_CTL_RETRY = 4,   /* requests from `seq` on follow again */
	WIRE_CTL_DAMAGED = 5, /* as RNR: request `seq` failed its CRC; send it again */
	WIRE_CTL_PACE = 6,    /* arg 1: many requests are under way, acknowledge now and
			       * then; arg 0: somebody waits, acknowledge at once */
	WIRE_CTL_PROBE = 7,   /* no meaning but to be acknowledged by TCP */
};

struct wire_ctl {
	uint8_t type;
	uint8_t arg;
	uint32_t seq;
};

#define WIRE_CTL_LEN 8
/* Layout: type | arg | 0 (2) | seq. Returns WIRE_CTL_LEN. */
size_t wire_ctl_encode(const struct wire_ctl *c, void *buf);
int wire_ctl_decode(struct wire_ctl *c, const void *buf, size_t len);

#define WIRE_DGRAM_PREFIX      6
#define WIRE_DGRAM_HDR         (WIRE_DGRAM_PREFIX + WIRE_UNTAGGED_HDR)
#define WIRE_DGRAM_VERSION     1
#define WIRE_DGRAM_MAX         65507 /* largest UDP payload over IPv4 */
#define WIRE_DGRAM_PAYLOAD_MAX (WIRE_DGRAM_MAX - WIRE_DGRAM_HDR)

/* Writes the 24-byte header, CRC excluded; wire_dgram_seal then writes the CRC of
 * the whole datagram. */
size_t wire_dgram_encode(const struct wire_seg *seg, void *buf);
void wire_dgram_seal(void *dgram, size_t len);
/* Checks and decodes a whole datagram: -EPROTO when it is not one of ours, -EBADMSG
 * when the CRC is wrong; else WIRE_DGRAM_HDR, where the payload starts. Only Send
 * opcodes, whole (last, QN 0), are let through. */
int wire_dgram_decode(struct wire_seg *seg, const void *dgram, size_t len);

#endif
