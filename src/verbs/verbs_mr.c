/* Protection domains and memory. */
#include "verbs_weft.h"

VERBS_DECLARE_REAL(ibv_alloc_pd);
VERBS_DECLARE_REAL(ibv_dealloc_pd);
VERBS_DECLARE_REAL(ibv_reg_mr);
VERBS_DECLARE_REAL(ibv_reg_mr_iova);
VERBS_DECLARE_REAL(ibv_reg_mr_iova2);
VERBS_DECLARE_REAL(ibv_reg_dmabuf_mr);
VERBS_DECLARE_REAL(ibv_rereg_mr);
VERBS_DECLARE_REAL(ibv_dereg_mr);
VERBS_DECLARE_REAL(ibv_import_pd);
VERBS_DECLARE_REAL(ibv_unimport_pd);
VERBS_DECLARE_REAL(ibv_import_mr);
VERBS_DECLARE_REAL(ibv_unimport_mr);
VERBS_DECLARE_REAL(ibv_import_dm);
VERBS_DECLARE_REAL(ibv_unimport_dm);

VERBS_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	if (is_weft(ctx))
		return rnic_alloc_pd(ctx);
	return REAL(ibv_alloc_pd)(ctx);
}

VERBS_EXPORT int ibv_dealloc_pd(struct ibv_pd *pd)
{
	if (is_weft(pd->context))
		return rnic_dealloc_pd(pd);
	return REAL(ibv_dealloc_pd)(pd);
}

/* Optional access flags are wishes: who can not grant one ignores it. */
static struct ibv_mr *reg_weft(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
			       unsigned int access)
{
	return rnic_reg_mr(pd, addr, len, iova, access & ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE);
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len, int access)
{
	if (is_weft(pd->context))
		return reg_weft(pd, addr, len, (uintptr_t)addr, (unsigned int)access);
	return REAL(ibv_reg_mr)(pd, addr, len, access);
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t len,
					    uint64_t iova, int access)
{
	if (is_weft(pd->context))
		return reg_weft(pd, addr, len, iova, (unsigned int)access);
	return REAL(ibv_reg_mr_iova)(pd, addr, len, iova, access);
}

VERBS_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len,
					     uint64_t iova, unsigned int access)
{
	if (is_weft(pd->context))
		return reg_weft(pd, addr, len, iova, access);
	return REAL(ibv_reg_mr_iova2)(pd, addr, len, iova, access);
}

VERBS_EXPORT struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len,
					      uint64_t iova, int fd, int access)
{
	if (is_weft(pd->context))
		return refuse_null(EOPNOTSUPP);
	return REAL(ibv_reg_dmabuf_mr)(pd, offset, len, iova, fd, access);
}

/* The man page's rule: what libibverbs itself finds wrong is ERR_INPUT, a refusal of
 * the device ERR_CMD, after which the region must not be used. */
VERBS_EXPORT int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
			      size_t len, int access)
{
	int err;

	if (!is_weft(mr->context))
		return REAL(ibv_rereg_mr)(mr, flags, pd, addr, len, access);
	if ((flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) ||
	    ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != mr->context)) ||
	    ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (!len || !addr)) ||
	    (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))) {
		errno = EINVAL;
		return IBV_REREG_MR_ERR_INPUT;
	}
	err = rnic_rereg_mr(mr, flags, pd, addr, len, access);
	if (!err)
		return 0;
	errno = err;
	return IBV_REREG_MR_ERR_CMD;
}

VERBS_EXPORT int ibv_dereg_mr(struct ibv_mr *mr)
{
	if (is_weft(mr->context))
		return rnic_dereg_mr(mr);
	return REAL(ibv_dereg_mr)(mr);
}

/* Objects of another process can be taken over only where the kernel holds them. So
 * nothing of Weft's is ever imported, and there is nothing to undo. */
VERBS_EXPORT struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t handle)
{
	if (is_weft(ctx))
		return refuse_null(EOPNOTSUPP);
	return REAL(ibv_import_pd)(ctx, handle);
}

VERBS_EXPORT void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (!is_weft(pd->context))
		REAL(ibv_unimport_pd)(pd);
}

VERBS_EXPORT struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	if (is_weft(pd->context))
		return refuse_null(EOPNOTSUPP);
	return REAL(ibv_import_mr)(pd, handle);
}

VERBS_EXPORT void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (!is_weft(mr->context))
		REAL(ibv_unimport_mr)(mr);
}

VERBS_EXPORT struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t handle)
{
	if (is_weft(ctx))
		return refuse_null(EOPNOTSUPP);
	return REAL(ibv_import_dm)(ctx, handle);
}

VERBS_EXPORT void ibv_unimport_dm(struct ibv_dm *dm)
{
	if (!is_weft(dm->context))
		REAL(ibv_unimport_dm)(dm);
}
