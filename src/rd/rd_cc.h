/* Congestion control of one path: how many bytes may be on the way. Pure, driven by events.
 *
 * Loss-based, because it has to share links with TCP: slow start; then CUBIC's window with
 * its TCP-friendly region (RFC 9438), which is what short round trips are in; one reduction,
 * some round trips after a loss (rd_cc.c tells why); down to the least after a timeout. The
 * window grows only while it is what limits the sender. Delay is used for one thing only:
 * to leave slow start before the queue overflows (HyStart++, RFC 9406).
 *
 * `order` numbers transmissions on the path (rd_board.h): a loss counts only if the packet
 * was sent after the last reduction.
 */
#ifndef WEFT_RD_CC_H
#define WEFT_RD_CC_H

#include <stdbool.h>
#include <stdint.h>

struct rd_cc {
	uint32_t mss;       /* bytes of a full packet */
	uint32_t window;    /* bytes */
	uint32_t flight;    /* bytes on the way; maintained by rd_cc_sent and its counterparts */
	uint32_t cap;       /* the window never grows beyond: what the receiver's socket holds */
	uint32_t threshold; /* slow start below it */
	uint32_t reduced;   /* transmissions up to this order have caused a reduction */
	bool reduced_any;
	bool timed_out; /* and nothing has been acknowledged since */
	bool probe;     /* the next packet may go out whatever the window says */
	/* CUBIC: the window at the last reduction and at the one before, Reno's window, the
	 * time (ms after the epoch) at which w_max is reached, remainders of divisions. */
	uint32_t w_max, w_last, w_est, k, credit, est_credit;
	uint64_t epoch; /* 0: none has begun */
	/* HyStart++: the least RTT of this and of the last round. */
	uint64_t round_min, last_min, css_min;
	uint32_t round_end;
	/* A reduction is due after so many round trips, the present one until wait_end. */
	uint32_t wait_end, wait_lost;
	uint8_t wait;
	uint64_t wait_rtt, wait_min; /* the least when something was lost, and of this round trip */
	uint8_t round_n, css;        /* samples of this round; rounds of conservative slow start */
	bool round_any;
};

void rd_cc_init(struct rd_cc *cc, uint32_t mss, uint32_t cap);
/* Bytes that may be sent now; at least one packet when nothing is on the way. */
uint32_t rd_cc_room(const struct rd_cc *cc);
void rd_cc_sent(struct rd_cc *cc, uint32_t bytes);
/* Acknowledged. order: the highest of them; next: the order that the next transmission will
 * have; rtt: a sample, or 0; limited: the window was full. */
void rd_cc_acked(struct rd_cc *cc, uint32_t bytes, uint32_t order, uint32_t next, uint64_t rtt,
		 bool limited, uint64_t now);
/* Given up as lost; next as above. */
void rd_cc_lost(struct rd_cc *cc, uint32_t bytes, uint32_t order, uint32_t next, uint64_t now);
/* Several timeouts in a row: what was on the way is lost. Called after rd_cc_lost for all. */
void rd_cc_timeout(struct rd_cc *cc);
/* Taken off without an opinion: will be sent again for reasons that are not the network's. */
void rd_cc_forget(struct rd_cc *cc, uint32_t bytes);
/* A probe: the next packet has room even if the window is full. */
void rd_cc_probe(struct rd_cc *cc);

#endif
