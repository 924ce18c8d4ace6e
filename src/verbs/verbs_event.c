/* Asynchronous events and completion channels. */
#include "verbs_weft.h"

VERBS_DECLARE_REAL(ibv_get_async_event);
VERBS_DECLARE_REAL(ibv_ack_async_event);
VERBS_DECLARE_REAL(ibv_create_comp_channel);
VERBS_DECLARE_REAL(ibv_destroy_comp_channel);
VERBS_DECLARE_REAL(ibv_get_cq_event);
VERBS_DECLARE_REAL(ibv_ack_cq_events);

VERBS_EXPORT int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	if (is_weft(ctx))
		return rnic_get_async_event(ctx, event);
	return REAL(ibv_get_async_event)(ctx, event);
}

/* An event does not name its context, but its element does. */
static const struct ibv_context *event_context(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq->context;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return event->element.qp->context;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return event->element.srq->context;
	default:
		return NULL;
	}
}

VERBS_EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
	const struct ibv_context *ctx = event_context(event);

	if (ctx && is_weft(ctx))
		rnic_ack_async_event(event);
	else
		/* Events of ports and devices count nothing, whosever they are. */
		REAL(ibv_ack_async_event)(event);
}

VERBS_EXPORT struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	if (is_weft(ctx))
		return rnic_create_comp_channel(ctx);
	return REAL(ibv_create_comp_channel)(ctx);
}

VERBS_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	if (is_weft(channel->context))
		return rnic_destroy_comp_channel(channel);
	return REAL(ibv_destroy_comp_channel)(channel);
}

VERBS_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
				  void **cq_context)
{
	if (is_weft(channel->context))
		return rnic_get_cq_event(channel, cq, cq_context);
	return REAL(ibv_get_cq_event)(channel, cq, cq_context);
}

VERBS_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	if (is_weft(cq->context))
		rnic_ack_cq_events(cq, n);
	else
		REAL(ibv_ack_cq_events)(cq, n);
}
