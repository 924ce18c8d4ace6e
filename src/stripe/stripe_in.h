/* Inside of src/stripe only. */
#ifndef WEFT_STRIPE_IN_H
#define WEFT_STRIPE_IN_H

#include "stripe.h"

/* May be used: it is up, or none is. */
bool stripe_usable(const struct stripe_conf *c, const struct stripe_peer *p, uint32_t path);

/* The usable paths by weight, the heaviest first; of equal ones those that come first. Returns
 * how many there are, at least one. */
uint32_t stripe_sort(const struct stripe_conf *c, const struct stripe_peer *p, uint32_t *path);

/* Of pieces: stripe_rate.c. */

#define STRIPE_OUTSTANDING 2 /* of each path; with one, the next waits for a round trip */

/* A message is cut into so many. */
#define STRIPE_PIECES    64
#define STRIPE_PIECE_MAX (UINT64_C(4) << 20)

void stripe_rate_begin(const struct stripe_conf *c, struct stripe_msg *m);

/* What all paths together carry; 0: nobody knows. */
double stripe_line(const struct stripe_conf *c, const struct stripe_peer *p);

/* What is remembered of a path; a path that nobody has tried is as good as one of `among` on
 * which the line is divided evenly, or as the others are. 0: nothing is known of any. */
double stripe_remembered(const struct stripe_conf *c, const struct stripe_peer *p, uint32_t path,
			 uint32_t among);

/* Of the n paths, the one that is to have the next piece, and how long that is. */
bool stripe_rate_next(const struct stripe_conf *c, const struct stripe_peer *p,
		      const struct stripe_msg *m, const uint32_t *path, uint32_t n,
		      struct stripe_piece *piece);

/* A piece has arrived: what the ones that were found before say now counts. Returns the paths
 * whose rates have changed, as bits. */
uint32_t stripe_rate_done(struct stripe_peer *p, struct stripe_msg *m,
			  const struct stripe_piece *piece, uint64_t began, uint64_t now);

/* All have. Returns the rate of the message; 0: it says nothing. */
double stripe_rate_end(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		       uint64_t now);

/* What is remembered of paths that were not used grows old. */
void stripe_rate_drift(const struct stripe_conf *c, struct stripe_peer *p, const uint32_t *path,
		       uint32_t n);

extern const struct stripe_policy stripe_single, stripe_original, stripe_even, stripe_roundrobin,
	stripe_weighted, stripe_hsam, stripe_bss, stripe_pull, stripe_hop;

#endif
