#include "fabric_rlft.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 4, 5))) static void
broken(struct fabric_rlft *r, enum fabric_rlft_rule rule, uint32_t level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	r->broken[r->count].rule = rule;
	r->broken[r->count].level = level;
	vsnprintf(r->broken[r->count].text, sizeof(r->broken[0].text), fmt, ap);
	va_end(ap);
	r->count++;
}

/* All switches have as many ports as those of level 1. */
static void check_ports(const struct fabric_pgft *t, uint32_t l, struct fabric_rlft *r)
{
	uint32_t down = fabric_down_ports(t, l), up = fabric_up_ports(t, l);
	uint32_t want = fabric_down_ports(t, 1) + fabric_up_ports(t, 1);

	if (down + up == want)
		return;
	if (l == t->h)
		broken(r, FABRIC_RLFT_PORTS, l,
		       "switches of level %u, the top, have m%u*p%u = %u ports, those of level 1 "
		       "have %u",
		       l, l, l, down, want);
	else
		broken(r, FABRIC_RLFT_PORTS, l,
		       "switches of level %u have m%u*p%u + w%u*p%u = %u ports, those of level 1 "
		       "have %u",
		       l, l, l, l + 1, l + 1, down + up, want);
}

bool fabric_rlft_check(const struct fabric_pgft *t, struct fabric_rlft *r)
{
	r->count = 0;
	if (t->w[1] != 1 || t->p[1] != 1)
		broken(r, FABRIC_RLFT_HOSTS, 1,
		       "hosts have w1*p1 = %u*%u cables; in an RLFT a host has one", t->w[1],
		       t->p[1]);
	for (uint32_t l = 1; l <= t->h; l++) {
		uint32_t down = fabric_down_ports(t, l), up = fabric_up_ports(t, l);

		if (l < t->h && down != up)
			broken(r, FABRIC_RLFT_BISECTION, l,
			       "switches of level %u have m%u*p%u = %u ports down and w%u*p%u = %u "
			       "ports up; in an RLFT these are as many",
			       l, l, l, down, l + 1, l + 1, up);
		if (l > 1)
			check_ports(t, l, r);
	}
	return r->count == 0;
}
