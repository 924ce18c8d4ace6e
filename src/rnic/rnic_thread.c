/* The progress thread: passes while no application thread polls. */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "rnic_engine.h"

/* A poller that was here this recently will be here again. Longer than the time that
 * an application needs between two polls, shorter than anybody notices. */
#define POLLER_NS (50 * UTIL_NS_PER_US)
/* One that could run, but had less than half of the time since then, has lost its core, perhaps to
 * those that it waits for. It is believed to come back for so long, ... */
#define WAITER_NS (3 * UTIL_NS_PER_MS)
/* ... if it has polled so often since somebody has said that he is going to sleep. */
#define WAITER_POLLS 64
/* How often a parked thread looks whether the polling has stopped. It starts short,
 * doubles while polling goes on, and is cut when work was found waiting afterwards: some
 * programs poll for a completion and then spin on memory. Of programs that go on polling it asks
 * little: where cores are few, each look takes one from somebody. */
#define PARK_MIN_NS   (50 * UTIL_NS_PER_US)
#define PARK_FIRST_NS (2 * UTIL_NS_PER_MS)
#define PARK_MAX_NS   (16 * UTIL_NS_PER_MS)
/* After work the thread looks again for this long, offering the core each time, before
 * it blocks: the answer to what it just sent is often that close, and waking up costs
 * more than looking. */
#define LINGER_NS (20 * UTIL_NS_PER_US)
/* How long the thread leaves the lock to others who have waited for it. */
#define GIVE_WAY_NS (20 * UTIL_NS_PER_US)

static void futex(atomic_uint *word, int op, unsigned int value, const struct timespec *timeout)
{
	syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

void rnic_poller_is(struct rnic_engine *e, uint64_t now)
{
	uintptr_t self = (uintptr_t)pthread_self();
	clockid_t clock;

	if (atomic_load_explicit(&e->poller, memory_order_relaxed) != self &&
	    !pthread_getcpuclockid(pthread_self(), &clock)) {
		if (atomic_load_explicit(&e->poller, memory_order_relaxed))
			atomic_store_explicit(&e->poller_changed, now, memory_order_relaxed);
		atomic_store_explicit(&e->poller, self, memory_order_relaxed);
		atomic_store_explicit(&e->poller_clock, clock, memory_order_relaxed);
	}
	if (atomic_load_explicit(&e->polls, memory_order_relaxed) < WAITER_POLLS)
		atomic_fetch_add_explicit(&e->polls, 1, memory_order_relaxed);
}

void rnic_engine_kick(struct rnic_engine *e)
{
	uint64_t one = 1;

	atomic_store_explicit(&e->watch_until, 0, memory_order_relaxed); /* one is enough */
	if (write(e->wakefd, &one, sizeof(one)) < 0)
		return; /* EAGAIN: the counter is already non-zero, which wakes as well */
}

void rnic_engine_wake(struct rnic_engine *e, uint64_t at)
{
	if (at < atomic_load_explicit(&e->watch_until, memory_order_relaxed))
		rnic_engine_kick(e);
}

void rnic_engine_unpark(struct rnic_engine *e)
{
	atomic_store_explicit(&e->last_poll, 0, memory_order_relaxed);
	atomic_store_explicit(&e->polls, 0, memory_order_relaxed);
	if (atomic_exchange_explicit(&e->parked, 0, memory_order_relaxed))
		futex(&e->parked, FUTEX_WAKE, 1, NULL);
}

bool rnic_engine_computes(const struct rnic_engine *e)
{
	return e->has_thread &&
	       atomic_load_explicit(&e->park_max_ns, memory_order_relaxed) < PARK_FIRST_NS;
}

/* Running, or waiting for a core; not asleep. */
static bool runnable(clockid_t clock)
{
	int tid = ~(clock >> 3); /* as the kernel makes such clocks (clock_getcpuclockid(3)) */
	char path[64], stat[128], *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, stat, sizeof(stat) - 1);
	close(fd);
	if (n <= 0)
		return false;
	stat[n] = '\0';
	state = strrchr(stat, ')'); /* behind the name, in which there may be anything */
	return state && !strncmp(state, ") R", 3);
}

/* Whether the poller, which has not been here lately, waits for a core. It takes two looks to know
 * that it did not run in between. */
static bool poller_waits(struct rnic_engine *e, uint64_t last, uint64_t now)
{
	clockid_t clock = atomic_load_explicit(&e->poller_clock, memory_order_relaxed);
	uint64_t cpu = util_cpu_ns(clock), since = e->look.at, used = cpu - e->look.cpu;
	bool first = e->look.last != last || e->look.clock != clock;

	if (cpu == UINT64_MAX || /* it has ended */
	    atomic_load_explicit(&e->polls, memory_order_relaxed) < WAITER_POLLS ||
	    !runnable(clock))
		return false;
	e->look.last = last;
	e->look.clock = clock;
	e->look.at = now;
	e->look.cpu = cpu;
	e->look.again = first;
	return first || used < (now - since) / 2;
}

static bool poller_active(struct rnic_engine *e, uint64_t now)
{
	uint64_t last = atomic_load_explicit(&e->last_poll, memory_order_relaxed);

	if (!last || (last < now && now - last >= WAITER_NS))
		return false;
	return last >= now || now - last < POLLER_NS || poller_waits(e, last, now);
}

static void park(struct rnic_engine *e)
{
	struct timespec ts = {.tv_nsec = (long)(e->look.again ? PARK_MIN_NS : e->park_ns)};
	uint64_t max = atomic_load_explicit(&e->park_max_ns, memory_order_relaxed);

	e->look.again = false;
	if (2 * e->park_ns <= max)
		e->park_ns *= 2;
	/* The cut heals slowly: an eighth for each time that it was not needed. */
	if (max < PARK_MAX_NS)
		atomic_store_explicit(&e->park_max_ns, max + max / 8, memory_order_relaxed);
	atomic_store_explicit(&e->parked, 1, memory_order_relaxed);
	futex(&e->parked, FUTEX_WAIT, 1, &ts);
	atomic_store_explicit(&e->parked, 0, memory_order_relaxed);
}

/* Blocks until a socket or a timer has something; false: it cannot. Only learns that there is
 * something: the events themselves are fetched under the lock, so that none can name an object that
 * is gone by then. */
static bool watch(struct rnic_engine *e, uint64_t next)
{
	/* Kicks come on a descriptor of their own, which nobody else reads: a kick that a
	 * poller swallowed would leave the thread asleep. */
	struct pollfd pfd[] = {{.fd = e->epfd, .events = POLLIN},
			       {.fd = e->wakefd, .events = POLLIN}};
	struct timespec ts;
	uint64_t kicks;

	e->park_ns = PARK_MIN_NS;
	if (ppoll(pfd, 2, util_left(next, &ts), NULL) > 0) {
		if ((pfd[0].revents | pfd[1].revents) & POLLNVAL)
			return false;
		while (pfd[1].revents && read(e->wakefd, &kicks, sizeof(kicks)) > 0)
			;
	}
	/* relaxed: who arms a timer or owes something from here on need not wake us, we
	 * are going to look under the lock anyway */
	atomic_store_explicit(&e->watch_until, 0, memory_order_relaxed);
	return true;
}

/* The application has closed descriptors that were not its own (closefrom(3) does that).
 * Their numbers may be anybody's by now: nothing is touched any more. */
static void robbed(struct rnic_engine *e)
{
	util_log(UTIL_LOG_ERROR, "the program has closed the device's descriptors; the device is "
				 "dead, calls fail with EIO");
	rnic_lock(e);
	e->dead = true;
	rnic_unlock(e);
}

/* The thread has the lock nearly all the time while there is work. A caller who has waited for it,
 * and has been woken, needs a moment to get here. */
static bool get_lock(struct rnic_engine *e)
{
	const struct timespec moment = {.tv_nsec = GIVE_WAY_NS};

	if (util_lock_wanted(&e->lock))
		nanosleep(&moment, NULL);
	return util_trylock(&e->lock);
}

static void *thread_main(void *arg)
{
	struct rnic_engine *e = arg;
	uint64_t busy = 0; /* when there last was something to do */
	bool parked = false, found;

	while (!atomic_load(&e->stop)) {
		uint64_t now = util_now_ns(), next;

		/* Never queues for the lock. Who has it makes progress anyway, or will not be
		 * long. */
		if (poller_active(e, now) || !get_lock(e)) {
			bool waits = atomic_load_explicit(&e->to_serve, memory_order_relaxed);

			park(e);
			parked = true;
			/* Who polls one queue need not poll all of them: what has waited for so
			 * long may be in one that nobody does. */
			if (waits && rnic_serve(e))
				e->park_ns = PARK_MIN_NS;
			continue;
		}
		next = rnic_engine_turn(e, now, &found);
		if (rnic_serve(e))
			next = 0;
		if ((!next || found) && parked) {
			e->park_ns = PARK_MIN_NS;
			atomic_store_explicit(&e->park_max_ns, PARK_MIN_NS, memory_order_relaxed);
		}
		parked = false;
		if (!next)
			busy = now;
		else if (now - busy < LINGER_NS && now < next)
			sched_yield();
		else if (!watch(e, next)) {
			robbed(e);
			break;
		}
	}
	return NULL;
}

int rnic_thread_start(struct rnic_engine *e)
{
	sigset_t all, old;
	int err;

	e->park_ns = PARK_MIN_NS;
	atomic_store(&e->park_max_ns, PARK_FIRST_NS);
	/* Signals belong to the application's threads. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* rnic_guard.c */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&e->thread, NULL, thread_main, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(e->thread, "weft-progress");
	return -err;
}
