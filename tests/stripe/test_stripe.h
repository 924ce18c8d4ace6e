/* What the tests of striping share. */
#ifndef WEFT_TEST_STRIPE_H
#define WEFT_TEST_STRIPE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stripe.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static inline struct stripe_conf policy(const char *text)
{
	struct stripe_conf c;
	char why[256] = "";

	if (stripe_parse(&c, text, why, sizeof(why)))
		fail_msg("%s", why);
	return c;
}

static inline void assert_close(double got, double want, double by)
{
	if (!(got - want <= by && want - got <= by))
		fail_msg("%.15g, expected %.15g", got, want);
}

/* All pieces that there are now. */
static inline uint32_t take_all(const struct stripe_conf *c, struct stripe_peer *p,
				struct stripe_msg *m, struct stripe_piece *piece)
{
	uint32_t n = 0;

	while (stripe_next(c, p, m, &piece[n]))
		assert_true(++n < STRIPE_OUT_MAX);
	return n;
}

#endif
