/* Half a round trip of short messages, with and without a copy of each: see bench_msg_latency.c. */
#ifndef WEFT_BENCH_MSG_H
#define WEFT_BENCH_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_MSG_LONGEST 65536

struct bench_msg_conf {
	bool pieces, cached;
	bool same; /* both copy */
	uint64_t rounds, block, seconds;
	size_t sizes[24];
	size_t n_sizes;
	const char *meet; /* NULL: a fork */
	bool first;       /* of those who meet: prints */
};

/* Prints a table. What the process shall end with: 0 measured, 1 not; it may also end it. */
int bench_msg_latency(const struct bench_msg_conf *c);

#endif
