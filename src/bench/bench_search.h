/* How long it takes to find a buffer in the table of those that are sent from often (msg_reuse.h),
 * beside a balanced tree (figure 5.4 of the thesis). */
#ifndef WEFT_BENCH_SEARCH_H
#define WEFT_BENCH_SEARCH_H

#include <stddef.h>

/* Prints a table; so many rounds of so many looks. 0 or -errno. */
int bench_search(size_t rounds, size_t looks);

#endif
