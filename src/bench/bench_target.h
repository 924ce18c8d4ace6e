/* What is good enough: the figures that the software RNIC is held to, most of them beside the
 * raw sockets of the same run; and MPI on it, beside other stacks. Pure. */
#ifndef WEFT_BENCH_TARGET_H
#define WEFT_BENCH_TARGET_H

#include <stdbool.h>
#include <stddef.h>

struct bench_target {
	const char *test; /* lat, bw, peers, idle; a series of MPI, with what it is judged by */
	const char *kind, *base;
	size_t min_size, max_size; /* bytes of a message; peers: how many of them */
	bool at_most;              /* else at least */
	double limit; /* of the median ratio kind / base; peers: bytes of heap for each; idle:
		       * nanoseconds of CPU time; overlap: percent */
};

/* NULL: nothing is asked of this combination. */
const struct bench_target *bench_target_find(const char *test, const char *kind, const char *base,
					     size_t size);
bool bench_target_met(const struct bench_target *target, double value); /* NaN: no */

#endif
