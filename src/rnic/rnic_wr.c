/* ibv_wr_*: work requests built call by call. They are written straight into the send
 * queue's free slots, and nobody else sees them before ibv_wr_complete. */
#include <errno.h>
#include <string.h>
#include "rnic_conn.h"

static struct rnic_qp *of(struct ibv_qp_ex *ex)
{
	return (struct rnic_qp *)ex;
}

static void fail(struct rnic_qp *qp, int err)
{
	if (!qp->sq.build_err)
		qp->sq.build_err = err;
}

static struct rnic_swqe *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode op)
{
	struct rnic_qp *qp = of(ex);
	struct rnic_sq *sq = &qp->sq;
	int err = rnic_sq_check(qp, op);

	sq->cur = NULL;
	if (!err && !rnic_sq_room(sq, sq->build))
		err = ENOMEM;
	if (err || sq->build_err) {
		fail(qp, err);
		return NULL;
	}
	sq->cur = rnic_swqe(qp, sq->build++);
	memset(sq->cur, 0, sizeof(*sq->cur));
	sq->build_seq += op == IBV_WR_RDMA_WRITE_WITH_IMM ? 2 : 1;
	sq->cur->seq = sq->build_seq;
	sq->cur->wr_id = ex->wr_id;
	sq->cur->opcode = (uint8_t)op;
	sq->cur->flags = (uint8_t)ex->wr_flags;
	return sq->cur;
}

static void begin_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode op, uint32_t rkey,
		       uint64_t remote_addr)
{
	struct rnic_swqe *w = begin(ex, op);

	if (w) {
		w->rkey = rkey;
		w->remote_addr = remote_addr;
	}
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm)
{
	struct rnic_swqe *w = begin(ex, IBV_WR_SEND_WITH_IMM);

	if (w)
		w->imm = imm;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, __be32 imm)
{
	begin_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	if (of(ex)->sq.cur)
		of(ex)->sq.cur->imm = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr)
{
	begin_rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	begin_rdma(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);
	if (of(ex)->sq.cur) {
		of(ex)->sq.cur->compare_add = compare;
		of(ex)->sq.cur->swap = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	begin_rdma(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr);
	if (of(ex)->sq.cur)
		of(ex)->sq.cur->compare_add = add;
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ibah, uint32_t qpn, uint32_t qkey)
{
	struct rnic_swqe *w = of(ex)->sq.cur;
	struct rnic_ah *ah = (struct rnic_ah *)ibah;

	if (!w)
		return;
	if (qpn > 0xffffff) {
		fail(of(ex), EINVAL);
		return;
	}
	rnic_swqe_set_ah(w, ah, qpn, qkey);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_sge *sge)
{
	struct rnic_qp *qp = of(ex);
	struct rnic_swqe *w = qp->sq.cur;
	uint64_t len;

	if (!w)
		return;
	len = n <= qp->sq.max_sge ? rnic_sge_len(sge, (int)n) : UINT64_MAX;
	if (len > RNIC_MAX_MSG) {
		fail(qp, EINVAL);
		return;
	}
	w->num_sge = (int)n;
	w->length = (uint32_t)len;
	memcpy(w->sge, sge, n * sizeof(*sge));
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = {.lkey = lkey, .addr = addr, .length = length};

	wr_set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t n, const struct ibv_data_buf *buf)
{
	struct rnic_qp *qp = of(ex);
	struct rnic_swqe *w = qp->sq.cur;
	uint8_t *to;

	if (!w)
		return;
	to = (uint8_t *)w->sge;
	for (size_t i = 0; i < n; i++) {
		if (rnic_is_read(w) || buf[i].length > qp->sq.max_inline - w->length) {
			fail(qp, EINVAL);
			return;
		}
		memcpy(to + w->length, buf[i].addr, buf[i].length);
		w->length += (uint32_t)buf[i].length;
	}
	w->inl = true;
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ex, 1, &buf);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct rnic_sq *sq = &of(ex)->sq;

	if (!of(ex)->e->dead)
		util_lock(&sq->lock);
	sq->build = sq->tail;
	sq->build_seq = sq->seq;
	sq->build_err = rnic_may_post(of(ex));
	sq->cur = NULL;
}

/* What only the whole request shows. */
static int check_built(struct rnic_qp *qp)
{
	for (uint32_t i = qp->sq.tail; i != qp->sq.build; i++) {
		struct rnic_swqe *w = rnic_swqe(qp, i);

		if ((qp->ibv.qp_type == IBV_QPT_UD || rnic_is_rd(qp)) && !w->dst_qpn)
			return EINVAL; /* ibv_wr_set_ud_addr is missing */
		if (rnic_is_rd(qp) && w->dst_qpn == RNIC_MCAST_QPN)
			return EINVAL;
		if (rnic_is_read(w) && w->opcode != IBV_WR_RDMA_READ) {
			if (w->length < sizeof(uint64_t))
				return EINVAL;
			w->length = sizeof(uint64_t);
		}
	}
	return 0;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct rnic_qp *qp = of(ex);
	struct rnic_sq *sq = &qp->sq;
	int err = sq->build_err ? sq->build_err : check_built(qp);

	if (qp->e->dead)
		return EIO;
	if (!err && sq->build != sq->tail) {
		rnic_enter(qp->e);
		rnic_sq_publish(qp, sq->build, sq->build_seq);
		rnic_swqe_keep(sq->cur); /* if it is one of those */
		rnic_leave(qp->e);
	}
	util_unlock(&sq->lock);
	return err;
}

/* A send has no remote address, so there is room for where the copy goes. */
int rnic_wr_complete_keep(struct ibv_qp_ex *ex, void *keep, uint32_t lkey)
{
	struct rnic_sq *sq = &of(ex)->sq;

	if (!sq->build_err && (sq->build - sq->tail != 1 || sq->cur->opcode != IBV_WR_SEND))
		sq->build_err = EINVAL;
	if (!sq->build_err) {
		sq->cur->keep = !sq->cur->inl;
		sq->cur->remote_addr = (uintptr_t)keep;
		sq->cur->rkey = lkey;
	}
	return wr_complete(ex);
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	if (!of(ex)->e->dead)
		util_unlock(&of(ex)->sq.lock);
}

uint64_t rnic_wr_ops_known(enum ibv_qp_type type)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type != IBV_QPT_UD)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (type == IBV_QPT_RC || type == IBV_QPT_DRIVER)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	return ops;
}

void rnic_wr_ops(struct rnic_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	qp->has_ex = true;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
}
