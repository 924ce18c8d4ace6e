/* What the tests of fat trees share. */
#ifndef WEFT_TEST_FABRIC_H
#define WEFT_TEST_FABRIC_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_pgft.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline struct fabric_pgft tree(const char *text)
{
	struct fabric_pgft t;
	char why[256] = "";

	if (fabric_pgft_parse(&t, text, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	return t;
}

/* The portable generator, written down a second time. */
static inline uint64_t splitmix64(uint64_t *s)
{
	uint64_t z = *s += 0x9E3779B97F4A7C15u;

	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* Trees of every kind: full and not, with parallel cables and without, w_1 and p_1 beyond 1. */
static const char *const trees[] = {
	"1;5;1;1",
	"1;1;1;1",
	"1;4;3;2",
	"2;12,2;1,12;1,1",
	"2;12,12;1,6;1,2",
	"2;4,4;2,2;2,3",
	"2;1,5;1,3;1,2",
	"2;5,1;1,4;3,1",
	"3;3,4,2;1,2,3;1,2,1",
	"3;4,4,4;1,4,2;1,1,2",
	"3;2,3,2;3,1,2;1,2,3",
	"4;2,2,3,2;1,2,2,3;1,1,2,1",
	"5;2,1,2,1,2;1,2,1,2,1;2,1,1,2,1",
};

#endif
