#include "msg_way.h"

#include <string.h>
#include "stripe.h"

uint32_t msg_ways_most(const struct msg_way_ports *own)
{
	uint32_t n = 0;

	if (own->global)
		return STRIPE_PATHS_MAX;
	for (uint32_t i = 0; i < own->n; i++)
		n += 1u << own->port[i].at.lmc;
	return n < STRIPE_PATHS_MAX ? n : STRIPE_PATHS_MAX;
}

const struct msg_way_port *msg_way_port(const struct msg_way_ports *own, uint32_t path)
{
	return &own->port[path % own->n];
}

static uint32_t bits(uint32_t i, uint8_t lmc)
{
	return i & ((1u << lmc) - 1);
}

struct ibv_ah_attr msg_way_ah(const struct msg_way_ports *own, uint32_t path,
			      const struct msg_place *to)
{
	const struct msg_way_port *by = msg_way_port(own, path);
	uint32_t i = path / own->n;
	struct ibv_ah_attr attr = {.port_num = by->port,
				   .is_global = own->global,
				   .grh = {.sgid_index = by->gid_index, .hop_limit = 64}};

	memcpy(attr.grh.dgid.raw, to->gid, sizeof(to->gid));
	if (own->global) {
		attr.dlid = to->lid;
		attr.grh.flow_label = i;
	} else {
		attr.dlid = (uint16_t)(to->lid + bits(i, to->lmc));
		attr.src_path_bits = (uint8_t)bits(i, by->at.lmc);
	}
	return attr;
}
