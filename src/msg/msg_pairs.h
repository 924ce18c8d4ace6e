/* Which address of ours talks to which of a peer's. A pure function.
 *
 * Each address of a peer has one of ours: of those in its subnet, if there are any, else of all.
 * Those that could have the same take turns, both sides in the order of their lists. So hosts that
 * have several addresses in one subnet, each with a way of its own (LMC), use way number i from
 * address i to address i; and of hosts with several interfaces, each talks to its counterpart.
 */
#ifndef WEFT_MSG_PAIRS_H
#define WEFT_MSG_PAIRS_H

#include <stdint.h>
#include "msg_wire.h"

/* Network order. */
struct msg_own {
	uint32_t ip, mask;
	uint8_t sgid; /* the device's number of it */
};

struct msg_pair {
	uint32_t own;  /* which of ours */
	uint32_t peer; /* in network order */
};

/* One for each address of the peer that may be one: how many, at most MSG_ADDRS. Left out are those
 * that occur twice, that are ours, as those of bridges are that every machine has, and that are
 * nobody's (0.0.0.0, multicast, loopback unless we have such, too). first: the address that the
 * peer is known by, whose pair is the first, whether it is in the list or not. n_own: 1 to
 * MSG_ADDRS. */
uint32_t msg_pairs(const struct msg_own *own, uint32_t n_own, uint32_t first, const uint32_t *peer,
		   uint32_t n_peer, struct msg_pair out[MSG_ADDRS]);

#endif
