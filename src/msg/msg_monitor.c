#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <linux/userfaultfd.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "msg_monitor.h"

/* Newer than some headers. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif

#define HUGE ((uintptr_t)2 << 20)

/* Addresses are those of pages: the lowest bit of a slot's start is free. */
#define MOVED_HERE 1u

struct slot {
	_Atomic(uintptr_t) start, end;
};

struct msg_monitor {
	/* Intervals told, times two; odd while the reader reads. */
	_Atomic(uint64_t) state;
	/* Intervals told or being written. */
	_Atomic(uint64_t) claimed;
	int fd; /* -1: we are the child of a fork */
	int bell;
	pid_t pid;
	unsigned int watchers;
	pthread_t thread;
	struct slot ring[MSG_MONITOR_RING];
};

/* Protects the pointer, the number of watchers, and who watches what. Nothing is done under
 * it that waits for others, except for the reader, which never takes it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct msg_monitor *the_monitor;

/* The reader. */

static void tell(struct msg_monitor *m, uint64_t n, uintptr_t start, uintptr_t end)
{
	struct slot *s = &m->ring[n % MSG_MONITOR_RING];

	atomic_store_explicit(&m->claimed, n + 1, memory_order_relaxed);
	/* release: who reads what is written here sees the claim, too, and thereby that the
	 * interval which was here is gone */
	atomic_store_explicit(&s->start, start, memory_order_release);
	atomic_store_explicit(&s->end, end, memory_order_release);
}

static uint64_t tell_event(struct msg_monitor *m, uint64_t n, const struct uffd_msg *msg)
{
	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
	case UFFD_EVENT_REMOVE:
		tell(m, n++, msg->arg.remove.start, msg->arg.remove.end);
		break;
	case UFFD_EVENT_REMAP:
		tell(m, n++, msg->arg.remap.from, msg->arg.remap.from + msg->arg.remap.len);
		/* The watch has moved along, to where nobody asked for one. */
		tell(m, n++, msg->arg.remap.to | MOVED_HERE,
		     msg->arg.remap.to + msg->arg.remap.len);
		break;
	}
	return n;
}

static void read_events(struct msg_monitor *m)
{
	uint64_t n = atomic_load_explicit(&m->state, memory_order_relaxed) / 2;
	struct uffd_msg msgs[16];
	ssize_t len;

	/* seq_cst: read wakes those who unmapped; they must not find the word as it was */
	atomic_store_explicit(&m->state, 2 * n + 1, memory_order_seq_cst);
	len = read(m->fd, msgs, sizeof(msgs));
	for (ssize_t i = 0; i < len / (ssize_t)sizeof(msgs[0]); i++)
		n = tell_event(m, n, &msgs[i]);
	/* release: who sees the number sees the intervals */
	atomic_store_explicit(&m->state, 2 * n, memory_order_release);
}

static void *reader(void *arg)
{
	struct msg_monitor *m = arg;
	struct pollfd fds[2] = {{.fd = m->fd, .events = POLLIN}, {.fd = m->bell, .events = POLLIN}};

	do {
		if (poll(fds, 2, -1) > 0 && fds[0].revents)
			read_events(m);
	} while (!fds[1].revents);
	return NULL;
}

/* Handlers of the application must not run on the reader: they may take locks. */
static int start_reader(struct msg_monitor *m)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&m->thread, NULL, reader, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!err)
		pthread_setname_np(m->thread, "weft-unmap");
	return -err;
}

/* The kernel. */

static int try_features(int fd, uint64_t more)
{
	uint64_t need = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
			UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_PAGEFAULT_FLAG_WP;
	struct uffdio_api api = {.api = UFFD_API, .features = need | more};

	return ioctl(fd, UFFDIO_API, &api) ? -errno : 0;
}

static int open_uffd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0)
		return -errno;
	if (!try_features(fd, UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_WP_ASYNC) ||
	    !try_features(fd, UFFD_FEATURE_WP_HUGETLBFS_SHMEM) || !try_features(fd, 0))
		return fd;
	close(fd);
	return -EOPNOTSUPP;
}

static int arm(const struct msg_monitor *m, struct msg_span s)
{
	struct uffdio_register r = {.range = {.start = s.start, .len = s.end - s.start},
				    .mode = UFFDIO_REGISTER_MODE_WP};

	return ioctl(m->fd, UFFDIO_REGISTER, &r) ? -errno : 0;
}

/* Whatever is mapped there now. Where it fails, a watch remains that nobody needs. */
static void disarm(const struct msg_monitor *m, struct msg_span s)
{
	struct uffdio_range r = {.start = s.start, .len = s.end - s.start};

	(void)ioctl(m->fd, UFFDIO_UNREGISTER, &r);
}

/* Whether somebody has changed watched memory and the event has not been read. The kernel checks
 * this before it looks at the arguments, which are invalid. */
static bool changing(const struct msg_monitor *m)
{
	struct uffdio_writeprotect none = {.mode = 0};

	return ioctl(m->fd, UFFDIO_WRITEPROTECT, &none) < 0 && errno == EAGAIN;
}

/* Closing the descriptor would do, if nobody else had it. A child that was made by clone, past
 * the handlers of fork, has it still, and with nobody to read, munmap would sleep for ever. */
static void disarm_all(const struct msg_monitor *m)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct msg_span s;

	if (!maps)
		return;
	while (fscanf(maps, "%" SCNxPTR "-%" SCNxPTR "%*[^\n]", &s.start, &s.end) == 2)
		disarm(m, s);
	fclose(maps);
}

/* Coming, going, fork. */

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* The descriptor still speaks of the parent's memory. */
static void fork_child(void)
{
	struct msg_monitor *m = the_monitor;

	if (m) {
		close(m->fd);
		close(m->bell);
		m->fd = -1;
		/* odd and never told: everybody comes to look at fd */
		atomic_store_explicit(&m->state, UINT64_MAX, memory_order_relaxed);
		the_monitor = NULL;
	}
	pthread_mutex_unlock(&lock);
}

static void install(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void monitor_free(struct msg_monitor *m)
{
	if (m->fd >= 0)
		close(m->fd);
	if (m->bell >= 0 && m->fd >= 0)
		close(m->bell);
	free(m);
}

static int monitor_new(struct msg_monitor **out)
{
	struct msg_monitor *m = calloc(1, sizeof(*m));
	int err = 0;

	if (!m)
		return -ENOMEM;
	m->pid = getpid();
	m->bell = -1;
	m->fd = open_uffd();
	if (m->fd < 0)
		err = m->fd;
	else if ((m->bell = eventfd(0, EFD_CLOEXEC)) < 0)
		err = -errno;
	else
		err = start_reader(m);
	if (err)
		monitor_free(m);
	else
		*out = m;
	return err;
}

static void monitor_end(struct msg_monitor *m)
{
	uint64_t one = 1;

	/* As long as something is armed, somebody must read. */
	disarm_all(m);
	while (write(m->bell, &one, sizeof(one)) < 0 && errno == EINTR)
		;
	pthread_join(m->thread, NULL);
}

int msg_monitor_join(struct msg_watcher *w, bool exact)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err = 0;

	pthread_once(&once, install);
	pthread_mutex_lock(&lock);
	if (!the_monitor)
		err = monitor_new(&the_monitor);
	if (!err) {
		w->mon = the_monitor;
		w->mon->watchers++;
		w->exact = exact;
		w->seen = atomic_load_explicit(&w->mon->state, memory_order_relaxed) / 2;
		w->told = w->seen;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void msg_monitor_leave(struct msg_watcher *w)
{
	struct msg_monitor *m = w->mon;

	w->mon = NULL;
	pthread_mutex_lock(&lock);
	if (!--m->watchers) {
		if (m == the_monitor) {
			the_monitor = NULL;
			monitor_end(m);
		}
		monitor_free(m);
	}
	pthread_mutex_unlock(&lock);
}

/* Watchers. */

/* A child that the handlers of fork do not know of would watch its parent's memory. */
static bool ours(const struct msg_monitor *m)
{
	return m->fd >= 0 && m->pid == getpid();
}

static int watch(void *arg, struct msg_span s)
{
	struct msg_monitor *m = ((struct msg_watcher *)arg)->mon;
	int err;

	if (!ours(m))
		return -ENODEV;
	pthread_mutex_lock(&lock);
	err = arm(m, s);
	if (err == -EINVAL) {
		/* Memory of huge pages is watched by huge pages. */
		s.start &= ~(HUGE - 1);
		s.end = (s.end + HUGE - 1) & ~(HUGE - 1);
		err = arm(m, s);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static void unwatch(void *arg, struct msg_span s)
{
	struct msg_monitor *m = ((struct msg_watcher *)arg)->mon;

	if (!ours(m))
		return;
	pthread_mutex_lock(&lock);
	if (m->watchers == 1)
		disarm(m, s);
	pthread_mutex_unlock(&lock);
}

/* The reader is a few microseconds away, or has to get a core first. */
static bool wait_a_little(unsigned int tries)
{
	struct timespec nap = {.tv_nsec = 50000};

	if (tries < 16)
		sched_yield();
	else
		nanosleep(&nap, NULL);
	return tries < 56;
}

/* How many intervals have been told, when there are none that ought to have been. */
static int look(struct msg_watcher *w)
{
	struct msg_monitor *m = w->mon;

	for (unsigned int tries = 0; m->fd >= 0; tries++) {
		if (!w->exact || !changing(m)) {
			/* after the kernel was asked; acquire: with the number, the intervals */
			uint64_t state = atomic_load_explicit(&m->state, memory_order_acquire);

			if (!(state & 1)) {
				w->told = state / 2;
				return 0;
			}
		}
		if (!wait_a_little(tries))
			return -EAGAIN;
	}
	return -ENODEV;
}

static int take(struct msg_watcher *w, struct msg_span *s)
{
	struct msg_monitor *m = w->mon;
	struct slot *slot = &m->ring[w->seen % MSG_MONITOR_RING];

	/* acquire: the claim is read after the interval, see tell */
	s->start = atomic_load_explicit(&slot->start, memory_order_acquire);
	s->end = atomic_load_explicit(&slot->end, memory_order_acquire);
	if (atomic_load_explicit(&m->claimed, memory_order_relaxed) - w->seen > MSG_MONITOR_RING) {
		w->seen = w->told;
		return -EOVERFLOW;
	}
	w->seen++;
	if (s->start & MOVED_HERE) {
		s->start &= ~(uintptr_t)MOVED_HERE;
		unwatch(w, *s);
	}
	return 1;
}

static int next(void *arg, struct msg_span *s)
{
	struct msg_watcher *w = arg;
	int err = w->seen == w->told ? look(w) : 0;

	return err || w->seen == w->told ? err : take(w, s);
}

const struct msg_watch_ops msg_monitor_ops = {.watch = watch, .unwatch = unwatch, .next = next};
