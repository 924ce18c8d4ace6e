/* Faults on purpose: what the network could do to datagrams, done by the device itself, so
 * that tests need no special kernel and users can see how their program takes it.
 *
 * One specification, `WEFT_FAULT=loss=0.05,dup=0.01,reorder=0.02,corrupt=0.01,delay=2ms,seed=42`:
 *
 *   loss=P      a datagram vanishes
 *   dup=P       it is sent twice
 *   corrupt=P   one bit of it is flipped
 *   reorder=P   it is sent after up to 8 others that come later, or 1 ms later
 *   delay=T     it is sent later, by a random time up to T (ns, us, ms, s; ms when no unit)
 *   seed=N      the same seed makes the same choices; without it one is drawn and logged
 *
 * P is a probability from 0 to 1, or a percentage with a % behind it. The decision is pure; the
 * sender of datagrams carries it out (rnic_rd_io.c).
 */
#ifndef WEFT_RNIC_FAULT_H
#define WEFT_RNIC_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "util_rand.h"

struct rnic_fault {
	uint64_t loss, dup, corrupt, reorder; /* of 2^32 */
	uint64_t delay;                       /* ns, most */
	uint64_t seed;
	bool seeded;
	struct util_rand rand;
};

struct rnic_fault_verdict {
	bool drop, again;
	bool flip;
	uint32_t bit;   /* which one to flip, below 8 * len */
	bool reorder;   /* hold it back behind others */
	uint64_t delay; /* ns; 0: at once */
};

/* Reads a specification; NULL or empty: no faults. 0, or -EINVAL with what is wrong and what
 * would be right in why. */
int rnic_fault_parse(struct rnic_fault *f, const char *spec, char *why, size_t size);
/* The same question, without an answer: draws no seed and logs nothing. */
int rnic_fault_check(const char *spec, char *why, size_t size);
bool rnic_fault_any(const struct rnic_fault *f);
/* What happens to the next datagram, of len bytes. */
struct rnic_fault_verdict rnic_fault_next(struct rnic_fault *f, size_t len);

#endif
