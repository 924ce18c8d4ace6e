/* Between the parts of the reader: lines (fabric_net_parse.c) and how they fit together
 * (fabric_net.c). */
#ifndef WEFT_FABRIC_NET_INT_H
#define WEFT_FABRIC_NET_INT_H

#include "fabric_net.h"
#include "fabric_text.h"

/* What one line says of a port and of the one at the other end of its cable. */
struct net_end {
	const char *peer_id;
	uint64_t guid, peer_guid; /* 0: not given */
	uint32_t node, peer;
	uint32_t line;
	uint16_t port, peer_port;
	uint16_t lid, lmc, peer_lid;
};

struct net_reader {
	struct fabric_net net;
	struct net_end *ends;
	size_t n_ends, room_ends, room_nodes;
	uint64_t guid; /* of the node that follows, from its switchguid= line; 0: none */
	uint32_t guid_line;
	uint32_t line;
	const char *file;
	char *why;
	size_t why_size;
};

/* "FILE:LINE: …"; returns -EINVAL. */
#define net_refuse(r, at, fmt, ...)                                                                \
	fabric_refuse((r)->why, (r)->why_size, "%s:%u: " fmt, (r)->file, at, ##__VA_ARGS__)

/* Fills nodes and ends from the lines of net.text, which are cut into strings. */
int net_parse(struct net_reader *r);

/* What people call each node (fabric_net_names.c). 0 or -ENOMEM. */
int net_name_nodes(struct net_reader *r);

/* For qsort: smaller, equal, larger. */
#define NET_ORDER(a, b) (((a) > (b)) - ((a) < (b)))

#endif
