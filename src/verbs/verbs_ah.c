/* Address handles. */
#include "verbs_weft.h"

VERBS_DECLARE_REAL(ibv_create_ah);
VERBS_DECLARE_REAL(ibv_destroy_ah);
VERBS_DECLARE_REAL(ibv_init_ah_from_wc);
VERBS_DECLARE_REAL(ibv_create_ah_from_wc);
VERBS_DECLARE_REAL(ibv_resolve_eth_l2_from_gid);

VERBS_EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	if (is_weft(pd->context))
		return rnic_create_ah(pd, attr);
	return REAL(ibv_create_ah)(pd, attr);
}

VERBS_EXPORT int ibv_destroy_ah(struct ibv_ah *ah)
{
	if (is_weft(ah->context))
		return rnic_destroy_ah(ah);
	return REAL(ibv_destroy_ah)(ah);
}

VERBS_EXPORT int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,
				     struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	if (is_weft(ctx))
		return minus_one(rnic_init_ah_from_wc(ctx, port, wc, grh, attr));
	return REAL(ibv_init_ah_from_wc)(ctx, port, wc, grh, attr);
}

VERBS_EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
						  struct ibv_grh *grh, uint8_t port)
{
	struct ibv_ah_attr attr = {0};
	int err;

	if (!is_weft(pd->context))
		return REAL(ibv_create_ah_from_wc)(pd, wc, grh, port);
	err = rnic_init_ah_from_wc(pd->context, port, wc, grh, &attr);
	if (err)
		return refuse_null(err);
	return rnic_create_ah(pd, &attr);
}

/* For providers whose hardware wants the MAC address; the kernel finds ours. -errno,
 * as rdma-core has it: there is no man page. */
VERBS_EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr,
					     uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	if (is_weft(ctx))
		return -refuse(EOPNOTSUPP);
	return REAL(ibv_resolve_eth_l2_from_gid)(ctx, attr, eth_mac, vid);
}
