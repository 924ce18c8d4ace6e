#include <stdio.h>
#include <string.h>
#include <weft/weftdv.h>

#define QKEY 0x11111111

static struct ibv_context *open_weft(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i] && !ctx; i++)
		if (weftdv_is_supported(list[i]))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct weftdv_qp_init_attr weft = {.type = WEFTDV_QPT_RD};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_DRIVER,
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16,
			.max_send_sge = 1, .max_recv_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct ibv_qp_attr attr = {.port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp = weftdv_create_qp(pd->context, &init, &weft);

	if (!qp)
		return NULL;
	attr.qp_state = IBV_QPS_INIT;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				     IBV_QP_PORT | IBV_QP_QKEY))
		return NULL;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE))
		return NULL;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) ? NULL : qp;
}

int main(void)
{
	static char from[32] = "written by a", to[32];
	struct ibv_ah_attr where = {.is_global = 1, .port_num = 1};
	struct ibv_context *ctx = open_weft();
	struct ibv_wc wc;
	int n;

	if (!ctx) {
		fprintf(stderr, "no Weft device here; try weft verbs\n");
		return 1;
	}
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);
	struct ibv_mr *src = ibv_reg_mr(pd, from, sizeof(from), 0);
	struct ibv_mr *dst = ibv_reg_mr(pd, to, sizeof(to),
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp *a = make_qp(pd, cq), *b = make_qp(pd, cq);

	if (!src || !dst || !a || !b || ibv_query_gid(ctx, 1, 0, &where.grh.dgid)) {
		fprintf(stderr, "set-up failed\n");
		return 1;
	}
	struct ibv_ah *ah = ibv_create_ah(pd, &where);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a);

	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, dst->rkey, (uintptr_t)to);
	ibv_wr_set_ud_addr(ex, ah, b->qp_num, QKEY);
	ibv_wr_set_sge(ex, src->lkey, (uintptr_t)from, sizeof(from));
	if (ibv_wr_complete(ex)) {
		perror("ibv_wr_complete");
		return 1;
	}
	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "write: %s\n", n < 0 ? "?" : ibv_wc_status_str(wc.status));
		return 1;
	}
	printf("b has: %s\n", to);
	return 0; /* the kernel frees the rest */
}
