/* Addresses for a lab that nobody on this machine uses. */
#ifndef WEFT_LAB_NET_H
#define WEFT_LAB_NET_H

#include "lab.h"

/* Blocks of addresses that are taken. */
struct lab_nets {
	struct lab_net {
		uint32_t net, prefix;
	} * net;
	size_t n, room;
};

/* Returns 0 or -ENOMEM. */
int lab_nets_add(struct lab_nets *nets, uint32_t net, uint32_t prefix);
void lab_nets_free(struct lab_nets *nets);

/* The first block of 10.0.0.0/8, then of 172.16.0.0/12, that holds at least `count` addresses
 * and overlaps with none that is taken; at least a /16, so that labs look alike. Pure. */
int lab_nets_choose(const struct lab_nets *nets, uint64_t count, uint32_t *net, uint32_t *prefix);

/* Adds what this machine's interfaces and routes use. */
int lab_nets_machine(struct lab_nets *nets, struct lab_error *e);

#endif
