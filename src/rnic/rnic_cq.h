/* Completion queues and completion channels.
 *
 * A queue has a lock of its own, so that taking completions out does not wait for a
 * pass that is under way. Entries are put in by whoever holds the engine's lock; where nobody
 * can ask for events, without the queue's: there is one producer, and tail and head order what
 * it and the consumer see of each other.
 */
#ifndef WEFT_RNIC_CQ_H
#define WEFT_RNIC_CQ_H

#include <pthread.h>
#include <stdatomic.h>
#include <infiniband/verbs.h>
#include "rnic_engine.h"
#include "util_list.h"
#include "util_lock.h"

struct rnic_channel {
	struct ibv_comp_channel ibv; /* first; fd is an eventfd in semaphore mode */
	struct rnic_engine *e;
	struct list_head link; /* on e->channels */
	pthread_mutex_t lock;
	struct list_head ready; /* queues with events to deliver */
};

struct rnic_cqe {
	struct ibv_wc wc;
	uint64_t stamp;      /* ns, when it was put in */
	atomic_uint *polled; /* counts those of a send queue that were taken out; NULL: none */
	bool solicited;
};

enum rnic_notify { RNIC_NOTIFY_NONE, RNIC_NOTIFY_SOLICITED, RNIC_NOTIFY_ANY };

struct rnic_cq {
	union {
		struct ibv_cq ibv;
		struct ibv_cq_ex ex;
	}; /* first */
	struct rnic_engine *e;
	struct rnic_channel *channel;
	struct util_lock lock;
	struct rnic_cqe *ring;
	uint32_t cap;           /* power of two */
	atomic_uint head, tail; /* taken out, put in */
	enum rnic_notify notify;
	unsigned int pollers; /* at work in here: events wait until they have taken theirs */
	uint32_t silent;      /* entries at the tail that came since the last event */
	bool overrun;
	bool stamped;    /* somebody wants to know when */
	atomic_int refs; /* queue pairs that complete here */

	/* Whom the progress thread calls when nobody polls (rnic_serve.c); NULL: nobody. */
	void (*serve)(void *arg);
	void *serve_arg;
	struct list_head serve_link; /* on e->serve */

	struct rnic_due event;        /* an event to be posted when the pass is over */
	struct rnic_timer late;       /* to announce what is still there by then */
	struct list_head ev_link;     /* on channel->ready; channel->lock */
	uint32_t ev_queued, ev_taken; /* not yet / already handed to the application */
	uint32_t async_taken;         /* asynchronous events handed out */

	struct rnic_cqe cur; /* ibv_start_poll: the entry being read */
	bool polling;
};

static inline struct rnic_cq *rnic_cq(struct ibv_cq *cq)
{
	return (struct rnic_cq *)cq;
}

/* Needs the engine's lock. A full queue raises IBV_EVENT_CQ_ERR and loses the entry:
 * returns -ENOSPC, and the queue pair has to go to the error state. */
int rnic_cq_push(struct rnic_cq *cq, const struct ibv_wc *wc, bool solicited);
/* The same for a send request: *polled is raised when it is taken out. */
int rnic_cq_push_sent(struct rnic_cq *cq, const struct ibv_wc *wc, atomic_uint *polled);
/* The same in two steps, without a copy: where to put it, NULL: there is no room; and done. */
struct ibv_wc *rnic_cq_begin(struct rnic_cq *cq);
void rnic_cq_end(struct rnic_cq *cq, bool solicited);
/* Takes out everything that belongs to a queue pair. Needs the engine's lock. */
void rnic_cq_clean(struct rnic_cq *cq, uint32_t qpn);

int rnic_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int rnic_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *rnic_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr);
void rnic_cq_ex_ops(struct rnic_cq *cq, uint64_t wc_flags); /* rnic_cq_ex.c */
bool rnic_cq_pop(struct rnic_cq *cq, struct rnic_cqe *cqe);

/* Around a pass that is run for this queue. What the pass adds and the caller takes away
 * counts as having been there before: it makes no event, and the queue stays armed. Else
 * every program that arms and then polls would get an event for what it has already. */
void rnic_cq_poll_begin(struct rnic_cq *cq);
void rnic_cq_poll_end(struct rnic_cq *cq);

/* An entry was put in, and somebody is to be called for that. */
void rnic_cq_served(struct rnic_cq *cq);

#endif
