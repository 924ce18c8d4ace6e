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

/* The first word of a line; of the others only the beginning of the one that is being read. */
struct fabric_line {
	char *word; /* ends with a zero */
	size_t len, room;
	char other[32];
	size_t other_len;
	bool zero;  /* there is a zero byte in the line */
	bool slots; /* it asks for more than one rank on the host, as Open MPI's slots=4 does */
};

/* 1: there was a line, 0: there is no further one, or -ENOMEM. The word is the caller's. */
int fabric_line_read(FILE *f, struct fabric_line *line);

/* Fills order with the hosts of the set. 0 or -ENOMEM. */
int fabric_order_worst(const struct fabric_pgft *t, const struct fabric_set *set, uint32_t *order);

#endif
