/* Queue pairs. */
#include "verbs_weft.h"

VERBS_DECLARE_REAL(ibv_create_qp);
VERBS_DECLARE_REAL(ibv_qp_to_qp_ex);
VERBS_DECLARE_REAL(ibv_modify_qp);
VERBS_DECLARE_REAL(ibv_query_qp);
VERBS_DECLARE_REAL(ibv_destroy_qp);
VERBS_DECLARE_REAL(ibv_query_ece);
VERBS_DECLARE_REAL(ibv_set_ece);
VERBS_DECLARE_REAL(ibv_query_qp_data_in_order);
VERBS_DECLARE_REAL(ibv_attach_mcast);
VERBS_DECLARE_REAL(ibv_detach_mcast);

/* A queue of another device must not reach the layer below, which takes what it gets
 * for its own. */
static bool queues_belong(const struct ibv_context *ctx, const struct ibv_qp_init_attr *attr)
{
	return (!attr->send_cq || attr->send_cq->context == ctx) &&
	       (!attr->recv_cq || attr->recv_cq->context == ctx) &&
	       (!attr->srq || attr->srq->context == ctx);
}

VERBS_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (!is_weft(pd->context))
		return REAL(ibv_create_qp)(pd, attr);
	if (!queues_belong(pd->context, attr))
		return refuse_null(EINVAL);
	return rnic_create_qp(pd, attr);
}

VERBS_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (is_weft(qp->context))
		return rnic_qp_to_qp_ex(qp);
	return REAL(ibv_qp_to_qp_ex)(qp);
}

VERBS_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (is_weft(qp->context))
		return rnic_modify_qp(qp, attr, mask);
	return REAL(ibv_modify_qp)(qp, attr, mask);
}

VERBS_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			      struct ibv_qp_init_attr *init)
{
	if (is_weft(qp->context))
		return rnic_query_qp(qp, attr, mask, init);
	return REAL(ibv_query_qp)(qp, attr, mask, init);
}

VERBS_EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	if (is_weft(qp->context))
		return rnic_destroy_qp(qp);
	return REAL(ibv_destroy_qp)(qp);
}

/* Enhanced connection establishment negotiates vendors' extensions; there are none. */
VERBS_EXPORT int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (is_weft(qp->context))
		return refuse(EOPNOTSUPP);
	return REAL(ibv_query_ece)(qp, ece);
}

VERBS_EXPORT int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (is_weft(qp->context))
		return refuse(EOPNOTSUPP);
	return REAL(ibv_set_ece)(qp, ece);
}

/* No promise: a datagram may be placed in pieces, and memcpy keeps no order. */
VERBS_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
					    uint32_t flags)
{
	if (is_weft(qp->context))
		return 0;
	return REAL(ibv_query_qp_data_in_order)(qp, op, flags);
}

VERBS_EXPORT int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (is_weft(qp->context))
		return rnic_attach_mcast(qp, gid, lid);
	return REAL(ibv_attach_mcast)(qp, gid, lid);
}

VERBS_EXPORT int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (is_weft(qp->context))
		return rnic_detach_mcast(qp, gid, lid);
	return REAL(ibv_detach_mcast)(qp, gid, lid);
}
