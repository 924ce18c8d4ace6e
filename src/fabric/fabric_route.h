/* Routing: which port a node uses for a destination. Pure functions over the tuple.
 *
 * All routings here go up to a common ancestor and then down. Going down, the child is
 * given by the destination and only the cable among p_l parallel ones is chosen; going up
 * every port leads to the destination, and that choice is what routings differ in.
 *
 * A destination is an address: host j and, with LMC, one of its 2^lmc addresses, a.
 *
 * dmodk    the closed form (1) of the paper: q = ⌊j / W_l⌋ mod (w_l+1·p_l+1). Down-going, the
 *          cable that a flow climbing to j would use, ⌊j / W_l⌋ mod p_l. Free of contention
 *          for every shift on a tree that obeys the RLFT rules.
 *          Address a > 0: each level's q is turned further by that level's digit of a, in
 *          the mixed radix w_l·p_l, so that a host's addresses take different ways for as
 *          long as there are any, and each address by itself is a D-Mod-K routing. The
 *          down-going cable is turned with it: still the one that a climb would use.
 * random   a table that knows no pattern: for node number g and destination j of n hosts,
 *          output number g·n·2^lmc + j·2^lmc + a (the first is number 0) of splitmix64
 *          seeded with SEED, modulo the number of choices. (Entries without a choice have
 *          their number, too, so that any entry can be computed by itself.)
 * ecmp     no choice: all ports. Whoever forwards packets hashes flows over them.
 */
#ifndef WEFT_FABRIC_ROUTE_H
#define WEFT_FABRIC_ROUTE_H

#include <stdint.h>

#include "fabric_pgft.h"

enum fabric_routing_kind { FABRIC_DMODK, FABRIC_ECMP, FABRIC_RANDOM };

#define FABRIC_LMC_MAX 7 /* as InfiniBand */

struct fabric_routing {
	enum fabric_routing_kind kind;
	uint64_t seed; /* of random */
	uint32_t lmc;
};

/* Parses "dmodk", "ecmp", "random:SEED" or "lmc:K" (D-Mod-K with 2^K addresses per host).
 * Returns 0, or -EINVAL with one sentence in why. */
int fabric_routing_parse(struct fabric_routing *r, const char *text, char *why, size_t why_size);

#define FABRIC_ROUTING_NAME_MAX 32
void fabric_routing_print(const struct fabric_routing *r, char text[FABRIC_ROUTING_NAME_MAX]);

/* The ports that a node may use for a destination: count of them, from first on, stride apart.
 * One port, except for ecmp. At the destination itself count is 0. */
struct fabric_ports {
	bool up;
	uint32_t first, stride, count;
};

struct fabric_ports fabric_route(const struct fabric_pgft *t, const struct fabric_routing *r,
				 struct fabric_node n, uint32_t host, uint32_t address);

#endif
