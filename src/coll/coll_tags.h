/* Which tags of the library's own communicator a communicator's messages have: its first rank gives
 * them out, each rank from a share of the MPI's tags, so that no two ranks give out the same.
 *
 * Another thread of another rank may still be in the last call of a communicator that has been
 * freed here: so what comes back is given again as late as possible. Pure; the caller locks.
 */
#ifndef WEFT_COLL_TAGS_H
#define WEFT_COLL_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "coll_bank.h"

struct coll_tags {
	int64_t from;      /* the first of the share, in sets */
	uint32_t set;      /* tags that a communicator has */
	uint32_t n_places; /* that can be given at a time; 0: there are too few tags */
	uint32_t last;
	int64_t turns; /* until a place gives the same tags again */
	struct {
		bool given;
		uint32_t turn;
	} place[COLL_MAX_COMMS];
};

/* most: MPI_TAG_UB. All are zero before. */
void coll_tags_share(struct coll_tags *t, int most, uint32_t set, uint32_t rank, uint32_t ranks);
/* The first of a set; -1: none is left. */
int coll_tags_give(struct coll_tags *t);
void coll_tags_back(struct coll_tags *t, int tag);

#endif
