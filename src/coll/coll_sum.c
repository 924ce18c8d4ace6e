#include "coll_sum.h"

#include <string.h>

#define LANES 4
#define STEP  sizeof(uint64_t)

/* As in splitmix64: every bit of the result depends on every bit. */
static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

static uint64_t turned(uint64_t v, unsigned int by)
{
	return v << by | v >> (64 - by);
}

/* Each step can be undone, so two inputs that differ in one place never meet again in it. Several
 * at once: one multiplication waits for the one before. */
static uint64_t step(uint64_t lane, const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, STEP);
	return turned(lane ^ word, 29) * 0x9E3779B97F4A7C15u;
}

uint64_t coll_sum(uint64_t seed, const void *data, size_t len)
{
	uint64_t lane[LANES], sum = mix(seed ^ mix(len));
	uint8_t rest[LANES * STEP] = {0};
	const uint8_t *at = data;

	for (unsigned int i = 0; i < LANES; i++)
		lane[i] = sum + i;
	for (; len >= sizeof(rest); len -= sizeof(rest), at += sizeof(rest))
		for (unsigned int i = 0; i < LANES; i++)
			lane[i] = step(lane[i], at + i * STEP);
	if (len)
		memcpy(rest, at, len);
	for (unsigned int i = 0; i < LANES; i++)
		lane[i] = step(lane[i], rest + i * STEP);
	for (unsigned int i = 0; i < LANES; i++)
		sum = mix(sum ^ lane[i]) + i;
	return sum;
}
