/* Queue pairs to connected peers: made, connected, given up, made anew; see msg_rc.h. */
#include <errno.h>
#include <stdlib.h>
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"
#include "msg_rc.h"

#define DEPTH_MAX 128 /* of one queue pair */

/* One that has failed is made anew after a pause, which gets longer, so many times; who has been
 * well for a while starts from the beginning. */
#define TRIES       10
#define PAUSE_FIRST (20 * UTIL_NS_PER_MS)
#define PAUSE_LAST  (5 * UTIL_NS_PER_S)
#define WELL        (10 * UTIL_NS_PER_S)

/* ---- by number ---- */

static struct msg_conn **bucket(struct msg_rc *rc, uint32_t qpn)
{
	/* numbers of queue pairs need not differ in their low bits */
	return &rc->by_qpn[qpn * UINT32_C(0x9e3779b9) >> 22];
}

struct msg_conn *msg_conn_find(const struct msg_ep *ep, uint32_t qpn)
{
	struct msg_conn *c = *bucket(ep->rc, qpn);

	while (c && c->qp->qp_num != qpn)
		c = c->chain;
	return c;
}

static void chain(struct msg_ep *ep, struct msg_conn *c)
{
	struct msg_conn **at = bucket(ep->rc, c->qp->qp_num);

	c->chain = *at;
	*at = c;
}

static void unchain(struct msg_ep *ep, struct msg_conn *c)
{
	struct msg_conn **at = bucket(ep->rc, c->qp->qp_num);

	while (*at != c)
		at = &(*at)->chain;
	*at = c->chain;
}

/* ---- made ---- */

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

/* It is known only when a device has taken it. */
int msg_conn_probe(struct msg_ep *ep)
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

static int init_qp(struct msg_ep *ep, struct ibv_qp *qp, uint32_t path)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = msg_way_port(&ep->dev->ports, path)->port,
				   .qp_access_flags =
					   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};

	return -ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* A queue pair for it, in place of the one that it has. 0 or -errno, and nothing has changed. */
static int equip(struct msg_ep *ep, struct msg_conn *c)
{
	struct ibv_qp *qp = create_qp(ep, ep->max_inline);
	uint32_t psn;
	int err = qp ? init_qp(ep, qp, c->path) : -errno;

	if (!err)
		err = util_random_key(&psn, sizeof(psn));
	if (err) {
		if (qp)
			ibv_destroy_qp(qp);
		return err;
	}
	if (c->qp) {
		unchain(ep, c);
		ibv_destroy_qp(c->qp);
	}
	c->qp = qp;
	c->psn = psn & 0xffffff;
	c->other = 0;
	chain(ep, c);
	return 0;
}

struct msg_conn *msg_conn_get(struct msg_ep *ep, uint32_t peer, uint32_t path)
{
	struct msg_conn **at = &ep->peers[peer].conn, *c;
	int err = -ENOMEM;

	for (; *at; at = &(*at)->also)
		if ((*at)->path == path)
			return *at;
	c = calloc(1, sizeof(*c));
	if (c) {
		c->peer = peer;
		c->path = (uint8_t)path;
		list_init(&c->link);
		err = equip(ep, c);
	}
	if (err) {
		free(c);
		errno = -err;
		return NULL;
	}
	*at = c;
	return c;
}

struct msg_conn *msg_conn_ready(const struct msg_ep *ep, uint32_t peer)
{
	struct msg_conn *c = ep->peers[peer].conn;

	while (c && !c->up)
		c = c->also;
	return c;
}

void msg_conn_close(struct msg_ep *ep, uint32_t peer)
{
	struct msg_conn *c;

	while ((c = ep->peers[peer].conn)) {
		ep->peers[peer].conn = c->also;
		ibv_destroy_qp(c->qp);
		free(c);
	}
}

/* ---- connected ---- */

static uint8_t least(uint8_t a, uint8_t b)
{
	return a < b ? a : b;
}

int msg_conn_connect(struct msg_ep *ep, struct msg_conn *c, const struct msg_hello *h)
{
	const struct msg_dev *dev = ep->dev;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .ah_attr = msg_way_ah(&dev->ports, c->path, &h->at),
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

/* ---- given up, made anew ---- */

static void rest(struct msg_conn *c, uint64_t now)
{
	uint64_t pause = PAUSE_FIRST << (c->tries < 16 ? c->tries : 16);

	c->next = now + (pause < PAUSE_LAST ? pause : PAUSE_LAST);
	c->tries++;
}

void msg_conn_failed(struct msg_ep *ep, struct msg_conn *c)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	uint64_t now;

	if (c->broken)
		return;
	now = util_now_ns();
	if (c->up && now - c->since > WELL)
		c->tries = 0;
	c->broken = true;
	c->up = false;
	msg_call_stop(ep, c);
	ibv_modify_qp(c->qp, &attr, IBV_QP_STATE);
	if (!msg_conn_ready(ep, c->peer)) {
		msg_peer_died(ep, c->peer);
		return;
	}
	util_log(UTIL_LOG_INFO, "path %u to a peer has failed; there are others", c->path);
	rest(c, now);
	list_add_tail(&c->link, &ep->rc->broken);
	msg_call_timer(ep->rc);
	msg_path_down(ep, c->peer, c->path);
}

/* The peer need not be waited for, and may have tried more often than we. */
void msg_conn_outdated(struct msg_ep *ep, struct msg_conn *c, uint16_t epoch)
{
	msg_conn_failed(ep, c);
	if (ep->peers[c->peer].dead)
		return;
	c->epoch = (uint16_t)(epoch - 1);
	if (c->tries > TRIES)
		c->tries = TRIES;
	c->next = util_now_ns();
	if (list_empty(&c->link)) {
		list_add_tail(&c->link, &ep->rc->broken);
		msg_call_timer(ep->rc);
	}
}

/* Nothing of the old queue pair is in the completion queue any more, or of interest to a message
 * that has yet to ask what has come over it. */
static bool is_over(const struct msg_ep *ep, const struct msg_conn *c)
{
	return !c->posted && ep->drained && !msg_path_in_doubt(ep, c->peer, c->path);
}

static void renew(struct msg_ep *ep, struct msg_conn *c, uint64_t now)
{
	int err = equip(ep, c);

	if (err) {
		util_log(UTIL_LOG_INFO, "no new queue pair for a path that has failed");
		rest(c, now);
		return;
	}
	list_del(&c->link);
	msg_call_timer(ep->rc);
	c->broken = false;
	c->epoch++;
	msg_call(ep, c);
}

void msg_conn_tick(struct msg_ep *ep, uint64_t now)
{
	struct msg_conn *c, *tmp;

	list_for_each_safe (c, tmp, &ep->rc->broken, link) {
		if (ep->peers[c->peer].dead || c->tries > TRIES) {
			list_del(&c->link);
			msg_call_timer(ep->rc);
		} else if (now >= c->next && is_over(ep, c)) {
			renew(ep, c, now);
		}
	}
}
