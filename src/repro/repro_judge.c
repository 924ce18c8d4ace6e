/* Verdicts: pure. */
#include "repro.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench_sample.h"

const char *repro_verdict_name(enum repro_verdict v)
{
	static const char *const names[] = {
		[REPRO_REPRODUCED] = "reproduced",
		[REPRO_SAME_DIRECTION] = "same direction",
		[REPRO_NOT_HERE] = "not here",
	};

	return names[v];
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static size_t without_nan(double *v, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (isfinite(v[i]))
			v[kept++] = v[i];
	qsort(v, kept, sizeof(*v), by_value);
	return kept;
}

/* Of fewer values than an interval takes it is all of them: what is simulated has one value, and
 * that is certain. */
static void summarize(double *v, size_t n, struct repro_outcome *o)
{
	struct bench_interval ci;

	o->n = without_nan(v, n);
	o->value = o->low = o->high = NAN;
	if (!o->n)
		return;
	ci = bench_median_interval(v, o->n, BENCH_LEVEL);
	o->value = bench_percentile(v, o->n, 0.5);
	o->low = isfinite(ci.lo) ? ci.lo : v[0];
	o->high = isfinite(ci.hi) ? ci.hi : v[o->n - 1];
}

/* Which side of the neutral value is the paper's: 1 above, -1 below, 0 neither. */
static int claimed_side(const struct repro_claim *c)
{
	if (isnan(c->neutral))
		return 0;
	if (c->sense != REPRO_ABOUT || isnan(c->want))
		return c->sense == REPRO_AT_MOST ? -1 : 1;
	return (c->want > c->neutral) - (c->want < c->neutral);
}

static bool reaches(const struct repro_claim *c, double value)
{
	double slack = c->tolerance * fabs(c->want);

	if (isnan(c->want))
		return true; /* a direction is all that is claimed */
	switch (c->sense) {
	case REPRO_AT_LEAST:
		return value >= c->want - slack;
	case REPRO_AT_MOST:
		return value <= c->want + slack;
	default:
		return fabs(value - c->want) <= slack;
	}
}

static void say(struct repro_outcome *o, const char *text)
{
	snprintf(o->why, sizeof(o->why), "%s", text);
}

void repro_judge(const struct repro_claim *c, double *values, size_t n, struct repro_outcome *o)
{
	int side = claimed_side(c);
	bool beyond;

	memset(o, 0, sizeof(*o));
	o->verdict = REPRO_NOT_HERE;
	summarize(values, n, o);
	if (!o->n) {
		say(o, "nothing was measured");
		return;
	}
	/* Also a number that is reached says nothing if it may be chance. */
	beyond = !side || (side > 0 ? o->low > c->neutral : o->high < c->neutral);
	if (beyond && reaches(c, o->value)) {
		o->verdict = REPRO_REPRODUCED;
	} else if (beyond && side) {
		o->verdict = REPRO_SAME_DIRECTION;
		say(o, "the effect is there, but not as large as published, or larger");
		if (c->sense != REPRO_ABOUT)
			say(o, "the effect is there, but not as large as published");
	} else if (!side) {
		say(o, "measured, and otherwise");
	} else if (o->low <= c->neutral && o->high >= c->neutral) {
		say(o, "measured, and no difference can be seen");
	} else {
		say(o, "measured, and it is the other way round");
	}
}

enum repro_verdict repro_worst(const struct repro_outcome *o, size_t n)
{
	enum repro_verdict worst = n ? REPRO_REPRODUCED : REPRO_NOT_HERE;

	for (size_t i = 0; i < n; i++)
		if (o[i].verdict > worst)
			worst = o[i].verdict;
	return worst;
}
