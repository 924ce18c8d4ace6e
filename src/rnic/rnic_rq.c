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
	list_init(&rq->waiters);
	return 0;
}

void rnic_rq_destroy(struct rnic_rq *rq)
{
	if (!rq->ring)
		return;
	free(rq->ring);
	rq->ring = NULL;
}

/* acquire: pairs with the release of whoever has written the entries, or is done with them */
static uint32_t tail_of(const struct rnic_rq *rq)
{
	return atomic_load_explicit(&rq->tail, memory_order_acquire);
}

static uint32_t done_of(const struct rnic_rq *rq)
{
	return atomic_load_explicit(&rq->done, memory_order_acquire);
}

static struct rnic_rwqe *slot(struct rnic_rq *rq, uint32_t i)
{
	return (struct rnic_rwqe *)(rq->ring + (i & (rq->cap - 1)) * rq->stride);
}

int rnic_rq_post(struct rnic_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, bool *wake)
{
	uint32_t tail;
	int err = 0;

	util_lock(&rq->lock);
	for (tail = tail_of(rq); wr; wr = wr->next, tail++) {
		struct rnic_rwqe *wqe = slot(rq, tail);

		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > rq->max_sge)
			err = EINVAL;
		else if (tail - done_of(rq) >= rq->max_wr)
			err = ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		wqe->wr_id = wr->wr_id;
		wqe->num_sge = wr->num_sge;
		wqe->length = 0;
		for (int i = 0; i < wr->num_sge; i++) {
			wqe->sge[i] = wr->sg_list[i];
			wqe->length += wr->sg_list[i].length;
		}
	}
	/* release: the entries are written */
	atomic_store_explicit(&rq->tail, tail, memory_order_release);
	*wake = rq->has_waiters;
	rq->has_waiters = false;
	util_unlock(&rq->lock);
	return err;
}

void rnic_rq_fence(struct rnic_rq *rq)
{
	util_lock(&rq->lock);
	util_unlock(&rq->lock);
}

void rnic_rq_wait(struct rnic_rq *rq, struct list_head *waiter)
{
	util_lock(&rq->lock);
	rq->has_waiters = true;
	util_unlock(&rq->lock);
	if (list_empty(waiter))
		list_add_tail(waiter, &rq->waiters);
}

/* Whether fewer are left than an SRQ's limit. */
static bool fell(struct rnic_rq *rq)
{
	/* relaxed: it is a number that the application has set at some time */
	unsigned int limit = atomic_load_explicit(&rq->limit, memory_order_relaxed);

	/* One event for each time that it is set; if it was set again just now, another. */
	return limit && tail_of(rq) - rq->head < limit &&
	       atomic_compare_exchange_strong(&rq->limit, &limit, 0);
}

bool rnic_rq_hold(struct rnic_rq *rq, struct rnic_rwqe *out, struct list_head *waiter, bool *low)
{
	const struct rnic_rwqe *wqe = slot(rq, rq->head);

	*low = false;
	if (rq->head == tail_of(rq)) {
		if (!waiter)
			return false;
		rnic_rq_wait(rq, waiter);
		/* Once more: a post that came before the flag wakes nobody. */
		if (rq->head == tail_of(rq))
			return false;
	}
	memcpy(out, wqe, sizeof(*wqe) + (size_t)wqe->num_sge * sizeof(wqe->sge[0]));
	rq->head++;
	*low = fell(rq);
	return true;
}

bool rnic_rq_plenty(const struct rnic_rq *rq)
{
	return 3 * (tail_of(rq) - rq->head) > rq->head - done_of(rq);
}

bool rnic_rq_scarce(const struct rnic_rq *rq)
{
	return 2 * (tail_of(rq) - rq->head) < rq->max_wr;
}

void rnic_rq_used(struct rnic_rq *rq)
{
	/* release: the entry has been read, a post may write over it */
	atomic_store_explicit(&rq->done, done_of(rq) + 1, memory_order_release);
}

void rnic_rq_give_back(struct rnic_rq *rq, const struct rnic_rwqe *wqe)
{
	memcpy(slot(rq, --rq->head), wqe,
	       sizeof(*wqe) + (size_t)wqe->num_sge * sizeof(wqe->sge[0]));
}

void rnic_rq_reset(struct rnic_rq *rq)
{
	util_lock(&rq->lock);
	rq->head = 0;
	atomic_store_explicit(&rq->tail, 0, memory_order_relaxed);
	atomic_store_explicit(&rq->done, 0, memory_order_relaxed);
	util_unlock(&rq->lock);
}
