/* Reliable datagram queue pairs: how Weft's device makes them (<weft/weftdv.h>), and how a
 * request names its peer. */
#include <weft/weftdv.h>

#include "bench_verbs.h"

struct ibv_qp *bench_rd_create(struct bench_dev *dev, struct ibv_cq *cq,
			       const struct ibv_qp_cap *cap)
{
	struct weftdv_qp_init_attr weft = {.type = WEFTDV_QPT_RD};
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = BENCH_QPT_RD,
		.cap = *cap,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	return weftdv_create_qp(dev->ctx, &attr, &weft);
}

static void begin(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	uint32_t rkey = wr->wr.rdma.rkey;
	uint64_t addr = wr->wr.rdma.remote_addr;

	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(ex, rkey, addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(ex, rkey, addr, wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(ex, rkey, addr);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(ex, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	default:
		ibv_wr_send(ex);
	}
}

int bench_rd_post(struct ibv_qp *qp, const struct ibv_send_wr *wr, struct ibv_ah *ah,
		  const struct bench_addr *peer)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	const struct ibv_sge *sge = wr->sg_list;

	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id;
	ex->wr_flags = wr->send_flags & ~(unsigned int)IBV_SEND_INLINE;
	begin(ex, wr);
	ibv_wr_set_ud_addr(ex, ah, peer->qpn, peer->qkey);
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(ex, (void *)(uintptr_t)sge->addr, sge->length);
	else
		ibv_wr_set_sge(ex, sge->lkey, sge->addr, sge->length);
	return ibv_wr_complete(ex);
}
