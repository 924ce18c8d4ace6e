/* The requester: send work requests become messages, and answers become completions. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include "util_clock.h"
#include "util_log.h"
#include "wire_crc32c.h"
#include "rnic_conn.h"

/* Shorter than this, TCP itself has not had the time to find out whether the peer is
 * alive: its first retransmission comes after 200 ms. */
#define RETRY_MIN_NS (500 * UTIL_NS_PER_MS)
/* InfiniBand's "timeout 0" means for ever, which no user of a dead peer wants. */
#define RETRY_FOREVER_NS (4 * UTIL_NS_PER_S)

/* How often a requester that waits for a receive looks whether the peer is alive. */
#define RNR_PROBE_NS (2 * UTIL_NS_PER_S)

/* InfiniBand's encoding of the RNR timer, in units of 10 us (IBTA vol. 1, table 45). */
static const uint32_t rnr_10us[32] = {65536, 1,    2,    3,     4,     6,     8,     12,
				      16,    24,   32,   48,    64,    96,    128,   192,
				      256,   384,  512,  768,   1024,  1536,  2048,  3072,
				      4096,  6144, 8192, 12288, 16384, 24576, 32768, 49152};

uint64_t rnic_rnr_ns(uint8_t code)
{
	return rnr_10us[code & 31] * (10 * UTIL_NS_PER_US);
}

/* ---- sending ---- */

/* Large payload is checksummed and sent where it lies. Should the application write into
 * it between the two, the peer finds the CRC wrong and asks for it again. */
static bool direct_payload(struct rnic_qp *qp, const struct rnic_swqe *w, uint64_t off,
			   uint32_t len, struct rnic_frame *f, struct rnic_direct *direct)
{
	const void *data;

	if (len < RNIC_DIRECT_MIN || w->inl || qp->conn->tx_marked || qp->req.staged ||
	    qp->ibv.qp_type != IBV_QPT_RC || !qp->conn->crc)
		return false;
	data = rnic_mem_piece(qp->e, qp->ibv.pd, w->sge, w->num_sge, off, len);
	if (!data || rnic_guard_crc(data, len, &f->crc))
		return false;
	direct->data = data;
	direct->len = len;
	direct->at = WIRE_MPA_LEN_HDR + f->ulpdu_len;
	f->direct = len;
	return true;
}

static enum rnic_mem_error payload(struct rnic_qp *qp, const struct rnic_swqe *w, uint64_t off,
				   uint32_t len, struct rnic_frame *f)
{
	uint8_t *to = rnic_frame_payload(f);
	bool crc = qp->conn->crc;
	enum rnic_mem_error err = RNIC_MEM_OK;

	if (w->inl) {
		rnic_frame_add(f, (const uint8_t *)w->sge + off, len, crc);
		return RNIC_MEM_OK;
	}
	err = rnic_mem_gather(qp->e, qp->ibv.pd, w->sge, w->num_sge, off, to, len,
			      crc ? &f->crc : NULL);
	f->ulpdu_len += len;
	return err;
}

static void sent(struct rnic_qp *qp, struct rnic_swqe *w)
{
	struct rnic_req *req = &qp->req;

	if (rnic_is_read(w) && !req->reads++)
		req->read_head = qp->sq.tx;
	req->sent_seq = w->seq;
	req->off = 0;
	req->write_done = false;
	qp->sq.tx++;
}

static uint32_t message_number(struct rnic_swqe *w, uint32_t *last)
{
	if (!w->has_msn) {
		w->has_msn = true;
		w->msn = ++*last;
	}
	return w->msn;
}

static struct wire_seg send_header(struct rnic_qp *qp, struct rnic_swqe *w)
{
	bool se = w->flags & IBV_SEND_SOLICITED;
	struct wire_seg seg = {.qn = WIRE_QN_SEND,
			       .msn = message_number(w, &qp->req.send_msn),
			       .mo = (uint32_t)qp->req.off};

	if (w->opcode == IBV_WR_SEND_WITH_IMM) {
		seg.opcode = se ? WIRE_OP_SEND_IMM_SE : WIRE_OP_SEND_IMM;
		seg.ulp = ntohl(w->imm);
	} else {
		seg.opcode = se ? WIRE_OP_SEND_SE : WIRE_OP_SEND;
	}
	return seg;
}

static size_t data_frame(struct rnic_qp *qp, struct rnic_swqe *w, uint8_t *buf,
			 struct rnic_direct *direct)
{
	bool send = w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM;
	struct rnic_req *req = &qp->req;
	uint64_t left = w->length - req->off;
	uint32_t len = left > qp->e->fpdu_payload ? qp->e->fpdu_payload : (uint32_t)left;
	struct rnic_frame f;
	struct wire_seg seg;

	if (send)
		seg = send_header(qp, w);
	else
		seg = (struct wire_seg){.opcode = WIRE_OP_WRITE,
					.tagged = true,
					.stag = w->rkey,
					.to = w->remote_addr + req->off};
	seg.last = len == left;
	rnic_frame_begin(&f, buf, &seg, len, qp->conn->crc);
	if (!direct_payload(qp, w, req->off, len, &f, direct) &&
	    payload(qp, w, req->off, len, &f)) {
		w->status = IBV_WC_LOC_PROT_ERR;
		return 0;
	}
	req->off += len;
	if (seg.last && w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		req->write_done = true;
		req->sent_seq = w->seq - 1;
	} else if (seg.last) {
		sent(qp, w);
	}
	return rnic_frame_end(&f, qp->conn->crc);
}

static size_t small_frame(struct rnic_qp *qp, uint8_t *buf, const struct wire_seg *seg,
			  const void *data, size_t len)
{
	struct rnic_frame f;

	rnic_frame_begin(&f, buf, seg, len, qp->conn->crc);
	rnic_frame_add(&f, data, len, qp->conn->crc);
	return rnic_frame_end(&f, qp->conn->crc);
}

static size_t imm_frame(struct rnic_qp *qp, struct rnic_swqe *w, uint8_t *buf)
{
	struct wire_seg seg = {.opcode =
				       w->flags & IBV_SEND_SOLICITED ? WIRE_OP_IMM_SE : WIRE_OP_IMM,
			       .last = true,
			       .qn = WIRE_QN_SEND,
			       .msn = message_number(w, &qp->req.send_msn)};
	uint8_t data[WIRE_IMM_LEN];

	wire_imm_encode(ntohl(w->imm), data);
	sent(qp, w);
	return small_frame(qp, buf, &seg, data, sizeof(data));
}

static size_t read_frame(struct rnic_qp *qp, struct rnic_swqe *w, uint8_t *buf)
{
	struct wire_seg seg = {.last = true, .qn = WIRE_QN_READ_REQ};
	uint8_t data[WIRE_ATOMIC_REQ_LEN];
	size_t len;

	seg.msn = message_number(w, &qp->req.read_msn);
	if (w->opcode == IBV_WR_RDMA_READ) {
		/* The sink is named by the message number: a response is matched against
		 * the oldest read and scattered to its list, it needs no region. */
		struct wire_read_req r = {.sink_stag = w->msn,
					  .len = w->length,
					  .src_stag = w->rkey,
					  .src_to = w->remote_addr};

		seg.opcode = WIRE_OP_READ_REQ;
		len = wire_read_req_encode(&r, data);
	} else {
		bool swap = w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
		struct wire_atomic_req a = {.op = swap ? WIRE_ATOMIC_CMP_SWAP
						       : WIRE_ATOMIC_FETCH_ADD,
					    .id = w->msn,
					    .stag = w->rkey,
					    .to = w->remote_addr,
					    .add_swap = swap ? w->swap : w->compare_add,
					    .add_swap_mask = swap ? UINT64_MAX : 0,
					    .compare = swap ? w->compare_add : 0,
					    .compare_mask = swap ? UINT64_MAX : 0};

		seg.opcode = WIRE_OP_ATOMIC_REQ;
		len = wire_atomic_req_encode(&a, data);
	}
	sent(qp, w);
	return small_frame(qp, buf, &seg, data, len);
}

/* Whether the next request may begin. */
static bool may_start(struct rnic_qp *qp, struct rnic_swqe *w)
{
	struct rnic_req *req = &qp->req;

	/* What has begun once, and waits for a receive, belongs to what is drained. */
	if (qp->ibv.state == IBV_QPS_SQD && (int32_t)(qp->sq.tx - req->begun) >= 0)
		return false;
	if (w->flags & IBV_SEND_FENCE && req->reads)
		return false;
	if (!rnic_is_read(w))
		return true;
	if (!qp->attr.max_rd_atomic) {
		w->status = IBV_WC_LOC_QP_OP_ERR;
		return false;
	}
	return req->reads < qp->attr.max_rd_atomic;
}

size_t rnic_req_frame(struct rnic_qp *qp, uint8_t *buf, struct rnic_direct *direct)
{
	struct rnic_req *req = &qp->req;
	struct rnic_swqe *w;

	if (qp->sq.tx == qp->sq.tail || req->rnr ||
	    (qp->ibv.state != IBV_QPS_RTS && qp->ibv.state != IBV_QPS_SQD))
		return 0;
	w = rnic_swqe(qp, qp->sq.tx);
	if (w->status)
		return 0; /* failed here; reported when its turn comes */
	if (!req->off && !req->write_done && !may_start(qp, w))
		return 0;
	if ((int32_t)(qp->sq.tx - req->begun) >= 0)
		req->begun = qp->sq.tx + 1;
	if (rnic_is_read(w))
		return read_frame(qp, w, buf);
	if (req->write_done)
		return imm_frame(qp, w, buf);
	return data_frame(qp, w, buf, direct);
}

/* ---- completing ---- */

static bool complete(const struct rnic_qp *qp, const struct rnic_swqe *w)
{
	if (qp->ibv.qp_type != IBV_QPT_RC)
		return true;
	if (rnic_is_read(w))
		return w->answered;
	return (int32_t)(qp->req.acked - w->seq) >= 0;
}

bool rnic_req_drained(const struct rnic_qp *qp)
{
	return (int32_t)(rnic_sq_head(qp) - qp->req.begun) >= 0;
}

static void drained(struct rnic_qp *qp)
{
	if (qp->ibv.state == IBV_QPS_SQD && qp->attr.en_sqd_async_notify && !qp->drained_told &&
	    rnic_req_drained(qp)) {
		qp->drained_told = true;
		rnic_event_raise(qp->ctx, IBV_EVENT_SQ_DRAINED, qp);
	}
}

void rnic_req_reap(struct rnic_qp *qp)
{
	for (;;) {
		uint32_t head = rnic_sq_head(qp);
		struct rnic_swqe *w = rnic_swqe(qp, head);

		if (head == qp->sq.tail)
			break;
		if (w->status) {
			rnic_req_fail(qp, w->status);
			return;
		}
		if (head == qp->sq.tx || !complete(qp, w))
			break;
		rnic_complete_send(qp, IBV_WC_SUCCESS);
	}
	drained(qp);
}

void rnic_req_fail(struct rnic_qp *qp, enum ibv_wc_status status)
{
	uint32_t head = rnic_sq_head(qp);

	if (head != qp->sq.tail) {
		/* Flushing reports the reason for the first one. */
		rnic_swqe(qp, head)->status = (uint8_t)status;
	}
	if (qp->ibv.qp_type == IBV_QPT_RC)
		rnic_qp_error(qp);
	else
		rnic_qp_sq_error(qp);
}

void rnic_req_ack(struct rnic_qp *qp, uint32_t seq)
{
	struct rnic_req *req = &qp->req;

	/* Neither old news nor what was never sent. */
	if ((int32_t)(seq - req->acked) <= 0 || (int32_t)(req->sent_seq - seq) < 0)
		return;
	req->acked = seq;
	rnic_req_reap(qp);
}

/* ---- answers to reads and atomics ---- */

static int bad_answer(struct rnic_qp *qp, struct wire_term *why)
{
	*why = (struct wire_term){.layer = WIRE_LAYER_RDMAP,
				  .etype = WIRE_ETYPE_RDMAP_OPERATION,
				  .ecode = WIRE_RDMAP_UNSPECIFIED};
	if (qp->req.reads)
		rnic_swqe(qp, qp->req.read_head)->status = IBV_WC_BAD_RESP_ERR;
	return -EPROTO;
}

static void answered(struct rnic_qp *qp, struct rnic_swqe *w)
{
	struct rnic_req *req = &qp->req;

	w->answered = true;
	req->read_off = 0;
	if (--req->reads)
		do
			req->read_head++;
		while (!rnic_is_read(rnic_swqe(qp, req->read_head)));
	if (qp->conn)
		qp->conn->want_pump = true; /* a read or a fence may have waited */
	rnic_req_reap(qp);
}

int rnic_req_read_resp(struct rnic_qp *qp, const struct wire_seg *seg, const uint8_t *data,
		       size_t len, struct wire_term *why)
{
	struct rnic_req *req = &qp->req;
	struct rnic_swqe *w = req->reads ? rnic_swqe(qp, req->read_head) : NULL;

	if (!w || w->opcode != IBV_WR_RDMA_READ || seg->stag != w->msn ||
	    seg->to != req->read_off || len > w->length - req->read_off ||
	    seg->last != (req->read_off + len == w->length))
		return bad_answer(qp, why);
	if (!w->status && rnic_mem_scatter(qp->e, qp->ibv.pd, w->sge, w->num_sge, req->read_off,
					   data, (uint32_t)len))
		w->status = IBV_WC_LOC_PROT_ERR;
	req->read_off += len;
	if (seg->last)
		answered(qp, w);
	return 0;
}

int rnic_req_atomic_resp(struct rnic_qp *qp, const struct wire_seg *seg, const uint8_t *data,
			 size_t len, struct wire_term *why)
{
	struct rnic_req *req = &qp->req;
	struct rnic_swqe *w = req->reads ? rnic_swqe(qp, req->read_head) : NULL;
	struct wire_atomic_resp a;

	if (!w || w->opcode == IBV_WR_RDMA_READ || !seg->last ||
	    wire_atomic_resp_decode(&a, data, len) || a.id != w->msn)
		return bad_answer(qp, why);
	if (rnic_mem_scatter(qp->e, qp->ibv.pd, w->sge, w->num_sge, 0, &a.value, sizeof(a.value)))
		w->status = IBV_WC_LOC_PROT_ERR;
	answered(qp, w);
	return 0;
}

/* ---- no receive posted at the peer ---- */

/* Goes back to the request that found none. What follows it was thrown away by the
 * peer and is sent again as well, reads and atomics included: none of it ran. */
static bool rewind_to(struct rnic_qp *qp, uint32_t seq)
{
	struct rnic_req *req = &qp->req;
	uint32_t i, end = qp->sq.tx == qp->sq.tail ? qp->sq.tx : qp->sq.tx + 1;
	struct rnic_swqe *w = NULL;
	bool imm = false;

	for (i = rnic_sq_head(qp); i != end; i++) {
		w = rnic_swqe(qp, i);
		imm = w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
		if (w->seq == seq || (imm && w->seq - 1 == seq))
			break;
	}
	if (i == end || rnic_is_read(w))
		return false;
	for (uint32_t k = i; k != qp->sq.tx; k++)
		if (rnic_is_read(rnic_swqe(qp, k)))
			req->reads--;
	qp->sq.tx = i;
	req->off = 0;
	req->write_done = imm && w->seq == seq;
	req->sent_seq = seq - 1;
	return true;
}

static void arm_rnr(struct rnic_qp *qp, uint64_t now)
{
	uint64_t probe = now + RNR_PROBE_NS, end = qp->req.rnr_deadline;

	rnic_timer_arm(qp->e, &qp->req.timer, end < probe ? end : probe);
}

void rnic_req_rnr(struct rnic_qp *qp, uint32_t seq, uint8_t timer)
{
	struct rnic_req *req = &qp->req;
	bool again = req->rnr_seq == seq && req->rnr_deadline;
	uint64_t now = util_now_ns();

	rnic_req_ack(qp, seq - 1);
	if (req->rnr || qp->ibv.state == IBV_QPS_ERR || !rewind_to(qp, seq))
		return;
	qp->e->stats.rnr_got++;
	req->rnr = true;
	req->rnr_seq = seq;
	if (again) {
		/* still the same wait: the clock runs on */
	} else if (qp->attr.rnr_retry >= 7) {
		req->rnr_deadline = UINT64_MAX;
	} else {
		uint64_t wait = rnic_rnr_ns(timer);

		req->rnr_deadline = now + qp->attr.rnr_retry * wait;
	}
	req->stalled_since = now;
	if (req->rnr_deadline <= now) {
		rnic_swqe(qp, qp->sq.tx)->status = IBV_WC_RNR_RETRY_EXC_ERR;
		rnic_req_reap(qp);
	} else {
		arm_rnr(qp, now);
	}
}

void rnic_req_ready(struct rnic_qp *qp, uint32_t seq)
{
	struct rnic_req *req = &qp->req;

	if (!req->rnr || seq != req->rnr_seq || !qp->conn)
		return;
	req->rnr = false;
	qp->conn->owe_retry = true;
	qp->conn->retry_seq = seq;
	qp->conn->want_pump = true;
	rnic_timer_cancel(qp->e, &req->timer); /* of the wait; from here on it is urgent again */
	rnic_req_watch(qp);
}

/* A request arrived damaged. Its buffer may be changing under our hands: from now on
 * payload is copied first and checksummed after. */
void rnic_req_damaged(struct rnic_qp *qp, uint32_t seq)
{
	struct rnic_req *req = &qp->req;

	rnic_req_ack(qp, seq - 1);
	if (req->rnr || qp->ibv.state == IBV_QPS_ERR || !qp->conn)
		return;
	/* Damage that only looked like a request: the peer waits for the next one. */
	if (!rewind_to(qp, seq) && seq != req->sent_seq + 1)
		return;
	req->staged = true;
	qp->conn->owe_retry = true;
	qp->conn->retry_seq = seq;
	qp->conn->want_pump = true;
}

/* ---- how urgent acknowledgements are ---- */

/* An acknowledgement is a packet that our core has to take in. With many requests under
 * way one now and then is enough: at 64 KB messages this is worth a tenth of the
 * bandwidth. When nothing is left to send and nothing more is posted, somebody waits
 * for the last ones, and the peer is told to be quick again. */
#define LAZY_FROM 4

static void run_due(struct rnic_due *d)
{
	struct rnic_qp *qp = container_of(d, struct rnic_qp, req.due);
	struct rnic_conn *c = qp->conn;

	if (!c || !c->lazy_wanted || qp->sq.tx != qp->sq.tail)
		return;
	c->lazy_wanted = false;
	c->owe_pace = true;
	qp->req.paced = qp->req.sent_seq; /* quick from here on, until more is sent */
	rnic_stream_pump(c);
}

void rnic_req_pace(struct rnic_qp *qp)
{
	struct rnic_conn *c = qp->conn;
	struct rnic_req *req = &qp->req;

	if (qp->ibv.qp_type != IBV_QPT_RC)
		return;
	if (!c->lazy_wanted && req->sent_seq != req->paced &&
	    (int32_t)(req->sent_seq - req->acked) >= LAZY_FROM) {
		c->lazy_wanted = true;
		c->owe_pace = true; /* goes out with the next request */
	}
	if (c->lazy_wanted && qp->sq.tx == qp->sq.tail)
		rnic_due_add(qp->e, &req->due, util_now_ns());
}

/* ---- the peer refused ---- */

static enum ibv_wc_status status_of(const struct wire_term *t)
{
	switch (t->layer) {
	case WIRE_LAYER_RDMAP:
		if (t->etype == WIRE_ETYPE_RDMAP_PROTECTION)
			return IBV_WC_REM_ACCESS_ERR;
		if (t->etype == WIRE_ETYPE_RDMAP_CATASTROPHIC ||
		    t->ecode == WIRE_RDMAP_CATASTROPHIC_STREAM ||
		    t->ecode == WIRE_RDMAP_CATASTROPHIC_GLOBAL)
			return IBV_WC_REM_OP_ERR;
		return IBV_WC_REM_INV_REQ_ERR;
	case WIRE_LAYER_DDP:
		if (t->etype == WIRE_ETYPE_DDP_TAGGED)
			return IBV_WC_REM_ACCESS_ERR;
		if (t->etype == WIRE_ETYPE_DDP_UNTAGGED)
			return IBV_WC_REM_INV_REQ_ERR;
		return IBV_WC_REM_OP_ERR;
	default:
		return IBV_WC_REM_ABORT_ERR;
	}
}

void rnic_req_terminated(struct rnic_qp *qp, const struct wire_term *t)
{
	util_log(UTIL_LOG_INFO, "QP 0x%06x: peer 0x%06x refused: %s", qp->ibv.qp_num,
		 qp->attr.dest_qp_num, wire_term_str(t));
	if (rnic_sq_head(qp) == qp->sq.tail) {
		rnic_event_raise(qp->ctx, IBV_EVENT_QP_FATAL, qp);
		rnic_qp_error(qp);
	} else {
		rnic_req_fail(qp, status_of(t));
	}
}

/* ---- time ---- */

static uint64_t retry_time(const struct rnic_qp *qp)
{
	uint64_t ns;

	if (!qp->attr.timeout)
		return RETRY_FOREVER_NS;
	ns = (UINT64_C(4096) << qp->attr.timeout) * (qp->attr.retry_cnt + 1u);
	return ns > RETRY_MIN_NS ? ns : RETRY_MIN_NS;
}

/* Whether the peer's machine has stopped answering. A peer that is merely slow, or
 * stopped in a debugger, still acknowledges at TCP's level, as the adapter of a slow
 * program does on InfiniBand. */
static bool peer_silent(const struct rnic_conn *c)
{
	struct tcp_info ti;
	socklen_t len = sizeof(ti);

	if (getsockopt(c->io.fd, IPPROTO_TCP, TCP_INFO, &ti, &len))
		return false; /* a local socket pair */
	/* One retransmission is one lost packet; more prove nothing either if the last one
	 * was answered, because a full receiver drops what it answers. Linux answers window
	 * probes at most twice a second. */
	return (ti.tcpi_retransmits > 1 && ti.tcpi_last_ack_recv > ti.tcpi_last_data_sent) ||
	       ti.tcpi_probes > 2;
}

/* UC: what cannot be sent is lost, and complete. */
static void drop_unsent(struct rnic_qp *qp)
{
	qp->sq.tx = qp->sq.tail;
	qp->req.off = 0;
	qp->req.write_done = false;
	rnic_req_reap(qp);
}

static void retry_check(struct rnic_qp *qp, uint64_t now)
{
	struct rnic_req *req = &qp->req;
	struct rnic_conn *c = qp->conn;

	if (req->progress != req->progress_seen) {
		req->progress_seen = req->progress;
		req->stalled_since = now;
	}
	if (now - req->stalled_since < retry_time(qp))
		return;
	if (!c || c->state != RNIC_CONN_UP || peer_silent(c)) {
		if (qp->ibv.qp_type == IBV_QPT_UC) {
			if (c && c->state == RNIC_CONN_UP)
				rnic_conn_lost(c); /* the message under way is cut off */
			drop_unsent(qp);
			return;
		}
		util_log(UTIL_LOG_INFO, "QP 0x%06x: no answer from peer 0x%06x", qp->ibv.qp_num,
			 qp->attr.dest_qp_num);
		rnic_req_fail(qp, IBV_WC_RETRY_EXC_ERR);
	} else {
		req->stalled_since = now;
		c->owe_probe = true;
		rnic_stream_pump(c);
	}
}

/* The wait for a receive may be without end, but not if there is nobody any more. */
static void rnr_check(struct rnic_qp *qp, uint64_t now)
{
	struct rnic_req *req = &qp->req;
	struct rnic_conn *c = qp->conn;

	if (now >= req->rnr_deadline) {
		rnic_swqe(qp, qp->sq.tx)->status = IBV_WC_RNR_RETRY_EXC_ERR;
		rnic_req_reap(qp);
		return;
	}
	if (!c || c->state != RNIC_CONN_UP)
		return;
	if (!peer_silent(c)) {
		req->stalled_since = now;
		c->owe_probe = true;
		rnic_stream_pump(c);
	} else if (now - req->stalled_since >= retry_time(qp)) {
		rnic_req_fail(qp, IBV_WC_RETRY_EXC_ERR);
	}
	if (req->rnr)
		arm_rnr(qp, now);
}

static void on_timer(struct rnic_timer *t, uint64_t now)
{
	struct rnic_qp *qp = container_of(t, struct rnic_qp, req.timer);
	struct rnic_req *req = &qp->req;

	if (rnic_sq_head(qp) == qp->sq.tail || qp->ibv.state == IBV_QPS_ERR)
		return;
	if (req->rnr) {
		rnr_check(qp, now);
		return;
	}
	/* When we ourselves did not run, the peer's silence proves nothing. */
	req->stalled_since += now - t->at;
	retry_check(qp, now);
	if (rnic_sq_head(qp) != qp->sq.tail && qp->ibv.state != IBV_QPS_ERR)
		rnic_timer_arm(qp->e, t, now + retry_time(qp) / 4);
}

void rnic_req_watch(struct rnic_qp *qp)
{
	struct rnic_req *req = &qp->req;

	if (qp->lost && qp->ibv.qp_type == IBV_QPT_UC)
		drop_unsent(qp); /* nobody will ever be there */
	if (req->timer.slot >= 0 || req->rnr || rnic_sq_head(qp) == qp->sq.tail)
		return;
	req->progress_seen = req->progress;
	req->stalled_since = util_now_ns();
	rnic_timer_arm(qp->e, &req->timer, req->stalled_since + retry_time(qp) / 4);
}

void rnic_req_init(struct rnic_qp *qp)
{
	rnic_timer_init(&qp->req.timer, on_timer);
	list_init(&qp->req.due.link);
	qp->req.due.run = run_due;
}

void rnic_req_reset(struct rnic_qp *qp)
{
	rnic_timer_cancel(qp->e, &qp->req.timer);
	list_del(&qp->req.due.link);
	memset(&qp->req, 0, sizeof(qp->req));
	rnic_req_init(qp);
}
