/* RD: packets in: whose they are, acknowledgements, responses; and the end of a batch. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "util_log.h"
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "rnic_rd_shm.h"
#include "rnic_table.h"

/* RESETs in a second, at most: strangers shall not make us talk. */
#define RESETS_PER_S 1000
/* RESETs that are looked at in a second, at most. */
#define RESETS_HEARD_PER_S 200
/* How often a silent peer is asked whether it lives. */
#define PROBE_NS (250 * UTIL_NS_PER_MS)

/* ---- responses ---- */

static void answered(struct rnic_rd_peer *peer, struct rnic_rd_req *r, enum ibv_wc_status status)
{
	rnic_table_del(peer->rd->handles, r->handle);
	r->answered = true;
	if (status && !r->status)
		r->status = (uint8_t)status;
	peer->reads--;
	rnic_rd_number(peer, RNIC_RD_REQ);
	/* Else when that is known of all before it, too: until then it has its place among them. */
	if (r->msg.executed) {
		list_del(&r->msg.link);
		rnic_rd_complete(r);
	}
}

/* A request of this peer that waits for a response of this kind. */
static struct rnic_rd_req *by_handle(struct rnic_rd_peer *peer, uint32_t handle, int kind)
{
	struct rnic_rd_req *r = rnic_table_get(peer->rd->handles, handle);

	if (!r || !r->msg.begun || r->msg.path->peer != peer)
		return NULL;
	return kind < 0 || r->msg.kind == kind ? r : NULL;
}

struct rnic_rd_req *rnic_rd_reader(struct rnic_rd_peer *peer, uint32_t handle)
{
	return by_handle(peer, handle, RNIC_RD_READ);
}

void rnic_rd_got_data(struct rnic_rd_peer *peer, uint32_t handle, uint64_t off,
		      const uint8_t *payload, size_t len, bool all)
{
	struct rnic_rd_req *r = by_handle(peer, handle, RNIC_RD_READ);
	struct rnic_swqe *w;

	if (!r)
		return;
	w = rnic_rd_swqe(&r->msg);
	if (off > w->length || len > w->length - off) {
		answered(peer, r, IBV_WC_BAD_RESP_ERR);
		return;
	}
	if (len && rnic_mem_scatter(peer->rd->e, peer->rd->qp->ibv.pd, w->sge, w->num_sge, off,
				    payload, (uint32_t)len)) {
		answered(peer, r, IBV_WC_LOC_PROT_ERR);
		return;
	}
	r->got += (uint32_t)len;
	if (r->got >= w->length || all)
		answered(peer, r, IBV_WC_SUCCESS);
}

void rnic_rd_got_value(struct rnic_rd_peer *peer, uint32_t handle, uint64_t value)
{
	struct rnic_rd_req *r = by_handle(peer, handle, RNIC_RD_ATOMIC);
	struct rnic_swqe *w;

	if (!r)
		return;
	w = rnic_rd_swqe(&r->msg);
	answered(peer, r,
		 rnic_mem_scatter(peer->rd->e, peer->rd->qp->ibv.pd, w->sge, w->num_sge, 0, &value,
				  sizeof(value))
			 ? IBV_WC_LOC_PROT_ERR
			 : IBV_WC_SUCCESS);
}

void rnic_rd_got_error(struct rnic_rd_peer *peer, uint32_t handle, uint8_t reason)
{
	struct rnic_rd_req *r = by_handle(peer, handle, -1);

	if (r)
		answered(peer, r,
			 reason >= WIRE_RD_ACCESS && reason <= WIRE_RD_OPERATION
				 ? rnic_rd_status(reason)
				 : IBV_WC_BAD_RESP_ERR);
}

void rnic_rd_read_failed(struct rnic_rd_peer *peer, uint32_t handle, enum ibv_wc_status status)
{
	struct rnic_rd_req *r = by_handle(peer, handle, RNIC_RD_READ);

	if (r)
		answered(peer, r, status);
}

/* What nobody waits for any more is ignored, but counts as received. */
static void response_in(struct rnic_rd_peer *peer, const struct wire_seg *seg,
			const uint8_t *payload, size_t len)
{
	struct wire_atomic_resp a;
	struct wire_rd_error e;

	switch (seg->opcode) {
	case WIRE_OP_READ_RESP:
		rnic_rd_got_data(peer, seg->stag, seg->to, payload, len, false);
		break;
	case WIRE_OP_ATOMIC_RESP:
		if (!wire_atomic_resp_decode(&a, payload, len))
			rnic_rd_got_value(peer, a.id, a.value);
		break;
	default:
		if (!wire_rd_error_decode(&e, payload, len))
			rnic_rd_got_error(peer, e.handle, e.reason);
		break;
	}
}

/* ---- packets ---- */

static void note(struct rnic_rd_peer *peer, unsigned int lane, size_t len, bool ask)
{
	peer->owe[lane] = true;
	peer->unacked += (uint32_t)len;
	peer->asked |= ask;
}

static void data_in(struct rnic_rd_peer *peer, const struct wire_rd *h, const uint8_t *body,
		    size_t len)
{
	unsigned int l = h->flags & WIRE_RD_RESPONSE ? RNIC_RD_RSP : RNIC_RD_REQ;
	struct rnic_rd_lane *lane = &peer->lane[l];
	enum rd_seen seen = rd_rx_look(&lane->rx, h->psn);
	struct wire_seg seg;
	int hdr = 0;

	if (seen == RD_OLD) {
		peer->rd->stats.duplicates++;
		peer->urgent = true;
	}
	note(peer, l, len, h->flags & WIRE_RD_ASK);
	peer->data_at = peer->rd->e->now;
	if (seen != RD_NEW)
		return;
	if (h->psn != lane->rx.next) {
		peer->rd->stats.out_of_order++;
		peer->urgent = true;
	}
	if (h->flags & WIRE_RD_SKIP) {
		rnic_rd_skip_in(peer, h, body, len);
		return;
	}
	hdr = wire_rd_seg_decode(&seg, h, body, len);
	if (hdr < 0) {
		peer->rd->stats.foreign++;
		return;
	}
	if (l == RNIC_RD_REQ)
		rnic_rd_request_in(peer, h, &seg, body + hdr, len - (size_t)hdr);
	else if (!rd_rx_mark(&lane->rx, h->psn))
		response_in(peer, &seg, body + hdr, len - (size_t)hdr);
}

/* Of no pair. A peer of an earlier life learns that it talks to the dead; strangers do not
 * make us talk more than they do. */
static void stale(struct rnic_rd *rd, struct rnic_rd_sock *sock, const struct sockaddr_in *from,
		  uint8_t sgid, const struct wire_rd *in)
{
	struct wire_rd h = {.type = WIRE_RD_RESET, .id = in->id};
	uint8_t buf[WIRE_RD_HDR];
	uint64_t now = rd->e->now;

	rd->stats.stale++;
	if (in->type == WIRE_RD_RESET || in->type == WIRE_RD_BYE)
		return;
	if (now - rd->resets_at > UTIL_NS_PER_S) {
		rd->resets_at = now;
		rd->resets = 0;
	}
	if (rd->resets++ >= RESETS_PER_S)
		return;
	wire_rd_encode(&h, buf);
	wire_rd_seal(buf, sizeof(buf));
	rnic_rd_io_send(sock->fast ? rd->main : sock, from, sgid, buf, sizeof(buf));
}

/* Rare, so nothing is kept to find the peer by; and no more are looked at than a second can
 * have. Who is ignored says it again. */
static void reset_in(struct rnic_rd *rd, uint64_t id)
{
	struct rnic_rd_peer *peer;

	if (rd->e->now - rd->heard_resets_at > UTIL_NS_PER_S) {
		rd->heard_resets_at = rd->e->now;
		rd->heard_resets = 0;
	}
	if (rd->heard_resets++ >= RESETS_HEARD_PER_S)
		return;
	list_for_each (peer, &rd->peers, link)
		if (peer->remote_id == id && id) {
			rnic_rd_peer_dead(peer, IBV_WC_REM_ABORT_ERR,
					  "it does not know us any more");
			return;
		}
	rd->stats.stale++;
}

static void ack_packet(struct rnic_rd_peer *peer, const struct wire_rd *h, const uint8_t *body)
{
	uint64_t words[WIRE_RD_SACK_MAX];
	unsigned int lane = h->flags & WIRE_RD_RESPONSE ? RNIC_RD_RSP : RNIC_RD_REQ;

	wire_rd_sack_decode(words, h->count, body);
	rnic_rd_ack_in(peer, lane, h->ack[lane], words, h->count);
	rnic_rd_ack_in(peer, !lane, h->ack[!lane], NULL, 0);
}

static void pair_packet(struct rnic_rd_peer *peer, const struct wire_rd *h, const uint8_t *body,
			size_t len)
{
	struct wire_rd_nak nak;

	if (h->type == WIRE_RD_ACK) {
		ack_packet(peer, h, body);
		return;
	}
	for (unsigned int l = 0; l < WIRE_RD_LANES; l++)
		rnic_rd_ack_in(peer, l, h->ack[l], NULL, 0);
	switch (h->type) {
	case WIRE_RD_DATA:
		data_in(peer, h, body, len);
		break;
	case WIRE_RD_NAK:
		if (!wire_rd_nak_decode(&nak, body, len))
			rnic_rd_nak_in(peer, h->psn, &nak);
		break;
	case WIRE_RD_PROBE:
		peer->owe[0] = true;
		peer->urgent = true;
		break;
	default:
		break;
	}
}

void rnic_rd_packet(struct rnic_rd *rd, struct rnic_rd_sock *sock, const struct sockaddr_in *from,
		    uint8_t sgid, const uint8_t *data, size_t len)
{
	struct rnic_rd_peer *peer;
	struct wire_rd h;
	int hdr;

	if (rd->qp->ibv.state < IBV_QPS_RTR || rd->qp->ibv.state == IBV_QPS_ERR)
		return; /* not listening */
	rd->stats.received++;
	hdr = wire_rd_decode(&h, data, len);
	if (hdr < 0) {
		rd->stats.damaged += hdr == -EBADMSG;
		rd->stats.foreign += hdr != -EBADMSG;
		return;
	}
	if (h.type <= WIRE_RD_REFUSE) {
		rnic_rd_hello(rd, sock, from, sgid, &h, data + hdr);
		return;
	}
	if (h.type == WIRE_RD_RESET) {
		reset_in(rd, h.id);
		return;
	}
	peer = rnic_table_get(rd->ids, (uint32_t)h.id);
	if (!peer || peer->local_id != h.id || !peer->remote_id) {
		if (!peer || peer->local_id != h.id)
			stale(rd, sock, from, sgid, &h);
		return; /* or it is early: its ACCEPT is still on the way */
	}
	if (h.type == WIRE_RD_BYE) {
		/* It has executed what it acknowledges, and will not say so again. */
		for (unsigned int l = 0; peer->lane && l < WIRE_RD_LANES; l++)
			rnic_rd_ack_in(peer, l, h.ack[l], NULL, 0);
		rnic_rd_peer_dead(peer, IBV_WC_REM_ABORT_ERR, "it said good-bye");
		return;
	}
	if (!rnic_rd_peer_wake(peer))
		return;
	peer->heard = rd->e->now;
	peer->spoke = true;
	peer->refused = 0;
	peer->reply = rnic_rd_path_seen(peer, sock, from, sgid);
	rnic_rd_touch(peer);
	pair_packet(peer, &h, data + hdr, len - (size_t)hdr);
}

/* ---- the end of a batch ---- */

static void settle_acks(struct rnic_rd_peer *peer, uint64_t now)
{
	uint32_t many = peer->rd->room / 16;

	if (!peer->owe[0] && !peer->owe[1])
		return;
	if (peer->urgent || peer->unacked > many) {
		rnic_rd_due(rnic_rd_due_of(peer));
		return;
	}
	rnic_rd_due_of(peer)->busy = !peer->asked;
	rnic_due_add(peer->rd->e, rnic_rd_due_of(peer), now);
}

void rnic_rd_settle(struct rnic_rd *rd)
{
	struct rnic_rd_peer *peer;

	while ((peer = list_first(&rd->touched, struct rnic_rd_peer, touched))) {
		struct rnic_rd_path *path;
		uint64_t now;

		list_del(&peer->touched);
		peer->naked = false;
		if (rnic_rd_shm_open_only(peer)) {
			rnic_rd_shm_pump(peer->shm);
			continue;
		}
		now = rnic_rd_now(rd);
		list_for_each (path, &peer->paths, link)
			rd_path_settle(&path->p, now);
		if (peer->rtt.samples)
			rd_rtt_sample(&rd->rtt, peer->rtt.smoothed);
		rnic_rd_pump(peer);
		settle_acks(peer, now);
		peer->asked = peer->urgent = false;
		if (peer->n_holds || peer->n_events)
			rnic_rd_watch(peer, now);
	}
	rnic_rd_peers_rest(rd);
}

void rnic_rd_due(struct rnic_due *d)
{
	struct rnic_rd_peer *peer = container_of(d, struct rnic_rd_awake, due)->peer;

	list_del(&d->link);
	peer->unacked = 0;
	if (rnic_rd_shm_up(peer))
		rnic_rd_shm_ack(peer->shm);
	for (unsigned int l = 0; l < WIRE_RD_LANES; l++)
		if (peer->owe[l])
			rnic_rd_ack_out(peer, l);
	rnic_rd_peers_rest(peer->rd);
}

/* ---- watching ---- */

void rnic_rd_watch(struct rnic_rd_peer *peer, uint64_t now)
{
	uint64_t at = now + PROBE_NS;

	if (!peer->waiting)
		peer->waiting = now;
	if (peer->rnr && rnic_rd_awake(peer)->rnr_until < at)
		at = rnic_rd_awake(peer)->rnr_until;
	if (peer->timer.slot < 0 || at < peer->timer.at)
		rnic_timer_arm(peer->rd->e, &peer->timer, at);
}

void rnic_rd_peer_fire(struct rnic_timer *t, uint64_t now)
{
	struct rnic_rd_peer *peer = container_of(t, struct rnic_rd_peer, timer);

	if (rnic_rd_check_alive(peer, now))
		return;
	/* A sender that lives would try again and again to bring what is missing. */
	if (peer->n_holds && now - peer->data_at > peer->rd->timeout) {
		rnic_rd_peer_dead(peer, IBV_WC_RETRY_EXC_ERR, "it does not end what it has begun");
		return;
	}
	if (peer->shm)
		rnic_rd_shm_expire(peer->shm, now);
	if (peer->rnr && now >= rnic_rd_awake(peer)->rnr_until) {
		peer->rnr = false;
		rnic_rd_pump(peer);
	}
	if (peer->n_events) { /* there may have been no memory for an answer */
		rnic_rd_events(peer);
		rnic_rd_pump(peer);
	}
	if (!peer->reads && !peer->rnr && !peer->n_holds && !peer->n_events)
		return;
	if (now > peer->heard && now - peer->heard > PROBE_NS / 2 && peer->reply)
		rnic_rd_control(peer, peer->reply, WIRE_RD_PROBE, 0, NULL, 0);
	rnic_rd_watch(peer, now);
}
