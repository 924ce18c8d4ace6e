/* An open device, and its queue of asynchronous events. */
#ifndef WEFT_RNIC_CTX_H
#define WEFT_RNIC_CTX_H

#include <infiniband/verbs.h>
#include "rnic.h"
#include "rnic_engine.h"
#include "util_list.h"

struct rnic_ctx {
	struct verbs_context vctx; /* first */
	struct rnic_engine *e;
	const struct rnic_device *dev;
	struct list_head link; /* on e->contexts */
	atomic_int refs;       /* the application's, and one for each object made from it */
	pthread_mutex_t ev_lock;
	struct list_head events;
};

static inline struct rnic_ctx *rnic_ctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct rnic_ctx, vctx.context);
}

/* A program may close a device before it has destroyed everything on it: the context
 * goes with the last of its objects. */
void rnic_ctx_hold(struct ibv_context *ctx);
void rnic_ctx_put(struct ibv_context *ctx);

/* Queues an event. The element is named by the object that the type implies. */
void rnic_event_raise(struct rnic_ctx *ctx, enum ibv_event_type type, void *object);
/* Before an object goes: drops its undelivered events and waits until the delivered
 * ones are acknowledged, as the destroy calls promise. `acked` is the counter in the
 * public object, `delivered` its counterpart here; lock and cond are the object's. */
void rnic_event_forget(struct rnic_ctx *ctx, void *object, uint32_t *acked,
		       const uint32_t *delivered, pthread_mutex_t *lock, pthread_cond_t *cond);

void rnic_event_drop_all(struct rnic_ctx *ctx);
/* Takes back n events from a descriptor that counts them, as far as they are there. */
void rnic_event_drain(int fd, uint32_t n);

/* Limits that are promised in query_device and enforced at creation. */
#define RNIC_MAX_QP        65536
#define RNIC_MAX_WR        32768
#define RNIC_MAX_SGE       32
#define RNIC_MAX_INLINE    1024
#define RNIC_MAX_CQE       (1 << 22)
#define RNIC_MAX_RD_ATOMIC 16
#define RNIC_MAX_MSG       UINT32_C(0x80000000)

/* Which of the device's addresses it is; -1: none. */
static inline int rnic_addr_index(const struct rnic_device *dev, struct in_addr addr)
{
	for (int i = 0; i < dev->n_addr; i++)
		if (dev->addr[i].addr.s_addr == addr.s_addr)
			return i;
	return -1;
}

#endif
