/* What was sent and is not acknowledged: the sender's half of the sequence space.
 *
 * A *board* belongs to a lane and knows, for each number of the window, whether it was sent,
 * acknowledged or found lost. A *path* knows the same packets in the order in which they were
 * sent over it, whatever lane they are of, and thereby which of them must be lost: one that
 * was overtaken, on the same path, by three packets that were sent later, or by one that was
 * sent a quarter of a round trip later (RFC 9002, section 6.1). Where packets turn out to
 * have been late instead of lost, only time counts, up to another round trip (RFC 8985).
 * Numbers are never given anew: a packet that is sent again keeps its own, on whichever path.
 *
 * Time-outs (RFC 9002, section 6.2): when nothing is heard of a path for rd_rtt_timeout, its
 * oldest packet is sent again, as a probe; after the second time in a row all that is on the
 * way counts as lost, and the window is at its least.
 *
 * A board without packets on the way owns no memory: its ring of RD_BOARD_FEW slots is part of
 * it, a larger one is freed as soon as everything is acknowledged. Records come from a pool that is
 * shared by many boards. Pure: time is an argument. Not thread-safe; one lock for a pool and all
 * that use it.
 */
#ifndef WEFT_RD_BOARD_H
#define WEFT_RD_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include "util_list.h"
#include "rd_cc.h"
#include "rd_rtt.h"
#include "rd_seq.h"

struct rd_path;

/* One packet on the way, or lost. The fields are for reading only. */
struct rd_sent {
	struct list_head link; /* on path->flight or path->lost; in the pool */
	struct rd_path *path;
	struct rd_board *board;
	uint64_t when;
	uint32_t psn;
	uint32_t order; /* number of its transmission on the path */
	uint32_t bytes; /* on the wire */
	uint16_t times; /* sent, saturating */
	bool lost;
	bool blamed; /* was found lost because others overtook it */
	bool moved;  /* was last sent on another path than the one that it is lost on */
};

struct rd_pool {
	struct list_head free;
	uint32_t n_free, n_used, keep; /* at most `keep` unused ones are kept */
};

void rd_pool_init(struct rd_pool *pool, uint32_t keep);
void rd_pool_free(struct rd_pool *pool);
/* Keeps n unused ones at most, for now. */
void rd_pool_trim(struct rd_pool *pool, uint32_t n);

struct rd_path {
	struct list_head flight; /* sent, oldest first */
	struct list_head lost;   /* to be sent again, lowest number first within a lane */
	struct rd_rtt rtt;
	struct rd_rtt *all; /* of all paths to the same place; may be NULL */
	struct rd_cc cc;
	uint32_t order;       /* of the next transmission */
	uint32_t acked_order; /* the highest that is acknowledged, once acked_any */
	uint64_t acked_when;  /* when that was sent */
	uint64_t heard;  /* when an acknowledgement last brought something, or a flight began */
	uint8_t backoff; /* timeouts in a row */
	uint8_t held;    /* doublings that stay until there is a sample of the RTT again */
	bool acked_any;
	uint8_t reorder;       /* quarters of a round trip that are waited longer; not 0: numbers do
				* not tell of losses */
	uint8_t blamed;        /* losses since the last one that was none */
	uint64_t reorder_when; /* when `reorder` was last increased */
	bool limited;          /* somebody wanted to send and found no room; set by the caller,
				* cleared by rd_path_settle */
	bool full_any;
	uint32_t full; /* transmissions before this order filled the window, if full_any */
	/* Of the acknowledgement being taken in: see rd_path_settle. */
	bool got;
	uint32_t got_bytes, got_order;
	uint64_t got_rtt;
	/* For reports. */
	uint64_t sent_packets, lost_packets, timeouts;
	uint64_t spurious; /* acknowledged while they were waiting to be sent again */
};

void rd_path_init(struct rd_path *p, uint32_t mss, uint32_t cap);

/* What a ping-pong has on the way at once; more than that is allocated. */
#define RD_BOARD_FEW 8

struct rd_board {
	struct rd_pool *pool;
	uint32_t una;          /* oldest that is not acknowledged */
	uint32_t high;         /* one past the highest that was sent */
	uint32_t cap;          /* of the ring, a power of two */
	uint32_t holes;        /* numbers between una and high that were never sent */
	uint32_t n_out;        /* on the way or lost */
	uint32_t n_lost;       /* lost */
	uint32_t lost_high;    /* none of the lost is beyond, if n_lost */
	struct rd_sent **ring; /* NULL as long as `few` is enough */
	struct rd_sent *few[RD_BOARD_FEW];
};

void rd_board_init(struct rd_board *b, struct rd_pool *pool, uint32_t first);
/* Forgets everything, also on the paths (rd_cc_forget). */
void rd_board_free(struct rd_board *b);

/* A packet goes out now, for the first time or again. -ENOSPC: beyond the window; -ENOMEM;
 * else 0. Never fails for a number that rd_path_lost returned. One that is acknowledged
 * already: -EALREADY. */
int rd_board_send(struct rd_board *b, struct rd_path *p, uint32_t psn, uint32_t bytes,
		  uint64_t now);
/* Whether a packet of this number would be within the window. */
bool rd_board_fits(const struct rd_board *b, uint32_t psn);
bool rd_board_empty(const struct rd_board *b); /* nothing on the way, nothing lost */

/* An acknowledgement: everything before `next`, and what the bitmap says (wire_rd.h). What
 * was never sent is ignored, whatever the peer claims: returns -EPROTO then and changes
 * nothing; else the number of packets that are newly acknowledged. `fn` is called for each
 * of them, in order of number; it must not touch the board. Afterwards rd_path_settle must be
 * called for the paths involved. */
int rd_board_ack(struct rd_board *b, uint32_t next, const uint64_t *sack, unsigned int n,
		 uint64_t now, void (*fn)(void *arg, uint32_t psn), void *arg);
/* Takes into account what acknowledgements brought since the last time: RTT, window, losses.
 * Returns the number of packets newly found lost. Cheap when nothing is new. */
unsigned int rd_path_settle(struct rd_path *p, uint64_t now);

/* When rd_path_expire has to be called; UINT64_MAX: nothing is on the way. */
uint64_t rd_path_deadline(const struct rd_path *p);
/* Time is up: finds losses that only time could tell, or a timeout. Returns the number of
 * packets that were put on the lost list. Before the deadline it does nothing. */
unsigned int rd_path_expire(struct rd_path *p, uint64_t now);

/* The next lost packet of this path, NULL when there is none. It stays until it is sent
 * (rd_board_send), on this path or another. */
struct rd_sent *rd_path_lost(const struct rd_path *p);
/* Everything of `from`, on the way or lost, becomes lost on `to`: the path is given up. */
void rd_path_move(struct rd_path *from, struct rd_path *to);
/* Whether the path is silent: two timeouts in a row or more. */
static inline bool rd_path_silent(const struct rd_path *p)
{
	return p->backoff >= 2;
}

/* Packets of the numbers [first, first + n) that are on the way or lost are taken back: they
 * will be sent again when the caller says so, by rd_board_send. The network is not to blame.
 * Acknowledged ones stay so. */
void rd_board_recall(struct rd_board *b, uint32_t first, uint32_t n);
/* Whether a number has been acknowledged. */
bool rd_board_acked(const struct rd_board *b, uint32_t psn);

#endif
