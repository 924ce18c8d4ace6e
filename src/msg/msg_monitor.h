/* Who tells when the application unmaps memory, moves it or gives up its contents.
 *
 * A registration is worth keeping only as long as the pages behind the addresses stay the same,
 * and it is the application that changes them, in munmap, mremap, madvise or brk, mostly deep in
 * free(3). The kernel tells through a userfaultfd, with which ranges of memory are *watched*:
 * a thread that changes such a range sleeps until the event is read. It may sleep with any lock of
 * the process held, so the one thread that reads takes none, allocates nothing, and
 * calls nothing that could: it puts intervals into a ring and goes on.
 *
 * One monitor per process, since a range can be watched by one userfaultfd only. Whoever
 * keeps registrations *joins* as a watcher with its own position in the ring. The reading thread
 * never waits for a watcher: one that falls behind by more than the ring is told that everything
 * is invalid.
 *
 * **When is an unmapping known?** Reading an event wakes the thread that unmaps, before the reader
 * can put anything anywhere. So the word that counts intervals is odd while the reader reads, and
 * who finds it odd waits: what a thread unmaps, it finds unmapped afterwards. Another thread can
 * be faster: munmap frees the addresses first and tells then, and in between a second thread may
 * be given the same addresses by mmap. An *exact* watcher therefore asks the kernel whether a
 * change is under way, and waits for it. It never waits longer than a few milliseconds, then
 * it is told that nothing can be told now. Four threads that map, send and unmap all the time
 * (test_msg_monitor.c) meet up to 11 outdated registrations in 100 rounds, and none if the
 * watcher is exact; a look costs a system call then, 310 ns where without it is 1. A process in
 * which only one thread maps and unmaps memory that is sent from does not need it.
 *
 * What is not watched costs nothing. munmap of 64 KB that are takes 11 us at best, instead of 6:
 * the reader has to be woken, and then the caller. Where threads compete for cores, both have to
 * wait for one (two cores, load 6: 13 to 33 us in the median; with two to four more threads that
 * spin, one in ten took 0.6 to 4 ms).
 *
 * Ranges are watched in write-protect mode and nothing is ever write-protected. So there are no
 * page faults to handle, as there would be with missing pages, where a system call on a page that
 * is not there yet fails with EFAULT (UFFD_USER_MODE_ONLY, without which one needs privileges).
 * Linux 5.7 for private anonymous memory, 5.19 for shared memory and huge pages, 6.7 for
 * everything else. What can not be watched can not be cached.
 *
 * **What is not told:** shmdt, ftruncate and fallocate of a mapped file, and new pages by
 * copy-on-write after fork (which verbs deal with: ibv_fork_init, or kernels since 5.12).
 *
 * After fork the child has none of it: its memory is not watched, calls fail with -ENODEV, a
 * watcher can only leave, and may join again. Threads: join, leave, watch and unwatch from any;
 * calls for one watcher one at a time.
 */
#ifndef WEFT_MSG_MONITOR_H
#define WEFT_MSG_MONITOR_H

#include <stdbool.h>
#include <stdint.h>

/* [start, end), whole pages. */
struct msg_span {
	uintptr_t start, end;
};

/* What a cache asks of a monitor; tests have one of their own. */
struct msg_watch_ops {
	/* From now on changes are told. -errno: this range can not be watched. */
	int (*watch)(void *arg, struct msg_span s);
	/* Nobody wants to know any more. */
	void (*unwatch)(void *arg, struct msg_span s);
	/* 1: *s is no longer what it was. 0: all that has happened has been told. -EOVERFLOW:
	 * something was missed, everything is to be taken for changed. -EAGAIN: that can not be
	 * said now. -ENODEV: nobody watches. */
	int (*next)(void *arg, struct msg_span *s);
};

struct msg_monitor;

struct msg_watcher {
	struct msg_monitor *mon;
	uint64_t seen; /* intervals that were taken */
	uint64_t told; /* that were there to be taken when last looked */
	bool exact;
};

/* Intervals that a watcher may fall behind. */
#define MSG_MONITOR_RING 1024

/* -errno: there is no monitor on this machine (-EPERM, -ENOSYS: userfaultfd is forbidden or
 * missing; -EOPNOTSUPP: the kernel is too old). */
int msg_monitor_join(struct msg_watcher *w, bool exact);
/* With the last one the monitor goes. Does not wait for any lock but its own. */
void msg_monitor_leave(struct msg_watcher *w);

/* For a struct msg_watcher as arg. A range stays watched where it is unmapped and mapped again
 * only if it is watched again. While there are several watchers, unwatch has no effect, since
 * it is not known who wants what; events that nobody needs cost time, and that is all. */
extern const struct msg_watch_ops msg_monitor_ops;

#endif
