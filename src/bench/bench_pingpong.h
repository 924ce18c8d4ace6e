/* The ping-pong that every two-sided kind shares. Both sides poll; each round trip is
 * timed by itself, so that the distribution is seen and not only its mean. */
#ifndef WEFT_BENCH_PINGPONG_H
#define WEFT_BENCH_PINGPONG_H

#include <string.h>

#include "bench_kind.h"

int bench_ping(struct bench_chan *chan, struct bench_step *step);
int bench_pong(struct bench_chan *chan, struct bench_step *step);

/* The sequence number travels in as many of the first four bytes as there are. */
static inline void bench_seq_put(void *buf, size_t size, uint32_t seq)
{
	memcpy(buf, &seq, size < sizeof(seq) ? size : sizeof(seq));
}

static inline uint32_t bench_seq_get(const void *buf, size_t size)
{
	uint32_t seq = 0;

	memcpy(&seq, buf, size < sizeof(seq) ? size : sizeof(seq));
	return seq;
}

static inline uint32_t bench_seq_mask(size_t size)
{
	return size < sizeof(uint32_t) ? (1u << (8 * size)) - 1 : UINT32_MAX;
}

#endif
