/* The queue of the own interface. */
#include "util_clock.h"
#include "rd_egress.h"

/* So many milliseconds' worth may wait. A progress thread that has to wake up for the next part is
 * late by hundreds of microseconds when the program computes. */
#define WAIT_MS 2
/* No less than this may wait, whatever the rate. With less, another flow that has more in the same
 * queue would get all of it: who has a smaller part of the link is found slower, would hand over
 * less, and have an even smaller part. */
#define LEAST 32768
/* ... and while the rate is not known. */
#define UNKNOWN (128 * 1024)
/* A measurement takes at least so long: what leaves, leaves in pieces, and a shaper's bucket lets
 * some of it through at once. */
#define MEASURE_NS (2 * UTIL_NS_PER_MS)
/* A piece is what leaves in a fifth of a millisecond, 25 KB at 1 Gbit/s. A shaper cuts what is
 * longer than its bucket into single packets, and each of them costs everybody on the way. */
#define PIECES 5
/* ... but no less than this. */
#define PIECE 8192
/* No longer than this before it is asked again. */
#define WAIT_MAX_NS (20 * UTIL_NS_PER_MS)
/* How long to wait while the rate is not known. */
#define UNKNOWN_NS (100 * UTIL_NS_PER_US)

/* When nothing has left for so long, nor for four times what a piece takes, it is stuck. */
#define STUCK_NS (10 * UTIL_NS_PER_MS)

/* How much may wait. */
static uint32_t limit(const struct rd_egress *g)
{
	if (!g->rate)
		return UNKNOWN;
	return WAIT_MS * g->rate > LEAST ? WAIT_MS * g->rate : LEAST;
}

static uint32_t rate_of(uint64_t bytes, uint64_t ns)
{
	uint64_t rate = bytes * UTIL_NS_PER_MS / (ns ? ns : 1);

	return rate > UINT32_MAX / WAIT_MS ? UINT32_MAX / WAIT_MS : (uint32_t)rate;
}

static void begin(struct rd_egress *g, uint32_t queued, uint64_t now)
{
	g->since = now;
	g->put = queued;
	g->dry = !queued;
}

/* What a shaper lets through at once makes some of them too high. */
static void learn_link(struct rd_egress *g, uint32_t rate)
{
	if (!g->link)
		g->link = rate;
	else if (rate < g->link)
		g->link = (g->link + rate) / 2;
	else
		g->link += (rate - g->link) / 32;
}

static void measure(struct rd_egress *g, uint32_t queued, uint64_t now)
{
	uint64_t took = now - g->since;
	uint32_t rate;

	g->dry |= !queued;
	if (took < MEASURE_NS)
		return;
	rate = rate_of(g->put > queued ? g->put - queued : 0, took);
	if (!g->dry && rate)
		learn_link(g, rate);
	/* If there was nothing to send for some of the time, it is at least as fast. */
	if (!g->rate)
		g->rate = g->dry ? 0 : rate;
	else if (!g->dry || rate > g->rate)
		g->rate = (uint32_t)((3 * (uint64_t)g->rate + rate) / 4);
	begin(g, queued, now);
}

/* What waits and moves. */
static uint32_t moving(struct rd_egress *g, uint32_t queued, uint64_t now)
{
	uint64_t pieces = g->rate ? 4 * (uint64_t)PIECE * UTIL_NS_PER_MS / g->rate : 0;
	uint64_t wait = pieces > STUCK_NS ? pieces : STUCK_NS;

	if (!g->moved || queued < g->low || queued <= g->stuck) {
		g->low = queued;
		g->moved = now;
	} else if (now - g->moved > wait) {
		g->stuck = queued;
	}
	if (g->stuck > queued)
		g->stuck = queued;
	return queued - g->stuck;
}

uint32_t rd_egress_room(struct rd_egress *g, uint32_t queued, uint64_t now)
{
	queued = moving(g, queued, now);
	measure(g, queued, now);
	if (!queued && !g->rate)
		return UINT32_MAX;
	/* Not as soon as there is any: small pieces cost more. */
	return queued <= limit(g) / 2 ? limit(g) - queued : 0;
}

uint64_t rd_egress_when(const struct rd_egress *g, uint32_t queued, uint64_t now)
{
	uint32_t until = limit(g) / 2;
	uint64_t wait = UNKNOWN_NS;

	queued -= g->stuck < queued ? g->stuck : queued;
	if (g->rate)
		wait = (queued > until ? queued - until : 0) * (uint64_t)UTIL_NS_PER_MS / g->rate;
	return now + (wait < WAIT_MAX_NS ? wait : WAIT_MAX_NS);
}

uint32_t rd_egress_piece(const struct rd_egress *g)
{
	if (!g->rate)
		return UINT32_MAX;
	return g->rate / PIECES > PIECE ? g->rate / PIECES : PIECE;
}
