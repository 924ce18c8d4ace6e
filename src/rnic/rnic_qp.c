#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_log.h"
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "rnic_table.h"

/* ---- completions ---- */

enum ibv_wc_opcode rnic_wc_opcode(uint8_t wr_opcode)
{
	static const enum ibv_wc_opcode opcode[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
		[IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
	};

	return opcode[wr_opcode];
}

bool rnic_sent(struct rnic_qp *qp, const struct ibv_wc *wc, bool report)
{
	struct rnic_sq *sq = &qp->sq;

	if (report && !rnic_cq_push_sent(qp->scq, wc, &sq->polled))
		return true;
	/* relaxed: written only with the engine's lock. release: see rnic_sq_room */
	atomic_store_explicit(&sq->quiet,
			      atomic_load_explicit(&sq->quiet, memory_order_relaxed) + 1,
			      memory_order_release);
	return !report;
}

void rnic_complete_send(struct rnic_qp *qp, enum ibv_wc_status status)
{
	uint32_t head = rnic_sq_head(qp);
	const struct rnic_swqe *w = rnic_swqe(qp, head);
	struct ibv_wc wc = {.wr_id = w->wr_id,
			    .status = status,
			    .opcode = rnic_wc_opcode(w->opcode),
			    .byte_len = rnic_is_read(w) ? w->length : 0,
			    .qp_num = qp->ibv.qp_num};
	bool report = status != IBV_WC_SUCCESS || qp->sq_sig_all || w->flags & IBV_SEND_SIGNALED;

	/* The slot first, the completion after: who sees the completion may post at once. */
	atomic_store_explicit(&qp->sq.head, head + 1, memory_order_relaxed);
	if (!rnic_sent(qp, &wc, report))
		rnic_qp_error(qp);
}

bool rnic_recv_hold(struct rnic_qp *qp, struct rnic_rwqe *wqe, struct list_head *waiter)
{
	bool low;

	if (!rnic_rq_hold(qp->rq, wqe, waiter, &low))
		return false;
	if (low)
		rnic_event_raise(qp->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, qp->srq);
	return true;
}

bool rnic_recv_take(struct rnic_qp *qp, struct rnic_rwqe *wqe, struct list_head *waiter)
{
	if (!rnic_recv_hold(qp, wqe, waiter))
		return false;
	rnic_rq_used(qp->rq);
	return true;
}

void rnic_complete_recv(struct rnic_qp *qp, struct ibv_wc *wc, bool solicited)
{
	wc->qp_num = qp->ibv.qp_num;
	if (rnic_cq_push(qp->rcq, wc, solicited))
		rnic_qp_error(qp);
}

/* ---- flushing ---- */

void rnic_flush_sq(struct rnic_qp *qp)
{
	/* A full completion queue brings us back here from within. */
	while (rnic_sq_head(qp) != qp->sq.tail) {
		uint32_t head = rnic_sq_head(qp);
		uint8_t status = rnic_swqe(qp, head)->status;

		qp->sq.tx = head + 1;
		rnic_complete_send(qp, status ? status : IBV_WC_WR_FLUSH_ERR);
	}
	qp->req.off = 0;
	qp->req.reads = 0;
	qp->req.rnr = false;
}

static void flush_rq(struct rnic_qp *qp)
{
	struct ibv_wc wc = {.status = IBV_WC_WR_FLUSH_ERR, .opcode = IBV_WC_RECV};
	bool low;

	if (qp->rsp.receiving || qp->rsp.spare) {
		qp->rsp.receiving = qp->rsp.spare = false;
		wc.wr_id = qp->rsp.wqe->wr_id;
		rnic_complete_recv(qp, &wc, true);
	}
	if (qp->srq) {
		if (!qp->last_wqe_told) {
			qp->last_wqe_told = true;
			rnic_event_raise(qp->ctx, IBV_EVENT_QP_LAST_WQE_REACHED, qp);
		}
		return;
	}
	rnic_rq_fence(&qp->own_rq); /* the state is set: who has not seen it is flushed here */
	while (rnic_rq_hold(&qp->own_rq, qp->rsp.wqe, NULL, &low)) {
		rnic_rq_used(&qp->own_rq);
		wc.wr_id = qp->rsp.wqe->wr_id;
		rnic_complete_recv(qp, &wc, true);
	}
}

static void let_go(struct rnic_qp *qp)
{
	struct rnic_conn *rsp = qp->rsp_conn;

	rnic_timer_cancel(qp->e, &qp->req.timer);
	rnic_timer_cancel(qp->e, &qp->connect_timer);
	list_del(&qp->rsp.wait_link);
	if (qp->conn != rsp)
		rnic_conn_release(qp->conn);
	rnic_conn_release(rsp);
}

static bool has_conn(const struct rnic_qp *qp)
{
	return qp->ibv.qp_type == IBV_QPT_RC || qp->ibv.qp_type == IBV_QPT_UC;
}

void rnic_qp_error(struct rnic_qp *qp)
{
	if (qp->ibv.state == IBV_QPS_RESET)
		return;
	if (qp->ibv.state != IBV_QPS_ERR) {
		rnic_qp_set_state(qp, IBV_QPS_ERR);
		if (has_conn(qp))
			let_go(qp);
	}
	if (rnic_is_rd(qp))
		rnic_rd_flush(qp);
	else
		rnic_flush_sq(qp);
	flush_rq(qp);
}

void rnic_qp_sq_error(struct rnic_qp *qp)
{
	if (qp->ibv.state == IBV_QPS_RTS || qp->ibv.state == IBV_QPS_SQD)
		rnic_qp_set_state(qp, IBV_QPS_SQE);
	rnic_flush_sq(qp);
}

void rnic_qp_reset(struct rnic_qp *qp)
{
	if (rnic_is_rd(qp))
		rnic_rd_reset(qp); /* first: who is told good-bye is told from a live queue pair */
	rnic_qp_set_state(qp, IBV_QPS_RESET);
	if (has_conn(qp))
		let_go(qp);
	rnic_req_reset(qp);
	rnic_rsp_reset(qp);
	atomic_store_explicit(&qp->sq.head, 0, memory_order_relaxed);
	qp->sq.tx = qp->sq.tail = qp->sq.seq = qp->sq.build = 0;
	if (!qp->srq)
		rnic_rq_reset(&qp->own_rq);
	rnic_cq_clean(qp->scq, qp->ibv.qp_num);
	if (qp->rcq != qp->scq)
		rnic_cq_clean(qp->rcq, qp->ibv.qp_num);
	atomic_store_explicit(&qp->sq.polled, 0, memory_order_relaxed);
	atomic_store_explicit(&qp->sq.quiet, 0, memory_order_relaxed);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->lost = qp->last_wqe_told = qp->drained_told = false;
}

/* ---- creation ---- */

static int sq_init(struct rnic_sq *sq, const struct ibv_qp_cap *cap)
{
	size_t room = cap->max_send_sge * sizeof(struct ibv_sge);

	sq->max_wr = cap->max_send_wr;
	sq->max_sge = cap->max_send_sge;
	sq->max_inline = cap->max_inline_data;
	if (room < cap->max_inline_data)
		room = cap->max_inline_data;
	sq->stride = (sizeof(struct rnic_swqe) + room + 63) & ~(size_t)63;
	for (sq->cap = 1; sq->cap < sq->max_wr;)
		sq->cap *= 2;
	sq->ring = aligned_alloc(64, sq->cap * sq->stride);
	if (!sq->ring)
		return -ENOMEM;
	return 0;
}

static int check_init(const struct ibv_qp_init_attr_ex *a, bool rd)
{
	if (a->qp_type != IBV_QPT_RC && a->qp_type != IBV_QPT_UC && a->qp_type != IBV_QPT_UD &&
	    !(rd && a->qp_type == IBV_QPT_DRIVER))
		return EOPNOTSUPP;
	if (a->comp_mask & ~(uint32_t)(IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
				       IBV_QP_INIT_ATTR_CREATE_FLAGS))
		return EOPNOTSUPP;
	if (!(a->comp_mask & IBV_QP_INIT_ATTR_PD) || !a->pd || !a->send_cq || !a->recv_cq)
		return EINVAL;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS &&
	    a->send_ops_flags & ~rnic_wr_ops_known(a->qp_type))
		return EOPNOTSUPP;
	if (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    (a->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB ||
	     a->qp_type != IBV_QPT_UD))
		return EOPNOTSUPP;
	if (a->cap.max_send_wr > RNIC_MAX_WR || a->cap.max_recv_wr > RNIC_MAX_WR ||
	    a->cap.max_send_sge > RNIC_MAX_SGE || a->cap.max_recv_sge > RNIC_MAX_SGE ||
	    a->cap.max_inline_data > RNIC_MAX_INLINE)
		return EINVAL;
	return 0;
}

static struct rnic_qp *qp_alloc(struct ibv_context *ctx, const struct ibv_qp_init_attr_ex *a)
{
	struct rnic_qp *qp = calloc(1, sizeof(*qp));
	uint32_t max_sge = a->srq ? rnic_srq(a->srq)->rq.max_sge : a->cap.max_recv_sge;

	if (!qp)
		return NULL;
	qp->ctx = rnic_ctx(ctx);
	qp->e = qp->ctx->e;
	qp->cap = a->cap;
	if (a->srq)
		qp->cap.max_recv_wr = qp->cap.max_recv_sge = 0;
	/* One element is not worth a refusal to a program that sends only inline. */
	if (!qp->cap.max_send_sge)
		qp->cap.max_send_sge = 1;
	qp->rsp.wqe = calloc(1, sizeof(struct rnic_rwqe) + max_sge * sizeof(struct ibv_sge));
	if (!qp->rsp.wqe || sq_init(&qp->sq, &qp->cap) ||
	    (!a->srq && rnic_rq_init(&qp->own_rq, a->cap.max_recv_wr, a->cap.max_recv_sge))) {
		free(qp->rsp.wqe);
		free(qp->sq.ring);
		free(qp);
		return NULL;
	}
	list_init(&qp->rsp.wait_link);
	list_init(&qp->groups);
	rnic_timer_init(&qp->connect_timer, NULL);
	rnic_req_init(qp);
	qp->ud_io.fd = -1;
	return qp;
}

static void qp_public(struct rnic_qp *qp, struct ibv_context *ctx,
		      const struct ibv_qp_init_attr_ex *a)
{
	qp->ibv.context = ctx;
	qp->ibv.qp_context = a->qp_context;
	qp->ibv.pd = a->pd;
	qp->ibv.send_cq = a->send_cq;
	qp->ibv.recv_cq = a->recv_cq;
	qp->ibv.srq = a->srq;
	qp->ibv.qp_type = a->qp_type;
	qp->ibv.state = IBV_QPS_RESET;
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	qp->sq_sig_all = a->sq_sig_all;
	qp->scq = rnic_cq(a->send_cq);
	qp->rcq = rnic_cq(a->recv_cq);
	qp->srq = a->srq ? rnic_srq(a->srq) : NULL;
	qp->rq = qp->srq ? &qp->srq->rq : &qp->own_rq;
	if (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		qp->create_flags = a->create_flags;
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		rnic_wr_ops(qp);
}

static void qp_free(struct rnic_qp *qp)
{
	rnic_rq_destroy(&qp->own_rq);
	pthread_mutex_destroy(&qp->ibv.mutex);
	pthread_cond_destroy(&qp->ibv.cond);
	free(qp->sq.ring);
	free(qp->sq.slots);
	rnic_rd_free(qp->rd);
	free(qp->rsp.wqe);
	free(qp);
}

static void hold(struct rnic_qp *qp, int n)
{
	atomic_fetch_add(&rnic_pd(qp->ibv.pd)->refs, n);
	atomic_fetch_add(&qp->scq->refs, n);
	atomic_fetch_add(&qp->rcq->refs, n);
	if (qp->srq)
		atomic_fetch_add(&qp->srq->refs, n);
}

static int open_transport(struct rnic_qp *qp)
{
	switch (qp->ibv.qp_type) {
	case IBV_QPT_UD:
		return rnic_ud_open(qp);
	case IBV_QPT_DRIVER:
		return rnic_rd_open(qp);
	default:
		return rnic_listen_get(qp);
	}
}

static struct ibv_qp *create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, bool rd)
{
	struct rnic_qp *qp;
	int err = check_init(attr, rd);

	if (!err && rnic_ctx(ctx)->e->dead)
		err = EIO;
	if (!err)
		err = -rnic_engine_start(rnic_ctx(ctx)->e);
	if (err) {
		errno = err;
		return NULL;
	}
	qp = qp_alloc(ctx, attr);
	if (!qp) {
		errno = ENOMEM;
		return NULL;
	}
	qp_public(qp, ctx, attr);
	rnic_lock(qp->e);
	err = open_transport(qp);
	rnic_unlock(qp->e);
	if (err) {
		qp_free(qp);
		errno = -err;
		return NULL;
	}
	qp->ibv.handle = qp->ibv.qp_num;
	hold(qp, 1);
	attr->cap = qp->cap;
	return &qp->ibv;
}

struct ibv_qp *rnic_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	return create(ctx, attr, false);
}

struct ibv_qp *rnic_create_rd_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type != IBV_QPT_DRIVER) {
		errno = EINVAL;
		return NULL;
	}
	return create(ctx, attr, true);
}

struct ibv_qp *rnic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {.qp_context = attr->qp_context,
					 .send_cq = attr->send_cq,
					 .recv_cq = attr->recv_cq,
					 .srq = attr->srq,
					 .cap = attr->cap,
					 .qp_type = attr->qp_type,
					 .sq_sig_all = attr->sq_sig_all,
					 .comp_mask = IBV_QP_INIT_ATTR_PD,
					 .pd = pd};
	struct ibv_qp *qp = rnic_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

struct ibv_qp_ex *rnic_qp_to_qp_ex(struct ibv_qp *qp)
{
	return rnic_qp(qp)->has_ex ? &rnic_qp(qp)->ex : NULL;
}

int rnic_destroy_qp(struct ibv_qp *ibqp)
{
	struct rnic_qp *qp = rnic_qp(ibqp);

	if (!qp->e->dead) {
		rnic_enter(qp->e);
		if (!list_empty(&qp->groups)) {
			rnic_leave(qp->e);
			return EBUSY; /* still attached to multicast groups */
		}
		rnic_qp_reset(qp);
		if (ibqp->qp_type == IBV_QPT_UD)
			rnic_ud_close(qp);
		else if (rnic_is_rd(qp))
			rnic_rd_close(qp);
		else
			rnic_listen_put(qp);
		rnic_leave(qp->e);
	}
	rnic_event_forget(qp->ctx, qp, &ibqp->events_completed, &qp->async_taken, &ibqp->mutex,
			  &ibqp->cond);
	hold(qp, -1);
	qp_free(qp);
	return 0;
}
