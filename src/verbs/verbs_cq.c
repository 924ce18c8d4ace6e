/* Completion queues and shared receive queues. */
#include "verbs_weft.h"

VERBS_DECLARE_REAL(ibv_create_cq);
VERBS_DECLARE_REAL(ibv_resize_cq);
VERBS_DECLARE_REAL(ibv_destroy_cq);
VERBS_DECLARE_REAL(ibv_create_srq);
VERBS_DECLARE_REAL(ibv_modify_srq);
VERBS_DECLARE_REAL(ibv_query_srq);
VERBS_DECLARE_REAL(ibv_destroy_srq);

VERBS_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
					  struct ibv_comp_channel *channel, int comp_vector)
{
	if (!is_weft(ctx))
		return REAL(ibv_create_cq)(ctx, cqe, cq_context, channel, comp_vector);
	if (channel && channel->context != ctx)
		return refuse_null(EINVAL);
	return rnic_create_cq(ctx, cqe, cq_context, channel, comp_vector);
}

VERBS_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (is_weft(cq->context))
		return rnic_resize_cq(cq, cqe);
	return REAL(ibv_resize_cq)(cq, cqe);
}

VERBS_EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	if (is_weft(cq->context))
		return rnic_destroy_cq(cq);
	return REAL(ibv_destroy_cq)(cq);
}

VERBS_EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	if (is_weft(pd->context))
		return rnic_create_srq(pd, attr);
	return REAL(ibv_create_srq)(pd, attr);
}

VERBS_EXPORT int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	if (is_weft(srq->context))
		return rnic_modify_srq(srq, attr, mask);
	return REAL(ibv_modify_srq)(srq, attr, mask);
}

VERBS_EXPORT int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	if (is_weft(srq->context))
		return rnic_query_srq(srq, attr);
	return REAL(ibv_query_srq)(srq, attr);
}

VERBS_EXPORT int ibv_destroy_srq(struct ibv_srq *srq)
{
	if (is_weft(srq->context))
		return rnic_destroy_srq(srq);
	return REAL(ibv_destroy_srq)(srq);
}
