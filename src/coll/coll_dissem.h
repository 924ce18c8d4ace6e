/* n-way dissemination: a barrier in which every rank tells n others in each round.
 *
 * With distance d = (n+1)^r in round r, rank i tells (i + k·d) mod P and hears from
 * (i − k·d) mod P, for k = 1 … n. After a round a rank knows of (n+1) times as many as before, so
 * that ⌈log_(n+1) P⌉ rounds are enough. What k·d ≥ P would tell is known already, and left out:
 * then all that a rank tells in a round are different ranks, and none is itself.
 *
 * One message per round is best where messages are dear and the way is short; where a message
 * costs much less than the way takes, several share it. That is predicted from two numbers, o for a
 * message and L for the way (in any unit of time): a round of n messages takes
 * max(2·n·o, (n+1)·o + L). What is not far from the best by that is tried, and times decide.
 *
 * Pure: no state but the three numbers, no clock.
 */
#ifndef WEFT_COLL_DISSEM_H
#define WEFT_COLL_DISSEM_H

#include <stdint.h>

struct coll_dissem {
	uint32_t ranks;  /* P */
	uint32_t ways;   /* n */
	uint32_t rounds; /* 0 for one rank */
};

/* ranks ≥ 1; ways of 1 … ranks − 1, others are made the nearest of these. */
void coll_dissem_init(struct coll_dissem *d, uint32_t ranks, uint32_t ways);

/* How many a rank tells in a round; the same for all, and as many tell it. At most d->ways. */
uint32_t coll_dissem_width(const struct coll_dissem *d, uint32_t round);

/* The k-th that a rank tells, and that tells it, k = 0 … width − 1. */
uint32_t coll_dissem_to(const struct coll_dissem *d, uint32_t rank, uint32_t round, uint32_t k);
uint32_t coll_dissem_from(const struct coll_dissem *d, uint32_t rank, uint32_t round, uint32_t k);

/* What it takes by the two numbers. */
double coll_dissem_cost(const struct coll_dissem *d, double o, double L);

/* The cheapest for this many ranks; of equal ones that with the fewest ways. */
struct coll_dissem coll_dissem_best(uint32_t ranks, double o, double L);

/* Those that are worth a try: for each number of rounds the one with the fewest ways, if it is
 * predicted to take at most COLL_DISSEM_FAR times the best. The best comes first, the others with
 * ever more ways. Returns how many; 1: there is nothing to find out. */
#define COLL_DISSEM_FAR   3
#define COLL_DISSEM_TRIES 32
uint32_t coll_dissem_tries(uint32_t ranks, double o, double L,
			   struct coll_dissem tries[COLL_DISSEM_TRIES]);

/* Which of them it shall be by what they took: what was predicted to be the best, unless another
 * is better by more than noise, a tenth. */
uint32_t coll_dissem_choose(const uint64_t *ns, uint32_t count);

#endif
