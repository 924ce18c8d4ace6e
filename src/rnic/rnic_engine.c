#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "rnic_engine.h"
#include "rnic_fork.h"
#include "rnic_table.h"
#include "rnic_tune.h"

/* How long an acknowledgement waits for data to ride on, or for more to acknowledge: longer than a
 * program needs to answer, or, ... */
#define HOLD_NS (8 * UTIL_NS_PER_US)
/* ... where that was in vain so often, but for one in so many, in case it answers again: shorter
 * than a packet's way. */
#define HOLD_SHORT_NS (2 * UTIL_NS_PER_US)
#define HOLD_VAIN     4
#define HOLD_AGAIN    16
/* And how long while more keeps coming. */
#define HOLD_MAX_NS (50 * UTIL_NS_PER_US)
/* Between two looks at epoll for what is not hot: at most so long, ... */
#define ASK_MAX_NS (12 * UTIL_NS_PER_US)
/* ... from so long on twice as long each time that this many looks were in vain. */
#define ASK_MIN_NS 400
#define ASK_MISSES 16
/* Who comes less often than this looks at everything each time. */
#define SELDOM_NS (100 * UTIL_NS_PER_US)
/* Polls of rings for one look at the clock. */
#define CLOCK_EVERY 8
/* Looks at rings in a pass that finds nothing: the rest of a poll takes as long as all of them. */
#define RING_LOOKS 8
/* Passes in a row with something in a ring before sockets are looked at, too. */
#define RINGS_RUN 16
/* A hot socket that had nothing for this many passes is not hot. */
#define HOT_IDLE_MAX 512

static pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;
static struct rnic_engine *engine; /* of this process; protected by global */

/* ---- the epoll set ---- */

int rnic_io_add(struct rnic_engine *e, struct rnic_io *io, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = io};

	io->e = e;
	io->events = events;
	if (epoll_ctl(e->epfd, EPOLL_CTL_ADD, io->fd, &ev))
		return -errno;
	list_add_tail(&io->link, &e->ios);
	e->n_data += io->data;
	e->n_blocked += !!(events & EPOLLOUT);
	return 0;
}

void rnic_io_want(struct rnic_io *io, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = io};

	if (io->fd < 0 || io->events == events)
		return;
	io->e->n_blocked += !!(events & EPOLLOUT) - !!(io->events & EPOLLOUT);
	io->events = events;
	epoll_ctl(io->e->epfd, EPOLL_CTL_MOD, io->fd, &ev);
}

static void reap(struct rnic_engine *e)
{
	struct rnic_io *io;

	while ((io = list_first(&e->graveyard, struct rnic_io, link))) {
		list_del(&io->link);
		if (io->release)
			io->release(io);
	}
}

void rnic_io_close(struct rnic_io *io)
{
	struct rnic_engine *e = io->e;

	if (io->fd < 0)
		return;
	e->n_data -= io->data;
	e->n_blocked -= !!(io->events & EPOLLOUT);
	for (int i = 0; i < RNIC_HOT; i++)
		if (e->hot[i].io == io)
			e->hot[i].io = NULL;
	if (e->last_active == io)
		e->last_active = NULL;
	/* Explicitly: as long as a child between fork and exec has a copy, closing ours
	 * would leave the registration behind, with a pointer to what is freed soon. */
	epoll_ctl(e->epfd, EPOLL_CTL_DEL, io->fd, NULL);
	close(io->fd);
	io->fd = -1;
	list_del(&io->link);
	list_add_tail(&io->link, &e->graveyard);
	if (!e->in_pass)
		reap(e);
}

void rnic_enter(struct rnic_engine *e)
{
	rnic_lock(e);
	e->in_pass = true;
}

/* The end of a pass, or of a call: what goes is freed, what was put off is done. */
static void settle(struct rnic_engine *e)
{
	struct rnic_due *d;

	while ((d = list_first(&e->after, struct rnic_due, link))) {
		list_del(&d->link);
		d->run(d);
	}
	e->in_pass = false; /* only now: what was put off may close things, too */
	reap(e);
}

void rnic_leave(struct rnic_engine *e)
{
	settle(e);
	rnic_unlock(e);
}

static bool is_hot(const struct rnic_engine *e, const struct rnic_io *io)
{
	for (int i = 0; i < RNIC_HOT; i++)
		if (e->hot[i].io == io)
			return true;
	return false;
}

/* The second time in a row makes a socket hot: with many busy sockets none is worth
 * trying first. */
static void heat(struct rnic_engine *e, struct rnic_io *io)
{
	int coldest = 0;

	if (e->last_active != io) {
		e->last_active = io;
		return;
	}
	for (int i = 0; i < RNIC_HOT; i++)
		if (!e->hot[i].io || (e->hot[coldest].io && e->hot[i].idle > e->hot[coldest].idle))
			coldest = i;
	e->hot[coldest].io = io;
	e->hot[coldest].idle = 0;
}

static bool ask_epoll(struct rnic_engine *e)
{
	struct epoll_event ev[32];
	bool did = false, worth = false;
	int n = epoll_wait(e->epfd, ev, 32, 0);

	for (int i = 0; i < n; i++) {
		struct rnic_io *io = ev[i].data.ptr;
		bool hot, got;

		if (io->fd < 0)
			continue; /* closed by an earlier one of this batch */
		hot = is_hot(e, io);
		if (io->data && !hot)
			heat(e, io);
		got = io->ready(io, ev[i].events);
		did |= got;
		worth |= got && !hot; /* a hot one would have been tried in a moment anyway */
	}
	if (worth) {
		e->ask_gap = 0;
		e->ask_misses = 0;
	} else if (++e->ask_misses == ASK_MISSES) {
		e->ask_misses = 0;
		e->ask_gap = e->ask_gap ? 2 * e->ask_gap : ASK_MIN_NS;
		if (e->ask_gap > ASK_MAX_NS)
			e->ask_gap = ASK_MAX_NS;
	}
	e->ask_at = e->now + e->ask_gap;
	return did;
}

static bool try_hot(struct rnic_engine *e)
{
	bool did = false;

	for (int i = 0; i < RNIC_HOT; i++) {
		struct rnic_io *io = e->hot[i].io;

		if (!io)
			continue;
		if (io->ready(io, EPOLLIN)) {
			e->hot[i].idle = 0;
			did = true;
		} else if (++e->hot[i].idle > HOT_IDLE_MAX) {
			e->hot[i].io = NULL;
		}
	}
	return did;
}

/* ---- a pass ---- */

static bool may_wait(const struct rnic_due *d, uint64_t now)
{
	bool hope = d->vain < HOLD_VAIN || d->vain % HOLD_AGAIN == 0;

	return (d->busy || now - d->last < (hope ? HOLD_NS : HOLD_SHORT_NS)) &&
	       now - d->first < HOLD_MAX_NS;
}

void rnic_due_rides(struct rnic_due *d)
{
	if (!list_empty(&d->link))
		d->vain = 0;
	list_del(&d->link);
}

static void run_due(struct rnic_engine *e, uint64_t now, bool all)
{
	struct list_head work;
	struct rnic_due *d;

	/* What one run does may take others off the list, or put new ones on it; those wait
	 * for the next time. */
	list_init(&work);
	list_splice_tail(&e->due, &work);
	while ((d = list_first(&work, struct rnic_due, link))) {
		list_del(&d->link);
		if (!all && may_wait(d, now)) {
			list_add_tail(&d->link, &e->due);
			continue;
		}
		d->vain++; /* after 255, a few more tries */
		d->run(d);
	}
}

/* A look at memory costs next to nothing, a look at a socket a system call: while rings have
 * something, sockets are looked at only now and then. */
static bool look_rings(struct rnic_engine *e)
{
	struct rnic_ring *r, *tmp;
	unsigned int looks = 0;
	bool did = false;

	do {
		list_for_each_safe (r, tmp, &e->rings, link) {
			did |= r->look(r);
			looks++;
		}
	} while (!did && looks && looks < RING_LOOKS);
	atomic_store_explicit(&e->has_rings, !list_empty(&e->rings), memory_order_relaxed);
	e->ring_run = did ? e->ring_run + 1 : 0;
	return did;
}

static bool sleep_rings(struct rnic_engine *e, bool asleep)
{
	struct rnic_ring *r;
	bool any = false;

	e->rings_asleep = asleep;
	list_for_each (r, &e->rings, link)
		any |= r->sleep(r, asleep);
	return any;
}

/* A poller may have found it, while the thread sleeps and has not told this one that it does. */
void rnic_engine_ring(struct rnic_engine *e, struct rnic_ring *r)
{
	list_add_tail(&r->link, &e->rings);
	rnic_engine_wake(e, 0);
}

/* Who rings takes the rings for awake from then on, and rings no more. If a poller is here first,
 * the thread has not seen it, and would sleep on. */
static bool bell_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_engine *e = container_of(io, struct rnic_engine, bell_io);
	uint64_t n;

	(void)events;
	if (read(io->fd, &n, sizeof(n)) <= 0)
		return false;
	rnic_engine_wake(e, 0);
	return true;
}

int rnic_engine_bell(struct rnic_engine *e)
{
	int err;

	if (e->bell_io.fd >= 0)
		return 0;
	e->bell_io = (struct rnic_io){.ready = bell_ready};
	e->bell_io.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (e->bell_io.fd < 0)
		return -errno;
	err = rnic_io_add(e, &e->bell_io, EPOLLIN);
	if (err) {
		close(e->bell_io.fd);
		e->bell_io.fd = -1;
	}
	return err;
}

static bool pass(struct rnic_engine *e, uint64_t now, bool ask)
{
	bool did = false;

	if (now > e->now) /* a poller's may be older than the thread's */
		e->now = now;
	e->in_pass = true;
	did = look_rings(e);
	if (!did || ask || e->ring_run % RINGS_RUN == 0) {
		run_due(e, now, false);
		did |= try_hot(e);
		if (ask || e->n_blocked || now >= e->ask_at)
			did |= ask_epoll(e);
		if (rnic_timer_next(e) <= now)
			rnic_timer_run(e, now);
	}
	settle(e);
	return did;
}

/* Reading the clock takes a tenth of the time of a message through a ring. Who polls rings does
 * so every few hundred nanoseconds; the time of one of the last polls is good enough. If it does
 * not, the thread has been at work in between, and the clock is read again. */
static uint64_t poll_time(struct rnic_engine *e)
{
	uint64_t last = atomic_load_explicit(&e->last_poll, memory_order_relaxed);

	if (last && e->use_thread && atomic_load_explicit(&e->has_rings, memory_order_relaxed) &&
	    atomic_fetch_add_explicit(&e->ring_polls, 1, memory_order_relaxed) % CLOCK_EVERY)
		return last;
	return util_now_ns();
}

bool rnic_engine_poll(struct rnic_engine *e)
{
	uint64_t last = atomic_load_explicit(&e->last_poll, memory_order_relaxed);
	uint64_t now, until;
	bool did, seldom;

	if (atomic_load_explicit(&e->serving, memory_order_relaxed) && rnic_is_thread(e))
		return false; /* what is there is all that it is called for */
	now = poll_time(e);
	seldom = last && now > last + SELDOM_NS;
	/* relaxed: a hint to the progress thread, nothing is published with it. Given
	 * before the lock is had: the thread that holds it shall make way. */
	atomic_store_explicit(&e->last_poll, now, memory_order_relaxed);
	rnic_poller_is(e, now);
	if (util_lock_wanted(&e->lock))
		sched_yield();
	if (!util_trylock(&e->lock)) {
		/* Whoever is at it may have lost this very core to us. */
		sched_yield();
		return false;
	}
	did = pass(e, now, seldom);
	until = list_empty(&e->due) && list_empty(&e->rings) ? rnic_timer_next(e) : 0;
	rnic_unlock(e);
	if (did)
		atomic_store_explicit(&e->empty_polls, 0, memory_order_relaxed);
	else
		rnic_offer_core(e, until);
	return true;
}

/* Held back while somebody polls; but the poller may stop, so the thread must know: a
 * watching one would sleep until the next packet. */
void rnic_due_add(struct rnic_engine *e, struct rnic_due *d, uint64_t now)
{
	d->last = now;
	if (!list_empty(&d->link))
		return;
	d->first = now;
	list_add_tail(&d->link, &e->due);
	rnic_engine_wake(e, 0);
}

uint64_t rnic_engine_turn(struct rnic_engine *e, uint64_t now, bool *found)
{
	bool owed = !list_empty(&e->due);
	uint64_t next = 0;

	atomic_store_explicit(&e->ring_polls, 0, memory_order_relaxed);
	if (e->rings_asleep)
		sleep_rings(e, false);
	if (!pass(e, now, true)) {
		/* nothing more is coming: what is owed goes out now */
		e->in_pass = true;
		run_due(e, now, true);
		settle(e);
		next = rnic_timer_next(e); /* only now: what went out may have set one */
		if (sleep_rings(e, true)) {
			sleep_rings(e, false);
			next = 0;
		}
	}
	*found = !next || owed;
	atomic_store_explicit(&e->watch_until, next, memory_order_relaxed);
	rnic_unlock(e);
	return next;
}

int rnic_engine_start(struct rnic_engine *e)
{
	int err = 0;

	pthread_mutex_lock(&global);
	if (e->use_thread && !e->has_thread) {
		err = rnic_thread_start(e);
		e->has_thread = !err;
	}
	pthread_mutex_unlock(&global);
	return err;
}

/* ---- life and death ---- */

/* What was "only counted" can be read here. */
static void tell_stats(const struct rnic_engine *e)
{
	const struct rnic_stats *s = &e->stats;

	util_log(UTIL_LOG_INFO,
		 "device closed: refused %" PRIu64 " foreign streams, %" PRIu64
		 " foreign datagrams; damaged %" PRIu64 "; UD: wrong Q_Key %" PRIu64
		 ", dropped %" PRIu64 "; receiver not ready: said %" PRIu64 ", heard %" PRIu64
		 "; Terminate: sent %" PRIu64 ", got %" PRIu64,
		 s->foreign_streams, s->foreign_dgrams, s->bad_crc, s->bad_qkey, s->ud_dropped,
		 s->rnr_sent, s->rnr_got, s->terminates_sent, s->terminates_got);
}

static void engine_free(struct rnic_engine *e)
{
	if (!e->dead)
		tell_stats(e);
	if (e->epfd >= 0)
		close(e->epfd);
	if (e->wakefd >= 0)
		close(e->wakefd);
	if (e->bell_io.fd >= 0)
		close(e->bell_io.fd);
	rnic_table_free(e->mrs);
	rnic_table_free(e->qps);
	free(e->heap);
	free(e->rxbuf);
	free(e->txbuf);
	free(e->scratch);
	free(e);
}

/* A flood of connections that nobody claims must use up neither memory nor, since the
 * application opens files too, descriptors. */
static int strangers(void)
{
	struct rlimit rl;
	int max = 4096;

	if (!getrlimit(RLIMIT_NOFILE, &rl) && rl.rlim_cur / 4 < (rlim_t)max)
		max = (int)(rl.rlim_cur / 4);
	return max;
}

static struct rnic_engine *engine_new(void)
{
	struct rnic_engine *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	list_init(&e->ios);
	list_init(&e->graveyard);
	list_init(&e->rings);
	list_init(&e->serve);
	e->bell_io.fd = -1;
	list_init(&e->due);
	list_init(&e->after);
	list_init(&e->contexts);
	list_init(&e->channels);
	list_init(&e->conns);
	list_init(&e->listeners);
	list_init(&e->groups);
	rnic_offer_init(e);
	e->max_strangers = strangers();
	e->fpdu_payload = (uint32_t)util_tune_uint(rnic_tune(RNIC_TUNE_FPDU));
	e->use_thread = util_tune_bool(rnic_tune(RNIC_TUNE_PROGRESS));
	e->epfd = epoll_create1(EPOLL_CLOEXEC);
	e->wakefd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	e->mrs = rnic_table_new();
	e->qps = rnic_table_new();
	e->rxbuf = malloc(RNIC_RXBUF);
	e->txbuf = malloc(RNIC_TXBUF);
	e->scratch = malloc(65536);
	if (e->epfd < 0 || e->wakefd < 0 || !e->mrs || !e->qps || !e->rxbuf || !e->txbuf ||
	    !e->scratch) {
		engine_free(e);
		return NULL;
	}
	return e;
}

struct rnic_engine *rnic_engine_get(void)
{
	struct rnic_engine *e;

	rnic_fork_init();
	pthread_mutex_lock(&global);
	if (!engine)
		engine = engine_new();
	e = engine;
	if (e)
		e->refs++;
	pthread_mutex_unlock(&global);
	return e;
}

void rnic_engine_put(struct rnic_engine *e)
{
	struct rnic_io *io;

	pthread_mutex_lock(&global);
	if (--e->refs) {
		pthread_mutex_unlock(&global);
		return;
	}
	if (engine == e)
		engine = NULL;
	pthread_mutex_unlock(&global);
	if (e->has_thread) {
		rnic_lock(e);
		atomic_store(&e->stop, true);
		rnic_engine_kick(e);
		rnic_unlock(e);
		rnic_engine_unpark(e);
		pthread_join(e->thread, NULL);
	}
	/* Connections that linger, for an answer that nobody here will read any more. */
	while (!e->dead && (io = list_first(&e->ios, struct rnic_io, link)))
		rnic_io_close(io);
	reap(e);
	engine_free(e);
}

/* ---- fork ---- */

void rnic_engine_fork_prepare(void)
{
	pthread_mutex_lock(&global);
	if (!engine)
		return;
	rnic_lock(engine);
	/* The child could not go on with what the thread is doing in the layers above. */
	rnic_serve_wait(engine, NULL);
}

void rnic_engine_fork_parent(void)
{
	if (engine)
		rnic_unlock(engine);
	pthread_mutex_unlock(&global);
}

struct rnic_engine *rnic_engine_fork_child(void)
{
	struct rnic_engine *e = engine;

	engine = NULL;
	if (e) {
		struct rnic_io *io;

		e->dead = true;
		e->has_thread = false;
		/* A copy of a socket held by the child would keep the peer from seeing
		 * the parent's end. */
		list_for_each (io, &e->ios, link) {
			close(io->fd);
			io->fd = -1;
		}
		close(e->epfd);
		close(e->wakefd);
		e->epfd = e->wakefd = -1;
		rnic_unlock(e);
	}
	pthread_mutex_unlock(&global);
	return e;
}

/* At the end of a process that does not clean up, what is owed is still sent: the
 * peer may be waiting for an acknowledgement that was held back. */
__attribute__((destructor)) static void engine_exit(void)
{
	struct rnic_engine *e = engine;

	/* A pass is far shorter than a second; a thread that died in one is not waited for. */
	if (!e || !util_lock_wait(&e->lock, util_now_ns() + UTIL_NS_PER_S))
		return;
	e->in_pass = true;
	run_due(e, 0, true);
	e->in_pass = false;
	rnic_unlock(e);
}
