/* When somebody who is inside an operation of the MPI's own has been there for long enough to look
 * for the others, and for too long after one of them was lost. Pure: time is given.
 *
 * A turn is odd while its owner is inside, and each time another one.
 */
#ifndef WEFT_COLL_WATCH_H
#define WEFT_COLL_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct coll_watch {
	uint32_t turn; /* that was seen last */
	uint64_t since;
	uint64_t lost; /* when somebody was found to be; 0: nobody */
};

enum coll_watch_next {
	COLL_WATCH_NOTHING, /* nobody is inside, and nobody was since the last time */
	COLL_WATCH_WAIT,    /* not for long */
	COLL_WATCH_LOOK,
	COLL_WATCH_END,
};

#define COLL_WATCH_AFTER_NS UINT64_C(1000000000) /* inside: it is time to look for others */

/* lost: somebody is, as far as is known. patience: what the MPI has to notice by itself, 0: as long
 * as it wants. */
enum coll_watch_next coll_watch_step(struct coll_watch *w, uint32_t turn, bool lost, uint64_t now,
				     uint64_t patience);

/* A question whether somebody is there has failed: from when on it counts as lost.
 *
 * Where a process has died, its system says so within a second or two. Where nothing is heard until
 * the network gives up, which it may do for good, it, or we, may only have been stopped: what the
 * MPI itself hears of it later is waited for. */
#define COLL_WATCH_SURE_NS   UINT64_C(5000000000)
#define COLL_WATCH_SILENT_NS UINT64_C(30000000000)
uint64_t coll_watch_lost_at(uint64_t asked, uint64_t failed);

#endif
