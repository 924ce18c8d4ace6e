/* Queue pairs for each peer, one receive queue for all of them; see msg_rc.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "msg_rc.h"

/* ---- opened, closed ---- */

static int rc_open(struct msg_ep *ep)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = ep->conf.rx_buffers, .max_sge = 1}};
	int err;

	ep->rc = calloc(1, sizeof(*ep->rc));
	if (!ep->rc)
		return -ENOMEM;
	list_init(&ep->rc->calling);
	list_init(&ep->rc->broken);
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
	err = msg_conn_probe(ep);
	return err ? err : msg_call_open(ep);
}

static void rc_close(struct msg_ep *ep)
{
	if (!ep->rc)
		return;
	for (uint32_t i = 0; i < ep->n_peers; i++)
		msg_conn_close(ep, i);
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

/* The one that is named, or the first that there is. */
static int choose(struct msg_ep *ep, uint32_t peer, void *way, struct msg_conn **out)
{
	struct msg_conn *c = way ? way : msg_conn_ready(ep, peer);

	if (!c) {
		c = msg_conn_get(ep, peer, 0);
		if (!c)
			return -errno;
		if (c->broken)
			return -ENOTCONN;
		msg_call(ep, c);
		return -EAGAIN;
	}
	*out = c;
	return c->up ? 0 : -ENOTCONN;
}

/* Everything completes: nothing else says how many are under way. */
static int rc_post(struct msg_ep *ep, uint32_t peer, void *way, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct msg_conn *c = NULL;
	int err = choose(ep, peer, way, &c);

	if (err)
		return err;
	if (!ep->rc->left)
		return -ENOBUFS;
	err = wr->send_flags & IBV_SEND_INLINE ? post_inline(c, wr)
					       : ibv_post_send(c->qp, wr, &bad);
	if (!err) {
		ep->rc->left--;
		c->posted++;
	}
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

/* ---- paths ---- */

/* Those that are not connected yet are called, and are of use when they have answered. */
static int rc_ways(struct msg_ep *ep, uint32_t peer, struct msg_paths *paths)
{
	uint32_t most = msg_ways_most(&ep->dev->ports), i;
	struct msg_conn *c;
	int err = choose(ep, peer, NULL, &c);

	if (err)
		return err;
	most = most < paths->conf.paths ? most : paths->conf.paths;
	for (i = 0; i < most; i++) {
		c = msg_conn_get(ep, peer, i);
		if (!c)
			break;
		paths->way[i] = c;
		if (!c->up && !c->broken)
			msg_call(ep, c);
	}
	paths->conf.paths = i;
	if (paths->conf.batch > i)
		paths->conf.batch = i;
	if (i > 1)
		return 0;
	return most > 1 ? -ENOMEM : -EOPNOTSUPP;
}

static bool rc_way_up(const void *way)
{
	return ((const struct msg_conn *)way)->up;
}

static uint32_t rc_way_name(const void *way)
{
	return ((const struct msg_conn *)way)->other;
}

static bool rc_way_lost(struct msg_ep *ep, uint32_t peer, uint32_t name, struct msg_via *via)
{
	struct msg_conn *c = msg_conn_find(ep, name);

	if (!c || c->peer != peer)
		return false;
	msg_conn_failed(ep, c);
	*via = (struct msg_via){c->path, c->epoch};
	return true;
}

static struct msg_via rc_via(const struct msg_ep *ep, const struct ibv_wc *wc)
{
	const struct msg_conn *c = msg_conn_find(ep, wc->qp_num);

	return (struct msg_via){c->path, c->epoch};
}

/* ---- completions ---- */

static bool rc_completed(struct msg_ep *ep, const struct ibv_wc *wc)
{
	bool ours = (wc->wr_id & MSG_WR_MASK) != MSG_WR_RX;
	struct msg_conn *c;

	if (wc->qp_num == ep->qp->qp_num) {
		msg_call_completed(ep, wc);
		return true;
	}
	if (ours)
		ep->rc->left++;
	c = msg_conn_find(ep, wc->qp_num);
	if (!c)
		return false;
	if (ours)
		c->posted--;
	if (wc->status != IBV_WC_SUCCESS)
		msg_conn_failed(ep, c);
	else if (!ours && !c->up && !c->broken)
		msg_call_up(ep, c);
	return false;
}

static int rc_tick(struct msg_ep *ep)
{
	uint64_t now;
	int n;

	if (list_empty(&ep->rc->calling) && list_empty(&ep->rc->broken))
		return 0;
	now = util_now_ns();
	n = msg_call_tick(ep, now);
	msg_conn_tick(ep, now);
	return n;
}

static uint32_t rc_source(struct msg_ep *ep, const struct ibv_wc *wc, const struct msg_pkt *p)
{
	struct msg_conn *c = msg_conn_find(ep, wc->qp_num);

	(void)p;
	return c ? c->peer : UINT32_MAX;
}

static bool rc_is_from(const struct msg_ep *ep, const struct ibv_wc *wc, uint32_t peer)
{
	const struct msg_conn *c = msg_conn_find(ep, wc->qp_num);

	return c && c->peer == peer;
}

const struct msg_port msg_port_rc = {
	.open = rc_open,
	.close = rc_close,
	.post = rc_post,
	.post_recv = rc_post_recv,
	.ways = rc_ways,
	.way_up = rc_way_up,
	.way_name = rc_way_name,
	.way_lost = rc_way_lost,
	.via = rc_via,
	.settled = rc_settled,
	.completed = rc_completed,
	.tick = rc_tick,
	.source = rc_source,
	.is_from = rc_is_from,
	.connected = true,
};
