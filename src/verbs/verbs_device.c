/* The device list, opening and closing. */
#include <stdlib.h>

#include "verbs_tune.h"
#include "verbs_weft.h"

VERBS_DECLARE_REAL(ibv_get_device_list);
VERBS_DECLARE_REAL(ibv_free_device_list);
VERBS_DECLARE_REAL(ibv_get_device_name);
VERBS_DECLARE_REAL(ibv_get_device_guid);
VERBS_DECLARE_REAL(ibv_get_device_index);
VERBS_DECLARE_REAL(ibv_open_device);
VERBS_DECLARE_REAL(ibv_close_device);
VERBS_DECLARE_REAL(ibv_import_device);

/* ibv_free_device_list gets nothing but the array, and the real library wants its own
 * array back, because it counts references to the devices in there. */
struct device_list {
	struct ibv_device **real; /* NULL when there is no hardware */
	struct ibv_device *dev[]; /* what the caller sees; ends with NULL */
};

/* Set while the real library looks for one of its devices: when we are in the global
 * scope it calls ibv_get_device_list here, and expects its own structures. */
static _Thread_local bool hardware_only;

static struct ibv_device **merge(struct ibv_device **real, int n_real, struct ibv_device *weft,
				 int *num)
{
	struct device_list *list;
	int n = 0;

	list = malloc(sizeof(*list) + (size_t)(n_real + 2) * sizeof(void *));
	if (!list) {
		if (real)
			REAL(ibv_free_device_list)(real);
		return refuse_null(ENOMEM);
	}
	list->real = real;
	/* Hardware first: programs that take the first device keep the one they had. */
	while (n < n_real) {
		list->dev[n] = real[n];
		n++;
	}
	if (weft)
		list->dev[n++] = weft;
	list->dev[n] = NULL;
	if (num)
		*num = n;
	return list->dev;
}

VERBS_EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	bool weft_only = util_tune_bool(&verbs_tunables[VERBS_TUNE_ONLY]) && !hardware_only;
	const struct rnic_device *weft = hardware_only ? NULL : rnic_device_get();
	struct ibv_device **real = NULL;
	int n_real = 0;

	if (num)
		*num = 0;
	if (!weft_only) {
		real = REAL(ibv_get_device_list)(&n_real);
		verbs_real_sync_objects();
		/* Without hardware it says ENOSYS: an answer only if it is the only one. */
		if (!real && !weft)
			return NULL;
	}
	return merge(real, n_real, weft ? (struct ibv_device *)&weft->ibv : NULL, num);
}

VERBS_EXPORT void ibv_free_device_list(struct ibv_device **dev)
{
	struct device_list *list =
		(struct device_list *)((char *)dev - offsetof(struct device_list, dev));

	if (list->real)
		REAL(ibv_free_device_list)(list->real);
	free(list);
}

VERBS_EXPORT const char *ibv_get_device_name(struct ibv_device *dev)
{
	if (rnic_is_device(dev))
		return dev->name;
	return REAL(ibv_get_device_name)(dev);
}

VERBS_EXPORT __be64 ibv_get_device_guid(struct ibv_device *dev)
{
	if (rnic_is_device(dev))
		return rnic_device_guid(dev);
	return REAL(ibv_get_device_guid)(dev);
}

VERBS_EXPORT int ibv_get_device_index(struct ibv_device *dev)
{
	/* The index is the kernel's, and it does not know us. */
	if (rnic_is_device(dev))
		return -1;
	return REAL(ibv_get_device_index)(dev);
}

VERBS_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	if (rnic_is_device(dev))
		return rnic_open_device(dev);
	return REAL(ibv_open_device)(dev);
}

VERBS_EXPORT int ibv_close_device(struct ibv_context *ctx)
{
	if (is_weft(ctx))
		return minus_one(rnic_close_device(ctx));
	return REAL(ibv_close_device)(ctx);
}

/* The file descriptor is one of the kernel's, hence of hardware. */
VERBS_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *ctx;

	hardware_only = true;
	ctx = REAL(ibv_import_device)(cmd_fd);
	hardware_only = false;
	return ctx;
}
