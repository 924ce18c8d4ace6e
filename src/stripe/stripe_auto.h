/* Whether messages are worth dividing. Where the network loses more than a few of the packets that
 * take a single path, although the own link has room, or the path has not half of what the link
 * has, it is crowded somewhere; elsewhere nothing changes. Whether it helps is then measured: some
 * messages are divided, and if these do not move faster than the ones before did, it is left alone
 * for a while, which becomes longer each time.
 *
 * After many divided messages some go undivided, to see whether packets are still lost; the longer
 * they were, the rarer. It is one decision for all peers: divided and undivided messages get into
 * each other's way. For the same reason who hears of others that divide theirs tries it sooner, and
 * goes on unless it is slower for it: alone, and waiting for others, nobody would see a gain. Pure.
 */
#ifndef WEFT_STRIPE_AUTO_H
#define WEFT_STRIPE_AUTO_H

#include <stdbool.h>
#include <stdint.h>

#define STRIPE_AUTO_SENT   256  /* packets are enough to tell, ... */
#define STRIPE_AUTO_LOST   400  /* ... if one of so many is lost */
#define STRIPE_AUTO_ENOUGH 4    /* messages of a kind, or twice as many as go at once */
#define STRIPE_AUTO_FIRST  256  /* are divided where it helps, ... */
#define STRIPE_AUTO_MOST   4096 /* ... and after many of these */
#define STRIPE_AUTO_HOLD   64   /* that are not, after it was of no use; many more at last */
#define STRIPE_AUTO_FULL   0.8  /* of the own link: there is nothing to gain */
#define STRIPE_AUTO_SLOW   0.5  /* of it, if that is known: also if nothing is lost */
#define STRIPE_AUTO_GAIN   1.2  /* what it has to gain, unless others divide theirs */
#define STRIPE_AUTO_HEARD  8    /* of those that are not, for each of another that is */
/* More than so many at once are spread over the network by themselves, and their pace says less:
 * the last of them have the link alone, and wait for others. */
#define STRIPE_AUTO_MANY      8
#define STRIPE_AUTO_MANY_FULL 0.6
#define STRIPE_AUTO_MANY_GAIN 2.0

/* Bytes that have arrived, and the time in which there was something under way. */
struct stripe_auto_pace {
	uint64_t bytes, ns;
	uint32_t n; /* messages */
};

struct stripe_auto {
	uint64_t sent, lost;            /* packets, when they last told something */
	uint32_t span;                  /* so many are divided after the next loss; 0: as a trial */
	uint32_t left;                  /* of them */
	bool trial;                     /* the present span is one */
	uint32_t hold, held;            /* losses say nothing for so many; were, the last time */
	bool heard;                     /* others divide theirs */
	uint32_t calm;                  /* times in a row that little was lost */
	uint32_t out, peak;             /* under way; the most that were */
	uint64_t until;                 /* time is counted up to here */
	struct stripe_auto_pace single; /* since the last look */
	struct stripe_auto_pace divided; /* of this one */
	double rate;                     /* of undivided ones, before it */
};

/* For each long message: packets so far, those of them that were lost, and what the own link
 * carries in a nanosecond, if that is known. True: divide it. */
bool stripe_auto(struct stripe_auto *a, uint64_t sent, uint64_t lost, double link);
/* One has arrived, all of it, or (0 bytes) never will. */
void stripe_auto_done(struct stripe_auto *a, bool divided, uint64_t bytes, uint64_t began,
		      uint64_t now);

/* Somebody else has divided a message to us. */
void stripe_auto_heard(struct stripe_auto *a);

#endif
