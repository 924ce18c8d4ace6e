/* Direct verbs: the way in for libweftdv, which is not part of the libibverbs ABI. */
#include "verbs_dv.h"
#include "verbs_weft.h"

/* A queue of another device must not reach the layer below, which takes what it gets
 * for its own. */
static bool queues_belong(const struct ibv_context *ctx, const struct ibv_qp_init_attr_ex *attr)
{
	return (!attr->send_cq || attr->send_cq->context == ctx) &&
	       (!attr->recv_cq || attr->recv_cq->context == ctx) &&
	       (!attr->srq || attr->srq->context == ctx) &&
	       (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context == ctx);
}

static struct ibv_qp *create_rd_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	if (!is_weft(ctx))
		return refuse_null(EOPNOTSUPP);
	if (!queues_belong(ctx, attr))
		return refuse_null(EINVAL);
	return rnic_create_rd_qp(ctx, attr);
}

/* Weft's only driver queue pairs are RD ones. */
static int check_rd(const struct ibv_qp *qp)
{
	if (!is_weft(qp->context))
		return EOPNOTSUPP;
	return qp->qp_type == IBV_QPT_DRIVER ? 0 : EINVAL;
}

static int query_path(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn,
		      struct weftdv_path *path)
{
	int err = check_rd(qp);

	if (!err && ah->context != qp->context)
		err = EINVAL;
	return err ? err : rnic_query_path(qp, ah, remote_qpn, path);
}

static int query_rd(struct ibv_qp *qp, struct weftdv_rd_stats *stats)
{
	int err = check_rd(qp);

	return err ? err : rnic_query_rd(qp, stats);
}

static int move_mr(struct ibv_mr *mr, void *addr)
{
	return is_weft(mr->context) ? rnic_move_mr(mr, addr) : EOPNOTSUPP;
}

static int serve_cq(struct ibv_cq *cq, void (*serve)(void *arg), void *arg)
{
	return is_weft(cq->context) ? rnic_serve_cq(cq, serve, arg) : EOPNOTSUPP;
}

static int complete_keep(struct ibv_qp_ex *qp, void *keep, uint32_t lkey)
{
	return is_weft(qp->qp_base.context) ? rnic_wr_complete_keep(qp, keep, lkey) : EOPNOTSUPP;
}

VERBS_EXPORT const struct verbs_dv_ops *weft_dv_ops(void)
{
	static const struct verbs_dv_ops ops = {
		.size = sizeof(ops),
		.version = VERBS_DV_VERSION,
		.is_device = rnic_is_device,
		.create_rd_qp = create_rd_qp,
		.query_path = query_path,
		.query_rd = query_rd,
		.move_mr = move_mr,
		.serve_cq = serve_cq,
		.complete_keep = complete_keep,
	};

	return &ops;
}
