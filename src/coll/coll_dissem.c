#include "coll_dissem.h"

static uint32_t at_most(uint64_t a, uint32_t b)
{
	return a < b ? (uint32_t)a : b;
}

/* The distance of a round. Rounds end before it reaches the number of ranks. */
static uint32_t distance(const struct coll_dissem *d, uint32_t round)
{
	uint32_t dist = 1;

	while (round-- > 0)
		dist *= d->ways + 1;
	return dist;
}

void coll_dissem_init(struct coll_dissem *d, uint32_t ranks, uint32_t ways)
{
	uint64_t known = 1;

	if (ways < 1)
		ways = 1;
	if (ranks > 1 && ways > ranks - 1)
		ways = ranks - 1;
	*d = (struct coll_dissem){.ranks = ranks, .ways = ways};
	for (; known < ranks; known *= (uint64_t)ways + 1)
		d->rounds++;
}

uint32_t coll_dissem_width(const struct coll_dissem *d, uint32_t round)
{
	/* The largest k with k·d < P. */
	return at_most((d->ranks - 1) / distance(d, round), d->ways);
}

uint32_t coll_dissem_to(const struct coll_dissem *d, uint32_t rank, uint32_t round, uint32_t k)
{
	uint64_t step = (uint64_t)(k + 1) * distance(d, round);

	return (uint32_t)((rank + step) % d->ranks);
}

uint32_t coll_dissem_from(const struct coll_dissem *d, uint32_t rank, uint32_t round, uint32_t k)
{
	uint64_t step = (uint64_t)(k + 1) * distance(d, round);

	return (uint32_t)((rank + d->ranks - step) % d->ranks);
}

double coll_dissem_cost(const struct coll_dissem *d, double o, double L)
{
	double sum = 0;

	for (uint32_t round = 0; round < d->rounds; round++) {
		uint32_t n = coll_dissem_width(d, round);
		double busy = 2 * n * o, way = (n + 1) * o + L;

		sum += busy > way ? busy : way;
	}
	return sum;
}

/* The fewest ways with which r rounds are enough. */
static uint32_t ways_for(uint32_t ranks, uint32_t rounds)
{
	for (uint32_t ways = 1;; ways++) {
		uint64_t known = 1;

		for (uint32_t r = 0; r < rounds && known < ranks; r++)
			known *= (uint64_t)ways + 1;
		if (known >= ranks)
			return ways;
	}
}

/* More ways than a number of rounds needs only add messages, so there is one candidate for each
 * number of rounds; from many rounds to few, the ways only grow. */
struct coll_dissem coll_dissem_best(uint32_t ranks, double o, double L)
{
	struct coll_dissem best, d;

	coll_dissem_init(&best, ranks, 1);
	for (uint32_t rounds = best.rounds; rounds-- > 1;) {
		coll_dissem_init(&d, ranks, ways_for(ranks, rounds));
		if (coll_dissem_cost(&d, o, L) < coll_dissem_cost(&best, o, L))
			best = d;
	}
	return best;
}

uint32_t coll_dissem_tries(uint32_t ranks, double o, double L,
			   struct coll_dissem tries[COLL_DISSEM_TRIES])
{
	struct coll_dissem best = coll_dissem_best(ranks, o, L), d;
	double far = COLL_DISSEM_FAR * coll_dissem_cost(&best, o, L);
	uint32_t count = 0, before = 0;

	tries[count++] = best;
	coll_dissem_init(&d, ranks, 1);
	for (uint32_t rounds = d.rounds; rounds > 0; rounds--) {
		coll_dissem_init(&d, ranks, ways_for(ranks, rounds));
		/* The fewest ways for r rounds may do with fewer rounds. */
		if (d.ways != before && d.ways != best.ways && coll_dissem_cost(&d, o, L) <= far)
			tries[count++] = d;
		before = d.ways;
	}
	return count;
}

uint32_t coll_dissem_choose(const uint64_t *ns, uint32_t count)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < count; i++)
		if (ns[i] < ns[least])
			least = i;
	return (double)ns[least] < 0.9 * (double)ns[0] ? least : 0;
}
