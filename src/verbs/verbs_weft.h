/* Shared by the files of this layer that define libibverbs calls.
 *
 * Each call looks at the device of the object that it is given. Weft's own goes to
 * rnic/, anything else to the real library, untouched. Return values are those of the
 * man pages: rnic/ answers with a positive errno, and calls whose man page promises -1
 * convert it here.
 *
 * Functions here never call exported ibv_* names: another library may have taken the
 * name, and inside verbs.h some of them are macros.
 */
#ifndef WEFT_VERBS_WEFT_H
#define WEFT_VERBS_WEFT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <infiniband/verbs.h>

#include "rnic.h"
#include "verbs_real.h"

/* Macros and inline functions in front of the exported functions of these names. */
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static inline bool is_weft(const struct ibv_context *ctx)
{
	return rnic_is_device(ctx->device);
}

/* 0 or a positive errno to 0 or -1 with errno. */
static inline int minus_one(int err)
{
	if (!err)
		return 0;
	errno = err;
	return -1;
}

static inline int refuse(int err)
{
	errno = err;
	return err;
}

static inline void *refuse_null(int err)
{
	errno = err;
	return NULL;
}

#endif
