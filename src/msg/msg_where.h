/* Paths by several addresses (RD).
 *
 * An endpoint is known by one address, and its device has perhaps more. Whoever is about to divide
 * the first message to a peer asks it for them (WHERE), goes on with the paths that it has, and is
 * told (HERE). What a peer says is not believed: an address may lead nowhere from here, to another
 * machine that has the same, or be a lie, and a queue pair waits with everything for a peer as long
 * as one path to it is new and does not answer. So each pair of addresses is tried first with an
 * empty write, by a *scout*, a queue pair that nothing else depends on. Pairs that have answered
 * become paths for the messages that begin from then on. Those that have not within a second are
 * tried some more times, later and later, since hosts may be busy.
 *
 * A peer is asked some times at most, too, its first answer counts, and answers that were not asked
 * for do not. Everything needs the endpoint's lock.
 */
#ifndef WEFT_MSG_WHERE_H
#define WEFT_MSG_WHERE_H

#include <stdbool.h>
#include <stdint.h>
#include "msg_pairs.h"

struct msg_ep;
struct msg_peer;
struct msg_scout;

/* What is known of a peer's addresses. */
struct msg_where {
	uint32_t id;    /* of the WHERE */
	uint32_t asked; /* so often */
	uint32_t tried; /* so often, too, ... */
	uint32_t at;    /* ... and that one is being tried; n_pairs: none is */
	uint64_t when;  /* it was asked, or pairs were tried last */
	uint32_t n_pairs;
	struct msg_pair pair[MSG_ADDRS]; /* 0 of them: it has not answered */
	uint32_t good, used;             /* as bits: have answered; are the paths now */
};

/* The device's own addresses, the first one of which endpoints are known by. */
struct msg_owns {
	uint32_t n; /* 0: nobody has asked yet */
	struct msg_own own[MSG_ADDRS];
};

/* A message to this peer is about to be divided. True: there are more pairs than at the last call.
 */
bool msg_where_news(struct msg_ep *ep, uint32_t peer);
/* Those that a peer is reached by, in their order; 0: only by the address that it is known by. */
uint32_t msg_where_pairs(const struct msg_peer *p, struct msg_pair out[MSG_ADDRS]);

void msg_where_asked(struct msg_ep *ep, uint32_t src, uint32_t id);
void msg_where_told(struct msg_ep *ep, uint32_t src, uint32_t id, const uint8_t *list,
		    uint64_t len);

/* What the scout has found. */
void msg_scout_collect(struct msg_ep *ep);
/* Before the endpoint's queue pair is destroyed. */
void msg_scout_close(struct msg_ep *ep);

#endif
