/* A peer that speaks RD and knows no manners: a UDP socket, a handshake, and then whatever
 * the test wants to send, under a valid id and CRC. */
#ifndef WEFT_RD_PEER_H
#define WEFT_RD_PEER_H

#include <netinet/in.h>
#include "rig_rd.h"
#include "wire_rd.h"

struct rd_peer {
	int fd;
	struct end *target;
	struct sockaddr_in to;
	struct wire_rd_hello hello; /* what it says about itself; cookie 0 */
	uint64_t id;                /* of the target's choice; 0: no pair */
	uint32_t ack[2];            /* goes into every header */
	uint32_t psn, ssn;          /* for those that count */
	unsigned int unseen;        /* packets sent since the target was last waited for */
	uint64_t seen;
};

/* A packet that the target sent. */
struct rd_got {
	struct wire_rd h;
	struct wire_rd_hello hello;
	struct wire_seg seg; /* DATA without SKIP */
	size_t len;          /* of the body */
	uint8_t body[65536];
};

void rd_peer_open(struct rd_peer *p, struct end *target);
void rd_peer_close(struct rd_peer *p);
/* Another life at the same address. */
void rd_peer_new_life(struct rd_peer *p);
/* How the target names it. */
struct rig_addr rd_peer_addr(const struct rd_peer *p);

/* One datagram of any bytes. Waits now and then until the target has caught up. */
void rd_peer_raw(struct rd_peer *p, const void *data, size_t len);
/* A packet with header and CRC. */
void rd_peer_put(struct rd_peer *p, const struct wire_rd *h, const void *body, size_t len);
/* The same to the pair. */
void rd_peer_say(struct rd_peer *p, enum wire_rd_type type, uint8_t flags, uint32_t psn,
		 const void *body, size_t len);
void rd_peer_hello(struct rd_peer *p, enum wire_rd_type type, uint64_t id, uint64_t cookie);
/* An ACK with a bitmap. */
void rd_peer_sack(struct rd_peer *p, uint8_t flags, const uint64_t *words, unsigned int n);
void rd_peer_nak(struct rd_peer *p, uint32_t psn, uint8_t reason);
void rd_peer_seg(struct rd_peer *p, uint8_t flags, uint32_t psn, const struct wire_seg *seg,
		 const void *payload, size_t len);
/* Requests, of one packet each. */
void rd_peer_send(struct rd_peer *p, uint32_t psn, uint32_t ssn, bool last, uint32_t mo,
		  size_t len);
void rd_peer_write(struct rd_peer *p, uint32_t psn, uint32_t stag, uint64_t to, size_t len);
void rd_peer_read(struct rd_peer *p, uint32_t psn, uint32_t stag, uint64_t to, uint32_t len,
		  uint32_t handle);
void rd_peer_add(struct rd_peer *p, uint32_t psn, uint32_t stag, uint64_t to, uint32_t handle);

/* The next packet of the target, if there is one in time. */
bool rd_peer_get(struct rd_peer *p, struct rd_got *g, unsigned int ms);
/* Throws away what has come; answers to PROBE as somebody who lives. */
void rd_peer_drain(struct rd_peer *p);
/* INIT, CHALLENGE, INIT, ACCEPT. False: refused, or no answer. */
bool rd_peer_shake(struct rd_peer *p);
/* Lets the target make the pair: answers its INITs until it has sent data, which is in g. */
bool rd_peer_listen(struct rd_peer *p, struct rd_got *g, unsigned int ms);

#endif
