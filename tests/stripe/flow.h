/* A fat tree of leaves with 12 hosts each and 12 spines, at the level of flows: the head of each
 * path's queue is a flow, and flows share links max-min fair. Posting a piece takes CPU time of the
 * sender, one after the other. No packets, no queues in switches, no losses. */
#ifndef WEFT_TEST_FLOW_H
#define WEFT_TEST_FLOW_H

#include "stripe.h"

#define FLOW_LEAF  12 /* hosts of a leaf, and spines */
#define FLOW_HOSTS 48
#define FLOW_LINKS (2 * FLOW_HOSTS + 2 * FLOW_HOSTS)
#define FLOW_BYTES 1000000.0 /* of a message, which takes as many units of time at best */
#define FLOW_CPU   10000.0   /* time that it takes to post a piece: 1 % of that */

struct flow_post {
	struct stripe_piece piece;
	double began; /* until then the CPU is at it */
};

struct flow_host {
	uint32_t to;
	struct stripe_msg msg;
	struct flow_post post[STRIPE_PATHS_MAX][STRIPE_OUT_MAX]; /* a queue for each path */
	uint32_t posts[STRIPE_PATHS_MAX];
	double left[STRIPE_PATHS_MAX]; /* of the first of each */
	double rate[STRIPE_PATHS_MAX];
	double cpu; /* busy until then */
	bool busy;
	uint32_t more; /* messages after this one */
	double took;   /* the last message */
};

struct flow {
	struct stripe_conf conf;
	uint32_t hosts;
	double noise; /* completions are found late by up to so much of a message's time */
	double cap[FLOW_LINKS];
	struct stripe_peer (*peer)[FLOW_HOSTS];
	uint8_t (*spine)[FLOW_HOSTS][STRIPE_PATHS_MAX];
	struct flow_host host[FLOW_HOSTS];
	struct util_rand rand;
};

/* ecmp: each path of a pair takes any spine; otherwise they are distinct. */
void flow_init(struct flow *f, const struct stripe_conf *c, uint32_t hosts, bool ecmp,
	       uint64_t seed);
void flow_free(struct flow *f);

/* The link from a leaf to a spine, or back. */
uint32_t flow_link(const struct flow *f, bool up, uint32_t leaf, uint32_t spine);

/* Each host sends so many messages, one after the other, to[] its receiver. Returns how long it
 * took until all had arrived, by message. */
double flow_round(struct flow *f, const uint32_t *to, uint32_t messages);

#endif
