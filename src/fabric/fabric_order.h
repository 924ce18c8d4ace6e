/* Which hosts take part, and node order: which host a rank runs on. */
#ifndef WEFT_FABRIC_ORDER_H
#define WEFT_FABRIC_ORDER_H

#include <stdio.h>

#include "fabric_pgft.h"
#include "fabric_tree.h"

/* ---- who takes part ---- */

/* Hosts by number, ascending, each once. */
struct fabric_set {
	uint32_t *hosts;
	uint32_t count;
};

/* All hosts that the fabric has, and that have a cable. 0 or -ENOMEM. */
int fabric_set_all(struct fabric_set *s, const struct fabric_tree *t);

/* Of these, without K that are chosen by the portable rule (util_rand.h): the numbers of all
 * hosts, missing ones included, are shuffled, and the first K left out. text is "K:SEED".
 * Returns 0, or -EINVAL or -ENOMEM with one sentence in why. */
int fabric_set_exclude(struct fabric_set *s, const struct fabric_tree *t, const char *text,
		       char *why, size_t why_size);

/* Those that a file names, as hostfiles of Open MPI and MPICH and lists of Slurm do: a name per
 * line, "host7", "host7:1" or "host00[01-12,15],login1", and behind it nothing but what launchers
 * may be told of a host, "slots=1", "ifhn=ib0"; or as rankfiles do, "rank 0=host7 slot=0", with
 * ranks from 0 on in any order. Blank lines and what follows '#' do not count.
 * Each host at most once, and all must be there. In an order, each has one rank (slots=2 and
 * host7:2 are refused). A machine with several hosts stands for all of them if it is named once;
 * named several times, or with a number of ranks in an order, for one after the other in the order
 * of the tree. In a rankfile its slot says which, if it is one. Returns 0, or -EINVAL, -ENOMEM or
 * the errno of the file with one sentence in why. */
int fabric_set_file(struct fabric_set *s, const struct fabric_tree *t, const char *path, char *why,
		    size_t why_size);
int fabric_set_read(struct fabric_set *s, const struct fabric_tree *t, FILE *from, const char *name,
		    char *why, size_t why_size);
void fabric_set_free(struct fabric_set *s);

/* The compact index (fabric_routes.h): by host, its place in the set, or FABRIC_NONE. NULL without
 * memory; the caller frees it. */
uint32_t *fabric_set_index(const struct fabric_set *s, const struct fabric_tree *t);

/* ---- in which order ---- */

/* Fills hosts[0 … *count−1], which has room for all of the set, with the host of each rank.
 *
 *	routing        ascending: the order that D-Mod-K is free of contention in
 *	compact        the same. With routes by the compact index it is free of contention for
 *	               any set whose size is a multiple of M_h−1
 *	random:SEED    the set shuffled by the portable rule (util_rand.h)
 *	adversarial    the worst for a ring with D-Mod-K: all hosts of a leaf send to other leaves,
 *	               and all by the same up-going port, as far as there are such destinations
 *	file:F         as named in a file (see fabric_set_file); it may name fewer than the set has
 *
 * Returns 0, or -EINVAL, -ENOMEM or the errno of the file with one sentence in why. */
int fabric_order_of(const struct fabric_tree *t, const struct fabric_set *set, const char *text,
		    uint32_t *hosts, uint32_t *count, char *why, size_t why_size);

/* The same for all hosts of a whole tree. */
int fabric_order(const struct fabric_pgft *t, const char *text, uint32_t *hosts, uint32_t *count,
		 char *why, size_t why_size);

/* The same for a file that is open, with the name that sentences give it. */
int fabric_order_read(const struct fabric_pgft *t, FILE *from, const char *name, uint32_t *hosts,
		      uint32_t *count, char *why, size_t why_size);

#endif
