/* What all tests of src/rd need: cmocka, and seeds that can be given. */
#ifndef WEFT_TEST_RD_H
#define WEFT_TEST_RD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include "util_rand.h"

#define US  UINT64_C(1000)
#define MS  (1000 * US)
#define SEC (1000 * MS)

/* WEFT_TEST_SEED overrides the seed of a random test; what is used is printed. */
static inline uint64_t test_seed(const char *what, uint64_t fallback)
{
	const char *s = getenv("WEFT_TEST_SEED");
	uint64_t seed = s ? strtoull(s, NULL, 0) : fallback;

	printf("%s: seed %llu\n", what, (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

#endif
