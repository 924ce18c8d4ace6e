/* Datagrams of endpoints that want to be connected, see msg_rc.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "msg_rc.h"

#define GRH   40
#define SLOT  128 /* a GRH and a datagram */
#define FIRST (5 * UTIL_NS_PER_MS)
#define LAST  (500 * UTIL_NS_PER_MS)
#define BEAT  (5 * UTIL_NS_PER_MS)

/* ---- sending ---- */

static uint8_t *slot(struct msg_rc *rc, uint32_t i)
{
	return rc->dgram + (size_t)i * SLOT;
}

/* What finds no room is lost, as any datagram may be. */
static void say(struct msg_ep *ep, struct msg_conn *c, enum msg_hello_type type)
{
	const struct msg_peer *p = &ep->peers[c->peer];
	struct msg_rc *rc = ep->rc;
	uint8_t *buf = slot(rc, MSG_RC_DGRAMS + rc->sent % MSG_RC_DGRAMS);
	struct msg_hello h = {.type = (uint8_t)type,
			      .mtu = ep->dev->mtu,
			      .reads = ep->dev->max_reads,
			      .path = c->path,
			      .from = msg_ep_addr(ep),
			      .qpn = c->qp->qp_num,
			      .psn = c->psn,
			      .other = c->other,
			      .token = p->flow->token,
			      .epoch = c->epoch,
			      .at = msg_way_port(&ep->dev->ports, c->path)->at};
	struct ibv_sge sge = {(uintptr_t)buf, MSG_HELLO_LEN, rc->dgram_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = MSG_RC_DGRAMS,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr = {.ud = {.ah = p->ah,
					       .remote_qpn = p->addr.qpn,
					       .remote_qkey = p->addr.qkey}}},
			   *bad;

	if (rc->sent - rc->gone == MSG_RC_DGRAMS)
		return;
	msg_hello_encode(&h, buf);
	if (!ibv_post_send(ep->qp, &wr, &bad))
		rc->sent++;
}

/* While somebody is being called, or is to be, whoever sleeps is woken again and again. */
void msg_call_timer(struct msg_rc *rc)
{
	long ns = list_empty(&rc->calling) && list_empty(&rc->broken) ? 0 : (long)BEAT;
	struct itimerspec t = {.it_value = {0, ns}, .it_interval = {0, ns}};

	if (rc->timer >= 0)
		timerfd_settime(rc->timer, 0, &t, NULL);
}

static void call_again(struct msg_ep *ep, struct msg_conn *c, uint64_t now)
{
	say(ep, c, MSG_HELLO_CALL);
	/* Many who call one should not go on doing so at the same time. */
	c->next = now + c->pause + (now ^ c->psn) % c->pause;
	c->pause = 2 * c->pause < LAST ? 2 * c->pause : LAST;
}

void msg_call(struct msg_ep *ep, struct msg_conn *c)
{
	struct msg_rc *rc = ep->rc;
	uint64_t now;

	if (!list_empty(&c->link))
		return;
	now = util_now_ns();
	c->pause = FIRST;
	c->end =
		now + (ep->conf.connect_ms ? ep->conf.connect_ms : MSG_CONNECT_MS) * UTIL_NS_PER_MS;
	list_add_tail(&c->link, &rc->calling);
	call_again(ep, c, now);
	if (list_last(&rc->calling, struct msg_conn, link) ==
	    list_first(&rc->calling, struct msg_conn, link))
		msg_call_timer(rc);
}

void msg_call_stop(struct msg_ep *ep, struct msg_conn *c)
{
	if (list_empty(&c->link))
		return;
	list_del(&c->link);
	if (list_empty(&ep->rc->calling))
		msg_call_timer(ep->rc);
}

void msg_call_up(struct msg_ep *ep, struct msg_conn *c)
{
	c->up = true;
	c->since = util_now_ns();
	msg_call_stop(ep, c);
	msg_path_up(ep, c->peer, c->path);
}

/* Where there are other paths, it is tried again later. */
static void unheard(struct msg_ep *ep, struct msg_conn *c)
{
	msg_call_stop(ep, c);
	if (!ep->peers[c->peer].dead && msg_conn_ready(ep, c->peer)) {
		msg_conn_failed(ep, c);
		return;
	}
	util_log(UTIL_LOG_INFO, "a peer does not answer");
	msg_peer_died(ep, c->peer);
}

int msg_call_tick(struct msg_ep *ep, uint64_t now)
{
	struct msg_conn *c, *tmp;
	int n = 0;

	list_for_each_safe (c, tmp, &ep->rc->calling, link) {
		if (ep->peers[c->peer].dead || now >= c->end) {
			unheard(ep, c);
			n++;
		} else if (now >= c->next) {
			call_again(ep, c, now);
		}
	}
	return n;
}

/* ---- receiving ---- */

/* The queue pair that a datagram is about, made if need be; NULL: it is not to be believed, or is
 * late. The first datagram of a peer brings its token, and is about path 0. */
static struct msg_conn *named(struct msg_ep *ep, uint32_t peer, const struct msg_hello *h)
{
	struct msg_flow *flow = ep->peers[peer].flow;
	struct msg_conn *c;
	int16_t later;

	if (flow->known ? h->token != flow->theirs : h->path || h->epoch)
		return NULL;
	c = msg_conn_get(ep, peer, h->path);
	if (!c)
		return NULL;
	later = (int16_t)(h->epoch - c->epoch);
	if (later > 0)
		msg_conn_outdated(ep, c, h->epoch); /* the call will be repeated */
	if (later || c->broken || (c->other && c->other != h->qpn) ||
	    (h->other && h->other != c->qp->qp_num))
		return NULL;
	flow->known = true;
	flow->theirs = h->token;
	return c;
}

static void heard(struct msg_ep *ep, const struct msg_hello *h)
{
	uint32_t peer = msg_peer_get(ep, &h->from);
	struct msg_conn *c;
	bool news;

	if (peer == UINT32_MAX || ep->peers[peer].dead)
		return;
	c = named(ep, peer, h);
	if (!c)
		return;
	if (!c->other) {
		int err = msg_conn_connect(ep, c, h);

		if (err) {
			util_log(UTIL_LOG_ERROR, "a peer can not be connected: %s", strerror(-err));
			msg_conn_failed(ep, c);
			return;
		}
		c->other = h->qpn;
	}
	news = !c->up && h->other;
	if (news)
		msg_call_up(ep, c);
	if (news || h->type == MSG_HELLO_CALL)
		say(ep, c, MSG_HELLO_ANSWER);
}

static void post_slot(struct msg_ep *ep, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)slot(ep->rc, i), SLOT, ep->rc->dgram_mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	if (ibv_post_recv(ep->qp, &wr, &bad))
		util_log(UTIL_LOG_ERROR, "a receive for datagrams can not be posted");
}

void msg_call_completed(struct msg_ep *ep, const struct ibv_wc *wc)
{
	struct msg_hello h;

	if (wc->wr_id >= MSG_RC_DGRAMS) {
		ep->rc->gone++;
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		return; /* the queue pair is broken, and takes no more of them */
	if (wc->byte_len >= GRH &&
	    !msg_hello_decode(&h, slot(ep->rc, (uint32_t)wc->wr_id) + GRH, wc->byte_len - GRH) &&
	    h.from.qpn == wc->src_qp)
		heard(ep, &h);
	else
		util_log(UTIL_LOG_INFO, "a datagram that makes no sense is ignored");
	post_slot(ep, (uint32_t)wc->wr_id);
}

/* ---- the queue pair ---- */

int msg_call_open(struct msg_ep *ep)
{
	struct msg_rc *rc = ep->rc;
	size_t len = 2 * MSG_RC_DGRAMS * SLOT;
	struct ibv_qp_init_attr attr = {.send_cq = ep->cq,
					.recv_cq = ep->cq,
					.qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = MSG_RC_DGRAMS,
						.max_recv_wr = MSG_RC_DGRAMS,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	int err;

	ep->qp = ibv_create_qp(ep->dev->pd, &attr);
	if (!ep->qp)
		return -errno;
	rc->dgram = aligned_alloc(64, len);
	if (!rc->dgram)
		return -ENOMEM;
	rc->dgram_mr = ibv_reg_mr_iova2(ep->dev->pd, rc->dgram, len, (uintptr_t)rc->dgram,
					IBV_ACCESS_LOCAL_WRITE);
	if (!rc->dgram_mr)
		return -errno;
	if (ep->conf.wait) {
		rc->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (rc->timer < 0)
			return -errno;
	}
	err = msg_start_qp(ep);
	for (uint32_t i = 0; i < MSG_RC_DGRAMS && !err; i++)
		post_slot(ep, i);
	return err;
}

void msg_call_close(struct msg_ep *ep)
{
	struct msg_rc *rc = ep->rc;

	if (ep->qp)
		ibv_destroy_qp(ep->qp);
	if (rc->dgram_mr)
		ibv_dereg_mr(rc->dgram_mr);
	if (rc->timer >= 0)
		close(rc->timer);
	free(rc->dgram);
}
