/* RD: requests of peers.
 *
 * Data is placed as it arrives, in whatever order. What follows from it, a receive that is
 * complete, a read to be executed, happens in the order of numbers: a packet that comes before
 * its turn leaves an event behind, and events are run as the gaps close.
 *
 * Receives are taken in the order of the messages that need them, even if a later message
 * arrives first: with a single receive left it must not go to the later one, or both would
 * wait for ever.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "rnic_rd_shm.h"

/* In the place of an opcode: nothing is to be done; a message was given up. */
#define EVENT_NONE 0xff
#define EVENT_SKIP 0xfe

static void refuse(struct rnic_rd_peer *peer, uint32_t psn, enum wire_rd_reason reason)
{
	struct wire_rd_nak nak = {(uint8_t)reason,
				  reason == WIRE_RD_RNR ? peer->rd->qp->attr.min_rnr_timer : 0};
	uint8_t body[WIRE_RD_NAK_LEN];

	if (reason == WIRE_RD_RNR)
		peer->rd->stats.rnr_sent++;
	else
		peer->rd->stats.refused++;
	wire_rd_nak_encode(&nak, body);
	rnic_rd_control(peer, peer->reply, WIRE_RD_NAK, psn, body, sizeof(body));
}

/* ---- receives ---- */

static struct rnic_rd_hold *hold_find(struct rnic_rd_peer *peer, uint32_t ssn)
{
	struct rnic_rd_hold *h;

	list_for_each (h, &rnic_rd_awake(peer)->holds, link)
		if (h->ssn == ssn)
			return h;
	return NULL;
}

static void hold_free(struct rnic_rd_peer *peer, struct rnic_rd_hold *h, bool back)
{
	if (back && !h->spent)
		rnic_rd_return(peer->rd, &h->wqe);
	list_del(&h->link);
	peer->n_holds--;
	free(h);
}

/* A message whose turn it is gets what there is. Those that come early leave a quarter of the
 * receives to other peers: their sender may never send what is missing. */
static bool may_take(struct rnic_rd_peer *peer)
{
	return peer->ssn_held == peer->ssn_done || peer->rd->n_peers == 1 ||
	       rnic_rq_plenty(peer->rd->qp->rq);
}

static bool take(struct rnic_rd_peer *peer, struct rnic_rwqe *wqe)
{
	struct rnic_qp *qp = peer->rd->qp;

	if (may_take(peer))
		return rnic_recv_hold(qp, wqe, &qp->rsp.wait_link);
	rnic_rq_wait(qp->rq, &qp->rsp.wait_link);
	return false;
}

static void starve(struct rnic_rd_peer *peer, uint32_t psn)
{
	bool told = peer->starved;

	if (!told) {
		peer->starved = true;
		list_add_tail(&rnic_rd_awake(peer)->starved_link, &peer->rd->starved);
	}
	if (!told || rd_seq_before(psn, peer->starved_psn))
		peer->starved_psn = psn;
	if (!peer->naked)
		refuse(peer, psn, WIRE_RD_RNR);
	peer->naked = true; /* once in a batch is enough */
}

/* The receive of message `ssn`; all before it get theirs first. NULL: not now. */
static struct rnic_rd_hold *hold_get(struct rnic_rd_peer *peer, uint32_t ssn, uint32_t psn)
{
	struct rnic_rq *rq = peer->rd->qp->rq;
	struct rnic_rd_hold *h;

	if (rd_seq_before(ssn, peer->ssn_done)) {
		refuse(peer, psn, WIRE_RD_INVALID); /* it has been refused before */
		return NULL;
	}
	if (ssn - peer->ssn_done >= RNIC_RD_HOLDS)
		return NULL;
	/* Behind one that was refused: it will come again, and all that were sent behind it, too.
	 * Where receives are few, those for what is on the way now would only be kept from others
	 * meanwhile. */
	if (peer->refused_one && rd_seq_before(peer->ssn_held, ssn) && rnic_rq_scarce(rq))
		return NULL;
	while (!rd_seq_before(ssn, peer->ssn_held)) {
		h = calloc(1, sizeof(*h) + rq->max_sge * sizeof(struct ibv_sge));
		if (!h)
			return NULL;
		if (!take(peer, &h->wqe)) {
			free(h);
			peer->refused_one = true;
			starve(peer, psn);
			return NULL;
		}
		peer->refused_one = false;
		h->ssn = peer->ssn_held++;
		list_init(&h->link);
		list_add_tail(&h->link, &rnic_rd_awake(peer)->holds);
		peer->n_holds++;
	}
	return hold_find(peer, ssn);
}

void rnic_rd_give_back(struct rnic_rd_peer *peer)
{
	struct rnic_rd_hold *h;
	struct rnic_rd_event *ev;

	/* Last taken, first returned: they end in their old order. */
	while ((h = list_last(&rnic_rd_awake(peer)->holds, struct rnic_rd_hold, link)))
		hold_free(peer, h, true);
	while ((ev = list_first(&rnic_rd_awake(peer)->events, struct rnic_rd_event, link))) {
		list_del(&ev->link);
		peer->n_events--;
		free(ev);
	}
}

static void received(struct rnic_rd_peer *peer, const struct rnic_rwqe *wqe,
		     const struct rnic_rd_event *ev, enum ibv_wc_status status)
{
	uint8_t op = ev->opcode;
	bool write = op == WIRE_OP_IMM || op == WIRE_OP_IMM_SE;
	struct rnic_rd_arrival a = {
		.wr_id = wqe->wr_id,
		.len = ev->length,
		.imm = htonl(ev->imm),
		.status = (uint8_t)status,
		.write = write,
		.has_imm = write || op == WIRE_OP_SEND_IMM || op == WIRE_OP_SEND_IMM_SE,
		.solicited =
			op == WIRE_OP_SEND_SE || op == WIRE_OP_SEND_IMM_SE || op == WIRE_OP_IMM_SE,
	};

	rnic_rd_received(peer, &a);
}

static void hold_spend(struct rnic_rd_peer *peer, struct rnic_rd_hold *h,
		       const struct rnic_rd_event *ev, enum ibv_wc_status status)
{
	if (h->spent)
		return;
	h->spent = true;
	h->status = (uint8_t)status;
	received(peer, &h->wqe, ev, status);
}

static void ready(struct rnic_rd_peer *peer)
{
	struct wire_rd_nak nak = {WIRE_RD_READY, 0};
	uint8_t body[WIRE_RD_NAK_LEN];

	list_del(&rnic_rd_awake(peer)->starved_link);
	peer->starved = false;
	wire_rd_nak_encode(&nak, body);
	rnic_rd_control(peer, peer->reply, WIRE_RD_NAK, peer->starved_psn, body, sizeof(body));
}

/* Messages that were refused and whose turn it is. */
static void drop_spent(struct rnic_rd_peer *peer)
{
	struct rnic_rd_hold *h;

	while ((h = list_first(&rnic_rd_awake(peer)->holds, struct rnic_rd_hold, link)) &&
	       h->spent && h->ssn == peer->ssn_done) {
		hold_free(peer, h, false);
		peer->ssn_done++;
	}
}

/* Messages before `ssn` are not coming any more: their receives go back, the last one first,
 * so that they are in their old order again. */
static void void_before(struct rnic_rd_peer *peer, uint32_t ssn)
{
	struct rnic_rd_hold *h = list_last(&rnic_rd_awake(peer)->holds, struct rnic_rd_hold, link);

	while (h && &h->link != &rnic_rd_awake(peer)->holds) {
		struct rnic_rd_hold *before = list_entry(h->link.prev, struct rnic_rd_hold, link);

		if (rd_seq_before(h->ssn, ssn))
			hold_free(peer, h, true);
		h = before;
	}
	if (rd_seq_before(peer->ssn_held, ssn)) {
		peer->ssn_held = ssn;
		peer->refused_one = false;
	}
}

/* The sender has given up message `ssn`, some of which may be here. */
static void skipped(struct rnic_rd_peer *peer, uint32_t ssn)
{
	if (rd_seq_before(ssn, peer->ssn_done))
		return;
	void_before(peer, ssn + 1);
	peer->ssn_done = ssn + 1;
	drop_spent(peer);
}

/* The turn of a message that has its receive. */
static void complete_hold(struct rnic_rd_peer *peer, const struct rnic_rd_event *ev)
{
	struct rnic_rd_hold *h;

	if (rd_seq_before(ev->ssn, peer->ssn_done))
		return; /* void: some of it was skipped */
	void_before(peer, ev->ssn);
	peer->ssn_done = ev->ssn + 1;
	h = hold_find(peer, ev->ssn);
	if (!h)
		return;
	hold_spend(peer, h, ev, IBV_WC_SUCCESS);
	hold_free(peer, h, false);
	drop_spent(peer);
	if (peer->starved)
		ready(peer); /* the next one may have it now */
}

/* ---- events ---- */

void rnic_rd_read(struct rnic_rd *rd, uint32_t rkey, uint64_t addr, uint32_t len,
		  struct rnic_rd_job *job)
{
	enum rnic_mem_error err = RNIC_MEM_OK;
	void *ptr;

	if (len)
		err = rnic_mem_remote(rd->e, rd->qp->ibv.pd, rkey, addr, len,
				      IBV_ACCESS_REMOTE_READ, &ptr);
	job->rkey = rkey;
	job->addr = addr;
	job->msg.kind = err ? RNIC_RD_ERROR_RSP : RNIC_RD_READ_RSP;
	job->msg.length = err ? 0 : len;
	job->value = err ? rnic_rd_reason(err) : 0;
	rd->stats.refused += !!err;
}

enum rnic_rd_kind rnic_rd_atomic(struct rnic_rd *rd, const struct rnic_rd_atomic *a,
				 uint64_t *value)
{
	enum rnic_mem_error err;
	void *ptr;

	*value = WIRE_RD_INVALID;
	if (a->addr % sizeof(uint64_t))
		goto refused;
	err = rnic_mem_remote(rd->e, rd->qp->ibv.pd, a->rkey, a->addr, sizeof(uint64_t),
			      IBV_ACCESS_REMOTE_ATOMIC, &ptr);
	if (!err && (uintptr_t)ptr % sizeof(uint64_t))
		goto refused;
	if (!err)
		err = a->add ? rnic_guard_fetch_add(ptr, a->arg[0], value)
			     : rnic_guard_cmp_swap(ptr, a->arg[0], a->arg[1], value);
	if (!err)
		return RNIC_RD_ATOMIC_RSP;
	*value = rnic_rd_reason(err);
refused:
	rd->stats.refused++;
	return RNIC_RD_ERROR_RSP;
}

static void run_read(struct rnic_rd_peer *peer, const struct wire_read_req *r,
		     struct rnic_rd_job *job)
{
	job->handle = r->sink_stag;
	rnic_rd_read(peer->rd, r->src_stag, r->src_to, r->len, job);
}

static void run_atomic(struct rnic_rd_peer *peer, const struct wire_atomic_req *a,
		       struct rnic_rd_job *job)
{
	bool add = a->op == WIRE_ATOMIC_FETCH_ADD;
	struct rnic_rd_atomic in = {.add = add,
				    .rkey = a->stag,
				    .addr = a->to,
				    .arg = {add ? a->add_swap : a->compare, a->add_swap}};

	job->handle = a->id;
	job->msg.kind = (uint8_t)rnic_rd_atomic(peer->rd, &in, &job->value);
}

/* False: it has to wait. */
static bool run(struct rnic_rd_peer *peer, const struct rnic_rd_event *ev)
{
	struct rnic_rd_job *job;

	if (ev->opcode == EVENT_SKIP) {
		skipped(peer, ev->ssn);
		return true;
	}
	if (ev->opcode != WIRE_OP_READ_REQ && ev->opcode != WIRE_OP_ATOMIC_REQ) {
		complete_hold(peer, ev);
		return true;
	}
	if (peer->n_jobs >= RNIC_RD_READS)
		return false;
	/* Before it is executed: without memory it waits, and the peer's timer tries again. */
	job = calloc(1, sizeof(*job));
	if (!job)
		return false;
	job->msg.path = ev->from;
	job->msg.lane = RNIC_RD_RSP;
	job->msg.n = 1;
	if (ev->opcode == WIRE_OP_READ_REQ)
		run_read(peer, &ev->read, job);
	else
		run_atomic(peer, &ev->atomic, job);
	peer->n_jobs++;
	rnic_rd_send(peer, &job->msg);
	return true;
}

void rnic_rd_events(struct rnic_rd_peer *peer)
{
	struct rnic_rd_event *ev;

	while ((ev = list_first(&rnic_rd_awake(peer)->events, struct rnic_rd_event, link)) &&
	       rd_seq_before(ev->psn, peer->lane[RNIC_RD_REQ].rx.next)) {
		if (!run(peer, ev))
			return;
		list_del(&ev->link);
		peer->n_events--;
		free(ev);
	}
}

/* Behind which an event has its place. */
static struct list_head *event_place(const struct rnic_rd_peer *peer, uint32_t psn)
{
	struct list_head *events = &rnic_rd_awake(peer)->events, *at = events->prev;

	while (at != events && rd_seq_before(psn, list_entry(at, struct rnic_rd_event, link)->psn))
		at = at->prev;
	return at;
}

/* All packets of a message that its sender has given up say so; one is enough. */
static bool skip_known(const struct rnic_rd_peer *peer, const struct rnic_rd_event *in)
{
	struct list_head *events = &rnic_rd_awake(peer)->events;
	struct list_head *at = event_place(peer, in->psn), *both[] = {at, at->next};

	for (int i = 0; i < 2; i++) {
		const struct rnic_rd_event *x = list_entry(both[i], struct rnic_rd_event, link);

		if (both[i] != events && x->opcode == EVENT_SKIP && x->ssn == in->ssn)
			return true;
	}
	return false;
}

/* A copy of the event, among the others by number. What is next in turn is never refused: all
 * others wait for it. */
static struct rnic_rd_event *event_keep(struct rnic_rd_peer *peer, const struct rnic_rd_event *in)
{
	struct rnic_rd_event *ev;

	if (peer->n_events >= RNIC_RD_EVENTS && in->psn != peer->lane[RNIC_RD_REQ].rx.next)
		return NULL;
	ev = malloc(sizeof(*ev));
	if (!ev)
		return NULL;
	*ev = *in;
	list_init(&ev->link);
	list_add(&ev->link, event_place(peer, in->psn));
	peer->n_events++;
	return ev;
}

/* ---- requests ---- */

static bool place_write(struct rnic_rd_peer *peer, uint32_t psn, const struct wire_seg *seg,
			const uint8_t *payload, size_t len)
{
	enum rnic_mem_error err;
	void *to;

	if (!len)
		return true;
	err = rnic_mem_remote(peer->rd->e, peer->rd->qp->ibv.pd, seg->stag, seg->to, len,
			      IBV_ACCESS_REMOTE_WRITE, &to);
	if (!err)
		err = rnic_guard_copy(to, payload, len);
	if (err)
		refuse(peer, psn, rnic_rd_reason(err));
	return !err;
}

/* Into a receive. A message that does not fit spends it. */
static bool scatter(struct rnic_rd_peer *peer, struct rnic_rwqe *wqe, const struct wire_seg *seg,
		    const uint8_t *payload, size_t len, enum ibv_wc_status *status)
{
	struct rnic_qp *qp = peer->rd->qp;
	struct ibv_pd *pd = rnic_recv_pd(qp);

	*status = IBV_WC_SUCCESS;
	if ((uint64_t)seg->mo + len > wqe->length)
		*status = IBV_WC_LOC_LEN_ERR;
	else if (rnic_mem_scatter(qp->e, pd, wqe->sge, wqe->num_sge, seg->mo, payload,
				  (uint32_t)len))
		*status = IBV_WC_LOC_PROT_ERR;
	return *status == IBV_WC_SUCCESS;
}

static bool place_send(struct rnic_rd_peer *peer, const struct rnic_rd_event *ev,
		       const struct wire_seg *seg, const uint8_t *payload, size_t len)
{
	struct rnic_rd_hold *h = hold_get(peer, seg->msn, ev->psn);
	enum ibv_wc_status status;

	if (!h)
		return false;
	if (!h->spent) {
		if (scatter(peer, &h->wqe, seg, payload, len, &status))
			return true;
		hold_spend(peer, h, ev, status);
	}
	refuse(peer, ev->psn,
	       h->status == IBV_WC_LOC_LEN_ERR ? WIRE_RD_INVALID : WIRE_RD_OPERATION);
	drop_spent(peer);
	return false;
}

/* The common case: a message of one packet, in its turn, and nothing else open. */
static bool whole_send(struct rnic_rd_peer *peer, const struct rnic_rd_event *ev,
		       const struct wire_seg *seg, const uint8_t *payload, size_t len, bool *done)
{
	struct rnic_rd_lane *lane = &peer->lane[RNIC_RD_REQ];
	struct rnic_rwqe *wqe = peer->rd->qp->rsp.wqe;
	enum ibv_wc_status status;

	*done = false;
	if (!seg->last || seg->mo || ev->psn != lane->rx.next || seg->msn != peer->ssn_done ||
	    peer->n_holds || peer->n_events)
		return false;
	peer->refused_one = !take(peer, wqe);
	if (peer->refused_one) {
		starve(peer, ev->psn);
		return true;
	}
	peer->ssn_done++;
	peer->ssn_held = peer->ssn_done;
	if (scatter(peer, wqe, seg, payload, len, &status)) {
		*done = true;
		received(peer, wqe, ev, IBV_WC_SUCCESS);
		return true;
	}
	/* Its sender will skip it; should it be sent again before, it is too late to fit. */
	received(peer, wqe, ev, status);
	refuse(peer, ev->psn, status == IBV_WC_LOC_LEN_ERR ? WIRE_RD_INVALID : WIRE_RD_OPERATION);
	return true;
}

/* Places what a request packet brings. False: it counts as not received. `ev` is what has to
 * happen in its turn; its opcode is EVENT_NONE when that is nothing. */
static bool request_in(struct rnic_rd_peer *peer, const struct wire_seg *seg,
		       const uint8_t *payload, size_t len, struct rnic_rd_event *ev)
{
	ev->opcode = seg->opcode;
	switch (seg->opcode) {
	case WIRE_OP_WRITE:
		ev->opcode = EVENT_NONE;
		return place_write(peer, ev->psn, seg, payload, len);
	case WIRE_OP_READ_REQ:
		return !wire_read_req_decode(&ev->read, payload, len);
	case WIRE_OP_ATOMIC_REQ:
		return !wire_atomic_req_decode(&ev->atomic, payload, len);
	case WIRE_OP_IMM:
	case WIRE_OP_IMM_SE:
		ev->ssn = seg->msn;
		ev->length = seg->ulp;
		return !wire_imm_decode(&ev->imm, payload, len) &&
		       hold_get(peer, seg->msn, ev->psn);
	default:
		ev->ssn = seg->msn;
		ev->length = seg->mo + (uint32_t)len;
		ev->imm = seg->ulp;
		if (!place_send(peer, ev, seg, payload, len))
			return false;
		if (!seg->last)
			ev->opcode = EVENT_NONE;
		return true;
	}
}

/* ---- packets ---- */

/* A request packet has done what it could do at once; the rest is done in its turn. */
static void in_its_turn(struct rnic_rd_peer *peer, const struct rnic_rd_event *ev)
{
	struct rnic_rd_event *kept = NULL;

	if (ev->opcode != EVENT_NONE && !(ev->opcode == EVENT_SKIP && skip_known(peer, ev))) {
		kept = event_keep(peer, ev);
		if (!kept)
			return;
	}
	if (rd_rx_mark(&peer->lane[RNIC_RD_REQ].rx, ev->psn)) {
		if (kept) {
			list_del(&kept->link);
			peer->n_events--;
			free(kept);
		}
		return;
	}
	rnic_rd_events(peer);
}

void rnic_rd_skip_in(struct rnic_rd_peer *peer, const struct wire_rd *h, const uint8_t *body,
		     size_t len)
{
	struct rnic_rd_event ev = {.psn = h->psn, .opcode = EVENT_NONE};

	if (h->flags & WIRE_RD_RESPONSE) {
		rd_rx_mark(&peer->lane[RNIC_RD_RSP].rx, h->psn);
		return;
	}
	if (len) {
		ev.opcode = EVENT_SKIP;
		ev.ssn = wire_rd_skip_decode(body);
	}
	in_its_turn(peer, &ev);
}

/* A request that is in the window. */
void rnic_rd_request_in(struct rnic_rd_peer *peer, const struct wire_rd *h,
			const struct wire_seg *seg, const uint8_t *payload, size_t len)
{
	struct rnic_rd_lane *lane = &peer->lane[RNIC_RD_REQ];
	struct rnic_rd_event ev = {.psn = h->psn, .from = peer->reply};
	bool send = seg->opcode == WIRE_OP_SEND || seg->opcode == WIRE_OP_SEND_SE ||
		    seg->opcode == WIRE_OP_SEND_IMM || seg->opcode == WIRE_OP_SEND_IMM_SE;
	bool done;

	if (send) {
		ev.opcode = seg->opcode;
		ev.ssn = seg->msn;
		ev.length = seg->mo + (uint32_t)len;
		ev.imm = seg->ulp;
		if (whole_send(peer, &ev, seg, payload, len, &done)) {
			if (done)
				rd_rx_mark(&lane->rx, h->psn); /* in turn: needs no memory */
			return;
		}
	}
	if (!request_in(peer, seg, payload, len, &ev))
		return;
	in_its_turn(peer, &ev);
}

/* ---- a receive was posted ---- */

void rnic_rd_wake(struct rnic_rd *rd)
{
	struct rnic_rd_awake *a;

	rnic_rd_shm_wake(rd);
	while ((a = list_first(&rd->starved, struct rnic_rd_awake, starved_link)))
		ready(a->peer);
}
