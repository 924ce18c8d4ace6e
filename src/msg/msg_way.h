/* What the paths to a peer are where each is a queue pair of its own (RC).
 *
 * Path i leaves by active port i mod n of the device, if it has several. Where LIDs name ports
 * (InfiniBand), the rest of i are path bits: the last bits of the LIDs of both, as far as the LMC
 * of each port allows, for which the subnet manager has laid routes of their own. Elsewhere (RoCE)
 * it is the flow label, which becomes the UDP source port, by which switches hash. The RC of
 * Weft's own device is TCP, and each connection a flow of its own anyway.
 *
 * Pure: no device is asked. */
#ifndef WEFT_MSG_WAY_H
#define WEFT_MSG_WAY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a port is. */
struct msg_place {
	uint8_t gid[16];
	uint16_t lid;
	uint8_t lmc; /* so many of the LID's last bits may be anything */
};

#define MSG_WAY_PORTS 8

/* An own one. */
struct msg_way_port {
	uint8_t port, gid_index;
	struct msg_place at;
};

struct msg_way_ports {
	struct msg_way_port port[MSG_WAY_PORTS];
	uint32_t n;
	bool global; /* named by GID, else by LID */
};

/* How many paths differ at all, up to STRIPE_PATHS_MAX. */
uint32_t msg_ways_most(const struct msg_way_ports *own);
/* The port by which a path leaves. */
const struct msg_way_port *msg_way_port(const struct msg_way_ports *own, uint32_t path);
/* The way from there to the peer's port for the same path. */
struct ibv_ah_attr msg_way_ah(const struct msg_way_ports *own, uint32_t path,
			      const struct msg_place *to);

#endif
