/* Endpoints at work: what has come, and what goes on because of it. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "util_log.h"
#include "msg_rc.h"

#define POLL_BATCH 16

/* ---- what the device has to say ---- */

void msg_refill(struct msg_ep *ep)
{
	while (ep->n_idle) {
		struct ibv_recv_wr wr[POLL_BATCH];
		struct ibv_sge sge[POLL_BATCH];
		uint32_t n = ep->n_idle < POLL_BATCH ? ep->n_idle : POLL_BATCH;

		for (uint32_t i = 0; i < n; i++) {
			uint32_t b = ep->idle[--ep->n_idle];

			sge[i] = (struct ibv_sge){(uintptr_t)ep->rx + b * ep->rx_size,
						  (uint32_t)ep->rx_size, ep->rx_mr->lkey};
			wr[i] = (struct ibv_recv_wr){.wr_id =
							     (uint64_t)b << MSG_WR_BITS | MSG_WR_RX,
						     .sg_list = &sge[i],
						     .num_sge = 1,
						     .next = i + 1 < n ? &wr[i + 1] : NULL};
		}
		if (ep->port->post_recv(ep, wr)) {
			util_log(UTIL_LOG_ERROR, "receive buffers can not be posted");
			return;
		}
	}
}

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
	default:
		return -EHOSTUNREACH;
	}
}

void msg_packet_sent(struct msg_ep *ep, struct msg_op *op, int err)
{
	op->len = op->room;
	if (op->id) /* it was not copied */
		msg_direct_end(ep, op);
	msg_done(ep, op, err);
}

static void complain(const char *what)
{
	static atomic_bool told;

	util_log_once(
		&told, UTIL_LOG_ERROR,
		"%s: FI_WEFT_EAGER and FI_WEFT_EAGER_REMOTE must be the same in all processes",
		what);
}

void msg_tx_free(struct msg_ep *ep, struct msg_tx *tx, int err)
{
	tx->next = ep->tx_free;
	ep->tx_free = tx;
	if (tx->op)
		msg_packet_sent(ep, tx->op, err);
	if (tx->part)
		msg_stripe_done(ep, tx->part, err);
}

static bool is_message(const struct msg_op *op)
{
	return op->kind == MSG_OP_SEND || op->kind == MSG_OP_RECV;
}

static void sent(struct msg_ep *ep, const struct ibv_wc *wc)
{
	int err = status_errno(wc->status);
	uint32_t peer = (uint32_t)(wc->wr_id >> MSG_WR_BITS);
	/* What fails is gone, and so is the peer; or it goes another way. */
	bool packet = true, fatal = true;
	struct msg_op *op = NULL;
	struct msg_part *part;
	struct msg_tx *tx;

	switch (wc->wr_id & MSG_WR_MASK) {
	case MSG_WR_TX:
		tx = (struct msg_tx *)(uintptr_t)wc->wr_id;
		peer = tx->peer;
		fatal = !tx->part;
		if (tx->kept && !msg_flow_sent(ep, tx, err))
			fatal = false;
		else
			msg_tx_free(ep, tx, err);
		break;
	case MSG_WR_OP:
		op = (struct msg_op *)(uintptr_t)(wc->wr_id & ~MSG_WR_MASK);
		peer = msg_rdma_peer(op);
		packet = op->kind == MSG_OP_SEND && op->phase != MSG_PHASE_WRITE;
		if (packet)
			msg_packet_sent(ep, op, err);
		else
			msg_rdma_done(ep, op, err);
		break;
	case MSG_WR_PART:
		part = (struct msg_part *)(uintptr_t)(wc->wr_id & ~MSG_WR_MASK);
		peer = msg_rdma_peer(part->op);
		packet = false;
		/* A message that is refused has no other way; who waits for it has to know. */
		fatal = !ep->port->connected || (err != -EHOSTUNREACH && is_message(part->op));
		msg_stripe_done(ep, part, err);
		break;
	case MSG_WR_ASK:
		fatal = !ep->port->connected;
		break;
	default:
		break;
	}
	if (packet && wc->status == IBV_WC_REM_INV_REQ_ERR)
		complain("a peer refuses a message, or is not there any more");
	/* Who does not take our packets can not be talked to. */
	if (fatal && (err == -EHOSTUNREACH || (err && (packet || ep->port->connected))))
		msg_peer_died(ep, peer);
}

static void receive_failed(struct msg_ep *ep, const struct ibv_wc *wc)
{
	uint32_t peer = UINT32_MAX;

	if (wc->status == IBV_WC_LOC_LEN_ERR) {
		complain("a message is longer than receive buffers, and is lost");
		for (uint32_t i = 0; i < ep->n_peers && peer == UINT32_MAX; i++)
			if (ep->port->is_from(ep, wc, i))
				peer = i;
	}
	if (peer != UINT32_MAX)
		msg_peer_died(ep, peer);
}

static void arrived(struct msg_ep *ep, const struct ibv_wc *wc)
{
	uint32_t b = (uint32_t)(wc->wr_id >> MSG_WR_BITS);

	if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV)
		msg_rx_packet(ep, wc, ep->rx + b * ep->rx_size);
	else if (wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		msg_write_notice(ep, wc);
	else if (wc->status != IBV_WC_SUCCESS)
		receive_failed(ep, wc);
	ep->idle[ep->n_idle++] = b;
}

/* Those whose peer has no room go behind the others. When there is none for anybody, it is no use
 * to ask for all the rest: there may be thousands. */
static void retry_stalled(struct msg_ep *ep)
{
	struct list_head rest;
	struct msg_op *op;
	bool full = false;

	list_init(&rest);
	list_splice_tail(&ep->stalled, &rest);
	while (!full && (op = list_first(&rest, struct msg_op, link))) {
		list_del(&op->link);
		full = msg_rdma_go_on(ep, op);
	}
	list_splice_tail(&ep->stalled, &rest);
	list_splice_tail(&rest, &ep->stalled);
}

int msg_progress_locked(struct msg_ep *ep)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(ep->cq, POLL_BATCH, wc);

	ep->drained = n < POLL_BATCH;
	for (int i = 0; i < n; i++) {
		if (ep->port->completed && ep->port->completed(ep, &wc[i]))
			continue;
		if ((wc[i].wr_id & MSG_WR_MASK) == MSG_WR_RX)
			arrived(ep, &wc[i]);
		else
			sent(ep, &wc[i]);
	}
	if (ep->port->tick)
		n += ep->port->tick(ep);
	if (ep->n_idle)
		msg_refill(ep);
	if (n <= 0)
		msg_alive_check(ep);
	if (n < 0)
		return n;
	if (!list_empty(&ep->again))
		msg_flow_flush(ep);
	/* Also without a completion: packets that are not signalled make room without a word. */
	if (ep->wait_first != UINT32_MAX)
		msg_tx_flush(ep);
	if (!list_empty(&ep->stalled))
		retry_stalled(ep);
	if (!list_empty(&ep->turns)) /* who was before them may have gone without a completion */
		msg_stripe_call(ep);
	return n;
}

/* ---- who asks for it ---- */

int msg_progress(struct msg_ep *ep)
{
	int n;

	if (!util_trylock(&ep->lock))
		return 0;
	n = msg_progress_locked(ep);
	util_unlock(&ep->lock);
	return n;
}

static void serve(void *arg)
{
	struct msg_ep *ep = arg;

	util_lock(&ep->lock);
	msg_progress_locked(ep);
	util_unlock(&ep->lock);
}

void msg_ep_serve(struct msg_ep *ep, bool on)
{
	const struct verbs_dv_ops *dv = msg_verbs_dv();

	if (verbs_dv_has(dv, serve_cq))
		dv->serve_cq(ep->cq, on ? serve : NULL, ep);
}

int msg_ep_fd(const struct msg_ep *ep)
{
	return ep->fd;
}

/* Events that have done their duty. */
static void take_events(struct msg_ep *ep)
{
	struct ibv_cq *cq;
	unsigned int n = 0;
	uint64_t ticks;
	void *arg;

	while (ep->channel && !ibv_get_cq_event(ep->channel, &cq, &arg))
		n++;
	if (n)
		ibv_ack_cq_events(ep->cq, n);
	if (ep->rc && ep->rc->timer >= 0 && read(ep->rc->timer, &ticks, sizeof(ticks)) < 0 &&
	    errno != EAGAIN)
		util_log(UTIL_LOG_ERROR, "a timer can not be read: %s", strerror(errno));
}

bool msg_ep_arm(struct msg_ep *ep)
{
	bool quiet;

	util_lock(&ep->lock);
	take_events(ep);
	quiet = !ibv_req_notify_cq(ep->cq, 0) && msg_progress_locked(ep) == 0;
	util_unlock(&ep->lock);
	return quiet;
}
