/* libweftdv: <weft/weftdv.h> for programs that may or may not run on Weft.
 *
 * It needs no libibverbs of its own: the functions are those of the libibverbs in the process,
 * if that is Weft's. A program that is linked with this library and runs without `weft verbs`
 * finds no device to use it on, and that is all.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "verbs_dv.h"

#define DV_EXPORT __attribute__((visibility("default")))

typedef const struct verbs_dv_ops *dv_ops_fn(void);

/* The preloaded library is in the scope of everybody; one that the program has loaded by itself
 * may be in nobody's, and is found by its name. */
static dv_ops_fn *dv_look_up(void)
{
	dv_ops_fn *fn = (dv_ops_fn *)dlsym(RTLD_DEFAULT, VERBS_DV_SYMBOL);
	void *lib;

	if (fn)
		return fn;
	lib = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!lib)
		return NULL;
	fn = (dv_ops_fn *)dlsym(lib, VERBS_DV_SYMBOL);
	/* Weft's stays in the process even so (nodelete): its thread may be running. */
	dlclose(lib);
	return fn;
}

/* NULL without Weft. Only a find is remembered: the library may still be loaded. */
static const struct verbs_dv_ops *dv_ops(void)
{
	static const struct verbs_dv_ops *_Atomic found;
	const struct verbs_dv_ops *ops = atomic_load_explicit(&found, memory_order_acquire);
	dv_ops_fn *fn;

	if (ops)
		return ops;
	fn = dv_look_up();
	ops = fn ? fn() : NULL;
	if (!ops || ops->version != VERBS_DV_VERSION || !verbs_dv_has(ops, query_rd))
		return NULL;
	/* release: pairs with the acquire above; all threads find the same one */
	atomic_store_explicit(&found, ops, memory_order_release);
	return ops;
}

DV_EXPORT bool weftdv_is_supported(struct ibv_device *device)
{
	const struct verbs_dv_ops *ops = dv_ops();

	return ops && device && ops->is_device(device);
}

static struct ibv_qp *refuse(int err)
{
	errno = err;
	return NULL;
}

DV_EXPORT struct ibv_qp *weftdv_create_qp(struct ibv_context *context,
					  struct ibv_qp_init_attr_ex *attr,
					  const struct weftdv_qp_init_attr *weft_attr)
{
	if (!weftdv_is_supported(context->device))
		return refuse(EOPNOTSUPP);
	if (weft_attr->comp_mask || weft_attr->type != WEFTDV_QPT_RD ||
	    attr->qp_type != IBV_QPT_DRIVER)
		return refuse(EINVAL);
	return dv_ops()->create_rd_qp(context, attr);
}

DV_EXPORT int weftdv_query_path(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn,
				struct weftdv_path *path)
{
	const struct verbs_dv_ops *ops = dv_ops();

	return ops ? ops->query_path(qp, ah, remote_qpn, path) : EOPNOTSUPP;
}

DV_EXPORT int weftdv_query_rd(struct ibv_qp *qp, struct weftdv_rd_stats *stats)
{
	const struct verbs_dv_ops *ops = dv_ops();

	return ops ? ops->query_rd(qp, stats) : EOPNOTSUPP;
}
