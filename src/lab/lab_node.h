/* What a node of a lab is configured with, as netlink requests: the source of truth for
 * cables, addresses, queues and routes. Everything follows from the lab's spec; interface
 * numbers and MAC addresses are chosen, not asked for, so nothing has to be looked up.
 *
 * Routers do not ask for MAC addresses: each end of a cable knows its one neighbour. A
 * cable that comes back works at once, and no ARP packet is in anybody's measurement.
 */
#ifndef WEFT_LAB_NODE_H
#define WEFT_LAB_NODE_H

#include "lab.h"
#include "lab_nl.h"

/* A port, from the node that it belongs to. */
struct lab_port {
	struct fabric_node node;
	bool up;
	uint32_t port;
};

static inline uint32_t lab_port_count(const struct lab_spec *s, struct fabric_node n)
{
	return fabric_up_ports(&s->tree, n.level) + fabric_down_ports(&s->tree, n.level);
}

/* Ports of a node by number: the up-going ones first. */
struct lab_port lab_port(const struct lab_spec *s, struct fabric_node n, uint32_t i);
uint32_t lab_port_number(const struct lab_spec *s, struct lab_port p);
/* The number of its interface, the same in every lab; and the port of an interface. */
uint32_t lab_port_ifindex(const struct lab_spec *s, struct lab_port p);
bool lab_port_of(const struct lab_spec *s, struct fabric_node n, uint32_t ifindex,
		 struct lab_port *p);
struct fabric_cable lab_port_cable(const struct lab_spec *s, struct lab_port p);
/* The other end of the cable. */
struct lab_port lab_port_peer(const struct lab_spec *s, struct lab_port p);

/* All of these put requests into nl, which belongs to the node's namespace; the caller
 * flushes. */
int lab_node_cable(struct lab_nl *nl, const struct lab_spec *s, const struct fabric_cable *c,
		   int upper_namespace, struct lab_error *e);
int lab_node_addresses(struct lab_nl *nl, const struct lab_spec *s, struct fabric_node n,
		       struct lab_error *e);
int lab_node_port(struct lab_nl *nl, const struct lab_spec *s, struct lab_port p,
		  struct lab_error *e);
/* Without those through ports that are down; alive: of each port by number, NULL: all. */
int lab_node_routes(struct lab_nl *nl, const struct lab_spec *s, struct fabric_node n,
		    const bool *alive, struct lab_error *e);
int lab_node_port_down(struct lab_nl *nl, const struct lab_spec *s, struct lab_port p,
		       struct lab_error *e);

#endif
