/* Striping: how a message is divided over several paths to the same receiver, and what is learnt
 * from how long the stripes took. From the paper on hot-spot avoidance (Vishnu and others).
 *
 *	original      one path
 *	hsam:N        all of N paths, by weight
 *	bss:N,B       the B heaviest of N paths, by weight (batch-based striping and sorting)
 *
 * The first is bss:1,1 and the second bss:N,N, so there is one set of functions: weights in,
 * shares out. They know no clock, no network and no memory but what the caller gives them. The
 * weights of a pair of sender and receiver belong to one thread at a time.
 *
 * Equations of the paper, and what had to be settled:
 *	(1) w_i = W_total / n_paths. W_total is 1 here.
 *	    "The first n_batch of a non-decreasing weight sorted array" would be the lightest, the
 *	    worst ones; they are the heaviest. Of equal ones those that come first.
 *	    Stripe i has w_i / W_batch · M bytes.
 *	(2), (3) w'_i = (1 − α)·w_i + α·W_batch·(w_i/t_i) / Σ w_k/t_k, over the batch.
 *	    A stripe of no bytes has no time: its path is left out of the sums and keeps its weight.
 */
#ifndef WEFT_FABRIC_STRIPE_H
#define WEFT_FABRIC_STRIPE_H

#include <stddef.h>
#include <stdint.h>

#define FABRIC_STRIPE_PATHS_MAX 16

struct fabric_stripe {
	uint32_t paths, batch; /* 1 … FABRIC_STRIPE_PATHS_MAX; batch ≤ paths */
	double alpha;          /* 0 … 1, how fast is learnt */
};

#define FABRIC_STRIPE_ALPHA 0.95 /* the paper's */

struct fabric_share {
	uint32_t path;
	uint64_t bytes;
};

/* Returns 0, or -EINVAL with one sentence in why. */
int fabric_stripe_parse(struct fabric_stripe *s, const char *text, char *why, size_t why_size);

#define FABRIC_STRIPE_NAME_MAX 32
void fabric_stripe_print(const struct fabric_stripe *s, char text[FABRIC_STRIPE_NAME_MAX]);

/* Equation 1. */
void fabric_stripe_begin(const struct fabric_stripe *s, double *weight);

/* Divides a message: the number of shares, heaviest path first; their bytes add up, and none is
 * empty. */
uint32_t fabric_stripe_divide(const struct fabric_stripe *s, const double *weight, uint64_t bytes,
			      struct fabric_share *share);

/* Equation 3, with the time that each share of one message took, in any unit. */
void fabric_stripe_learn(const struct fabric_stripe *s, double *weight,
			 const struct fabric_share *share, const uint64_t *time, uint32_t shares);

#endif
