/* Striping: which of several paths to a peer the pieces of a message take, and what is learnt from
 * how long they took. After the paper on hot-spot avoidance (Vishnu and others), and beyond it.
 *
 *	single        one path, the first; also called original, as in the paper
 *	even:N        the same share on each of N paths
 *	roundrobin:N  each message whole, on the next of N paths
 *	weighted:W,…  shares as these weights say
 *	hsam:N        shares by weights that are learnt, on all of N paths
 *	bss:N,B       the same, on the B heaviest of N paths
 *	pull:N        small pieces, each path takes the next when it is done with one
 *	pull:N,B      the same, on the B paths that were the fastest lately
 *	hop:N         small pieces on a few of N paths; who is slow moves to another
 *
 * A policy is a table of pure functions (struct stripe_policy): they know no clock, no network, no
 * memory but what the caller gives them. The communication scheduler asks stripe_next() for pieces
 * until there is none, posts them, and asks again when one is done; the completion filter tells
 * stripe_done() of each. The same functions serve the engine (src/msg) and the simulator
 * (src/fabric).
 *
 * Equations of the paper, and what had to be settled (stripe_shares.c):
 *	(1) w_i = W_total / n_paths. W_total is 1 here.
 *	    "The first n_batch of a non-decreasing weight sorted array" would be the lightest, the
 *	    worst ones; they are the heaviest. Of equal ones those that come first.
 *	    Stripe i has w_i / W_batch · M bytes.
 *	(2), (3) w'_i = (1 − α)·w_i + α·W_batch·(w_i/t_i) / Σ w_k/t_k, over the batch.
 *	    A stripe of no bytes has no time: its path is left out of the sums and keeps its weight.
 *
 * A path that failed is down until stripe_heal(); where all are, all are tried. Completions that
 * are found late, all that was under way at one time, say nothing of the paths: nothing is learnt
 * from these (section 4.3.2 of the paper, third case).
 *
 * Times are in any unit, the same in all calls. What belongs to a peer or to a message belongs to
 * one thread at a time. Several messages to one peer may be under way at once.
 */
#ifndef WEFT_STRIPE_H
#define WEFT_STRIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util_rand.h"

#define STRIPE_PATHS_MAX 16

struct stripe_policy;

struct stripe_conf {
	const struct stripe_policy *policy;
	uint32_t paths, batch;          /* 1 … STRIPE_PATHS_MAX; batch ≤ paths */
	double alpha;                   /* 0 … 1, how fast weights are learnt */
	double fixed[STRIPE_PATHS_MAX]; /* the weights of `weighted` */
	uint64_t least;                 /* the shortest piece that is worth its cost, in bytes */
	uint64_t last;                  /* the same at the end of a message; 0: the same */
	/* What all paths together carry, in bytes per unit of time; 0: not known, so what was
	 * seen counts. */
	double line;
};

#define STRIPE_ALPHA 0.95 /* the paper's */
#define STRIPE_LEAST 8192 /* of stripe_parse(); see stripe_least() */

/* What is known of the paths to one peer. */
struct stripe_peer {
	double weight[STRIPE_PATHS_MAX]; /* of hsam and bss: shares; of pull and hop: rates */
	bool down[STRIPE_PATHS_MAX];     /* not to be used now */
	uint32_t out[STRIPE_PATHS_MAX];  /* pieces under way, of all messages */
	uint32_t turn;                   /* of roundrobin: the next path */
	/* Of hop: the paths in use, and how the last messages went. */
	uint32_t slots, slot[STRIPE_PATHS_MAX];
	uint32_t slow, fast;
	double line;          /* the best rate that was seen of all paths together */
	uint64_t ended, took; /* the last message: when, and how long it took */
	struct util_rand rand;
};

struct stripe_range {
	uint64_t offset, bytes;
};

/* So many pieces of a message are under way at most. */
#define STRIPE_OUT_MAX (2 * STRIPE_PATHS_MAX)

/* A message under way. */
struct stripe_msg {
	uint64_t bytes, left;                     /* of it; not given out yet */
	uint64_t at;                              /* what was never given out begins here */
	struct stripe_range lost[STRIPE_OUT_MAX]; /* to be sent again */
	uint32_t n_lost;
	uint32_t all_out;                  /* pieces under way, on all paths */
	uint32_t out[STRIPE_PATHS_MAX];    /* on each */
	uint64_t flying[STRIPE_PATHS_MAX]; /* their bytes */
	uint32_t used;                     /* the paths that had any, as bits */
	uint64_t piece;                    /* how long pieces are; of shares 0 */
	uint32_t order[STRIPE_PATHS_MAX];  /* the paths that it takes, the best first */
	uint32_t paths;                    /* so many */
	bool fresh;                        /* what is known of the paths is of just now */
	uint64_t began;                    /* when the first piece was posted */
	uint64_t now;                      /* the last completion */
	uint32_t found, were_out;          /* completions at that time; under way just before */
	bool any;                          /* there was one */
	/* Those at that time were all that was under way, so they are late; and those before
	 * were. */
	bool late, dry;
	/* Something failed, or had nothing to do: how long it all took says little. */
	bool torn;
	/* Of shares. */
	uint64_t share[STRIPE_PATHS_MAX]; /* not given out yet, of each path */
	double by[STRIPE_PATHS_MAX];      /* the weights when it was divided */
	uint64_t time[STRIPE_PATHS_MAX];  /* what each share took; 0: none did */
	/* Of pieces: the last two completions of each path, how many there were, and what they
	 * say of its rate, which counts when the next one is found. */
	uint64_t last[STRIPE_PATHS_MAX], before[STRIPE_PATHS_MAX];
	uint64_t last_bytes[STRIPE_PATHS_MAX];
	uint32_t seen[STRIPE_PATHS_MAX];
	double sample[STRIPE_PATHS_MAX];
};

struct stripe_piece {
	uint32_t path;
	uint64_t offset, bytes; /* of the message */
};

/* What each policy is. All may rely on the calls below having checked arguments, and keeping
 * account of what is left, lost and under way. */
struct stripe_policy {
	const char *name;
	void (*init)(const struct stripe_conf *c, struct stripe_peer *p);
	void (*begin)(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m);
	/* Path and bytes; of what is sent again, the path only. False: nothing can be sent before
	 * something else is done. */
	bool (*next)(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		     struct stripe_piece *piece);
	void (*done)(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		     const struct stripe_piece *piece, uint64_t began, uint64_t now);
	/* All of a message has arrived. */
	void (*end)(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		    uint64_t now);
	/* A path is to be used again. */
	void (*heal)(const struct stripe_conf *c, struct stripe_peer *p, uint32_t path);
};

/* Returns 0, or -EINVAL with one sentence in why; *c is as it was then. */
int stripe_parse(struct stripe_conf *c, const char *text, char *why, size_t why_size);

#define STRIPE_NAME_MAX 128
void stripe_print(const struct stripe_conf *c, char text[STRIPE_NAME_MAX]);

void stripe_peer_init(const struct stripe_conf *c, struct stripe_peer *p, uint64_t seed);

/* Whether each message goes whole, on the next path: short ones may do so, too. */
bool stripe_whole(const struct stripe_conf *c);

/* The shortest piece that is worth its cost on a line of so many bytes per ns; 0: not known. */
uint64_t stripe_least(double line);

/* now: of the same clock as below. */
void stripe_begin(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		  uint64_t bytes, uint64_t now);
/* The next piece to be sent; false: none now, or all have been given out (m->left is 0). At least
 * one is under way as long as m->left is not 0. */
bool stripe_next(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		 struct stripe_piece *piece);
/* A piece has arrived that was posted then. True: with it all of the message has. */
bool stripe_done(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		 const struct stripe_piece *piece, uint64_t began, uint64_t now);
/* It has not, and must be sent again: its bytes are left again, its path is down. */
void stripe_failed(const struct stripe_conf *c, struct stripe_peer *p, struct stripe_msg *m,
		   const struct stripe_piece *piece);
/* It has not, and what becomes of the message is of no interest any more. */
void stripe_forget(struct stripe_peer *p, struct stripe_msg *m, const struct stripe_piece *piece);
/* A path does not work: no pieces for it. What is under way there comes by itself, or fails. */
void stripe_down(const struct stripe_conf *c, struct stripe_peer *p, uint32_t path);
/* A path that was down may be tried again. */
void stripe_heal(const struct stripe_conf *c, struct stripe_peer *p, uint32_t path);

#endif
