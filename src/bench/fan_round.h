/* The 1:n n:1 ping-pong, apart from any device: node 0 sends to n peers, and the round is over
 * when all have answered. Every packet is timed by itself, and every round starts when nothing is
 * on its way: the start of the pipeline is part of what is measured, as it is of what a program
 * sees that sends to n others now and then.
 *
 * The device and the clock are functions of the caller, so that the instrument can be held against
 * a device whose times are known. One thread.
 */
#ifndef WEFT_BENCH_FAN_ROUND_H
#define WEFT_BENCH_FAN_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fan_ops {
	/* Both 0 or -errno. Posts the message for peer i. */
	int (*send)(void *arg, unsigned int i, uint32_t seq);
	/* 1: *i has answered message seq; 0: nobody has; or -errno. */
	int (*poll)(void *arg, uint32_t seq, unsigned int *i);
	uint64_t (*now)(void *arg); /* nanoseconds */
	/* Called once in many empty polls. -errno ends the measurement: somebody has died. */
	int (*check)(void *arg);
	/* Something was lost: waits until nothing of this round can come any more. */
	void (*settle)(void *arg);
};

struct fan_plan {
	unsigned int n;    /* peers */
	unsigned int msgs; /* messages that node 0 sends: n, or one multicast */
	size_t rounds;     /* at most */
	uint32_t seq0;
	uint64_t budget;   /* nanoseconds after which no further round begins */
	uint64_t deadline; /* of now(): given up */
	uint64_t lost_ns;  /* an answer that takes longer is lost; 0: no answer is ever lost */
};

/* Nanoseconds. Of round r, packet i stands at [r * n + i]; a multicast's only post at i = 0. */
struct fan_times {
	uint64_t *round; /* from before the first send to after the last answer */
	uint64_t *trip;  /* from before this packet's own send to after its answer */
	uint64_t *post;  /* what the call that sends took */
	size_t rounds;   /* that were complete */
	size_t lost;     /* that were not, and are not among them */
};

int fan_times_alloc(struct fan_times *t, const struct fan_plan *plan);
void fan_times_free(struct fan_times *t);

/* Appends to t, which has room for plan->rounds more behind what is there. */
int fan_rounds(const struct fan_ops *ops, void *arg, const struct fan_plan *plan,
	       struct fan_times *t);

#endif
