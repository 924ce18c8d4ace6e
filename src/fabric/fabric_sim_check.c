/* What is asked of a simulation, before it begins. */
#include "fabric_sim_run.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric_text.h"

#define MBS_MAX    10000000u
#define BUFFER_MAX (1u << 30)
#define NS_MAX     1000000000u

static int check_numbers(const struct fabric_sim_config *c, char *why, size_t why_size)
{
	const struct {
		const char *name;
		uint32_t value, least, most;
	} numbers[] = {
		{"rate of links, in MB/s,", c->link_mbs, 1, MBS_MAX},
		{"rate of hosts, in MB/s,", c->host_mbs, 1, MBS_MAX},
		{"MTU", c->mtu, 1, SIM_PACKET_MAX},
		{"number of packets that travel as one", c->aggregate, 1, SIM_PACKET_MAX},
		{"buffer of a switch's input, in bytes,", c->buffer, SIM_BLOCK, BUFFER_MAX},
		{"buffer of a host, in bytes,", c->host_buffer, SIM_BLOCK, BUFFER_MAX},
		{"number of packets that an input sends at once", c->reads, 1, 1u << 16},
		{"delay of a cable, in ns,", c->cable_ns, 0, NS_MAX},
		{"delay of a switch, in ns,", c->switch_ns, 0, NS_MAX},
		{"time to post a part, in ns,", c->post_ns, 0, NS_MAX},
		{"time within which ranks start, in ns,", c->start_ns, 0, NS_MAX},
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most)
			return fabric_refuse(why, why_size,
					     "the %s can not be %u; expected %u to %u",
					     numbers[i].name, numbers[i].value, numbers[i].least,
					     numbers[i].most);
	return 0;
}

static int check_packet(const struct fabric_sim_config *c, char *why, size_t why_size)
{
	uint64_t packet = (uint64_t)c->mtu * c->aggregate;
	uint32_t room = c->buffer < c->host_buffer ? c->buffer : c->host_buffer;

	if (packet > SIM_PACKET_MAX)
		return fabric_refuse(why, why_size,
				     "%u packets of %u bytes that travel as one are too large; at "
				     "most %u bytes can",
				     c->aggregate, c->mtu, SIM_PACKET_MAX);
	if (sim_blocks((uint32_t)packet) > room / SIM_BLOCK)
		return fabric_refuse(why, why_size,
				     "a buffer of %u bytes has no room for a packet of %llu; a "
				     "packet goes on only when all of it fits",
				     room, (unsigned long long)packet);
	return 0;
}

static int check_hosts(const struct fabric_routes *routes, const struct fabric_sim_traffic *tr,
		       char *why, size_t why_size)
{
	uint32_t n = fabric_hosts(&routes->tree->pgft);
	uint32_t *seen = calloc(n, sizeof(*seen));
	int ret = 0;

	if (!seen) {
		fabric_refuse(why, why_size, "no memory for the order of %u hosts", n);
		return -ENOMEM;
	}
	for (uint32_t r = 0; r < tr->ranks && !ret; r++) {
		uint32_t host = tr->hosts[r];

		if (host >= n)
			ret = fabric_refuse(why, why_size,
					    "rank %u is on host %u; the hosts are 0 to %u", r, host,
					    n - 1);
		else if (!fabric_tree_has_node(routes->tree, host))
			ret = fabric_refuse(why, why_size,
					    "rank %u is on host %u, which is missing", r, host);
		else if (seen[host])
			ret = fabric_refuse(why, why_size,
					    "ranks %u and %u are both on host %u; the model has "
					    "one rank per host",
					    seen[host] - 1, r, host);
		else
			seen[host] = r + 1;
	}
	free(seen);
	return ret;
}

int sim_check(const struct fabric_routes *routes, const struct fabric_sim_config *c,
	      const struct fabric_sim_traffic *tr, char *why, size_t why_size)
{
	int ret = check_numbers(c, why, why_size);

	if (!ret)
		ret = check_packet(c, why, why_size);
	if (ret)
		return ret;
	if (tr->ranks == 0 || tr->ranks > fabric_hosts(&routes->tree->pgft))
		return fabric_refuse(why, why_size,
				     "%u ranks can not run on %u hosts; expected one rank per "
				     "host, and at least one",
				     tr->ranks, fabric_hosts(&routes->tree->pgft));
	if (fabric_cables(&routes->tree->pgft) > SIM_NUMBER_MAX / 2) {
		fabric_refuse(why, why_size, "a tree of %u cables is too large to be simulated",
			      fabric_cables(&routes->tree->pgft));
		return -E2BIG;
	}
	if (!routes->table && routes->rule.kind == FABRIC_ECMP)
		return fabric_refuse(why, why_size,
				     "ecmp leaves the way to a hash; the model needs one way, such "
				     "as dmodk or random:1");
	if (c->progress == FABRIC_SIM_EXCHANGE && !tr->expects)
		return fabric_refuse(why, why_size,
				     "who goes on when a message has come must be "
				     "told how many are to come");
	if (c->progress == FABRIC_SIM_ASYNC && tr->more)
		return fabric_refuse(why, why_size,
				     "parts that follow when others have arrived are for ranks in "
				     "step, or that exchange");
	return check_hosts(routes, tr, why, why_size);
}

double fabric_sim_events(const struct fabric_pgft *t, const struct fabric_sim_config *c,
			 double messages, uint64_t bytes)
{
	double packet = (double)c->mtu * c->aggregate;

	return messages * ((double)bytes / (packet > 0 ? packet : 1) + 1) * 3 * 2 * t->h;
}
