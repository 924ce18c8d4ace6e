/* Devices: opened, and the memory that they may use. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_log.h"
#include "msg_ep.h"

/* Weft's own devices, for now: others have no RD. */
static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list;
	struct ibv_context *ctx = NULL;
	int n = 0;

	list = ibv_get_device_list(&n);
	if (!list)
		return NULL;
	errno = ENODEV;
	for (int i = 0; i < n && !ctx; i++)
		if (msg_verbs_dv()->is_device(list[i]) &&
		    (!name || !strcmp(name, ibv_get_device_name(list[i]))))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return ctx;
}

/* Only for what this process does with its own memory: no peer gets a key for all of it. */
static int reg_all(struct msg_dev *dev)
{
	dev->all = ibv_reg_mr_iova2(dev->pd, NULL, SIZE_MAX, 0,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	return dev->all ? 0 : -errno;
}

int msg_dev_open(const char *name, struct msg_dev **out)
{
	struct msg_dev *dev;
	int err = msg_verbs_load();

	if (err)
		return err;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return -ENOMEM;
	dev->ctx = open_named(name);
	if (!dev->ctx)
		err = -errno;
	if (!err && ibv_query_gid(dev->ctx, 1, 0, &dev->gid))
		err = -ENODEV;
	if (!err) {
		memcpy(&dev->ip, dev->gid.raw + 12, sizeof(dev->ip));
		dev->pd = ibv_alloc_pd(dev->ctx);
		err = dev->pd ? reg_all(dev) : -errno;
	}
	if (err) {
		msg_dev_close(dev);
		return err;
	}
	*out = dev;
	return 0;
}

void msg_dev_close(struct msg_dev *dev)
{
	if (dev->all)
		ibv_dereg_mr(dev->all);
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	if (dev->ctx)
		ibv_close_device(dev->ctx);
	free(dev->mem);
	free(dev);
}

int msg_dev_reg(struct msg_dev *dev, void *addr, size_t len, bool write, struct ibv_mr **out)
{
	unsigned int access = IBV_ACCESS_REMOTE_READ;

	if (write)
		access |=
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	*out = ibv_reg_mr_iova2(dev->pd, addr, len, (uintptr_t)addr, access);
	return *out ? 0 : -errno;
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
