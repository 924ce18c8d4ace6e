/* Address handles: an IPv4 address, found in a GID or a LID. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rnic_conn.h"

struct ibv_ah *rnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct rnic_ctx *ctx = rnic_ctx(pd->context);
	struct rnic_ah *ah;
	int err = 0;

	if (ctx->e->dead || attr->port_num != 1) {
		errno = ctx->e->dead ? EIO : EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	if (attr->is_global && attr->grh.sgid_index < ctx->dev->n_addr &&
	    rnic_mcast_map(&attr->grh.dgid, &ah->addr, &ah->mgid_hash))
		ah->multicast = true;
	else
		err = rnic_resolve_addr(ctx->dev, attr, &ah->addr);
	if (err) {
		free(ah);
		errno = err;
		return NULL;
	}
	ah->sgid_index = attr->is_global ? attr->grh.sgid_index : 0;
	ah->label = attr->is_global ? attr->grh.flow_label & 0xfffff : 0;
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	atomic_fetch_add(&rnic_pd(pd)->refs, 1);
	return &ah->ibv;
}

int rnic_destroy_ah(struct ibv_ah *ah)
{
	atomic_fetch_sub(&rnic_pd(ah->pd)->refs, 1);
	free(ah);
	return 0;
}

/* The GRH of a datagram holds an IPv4 header in its second half, as RoCE v2 has it. */
int rnic_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	const struct rnic_device *dev = rnic_ctx(ctx)->dev;
	const uint8_t *ip = (const uint8_t *)grh + 20;

	if (port != 1)
		return EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->port_num = 1;
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	attr->grh.hop_limit = 64;
	attr->grh.dgid.raw[10] = attr->grh.dgid.raw[11] = 0xff;
	memcpy(attr->grh.dgid.raw + 12, ip + 12, 4);
	for (int i = 0; i < dev->n_addr; i++)
		if (!memcmp(&dev->addr[i].addr, ip + 16, 4))
			attr->grh.sgid_index = (uint8_t)i;
	return 0;
}
