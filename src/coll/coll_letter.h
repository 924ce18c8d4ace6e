/* Writes that may outlive the call, and the communicator: whether somebody of another host is
 * there, and that a communicator is broken. From any thread; whoever makes progress finishes them.
 */
#ifndef WEFT_COLL_LETTER_H
#define WEFT_COLL_LETTER_H

#include "coll_comm.h"
#include "util_clock.h"

#define COLL_LETTER_NS (100 * UTIL_NS_PER_MS) /* for all of them, by who has nothing else to do */

/* tag: of the question; err: -errno if nobody is there. */
typedef void (*coll_answered)(struct coll_comm *c, uint32_t rank, uint32_t tag, int err);

/* Asks whether a rank of another host is there, by a write that nobody notices, but that fails if
 * nobody is. `answered` is called once, unless the communicator has ended by then. Returns 0, or
 * -errno: of these -EAGAIN and -ENOMEM mean that there is no room now; others, that the network has
 * given the rank up before. */
int coll_letter_ask(struct coll_comm *c, uint32_t rank, uint32_t tag, coll_answered answered);

/* Tells everybody, once, that the communicator is broken: whoever waits for us, or for somebody who
 * waits for us, would do so for ever. One rank of a host tells all of the others', and takes at
 * most so long, 0: does not wait. Those who are not told look for everybody by themselves, only not
 * so soon. */
void coll_letter_broken(struct coll_comm *c, uint64_t ns);

#endif
