/* What has arrived in one lane: the receiver's half of the sequence space.
 *
 * `next` is the first number that is missing; a bitmap knows what has arrived beyond it.
 * A lane in which nothing is out of order owns no memory; up to 64 packets out of order fit
 * into the structure itself, a bitmap is allocated for more and freed when the gap closes.
 *
 * Pure: no clock, no socket. Belongs to whoever holds it. Zeroed and rd_rx_init'ed it is
 * ready; nothing that is passed in can break it.
 */
#ifndef WEFT_RD_RX_H
#define WEFT_RD_RX_H

#include <stddef.h>
#include <stdint.h>
#include "rd_seq.h"

struct rd_rx {
	uint32_t next;   /* the first that is missing */
	uint32_t beyond; /* how many have arrived beyond it */
	uint32_t high;   /* one past the highest that has arrived; next when beyond is 0 */
	uint32_t cap;    /* bits of the bitmap: 64, or more when it is allocated */
	uint64_t few;    /* the bitmap, as long as 64 bits are enough */
	uint64_t *many;
};

enum rd_seen {
	RD_NEW,
	RD_OLD, /* has been here before */
	RD_FAR, /* more than RD_WINDOW ahead: nothing that a correct peer sends */
};

void rd_rx_init(struct rd_rx *rx, uint32_t first);
void rd_rx_free(struct rd_rx *rx);
enum rd_seen rd_rx_look(const struct rd_rx *rx, uint32_t psn);
/* Marks a number that is RD_NEW; `next` moves over everything that is there. 0 or -ENOMEM:
 * then nothing has changed and the packet must be treated as lost. -EINVAL: it is not RD_NEW. */
int rd_rx_mark(struct rd_rx *rx, uint32_t psn);
/* The bitmap of what is beyond `next`, as wire_rd.h's ACK has it. Returns the number of
 * words, at most max. */
unsigned int rd_rx_sack(const struct rd_rx *rx, uint64_t *words, unsigned int max);

#endif
