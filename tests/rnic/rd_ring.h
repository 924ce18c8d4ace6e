/* A process of this host that speaks RD, and knows no manners in shared memory either: after
 * the handshake of rd_peer.h it links, and writes whatever records it wants to into its ring.
 *
 * It lives in the process of the target, which does not make a difference to that. */
#ifndef WEFT_RD_RING_H
#define WEFT_RD_RING_H

#include "rd_stage.h"
#include "rnic_rd_shm_rec.h"

#define RING_GUARD 0xa5
#define RING_SPAN  65536
#define RING_AT    32768 /* where in it the region is */
#define RING_LEN   128   /* its length */

struct rd_ring {
	struct stage s; /* a is good, b is attacked */
	uint8_t *guard; /* bytes of b, of which few belong to the region */
	struct ibv_mr *mr;
	struct shm_link link;
	int bell;
	uint64_t word; /* by which b finds out that it can copy */
	uint32_t seq;  /* of the last request that was written */
	uint32_t ack;  /* goes into every record */
	uint32_t done; /* b has said that it has executed those */
	uint32_t size; /* of a ring */
	bool found;    /* b can copy */
	struct rec last;
	uint8_t body[65536]; /* of the last record of b */
};

void rd_ring_open(struct rd_ring *r);
void rd_ring_close(struct rd_ring *r);
/* A new peer, and its link. */
void rd_ring_meet(struct rd_ring *r);
/* The link is closed, as when the process ends. */
void rd_ring_drop(struct rd_ring *r);
/* The target must forget the peer. */
void rd_ring_forgotten(const struct rd_ring *r);
/* Both. */
void rd_ring_leave(struct rd_ring *r);
/* Each tells the other that it can copy. */
void rd_ring_introduce(struct rd_ring *r);

/* Writes a record of any contents; waits for room. False: the target has given the peer up. */
bool rd_ring_raw(struct rd_ring *r, const void *data, size_t len);
/* The same with a header and two parts of a body; either may be empty. */
bool rd_ring_put(struct rd_ring *r, const struct rec *h, const void *a, size_t a_len, const void *b,
		 size_t b_len);
/* Reads records until one is of this kind, or any if 0; it is in r->last. */
bool rd_ring_get(struct rd_ring *r, enum rec_op op, unsigned int ms);
/* When the target wants something of us it makes a pair of its own first, over UDP: answers what
 * has come there. */
void rd_ring_greet(struct rd_ring *r);
/* Waits for a request of the target. */
void rd_ring_want(struct rd_ring *r, enum rec_op op);

/* The region, or something near it. */
struct rec_target rd_ring_target(const struct rd_ring *r, uint64_t off);
/* One piece of a write to it. */
bool rd_ring_write(struct rd_ring *r, uint8_t flags, uint32_t len, uint32_t off, size_t n);

/* Whether the target has given the peer up, after some time at the latest. */
bool rd_ring_gone(struct rd_ring *r, unsigned int ms);
/* It was given up, resp. not: what was written is executed, or refused, and the link is there.
 * The good one is served, and nothing outside the region is touched. */
void rd_ring_check_gone(struct rd_ring *r);
void rd_ring_check_up(struct rd_ring *r);
void rd_ring_check_guard(const struct rd_ring *r);

#endif
