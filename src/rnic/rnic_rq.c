#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "rnic_rq.h"

size_t rnic_rwqe_size(const struct rnic_rq *rq)
{
	return rq->stride;
}

int rnic_rq_init(struct rnic_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
	memset(rq, 0, sizeof(*rq));
	rq->cap = 1;
	while (rq->cap < max_wr)
		rq->cap *= 2;
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rq->stride = sizeof(struct rnic_rwqe) + max_sge * sizeof(struct ibv_sge);
	rq->ring = calloc(rq->cap, rq->stride);
	if (!rq->ring)
		return -ENOMEM;
	pthread_mutex_init(&rq->lock, NULL);
	list_init(&rq->waiters);
	return 0;
}

void rnic_rq_destroy(struct rnic_rq *rq)
{
	if (!rq->ring)
		return;
	pthread_mutex_destroy(&rq->lock);
	free(rq->ring);
	rq->ring = NULL;
}

static struct rnic_rwqe *slot(struct rnic_rq *rq, uint32_t i)
{
	return (struct rnic_rwqe *)(rq->ring + (i & (rq->cap - 1)) * rq->stride);
}

int rnic_rq_post(struct rnic_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, bool *wake)
{
	int err = 0;

	pthread_mutex_lock(&rq->lock);
	for (; wr; wr = wr->next) {
		struct rnic_rwqe *wqe;

		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
			err = EINVAL;
		else if (rq->tail - rq->head + rq->held >= rq->max_wr)
			err = ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		wqe = slot(rq, rq->tail);
		wqe->wr_id = wr->wr_id;
		wqe->num_sge = wr->num_sge;
		wqe->length = 0;
		for (int i = 0; i < wr->num_sge; i++) {
			wqe->sge[i] = wr->sg_list[i];
			wqe->length += wr->sg_list[i].length;
		}
		rq->tail++;
	}
	*wake = rq->has_waiters;
	rq->has_waiters = false;
	pthread_mutex_unlock(&rq->lock);
	return err;
}

static void wait_locked(struct rnic_rq *rq, struct list_head *waiter)
{
	rq->has_waiters = true;
	if (list_empty(waiter))
		list_add_tail(waiter, &rq->waiters);
}

bool rnic_rq_take(struct rnic_rq *rq, struct rnic_rwqe *out, struct list_head *waiter, bool *low)
{
	bool got = false;

	*low = false;
	pthread_mutex_lock(&rq->lock);
	if (rq->head != rq->tail) {
		const struct rnic_rwqe *wqe = slot(rq, rq->head++);

		memcpy(out, wqe, sizeof(*wqe) + (size_t)wqe->num_sge * sizeof(wqe->sge[0]));
		got = true;
		if (rq->limit && rq->tail - rq->head < rq->limit) {
			rq->limit = 0; /* one event for each time it is set */
			*low = true;
		}
	} else if (waiter) {
		wait_locked(rq, waiter);
	}
	pthread_mutex_unlock(&rq->lock);
	return got;
}

void rnic_rq_wait(struct rnic_rq *rq, struct list_head *waiter)
{
	pthread_mutex_lock(&rq->lock);
	wait_locked(rq, waiter);
	pthread_mutex_unlock(&rq->lock);
}

bool rnic_rq_plenty(struct rnic_rq *rq)
{
	bool plenty;

	pthread_mutex_lock(&rq->lock);
	plenty = 3 * (rq->tail - rq->head) > rq->held;
	pthread_mutex_unlock(&rq->lock);
	return plenty;
}

void rnic_rq_hold(struct rnic_rq *rq)
{
	pthread_mutex_lock(&rq->lock);
	rq->held++;
	pthread_mutex_unlock(&rq->lock);
}

void rnic_rq_used(struct rnic_rq *rq)
{
	pthread_mutex_lock(&rq->lock);
	rq->held--;
	pthread_mutex_unlock(&rq->lock);
}

void rnic_rq_give_back(struct rnic_rq *rq, const struct rnic_rwqe *wqe)
{
	pthread_mutex_lock(&rq->lock);
	memcpy(slot(rq, --rq->head), wqe,
	       sizeof(*wqe) + (size_t)wqe->num_sge * sizeof(wqe->sge[0]));
	rq->held--;
	pthread_mutex_unlock(&rq->lock);
}

void rnic_rq_reset(struct rnic_rq *rq)
{
	pthread_mutex_lock(&rq->lock);
	rq->head = rq->tail = 0;
	pthread_mutex_unlock(&rq->lock);
}
