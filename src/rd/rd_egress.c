/* The queue of the own interface. */
#include "util_clock.h"
#include "rd_egress.h"

/* No less than this may wait, whatever the rate: a few packets. */
#define LEAST 8192
/* ... and while the rate is not known. */
#define UNKNOWN (128 * 1024)
/* A measurement takes at least so long: what leaves, leaves in pieces. */
#define MEASURE_NS (2 * UTIL_NS_PER_MS)
/* How long to wait while the rate is not known. */
#define UNKNOWN_NS (100 * UTIL_NS_PER_US)

/* What leaves in a millisecond. */
static uint32_t limit(const struct rd_egress *g)
{
	if (!g->rate)
		return UNKNOWN;
	return g->rate > LEAST ? g->rate : LEAST;
}

static uint32_t rate_of(uint64_t bytes, uint64_t ns)
{
	uint64_t rate = bytes * UTIL_NS_PER_MS / (ns ? ns : 1);

	return rate > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)rate;
}

static void begin(struct rd_egress *g, uint32_t queued, uint64_t now)
{
	g->since = queued ? now : 0;
	g->put = queued;
}

static void measure(struct rd_egress *g, uint32_t queued, uint64_t now)
{
	uint64_t took = now - g->since;
	uint32_t rate;

	if (!g->since) {
		begin(g, queued, now);
	} else if (!queued) {
		/* It ran dry some time ago: it is at least as fast. */
		rate = rate_of(g->put, took);
		if (g->rate && rate > g->rate)
			g->rate = rate;
		begin(g, 0, now);
	} else if (took >= MEASURE_NS) {
		rate = rate_of(g->put > queued ? g->put - queued : 0, took);
		g->rate = g->rate ? (uint32_t)((3 * (uint64_t)g->rate + rate) / 4) : rate;
		begin(g, queued, now);
	}
}

uint32_t rd_egress_room(struct rd_egress *g, uint32_t queued, uint64_t now)
{
	measure(g, queued, now);
	if (!queued && !g->rate)
		return UINT32_MAX;
	return queued < limit(g) ? limit(g) - queued : 0;
}

uint64_t rd_egress_when(const struct rd_egress *g, uint32_t queued, uint64_t now)
{
	uint32_t until = limit(g) / 2;

	if (!g->rate)
		return now + UNKNOWN_NS;
	/* Not at once even if there is room: small pieces cost more. */
	return now + (queued > until ? queued - until : 0) * (uint64_t)UTIL_NS_PER_MS / g->rate;
}

uint32_t rd_egress_piece(const struct rd_egress *g)
{
	return g->rate ? limit(g) / 2 : UINT32_MAX;
}
