/* Receive queues: a queue pair's own, or a shared one (SRQ).
 *
 * Posting takes only the queue's own lock, because applications post receives all the
 * time and a pass may be long. The engine takes entries out under its own: there is one taker, and
 * tail and done order what it and the posters see of each other.
 */
#ifndef WEFT_RNIC_RQ_H
#define WEFT_RNIC_RQ_H

#include <stdatomic.h>
#include <infiniband/verbs.h>
#include "rnic_engine.h"
#include "util_list.h"
#include "util_lock.h"

struct rnic_rwqe {
	uint64_t wr_id;
	uint64_t length; /* of all elements */
	int num_sge;
	struct ibv_sge sge[];
};

struct rnic_rq {
	struct util_lock lock;
	uint32_t cap; /* power of two, at least max_wr */
	uint32_t max_wr, max_sge;
	/* Entries [head, tail) can be taken: head moves under the engine's lock, tail under the
	 * queue's. Those in [done, head) are held: taken, and may be given back, so they keep
	 * their place until they are used. */
	uint32_t head;
	atomic_uint tail, done;
	size_t stride;
	uint8_t *ring;
	atomic_uint limit; /* SRQ: raise an event when fewer are left; 0: off */
	/* Queue pairs whose peer was told to wait. The list needs the engine's lock;
	 * the flag is set under the queue's lock, so that a post cannot miss it. */
	struct list_head waiters;
	bool has_waiters;
};

struct rnic_srq {
	struct ibv_srq ibv; /* first */
	struct rnic_engine *e;
	struct rnic_rq rq;
	uint32_t srq_num;
	uint32_t async_taken;
	atomic_int refs;
};

static inline struct rnic_srq *rnic_srq(struct ibv_srq *srq)
{
	return (struct rnic_srq *)srq;
}

int rnic_rq_init(struct rnic_rq *rq, uint32_t max_wr, uint32_t max_sge);
void rnic_rq_destroy(struct rnic_rq *rq);
size_t rnic_rwqe_size(const struct rnic_rq *rq);
/* Positive errno. *wake: somebody waits for what was posted. */
int rnic_rq_post(struct rnic_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad, bool *wake);
/* Takes the oldest entry into *out (rnic_rwqe_size bytes). It goes on counting as posted until
 * it is given back (first again), or used. When there is none: false, and with `waiter` the
 * caller is put on the list of waiters (it may be, too, when one came just then). *low: an SRQ fell
 * below its limit. These need the engine's lock. */
bool rnic_rq_hold(struct rnic_rq *rq, struct rnic_rwqe *out, struct list_head *waiter, bool *low);
void rnic_rq_give_back(struct rnic_rq *rq, const struct rnic_rwqe *wqe);
void rnic_rq_used(struct rnic_rq *rq);
/* Every post has either put its entries in, or will see what the caller has written before. */
void rnic_rq_fence(struct rnic_rq *rq);
/* Puts the caller on the list of waiters, as rnic_rq_hold does when there is none. */
void rnic_rq_wait(struct rnic_rq *rq, struct list_head *waiter);
/* Whether fewer than three quarters of what was posted is held. */
bool rnic_rq_plenty(const struct rnic_rq *rq);
/* Whether most of the queue is not posted, or held. */
bool rnic_rq_scarce(const struct rnic_rq *rq);
void rnic_rq_reset(struct rnic_rq *rq);

int rnic_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
