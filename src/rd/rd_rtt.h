/* Round-trip time of a path: smoothed mean and deviation (RFC 6298), minimum. Pure. */
#ifndef WEFT_RD_RTT_H
#define WEFT_RD_RTT_H

#include <stdint.h>

struct rd_rtt {
	uint64_t smoothed, deviation, latest, least; /* ns; smoothed 0: nobody knows */
	uint32_t samples; /* up to RD_RTT_MANY; 0: smoothed and deviation are what to expect */
};

/* Of so many samples the least is about what the way takes. The first ones are of cold caches, and
 * of processes that have other things to do at the beginning. */
#define RD_RTT_MANY 16

/* Before the first sample. */
#define RD_RTT_INITIAL (20 * UINT64_C(1000000))
/* The first timeout in a row costs one packet, and nothing of the window: it may be wrong. */
#define RD_PROBE_MIN (1 * UINT64_C(1000000))
/* A later one is never shorter: schedulers take this long on a busy machine. */
#define RD_RTO_MIN (4 * UINT64_C(1000000))
/* Nor, however often it has been doubled, longer: a link that heals is noticed this soon. */
#define RD_RTO_MAX (250 * UINT64_C(1000000))

void rd_rtt_sample(struct rd_rtt *r, uint64_t ns);
/* Nothing is known of r yet, and something of another: that is what to expect. */
void rd_rtt_expect(struct rd_rtt *r, const struct rd_rtt *other);
/* How long to wait for an acknowledgement, doubled `backoff` times. all: of this path and others
 * to the same place, or NULL. Who divides a message has few packets on each of many paths, and
 * from these alone would learn too late how long queues can be. */
uint64_t rd_rtt_timeout(const struct rd_rtt *r, const struct rd_rtt *all, unsigned int backoff);

#endif
