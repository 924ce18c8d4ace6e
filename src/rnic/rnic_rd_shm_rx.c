/* RD through shared memory: messages in. What is in the ring can change under our eyes: headers
 * are copied before they are looked at, and whatever a peer says is checked as if it came
 * over the network. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "rnic_conn.h"
#include "rnic_rd_shm_rec.h"
#include "rnic_table.h"

/* Records in one look, so that others get their turn. */
#define LOOK_MAX 64
/* Refusals that wait for room in the ring; a peer with more has earned its end. */
#define NAKS_MAX 32768

/* ---- requests ---- */

static void executed(struct rnic_rd_shm *s)
{
	/* A receive that was taken for nothing is anybody's. */
	if (s->has_wqe)
		rnic_rd_return(s->rd, s->wqe);
	s->has_wqe = false;
	s->done++;
	s->active = false;
	s->owe = true;
}

/* Whether another refusal could be told; asked before anything is done that may need it. */
static bool may_refuse(struct rnic_rd_shm *s)
{
	uint32_t cap = s->naks_cap ? 2 * s->naks_cap : 16;
	void *naks;

	if (s->n_naks < s->naks_cap)
		return true;
	if (cap > NAKS_MAX) {
		s->broken = true;
		return false;
	}
	naks = realloc(s->naks, cap * sizeof(*s->naks));
	if (!naks) {
		s->later = true;
		return false;
	}
	s->naks = naks;
	s->naks_cap = cap;
	return true;
}

static void refuse(struct rnic_rd_shm *s, uint8_t reason)
{
	s->rd->stats.refused++;
	s->naks[s->n_naks].seq = s->done + 1;
	s->naks[s->n_naks++].reason = reason;
	executed(s);
}

/* A receive, once for each message. False: there is none, and the peer will be told. */
static bool want_wqe(struct rnic_rd_shm *s)
{
	struct rnic_qp *qp = s->rd->qp;

	if (s->has_wqe)
		return true;
	if (!rnic_recv_hold(qp, s->wqe, &qp->rsp.wait_link)) {
		s->rd->stats.rnr_sent++;
		s->waiting = s->owe_rnr = true;
		return false;
	}
	s->has_wqe = true;
	return true;
}

static void received(struct rnic_rd_shm *s, const struct rec *r, enum ibv_wc_status status)
{
	struct rnic_rd_arrival a = {
		.wr_id = s->wqe->wr_id,
		.len = r->len,
		.imm = r->imm,
		.status = (uint8_t)status,
		.write = r->op == REC_WRITE_IMM,
		.has_imm = r->flags & REC_IMM,
		.solicited = r->flags & REC_SOLICITED,
	};

	s->has_wqe = false;
	rnic_rd_received(s->peer, &a);
}

/* Whether the memory can be written to, to know who is to blame for a fault. It is what the
 * message was to overwrite. */
static bool mapped(const struct iovec *iov, int n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (int i = 0; i < n; i++) {
		uint8_t *p = iov[i].iov_base, *end = p + iov[i].iov_len;

		for (; p < end; p += page - (uintptr_t)p % page)
			if (rnic_guard_copy(p, p, 1))
				return false;
	}
	return true;
}

/* How long the memory is that a record names; 0: it is nonsense. */
static uint32_t vec_len(const struct rec *r, const uint8_t *body, size_t len)
{
	struct iovec v[RNIC_MAX_SGE];
	uint64_t sum = 0;

	if (r->n > RNIC_MAX_SGE || len != sizeof(struct rec_from) + r->n * sizeof(*v))
		return 0;
	memcpy(v, body + sizeof(struct rec_from), r->n * sizeof(*v));
	for (int i = 0; i < r->n; i++)
		sum += v[i].iov_len > UINT32_MAX ? UINT64_MAX / 64 : v[i].iov_len;
	return sum > UINT32_MAX ? 0 : (uint32_t)sum;
}

/* Fetches a piece of a message from the sender's memory. 0, or 1: our memory is bad, 2:
 * theirs, or it has been taken back meanwhile. */
static int fetch(struct rnic_rd_shm *s, const struct rec *r, const uint8_t *body,
		 const struct iovec *to, int n_to)
{
	struct iovec iov[RNIC_MAX_SGE];
	struct rec_from from;

	memcpy(&from, body, sizeof(from));
	memcpy(iov, body + sizeof(from), r->n * sizeof(*iov));
	/* Not even to be thrown away: what is there now is not for us. */
	if (!shm_grant_good(&s->link, from.grant, from.word))
		return 2;
	for (int i = 0; i < n_to; i++)
		s->fetched += to[i].iov_len;
	if (shm_copy_from(s->link.pid, (struct shm_vec){to, (unsigned long)n_to},
			  (struct shm_vec){iov, r->n}))
		return mapped(to, n_to) ? 2 : 1;
	return shm_grant_good(&s->link, from.grant, from.word) ? 0 : 2;
}

static void send_in(struct rnic_rd_shm *s, const struct rec *r, const uint8_t *body, size_t len)
{
	struct rnic_qp *qp = s->rd->qp;
	struct ibv_pd *pd = rnic_recv_pd(qp);
	struct iovec to[RNIC_MAX_SGE];
	enum ibv_wc_status bad = IBV_WC_SUCCESS;
	int n, how = 0;

	if (!want_wqe(s))
		return;
	if (r->len > s->wqe->length) {
		received(s, r, IBV_WC_LOC_LEN_ERR);
		refuse(s, WIRE_RD_INVALID);
		return;
	}
	if (!(r->flags & REC_DIRECT)) {
		if (rnic_mem_scatter(qp->e, pd, s->wqe->sge, s->wqe->num_sge, r->off, body,
				     (uint32_t)len))
			bad = IBV_WC_LOC_PROT_ERR;
	} else if (rnic_mem_iov(qp->e, pd, s->wqe->sge, s->wqe->num_sge, r->off,
				vec_len(r, body, len), IBV_ACCESS_LOCAL_WRITE, to, &n)) {
		bad = IBV_WC_LOC_PROT_ERR;
	} else {
		how = fetch(s, r, body, to, n);
		if (how == 1)
			bad = IBV_WC_LOC_PROT_ERR;
	}
	if (bad) {
		received(s, r, bad);
		refuse(s, WIRE_RD_OPERATION);
	} else if (how == 2) {
		refuse(s, 0);
	} else if (r->flags & REC_LAST) {
		received(s, r, IBV_WC_SUCCESS);
		executed(s);
	}
}

static void write_in(struct rnic_rd_shm *s, const struct rec *r, const uint8_t *target,
		     const uint8_t *body, size_t len)
{
	struct rnic_qp *qp = s->rd->qp;
	enum rnic_mem_error err = RNIC_MEM_OK;
	struct rec_target t;
	void *to = NULL;
	int how = 0;

	memcpy(&t, target, sizeof(t));
	if (r->len)
		err = rnic_mem_remote(qp->e, qp->ibv.pd, t.rkey, t.addr, r->len,
				      IBV_ACCESS_REMOTE_WRITE, &to);
	if (!err && r->op == REC_WRITE_IMM && !want_wqe(s))
		return;
	if (!err && r->flags & REC_DIRECT) {
		struct iovec iov = {(uint8_t *)to + r->off, vec_len(r, body, len)};

		how = fetch(s, r, body, &iov, 1);
	} else if (!err && len) {
		err = rnic_guard_copy((uint8_t *)to + r->off, body, len);
	}
	if (err || how == 1)
		refuse(s, err ? rnic_rd_reason(err) : WIRE_RD_OPERATION);
	else if (how == 2)
		refuse(s, 0);
	else if (r->flags & REC_LAST) {
		if (r->op == REC_WRITE_IMM)
			received(s, r, IBV_WC_SUCCESS);
		executed(s);
	}
}

static void atomic_in(struct rnic_rd_shm *s, const struct rec *r, const struct rec_target *t,
		      const uint8_t *args, struct rnic_rd_job *job)
{
	struct rnic_rd_atomic a = {.add = r->op == REC_ADD, .rkey = t->rkey, .addr = t->addr};

	memcpy(a.arg, args, sizeof(a.arg));
	job->msg.kind = (uint8_t)rnic_rd_atomic(s->rd, &a, &job->value);
}

static void query_in(struct rnic_rd_shm *s, const struct rec *r, const uint8_t *body, size_t len)
{
	size_t args = r->op == REC_READ ? 0 : 2 * sizeof(uint64_t);
	struct rnic_rd_job *job;
	struct rec_target t;

	/* Twice: some may answer what still came over UDP. (What was answered there does not count:
	 * the peer has it already, and we may not have heard so.) */
	if (len != sizeof(t) + args || s->n_responses >= 2 * RNIC_RD_READS) {
		s->broken = true;
		return;
	}
	job = calloc(1, sizeof(*job)); /* before it is executed */
	if (!job) {
		s->later = true;
		return;
	}
	memcpy(&t, body, sizeof(t));
	job->handle = t.handle;
	job->msg.lane = RNIC_RD_RSP;
	if (r->op == REC_READ)
		rnic_rd_read(s->rd, t.rkey, t.addr, r->len, job);
	else
		atomic_in(s, r, &t, body + sizeof(t), job);
	s->peer->n_jobs++;
	rnic_rd_shm_send(s->peer, &job->msg);
	executed(s);
}

/* Whether a piece of a request is the one that comes next. */
static bool in_turn(struct rnic_rd_shm *s, const struct rec *r, size_t payload)
{
	if (r->seq != s->done + 1 || (s->waiting && r->off))
		return false; /* behind one that was told to wait */
	/* All pieces of a message say the same of it. */
	if (s->active ? r->off != s->got || r->op != s->op || r->len != s->len : r->off)
		s->broken = true;
	if (s->broken || r->off > r->len || payload > r->len - r->off) {
		s->broken = true;
		return false;
	}
	s->waiting = false;
	s->active = true;
	s->op = r->op;
	s->len = r->len;
	s->got = r->off + payload;
	return true;
}

/* Where the data is in a body that begins with so many other bytes. */
static size_t data_at(const struct rec *r, size_t head)
{
	return r->flags & REC_DIRECT ? head : head + r->n;
}

static void request_in(struct rnic_rd_shm *s, const struct rec *r, const uint8_t *body, size_t len)
{
	bool target = r->op != REC_SEND && r->op != REC_VOID, data = r->op <= REC_WRITE_IMM;
	size_t head = target ? sizeof(struct rec_target) : 0;
	size_t at = data ? data_at(r, head) : head, payload = data ? len - at : 0;

	if (len < at) {
		s->broken = true;
		return;
	}
	if (data && r->flags & REC_DIRECT) {
		payload = vec_len(r, body + at, len - at);
		if (!payload || payload > REC_DIRECT_MAX || !s->can_fetch) {
			s->broken = true;
			return;
		}
	}
	/* One that fails in the middle, or is told to wait, may be void at last. */
	if (r->op == REC_VOID) {
		if (r->seq == s->done + 1) {
			s->waiting = false;
			executed(s);
		}
		return;
	}
	if (!may_refuse(s) || !in_turn(s, r, payload))
		return;
	if (data && !!(r->flags & REC_LAST) != (s->got == r->len)) {
		s->broken = true;
		return;
	}
	switch (r->op) {
	case REC_SEND:
		send_in(s, r, body + at, len - at);
		break;
	case REC_WRITE:
	case REC_WRITE_IMM:
		write_in(s, r, body, body + at, len - at);
		break;
	default:
		query_in(s, r, body, len);
		break;
	}
	if (s->waiting)
		s->active = false;
}

/* ---- what concerns our own requests ---- */

static void acked(struct rnic_rd_shm *s, uint32_t ack)
{
	struct rnic_rd_msg *m;

	while ((m = list_first(&s->sent, struct rnic_rd_msg, link)) &&
	       (int32_t)(ack - m->first) >= 0) {
		struct rnic_rd_req *q = rnic_rd_req(m);

		list_del(&m->link);
		rnic_rd_shm_ungrant(s, m);
		m->executed = true;
		if (!q->handle || q->answered || q->status) {
			if (q->handle && !q->answered)
				s->peer->reads--;
			rnic_rd_complete(q);
		} else {
			list_add_tail(&m->link, &s->peer->unanswered);
		}
	}
}

static void nak_in(struct rnic_rd_shm *s, const struct rec *r)
{
	uint8_t status = r->imm ? (uint8_t)rnic_rd_status((uint8_t)r->imm) : IBV_WC_LOC_PROT_ERR;
	struct rnic_rd_msg *m;

	if (r->imm > WIRE_RD_OPERATION || r->imm == WIRE_RD_RNR)
		return;
	list_for_each (m, &s->sent, link)
		if (m->first == r->seq) {
			rnic_rd_req(m)->status = status;
			return;
		}
	/* It may be refused before all of it was sent. */
	m = list_first(&s->requests, struct rnic_rd_msg, link);
	if (m && m->first == r->seq && m->begun) {
		rnic_rd_req(m)->status = status;
		m->sent = UINT32_MAX;
		list_del(&m->link);
		list_add_tail(&m->link, &s->sent);
	}
}

/* Everything from this request on is sent again, later. */
static void rnr_in(struct rnic_rd_shm *s, const struct rec *r)
{
	struct rnic_rd_msg *m;
	uint64_t now = util_now_ns();

	s->rd->stats.rnr_received++;
	while ((m = list_last(&s->sent, struct rnic_rd_msg, link)) &&
	       (int32_t)(m->first - r->seq) >= 0) {
		list_del(&m->link);
		list_add(&m->link, &s->requests);
		rnic_rd_shm_rescue(s, m);
	}
	list_for_each (m, &s->requests, link)
		if (m->begun && !m->skip)
			m->sent = 0;
	m = list_first(&s->requests, struct rnic_rd_msg, link);
	if (!m || m->first != r->seq || m->skip)
		return;
	s->rnr = true;
	if (s->rnr_seq != r->seq) {
		s->rnr_seq = r->seq;
		s->rnr_deadline = s->rd->rnr_retry >= 7
					  ? UINT64_MAX
					  : now + s->rd->rnr_retry * rnic_rnr_ns((uint8_t)r->imm);
	}
	if (s->rnr_deadline != UINT64_MAX)
		rnic_timer_arm(s->rd->e, &s->peer->timer, s->rnr_deadline);
}

static void word_in(struct rnic_rd_shm *s, const uint8_t *body, size_t len)
{
	uint64_t w[2];

	if (len != sizeof(w)) {
		s->broken = true;
		return;
	}
	memcpy(w, body, sizeof(w));
	s->can_fetch = s->link.pid > 0 && !shm_copy_probe(s->link.pid, w[0], w[1]);
	s->owe_found = true;
	s->owe = true;
}

/* What a read of ours is answered with is in the peer's memory. */
static void data_direct(struct rnic_rd_shm *s, const struct rec *r, const uint8_t *body, size_t len)
{
	struct rnic_rd_req *q = rnic_rd_reader(s->peer, r->imm);
	struct rnic_swqe *w = q ? rnic_rd_swqe(&q->msg) : NULL;
	uint32_t n = vec_len(r, body, len);
	struct iovec to[RNIC_MAX_SGE];
	struct rec_from from;
	int n_to, how = 0;

	if (!n || n > REC_DIRECT_MAX || !s->can_fetch) {
		s->broken = true;
		return;
	}
	memcpy(&from, body, sizeof(from));
	if (from.grant >= SHM_GRANTS) {
		s->broken = true;
		return;
	}
	if (w && (r->off > w->length || n > w->length - r->off)) {
		rnic_rd_got_error(s->peer, r->imm, 0);
	} else if (w) {
		if (rnic_mem_iov(s->rd->e, s->rd->qp->ibv.pd, w->sge, w->num_sge, r->off, n,
				 IBV_ACCESS_LOCAL_WRITE, to, &n_to))
			how = 1;
		else
			how = fetch(s, r, body, to, n_to);
		if (how == 1)
			rnic_rd_read_failed(s->peer, r->imm, IBV_WC_LOC_PROT_ERR);
		else if (how == 2)
			rnic_rd_got_error(s->peer, r->imm, WIRE_RD_OPERATION);
		else if (r->flags & REC_LAST)
			rnic_rd_got_data(s->peer, r->imm, r->off, NULL, 0, true);
	}
	if (r->flags & REC_LAST)
		s->owe_copied |= UINT64_C(1) << from.grant;
}

/* The peer has copied a response of ours. */
static void copied_in(struct rnic_rd_shm *s, const struct rec *r)
{
	struct rnic_rd_msg *m = r->imm < SHM_GRANTS ? s->granted[r->imm] : NULL;

	if (!m || m->lane != RNIC_RD_RSP || m->sent != UINT32_MAX) {
		s->broken = true;
		return;
	}
	rnic_rd_shm_ungrant(s, m);
	free(m);
}

static void response_in(struct rnic_rd_shm *s, const struct rec *r, const uint8_t *body, size_t len)
{
	size_t at = r->op == REC_DATA ? data_at(r, 0) : 0;
	uint64_t value = 0;

	if (r->op == REC_DATA ? len < at : len != sizeof(value)) {
		s->broken = true;
		return;
	}
	if (r->op != REC_DATA)
		memcpy(&value, body, sizeof(value));
	switch (r->op) {
	case REC_DATA:
		if (r->flags & REC_DIRECT)
			data_direct(s, r, body + at, len - at);
		else
			rnic_rd_got_data(s->peer, r->imm, r->off, body + at, len - at,
					 r->flags & REC_LAST);
		break;
	case REC_VALUE:
		rnic_rd_got_value(s->peer, r->imm, value);
		break;
	default:
		rnic_rd_got_error(s->peer, r->imm, value <= UINT8_MAX ? (uint8_t)value : 0);
		break;
	}
}

/* ---- the ring ---- */

static void record(struct rnic_rd_shm *s, const struct rec *r, const uint8_t *body, size_t len)
{
	uint8_t copy[sizeof(struct rec_target) + sizeof(struct rec_from) +
		     RNIC_MAX_SGE * sizeof(struct iovec)];

	/* Where data is, and how long, is looked at more than once. */
	if (r->flags & REC_DIRECT) {
		if (len > sizeof(copy)) {
			s->broken = true;
			return;
		}
		memcpy(copy, body, len);
		body = copy;
	}
	/* Not further than we have sent. */
	if ((int32_t)(s->seq - r->ack) < 0) {
		s->broken = true;
		return;
	}
	if (r->op == REC_NAK)
		nak_in(s, r);
	acked(s, r->ack);
	switch (r->op) {
	case REC_SEND ... REC_VOID:
		request_in(s, r, body, len);
		break;
	case REC_DATA ... REC_ERROR:
		response_in(s, r, body, len);
		break;
	case REC_RNR:
		rnr_in(s, r);
		break;
	case REC_READY:
		s->rnr = false;
		break;
	case REC_WORD:
		word_in(s, body, len);
		break;
	case REC_FOUND:
		s->reachable = r->imm;
		break;
	case REC_BYE:
		s->bye = true;
		break;
	case REC_COPIED:
		copied_in(s, r);
		break;
	case REC_ACK:
	case REC_NAK:
		break;
	default:
		s->broken = true;
		break;
	}
}

bool rnic_rd_shm_look(struct rnic_rd_shm *s)
{
	const void *rec;
	uint32_t len;
	int n, ret = 0;

	s->fetched = 0;
	for (n = 0; n < LOOK_MAX && s->fetched < REC_DIRECT_MAX && !s->broken && !s->bye; n++) {
		struct rec r;

		ret = shm_ring_peek(&s->link.rx, &rec, &len);
		if (ret <= 0)
			break;
		if (len < sizeof(r)) {
			s->broken = true;
			break;
		}
		memcpy(&r, rec, sizeof(r));
		s->later = false;
		record(s, &r, (const uint8_t *)rec + sizeof(r), len - sizeof(r));
		if (s->later)
			break;
		shm_ring_release(&s->link.rx);
	}
	if (s->bye) {
		rnic_rd_peer_dead(s->peer, IBV_WC_REM_ABORT_ERR, "it said good-bye");
		return true;
	}
	if (ret < 0 || s->broken) {
		rnic_rd_peer_dead(s->peer, IBV_WC_RETRY_EXC_ERR, "it has sent nonsense");
		return true;
	}
	if (!n && !s->link.tx.full)
		return false;
	s->peer->heard = s->rd->e->now;
	rnic_rd_shm_pump(s);
	if (n)
		shm_link_ring_room(&s->link);
	if (rnic_rd_shm_owes(s->peer) && rnic_rd_peer_wake(s->peer)) {
		/* Not what the last packet over UDP has left there. */
		rnic_rd_due_of(s->peer)->busy = s->active;
		rnic_due_add(s->rd->e, rnic_rd_due_of(s->peer), s->rd->e->now);
	}
	return n;
}

void rnic_rd_shm_wake(struct rnic_rd *rd)
{
	struct rnic_rd_shm *s;

	list_for_each (s, &rd->links, all)
		if (s->waiting && s->peer) {
			s->owe_ready = true;
			rnic_rd_shm_ack(s);
		}
}
