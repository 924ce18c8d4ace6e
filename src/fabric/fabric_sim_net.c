/* How the network is built, and the ways through it. What switches do is in fabric_sim_switch.c. */
#include "fabric_sim_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MAX (UINT64_C(4) << 30)

static uint32_t ports(const struct fabric_pgft *t, uint32_t level)
{
	return fabric_down_ports(t, level) + fabric_up_ports(t, level);
}

static uint64_t words(const struct fabric_pgft *t, uint32_t level)
{
	return (ports(t, level) + 63) / 64;
}

/* Where the ports, queues and bitmaps of a level's first node are; those of all others follow. */
struct layout {
	uint64_t port[FABRIC_LEVELS_MAX + 2];
	uint64_t queue[FABRIC_LEVELS_MAX + 2];
	uint64_t word[FABRIC_LEVELS_MAX + 2];
};

/* A switch has a bitmap for each output and each input. */
static struct layout lay_out(const struct fabric_pgft *t, bool fifo)
{
	struct layout at = {0};

	for (uint32_t l = 0; l <= t->h; l++) {
		uint64_t p = ports(t, l), nodes = t->nodes[l];

		at.port[l + 1] = at.port[l] + nodes * p;
		at.queue[l + 1] = at.queue[l] + (l > 0) * nodes * p * (fifo ? 1 : p);
		at.word[l + 1] = at.word[l] + (l > 0) * nodes * p * 2 * words(t, l);
	}
	return at;
}

static int allocate(struct sim_net *n, const struct fabric_pgft *t, const struct layout *at)
{
	uint64_t n_queues = at->queue[t->h + 1], n_words = at->word[t->h + 1];

	n->n_links = 2 * fabric_cables(t);
	if (n->n_links * sizeof(*n->links) + n_queues * sizeof(*n->queues) + n_words * 8 +
		    at->port[t->h + 1] * sizeof(*n->in) >
	    MEMORY_MAX)
		return -E2BIG;
	n->links = aligned_alloc(64, n->n_links * sizeof(*n->links));
	n->in = calloc(at->port[t->h + 1], sizeof(*n->in));
	n->queues = malloc(n_queues * sizeof(*n->queues));
	n->bits = calloc(n_words, sizeof(*n->bits));
	if (!n->links || !n->in || !n->queues || !n->bits)
		return -ENOMEM;
	memset(n->queues, 0xff, n_queues * sizeof(*n->queues));
	return 0;
}

static uint32_t blocks(uint32_t bytes)
{
	return bytes / SIM_BLOCK;
}

/* One direction of a cable: from a port of a node to a port of another. */
static void set_link(struct sim_net *n, uint32_t link, const struct layout *at,
		     struct fabric_node from, uint32_t out_port, struct fabric_node to,
		     uint32_t in_port)
{
	const struct fabric_pgft *t = &n->routes->tree->pgft;
	uint64_t p = ports(t, to.level), w = words(t, to.level);
	uint64_t queues = n->config->fifo ? 1 : p;
	uint64_t first_port = at->port[to.level] + to.index * p;
	uint64_t port = to.index * p + in_port; /* among those of the level */

	n->links[link] = (struct sim_link){
		.credits = blocks(to.level ? n->config->buffer : n->config->host_buffer),
		.serves = FABRIC_NONE,
		.last = ports(t, from.level) - 1, /* the first has the first turn */
		.sender_rank = FABRIC_NONE,
		.rank = FABRIC_NONE,
		.out_port = out_port,
		.to = fabric_number(t, to),
		.in_port = in_port,
		.queue = (uint32_t)(at->queue[to.level] + port * queues),
		.words = (uint32_t)w,
		.first_port = (uint32_t)first_port,
	};
	n->in[first_port + in_port] = link;
	if (to.level)
		n->links[link].has = (uint32_t)(at->word[to.level] + port * 2 * w);
	if (from.level)
		n->links[link].wanted =
			(uint32_t)(at->word[from.level] +
				   ((uint64_t)from.index * ports(t, from.level) + out_port) * 2 *
					   words(t, from.level) +
				   words(t, from.level));
}

static void set_links(struct sim_net *n, const struct layout *at)
{
	const struct fabric_pgft *t = &n->routes->tree->pgft;

	for (uint32_t i = 0; i < fabric_cables(t); i++) {
		struct fabric_cable c = fabric_cable(t, i);
		uint32_t q = fabric_down_ports(t, c.lower.level) + c.q;

		set_link(n, fabric_link(i, true), at, c.lower, q, c.upper, c.r);
		set_link(n, fabric_link(i, false), at, c.upper, c.r, c.lower, q);
	}
}

static void set_ranks(struct sim_net *n, const struct fabric_sim_traffic *traffic)
{
	const struct fabric_pgft *t = &n->routes->tree->pgft;

	for (uint32_t r = 0; r < traffic->ranks; r++)
		for (uint32_t q = 0; q < fabric_up_ports(t, 0); q++) {
			struct fabric_cable c =
				fabric_cable_up(t, (struct fabric_node){0, traffic->hosts[r]}, q);
			uint32_t number = fabric_cable_number(t, &c);

			n->links[fabric_link(number, true)].sender_rank = r;
			n->links[fabric_link(number, false)].rank = r;
		}
}

/* In the order in which things of the same time are to happen: an output that becomes free
 * chooses among all that has come by then. */
static void set_lanes(struct sim_net *n)
{
	const struct fabric_sim_config *c = n->config;
	uint64_t cable = c->cable_ns * UINT64_C(1000), within = c->switch_ns * UINT64_C(1000);

	n->lane_switch = sim_lane(&n->events, SIM_ARRIVES, cable + within);
	n->lane_host = sim_lane(&n->events, SIM_ARRIVES, cable);
	n->lane_drained = sim_lane(&n->events, SIM_DRAINED, sim_ps(n->packet, c->host_mbs));
	n->lane_credit = sim_lane(&n->events, SIM_CREDIT, cable);
	n->lane_sent = sim_lane(&n->events, SIM_SENT, sim_ps(n->packet, c->link_mbs));
	n->lane_ready = sim_lane(&n->events, SIM_READY, sim_pace(n, n->packet));
}

int sim_net_init(struct sim_net *n, const struct fabric_routes *routes,
		 const struct fabric_sim_config *config, const struct fabric_sim_traffic *traffic)
{
	const struct fabric_pgft *t = &routes->tree->pgft;
	struct layout at = lay_out(t, config->fifo);
	int ret;

	*n = (struct sim_net){
		.routes = routes,
		.config = config,
		.hosts = fabric_hosts(t),
		.packet_free = FABRIC_NONE,
		.part_free = FABRIC_NONE,
		.reads = config->fifo ? 1 : config->reads,
		.packet = config->mtu * config->aggregate,
	};
	sim_events_init(&n->events);
	ret = allocate(n, t, &at);
	if (ret)
		return ret;
	set_links(n, &at);
	set_ranks(n, traffic);
	set_lanes(n);
	return 0;
}

void sim_net_free(struct sim_net *n)
{
	sim_events_free(&n->events);
	free(n->links);
	free(n->in);
	free(n->queues);
	free(n->bits);
	free(n->packets);
	free(n->parts);
}

/* ---- pools ---- */

/* Twice as many. Packets in buffers are bounded by the buffers, and so is the pool. */
static bool grow(struct sim_net *n, void *pool, size_t size, uint32_t *max)
{
	uint32_t more = *max ? 2 * *max : 256;
	void *p = NULL;

	if (more <= SIM_NUMBER_MAX)
		p = realloc(*(void **)pool, more * size);
	if (!p) {
		n->events.failed = true;
		return false;
	}
	*(void **)pool = p;
	*max = more;
	return true;
}

uint32_t sim_packet_new(struct sim_net *n)
{
	uint32_t packet = n->packet_free;

	if (packet != FABRIC_NONE) {
		n->packet_free = n->packets[packet].next;
		return packet;
	}
	if (n->packets_n == n->packets_max &&
	    !grow(n, &n->packets, sizeof(*n->packets), &n->packets_max))
		return FABRIC_NONE;
	return n->packets_n++;
}

uint32_t sim_part_new(struct sim_net *n)
{
	uint32_t part = n->part_free;

	if (part != FABRIC_NONE) {
		n->part_free = n->parts[part].next;
		return part;
	}
	if (n->parts_n == n->parts_max && !grow(n, &n->parts, sizeof(*n->parts), &n->parts_max))
		return FABRIC_NONE;
	return n->parts_n++;
}

/* ---- ways ---- */

int sim_net_path(const struct sim_net *n, struct sim_part *part, uint32_t from, uint32_t to,
		 uint32_t address)
{
	uint32_t node = from;

	for (part->hops = 0; part->hops < SIM_HOPS_MAX; part->hops++) {
		bool up = false;
		uint32_t cable = fabric_routes_step(n->routes, node, to, address, &up);

		if (cable == FABRIC_NONE)
			return node == to && part->hops ? 0 : -EHOSTUNREACH;
		part->path[part->hops] = fabric_link(cable, up);
		node = n->links[fabric_link(cable, up)].to;
		/* Hosts do not forward, whatever a table says. */
		if (node < n->hosts && node != to)
			return -EHOSTUNREACH;
	}
	return node == to ? 0 : -ELOOP;
}
