/* ibv_post_send and ibv_post_recv. */
#include <errno.h>
#include <string.h>
#include "rnic_conn.h"
#include "rnic_rd.h"

/* Which operations a kind of queue pair offers. */
int rnic_sq_check(const struct rnic_qp *qp, enum ibv_wr_opcode op)
{
	switch (op) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return 0;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return qp->ibv.qp_type == IBV_QPT_UD ? EINVAL : 0;
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return qp->ibv.qp_type == IBV_QPT_RC || rnic_is_rd(qp) ? 0 : EINVAL;
	default:
		return EOPNOTSUPP;
	}
}

static void copy_list(uint8_t *to, const struct ibv_sge *sge, int n)
{
	for (int i = 0; i < n; i++) {
		memcpy(to, (const void *)(uintptr_t)sge[i].addr, sge[i].length);
		to += sge[i].length;
	}
}

static int set_inline(struct rnic_qp *qp, struct rnic_swqe *w, const struct ibv_send_wr *wr)
{
	uint64_t len = rnic_sge_len(wr->sg_list, wr->num_sge);

	if (len > qp->sq.max_inline || rnic_is_read(w))
		return EINVAL;
	copy_list((uint8_t *)w->sge, wr->sg_list, wr->num_sge);
	w->inl = true;
	w->length = (uint32_t)len;
	return 0;
}

static int set_list(struct rnic_swqe *w, const struct ibv_send_wr *wr)
{
	uint64_t len = rnic_sge_len(wr->sg_list, wr->num_sge);

	if (len > RNIC_MAX_MSG)
		return EINVAL;
	w->num_sge = wr->num_sge;
	w->length = (uint32_t)len;
	if (wr->num_sge) /* the list may be NULL */
		memcpy(w->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(*w->sge));
	return 0;
}

void rnic_swqe_set_ah(struct rnic_swqe *w, const struct rnic_ah *ah, uint32_t qpn, uint32_t qkey)
{
	w->dst = ah->addr;
	w->sgid_index = ah->sgid_index;
	w->mgid_hash = ah->multicast ? ah->mgid_hash : 0;
	w->dst_qpn = ah->multicast ? RNIC_MCAST_QPN : qpn;
	w->qkey = qkey;
	w->label = ah->label;
}

void rnic_swqe_kept(struct rnic_swqe *w)
{
	w->keep = false;
	w->sge[0] = (struct ibv_sge){w->remote_addr, w->length, w->rkey};
	w->num_sge = 1;
}

void rnic_swqe_keep(struct rnic_swqe *w)
{
	if (!w->keep)
		return;
	copy_list((uint8_t *)(uintptr_t)w->remote_addr, w->sge, w->num_sge);
	rnic_swqe_kept(w);
}

static int set_ud(struct rnic_swqe *w, const struct ibv_send_wr *wr, bool rd)
{
	const struct rnic_ah *ah = (const struct rnic_ah *)wr->wr.ud.ah;

	if (!ah || wr->wr.ud.remote_qpn > 0xffffff)
		return EINVAL;
	if (rd && (ah->multicast || !wr->wr.ud.remote_qpn))
		return EINVAL;
	rnic_swqe_set_ah(w, ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	return 0;
}

static int set_target(const struct rnic_qp *qp, struct rnic_swqe *w, const struct ibv_send_wr *wr)
{
	if (qp->ibv.qp_type == IBV_QPT_UD)
		return set_ud(w, wr, false);
	/* struct ibv_send_wr has room for a peer or for a key, not for both. */
	if (rnic_is_rd(qp))
		return wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_SEND_WITH_IMM
			       ? set_ud(w, wr, true)
			       : EOPNOTSUPP;
	switch (wr->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		w->remote_addr = wr->wr.atomic.remote_addr;
		w->rkey = wr->wr.atomic.rkey;
		w->compare_add = wr->wr.atomic.compare_add;
		w->swap = wr->wr.atomic.swap;
		/* the answer is eight bytes, however long the list */
		if (w->length < sizeof(uint64_t))
			return EINVAL;
		w->length = sizeof(uint64_t);
		return 0;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		return 0;
	default:
		w->remote_addr = wr->wr.rdma.remote_addr;
		w->rkey = wr->wr.rdma.rkey;
		return 0;
	}
}

static int fill(struct rnic_qp *qp, struct rnic_swqe *w, const struct ibv_send_wr *wr)
{
	int err = rnic_sq_check(qp, wr->opcode);

	if (err)
		return err;
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	memset(w, 0, sizeof(*w));
	w->wr_id = wr->wr_id;
	w->opcode = (uint8_t)wr->opcode;
	w->flags = (uint8_t)wr->send_flags;
	w->imm = wr->imm_data;
	err = wr->send_flags & IBV_SEND_INLINE ? set_inline(qp, w, wr) : set_list(w, wr);
	return err ? err : set_target(qp, w, wr);
}

int rnic_may_post(const struct rnic_qp *qp)
{
	if (qp->e->dead)
		return EIO;
	switch (rnic_qp_state(qp)) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
	case IBV_QPS_ERR:
		return 0;
	default:
		return EINVAL;
	}
}

void rnic_sq_publish(struct rnic_qp *qp, uint32_t tail, uint32_t seq)
{
	struct rnic_conn *c = qp->conn;

	qp->sq.tail = tail;
	qp->sq.seq = seq;
	if (rnic_is_rd(qp)) {
		rnic_rd_post(qp);
		return;
	}
	if (qp->ibv.state == IBV_QPS_ERR || qp->ibv.state == IBV_QPS_SQE) {
		rnic_flush_sq(qp);
	} else if (qp->ibv.qp_type == IBV_QPT_UD) {
		rnic_ud_pump(qp);
	} else {
		rnic_req_watch(qp);
		/* A socket that is full says so when it is not. */
		if (c && c->pend_off == c->pend_len)
			rnic_stream_pump(c);
		else if (!c)
			rnic_req_reap(qp); /* lost: local errors are still reported */
	}
}

int rnic_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct rnic_qp *qp = rnic_qp(ibqp);
	struct rnic_sq *sq = &qp->sq;
	uint32_t tail, seq;
	int err;

	if (qp->e->dead) { /* before the lock: who held it in the parent is not here */
		*bad = wr;
		return EIO;
	}
	util_lock(&sq->lock);
	err = rnic_may_post(qp);
	if (err)
		*bad = wr;
	tail = sq->tail;
	seq = sq->seq;
	for (; wr && !err; wr = wr->next) {
		struct rnic_swqe *w = rnic_swqe(qp, tail);

		if (!rnic_sq_room(sq, tail))
			err = ENOMEM;
		else
			err = fill(qp, w, wr);
		if (err) {
			*bad = wr;
			break;
		}
		seq += wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 2 : 1;
		w->seq = seq;
		tail++;
	}
	if (tail != sq->tail) {
		rnic_enter(qp->e);
		rnic_sq_publish(qp, tail, seq);
		rnic_leave(qp->e);
	}
	util_unlock(&sq->lock);
	return err;
}

int rnic_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct rnic_qp *qp = rnic_qp(ibqp);
	bool wake = false;
	int err;

	if (qp->e->dead || qp->srq || rnic_qp_state(qp) == IBV_QPS_RESET) {
		*bad = wr;
		return qp->e->dead ? EIO : EINVAL;
	}
	err = rnic_rq_post(&qp->own_rq, wr, bad, &wake);
	if (wake || rnic_qp_state(qp) == IBV_QPS_ERR) {
		rnic_enter(qp->e);
		if (ibqp->state == IBV_QPS_ERR)
			rnic_qp_error(qp); /* flushes what was just posted */
		else
			rnic_rsp_wake(qp->e, &qp->own_rq);
		rnic_leave(qp->e);
	}
	return err;
}
