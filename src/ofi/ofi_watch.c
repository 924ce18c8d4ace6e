/* Endpoints that somebody waits for, and how to sleep on them.
 *
 * What comes from outside makes the endpoint's own descriptor readable, if it was armed. What
 * another thread has handled meanwhile does not: for that there is an event of the watch. Both are
 * in one epoll set, which is what the application gets. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "util_clock.h"
#include "ofi.h"

/* Who sleeps for long looks up now and then: those that it waits for may have died. */
#define SLEEP_MAX_NS UTIL_NS_PER_S

void ofi_watch_init(struct ofi_watch *w)
{
	*w = (struct ofi_watch){.epoll = -1, .event = -1};
}

void ofi_watch_fini(struct ofi_watch *w)
{
	if (w->epoll >= 0)
		close(w->epoll);
	if (w->event >= 0)
		close(w->event);
	free(w->ep);
}

static void epoll_add(struct ofi_watch *w, int fd)
{
	struct epoll_event e = {.events = EPOLLIN};

	/* EEXIST: the endpoint is in here twice. */
	if (fd >= 0 && epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &e) && errno != EEXIST)
		OFI_WARN(CQ, "a descriptor can not be waited for: %s\n", fi_strerror(errno));
}

int ofi_watch_add(struct ofi_watch *w, struct ofi_ep *ep)
{
	int err = 0;

	util_lock(&w->lock);
	if (w->n == w->cap) {
		uint32_t cap = w->cap ? 2 * w->cap : 4;
		struct ofi_ep **all = realloc(w->ep, cap * sizeof(struct ofi_ep *));

		if (all) {
			w->ep = all;
			w->cap = cap;
		} else {
			err = -FI_ENOMEM;
		}
	}
	if (!err) {
		w->ep[w->n++] = ep;
		if (w->epoll >= 0)
			epoll_add(w, msg_ep_fd(ep->msg));
	}
	util_unlock(&w->lock);
	return err;
}

void ofi_watch_remove(struct ofi_watch *w, struct ofi_ep *ep)
{
	bool others = false, found = false;

	util_lock(&w->lock);
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->ep[i] != ep)
			continue;
		if (found) {
			others = true;
			break;
		}
		found = true;
		w->ep[i--] = w->ep[--w->n];
	}
	if (found && !others && w->epoll >= 0)
		epoll_ctl(w->epoll, EPOLL_CTL_DEL, msg_ep_fd(ep->msg), NULL);
	util_unlock(&w->lock);
}

int ofi_watch_progress(struct ofi_watch *w)
{
	int n = 0;

	if (!util_trylock(&w->lock))
		return 0;
	for (uint32_t i = 0; i < w->n; i++)
		n += msg_progress(w->ep[i]->msg);
	util_unlock(&w->lock);
	if (ofi_stats_asked())
		ofi_idle_tell();
	return n;
}

static int make_fds(struct ofi_watch *w)
{
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (event < 0 || set < 0) {
		int err = -errno;

		if (event >= 0)
			close(event);
		if (set >= 0)
			close(set);
		return err;
	}
	w->event = event;
	w->epoll = set;
	epoll_add(w, event);
	for (uint32_t i = 0; i < w->n; i++)
		epoll_add(w, msg_ep_fd(w->ep[i]->msg));
	return 0;
}

int ofi_watch_fd(struct ofi_watch *w)
{
	int err = 0;

	util_lock(&w->lock);
	if (w->epoll < 0)
		err = make_fds(w);
	util_unlock(&w->lock);
	return err ? err : w->epoll;
}

static void drain(struct ofi_watch *w)
{
	uint64_t n;

	if (read(w->event, &n, sizeof(n)) < 0 && errno != EAGAIN)
		OFI_WARN(CQ, "an event can not be read: %s\n", fi_strerror(errno));
}

bool ofi_watch_arm(struct ofi_watch *w)
{
	bool quiet = true;

	if (ofi_watch_fd(w) < 0)
		return false;
	drain(w);
	atomic_store(&w->armed, true);
	util_lock(&w->lock);
	for (uint32_t i = 0; i < w->n && quiet; i++)
		quiet = msg_ep_arm(w->ep[i]->msg);
	util_unlock(&w->lock);
	if (!quiet)
		atomic_store(&w->armed, false);
	return quiet;
}

bool ofi_watch_sleep(struct ofi_watch *w, uint64_t ns)
{
	uint64_t most = ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS;
	struct pollfd p = {.fd = w->epoll, .events = POLLIN};
	struct timespec ts = {.tv_sec = (time_t)(most / UTIL_NS_PER_S),
			      .tv_nsec = (long)(most % UTIL_NS_PER_S)};
	int n = ppoll(&p, 1, &ts, NULL);

	atomic_store(&w->armed, false);
	if (n == 0) {
		util_lock(&w->lock);
		for (uint32_t i = 0; i < w->n; i++)
			msg_slept(w->ep[i]->msg);
		util_unlock(&w->lock);
	}
	return n > 0;
}

void ofi_watch_wake(struct ofi_watch *w)
{
	uint64_t one = 1;

	if (atomic_exchange(&w->armed, false) && write(w->event, &one, sizeof(one)) < 0)
		OFI_WARN(CQ, "a sleeper can not be woken: %s\n", fi_strerror(errno));
}
