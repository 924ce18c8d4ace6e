/* Calls that rdma-core 44 does not have yet and that take an object of ours.
 *
 * Where the installed library has them, they are exported and must not let an object
 * of Weft's through: the real library would look for its private parts in there. This
 * file therefore must compile without their declarations, and does not include
 * <infiniband/verbs.h>, which may contain them: arguments are passed on by position,
 * as pointers or integers that fit a register, of which none has more than five.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs_real.h"

struct ibv_device;
bool rnic_is_device(const struct ibv_device *dev); /* rnic.h */

typedef uintptr_t arg;

/* Both structures begin so, by the rules of libibverbs' ABI. */
struct context {
	struct ibv_device *device;
};
struct object {
	struct context *context;
};

#define IN_CONTEXT(first) rnic_is_device(((struct context *)(first))->device)
#define IN_OBJECT(first)  rnic_is_device(((struct object *)(first))->context->device)

#define REFUSE(name, where, refusal)                                                               \
	extern VERBS_HIDDEN arg REAL(name)(arg, arg, arg, arg, arg);                               \
	arg name(arg a, arg b, arg c, arg d, arg e);                                               \
	VERBS_EXPORT arg name(arg a, arg b, arg c, arg d, arg e)                                   \
	{                                                                                          \
		if (!where(a))                                                                     \
			return REAL(name)(a, b, c, d, e);                                          \
		errno = EOPNOTSUPP;                                                                \
		return (arg)(refusal);                                                             \
	}

REFUSE(ibv_alloc_dmah, IN_CONTEXT, 0)
REFUSE(ibv_dealloc_dmah, IN_OBJECT, EOPNOTSUPP)
REFUSE(ibv_reg_mr_ex, IN_OBJECT, 0)
REFUSE(ibv_query_port_speed, IN_CONTEXT, EOPNOTSUPP)
REFUSE(ibv_dm_export_dmabuf_fd, IN_OBJECT, -1)
REFUSE(ibv_alloc_buf, IN_OBJECT, 0)
REFUSE(ibv_reg_buf_mr, IN_OBJECT, 0)
REFUSE(_ibv_query_comp_cntr_caps, IN_CONTEXT, EOPNOTSUPP)
REFUSE(ibv_create_comp_cntr, IN_CONTEXT, 0)
REFUSE(ibv_qp_attach_comp_cntr, IN_OBJECT, EOPNOTSUPP)
