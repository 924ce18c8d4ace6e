/* A network as `ibnetdiscover` prints it, which is also what ibsim reads: nodes, their ports, and
 * where the cables go.
 *
 *	switchguid=0x2c90100000040(2c90100000040)
 *	Switch	8 "S-0002c90100000040"		# "L1-0003" base port 0 lid 71 lmc 0
 *	[1]	"H-0002c900000000d0"[1](2c900000000d1) 		# "host00012" lid 52 4xSDR
 *
 * Nodes may be referred to before they are described. A cable may be listed at one of its ends or
 * at both; the two must agree. Everything that is kept is in proportion to the length of the text.
 */
#ifndef WEFT_FABRIC_NET_H
#define WEFT_FABRIC_NET_H

#include <stdint.h>
#include <stdio.h>

enum fabric_net_kind { FABRIC_NET_CA, FABRIC_NET_SWITCH, FABRIC_NET_ROUTER };

#define FABRIC_NET_PORTS_MAX 65535 /* of a node; InfiniBand has 254 */
#define FABRIC_NET_TEXT_MAX  (1u << 30)

/* A port that a cable is plugged into; others are not kept. */
struct fabric_net_port {
	uint64_t guid; /* of a switch's ports, 0 */
	uint32_t peer; /* node */
	uint32_t line; /* where it is listed, here or at the other end */
	uint16_t number, peer_port;
	uint16_t lid; /* 0: not given */
	uint16_t lmc;
};

struct fabric_net_node {
	uint64_t guid;
	const char *id;   /* as quoted, such as S-0002c90100000040 */
	const char *desc; /* as the text has it; "" if it has none */
	/* What people call it: of a host, the first word of its description, for they have the form
	 * "node17 HCA-1"; if others are called the same, all of it, as node17/HCA-1; and the id if
	 * that is the same, too. */
	const char *name;
	/* And without the adapter: node17, which all adapters of a machine have in common. */
	const char *host;
	enum fabric_net_kind kind;
	uint32_t line;
	uint32_t n_ports;      /* that it has */
	uint32_t first, count; /* those with a cable, by number, in fabric_net.ports */
	uint16_t lid, lmc;     /* of a switch */
};

struct fabric_net {
	struct fabric_net_node *nodes; /* in the order of the text */
	struct fabric_net_port *ports; /* by node and number */
	uint32_t n_nodes, n_ports;
	char *text;  /* what the names point into */
	char *names; /* those that the text does not have */
	char *file;  /* what it was read from, for sentences */
};

/* Reads all of a file; name is for sentences only. 0, or -errno with one sentence in why. */
int fabric_net_read(struct fabric_net *net, FILE *from, const char *name, char *why,
		    size_t why_size);
void fabric_net_free(struct fabric_net *net);

/* Place of a port in net->ports; UINT32_MAX: nothing is plugged in there. */
uint32_t fabric_net_find_port(const struct fabric_net *net, uint32_t node, uint32_t number);

struct fabric_tree;

/* Writes such a text for a tree and what is beside it, without what is missing and cables that are
 * plugged in wrongly. 0, -ENOMEM, the -errno of the file, or -ERANGE
 * when a node has more ports than the text can have (FABRIC_NET_PORTS_MAX, or 15 of a host made
 * from a tuple). */
int fabric_net_write(const struct fabric_tree *tree, FILE *to);

#endif
