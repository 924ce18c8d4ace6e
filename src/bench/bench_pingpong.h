/* The ping-pong that every two-sided kind shares. Both sides poll; each round trip is
 * timed by itself, so that the distribution is seen and not only its mean. */
#ifndef WEFT_BENCH_PINGPONG_H
#define WEFT_BENCH_PINGPONG_H

#include <string.h>

#include "bench_kind.h"

int bench_ping(struct bench_chan *chan, struct bench_step *step);
int bench_pong(struct bench_chan *chan, struct bench_step *step);

/* The last message of a step: the client decides which one it is, because it looks at
 * the clock, and the server follows. */
#define BENCH_LAST UINT32_MAX

/* The sequence number travels in as many of the first four bytes as there are, modulo
 * the value with all bits set, which marks the last message. */
static inline uint32_t bench_seq_mask(size_t size)
{
	return size < sizeof(uint32_t) ? (1u << (8 * size)) - 1 : UINT32_MAX;
}

static inline void bench_seq_put(void *buf, size_t size, uint32_t seq)
{
	uint32_t mask = bench_seq_mask(size), wire = seq == BENCH_LAST ? mask : seq % mask;

	memcpy(buf, &wire, size < sizeof(wire) ? size : sizeof(wire));
}

/* BENCH_LAST, or the number modulo the mask. */
static inline uint32_t bench_seq_get(const void *buf, size_t size)
{
	uint32_t wire = 0;

	memcpy(&wire, buf, size < sizeof(wire) ? size : sizeof(wire));
	return wire == bench_seq_mask(size) ? BENCH_LAST : wire;
}

#endif
