/* Node order: which host a rank runs on. */
#ifndef WEFT_FABRIC_ORDER_H
#define WEFT_FABRIC_ORDER_H

#include <stdio.h>

#include "fabric_pgft.h"

/* Fills hosts[0 … n−1], n = fabric_hosts(t), with the host of each rank.
 *
 *	routing        0, 1, 2, … : the order that D-Mod-K is free of contention in
 *	random:SEED    hosts shuffled by the portable rule (util_rand.h)
 *	file:F         host names, the first word of each line, each host at most once; blank
 *	               lines and what follows '#' do not count
 *
 * A file may name fewer hosts than there are; *count says how many. Returns 0, or -EINVAL or
 * the errno of the file with one sentence in why. */
int fabric_order(const struct fabric_pgft *t, const char *text, uint32_t *hosts, uint32_t *count,
		 char *why, size_t why_size);

/* The same for a file that is open, with the name that sentences give it. */
int fabric_order_read(const struct fabric_pgft *t, FILE *from, const char *name, uint32_t *hosts,
		      uint32_t *count, char *why, size_t why_size);

#endif
