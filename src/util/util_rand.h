/* Two kinds of randomness that must never be mixed up.
 *
 * struct util_rand is splitmix64: seeded, portable, repeatable; for tests and
 * simulations. The same seed gives the same sequence on every machine and in every
 * tool that follows the same recipe. A generator belongs to one thread.
 *
 * util_random_key comes from the kernel and is unpredictable; for memory keys and
 * anything else that a peer must not be able to guess. Callable from any thread,
 * and a forked child never repeats bytes that its parent gets.
 */
#ifndef WEFT_UTIL_RAND_H
#define WEFT_UTIL_RAND_H

#include <stddef.h>
#include <stdint.h>

struct util_rand {
	uint64_t state;
};

static inline void util_rand_seed(struct util_rand *r, uint64_t seed)
{
	r->state = seed;
}

#define UTIL_RAND_STEP UINT64_C(0x9E3779B97F4A7C15)

/* Leaves out n numbers. The state only counts up, so this costs nothing, and any number of
 * the sequence can be had by itself. */
static inline void util_rand_skip(struct util_rand *r, uint64_t n)
{
	r->state += n * UTIL_RAND_STEP;
}

static inline uint64_t util_rand_next(struct util_rand *r)
{
	uint64_t z;

	r->state += UTIL_RAND_STEP;
	z = r->state;
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* 0 … n−1, n > 0. A plain modulus: its bias is far below what a test could see,
 * and every tool that shares the recipe agrees on it. */
static inline uint64_t util_rand_below(struct util_rand *r, uint64_t n)
{
	return util_rand_next(r) % n;
}

/* Fisher-Yates from the end: for i = n−1 … 1 swap a[i] with a[next() mod (i+1)]. */
void util_rand_shuffle(struct util_rand *r, uint32_t *a, size_t n);

void util_rand_bytes(struct util_rand *r, void *buf, size_t len);

/* Fills buf with unpredictable bytes. Returns 0, or -errno when the kernel has
 * none to give; buf is then not usable as a key. */
int util_random_key(void *buf, size_t len) __attribute__((warn_unused_result));

#endif
