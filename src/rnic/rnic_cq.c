#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "rnic_cq.h"
#include "rnic_ctx.h"

/* ---- channels ---- */

struct ibv_comp_channel *rnic_create_comp_channel(struct ibv_context *ctx)
{
	struct rnic_engine *e = rnic_ctx(ctx)->e;
	struct rnic_channel *ch;

	if (e->dead) {
		errno = EIO;
		return NULL;
	}
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return NULL;
	ch->ibv.context = ctx;
	ch->ibv.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->ibv.fd < 0) {
		free(ch);
		return NULL;
	}
	ch->e = e;
	pthread_mutex_init(&ch->lock, NULL);
	list_init(&ch->ready);
	rnic_lock(e);
	list_add_tail(&ch->link, &e->channels);
	rnic_unlock(e);
	rnic_ctx_hold(ctx);
	return &ch->ibv;
}

int rnic_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct rnic_channel *ch = (struct rnic_channel *)channel;

	/* refcnt counts the queues that report here; creation and destruction of queues
	 * change it under the engine's lock. */
	rnic_lock(ch->e);
	if (ch->ibv.refcnt) {
		rnic_unlock(ch->e);
		return EBUSY;
	}
	list_del(&ch->link);
	rnic_unlock(ch->e);
	if (ch->ibv.fd >= 0)
		close(ch->ibv.fd);
	pthread_mutex_destroy(&ch->lock);
	rnic_ctx_put(ch->ibv.context);
	free(ch);
	return 0;
}

static void channel_post(struct rnic_cq *cq)
{
	struct rnic_channel *ch = cq->channel;
	uint64_t one = 1;

	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	if (!cq->ev_queued++)
		list_add_tail(&cq->ev_link, &ch->ready);
	pthread_mutex_unlock(&ch->lock);
	if (write(ch->ibv.fd, &one, sizeof(one)) < 0)
		util_log(UTIL_LOG_ERROR, "completion channel: %s", strerror(errno));
}

int rnic_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **out, void **cq_context)
{
	struct rnic_channel *ch = (struct rnic_channel *)channel;
	struct rnic_cq *cq;
	uint64_t n;

	for (;;) {
		if (ch->e->dead) {
			errno = EIO;
			return -1;
		}
		rnic_engine_unpark(ch->e);
		if (read(ch->ibv.fd, &n, sizeof(n)) < 0)
			return -1;
		pthread_mutex_lock(&ch->lock);
		cq = list_first(&ch->ready, struct rnic_cq, ev_link);
		if (cq) {
			list_del(&cq->ev_link);
			cq->ev_taken++;
			if (--cq->ev_queued)
				list_add_tail(&cq->ev_link, &ch->ready);
		}
		pthread_mutex_unlock(&ch->lock);
		if (!cq)
			continue; /* the queue was destroyed between write and read */
		*out = &cq->ibv;
		*cq_context = cq->ibv.cq_context;
		return 0;
	}
}

void rnic_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	if (rnic_cq(cq)->e->dead)
		return;
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += n;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}

/* ---- queues ---- */

/* acquire: pairs with the release of whoever put entries in, or took them out; with the queue's
 * lock held it is not needed and costs nothing */
static uint32_t head_of(const struct rnic_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire);
}

static uint32_t tail_of(const struct rnic_cq *cq)
{
	return atomic_load_explicit(&cq->tail, memory_order_acquire);
}

/* release: the entries are written, or have been read */
static void set_head(struct rnic_cq *cq, uint32_t head)
{
	atomic_store_explicit(&cq->head, head, memory_order_release);
}

static void set_tail(struct rnic_cq *cq, uint32_t tail)
{
	atomic_store_explicit(&cq->tail, tail, memory_order_release);
}

static struct rnic_cqe *entry(struct rnic_cq *cq, uint32_t i)
{
	return &cq->ring[i & (cq->cap - 1)];
}

static uint32_t round_up(uint32_t n)
{
	uint32_t cap = 2;

	while (cap < n)
		cap *= 2;
	return cap;
}

static void run_event(struct rnic_due *d)
{
	struct rnic_cq *cq = container_of(d, struct rnic_cq, event);

	util_lock(&cq->lock);
	cq->silent = 0; /* it stands for everything that is there */
	util_unlock(&cq->lock);
	channel_post(cq);
}

static void on_late(struct rnic_timer *t, uint64_t now);

static struct rnic_cq *cq_new(struct ibv_context *ctx, uint32_t cqe, void *cq_context,
			      struct ibv_comp_channel *channel, uint32_t vector)
{
	struct rnic_engine *e = rnic_ctx(ctx)->e;
	struct rnic_cq *cq;

	if (e->dead) {
		errno = EIO;
		return NULL;
	}
	if (!cqe || cqe > RNIC_MAX_CQE || vector >= (uint32_t)ctx->num_comp_vectors) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->cap = round_up(cqe);
	cq->ring = calloc(cq->cap, sizeof(*cq->ring));
	if (!cq->ring) {
		free(cq);
		return NULL;
	}
	cq->e = e;
	cq->ibv.context = ctx;
	cq->ibv.channel = channel;
	cq->ibv.cq_context = cq_context;
	cq->ibv.cqe = (int)cq->cap;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	list_init(&cq->ev_link);
	list_init(&cq->event.link);
	list_init(&cq->serve_link);
	cq->event.run = run_event;
	rnic_timer_init(&cq->late, on_late);
	cq->channel = (struct rnic_channel *)channel;
	if (channel) {
		rnic_lock(e);
		channel->refcnt++;
		rnic_unlock(e);
	}
	rnic_ctx_hold(ctx);
	return cq;
}

struct ibv_cq *rnic_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector)
{
	struct rnic_cq *cq;

	if (cqe < 0 || comp_vector < 0) {
		errno = EINVAL;
		return NULL;
	}
	cq = cq_new(ctx, (uint32_t)cqe, cq_context, channel, (uint32_t)comp_vector);
	return cq ? &cq->ibv : NULL;
}

#define WC_EX_KNOWN                                                                                \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                             \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

struct ibv_cq_ex *rnic_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
	struct rnic_cq *cq;

	if (attr->wc_flags & ~(uint64_t)WC_EX_KNOWN ||
	    attr->comp_mask & ~(uint32_t)IBV_CQ_INIT_ATTR_MASK_FLAGS ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = cq_new(ctx, attr->cqe, attr->cq_context, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	rnic_cq_ex_ops(cq, attr->wc_flags);
	return &cq->ex;
}

int rnic_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct rnic_cq *cq = rnic_cq(ibcq);
	struct rnic_cqe *ring;
	uint32_t cap;
	int err = 0;

	if (cq->e->dead)
		return EIO;
	if (cqe <= 0 || cqe > RNIC_MAX_CQE)
		return EINVAL;
	cap = round_up((uint32_t)cqe);
	ring = calloc(cap, sizeof(*ring));
	if (!ring)
		return ENOMEM;
	rnic_lock(cq->e); /* keeps others from putting something in */
	util_lock(&cq->lock);
	if (tail_of(cq) - head_of(cq) > cap) {
		err = EINVAL; /* man page: fewer than what is waiting in it */
		free(ring);
	} else {
		for (uint32_t i = head_of(cq); i != tail_of(cq); i++)
			ring[i & (cap - 1)] = *entry(cq, i);
		free(cq->ring);
		cq->ring = ring;
		cq->cap = cap;
		cq->ibv.cqe = (int)cap;
	}
	util_unlock(&cq->lock);
	rnic_unlock(cq->e);
	return err;
}

static void channel_forget(struct rnic_cq *cq)
{
	struct rnic_channel *ch = cq->channel;

	if (cq->e->dead) {
		ch->ibv.refcnt--;
		return;
	}
	rnic_lock(cq->e);
	list_del(&cq->event.link);
	rnic_timer_cancel(cq->e, &cq->late);
	pthread_mutex_lock(&ch->lock);
	list_del(&cq->ev_link);
	rnic_event_drain(ch->ibv.fd, cq->ev_queued);
	cq->ev_queued = 0;
	pthread_mutex_unlock(&ch->lock);
	ch->ibv.refcnt--;
	rnic_unlock(cq->e);
	/* ibv_destroy_cq waits until all events handed out are acknowledged. */
	pthread_mutex_lock(&cq->ibv.mutex);
	while (cq->ibv.comp_events_completed != cq->ev_taken)
		pthread_cond_wait(&cq->ibv.cond, &cq->ibv.mutex);
	pthread_mutex_unlock(&cq->ibv.mutex);
}

int rnic_destroy_cq(struct ibv_cq *ibcq)
{
	struct rnic_cq *cq = rnic_cq(ibcq);

	if (atomic_load(&cq->refs))
		return EBUSY;
	if (cq->serve)
		rnic_serve_cq(ibcq, NULL, NULL);
	if (cq->channel)
		channel_forget(cq);
	rnic_event_forget(rnic_ctx(ibcq->context), cq, &ibcq->async_events_completed,
			  &cq->async_taken, &ibcq->mutex, &ibcq->cond);
	pthread_mutex_destroy(&ibcq->mutex);
	pthread_cond_destroy(&ibcq->cond);
	rnic_ctx_put(ibcq->context);
	free(cq->ring);
	free(cq);
	return 0;
}

/* Whether an entry that was put in just now makes an event. */
static bool announce(struct rnic_cq *cq, bool solicited)
{
	bool notify = !cq->pollers && (cq->notify == RNIC_NOTIFY_ANY ||
				       (cq->notify == RNIC_NOTIFY_SOLICITED && solicited));

	if (notify)
		cq->notify = RNIC_NOTIFY_NONE;
	cq->silent = notify ? 0 : cq->silent + 1;
	return notify;
}

static void overrun(struct rnic_cq *cq)
{
	if (cq->overrun)
		return;
	cq->overrun = true;
	util_log(UTIL_LOG_WARN,
		 "completion queue of %u entries is full: completions are lost; make it as large "
		 "as all send and receive queues that report to it",
		 cq->cap);
	rnic_event_raise(rnic_ctx(cq->ibv.context), IBV_EVENT_CQ_ERR, cq);
}

struct ibv_wc *rnic_cq_begin(struct rnic_cq *cq)
{
	uint32_t tail = tail_of(cq);

	if (tail - head_of(cq) == cq->cap) {
		overrun(cq);
		return NULL;
	}
	entry(cq, tail)->polled = NULL;
	return &entry(cq, tail)->wc;
}

void rnic_cq_end(struct rnic_cq *cq, bool solicited)
{
	uint32_t tail = tail_of(cq);
	struct rnic_cqe *cqe = entry(cq, tail);
	bool notify = false;

	cqe->stamp = cq->stamped ? util_now_ns() : 0;
	cqe->solicited = solicited || cqe->wc.status != IBV_WC_SUCCESS;
	if (cq->channel)
		util_lock(&cq->lock);
	set_tail(cq, tail + 1);
	if (cq->channel) {
		notify = announce(cq, cqe->solicited);
		util_unlock(&cq->lock);
	}
	if (cq->serve)
		rnic_cq_served(cq);
	/* One event for all that a pass brings: a program that wakes up in the middle of it
	 * would be woken again for what it has taken already. */
	if (notify)
		rnic_after(cq->e, &cq->event);
}

int rnic_cq_push(struct rnic_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	struct ibv_wc *to = rnic_cq_begin(cq);

	if (!to)
		return -ENOSPC;
	*to = *wc;
	rnic_cq_end(cq, solicited);
	return 0;
}

int rnic_cq_push_sent(struct rnic_cq *cq, const struct ibv_wc *wc, atomic_uint *polled)
{
	struct ibv_wc *to = rnic_cq_begin(cq);

	if (!to)
		return -ENOSPC;
	*to = *wc;
	entry(cq, tail_of(cq))->polled = polled;
	rnic_cq_end(cq, false);
	return 0;
}

/* An entry leaves: its place in the send queue is free. The queue's lock is held, and a send queue
 * has only one completion queue, so nobody else writes there. */
static void taken(const struct rnic_cqe *cqe)
{
	/* release: pairs with the acquire of a poster */
	if (cqe->polled)
		atomic_store_explicit(cqe->polled,
				      atomic_load_explicit(cqe->polled, memory_order_relaxed) + 1,
				      memory_order_release);
}

bool rnic_cq_pop(struct rnic_cq *cq, struct rnic_cqe *cqe)
{
	uint32_t head;
	bool got;

	util_lock(&cq->lock);
	head = head_of(cq);
	got = head != tail_of(cq);
	if (got) {
		*cqe = *entry(cq, head);
		taken(cqe);
		set_head(cq, head + 1);
	}
	util_unlock(&cq->lock);
	return got;
}

static int take(struct rnic_cq *cq, int n, struct ibv_wc *wc)
{
	uint32_t head, tail;
	int got = 0;

	if (head_of(cq) == tail_of(cq))
		return 0;
	util_lock(&cq->lock);
	head = head_of(cq);
	tail = tail_of(cq);
	while (got < n && head != tail) {
		const struct rnic_cqe *cqe = entry(cq, head++);

		wc[got++] = cqe->wc;
		taken(cqe);
	}
	set_head(cq, head);
	util_unlock(&cq->lock);
	return got;
}

/* Whether something is waiting that no event has announced. An adapter that is armed
 * with the consumer's index reports what came after the last poll, and programs that
 * poll, arm and sleep (UCX) count on it. */
static bool unannounced(struct rnic_cq *cq)
{
	bool any = cq->notify == RNIC_NOTIFY_ANY;
	uint32_t tail = tail_of(cq), there = tail - head_of(cq);

	if (cq->notify == RNIC_NOTIFY_NONE || cq->pollers)
		return false;
	if (cq->silent > there)
		cq->silent = there;
	for (uint32_t i = tail - cq->silent; i != tail; i++)
		if (any || entry(cq, i)->solicited)
			return true;
	return false;
}

/* Programs that arm and then poll take what is there, and would be woken for nothing if
 * it were announced at once: so only what is still there a moment later is. */
#define LATE_NS (50 * UTIL_NS_PER_US)

static void on_late(struct rnic_timer *t, uint64_t now)
{
	struct rnic_cq *cq = container_of(t, struct rnic_cq, late);
	bool post;

	(void)now;
	util_lock(&cq->lock);
	post = unannounced(cq);
	if (post) {
		cq->notify = RNIC_NOTIFY_NONE;
		cq->silent = 0;
	}
	util_unlock(&cq->lock);
	if (post)
		channel_post(cq);
}

static void announce_late(struct rnic_cq *cq)
{
	rnic_lock(cq->e);
	if (!cq->e->use_thread)
		on_late(&cq->late, 0); /* nobody looks at timers while the program sleeps */
	else if (cq->late.slot < 0)
		rnic_timer_arm(cq->e, &cq->late, util_now_ns() + LATE_NS);
	rnic_unlock(cq->e);
}

void rnic_cq_poll_begin(struct rnic_cq *cq)
{
	if (!cq->channel)
		return; /* nobody can wait for events of this one */
	util_lock(&cq->lock);
	cq->pollers++;
	util_unlock(&cq->lock);
}

void rnic_cq_poll_end(struct rnic_cq *cq)
{
	bool late;

	if (!cq->channel)
		return;
	util_lock(&cq->lock);
	cq->pollers--;
	late = unannounced(cq);
	util_unlock(&cq->lock);
	if (late)
		announce_late(cq);
}

int rnic_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct rnic_cq *cq = rnic_cq(ibcq);
	int got;

	if (cq->e->dead)
		return -EIO;
	if (n <= 0)
		return 0;
	got = take(cq, n, wc);
	if (got)
		return got;
	rnic_cq_poll_begin(cq);
	if (rnic_engine_poll(cq->e))
		got = take(cq, n, wc);
	rnic_cq_poll_end(cq);
	return got;
}

int rnic_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct rnic_cq *cq = rnic_cq(ibcq);
	bool late;

	if (cq->e->dead)
		return EIO;
	util_lock(&cq->lock);
	if (cq->notify != RNIC_NOTIFY_ANY)
		cq->notify = solicited_only ? RNIC_NOTIFY_SOLICITED : RNIC_NOTIFY_ANY;
	late = cq->channel && unannounced(cq);
	util_unlock(&cq->lock);
	if (late)
		announce_late(cq);
	/* Who asks for an event is going to sleep, by get_cq_event or by poll(2). */
	rnic_engine_unpark(cq->e);
	return 0;
}

void rnic_cq_clean(struct rnic_cq *cq, uint32_t qpn)
{
	uint32_t to;

	util_lock(&cq->lock);
	to = head_of(cq);
	for (uint32_t i = to; i != tail_of(cq); i++)
		if (entry(cq, i)->wc.qp_num != qpn)
			*entry(cq, to++) = *entry(cq, i);
	set_tail(cq, to);
	util_unlock(&cq->lock);
}
