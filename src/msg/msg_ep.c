/* Endpoints: made, used, moved on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_log.h"
#include "util_rand.h"
#include "msg_choose.h"
#include "msg_ep.h"

#define POLL_BATCH  16
#define INLINE_WANT 256

/* ---- making ---- */

static int make_qp(struct msg_ep *ep)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.qp_type = IBV_QPT_DRIVER,
		.cap = {.max_send_wr = ep->conf.depth,
			.max_recv_wr = ep->conf.rx_buffers,
			.max_send_sge = MSG_IOV + 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_WANT},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = ep->dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	ep->qp = msg_verbs_dv()->create_rd_qp(ep->dev->ctx, &attr);
	if (!ep->qp)
		return -errno;
	ep->ex = ibv_qp_to_qp_ex(ep->qp);
	ep->max_inline = attr.cap.max_inline_data;
	return ep->max_inline >= MSG_WIRE_MAX ? 0 : -ENODEV;
}

static int start_qp(struct msg_ep *ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int err = util_random_key(&ep->qkey, sizeof(ep->qkey));

	ep->qkey &= 0x7fffffff; /* the top bit has a meaning of its own */
	attr.qkey = ep->qkey;
	if (!err)
		err = -ibv_modify_qp(ep->qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = -ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = -ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return err;
}

static int make_buffers(struct msg_ep *ep)
{
	uint32_t n = ep->conf.rx_buffers;

	ep->rx_size = (MSG_WIRE_MAX + ep->conf.eager_max + 63) / 64 * 64;
	ep->rx = aligned_alloc(64, n * ep->rx_size);
	ep->idle = malloc(n * sizeof(*ep->idle));
	ep->tx = calloc(ep->conf.depth, sizeof(*ep->tx));
	ep->tx_data = aligned_alloc(64, ep->conf.depth * ep->rx_size);
	if (!ep->rx || !ep->idle || !ep->tx || !ep->tx_data)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ep->idle[ep->n_idle++] = i;
	for (uint32_t i = 0; i < ep->conf.depth; i++) {
		ep->tx[i].next = ep->tx_free;
		ep->tx[i].data = ep->tx_data + i * ep->rx_size;
		ep->tx_free = &ep->tx[i];
	}
	ep->rx_mr = ibv_reg_mr_iova2(ep->dev->pd, ep->rx, n * ep->rx_size, (uintptr_t)ep->rx,
				     IBV_ACCESS_LOCAL_WRITE);
	ep->tx_mr = ibv_reg_mr_iova2(ep->dev->pd, ep->tx_data, ep->conf.depth * ep->rx_size,
				     (uintptr_t)ep->tx_data, 0);
	return ep->rx_mr && ep->tx_mr ? 0 : -errno;
}

/* Posts what is idle. */
static void refill(struct msg_ep *ep)
{
	while (ep->n_idle) {
		struct ibv_recv_wr wr[POLL_BATCH], *bad;
		struct ibv_sge sge[POLL_BATCH];
		uint32_t n = ep->n_idle < POLL_BATCH ? ep->n_idle : POLL_BATCH;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t b = ep->idle[--ep->n_idle];

			sge[i] = (struct ibv_sge){(uintptr_t)ep->rx + b * ep->rx_size,
						  (uint32_t)ep->rx_size, ep->rx_mr->lkey};
			wr[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)b << 2 | MSG_WR_RX,
						     .sg_list = &sge[i],
						     .num_sge = 1,
						     .next = i + 1 < n ? &wr[i + 1] : NULL};
		}
		if (ibv_post_recv(ep->qp, wr, &bad)) {
			util_log(UTIL_LOG_ERROR, "receive buffers can not be posted");
			return;
		}
	}
}

int msg_ep_open(struct msg_dev *dev, const struct msg_ep_conf *conf, struct msg_ep **out)
{
	struct msg_ep *ep = calloc(1, sizeof(*ep));
	int err;

	if (!ep)
		return -ENOMEM;
	ep->dev = dev;
	ep->conf = *conf;
	ep->id_free = UINT32_MAX;
	list_init(&ep->stalled);
	list_init(&ep->waiting);
	list_init(&ep->cancelling);
	msg_adapt_init(&ep->adapt, conf->usage);
	err = msg_match_init(&ep->match[0]);
	if (!err)
		err = msg_match_init(&ep->match[1]);
	if (!err && conf->wait) {
		ep->channel = ibv_create_comp_channel(dev->ctx);
		err = ep->channel ? 0 : -errno;
	}
	if (!err) {
		ep->cq = ibv_create_cq(dev->ctx, (int)(conf->depth + conf->rx_buffers), NULL,
				       ep->channel, 0);
		err = ep->cq ? make_qp(ep) : -errno;
	}
	if (!err)
		err = make_buffers(ep);
	if (!err)
		err = start_qp(ep);
	if (err) {
		msg_ep_close(ep);
		return err;
	}
	refill(ep);
	*out = ep;
	return 0;
}

static void free_early(void *arg, struct msg_unexp *u)
{
	(void)arg;
	free(container_of(u, struct msg_early, unexp));
}

void msg_ep_close(struct msg_ep *ep)
{
	for (int i = 0; i < 2; i++) {
		msg_match_drop_src(&ep->match[i], MSG_ANY_SRC, NULL, free_early, NULL);
		msg_match_free(&ep->match[i]);
	}
	for (uint32_t i = 0; i < ep->n_ids; i++)
		if (ep->ids[i].op)
			msg_unexpose(ep->ids[i].op);
	msg_tx_drop(ep);
	if (ep->qp)
		ibv_destroy_qp(ep->qp);
	if (ep->cq)
		ibv_destroy_cq(ep->cq);
	if (ep->channel)
		ibv_destroy_comp_channel(ep->channel);
	if (ep->rx_mr)
		ibv_dereg_mr(ep->rx_mr);
	if (ep->tx_mr)
		ibv_dereg_mr(ep->tx_mr);
	msg_peers_free(ep);
	free(ep->rx);
	free(ep->idle);
	free(ep->tx);
	free(ep->tx_data);
	free(ep->ids);
	free(ep);
}

/* ---- names ---- */

struct msg_addr msg_ep_addr(const struct msg_ep *ep)
{
	return (struct msg_addr){.ip = ep->dev->ip, .qpn = ep->qp->qp_num, .qkey = ep->qkey};
}

int msg_ep_peer(struct msg_ep *ep, const struct msg_addr *addr, uint32_t *peer)
{
	util_lock(&ep->lock);
	*peer = msg_peer_get(ep, addr);
	util_unlock(&ep->lock);
	return *peer == UINT32_MAX ? -ENOMEM : 0;
}

struct msg_addr msg_peer_addr(struct msg_ep *ep, uint32_t peer)
{
	struct msg_addr a;

	util_lock(&ep->lock);
	a = ep->peers[peer].addr;
	util_unlock(&ep->lock);
	return a;
}

/* ---- progress ---- */

static int status_errno(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		return -EACCES;
	case IBV_WC_LOC_PROT_ERR:
		return -EFAULT;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	default:
		return -EHOSTUNREACH;
	}
}

static void packet_sent(struct msg_ep *ep, struct msg_op *op, int err)
{
	op->len = op->room;
	msg_done(ep, op, err);
}

static void sent(struct msg_ep *ep, const struct ibv_wc *wc)
{
	int err = status_errno(wc->status);
	uint32_t peer = (uint32_t)(wc->wr_id >> 2);
	struct msg_op *op = NULL;
	struct msg_tx *tx;

	switch (wc->wr_id & 3) {
	case MSG_WR_TX:
		tx = (struct msg_tx *)(uintptr_t)wc->wr_id;
		op = tx->op;
		peer = tx->peer;
		tx->next = ep->tx_free;
		ep->tx_free = tx;
		if (op)
			packet_sent(ep, op, err);
		break;
	case MSG_WR_OP:
		op = (struct msg_op *)(uintptr_t)(wc->wr_id & ~UINT64_C(3));
		peer = op->kind == MSG_OP_RECV ? op->src : op->peer;
		if (op->kind == MSG_OP_SEND && op->phase != MSG_PHASE_WRITE)
			packet_sent(ep, op, err);
		else
			msg_rdma_done(ep, op, err);
		break;
	default:
		break;
	}
	if (err == -EHOSTUNREACH)
		msg_peer_died(ep, peer);
}

static void arrived(struct msg_ep *ep, const struct ibv_wc *wc)
{
	uint32_t b = (uint32_t)(wc->wr_id >> 2);

	if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV)
		msg_rx_packet(ep, wc, ep->rx + b * ep->rx_size);
	else if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		msg_write_notice(ep, wc);
	ep->idle[ep->n_idle++] = b;
}

static void retry_stalled(struct msg_ep *ep)
{
	struct list_head work;
	struct msg_op *op;

	list_init(&work);
	list_splice_tail(&ep->stalled, &work);
	while ((op = list_first(&work, struct msg_op, link))) {
		list_del(&op->link);
		msg_rdma_go_on(ep, op);
	}
}

static int progress(struct msg_ep *ep)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(ep->cq, POLL_BATCH, wc);

	for (int i = 0; i < n; i++)
		if ((wc[i].wr_id & 3) == MSG_WR_RX)
			arrived(ep, &wc[i]);
		else
			sent(ep, &wc[i]);
	if (ep->n_idle)
		refill(ep);
	if (n > 0 && !list_empty(&ep->waiting))
		msg_tx_flush(ep);
	if (n > 0 && !list_empty(&ep->stalled))
		retry_stalled(ep);
	return n;
}

int msg_progress(struct msg_ep *ep)
{
	int n;

	if (!util_trylock(&ep->lock))
		return 0;
	n = progress(ep);
	util_unlock(&ep->lock);
	return n;
}

int msg_ep_fd(const struct msg_ep *ep)
{
	return ep->channel ? ep->channel->fd : -1;
}

bool msg_ep_arm(struct msg_ep *ep)
{
	bool quiet;

	util_lock(&ep->lock);
	quiet = !ibv_req_notify_cq(ep->cq, 0) && progress(ep) == 0;
	util_unlock(&ep->lock);
	return quiet;
}

/* ---- operations ---- */

static void start(struct msg_op *op)
{
	op->room = 0;
	for (unsigned int i = 0; i < op->n_iov; i++)
		op->room += op->iov[i].iov_len;
	op->err = 0;
	op->len = op->over = op->off = op->posted = 0;
	op->next = 0;
	op->pending = 0;
	op->id = 0;
	op->phase = MSG_PHASE_NONE;
	op->cancel = false;
	op->whole = NULL;
	op->ask = (struct msg_ask){0};
	memset(&op->recv, 0, sizeof(op->recv));
	memset(op->mr, 0, sizeof(op->mr));
	list_init(&op->link);
}

static int send_eager(struct msg_ep *ep, struct msg_op *op)
{
	bool report = op->flags & MSG_OP_DELIVER && !(op->flags & MSG_OP_INJECT);
	struct msg_pkt p = msg_head(op, MSG_EAGER);
	int err = msg_tx_send(ep, op->peer, &p, op->iov, op->n_iov, report ? op : NULL);

	if (err)
		return err;
	ep->stats.eager++;
	if (!report)
		packet_sent(ep, op, 0);
	return 0;
}

/* The message takes its place in the order only when nothing can refuse it any more. After that
 * `op` may be the caller's again. */
static int send_message(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_ledger *l = op->flags & MSG_OP_TAGGED ? &ep->peers[op->peer].ledger : NULL;
	uint64_t tag = op->tag, len = op->room;
	bool rendezvous = len > ep->conf.eager_max;
	const struct msg_rtr *rtr = l ? msg_ledger_next(l, tag, len, rendezvous) : NULL;
	struct msg_rtr used;
	int err;

	switch (msg_choose(len, ep->conf.eager_max, !ep->conf.write, rtr)) {
	case MSG_BY_EAGER:
		err = send_eager(ep, op);
		break;
	case MSG_BY_PUT:
		err = msg_put_send(ep, op, rtr);
		if (!err)
			msg_rdma_go_on(ep, op);
		break;
	case MSG_BY_WRITE:
		err = msg_write_announce(ep, op);
		break;
	default:
		err = msg_read_announce(ep, op);
		break;
	}
	if (err)
		return err;
	ep->stats.bytes_sent += len;
	if (l)
		msg_ledger_sent(l, tag, len, rendezvous, &used);
	return 0;
}

int msg_send(struct msg_ep *ep, struct msg_op *op)
{
	int err;

	start(op);
	util_lock(&ep->lock);
	/* The RTR for this message may have come, and lie there. */
	if (op->room > ep->conf.eager_max)
		progress(ep);
	err = ep->peers[op->peer].dead ? -EHOSTUNREACH : send_message(ep, op);
	if (err == -EAGAIN)
		progress(ep);
	util_unlock(&ep->lock);
	return err;
}

static int post_recv(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_match *m = msg_match_of(ep, op->flags & MSG_OP_TAGGED);
	struct msg_unexp *u;
	int err;

	if (op->flags & MSG_OP_MULTI) {
		struct msg_multi *multi = container_of(op, struct msg_multi, op);

		multi->used = multi->parts = 0;
		return msg_rx_early_parts(ep, multi) ? msg_match_post(m, &op->recv) : 0;
	}
	u = msg_match_find(m, op->peer, op->recv.tag, op->recv.ignore);
	if (u) {
		msg_match_drop(m, u);
		msg_rx_early(ep, op, container_of(u, struct msg_early, unexp));
		return 0;
	}
	if (op->peer != MSG_ANY_SRC && ep->peers[op->peer].dead)
		return -EHOSTUNREACH;
	err = msg_match_post(m, &op->recv);
	if (!err)
		msg_put_ask(ep, op);
	return err;
}

static void start_recv(struct msg_op *op)
{
	start(op);
	op->recv.tag = op->tag;
	op->recv.ignore = op->flags & MSG_OP_TAGGED ? op->ignore : UINT64_MAX;
	op->recv.src = op->peer;
}

int msg_post_recv(struct msg_ep *ep, struct msg_op *op)
{
	int err;

	start_recv(op);
	util_lock(&ep->lock);
	progress(ep);
	err = post_recv(ep, op);
	util_unlock(&ep->lock);
	return err;
}

/* ---- probing ---- */

int msg_peek(struct msg_ep *ep, struct msg_op *op, struct msg_early **claimed)
{
	struct msg_match *m = msg_match_of(ep, op->flags & MSG_OP_TAGGED);
	struct msg_unexp *u;
	struct msg_early *e;

	start_recv(op);
	util_lock(&ep->lock);
	progress(ep);
	u = msg_match_find(m, op->peer, op->recv.tag, op->recv.ignore);
	if (u) {
		e = container_of(u, struct msg_early, unexp);
		msg_matched(op, u->src, &e->pkt);
		op->len = e->pkt.len;
		op->over = 0;
		if (claimed) {
			msg_match_drop(m, u);
			*claimed = e;
		}
	}
	util_unlock(&ep->lock);
	return u ? 0 : -ENOMSG;
}

int msg_recv_claimed(struct msg_ep *ep, struct msg_op *op, struct msg_early *claimed)
{
	start_recv(op);
	util_lock(&ep->lock);
	msg_rx_early(ep, op, claimed);
	util_unlock(&ep->lock);
	return 0;
}

/* ---- others ---- */

int msg_rma(struct msg_ep *ep, struct msg_op *op)
{
	int err = 0;

	start(op);
	util_lock(&ep->lock);
	if (ep->peers[op->peer].dead)
		err = -EHOSTUNREACH;
	else
		msg_rdma_go_on(ep, op);
	if (op->kind == MSG_OP_READ)
		ep->stats.reads++;
	else
		ep->stats.writes++;
	util_unlock(&ep->lock);
	return err;
}

int msg_atomic(struct msg_ep *ep, struct msg_atomic *a)
{
	int err;

	start(&a->op);
	util_lock(&ep->lock);
	err = ep->peers[a->op.peer].dead ? -EHOSTUNREACH : msg_atomic_send(ep, a);
	if (err == -EAGAIN)
		progress(ep);
	util_unlock(&ep->lock);
	return err;
}

int msg_cancel(struct msg_ep *ep, struct msg_op *op)
{
	int err = -ENOENT;

	util_lock(&ep->lock);
	if (op->kind == MSG_OP_RECV && msg_recv_posted(&op->recv))
		err = msg_cancel_start(ep, op);
	util_unlock(&ep->lock);
	return err;
}

void msg_ep_stats(struct msg_ep *ep, struct msg_stats *out)
{
	util_lock(&ep->lock);
	*out = ep->stats;
	out->rtr_came = ep->spec.came;
	out->rtr_used = ep->spec.used;
	out->rtr_dropped = ep->spec.dropped;
	out->rtr_stale = ep->spec.stale;
	out->stops = ep->adapt.stops;
	out->resumptions = ep->adapt.resumptions;
	util_unlock(&ep->lock);
}
