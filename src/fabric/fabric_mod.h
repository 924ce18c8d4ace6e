/* The remainder by a divisor that is used very often, without a division: Granlund and Montgomery,
 * "Division by invariant integers using multiplication", figure 4.1, for 64 bits. */
#ifndef WEFT_FABRIC_MOD_H
#define WEFT_FABRIC_MOD_H

#include <stdint.h>

__extension__ typedef unsigned __int128 fabric_u128;

struct fabric_mod {
	uint64_t by, magic;
	uint32_t shift;
};

/* by > 1. */
static inline struct fabric_mod fabric_mod(uint64_t by)
{
	uint32_t bits = 64 - (uint32_t)__builtin_clzll(by - 1);
	fabric_u128 over = ((fabric_u128)1 << bits) - by;

	return (struct fabric_mod){by, (uint64_t)((over << 64) / by + 1), bits - 1};
}

static inline uint64_t fabric_mod_of(const struct fabric_mod *m, uint64_t x)
{
	uint64_t high = (uint64_t)((fabric_u128)m->magic * x >> 64);

	return x - ((((x - high) >> 1) + high) >> m->shift) * m->by;
}

#endif
