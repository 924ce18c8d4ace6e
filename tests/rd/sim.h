/* A network in one process: discrete events, a clock that jumps from one to the next, links
 * with a rate, a delay and a queue that drops what does not fit. Deterministic for a seed.
 *
 * sim.c has events and links, sim_rd.c senders and receivers made of rd_board and rd_rx,
 * sim_tcp.c a TCP that is just good enough to compete with.
 */
#ifndef WEFT_TEST_SIM_H
#define WEFT_TEST_SIM_H

#include "rd_board.h"
#include "rd_rx.h"
#include "test_rd.h"

/* ---- events and links ------------------------------------------------------------------- */

struct sim;
typedef void (*sim_fn)(struct sim *sim, void *obj, void *arg);

struct sim_event {
	uint64_t at, serial;
	sim_fn fn;
	void *obj, *arg; /* arg is freed after the call */
};

struct sim {
	struct util_rand r;
	uint64_t now, serial;
	struct sim_event *heap;
	size_t n, cap;
};

void sim_init(struct sim *sim, uint64_t seed);
void sim_free(struct sim *sim);
void sim_at(struct sim *sim, uint64_t at, sim_fn fn, void *obj, void *arg);
void sim_run(struct sim *sim, uint64_t until);

struct sim_link {
	uint64_t rate;  /* bit/s */
	uint64_t delay; /* ns */
	uint64_t queue; /* bytes */
	/* Up to so much more delay, at random, without overtaking. Without it flows fall into
	 * step, and who drops is decided by phase (Floyd and Jacobson 1992). */
	uint64_t jitter;
	/* Of 10,000 packets. */
	unsigned int loss, dup, reorder;
	uint64_t reorder_by;         /* ns at most */
	uint64_t down_from, down_to; /* outage */
	/* State and counters. */
	uint64_t busy_until, last, packets, bytes, dropped;
};

/* Calls fn(obj, packet) at the other end, or frees the packet, whose size in memory is len. */
void sim_link_send(struct sim *sim, struct sim_link *link, uint32_t bytes, sim_fn fn, void *obj,
		   void *packet, size_t len);

/* ---- RD --------------------------------------------------------------------------------- */

#define SIM_PATHS     2
#define SIM_BINS      700
#define SIM_BIN       (100 * MS)
#define SIM_ACK_DELAY (50 * US)
#define SIM_FOREVER   UINT64_MAX

struct sim_rd {
	/* Given. */
	uint32_t packet, cap, first;
	uint64_t total; /* packets to send, more can be added */
	struct sim_link *there[SIM_PATHS], *back[SIM_PATHS];
	unsigned int n_paths;
	/* Sender. */
	struct rd_pool pool;
	struct rd_board board;
	struct rd_path paths[SIM_PATHS];
	bool dead[SIM_PATHS];
	uint64_t queued, done_at, timer;
	/* Receiver. */
	struct rd_rx rx;
	bool ack_due;
	unsigned int ack_path;
	uint64_t arrived, duplicates, bins[SIM_BINS];
};

/* One path over these links, with packets of this many bytes. */
void sim_rd_init(struct sim_rd *f, uint32_t packet, struct sim_link *there, struct sim_link *back);
void sim_rd_start(struct sim *sim, struct sim_rd *f, uint64_t at, uint64_t total);
void sim_rd_free(struct sim_rd *f);
/* Bytes that arrived in a time, rounded to SIM_BIN. */
uint64_t sim_rd_bytes(const struct sim_rd *f, uint64_t from, uint64_t to);
uint64_t sim_rd_timeouts(const struct sim_rd *f);
uint64_t sim_rd_sent(const struct sim_rd *f);

/* ---- TCP -------------------------------------------------------------------------------- */

#define SIM_TCP_MAX 8192
#define SIM_TCP_ACK 64

struct sim_tcp {
	uint32_t packet;
	struct sim_link *there, *back;
	double grow, keep;        /* packets per round trip; part that a loss leaves */
	double window, threshold; /* packets */
	uint64_t sent, oldest, flight, recover, heard, bins[SIM_BINS];
	uint64_t arrived[SIM_TCP_ACK]; /* and not acknowledged */
	unsigned int arrived_n;
	bool acked[SIM_TCP_MAX];
};

/* Reno, or CUBIC in its friendly region. */
void sim_tcp_reno(struct sim_tcp *t);
void sim_tcp_cubic(struct sim_tcp *t);
void sim_tcp_start(struct sim *sim, struct sim_tcp *t, uint32_t packet, struct sim_link *there,
		   struct sim_link *back, uint64_t at);
uint64_t sim_tcp_bytes(const struct sim_tcp *t, uint64_t from, uint64_t to);

#endif
