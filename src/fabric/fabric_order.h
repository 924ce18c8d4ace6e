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

/* Those that a file names, as hostfiles of Open MPI and MPICH and lists of Slurm do: the first
 * word of each line counts, "host7", "host7:1" or "host00[01-12,15],login1"; blank lines and what
 * follows '#' do not. Each host at most once, with one rank (slots=2 and host7:2 are refused), and
 * all must be there. Returns 0, or -EINVAL,
 * -ENOMEM or the errno of the file with one sentence in why. */
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
