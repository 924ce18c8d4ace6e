/* What libweftdv, and Weft's own message layer, ask of the replacement libibverbs: a table of
 * functions, found at run time.
 *
 * libweftdv is linked by programs that may run without Weft, so it needs none of these
 * symbols; it looks for weft_dv_ops in the libibverbs of the process. The two libraries may
 * come from different installations: new functions are added at the end, size says how many
 * there are, and version changes only if an old one does.
 *
 * Any object of any device may be passed: what is not Weft's is refused with EOPNOTSUPP. Results
 * are those of <weft/weftdv.h>.
 */
#ifndef WEFT_VERBS_DV_H
#define WEFT_VERBS_DV_H

#include <stddef.h>
#include <weft/weftdv.h>

#define VERBS_DV_SYMBOL  "weft_dv_ops"
#define VERBS_DV_VERSION 1

struct verbs_dv_ops {
	uint32_t size; /* of this structure in the library that fills it */
	uint32_t version;
	bool (*is_device)(const struct ibv_device *device);
	struct ibv_qp *(*create_rd_qp)(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
	int (*query_path)(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn,
			  struct weftdv_path *path);
	int (*query_rd)(struct ibv_qp *qp, struct weftdv_rd_stats *stats);
	/* The region's keys and addresses lead to the memory at addr from now on, of the same
	 * length, and nothing touches the old one after the call. 0 or errno: EBUSY something was
	 * written by its keys, and nothing is changed. */
	int (*move_mr)(struct ibv_mr *mr, void *addr);
	/* While nobody polls, the progress thread calls `serve` when there is something in the
	 * queue, without any lock; it is to poll the queue until that is empty. NULL: no more; then
	 * it is not being called either, when this returns. 0 or errno: EOPNOTSUPP there is no
	 * thread. */
	int (*serve_cq)(struct ibv_cq *cq, void (*serve)(void *arg), void *arg);
	/* ibv_wr_complete, of one send with a list, after which the memory of the list is the
	 * caller's again. It is sent from there, as far as that is possible at once, and then
	 * copied to `keep`, in case that it has to be sent again: that is to be left alone until
	 * the send completes, has room for all of it, and this key. Without a queue pair of ours,
	 * ibv_wr_start would not have been possible. */
	int (*complete_keep)(struct ibv_qp_ex *qp, void *keep, uint32_t lkey);
};

/* Whether the library that has filled the table knew of this function. */
#define verbs_dv_has(ops, fn) ((ops)->size >= offsetof(struct verbs_dv_ops, fn) + sizeof((ops)->fn))

const struct verbs_dv_ops *weft_dv_ops(void);

#endif
