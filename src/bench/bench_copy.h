/* What a copy costs, as it is saved where a message needs none: from a buffer to another, both in
 * the caches. Many at a time, since one is shorter than a look at the clock. */
#ifndef WEFT_BENCH_COPY_H
#define WEFT_BENCH_COPY_H

#include <stddef.h>

/* Seconds, the median of some. */
double bench_copy_time(void *to, const void *from, size_t size);

#endif
