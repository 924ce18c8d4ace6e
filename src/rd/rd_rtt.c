#include "rd_rtt.h"

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void rd_rtt_sample(struct rd_rtt *r, uint64_t ns)
{
	if (!ns)
		ns = 1; /* 0 means that there is none */
	r->latest = ns;
	if (r->samples < RD_RTT_MANY)
		r->samples++;
	if (r->samples == 1) {
		r->smoothed = ns;
		r->deviation = ns / 2;
		r->least = ns;
		return;
	}
	if (ns < r->least)
		r->least = ns;
	r->deviation = (3 * r->deviation + apart(r->smoothed, ns)) / 4;
	r->smoothed = (7 * r->smoothed + ns) / 8;
	if (!r->smoothed)
		r->smoothed = 1;
}

/* Smoothed and four deviations. A steady queue makes the deviation vanish, but the next flow
 * that joins it will not be steady: at least half a round trip is allowed for. */
static uint64_t base(const struct rd_rtt *r)
{
	uint64_t margin = 4 * r->deviation;

	if (margin < r->smoothed / 2)
		margin = r->smoothed / 2;
	if (!r->samples && r->smoothed + margin < RD_RTT_INITIAL)
		return RD_RTT_INITIAL;
	return r->smoothed + margin;
}

void rd_rtt_expect(struct rd_rtt *r, const struct rd_rtt *other)
{
	if (!r->samples)
		*r = (struct rd_rtt){.smoothed = other->smoothed, .deviation = other->deviation};
}

uint64_t rd_rtt_timeout(const struct rd_rtt *r, const struct rd_rtt *all, unsigned int backoff)
{
	uint64_t t = base(r), least = backoff ? RD_RTO_MIN : RD_PROBE_MIN;

	if (all && (!r->samples || base(all) > t))
		t = base(all);
	if (t < least)
		t = least;
	while (backoff-- && t < RD_RTO_MAX)
		t *= 2;
	return t < RD_RTO_MAX ? t : RD_RTO_MAX;
}
