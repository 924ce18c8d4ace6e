/* Memory that a device may use: what the application registers, and what messages need. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "msg_ep.h"

int msg_dev_reg(struct msg_dev *dev, void *addr, size_t len, bool write, struct ibv_mr **out)
{
	unsigned int access = IBV_ACCESS_REMOTE_READ;

	if (write)
		access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	*out = ibv_reg_mr_iova2(dev->pd, addr, len, (uintptr_t)addr, access);
	return *out ? 0 : -errno;
}

/* ---- for messages: registrations that may be kept for the next one ---- */

/* A look into the cache asks the kernel whether memory is being unmapped just now (msg_monitor.h),
 * and what is watched is slower to unmap: a cache costs a microsecond or two. */
#define CACHE_COST  (3 * UTIL_NS_PER_US)
#define MAX_REGIONS 1024

static int cache_reg(void *arg, struct msg_span s, void **mr)
{
	struct ibv_mr *m;
	int err = msg_dev_reg(arg, (void *)s.start, s.end - s.start, true, &m);

	*mr = m;
	return err;
}

static void cache_dereg(void *arg, void *mr)
{
	(void)arg;
	ibv_dereg_mr(mr);
}

static const struct msg_reg_ops cache_ops = {.reg = cache_reg, .dereg = cache_dereg};

static bool is_slow(struct msg_dev *dev, size_t page)
{
	void *mem = aligned_alloc(page, page);
	uint64_t best = UINT64_MAX;
	struct ibv_mr *mr;

	for (int i = 0; i < 8 && mem; i++) {
		uint64_t start = util_now_ns(), took;

		if (msg_dev_reg(dev, mem, page, true, &mr))
			break;
		ibv_dereg_mr(mr);
		took = util_now_ns() - start;
		if (took < best)
			best = took;
	}
	free(mem);
	return best != UINT64_MAX && best > CACHE_COST;
}

void msg_mem_open(struct msg_dev *dev, enum msg_caching caching)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct msg_cache_conf conf = {.max_regions = MAX_REGIONS,
				      .max_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) / 4 * page,
				      .page = page,
				      .reg = &cache_ops,
				      .reg_arg = dev,
				      .watch = &msg_monitor_ops,
				      .watch_arg = &dev->watcher};
	int err;

	if (caching == MSG_CACHE_OFF || (caching == MSG_CACHE_AUTO && !is_slow(dev, page)))
		return;
	err = msg_monitor_join(&dev->watcher, true);
	if (err) {
		util_log(UTIL_LOG_INFO, "registrations are not kept: memory can not be watched: %s",
			 strerror(-err));
		return;
	}
	msg_cache_init(&dev->cache, &conf);
	dev->cached = true;
}

void msg_mem_close(struct msg_dev *dev)
{
	if (dev->cached) {
		msg_cache_free(&dev->cache);
		msg_monitor_leave(&dev->watcher);
	}
	free(dev->mem);
}

/* What is kept has all rights, which read-only memory can not have. */
int msg_hold(struct msg_dev *dev, void *addr, size_t len, bool write, struct msg_hold *h)
{
	int err = -ENOENT;

	h->region = NULL;
	if (dev->cached) {
		util_lock(&dev->cache_lock);
		err = msg_cache_get(&dev->cache, addr, len, &h->region);
		util_unlock(&dev->cache_lock);
	}
	if (err)
		return msg_dev_reg(dev, addr, len, write, &h->mr);
	h->mr = h->region->mr;
	return 0;
}

int msg_hold_kept(struct msg_dev *dev, void *addr, size_t len, bool make, struct msg_hold *h)
{
	bool kept = false;
	int err;

	util_lock(&dev->cache_lock);
	err = make ? msg_cache_get(&dev->cache, addr, len, &h->region)
		   : msg_cache_find(&dev->cache, addr, len, &h->region);
	if (!err)
		kept = h->region->kept;
	util_unlock(&dev->cache_lock);
	if (err) {
		h->region = NULL;
		return err;
	}
	h->mr = h->region->mr;
	return kept ? 0 : 1;
}

void msg_release(struct msg_dev *dev, struct msg_hold *h)
{
	if (h->region) {
		util_lock(&dev->cache_lock);
		msg_cache_put(&dev->cache, h->region);
		util_unlock(&dev->cache_lock);
	} else {
		ibv_dereg_mr(h->mr);
	}
	*h = (struct msg_hold){0};
}

int msg_move(const struct msg_hold *h, void *to)
{
	const struct verbs_dv_ops *dv = msg_verbs_dv();

	if (h->region || !verbs_dv_has(dv, move_mr))
		return -EOPNOTSUPP;
	return -dv->move_mr(h->mr, to);
}

/* ---- what the application has registered ---- */

static struct msg_mem **bucket(const struct msg_dev *dev, uint32_t key)
{
	return &dev->mem[key * UINT32_C(0x9e3779b9) >> 4 & (dev->mem_buckets - 1)];
}

static int grow(struct msg_dev *dev)
{
	uint32_t n = dev->mem_buckets, more = n ? 2 * n : 16;
	struct msg_mem **old = dev->mem, *m;

	if (dev->n_mem < n)
		return 0;
	dev->mem = calloc(more, sizeof(*dev->mem));
	if (!dev->mem) {
		dev->mem = old;
		return -ENOMEM;
	}
	dev->mem_buckets = more;
	for (uint32_t i = 0; i < n; i++)
		while ((m = old[i])) {
			struct msg_mem **b = bucket(dev, m->mr->rkey);

			old[i] = m->next;
			m->next = *b;
			*b = m;
		}
	free(old);
	return 0;
}

static int insert(struct msg_dev *dev, struct msg_mem *m)
{
	struct msg_mem **b;
	int err;

	util_lock(&dev->lock);
	err = grow(dev);
	if (!err) {
		b = bucket(dev, m->mr->rkey);
		m->next = *b;
		*b = m;
		dev->n_mem++;
	}
	util_unlock(&dev->lock);
	return err;
}

int msg_reg(struct msg_dev *dev, void *addr, size_t len, bool write, struct msg_mem **out,
	    uint32_t *key)
{
	struct msg_mem *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->dev = dev;
	m->write = write;
	err = msg_dev_reg(dev, addr, len, write, &m->mr);
	if (!err) {
		err = insert(dev, m);
		if (err)
			ibv_dereg_mr(m->mr);
	}
	if (err) {
		free(m);
		return err;
	}
	*key = m->mr->rkey;
	*out = m;
	return 0;
}

void msg_dereg(struct msg_mem *m)
{
	struct msg_dev *dev = m->dev;
	struct msg_mem **b;

	util_lock(&dev->lock);
	for (b = bucket(dev, m->mr->rkey); *b != m;)
		b = &(*b)->next;
	*b = m->next;
	dev->n_mem--;
	util_unlock(&dev->lock);
	ibv_dereg_mr(m->mr);
	free(m);
}

void *msg_dev_mem(const struct msg_dev *dev, uint32_t key, uint64_t addr, uint64_t len, bool write)
{
	if (!dev->mem_buckets)
		return NULL;
	for (struct msg_mem *m = *bucket(dev, key); m; m = m->next) {
		uint64_t start = (uintptr_t)m->mr->addr;

		if (m->mr->rkey != key)
			continue;
		if ((write && !m->write) || addr < start || len > m->mr->length ||
		    addr - start > m->mr->length - len)
			return NULL;
		return (void *)(uintptr_t)addr;
	}
	return NULL;
}
