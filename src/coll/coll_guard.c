#include "coll_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "coll_env.h"
#include "coll_letter.h"
#include "util_clock.h"
#include "util_log.h"

#define LOOK_NS (500 * UTIL_NS_PER_MS)
#define REST_NS UTIL_NS_PER_S
/* So many of other hosts are asked at a time, those behind us first: each is asked by somebody from
 * the beginning, and what all ranks of a large communicator ask does not grow with its square. */
#define ASK_MOST 16
/* Answers and news that are taken at a time: more come only if somebody sends without end. */
#define TAKE_MOST 256

atomic_bool coll_guard_asleep = true;

/* lock: held while communicators are looked at, which never waits for anybody. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake; /* of the monotonic clock */
static pthread_t thread;
static bool started, stop;

/* ---- asking ---- */

static void answered(struct coll_comm *c, uint32_t rank, uint32_t tag, int err)
{
	struct coll_peer *p = &c->peer[rank];

	(void)tag;
	atomic_store(&p->lost_at,
		     err ? coll_watch_lost_at(atomic_load(&p->watched), util_now_ns()) : 0);
	atomic_store(&p->watched, 0);
}

/* A network that has given somebody up may refuse to ask again, and knows no reason. */
static void refused(struct coll_peer *p, uint64_t now)
{
	if (!atomic_load(&p->lost_at))
		atomic_store(&p->lost_at, now + COLL_WATCH_SILENT_NS);
	atomic_store(&p->watched, 0);
}

static void ask(struct coll_comm *c, uint32_t rank, uint64_t now)
{
	struct coll_peer *p = &c->peer[rank];
	int ret;

	atomic_store(&p->watched, now);
	ret = coll_letter_ask(c, rank, 0, answered);
	if (ret == -EAGAIN || ret == -ENOMEM)
		atomic_store(&p->watched, 0); /* no room: next time */
	else if (ret)
		refused(p, now);
}

/* One that has not answered yet is not asked again, and nobody is asked in its place: a network may
 * take long to give somebody up. */
static void ask_some(struct coll_comm *c, uint64_t now)
{
	uint32_t asked = 0;

	for (uint32_t i = 1; i < c->size && asked < ASK_MOST; i++) {
		uint32_t rank = (c->rank + c->watched + i) % c->size;

		if (rank == c->rank || c->peer[rank].host == c->host)
			continue;
		asked++;
		if (!atomic_load(&c->peer[rank].watched))
			ask(c, rank, now);
	}
	c->watched = asked < ASK_MOST ? 0 : (c->watched + ASK_MOST) % c->size;
}

/* ---- looking ---- */

static void look_for(struct coll_comm *c, uint32_t rank, uint64_t now)
{
	const struct coll_peer *p = &c->peer[rank];
	uint64_t lost_at = atomic_load(&p->lost_at);

	if (p->host == c->host) {
		if (!coll_shm_alive(&c->shm, p->local))
			coll_comm_lost(c, rank, -EOWNERDEAD);
	} else if (lost_at && now >= lost_at) {
		coll_comm_lost(c, rank, -EHOSTUNREACH);
	}
}

static void look_for_others(struct coll_comm *c, uint64_t now)
{
	bool broken = coll_comm_broken(c);

	for (uint32_t i = 0; i < c->size; i++)
		look_for(c, i, now);
	if (!broken && coll_comm_broken(c))
		coll_letter_broken(c, 0);
	if (c->net && c->hosts > 1)
		ask_some(c, now);
}

/* It is needed where we are. acquire: that we still are is looked at after it. */
static bool gone(const struct coll_comm *world, uint32_t rank)
{
	const struct coll_peer *p = &world->peer[rank];

	return atomic_load_explicit(&p->needed, memory_order_acquire) && atomic_load(&p->dead);
}

static bool any_gone(const struct coll_comm *world)
{
	for (uint32_t i = 0; i < world->size; i++)
		if (gone(world, i))
			return true;
	return false;
}

static const char *in_what(uint32_t op)
{
	if (op == COLL_GUARD_SETUP)
		return "the set-up of another communicator";
	if (op == COLL_GUARD_EARLY)
		return "another communicator's first calls (WEFT_COLL_AFTER)";
	return coll_op_names[op];
}

/* Not by exit(), which would run what the program has for its end while it is in the middle of a
 * call; nor by MPI_Abort, which a second thread may call only if the program has asked for
 * threads. */
static void end_process(const struct coll_comm *c, const struct coll_inside *in, uint64_t now)
{
	uint32_t op = atomic_load(&in->op);
	char who[64] = "another rank has given up", text[512];
	int len;

	for (uint32_t i = 0; i < c->size; i++)
		if (in == &c->others ? gone(c, i) : atomic_load(&c->peer[i].dead))
			snprintf(who, sizeof(who), "rank %u of %u is lost", i, c->size);
	len = snprintf(text, sizeof(text),
		       "weft-coll: %s; rank %u of %u has been in %s, by the MPI's own, for %llu s "
		       "and would wait for ever: its process ends.%s\n",
		       who, c->rank, c->size, in_what(op),
		       (unsigned long long)((now - in->watch.since) / UTIL_NS_PER_S),
		       op < COLL_OPS
			       ? " Where a variant that is named in WEFT_COLL does it, it gets "
				 "an error instead (weft-coll(7))."
			       : "");
	if (write(STDERR_FILENO, text, (size_t)len) < 0)
		_exit(1);
	/* Somebody may have the lock, and never give it back. */
	if (!ftrylockfile(stdout))
		fflush(stdout);
	_exit(1);
}

static enum coll_watch_next step(struct coll_comm *c, struct coll_inside *in, uint32_t turn,
				 uint64_t now)
{
	bool lost = turn & 1 && (in == &c->others ? any_gone(c) : coll_comm_broken(c));

	return coll_watch_step(&in->watch, turn, lost, now, coll_env()->patience);
}

static enum coll_watch_next look_at(struct coll_comm *c, struct coll_inside *in, uint64_t now)
{
	/* acquire: what was set up before. */
	uint32_t turn = atomic_load_explicit(&in->turn, memory_order_acquire);
	enum coll_watch_next next = step(c, in, turn, now);

	if (next == COLL_WATCH_LOOK) {
		look_for_others(c, now);
		/* Who finds out has as much time from then on as those whom it tells. */
		next = step(c, in, turn, now);
	}
	if (next == COLL_WATCH_END && atomic_load_explicit(&in->turn, memory_order_acquire) == turn)
		end_process(c, in, now);
	return next;
}

static enum coll_watch_next more_of(enum coll_watch_next a, enum coll_watch_next b)
{
	return a > b ? a : b;
}

/* What comes is for communicators of all kinds; nobody else may be there to take it. */
static void take_news(void)
{
	for (int i = 0, n = 1; n > 0 && i < TAKE_MOST; i += n)
		n = coll_net_progress();
}

/* The most that is to be done about any of them. */
static enum coll_watch_next look_at_all(bool news)
{
	enum coll_watch_next most = COLL_WATCH_NOTHING;
	uint64_t now = util_now_ns();
	struct coll_comm *c;
	uint32_t at = 0;

	if (news)
		take_news();
	while ((c = coll_comm_next(&at))) {
		most = more_of(most, look_at(c, &c->inside, now));
		most = more_of(most, look_at(c, &c->others, now));
	}
	return most;
}

/* ---- the thread ---- */

/* The monotonic clock, as `wake` was told. */
static void rest(uint64_t ns)
{
	uint64_t until = util_now_ns() + ns;
	struct timespec ts = {.tv_sec = (time_t)(until / UTIL_NS_PER_S),
			      .tv_nsec = (long)(until % UTIL_NS_PER_S)};

	pthread_cond_timedwait(&wake, &lock, &ts);
}

static bool woken(void)
{
	return stop || !atomic_load_explicit(&coll_guard_asleep, memory_order_relaxed);
}

/* Nobody is inside. Whoever enters now wakes us if it has seen that we sleep. If it has not, it had
 * looked before, and that it is inside is seen by the time of the second look: stores do not take a
 * second. So neither side needs a fence, which calls would pay for. */
static void sleep_well(void)
{
	atomic_store_explicit(&coll_guard_asleep, true, memory_order_relaxed);
	rest(REST_NS);
	if (!woken() && look_at_all(false) == COLL_WATCH_NOTHING)
		while (!woken())
			pthread_cond_wait(&wake, &lock);
	atomic_store_explicit(&coll_guard_asleep, false, memory_order_relaxed);
}

static void *watch(void *arg)
{
	enum coll_watch_next next = COLL_WATCH_WAIT;

	pthread_setname_np(pthread_self(), "weft-guard");
	pthread_mutex_lock(&lock);
	while (!stop) {
		next = look_at_all(next == COLL_WATCH_LOOK);
		if (next == COLL_WATCH_NOTHING)
			sleep_well();
		else
			rest(next == COLL_WATCH_LOOK ? LOOK_NS : REST_NS);
	}
	pthread_mutex_unlock(&lock);
	return arg;
}

/* Signals are the program's. */
static int start(void)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	int ret;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, watch, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

void coll_guard_wake(void)
{
	static bool tried;

	pthread_mutex_lock(&lock);
	atomic_store_explicit(&coll_guard_asleep, false, memory_order_relaxed);
	if (started) {
		pthread_cond_signal(&wake);
	} else if (!tried && coll_env()->patience) {
		tried = true;
		started = !start();
		if (!started)
			util_log(UTIL_LOG_WARN, "coll: no thread to look for ranks that die while "
						"the MPI's own does an operation");
	}
	pthread_mutex_unlock(&lock);
}

/* Which ranks of `world` are in a group; others, of programs that were spawned, are not known. */
static bool need(struct coll_comm *world, MPI_Group all, MPI_Group some)
{
	int n = 0, *of = PMPI_Group_size(some, &n) ? NULL : calloc((size_t)n, 2 * sizeof(*of));
	bool ok = of;

	for (int i = 0; i < n && ok; i++)
		of[i] = i;
	ok = ok && !PMPI_Group_translate_ranks(some, n, of, all, of + n);
	for (uint32_t i = 0; i < world->size && ok; i++)
		atomic_store(&world->peer[i].needed, false);
	for (int i = 0; i < n && ok; i++)
		if (of[n + i] >= 0 && of[n + i] < (int)world->size)
			atomic_store(&world->peer[of[n + i]].needed, true);
	free(of);
	return ok;
}

static bool need_ranks_of(struct coll_comm *world, MPI_Comm comm)
{
	MPI_Group all, some;
	bool ok;

	if (PMPI_Comm_group(MPI_COMM_WORLD, &all))
		return false;
	ok = !PMPI_Comm_group(comm, &some);
	if (ok) {
		ok = need(world, all, some);
		PMPI_Group_free(&some);
	}
	PMPI_Group_free(&all);
	return ok;
}

_Thread_local struct coll_comm *coll_guard_within;

bool coll_guard_others(struct coll_comm *world, MPI_Comm comm, uint32_t what)
{
	if (!world || atomic_exchange(&world->for_others, true))
		return false;
	if (!need_ranks_of(world, comm)) {
		atomic_store(&world->for_others, false);
		return false;
	}
	coll_guard_within = world;
	coll_guard_enter(&world->others, what);
	return true;
}

void coll_guard_others_end(struct coll_comm *world)
{
	coll_guard_within = NULL;
	coll_guard_leave(&world->others);
	atomic_store(&world->for_others, false);
}

void coll_guard_fence(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

void coll_guard_end(void)
{
	bool join;

	pthread_mutex_lock(&lock);
	join = started;
	stop = true;
	if (started)
		pthread_cond_signal(&wake);
	started = false;
	pthread_mutex_unlock(&lock);
	if (join)
		pthread_join(thread, NULL);
}
