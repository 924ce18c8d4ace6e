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
	free(dev);
}

int msg_reg(struct msg_dev *dev, void *addr, size_t len, bool write, void **out, uint32_t *key)
{
	unsigned int access = IBV_ACCESS_REMOTE_READ;
	struct ibv_mr *mr;

	if (write)
		access |=
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	mr = ibv_reg_mr_iova2(dev->pd, addr, len, (uintptr_t)addr, access);
	if (!mr)
		return -errno;
	*out = mr;
	*key = mr->rkey;
	return 0;
}

void msg_dereg(void *mr)
{
	ibv_dereg_mr(mr);
}
