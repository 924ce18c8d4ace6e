/* Whether messages to a peer are worth dividing: packets that the network loses on the one path
 * that they would otherwise take say that it is crowded. So nothing changes where it is not.
 *
 * While messages are divided that path says little, so after some of them one goes undivided, to
 * see whether it still is; the longer it has been so, the rarer. Pure.
 */
#ifndef WEFT_STRIPE_AUTO_H
#define WEFT_STRIPE_AUTO_H

#include <stdbool.h>
#include <stdint.h>

#define STRIPE_AUTO_FIRST 64   /* messages that are divided after a loss, ... */
#define STRIPE_AUTO_MOST  1024 /* ... and after many */

struct stripe_auto {
	uint64_t lost; /* packets, when last asked */
	uint32_t span; /* so many messages are divided after the next loss; 0: nothing was lost */
	uint32_t left; /* of them */
	uint32_t calm; /* undivided messages without a loss, since the last */
};

/* For each long message: `lost` packets on the undivided path so far. True: divide it. */
bool stripe_auto(struct stripe_auto *a, uint64_t lost);

#endif
