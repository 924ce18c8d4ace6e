/* A packet-level, event-driven model of a lossless cut-through network.
 *
 * What it models. Packets of one message leave a host one after the other, each at most as fast
 * as the host's bus gives them. A link carries one packet at a time and starts one only if the
 * input buffer at its other end has room for the whole of it (credits, in blocks of 64 bytes). A
 * switch forwards a packet as soon as its head has come in and been routed (virtual cut-through);
 * the room in the buffer is given back when the tail has left, and the sender knows of it one
 * cable later. Outputs serve the inputs in turn (round robin). Hosts take packets out of their
 * buffer as fast as their bus allows. Nothing is ever dropped, so a link with too many flows
 * fills the buffer before it, and that stops flows that have nothing to do with it: head-of-line
 * blocking.
 *
 * Two kinds of switch are known. fifo: an input is one queue, and only its first packet is
 * looked at. Otherwise, an input has a queue for each output within one shared buffer, and may
 * send several packets at once: blocking then begins when the buffer is full of packets of the
 * blocked output.
 *
 * fabric_sim_paper is the model of the fat-tree paper (section II): QDR links of 4000 MB/s,
 * hosts of 3250 MB/s (PCIe 2 x8), packets of 2 KB. What the paper does not say is taken from the
 * example of this very cluster that comes with its simulator (the InfiniBand flit-level model
 * for OMNeT++, is4_3l_1944n): input buffers of 800 blocks, a queue per output, three packets at
 * once, 50 + 50 ns through a switch. Assumed: cables of 5 m (25 ns); credits are sent at once
 * (there: at most every 256 ns); no time lost between messages.
 *
 * Not modelled: virtual lanes, headers and acknowledgements, congestion control, losses.
 *
 * Time is in picoseconds. Same input and seed, same result, on any machine. All memory belongs
 * to one call; different threads may simulate at the same time.
 */
#ifndef WEFT_FABRIC_SIM_H
#define WEFT_FABRIC_SIM_H

#include "fabric_routes.h"

enum fabric_sim_progress {
	/* A rank goes on to its next message when this one is on the wire. */
	FABRIC_SIM_ASYNC,
	/* All begin a stage together, when everything of the one before has arrived. */
	FABRIC_SIM_IN_STEP,
	/* A rank goes on when what it sends and what it receives in this stage has arrived. What
	 * it sends waits until the receiver has come to the same stage (rendezvous). */
	FABRIC_SIM_EXCHANGE,
};

struct fabric_sim_config {
	uint32_t link_mbs, host_mbs; /* 10^6 bytes per second */
	uint32_t mtu;
	/* So many packets of a message travel as one: fewer events for long messages, but coarser
	 * sharing. 1: exact. */
	uint32_t aggregate;
	uint32_t buffer, host_buffer; /* bytes, of each input of a switch, and of a host */
	bool fifo;
	uint32_t reads; /* packets that an input sends at once; of a fifo always 1 */
	uint32_t cable_ns, switch_ns;
	uint32_t post_ns; /* what the sender's CPU needs for each part of a message */
	/* Each rank begins at a random time within so many ns; 0: all at once, as always in step.
	 */
	uint32_t start_ns;
	uint64_t seed;
	enum fabric_sim_progress progress;
};

extern const struct fabric_sim_config fabric_sim_paper;

/* A part of a message: it goes to one of the addresses of the receiver's host, and parts of one
 * message share the host's bus packet by packet. */
struct fabric_sim_part {
	uint32_t to; /* rank */
	uint32_t address;
	uint64_t bytes;
};

#define FABRIC_SIM_PARTS_MAX 32 /* under way at once */

struct fabric_sim_traffic {
	uint32_t ranks;
	const uint32_t *hosts; /* of each rank; no host twice */
	uint32_t stages;
	void *ctx;
	/* What a rank sends in a stage: the number of parts, 0 for nothing. Asked once, when the
	 * rank comes to the stage. To itself, and parts of no bytes, are nothing. */
	uint32_t (*send)(void *ctx, uint32_t rank, uint32_t stage,
			 struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX]);
	/* For EXCHANGE: how many ranks send to this one in a stage. All parts of one rank go to
	 * one receiver then. */
	uint32_t (*expects)(void *ctx, uint32_t rank, uint32_t stage);

	/* The rest may be NULL. */

	/* A part has arrived that was posted then. Parts are numbered through a message. */
	void (*arrived)(void *ctx, uint32_t rank, uint32_t stage, uint32_t part, uint64_t posted,
			uint64_t now);
	/* Further parts of the message, to the same receiver, asked for whenever one has arrived.
	 * Not for ASYNC, whose messages end when they are on the wire. */
	uint32_t (*more)(void *ctx, uint32_t rank, uint32_t stage,
			 struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX]);
	/* A packet has: which bytes of the part. */
	void (*packet)(void *ctx, uint32_t rank, uint32_t stage, uint32_t part, uint64_t offset,
		       uint32_t bytes);
	/* Called some times per second with the share of messages that have been begun, 0 … 1.
	 * False: stop. */
	bool (*going)(void *ctx, double done);
};

struct fabric_sim_result {
	uint64_t ps;      /* until the last byte has arrived */
	double bandwidth; /* bytes / time / (ranks · host_mbs) */
	uint64_t bytes, parts, packets, events;
	/* Filled if the caller gives them. In step: the time of each stage, [stages]. */
	uint64_t *stage_ps;
	/* By directed link (fabric_link()), how long it was sending, [2 · cables]. */
	uint64_t *busy_ps;
};

/* 0; or with one sentence in why: -EINVAL, -ENOMEM, -E2BIG (too large a tree), -EHOSTUNREACH (no
 * way), -ELOOP (a way without an end), -EDEADLK (packets wait for each other), -ECANCELED. */
int fabric_sim(const struct fabric_routes *routes, const struct fabric_sim_config *config,
	       const struct fabric_sim_traffic *traffic, struct fabric_sim_result *result,
	       char *why, size_t why_size);

/* About how many events a simulation of so many messages, of so many bytes each, has: three for
 * each packet on each link of a way to the top and down again, which ways within a leaf do not
 * have. */
double fabric_sim_events(const struct fabric_pgft *t, const struct fabric_sim_config *c,
			 double messages, uint64_t bytes);

/* The k-th of `some` numbers spread evenly over 0 … all−1: to simulate a few stages of many. */
static inline uint32_t fabric_sim_sample(uint32_t k, uint32_t some, uint32_t all)
{
	return some < all ? (uint32_t)((uint64_t)k * all / some) : k;
}

#endif
