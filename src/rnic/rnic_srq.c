#include <errno.h>
#include <stdlib.h>
#include "rnic_conn.h"

struct ibv_srq *rnic_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct rnic_engine *e = rnic_ctx(pd->context)->e;
	struct rnic_srq *srq;

	if (e->dead || !attr->attr.max_wr || attr->attr.max_wr > RNIC_MAX_WR ||
	    attr->attr.max_sge > RNIC_MAX_SGE || attr->attr.srq_limit > attr->attr.max_wr) {
		errno = e->dead ? EIO : EINVAL;
		return NULL;
	}
	if (!attr->attr.max_sge)
		attr->attr.max_sge = 1;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	if (rnic_rq_init(&srq->rq, attr->attr.max_wr, attr->attr.max_sge)) {
		free(srq);
		errno = ENOMEM;
		return NULL;
	}
	srq->e = e;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = attr->srq_context;
	srq->ibv.pd = pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	atomic_fetch_add(&rnic_pd(pd)->refs, 1);
	return &srq->ibv;
}

int rnic_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct rnic_srq *srq = rnic_srq(ibsrq);

	if (srq->e->dead)
		return EIO;
	if (mask & ~IBV_SRQ_LIMIT)
		return EOPNOTSUPP; /* resizing is not offered: IBV_DEVICE_SRQ_RESIZE is off */
	if (!(mask & IBV_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->rq.max_wr)
		return EINVAL;
	atomic_store(&srq->rq.limit, attr->srq_limit);
	return 0;
}

int rnic_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct rnic_srq *srq = rnic_srq(ibsrq);

	if (srq->e->dead)
		return EIO;
	*attr = (struct ibv_srq_attr){.max_wr = srq->rq.max_wr,
				      .max_sge = srq->rq.max_sge,
				      .srq_limit = atomic_load(&srq->rq.limit)};
	return 0;
}

int rnic_destroy_srq(struct ibv_srq *ibsrq)
{
	struct rnic_srq *srq = rnic_srq(ibsrq);

	if (atomic_load(&srq->refs))
		return EBUSY;
	rnic_event_forget(rnic_ctx(ibsrq->context), srq, &ibsrq->events_completed,
			  &srq->async_taken, &ibsrq->mutex, &ibsrq->cond);
	atomic_fetch_sub(&rnic_pd(ibsrq->pd)->refs, 1);
	rnic_rq_destroy(&srq->rq);
	pthread_mutex_destroy(&ibsrq->mutex);
	pthread_cond_destroy(&ibsrq->cond);
	free(srq);
	return 0;
}

int rnic_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rnic_srq *srq = rnic_srq(ibsrq);
	bool wake;
	int err;

	if (srq->e->dead) {
		*bad = wr;
		return EIO;
	}
	err = rnic_rq_post(&srq->rq, wr, bad, &wake);
	if (wake) {
		rnic_enter(srq->e);
		rnic_rsp_wake(srq->e, &srq->rq);
		rnic_leave(srq->e);
	}
	return err;
}
