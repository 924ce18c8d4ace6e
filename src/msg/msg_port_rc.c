/* A queue pair for each peer, one receive queue for all of them; see msg_rc.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"
#include "msg_rc.h"

#define DEPTH_MAX 128 /* of one queue pair */

/* ---- connections ---- */

static struct msg_conn **bucket(struct msg_rc *rc, uint32_t qpn)
{
	/* numbers of queue pairs need not differ in their low bits */
	return &rc->by_qpn[qpn * UINT32_C(0x9e3779b9) >> 22];
}

static struct msg_conn *find(const struct msg_ep *ep, uint32_t qpn)
{
	struct msg_conn *c = *bucket(ep->rc, qpn);

	while (c && c->qp->qp_num != qpn)
		c = c->chain;
	return c;
}

static struct ibv_qp *create_qp(struct msg_ep *ep, uint32_t max_inline)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = ep->cq,
		.recv_cq = ep->cq,
		.srq = ep->rc->srq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = ep->conf.depth < DEPTH_MAX ? ep->conf.depth : DEPTH_MAX,
			.max_send_sge = MSG_IOV,
			.max_inline_data = max_inline}};

	return ibv_create_qp(ep->dev->pd, &attr);
}

static int init_qp(struct msg_ep *ep, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = ep->dev->port,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};

	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static struct msg_conn *conn_new(struct msg_ep *ep, uint32_t peer)
{
	struct msg_conn *c = calloc(1, sizeof(*c)), **at;
	int err = -ENOMEM;

	if (c && !util_random_key(&c->psn, sizeof(c->psn))) {
		c->psn &= 0xffffff;
		c->peer = peer;
		list_init(&c->link);
		c->qp = create_qp(ep, ep->max_inline);
		err = c->qp ? init_qp(ep, c->qp) : -errno;
	}
	if (err) {
		if (c && c->qp)
			ibv_destroy_qp(c->qp);
		free(c);
		errno = -err;
		return NULL;
	}
	at = bucket(ep->rc, c->qp->qp_num);
	c->chain = *at;
	*at = c;
	return c;
}

struct msg_conn *msg_conn_get(struct msg_ep *ep, uint32_t peer)
{
	struct msg_peer *p = &ep->peers[peer];

	if (!p->conn)
		p->conn = conn_new(ep, peer);
	return p->conn;
}

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int msg_conn_connect(struct msg_ep *ep, struct msg_conn *c, const struct msg_hello *h)
{
	const struct msg_dev *dev = ep->dev;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .ah_attr = msg_dev_ah(dev, &h->from),
				   .path_mtu = least(dev->mtu, h->mtu),
				   .dest_qp_num = h->qpn,
				   .rq_psn = h->psn,
				   .max_dest_rd_atomic = dev->max_reads,
				   .min_rnr_timer = 12 /* 0.64 ms */};
	int err = ibv_modify_qp(c->qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER);

	if (err)
		return -err;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .timeout = 14, /* 67 ms */
				    .retry_cnt = 7,
				    .rnr_retry = 7, /* without end: the other may be computing */
				    .sq_psn = c->psn,
				    .max_rd_atomic = least(dev->max_reads, h->reads)};
	return -ibv_modify_qp(c->qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* ---- opened, closed ---- */

/* How much goes inline is known only when a device has taken it. */
static int probe_inline(struct msg_ep *ep)
{
	static const uint32_t sizes[] = {MSG_INLINE_WANT, 128, 64, 0};
	struct ibv_qp *qp = NULL;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(*sizes) && !qp; i++) {
		ep->max_inline = sizes[i];
		qp = create_qp(ep, sizes[i]);
	}
	if (!qp)
		return -errno;
	ibv_destroy_qp(qp);
	return 0;
}

static int rc_open(struct msg_ep *ep)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = ep->conf.rx_buffers, .max_sge = 1}};
	int err;

	ep->rc = calloc(1, sizeof(*ep->rc));
	if (!ep->rc)
		return -ENOMEM;
	list_init(&ep->rc->calling);
	ep->rc->timer = -1;
	ep->rc->left = ep->conf.depth;
	ep->cq = ibv_create_cq(ep->dev->ctx,
			       (int)(ep->conf.depth + ep->conf.rx_buffers + 2 * MSG_RC_DGRAMS),
			       NULL, ep->channel, 0);
	if (!ep->cq)
		return -errno;
	ep->rc->srq = ibv_create_srq(ep->dev->pd, &attr);
	if (!ep->rc->srq)
		return -errno;
	err = probe_inline(ep);
	return err ? err : msg_call_open(ep);
}

static void rc_close(struct msg_ep *ep)
{
	if (!ep->rc)
		return;
	for (uint32_t i = 0; i < ep->n_peers; i++)
		if (ep->peers[i].conn) {
			ibv_destroy_qp(ep->peers[i].conn->qp);
			free(ep->peers[i].conn);
		}
	msg_call_close(ep);
	if (ep->rc->srq)
		ibv_destroy_srq(ep->rc->srq);
	if (ep->cq)
		ibv_destroy_cq(ep->cq);
	free(ep->rc);
}

/* ---- in use ---- */

/* The pieces of what goes inline are many and short; not every device takes so many. */
static int post_inline(struct msg_conn *c, struct ibv_send_wr *wr)
{
	uint8_t buf[MSG_INLINE_WANT], *to = buf;
	struct ibv_send_wr one = *wr, *bad;
	struct ibv_sge sge;

	for (int i = 0; i < wr->num_sge; i++) {
		memcpy(to, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
	sge = (struct ibv_sge){(uintptr_t)buf, (uint32_t)(to - buf), 0};
	one.sg_list = &sge;
	one.num_sge = 1;
	return ibv_post_send(c->qp, &one, &bad);
}

/* Everything completes: nothing else says how many are under way. */
static int rc_post(struct msg_ep *ep, uint32_t peer, void *way, struct ibv_send_wr *wr)
{
	struct msg_conn *c = msg_conn_get(ep, peer);
	struct ibv_send_wr *bad;
	int err;

	(void)way;
	if (!c)
		return -errno;
	if (!c->up) {
		msg_call(ep, c);
		return -EAGAIN;
	}
	if (!ep->rc->left)
		return -ENOBUFS;
	err = wr->send_flags & IBV_SEND_INLINE ? post_inline(c, wr)
					       : ibv_post_send(c->qp, wr, &bad);
	if (!err)
		ep->rc->left--;
	return err == ENOMEM ? -EAGAIN : -err;
}

static int rc_post_recv(struct msg_ep *ep, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	return -ibv_post_srq_recv(ep->rc->srq, wr, &bad);
}

static bool rc_settled(struct msg_ep *ep)
{
	return ep->rc->left == ep->conf.depth;
}

static bool rc_completed(struct msg_ep *ep, const struct ibv_wc *wc)
{
	struct msg_conn *c;

	if (wc->qp_num == ep->qp->qp_num) {
		msg_call_completed(ep, wc);
		return true;
	}
	if ((wc->wr_id & MSG_WR_MASK) != MSG_WR_RX) {
		ep->rc->left++;
		return false;
	}
	c = find(ep, wc->qp_num);
	if (c && !c->up && wc->status == IBV_WC_SUCCESS)
		msg_call_up(ep, c);
	return false;
}

static int rc_tick(struct msg_ep *ep)
{
	return list_empty(&ep->rc->calling) ? 0 : msg_call_tick(ep, util_now_ns());
}

static uint32_t rc_source(struct msg_ep *ep, const struct ibv_wc *wc, const struct msg_pkt *p)
{
	struct msg_conn *c = find(ep, wc->qp_num);

	(void)p;
	return c ? c->peer : UINT32_MAX;
}

static bool rc_is_from(const struct msg_ep *ep, const struct ibv_wc *wc, uint32_t peer)
{
	const struct msg_conn *c = find(ep, wc->qp_num);

	return c && c->peer == peer;
}

const struct msg_port msg_port_rc = {
	.open = rc_open,
	.close = rc_close,
	.post = rc_post,
	.post_recv = rc_post_recv,
	.settled = rc_settled,
	.completed = rc_completed,
	.tick = rc_tick,
	.source = rc_source,
	.is_from = rc_is_from,
	.connected = true,
};
