/* What the files of fabric_order share among themselves. */
#ifndef WEFT_FABRIC_ORDER_IN_H
#define WEFT_FABRIC_ORDER_IN_H

#include "fabric_order.h"

/* Reads host names into hosts, which has room for all of the tree. With a set it is an order of
 * some of it, which no line may ask for twice; NULL: any may be named, with any number of ranks. */
int fabric_names_read(const struct fabric_tree *t, const struct fabric_set *set, FILE *from,
		      const char *name, uint32_t *hosts, uint32_t *count, char *why,
		      size_t why_size);
int fabric_names_file(const struct fabric_tree *t, const struct fabric_set *set, const char *path,
		      uint32_t *hosts, uint32_t *count, char *why, size_t why_size);

/* Fills order with the hosts of the set. 0 or -ENOMEM. */
int fabric_order_worst(const struct fabric_pgft *t, const struct fabric_set *set, uint32_t *order);

#endif
