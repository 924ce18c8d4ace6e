/* The network of a simulation: links, input buffers, switches. Inside of fabric_sim*.c only.
 *
 * Everything is a number into a flat array. A directed link has its sender's state (credits,
 * what it sends now) and that of the input buffer at its other end. The link that goes the other
 * way by the same cable is link ^ 1.
 */
#ifndef WEFT_FABRIC_SIM_NET_H
#define WEFT_FABRIC_SIM_NET_H

#include "fabric_sim.h"
#include "fabric_sim_event.h"

#define SIM_BLOCK      64 /* bytes of a credit, as in InfiniBand */
#define SIM_HOPS_MAX   32 /* routes that go up and down have 2 · FABRIC_LEVELS_MAX at most */
#define SIM_PACKET_MAX (1u << 20)

enum sim_kind {
	SIM_ARRIVES, /* a = link, b = packet: its head can be forwarded */
	SIM_DRAINED, /* a = rank: its host has taken a packet out of the buffer */
	SIM_CREDIT,  /* a = link, b = blocks: that there is room has become known */
	SIM_SENT,    /* a = link: a switch has sent a packet */
	SIM_READY,   /* a = rank: its host can send the next packet */
	SIM_POSTED,  /* a = rank: its CPU has posted a part */
	SIM_BEGINS,  /* a = rank: it starts */
};

/* Small, since hundreds of thousands of them are in the buffers of a large network. */
struct sim_packet {
	uint32_t part, next;
	uint32_t number;     /* of the part's packets, the n-th */
	uint32_t bytes : 24; /* SIM_PACKET_MAX at most */
	uint32_t hop : 8;    /* the link that it is on, in the part's path */
};

/* A part of a message on its way. */
struct sim_part {
	uint32_t path[SIM_HOPS_MAX];
	uint32_t hops;
	uint32_t rank, stage, number; /* who sent it; which part of the message */
	uint32_t packets;             /* that have been sent */
	uint64_t bytes, sent, arrived, posted_at;
	uint32_t next; /* in the list of unused ones */
};

struct sim_queue {
	uint32_t head, tail; /* FABRIC_NONE: empty */
};

/* One line of a cache. */
struct sim_link {
	/* The sender. */
	uint32_t credits;     /* blocks that there is room for */
	uint32_t serves;      /* the input whose packet is being sent; FABRIC_NONE: none */
	uint32_t blocks;      /* of that packet */
	uint32_t last;        /* port of the input that was served last */
	uint32_t out_port;    /* its port of the node that sends */
	uint32_t sender_rank; /* the node is the host of this rank; FABRIC_NONE: it is not */
	uint32_t wanted;      /* where its bitmap of inputs is that have packets for it */
	/* The input buffer. */
	uint32_t to, in_port; /* node number and port */
	uint32_t rank;        /* as sender_rank, of the node that receives */
	uint32_t queue;       /* its first queue */
	uint32_t reads;       /* packets that are being sent from here */
	uint32_t next_out;    /* where the search for an output goes on */
	uint32_t has;         /* where its bitmap of outputs is that it has packets for */
	uint32_t words;       /* of that, and of the bitmaps of the node's outputs */
	uint32_t first_port;  /* of the node, in sim_net.in */
};

struct sim_net {
	const struct fabric_routes *routes;
	const struct fabric_sim_config *config;
	struct sim_events events;
	struct sim_link *links;
	uint32_t n_links, hosts;
	uint32_t *in; /* by node and port, the link that comes in */
	struct sim_queue *queues;
	uint64_t *bits;
	uint64_t *busy; /* by link; NULL: nobody asks */
	/* Pools: what is unused is a list. */
	struct sim_packet *packets;
	uint32_t packets_n, packets_max, packet_free;
	struct sim_part *parts;
	uint32_t parts_n, parts_max, part_free;
	uint32_t reads;  /* that an input may have */
	uint32_t packet; /* bytes of a full one */
	uint32_t lane_switch, lane_host, lane_credit, lane_sent, lane_ready, lane_drained;
};

static inline uint32_t sim_blocks(uint32_t bytes)
{
	return (bytes + SIM_BLOCK - 1) / SIM_BLOCK;
}

static inline uint64_t sim_ps(uint64_t bytes, uint32_t mbs)
{
	return (bytes * 1000000 + mbs - 1) / mbs;
}

/* Between the starts of two packets of a host: its bus is slower than its link, or not. */
static inline uint64_t sim_pace(const struct sim_net *n, uint32_t bytes)
{
	const struct fabric_sim_config *c = n->config;

	return sim_ps(bytes, c->host_mbs < c->link_mbs ? c->host_mbs : c->link_mbs);
}

/* 0, -ENOMEM or -E2BIG. *net is to be freed in any case. */
int sim_net_init(struct sim_net *n, const struct fabric_routes *routes,
		 const struct fabric_sim_config *config, const struct fabric_sim_traffic *traffic);
void sim_net_free(struct sim_net *n);

/* FABRIC_NONE: no memory. */
uint32_t sim_part_new(struct sim_net *n);
uint32_t sim_packet_new(struct sim_net *n);

static inline void sim_part_free(struct sim_net *n, uint32_t part)
{
	n->parts[part].next = n->part_free;
	n->part_free = part;
}

static inline void sim_packet_free(struct sim_net *n, uint32_t packet)
{
	n->packets[packet].next = n->packet_free;
	n->packet_free = packet;
}

/* The links from a host to another. 0, -EHOSTUNREACH or -ELOOP. */
int sim_net_path(const struct sim_net *n, struct sim_part *part, uint32_t from, uint32_t to,
		 uint32_t address);

static inline void sim_queue_put(struct sim_net *n, struct sim_queue *q, uint32_t packet)
{
	n->packets[packet].next = FABRIC_NONE;
	if (q->head == FABRIC_NONE)
		q->head = packet;
	else
		n->packets[q->tail].next = packet;
	q->tail = packet;
}

static inline uint32_t sim_queue_take(struct sim_net *n, struct sim_queue *q)
{
	uint32_t packet = q->head;

	q->head = n->packets[packet].next;
	return packet;
}

/* Puts a packet on a link for which there are credits. */
void sim_link_start(struct sim_net *n, uint32_t link, uint32_t packet);
/* Gives back room in the input buffer of a link. */
static inline void sim_link_room(struct sim_net *n, uint32_t link, uint32_t blocks)
{
	sim_push(&n->events, n->lane_credit, SIM_WHAT(SIM_CREDIT, link, blocks));
}

/* The events of switches. */
void sim_switch_arrives(struct sim_net *n, uint32_t link, uint32_t packet);
void sim_switch_credit(struct sim_net *n, uint32_t link);
void sim_switch_sent(struct sim_net *n, uint32_t link);

#endif
