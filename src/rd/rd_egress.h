/* How much of what we send may wait in our own machine.
 *
 * What waits in the queue of the own interface delays all that is sent later: the request for data
 * that could come in meanwhile, the acknowledgement that lets the other side go on. A window's
 * worth of it is many milliseconds on a slow link, and two programs that send to each other then
 * take turns instead of sending at once. So no more is handed over than leaves in two milliseconds,
 * as TCP does it ("small queues"). What leaves is measured: the kernel tells how much waits, and
 * what was handed over and does not wait any more has left.
 *
 * What waits for a neighbour that does not answer leaves much later, or never. It must not hold up
 * the rest: when nothing at all has left for a while, what waits then does not count any more.
 *
 * Pure, like all of src/rd. An interface at which nothing ever waits never limits anything.
 */
#ifndef WEFT_RD_EGRESS_H
#define WEFT_RD_EGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct rd_egress {
	uint64_t since; /* the present measurement began */
	uint64_t put;   /* bytes that waited then, and all that have come since */
	uint32_t rate;  /* that leave in a millisecond; 0: not known */
	uint32_t link; /* the same, of times in which something waited throughout, rather too low */
	bool dry;      /* nothing waited, then or since */
	uint64_t low;  /* the least that has waited, with all that came since; */
	uint64_t moved; /* when it was found */
	uint32_t stuck; /* what does not leave */
};

/* Bytes were handed over. */
static inline void rd_egress_put(struct rd_egress *g, uint32_t bytes)
{
	g->put += bytes;
	g->low += bytes;
}

/* How many bytes may be handed over now, when so many wait; UINT32_MAX: any number. */
uint32_t rd_egress_room(struct rd_egress *g, uint32_t queued, uint64_t now);
/* When to ask again, when there is no room or it has been used. */
uint64_t rd_egress_when(const struct rd_egress *g, uint32_t queued, uint64_t now);
/* The longest piece to hand over at once, of which the kernel tells only when all of it has left.
 */
uint32_t rd_egress_piece(const struct rd_egress *g);

#endif
