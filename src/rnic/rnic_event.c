/* Asynchronous events: what goes wrong beside completions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "util_log.h"
#include "rnic_cq.h"
#include "rnic_ctx.h"
#include "rnic_qp.h"

struct event {
	struct list_head link;
	struct ibv_async_event ev;
	void *object;
};

static void set_element(struct ibv_async_event *ev, void *object)
{
	switch (ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		ev->element.cq = object;
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ev->element.srq = object;
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		ev->element.qp = object;
		break;
	default:
		ev->element.port_num = 1;
	}
}

void rnic_event_raise(struct rnic_ctx *ctx, enum ibv_event_type type, void *object)
{
	struct event *ev = calloc(1, sizeof(*ev));
	uint64_t one = 1;

	if (!ev)
		return;
	ev->ev.event_type = type;
	ev->object = object;
	set_element(&ev->ev, object);
	pthread_mutex_lock(&ctx->ev_lock);
	list_add_tail(&ev->link, &ctx->events);
	pthread_mutex_unlock(&ctx->ev_lock);
	if (write(ctx->vctx.context.async_fd, &one, sizeof(one)) < 0)
		util_log(UTIL_LOG_ERROR, "asynchronous event: %s", strerror(errno));
}

/* Where an object counts the events handed to, and acknowledged by, the application. */
static uint32_t *taken_counter(const struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &rnic_cq(ev->element.cq)->async_taken;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &rnic_srq(ev->element.srq)->async_taken;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &rnic_qp(ev->element.qp)->async_taken;
	default:
		return NULL;
	}
}

int rnic_get_async_event(struct ibv_context *ibctx, struct ibv_async_event *out)
{
	struct rnic_ctx *ctx = rnic_ctx(ibctx);
	struct event *ev;
	uint64_t n;

	for (;;) {
		uint32_t *taken;

		if (ctx->e->dead) {
			errno = EIO;
			return -1;
		}
		if (read(ibctx->async_fd, &n, sizeof(n)) < 0)
			return -1;
		pthread_mutex_lock(&ctx->ev_lock);
		ev = list_first(&ctx->events, struct event, link);
		if (ev) {
			list_del(&ev->link);
			taken = taken_counter(&ev->ev);
			if (taken)
				++*taken;
		}
		pthread_mutex_unlock(&ctx->ev_lock);
		if (ev)
			break; /* else its object was destroyed meanwhile */
	}
	*out = ev->ev;
	free(ev);
	return 0;
}

static void ack(struct ibv_context *ctx, pthread_mutex_t *lock, pthread_cond_t *cond,
		uint32_t *counter)
{
	if (rnic_ctx(ctx)->e->dead)
		return;
	pthread_mutex_lock(lock);
	++*counter;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(lock);
}

void rnic_ack_async_event(struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		ack(ev->element.cq->context, &ev->element.cq->mutex, &ev->element.cq->cond,
		    &ev->element.cq->async_events_completed);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ack(ev->element.srq->context, &ev->element.srq->mutex, &ev->element.srq->cond,
		    &ev->element.srq->events_completed);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		ack(ev->element.qp->context, &ev->element.qp->mutex, &ev->element.qp->cond,
		    &ev->element.qp->events_completed);
		break;
	default:
		break;
	}
}

/* A reader that has taken its count and is about to look finds nothing, and reads again.
 * Without waiting, whatever the mode of the descriptor. */
void rnic_event_drain(int fd, uint32_t n)
{
	uint64_t count;
	struct iovec iov = {&count, sizeof(count)};

	while (n-- && preadv2(fd, &iov, 1, -1, RWF_NOWAIT) > 0)
		;
}

void rnic_event_forget(struct rnic_ctx *ctx, void *object, uint32_t *acked,
		       const uint32_t *delivered, pthread_mutex_t *lock, pthread_cond_t *cond)
{
	struct event *ev, *tmp;
	uint32_t until, dropped = 0;

	if (ctx->e->dead)
		return;
	pthread_mutex_lock(&ctx->ev_lock);
	list_for_each_safe (ev, tmp, &ctx->events, link) {
		if (ev->object == object) {
			list_del(&ev->link);
			free(ev);
			dropped++;
		}
	}
	rnic_event_drain(ctx->vctx.context.async_fd, dropped);
	until = *delivered;
	pthread_mutex_unlock(&ctx->ev_lock);
	pthread_mutex_lock(lock);
	while (*acked != until)
		pthread_cond_wait(cond, lock);
	pthread_mutex_unlock(lock);
}

void rnic_event_drop_all(struct rnic_ctx *ctx)
{
	struct event *ev;

	while ((ev = list_first(&ctx->events, struct event, link))) {
		list_del(&ev->link);
		free(ev);
	}
}
