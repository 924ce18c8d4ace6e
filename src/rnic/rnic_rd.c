/* RD queue pairs: made, used, taken down. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "rnic_rd_shm.h"
#include "rnic_table.h"
#include "rnic_tune.h"

#define PATH_TABLE  64
#define GROUP_TABLE 256
/* Records of packets that are kept for the next ones. */
#define POOL_KEEP   4096
#define UDP_IP_HDR  28
#define TIMEOUT_MIN (100 * UTIL_NS_PER_MS)

/* ---- completions ---- */

/* A completion is lost. Not at once: whoever called us is in the middle of what would be torn
 * down. */
static void overrun(struct rnic_rd *rd)
{
	rnic_after(rd->e, &rd->broken);
}

static void broken(struct rnic_due *d)
{
	rnic_qp_error(container_of(d, struct rnic_rd, broken)->qp);
}

/* Written field by field, straight into the queue: what is put together in small pieces and then
 * copied in large ones waits until the pieces are through. */
void rnic_rd_received(struct rnic_rd_peer *peer, const struct rnic_rd_arrival *a)
{
	struct rnic_qp *qp = peer->rd->qp;
	struct ibv_wc *wc;

	/* Its place first, the completion after: who sees the completion may post at once. */
	rnic_rq_used(qp->rq);
	wc = rnic_cq_begin(qp->rcq);
	if (!wc) {
		overrun(peer->rd);
		return;
	}
	wc->wr_id = a->wr_id;
	wc->status = a->status;
	wc->opcode = a->write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV;
	wc->vendor_err = 0;
	wc->byte_len = a->len;
	wc->imm_data = a->has_imm ? a->imm : 0;
	wc->qp_num = qp->ibv.qp_num;
	wc->src_qp = peer->qpn;
	wc->wc_flags = a->has_imm ? IBV_WC_WITH_IMM : 0;
	wc->pkey_index = 0;
	wc->slid = (uint16_t)ntohl(peer->addr.s_addr);
	wc->sl = wc->dlid_path_bits = 0;
	rnic_cq_end(qp->rcq, a->solicited);
}

static void returned(struct rnic_due *d)
{
	struct rnic_rd *rd = container_of(d, struct rnic_rd, returned);

	rnic_rsp_wake(rd->e, rd->qp->rq);
}

/* Not at once: whoever waits would take it, and send, in the middle of what we are at. */
void rnic_rd_return(struct rnic_rd *rd, const struct rnic_rwqe *wqe)
{
	rnic_rq_give_back(rd->qp->rq, wqe);
	rnic_after(rd->e, &rd->returned);
}

/* For those who choose among paths. */
void rnic_rd_learn(struct rnic_rd_req *r)
{
	const struct rnic_swqe *w = rnic_swqe_at(r->rd->qp, r->slot);
	struct rnic_rd_path *path = r->msg.path;
	uint64_t kb = w->length / 1024, per_kb;

	if (!path || !r->msg.begun)
		return;
	path->completions++;
	path->completed_bytes += w->length;
	if (path->peer && path->peer->shm) {
		path->per_kb = 0; /* there is nothing to choose */
		return;
	}
	per_kb = (util_now_ns() - r->msg.begun) / (kb ? kb : 1);
	path->per_kb = path->per_kb ? (7 * path->per_kb + per_kb) / 8 : per_kb;
}

void rnic_rd_complete(struct rnic_rd_req *r)
{
	struct rnic_rd *rd = r->rd;
	struct rnic_sq *sq = &rd->qp->sq;
	const struct rnic_swqe *w = rnic_swqe_at(rd->qp, r->slot);
	uint32_t head = rnic_sq_head(rd->qp);
	struct ibv_wc wc = {.wr_id = w->wr_id,
			    .status = r->status,
			    .opcode = rnic_wc_opcode(w->opcode),
			    .byte_len = rnic_is_read(w) ? w->length : 0,
			    .qp_num = rd->qp->ibv.qp_num};
	bool report = r->status || rd->qp->sq_sig_all || w->flags & IBV_SEND_SIGNALED;

	if (!r->status && (r->handle || !r->msg.arrived))
		rnic_rd_learn(r);
	if (r->handle && !r->answered)
		rnic_table_del(rd->handles, r->handle);
	sq->slots[head & (sq->cap - 1)] = r->slot;
	atomic_store_explicit(&sq->head, head + 1, memory_order_relaxed);
	if (!rnic_sent(rd->qp, &wc, report))
		overrun(rd);
}

void rnic_rd_fail(struct rnic_rd_req *r, enum ibv_wc_status status)
{
	if (!r->status)
		r->status = (uint8_t)status;
	rnic_rd_complete(r);
}

/* ---- posting ---- */

static enum rnic_rd_kind kind_of(const struct rnic_swqe *w)
{
	switch (w->opcode) {
	case IBV_WR_RDMA_WRITE:
		return RNIC_RD_WRITE;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return RNIC_RD_WRITE_IMM;
	case IBV_WR_RDMA_READ:
		return RNIC_RD_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return RNIC_RD_ATOMIC;
	default:
		return RNIC_RD_SEND;
	}
}

static int give_handle(struct rnic_rd *rd, struct rnic_rd_req *r)
{
	int err;

	do {
		if (!++rd->handle)
			++rd->handle;
		err = rnic_table_add(rd->handles, rd->handle, r);
	} while (err == -EEXIST);
	r->handle = err ? 0 : rd->handle;
	return err;
}

/* No region contains that, and packets that lead over the end of memory are taken for damaged. */
static bool wraps(const struct rnic_swqe *w)
{
	return (w->opcode == IBV_WR_RDMA_WRITE || w->opcode == IBV_WR_RDMA_WRITE_WITH_IMM) &&
	       w->remote_addr > UINT64_MAX - w->length;
}

static void post_one(struct rnic_rd *rd, uint32_t slot)
{
	const struct rnic_swqe *w = rnic_swqe_at(rd->qp, slot);
	struct rnic_rd_req *r = &rd->reqs[slot];
	struct rnic_rd_path *path = NULL;

	*r = (struct rnic_rd_req){
		.msg = {.kind = (uint8_t)kind_of(w), .n = 1, .length = w->length},
		.rd = rd,
		.slot = slot,
		/* IBTA: a Q_Key with the top bit set asks for the queue pair's own. */
		.qkey = w->qkey & 0x80000000 ? rd->qp->attr.qkey : w->qkey};
	list_init(&r->msg.link);
	list_init(&r->msg.tx);
	list_init(&r->wait);
	if (rd->qp->ibv.state != IBV_QPS_RTS) {
		rnic_rd_fail(r, IBV_WC_WR_FLUSH_ERR);
		return;
	}
	if (wraps(w)) {
		rnic_rd_fail(r, IBV_WC_REM_ACCESS_ERR);
		return;
	}
	if (!rnic_is_read(w) || !give_handle(rd, r))
		path = rnic_rd_path_get(rd, w->dst, w->dst_qpn, w->sgid_index, w->label, r->qkey);
	if (!path)
		rnic_rd_fail(r, IBV_WC_LOC_QP_OP_ERR); /* no memory, or no socket for the flow */
	else
		rnic_rd_route(path, r);
}

void rnic_rd_post(struct rnic_qp *qp)
{
	struct rnic_sq *sq = &qp->sq;

	while (sq->tx != sq->tail) {
		/* Read before it is used: a completion may overwrite the position. */
		uint32_t slot = sq->slots[sq->tx++ & (sq->cap - 1)];

		post_one(qp->rd, slot);
	}
	qp->rd->posting = true;
	rnic_rd_settle(qp->rd);
	qp->rd->posting = false;
}

/* ---- taking down ---- */

static void leave(struct rnic_rd *rd, enum ibv_wc_status status)
{
	struct rnic_rd_peer *peer;
	struct rnic_rd_path *path;

	while ((path = list_first(&rd->contacts, struct rnic_rd_path, link)))
		rnic_rd_contact_failed(path, status);
	while ((peer = list_first(&rd->peers, struct rnic_rd_peer, link))) {
		/* The good-bye of the link would be heard first, and what is acknowledged only over
		 * UDP would fail at the other side. */
		if (peer->shm && !peer->owe[0] && !peer->owe[1])
			rnic_rd_shm_bye(peer->shm);
		if (peer->remote_id && peer->reply)
			rnic_rd_control(peer, peer->reply, WIRE_RD_BYE, 0, NULL, 0);
		rnic_rd_peer_dead(peer, status, "this queue pair ends");
	}
	while ((path = list_first(&rd->all_paths, struct rnic_rd_path, all)))
		rnic_rd_path_free(path);
}

void rnic_rd_flush(struct rnic_qp *qp)
{
	leave(qp->rd, IBV_WC_WR_FLUSH_ERR);
	rnic_rd_post(qp); /* what is posted in this state is flushed */
}

static int new_life(struct rnic_rd *rd)
{
	struct rnic_sq *sq = &rd->qp->sq;
	int err;

	err = util_random_key(rd->secret, sizeof(rd->secret));
	do
		err = err ? err : util_random_key(&rd->life, sizeof(rd->life));
	while (!err && !(uint32_t)rd->life);
	for (uint32_t i = 0; i < sq->cap; i++)
		sq->slots[i] = i;
	rd->timeout = util_tune_uint(rnic_tune(RNIC_TUNE_RD_TIMEOUT)) * UTIL_NS_PER_MS;
	rd->rnr_retry = 7;
	return err;
}

static void forget_dues(struct rnic_rd *rd)
{
	list_del(&rd->broken.link);
	list_del(&rd->returned.link);
}

void rnic_rd_reset(struct rnic_qp *qp)
{
	leave(qp->rd, IBV_WC_WR_FLUSH_ERR);
	rnic_rd_shm_shut(qp->rd);
	forget_dues(qp->rd);
	new_life(qp->rd); /* without randomness the old one is as good as any */
	rnic_rd_shm_open(qp->rd);
}

void rnic_rd_modified(struct rnic_qp *qp, int mask)
{
	struct rnic_rd *rd = qp->rd;

	if (mask & IBV_QP_TIMEOUT && qp->attr.timeout) {
		rd->timeout = (UINT64_C(4096) << qp->attr.timeout) * (qp->attr.retry_cnt + 1);
		if (rd->timeout < TIMEOUT_MIN)
			rd->timeout = TIMEOUT_MIN;
	}
	if (mask & IBV_QP_RNR_RETRY)
		rd->rnr_retry = qp->attr.rnr_retry;
}

/* ---- making ---- */

/* What is left when nobody has taken it down: in the child of a fork, where the engine is dead
 * and its descriptors are closed. */
static void discard_peer(struct rnic_rd_peer *peer)
{
	struct rnic_rd_event *ev;
	struct rnic_rd_hold *h;
	struct rnic_rd_msg *m;

	if (peer->lane) {
		while ((ev = list_first(&rnic_rd_awake(peer)->events, struct rnic_rd_event,
					link))) {
			list_del(&ev->link);
			free(ev);
		}
		while ((h = list_first(&rnic_rd_awake(peer)->holds, struct rnic_rd_hold, link))) {
			list_del(&h->link);
			free(h);
		}
		while ((m = list_first(&peer->lane[RNIC_RD_RSP].msgs, struct rnic_rd_msg, link))) {
			list_del(&m->link);
			free(m);
		}
		for (int l = 0; l < WIRE_RD_LANES; l++) {
			rd_board_free(&peer->lane[l].board);
			rd_rx_free(&peer->lane[l].rx);
		}
		free(container_of(peer->lane, struct rnic_rd_awake, lane[0]));
	}
	list_del(&peer->link);
	free(peer);
}

static void discard(struct rnic_rd *rd)
{
	struct rnic_rd_peer *peer;
	struct rnic_rd_path *path;

	rnic_rd_shm_discard(rd);
	while ((peer = list_first(&rd->peers, struct rnic_rd_peer, link)))
		discard_peer(peer);
	while ((path = list_first(&rd->all_paths, struct rnic_rd_path, all))) {
		list_del(&path->all);
		free(path);
	}
	for (uint32_t i = 0; rd->groups && i <= rd->group_mask; i++)
		while (rd->groups[i]) {
			struct rnic_rd_group *g = rd->groups[i];

			rd->groups[i] = g->chain;
			free(g);
		}
	rnic_rd_io_discard(rd);
}

void rnic_rd_free(struct rnic_rd *rd)
{
	if (!rd)
		return;
	if (rd->e->dead)
		discard(rd);
	rnic_table_free(rd->ids);
	rnic_table_free(rd->lives);
	rnic_table_free(rd->handles);
	rnic_table_free(rd->addrs);
	rd_pool_free(&rd->pool);
	free(rd->paths);
	free(rd->groups);
	free(rd->reqs);
	free(rd);
}

static int tables(struct rnic_rd *rd)
{
	struct rnic_sq *sq = &rd->qp->sq;

	rd->ids = rnic_table_new();
	rd->lives = rnic_table_new();
	rd->handles = rnic_table_new();
	rd->addrs = rnic_table_new();
	rd->paths = calloc(PATH_TABLE, sizeof(*rd->paths));
	rd->path_mask = PATH_TABLE - 1;
	rd->groups = calloc(GROUP_TABLE, sizeof(*rd->groups));
	rd->group_mask = GROUP_TABLE - 1;
	rd->reqs = calloc(sq->cap, sizeof(*rd->reqs));
	sq->slots = calloc(sq->cap, sizeof(*sq->slots));
	if (!rd->ids || !rd->lives || !rd->handles || !rd->addrs || !rd->paths || !rd->groups ||
	    !rd->reqs || !sq->slots)
		return -ENOMEM;
	return 0;
}

static uint16_t own_mtu(const struct rnic_device *dev)
{
	unsigned int mtu = WIRE_DGRAM_MAX + UDP_IP_HDR;
	unsigned int wish = (unsigned int)util_tune_uint(rnic_tune(RNIC_TUNE_RD_MTU));

	for (int i = 0; i < dev->n_addr; i++)
		if (dev->addr[i].mtu && dev->addr[i].mtu < mtu)
			mtu = dev->addr[i].mtu;
	if (wish && wish + UDP_IP_HDR < mtu)
		mtu = wish + UDP_IP_HDR;
	return mtu < WIRE_RD_MTU_MIN + UDP_IP_HDR ? WIRE_RD_MTU_MIN : (uint16_t)(mtu - UDP_IP_HDR);
}

static void faults(struct rnic_rd *rd)
{
	char why[160];

	/* One that is wrong was reported with the other tunables, and counts as none. */
	rnic_fault_parse(&rd->fault, util_tune_str(rnic_tune(RNIC_TUNE_FAULT)), why, sizeof(why));
	if (rnic_fault_any(&rd->fault))
		util_log(UTIL_LOG_INFO, "WEFT_FAULT: seed=%llu",
			 (unsigned long long)rd->fault.seed);
}

int rnic_rd_open(struct rnic_qp *qp)
{
	struct rnic_rd *rd = calloc(1, sizeof(*rd));
	int err;

	if (!rd)
		return -ENOMEM;
	qp->rd = rd;
	rd->qp = qp;
	rd->e = qp->e;
	rd->mtu = own_mtu(qp->ctx->dev);
	rd->max_peers = (uint32_t)util_tune_uint(rnic_tune(RNIC_TUNE_RD_PEERS));
	list_init(&rd->peers);
	list_init(&rd->all_paths);
	list_init(&rd->contacts);
	list_init(&rd->awake);
	list_init(&rd->touched);
	list_init(&rd->starved);
	list_init(&rd->links);
	list_init(&rd->broken.link);
	rd->broken.run = broken;
	list_init(&rd->returned.link);
	rd->returned.run = returned;
	rd_pool_init(&rd->pool, POOL_KEEP);
	faults(rd);
	err = tables(rd);
	if (!err)
		err = new_life(rd);
	if (!err)
		err = rnic_rd_io_open(rd);
	if (!err)
		rnic_rd_shm_open(rd);
	if (err) {
		rnic_rd_free(rd);
		qp->rd = NULL;
	}
	return err;
}

void rnic_rd_close(struct rnic_qp *qp)
{
	rnic_rd_shm_shut(qp->rd);
	forget_dues(qp->rd);
	rnic_rd_io_close(qp->rd);
}

/* ---- questions ---- */

static enum weftdv_path_state path_state(const struct rnic_rd_path *p)
{
	if (p->state != RNIC_RD_PATH_UP)
		return rnic_rd_overdue(p) ? WEFTDV_PATH_SILENT : WEFTDV_PATH_NEW;
	if (rnic_rd_shm_up(p->peer))
		return WEFTDV_PATH_LOCAL;
	return rd_path_silent(&p->p) ? WEFTDV_PATH_SILENT : WEFTDV_PATH_ACTIVE;
}

int rnic_query_path(struct ibv_qp *ibqp, struct ibv_ah *ibah, uint32_t qpn, struct weftdv_path *out)
{
	struct rnic_qp *qp = rnic_qp(ibqp);
	const struct rnic_ah *ah = (const struct rnic_ah *)ibah;
	struct rnic_rd_path *p;

	if (qp->e->dead || !rnic_is_rd(qp))
		return qp->e->dead ? EIO : EINVAL;
	rnic_lock(qp->e);
	p = rnic_rd_path_find(qp->rd, ah->addr, qpn, ah->sgid_index, ah->label);
	if (p) {
		bool up = p->state == RNIC_RD_PATH_UP; /* else something else is there */

		*out = (struct weftdv_path){.state = path_state(p),
					    .mtu = (p->peer ? p->peer->mtu : qp->rd->mtu) -
						   WIRE_RD_HDR - WIRE_UNTAGGED_HDR,
					    .rtt = p->p.rtt.smoothed,
					    .rtt_min = p->p.rtt.least,
					    .window = p->p.cc.window,
					    .flight = p->p.cc.flight,
					    .completion = up ? p->per_kb : 0,
					    .completions = up ? p->completions : 0,
					    .bytes = up ? p->completed_bytes : 0,
					    .sent = p->p.sent_packets,
					    .lost = p->p.lost_packets,
					    .timeouts = p->p.timeouts};
	}
	rnic_unlock(qp->e);
	return p ? 0 : ENOENT;
}

int rnic_query_rd(struct ibv_qp *ibqp, struct weftdv_rd_stats *out)
{
	struct rnic_qp *qp = rnic_qp(ibqp);

	if (qp->e->dead || !rnic_is_rd(qp))
		return qp->e->dead ? EIO : EINVAL;
	rnic_lock(qp->e);
	*out = qp->rd->stats;
	out->link = (uint64_t)qp->rd->egress.link * 1000;
	out->peers = qp->rd->n_peers;
	out->paths = qp->rd->n_paths;
	rnic_unlock(qp->e);
	return 0;
}
