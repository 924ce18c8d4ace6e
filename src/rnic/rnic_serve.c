/* Completions while nobody polls.
 *
 * A layer above may have to act on a completion before its program can go on: a message that
 * announces another one, which is to be read. If the program computes, the progress thread calls
 * that layer (rnic_serve_cq), without any lock, and the layer polls the queue as its program would.
 */
#include <errno.h>
#include <sched.h>
#include "rnic.h"
#include "rnic_cq.h"
#include "rnic_engine.h"

/* What one call may leave, it is called for again; not without end. */
#define ROUNDS 64

void rnic_cq_served(struct rnic_cq *cq)
{
	if (!list_empty(&cq->serve_link))
		return;
	list_add_tail(&cq->serve_link, &cq->e->serve);
	/* relaxed: a hint for the thread, which looks under the lock */
	atomic_store_explicit(&cq->e->to_serve, true, memory_order_relaxed);
}

static bool is_empty(const struct rnic_cq *cq)
{
	return atomic_load(&cq->tail) == atomic_load(&cq->head);
}

bool rnic_is_thread(const struct rnic_engine *e)
{
	return e->has_thread && pthread_equal(pthread_self(), e->thread);
}

void rnic_serve_wait(struct rnic_engine *e, const struct rnic_cq *cq)
{
	while (!rnic_is_thread(e) && atomic_load(&e->serving) &&
	       (!cq || atomic_load(&e->serving) == (uintptr_t)cq)) {
		rnic_unlock(e);
		sched_yield();
		rnic_lock(e);
	}
}

bool rnic_serve(struct rnic_engine *e)
{
	unsigned int n = 0;
	struct rnic_cq *cq;

	if (!atomic_load_explicit(&e->to_serve, memory_order_relaxed))
		return false;
	if (!util_trylock(&e->lock))
		return true; /* not yet, but it must not sleep now */
	atomic_store_explicit(&e->to_serve, false, memory_order_relaxed);
	while (n < ROUNDS && (cq = list_first(&e->serve, struct rnic_cq, serve_link))) {
		void (*serve)(void *arg) = cq->serve;
		void *arg = cq->serve_arg;

		list_del(&cq->serve_link);
		if (is_empty(cq))
			continue;
		atomic_store(&e->serving, (uintptr_t)cq);
		rnic_unlock(e);
		serve(arg);
		rnic_lock(e);
		atomic_store(&e->serving, 0);
		if (cq->serve && !is_empty(cq))
			rnic_cq_served(cq);
		n++;
	}
	rnic_unlock(e);
	return n > 0;
}

int rnic_serve_cq(struct ibv_cq *ibcq, void (*serve)(void *arg), void *arg)
{
	struct rnic_cq *cq = rnic_cq(ibcq);
	struct rnic_engine *e = cq->e;

	if (e->dead)
		return EIO;
	if (serve && !e->use_thread)
		return EOPNOTSUPP;
	rnic_lock(e);
	list_del(&cq->serve_link);
	cq->serve = serve;
	cq->serve_arg = arg;
	rnic_serve_wait(e, cq);
	if (serve && !is_empty(cq))
		rnic_cq_served(cq);
	rnic_unlock(e);
	return 0;
}
