/* Sequence numbers: 32 bits that wrap around. Comparisons hold as long as the numbers are
 * less than 2^31 apart. */
#ifndef WEFT_RD_SEQ_H
#define WEFT_RD_SEQ_H

#include <stdbool.h>
#include <stdint.h>

/* How far b is behind a; negative when it is ahead. */
static inline int32_t rd_seq_diff(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b);
}

static inline bool rd_seq_before(uint32_t a, uint32_t b)
{
	return rd_seq_diff(a, b) < 0;
}

/* The largest distance between the oldest packet that is not acknowledged and the newest
 * that was sent. */
#define RD_WINDOW 8192

#endif
