/* A sum by which memory that somebody else is writing to, in whatever order, can be told to be
 * complete. Pure.
 *
 * Not against an enemy, who could write anything anyway, but against time: whatever is there of the
 * bytes, old or new, if some are old and differ, the sum differs, but for one chance in 2^64.
 */
#ifndef WEFT_COLL_SUM_H
#define WEFT_COLL_SUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t coll_sum(uint64_t seed, const void *data, size_t len);

#endif
