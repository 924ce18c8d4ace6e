/* Clocks of hosts, compared by messages of the MPI.
 *
 * Collective: all ranks of the communicator call it together. Good to about half of the difference
 * between the two ways of the fastest message there and back, and for as long as clocks run alike:
 * so they are compared again if the last time was half a second ago, in which clocks of computers
 * drift apart by some 10 us. Comparing takes eight messages there and back for each host, one host
 * after another.
 */
#ifndef WEFT_COLL_CLOCK_H
#define WEFT_COLL_CLOCK_H

#include "coll_comm.h"

/* With more hosts than that it would take too long. */
#define COLL_CLOCK_HOSTS 64

/* What messages are sent from and received into; it must stay if the communicator breaks. */
struct coll_clock {
	double own[COLL_CLOCK_HOSTS], tmp[COLL_CLOCK_HOSTS];
	double time;
	uint64_t compared; /* when; 0: never. Rank 0's counts */
	double offset;
	bool again;
};

/* *ns: to be added to times of this host, and they are those of the first one. 0 or -errno. */
int coll_clock_offset(struct coll_comm *c, struct coll_clock *k, double *ns);

#endif
