/* An application thread in place of the progress thread.
 *
 * Who waits for a completion event is woken by the progress thread, which was woken by what came.
 * Each takes as long as a short message. Here the waiting thread watches the sockets itself, and
 * the progress thread is parked as if somebody polled. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>
#include "util_clock.h"
#include "rnic.h"
#include "rnic_engine.h"

/* When another thread has the lock. */
#define AGAIN_NS (20 * UTIL_NS_PER_US)

static bool stand_in(struct rnic_engine *e)
{
	uintptr_t nobody = 0;

	return atomic_compare_exchange_strong(&e->waiter.thread, &nobody,
					      (uintptr_t)pthread_self());
}

static void step_down(struct rnic_engine *e)
{
	rnic_lock(e);
	/* Somebody looks at rings again, for now. The thread, if it watches, would not hear of them
	 * later: it shall see who is here, and look now and then. */
	rnic_engine_rings_awake(e);
	rnic_engine_wake(e, 0);
	rnic_unlock(e);
	atomic_store_explicit(&e->last_poll, util_now_ns(), memory_order_relaxed);
	atomic_store(&e->waiter.thread, 0);
	if (atomic_exchange(&e->waiter.missed, false))
		rnic_engine_unpark(e);
}

static int wait_for(struct rnic_engine *e, int fd, uint64_t end)
{
	struct pollfd pfd[] = {{.fd = fd, .events = POLLIN},
			       {.fd = e->epfd, .events = POLLIN},
			       {.fd = e->waiter.fd, .events = POLLIN}};

	for (;;) {
		uint64_t now = util_now_ns(), next = now + AGAIN_NS, kicks;
		struct timespec ts;
		bool found;
		int n;

		if (util_trylock(&e->lock))
			next = rnic_engine_turn(e, now, &e->waiter.until, &found);
		n = ppoll(pfd, 3, util_left(next < end ? next : end, &ts), NULL);
		atomic_store_explicit(&e->waiter.until, 0, memory_order_relaxed);
		if (n > 0 && (pfd[0].revents | pfd[1].revents | pfd[2].revents) & POLLNVAL)
			return EIO;
		if (n > 0 && pfd[0].revents)
			return 0;
		if (n < 0 || now >= end)
			return ETIMEDOUT;
		while (n > 0 && pfd[2].revents && read(e->waiter.fd, &kicks, sizeof(kicks)) > 0)
			;
	}
}

static int wait_on(struct rnic_engine *e, int fd, uint64_t ns, bool (*arm)(void *arg), void *arg)
{
	int err = EAGAIN;

	if (e->dead)
		return EIO;
	if (!stand_in(e))
		return EBUSY;
	if (arm(arg))
		err = wait_for(e, fd, util_now_ns() + ns);
	step_down(e);
	return err;
}

int rnic_wait(int fd, uint64_t ns, bool (*arm)(void *arg), void *arg)
{
	struct rnic_engine *e = rnic_engine_if_any();
	int err = e ? wait_on(e, fd, ns, arm, arg) : EOPNOTSUPP;

	if (e)
		rnic_engine_put(e);
	return err;
}
