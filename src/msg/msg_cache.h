/* Registrations that are kept for the next message from the same memory.
 *
 * Registering memory with a device costs much more than sending a short message from it, and
 * applications send from the same buffers again and again. A *region* is a registered interval
 * of whole pages. Who needs memory gets a region that contains it and puts it back when the
 * device is done with it; a region that nobody uses stays, until it is the one unused longest and
 * a limit is exceeded. Limits bind unused regions only: what is in use is never taken away.
 *
 * A region is good as long as the pages behind it are the same. A monitor tells when they are not
 * (msg_monitor.h), and each msg_cache_get hears it first. What has become invalid is found no
 * more; it is deregistered as soon as nobody uses it. Memory that can not be watched is
 * registered for each use. So is all memory where there is no monitor: the cache is off.
 *
 * No region contains another: who comes with a larger one makes the smaller superfluous. So,
 * sorted by start, they are sorted by end as well, and although they may overlap, one binary
 * search says which can contain an interval, and those that an interval touches are
 * neighbours. A region that is new takes in those that it overlaps, if that at most doubles
 * it: neighbouring blocks of a large array share a page, and if each were merged with all
 * before it, the array would be registered over and over, in quadratic time. They are in a
 * sorted array: with a thousand of them a step of the search stays in the caches, and the
 * move for an insertion is small change beside the registration that it is for.
 *
 * Not thread-safe: one lock above. Registering and watching happen under it; an application that
 * unmaps memory meanwhile, whatever locks it holds, waits for neither.
 */
#ifndef WEFT_MSG_CACHE_H
#define WEFT_MSG_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "util_list.h"
#include "msg_monitor.h"

struct msg_reg_ops {
	/* 0 and *mr, or -errno. -ENOMEM, -ENOSPC and -EAGAIN mean that there might be room
	 * if others were deregistered. */
	int (*reg)(void *arg, struct msg_span s, void **mr);
	void (*dereg)(void *arg, void *mr);
};

struct msg_cache_conf {
	/* 0: none is kept beyond its use. Each may cut a mapping of the process into three, of
	 * which the kernel allows 65530 unless told (vm.max_map_count). */
	uint32_t max_regions;
	uint64_t max_bytes;
	size_t page; /* a power of two */
	const struct msg_reg_ops *reg;
	void *reg_arg;
	const struct msg_watch_ops *watch; /* NULL: the cache is off */
	void *watch_arg;
};

/* Fields are for reading only. */
struct msg_region {
	struct msg_span span;
	void *mr;
	uint32_t refs;
	bool kept;             /* can be found */
	struct list_head link; /* on the list of the unused, oldest first */
};

struct msg_cache_stats {
	uint64_t hits, misses;
	uint64_t passed;  /* misses that were registered for one use only */
	uint64_t evicted; /* because of a limit, or for want of room in the device */
	uint64_t merged;  /* superfluous because of a larger one */
	uint64_t invalid; /* the memory was changed */
};

struct msg_cache_slot {
	struct msg_span span;
	struct msg_region *region;
};

struct msg_cache {
	struct msg_cache_conf conf;
	struct msg_cache_slot *slots; /* by start, and by end */
	uint32_t n, cap;
	uint32_t in_use; /* regions, whether they can be found or not */
	uint64_t bytes;  /* of those that can be found; where they overlap, twice */
	struct list_head unused;
	struct msg_cache_stats stats;
};

void msg_cache_init(struct msg_cache *c, const struct msg_cache_conf *conf);
/* Everything must have been put back. */
void msg_cache_free(struct msg_cache *c);

/* A region that contains [addr, addr + len). -EINVAL: no such memory; else what reg says. */
int msg_cache_get(struct msg_cache *c, const void *addr, size_t len, struct msg_region **out);
/* The same, but nothing is registered: -ENOENT there is none. -EAGAIN: that can not be said now. */
int msg_cache_find(struct msg_cache *c, const void *addr, size_t len, struct msg_region **out);
void msg_cache_put(struct msg_cache *c, struct msg_region *r);

/* As if this memory had changed. */
void msg_cache_drop(struct msg_cache *c, const void *addr, size_t len);
/* Deregisters all that nobody uses. */
void msg_cache_flush(struct msg_cache *c);

#endif
