/* The responder: executes what the peer requests, and says so. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "util_log.h"
#include "rnic_conn.h"
#include "rnic_rd.h"

/* A request that keeps arriving damaged is not worth another try. */
#define DAMAGED_MAX 4

static int refuse(struct wire_term *why, uint8_t layer, uint8_t etype, uint8_t ecode)
{
	*why = (struct wire_term){.layer = layer, .etype = etype, .ecode = ecode};
	return -EPROTO;
}

/* RFC 5041 section 7.1: a write is checked by DDP. */
static int refuse_write(struct wire_term *why, enum rnic_mem_error err)
{
	switch (err) {
	case RNIC_MEM_KEY:
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_TAGGED, WIRE_DDP_T_INVALID_STAG);
	case RNIC_MEM_DOMAIN:
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_TAGGED, WIRE_DDP_T_STAG_STREAM);
	case RNIC_MEM_BOUNDS:
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_TAGGED, WIRE_DDP_T_BASE_BOUNDS);
	case RNIC_MEM_ACCESS:
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_PROTECTION,
			      WIRE_RDMAP_ACCESS);
	default:
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION,
			      WIRE_RDMAP_CATASTROPHIC_STREAM);
	}
}

/* RFC 5040 section 7: reads and atomics are checked by RDMAP. */
static int refuse_read(struct wire_term *why, enum rnic_mem_error err)
{
	static const uint8_t code[] = {[RNIC_MEM_KEY] = WIRE_RDMAP_INVALID_STAG,
				       [RNIC_MEM_DOMAIN] = WIRE_RDMAP_STAG_STREAM,
				       [RNIC_MEM_BOUNDS] = WIRE_RDMAP_BASE_BOUNDS,
				       [RNIC_MEM_ACCESS] = WIRE_RDMAP_ACCESS};

	if (err == RNIC_MEM_FAULT)
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION,
			      WIRE_RDMAP_CATASTROPHIC_STREAM);
	return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_PROTECTION, code[err]);
}

static void executed(struct rnic_qp *qp, struct rnic_conn *c, uint64_t bytes)
{
	if (qp->ibv.qp_type != IBV_QPT_RC)
		return;
	qp->rsp.done++;
	qp->rsp.damaged = 0;
	rnic_stream_owe_ack(c, bytes);
}

/* ---- writes ---- */

static enum rnic_mem_error place(struct rnic_qp *qp, const struct wire_seg *seg,
				 const uint8_t *data, size_t len)
{
	enum rnic_mem_error err;
	void *to;

	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		return RNIC_MEM_ACCESS;
	if (!len)
		return RNIC_MEM_OK; /* nothing is touched, no key is needed */
	err = rnic_mem_remote(qp->e, qp->ibv.pd, seg->stag, seg->to, len, IBV_ACCESS_REMOTE_WRITE,
			      &to);
	return err ? err : rnic_guard_copy(to, data, len);
}

static void begin_write(struct rnic_rsp *rsp)
{
	rsp->write_len = 0;
	rsp->write_bad = false;
}

static int do_write(struct rnic_qp *qp, struct rnic_conn *c, const struct wire_seg *seg,
		    const uint8_t *data, size_t len, struct wire_term *why)
{
	struct rnic_rsp *rsp = &qp->rsp;
	enum rnic_mem_error err;

	if (seg->to + len < seg->to)
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_TAGGED, WIRE_DDP_T_TO_WRAP);
	err = place(qp, seg, data, len);
	if (err && qp->ibv.qp_type == IBV_QPT_RC)
		return refuse_write(why, err);
	/* UC: a write whose sender failed half-way has no last segment. */
	if (rsp->write_len && (seg->stag != rsp->write_stag || seg->to != rsp->write_to))
		begin_write(rsp);
	rsp->write_bad |= err != RNIC_MEM_OK;
	rsp->write_stag = seg->stag;
	rsp->write_to = seg->to + len;
	rsp->write_len += len;
	if (seg->last) {
		rsp->last_write_len = rsp->write_len;
		rsp->last_write_bad = rsp->write_bad;
		begin_write(rsp);
		executed(qp, c, rsp->last_write_len);
	}
	return 0;
}

/* ---- sends ---- */

/* Gets a receive. False: there is none, and the peer of an RC queue pair is told to
 * wait until one is posted. */
static bool take_receive(struct rnic_qp *qp, struct rnic_conn *c)
{
	struct rnic_rsp *rsp = &qp->rsp;
	bool rc = qp->ibv.qp_type == IBV_QPT_RC;

	if (rsp->spare) {
		rsp->spare = false;
		rsp->receiving = true;
		rsp->off = 0;
		return true;
	}
	if (rnic_recv_take(qp, rsp->wqe, rc ? &rsp->wait_link : NULL)) {
		rsp->receiving = true;
		rsp->off = 0;
		return true;
	}
	if (rc) {
		rsp->waiting = true;
		c->owe_rnr = true;
		c->want_pump = true;
	}
	return false;
}

static void fail_receive(struct rnic_qp *qp, enum ibv_wc_status status)
{
	struct ibv_wc wc = {.wr_id = qp->rsp.wqe->wr_id, .status = status};

	qp->rsp.receiving = false;
	rnic_complete_recv(qp, &wc, true);
}

static void end_receive(struct rnic_qp *qp, struct rnic_conn *c, struct ibv_wc *wc, bool solicited)
{
	wc->wr_id = qp->rsp.wqe->wr_id;
	qp->rsp.receiving = false;
	qp->rsp.send_msn++;
	/* First, because a full completion queue takes the connection away. */
	executed(qp, c, qp->rsp.off);
	rnic_complete_recv(qp, wc, solicited);
}

static int fill_receive(struct rnic_qp *qp, const uint8_t *data, size_t len, struct wire_term *why)
{
	struct rnic_rsp *rsp = &qp->rsp;

	if (len > rsp->wqe->length - rsp->off) {
		fail_receive(qp, IBV_WC_LOC_LEN_ERR);
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED, WIRE_DDP_U_TOO_LONG);
	}
	if (rnic_mem_scatter(qp->e, rnic_recv_pd(qp), rsp->wqe->sge, rsp->wqe->num_sge, rsp->off,
			     data, (uint32_t)len)) {
		fail_receive(qp, IBV_WC_LOC_PROT_ERR);
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION,
			      WIRE_RDMAP_CATASTROPHIC_STREAM);
	}
	rsp->off += len;
	return 0;
}

/* UC: a message without a receive, or one that did not fit, is lost. */
static int drop_send(struct rnic_qp *qp, const struct wire_seg *seg)
{
	qp->rsp.dropping = !seg->last;
	if (seg->last)
		qp->rsp.send_msn++;
	return 0;
}

/* UC: the sender skips the numbers of messages that failed on its side, one of which may
 * have begun. Its receive serves the next. */
static void skip_failed(struct rnic_qp *qp, const struct wire_seg *seg)
{
	struct rnic_rsp *rsp = &qp->rsp;

	if (qp->ibv.qp_type != IBV_QPT_UC || (int32_t)(seg->msn - rsp->send_msn) <= 1)
		return;
	rsp->send_msn = seg->msn - 1;
	rsp->dropping = false;
	rsp->spare |= rsp->receiving;
	rsp->receiving = false;
}

static int do_send(struct rnic_qp *qp, struct rnic_conn *c, const struct wire_seg *seg,
		   const uint8_t *data, size_t len, struct wire_term *why)
{
	struct rnic_rsp *rsp = &qp->rsp;
	bool uc = qp->ibv.qp_type == IBV_QPT_UC;
	struct ibv_wc wc = {.opcode = IBV_WC_RECV};
	int err;

	skip_failed(qp, seg);
	if (seg->msn != rsp->send_msn + 1)
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED, WIRE_DDP_U_MSN_RANGE);
	if (rsp->dropping)
		return drop_send(qp, seg);
	if (seg->mo != (rsp->receiving ? rsp->off : 0))
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED, WIRE_DDP_U_INVALID_MO);
	if (!rsp->receiving && !take_receive(qp, c))
		return uc ? drop_send(qp, seg) : 0;
	err = fill_receive(qp, data, len, why);
	if (err)
		return uc ? drop_send(qp, seg) : err;
	if (!seg->last)
		return 0;
	wc.byte_len = (uint32_t)rsp->off;
	if (seg->opcode == WIRE_OP_SEND_IMM || seg->opcode == WIRE_OP_SEND_IMM_SE) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = htonl(seg->ulp);
	}
	end_receive(qp, c, &wc,
		    seg->opcode == WIRE_OP_SEND_SE || seg->opcode == WIRE_OP_SEND_IMM_SE);
	return 0;
}

static int do_imm(struct rnic_qp *qp, struct rnic_conn *c, const struct wire_seg *seg,
		  const uint8_t *data, size_t len, struct wire_term *why)
{
	struct ibv_wc wc = {.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
			    .wc_flags = IBV_WC_WITH_IMM,
			    .byte_len = (uint32_t)qp->rsp.last_write_len};
	uint32_t imm;

	skip_failed(qp, seg);
	if (qp->rsp.receiving || seg->msn != qp->rsp.send_msn + 1)
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED, WIRE_DDP_U_MSN_RANGE);
	if (!seg->last || wire_imm_decode(&imm, data, len))
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION,
			      WIRE_RDMAP_UNSPECIFIED);
	if (qp->rsp.last_write_bad)
		return drop_send(qp, seg); /* UC: what it would announce is not there */
	if (!take_receive(qp, c))
		return qp->ibv.qp_type == IBV_QPT_UC ? drop_send(qp, seg) : 0;
	wc.imm_data = htonl(imm);
	end_receive(qp, c, &wc, seg->opcode == WIRE_OP_IMM_SE);
	return 0;
}

/* ---- reads and atomics ---- */

static struct rnic_job *new_job(struct rnic_conn *c)
{
	if (c->job_tail - c->job_head >= c->job_max)
		return NULL;
	c->want_pump = true;
	return &c->jobs[c->job_tail++ % c->job_cap];
}

static int check_request(struct rnic_qp *qp, const struct wire_seg *seg, struct wire_term *why)
{
	if (qp->ibv.qp_type != IBV_QPT_RC)
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION, WIRE_RDMAP_OPCODE);
	if (!seg->last || seg->mo || seg->msn != qp->rsp.read_msn + 1)
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED, WIRE_DDP_U_MSN_RANGE);
	return 0;
}

static int do_read(struct rnic_qp *qp, struct rnic_conn *c, const struct wire_seg *seg,
		   const uint8_t *data, size_t len, struct wire_term *why)
{
	enum rnic_mem_error mem = RNIC_MEM_OK;
	struct wire_read_req r;
	struct rnic_job *job;
	void *from;
	int err = check_request(qp, seg, why);

	if (err)
		return err;
	if (wire_read_req_decode(&r, data, len) || r.len > RNIC_MAX_MSG)
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION,
			      WIRE_RDMAP_UNSPECIFIED);
	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ))
		mem = RNIC_MEM_ACCESS;
	else if (r.len)
		mem = rnic_mem_remote(qp->e, qp->ibv.pd, r.src_stag, r.src_to, r.len,
				      IBV_ACCESS_REMOTE_READ, &from);
	if (mem)
		return refuse_read(why, mem);
	job = new_job(c);
	if (!job) /* more than max_dest_rd_atomic at a time */
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED, WIRE_DDP_U_NO_BUFFER);
	*job = (struct rnic_job){.stag = r.sink_stag,
				 .to = r.sink_to,
				 .len = r.len,
				 .src_key = r.src_stag,
				 .src = r.src_to};
	qp->rsp.read_msn++;
	qp->rsp.done++; /* the response is the acknowledgement */
	return 0;
}

static enum rnic_mem_error run_atomic(struct rnic_qp *qp, const struct wire_atomic_req *a,
				      uint64_t *old)
{
	enum rnic_mem_error err;
	void *word;

	if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC))
		return RNIC_MEM_ACCESS;
	err = rnic_mem_remote(qp->e, qp->ibv.pd, a->stag, a->to, sizeof(uint64_t),
			      IBV_ACCESS_REMOTE_ATOMIC, &word);
	if (err)
		return err;
	if ((uintptr_t)word % sizeof(uint64_t))
		return RNIC_MEM_BOUNDS;
	if (a->op == WIRE_ATOMIC_CMP_SWAP)
		return rnic_guard_cmp_swap(word, a->compare, a->add_swap, old);
	return rnic_guard_fetch_add(word, a->add_swap, old);
}

static int do_atomic(struct rnic_qp *qp, struct rnic_conn *c, const struct wire_seg *seg,
		     const uint8_t *data, size_t len, struct wire_term *why)
{
	struct wire_atomic_req a;
	enum rnic_mem_error mem;
	struct rnic_job *job;
	uint64_t old = 0;
	int err = check_request(qp, seg, why);

	if (err)
		return err;
	/* Verbs know neither masks nor unaligned atomics. */
	if (wire_atomic_req_decode(&a, data, len) || a.to % sizeof(uint64_t) ||
	    (a.op == WIRE_ATOMIC_CMP_SWAP &&
	     (a.add_swap_mask != UINT64_MAX || a.compare_mask != UINT64_MAX)) ||
	    (a.op == WIRE_ATOMIC_FETCH_ADD && a.add_swap_mask))
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION,
			      WIRE_RDMAP_UNSPECIFIED);
	job = new_job(c);
	if (!job)
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED, WIRE_DDP_U_NO_BUFFER);
	mem = run_atomic(qp, &a, &old);
	if (mem) {
		c->job_tail--;
		return refuse_read(why, mem);
	}
	*job = (struct rnic_job){.atomic = true, .stag = a.id, .src = old};
	qp->rsp.read_msn++;
	qp->rsp.done++;
	return 0;
}

/* ---- dispatch ---- */

int rnic_rsp_segment(struct rnic_qp *qp, struct rnic_conn *c, const struct wire_seg *seg,
		     const uint8_t *data, size_t len, struct wire_term *why)
{
	if (qp->ibv.state == IBV_QPS_RTR && !qp->rsp.told) {
		qp->rsp.told = true;
		rnic_event_raise(qp->ctx, IBV_EVENT_COMM_EST, qp);
	}
	if (qp->rsp.waiting)
		return 0; /* the peer will send all of this again */
	switch (seg->opcode) {
	case WIRE_OP_WRITE:
		return do_write(qp, c, seg, data, len, why);
	case WIRE_OP_SEND:
	case WIRE_OP_SEND_SE:
	case WIRE_OP_SEND_IMM:
	case WIRE_OP_SEND_IMM_SE:
		return do_send(qp, c, seg, data, len, why);
	case WIRE_OP_IMM:
	case WIRE_OP_IMM_SE:
		return do_imm(qp, c, seg, data, len, why);
	case WIRE_OP_READ_REQ:
		return do_read(qp, c, seg, data, len, why);
	case WIRE_OP_ATOMIC_REQ:
		return do_atomic(qp, c, seg, data, len, why);
	default: /* Send with Invalidate: not offered */
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION, WIRE_RDMAP_OPCODE);
	}
}

/* ---- responses ---- */

static size_t atomic_response(struct rnic_conn *c, const struct rnic_job *job, uint8_t *buf)
{
	struct wire_atomic_resp a = {.id = job->stag, .value = job->src};
	struct wire_seg seg = {.opcode = WIRE_OP_ATOMIC_RESP,
			       .last = true,
			       .qn = WIRE_QN_ATOMIC_RESP,
			       .msn = ++c->atomic_msn};
	uint8_t data[WIRE_ATOMIC_RESP_LEN];
	struct rnic_frame f;

	wire_atomic_resp_encode(&a, data);
	rnic_frame_begin(&f, buf, &seg, sizeof(data), c->crc);
	rnic_frame_add(&f, data, sizeof(data), c->crc);
	c->job_head++;
	return rnic_frame_end(&f, c->crc);
}

static size_t read_response(struct rnic_conn *c, struct rnic_job *job, uint8_t *buf)
{
	uint32_t left = job->len - job->off;
	uint32_t len = left > c->e->fpdu_payload ? c->e->fpdu_payload : left;
	struct wire_seg seg = {.opcode = WIRE_OP_READ_RESP,
			       .tagged = true,
			       .last = len == left,
			       .stag = job->stag,
			       .to = job->to + job->off};
	enum rnic_mem_error err = RNIC_MEM_OK;
	struct rnic_frame f;
	void *from;

	rnic_frame_begin(&f, buf, &seg, len, c->crc);
	if (len)
		err = rnic_mem_remote(c->e, c->pd, job->src_key, job->src + job->off, len,
				      IBV_ACCESS_REMOTE_READ, &from);
	if (len && !err)
		err = c->crc ? rnic_guard_copy_crc(rnic_frame_payload(&f), from, len, &f.crc)
			     : rnic_guard_copy(rnic_frame_payload(&f), from, len);
	if (err) {
		/* Deregistered or unmapped since the request came. */
		refuse_read(&c->term, err);
		c->owe_term = c->failed = true;
		c->job_head = c->job_tail;
		return 0;
	}
	f.ulpdu_len += len;
	job->off += len;
	if (seg.last)
		c->job_head++;
	return rnic_frame_end(&f, c->crc);
}

size_t rnic_rsp_frame(struct rnic_conn *c, uint8_t *buf)
{
	struct rnic_job *job;

	if (c->job_head == c->job_tail)
		return 0;
	job = &c->jobs[c->job_head % c->job_cap];
	return job->atomic ? atomic_response(c, job, buf) : read_response(c, job, buf);
}

/* ---- waiting for receives ---- */

void rnic_rsp_wake(struct rnic_engine *e, struct rnic_rq *rq)
{
	struct rnic_rsp *rsp;

	(void)e;
	while ((rsp = list_first(&rq->waiters, struct rnic_rsp, wait_link))) {
		struct rnic_qp *qp = container_of(rsp, struct rnic_qp, rsp);
		struct rnic_conn *c = qp->rsp_conn;

		list_del(&rsp->wait_link);
		if (rnic_is_rd(qp))
			rnic_rd_wake(qp->rd);
		if (!c)
			continue;
		c->owe_ready = true;
		c->ready_seq = rsp->done + 1;
		rnic_stream_pump(c);
	}
}

void rnic_rsp_retry(struct rnic_qp *qp, uint32_t seq)
{
	if (qp->rsp.waiting && seq == qp->rsp.done + 1)
		qp->rsp.waiting = false;
}

bool rnic_rsp_damaged(struct rnic_qp *qp, struct rnic_conn *c)
{
	struct rnic_rsp *rsp = &qp->rsp;

	if (rsp->waiting)
		return true; /* it will be sent again anyway */
	if (++rsp->damaged > DAMAGED_MAX)
		return false;
	rsp->waiting = true;
	rsp->off = 0; /* a receive that was begun is filled from its beginning */
	rsp->write_len = 0;
	c->owe_damaged = true;
	c->want_pump = true;
	return true;
}

void rnic_rsp_reset(struct rnic_qp *qp)
{
	struct rnic_rwqe *wqe = qp->rsp.wqe;

	list_del(&qp->rsp.wait_link);
	memset(&qp->rsp, 0, sizeof(qp->rsp));
	list_init(&qp->rsp.wait_link);
	qp->rsp.wqe = wqe;
}
