/* RD: messages out, and what becomes of them.
 *
 * A message is numbered when it is queued, or when its turn comes (may_number): its packets have
 * consecutive numbers of their lane, so the number of a packet says which message it is of and at
 * which offset. Messages of a lane are in order of numbers on lane->msgs until all of their packets
 * are acknowledged; those with something to send are on the list of their path as well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "util_log.h"
#include "wire_crc32c.h"
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "rnic_rd_shm.h"
#include "rnic_table.h"

/* Numbers that may be given ahead of what is acknowledged; comparisons need 2^31. */
#define AHEAD (UINT32_C(1) << 29)
/* How often a peer that has no receive is asked again, in case its word was lost. */
#define RNR_PROBE_NS (50 * UTIL_NS_PER_MS)
/* A request of one packet up to this length is sent although the window is full, as long as no more
 * than so much is beyond it. */
#define BRIEF        1024
#define BRIEF_BEYOND 8192
/* A machine that says that nobody listens is believed after this long. */
#define REFUSED_NS UTIL_NS_PER_S

/* ---- sending ---- */

/* Whether the next message may have its numbers. One that has may be sent as soon as its path
 * allows, before others that come first but go another way; so what holds back requests in the
 * order of posting, the limit of reads and the fence, belongs here. Were a read sent that one
 * before it has to wait for, neither would end. */
static bool may_number(const struct rnic_rd_peer *peer, const struct rnic_rd_msg *m)
{
	const struct rnic_rd_lane *lane = &peer->lane[m->lane];

	if (lane->next - lane->board.una >= AHEAD)
		return false;
	if (m->lane == RNIC_RD_RSP)
		return true;
	if (rnic_rd_is_read(m) && peer->reads >= RNIC_RD_READS)
		return false;
	return !peer->reads || !(rnic_rd_swqe(m)->flags & IBV_SEND_FENCE);
}

static void number(struct rnic_rd_peer *peer, struct rnic_rd_msg *m)
{
	struct rnic_rd_lane *lane = &peer->lane[m->lane];

	m->first = lane->next;
	lane->next += m->n;
	m->numbered = true;
	peer->reads += rnic_rd_is_read(m);
	list_add_tail(&m->tx, &m->path->tx[m->lane]);
}

void rnic_rd_number(struct rnic_rd_peer *peer, unsigned int l)
{
	struct rnic_rd_lane *lane = peer->lane ? &peer->lane[l] : NULL;
	struct rnic_rd_msg *m;

	if (!lane || !lane->held)
		return;
	lane->held = false;
	list_for_each (m, &lane->msgs, link) {
		if (m->numbered)
			continue;
		if (!may_number(peer, m)) {
			lane->held = true;
			return;
		}
		number(peer, m);
	}
}

void rnic_rd_send(struct rnic_rd_peer *peer, struct rnic_rd_msg *m)
{
	struct rnic_rd_lane *lane = &peer->lane[m->lane];
	uint32_t room = peer->mtu - WIRE_RD_HDR - WIRE_UNTAGGED_HDR;

	m->seg = room;
	if (m->kind == RNIC_RD_SEND || m->kind == RNIC_RD_WRITE || m->kind == RNIC_RD_WRITE_IMM ||
	    m->kind == RNIC_RD_READ_RSP) {
		if (m->kind != RNIC_RD_SEND)
			m->seg += WIRE_UNTAGGED_HDR - WIRE_TAGGED_HDR;
		m->n = m->length ? (uint32_t)(((uint64_t)m->length + m->seg - 1) / m->seg) : 1;
	}
	if (m->kind == RNIC_RD_WRITE_IMM)
		m->n++;
	list_init(&m->tx);
	if (rnic_rd_shm_up(peer)) {
		rnic_rd_shm_send(peer, m);
		return;
	}
	if (rnic_rd_takes_receive(m))
		m->ssn = peer->ssn++;
	list_add_tail(&m->link, &lane->msgs);
	if (lane->held || !may_number(peer, m))
		lane->held = true;
	else
		number(peer, m);
}

/* The message that a number is of. */
static struct rnic_rd_msg *find(struct rnic_rd_lane *lane, uint32_t psn)
{
	struct rnic_rd_msg *m;

	list_for_each (m, &lane->msgs, link)
		if (m->numbered && psn - m->first < m->n)
			return m;
	return NULL;
}

static bool may_start(const struct rnic_rd_peer *peer, const struct rnic_rd_msg *m)
{
	if (m->lane == RNIC_RD_RSP || m->skip)
		return true;
	/* What comes by a faster path has to wait for what comes by a slower one, and takes a
	 * receive meanwhile. The peer keeps so many, and would drop the rest. */
	if (rnic_rd_takes_receive(m) && m->ssn - peer->ssn_una >= RNIC_RD_HOLDS)
		return false;
	return !peer->rnr || rd_seq_before(m->first, rnic_rd_awake(peer)->rnr_psn);
}

/* The next packet of a lane that has not been sent yet, or has been taken back. */
static struct rnic_rd_msg *fresh_of(struct rnic_rd_path *path, unsigned int l, uint32_t *i)
{
	struct rnic_rd_peer *peer = path->peer;
	struct rnic_rd_lane *lane = &peer->lane[l];
	struct rnic_rd_msg *m;

	while ((m = list_first(&path->tx[l], struct rnic_rd_msg, tx))) {
		while (m->sent < m->n && m->begun &&
		       rd_board_acked(&lane->board, m->first + m->sent))
			m->sent++;
		if (m->sent < m->n)
			break;
		list_del(&m->tx);
	}
	if (!m || !may_start(peer, m) || !rd_board_fits(&lane->board, m->first + m->sent))
		return NULL;
	*i = m->sent;
	return m;
}

/* Lanes take turns: the request for data that could come in does not wait until all the data is out
 * that we were asked for. */
static struct rnic_rd_msg *fresh(struct rnic_rd_path *path, uint32_t *i)
{
	struct rnic_rd_msg *m = NULL;

	for (unsigned int k = 1; k <= WIRE_RD_LANES && !m; k++)
		m = fresh_of(path, (path->last_lane + k) % WIRE_RD_LANES, i);
	return m;
}

static void began(struct rnic_rd_peer *peer, struct rnic_rd_msg *m, uint64_t now)
{
	if (m->begun)
		return;
	m->begun = now;
	if (rnic_rd_is_read(m))
		rnic_rd_watch(peer, now);
}

/* Whether another packet follows this one at once. */
static bool more(const struct rnic_rd_path *path, const struct rnic_rd_msg *m, uint32_t i)
{
	if (rd_cc_room(&path->p.cc) < path->p.cc.mss)
		return false;
	return i + 1 < m->n || rd_path_lost(&path->p) || m->tx.next != &path->tx[m->lane] ||
	       !list_empty(&path->tx[!m->lane]);
}

/* Whether a lost packet goes before a fresh one. Within a lane the lower number does: a receiver
 * that can not take the higher one now would otherwise be sent it for ever, instead of what it
 * waits for. */
static bool first_is_lost(struct rnic_rd_peer *peer, const struct rnic_rd_msg *m, uint32_t i,
			  const struct rd_sent *lost)
{
	return lost->board != &peer->lane[m->lane].board || rd_seq_before(lost->psn, m->first + i);
}

/* len: with RNIC_RD_OVERHEAD. */
static int send_packet(struct rnic_rd_path *path, struct rnic_rd_msg *m, uint32_t i, bool lost,
		       size_t len, uint64_t now)
{
	struct rnic_rd_peer *peer = path->peer;

	if (rd_board_send(&peer->lane[m->lane].board, &path->p, m->first + i, (uint32_t)len, now))
		return -ENOMEM;
	peer->rd->stats.resent += lost;
	path->last_lane = m->lane;
	if (!lost)
		m->sent = i + 1;
	began(peer, m, now);
	rnic_rd_io_put(path, rnic_rd_build(peer, m, i, !more(path, m, i),
					   rnic_rd_io_room(path, peer->mtu)));
	return (int)len;
}

int rnic_rd_send_one(struct rnic_rd_path *path, uint64_t now)
{
	struct rnic_rd_peer *peer = path->peer;
	struct rd_sent *lost = rd_path_lost(&path->p);
	struct rnic_rd_msg *m;
	size_t len;
	uint32_t i;

	m = fresh(path, &i);
	if (lost && (!m || first_is_lost(peer, m, i, lost))) {
		m = find(container_of(lost->board, struct rnic_rd_lane, board), lost->psn);
		i = m ? lost->psn - m->first : 0;
	} else {
		lost = NULL;
	}
	if (!m)
		return 0;
	len = rnic_rd_packet_len(m, i) + RNIC_RD_OVERHEAD;
	if (len > rd_cc_room(&path->p.cc)) {
		path->p.limited = true;
		return 0;
	}
	return send_packet(path, m, i, lost, len, now);
}

int rnic_rd_send_brief(struct rnic_rd_path *path, uint64_t now)
{
	const struct rd_cc *cc = &path->p.cc;
	uint32_t i;
	struct rnic_rd_msg *m;
	size_t len;

	/* What is lost goes first. */
	if (rd_path_lost(&path->p) || cc->flight >= cc->window + BRIEF_BEYOND)
		return 0;
	m = fresh_of(path, RNIC_RD_REQ, &i);
	if (!m || m->n > 1)
		return 0;
	len = rnic_rd_packet_len(m, i) + RNIC_RD_OVERHEAD;
	return len <= BRIEF ? send_packet(path, m, i, false, len, now) : 0;
}

static uint32_t expected(const struct rnic_rd_peer *peer, int lane)
{
	return peer->lane ? peer->lane[lane].rx.next : peer->next[lane].rx;
}

void rnic_rd_control(struct rnic_rd_peer *peer, struct rnic_rd_path *path, enum wire_rd_type type,
		     uint32_t psn, const void *body, size_t len)
{
	struct wire_rd h = {.type = (uint8_t)type,
			    .id = peer->remote_id,
			    .psn = psn,
			    .ack = {expected(peer, 0), expected(peer, 1)}};
	struct sockaddr_in to = rnic_rd_place(path);
	uint8_t buf[WIRE_RD_HDR + 16];

	wire_rd_encode(&h, buf);
	if (len)
		memcpy(buf + WIRE_RD_HDR, body, len);
	wire_rd_seal(buf, WIRE_RD_HDR + len);
	rnic_rd_io_send(path->sock, &to, path->sgid, buf, WIRE_RD_HDR + len);
}

void rnic_rd_ack_out(struct rnic_rd_peer *peer, unsigned int lane)
{
	struct rnic_rd_path *path = peer->reply;
	uint64_t words[WIRE_RD_SACK_MAX];
	uint8_t buf[WIRE_RD_HDR + sizeof(words)];
	struct wire_rd h = {.type = WIRE_RD_ACK,
			    .flags = lane ? WIRE_RD_RESPONSE : 0,
			    .id = peer->remote_id,
			    .ack = {peer->lane[0].rx.next, peer->lane[1].rx.next}};
	struct sockaddr_in to;
	size_t len;

	peer->owe[lane] = false;
	if (!peer->lane[!lane].rx.beyond)
		peer->owe[!lane] = false; /* it is in the header */
	if (!path || !peer->remote_id)
		return;
	to = rnic_rd_place(path);
	h.count = (uint8_t)rd_rx_sack(&peer->lane[lane].rx, words, WIRE_RD_SACK_MAX);
	len = wire_rd_encode(&h, buf);
	len += wire_rd_sack_encode(words, h.count, buf + len);
	wire_rd_seal(buf, len);
	rnic_rd_io_send(path->sock, &to, path->sgid, buf, len);
}

/* ---- acknowledgements ---- */

static void finished(struct rnic_rd_peer *peer, struct rnic_rd_msg *m)
{
	struct rnic_rd_req *r;

	list_del(&m->link);
	list_del(&m->tx);
	if (m->lane == RNIC_RD_RSP) {
		peer->n_jobs--;
		free(m);
		return;
	}
	r = rnic_rd_req(m);
	m->executed = true;
	if (rnic_rd_takes_receive(m))
		peer->ssn_una = m->ssn + 1;
	if (!r->handle || r->answered || r->status)
		rnic_rd_complete(r);
	else
		list_add_tail(&m->link, &peer->unanswered);
}

/* A request is complete when its peer has executed it, which it does in order: when what was sent
 * before it has arrived, too. How long its path took is known already. Of a write there is nothing
 * to be executed but that it is placed, and that is done: who writes over several paths hears of a
 * fast one while a slow one is under way. One without data stands for what is before it. */
static void arrived(struct rnic_rd_peer *peer, struct rnic_rd_msg *m)
{
	struct rnic_rd_req *r = rnic_rd_req(m);

	if (m->arrived)
		return;
	m->arrived = true;
	list_del(&m->tx);
	if (rnic_rd_awake(peer)->rnr_msg == m)
		rnic_rd_awake(peer)->rnr_msg = NULL;
	if (!r->handle && !r->status)
		rnic_rd_learn(r);
	if (m->kind == RNIC_RD_WRITE && m->length)
		finished(peer, m);
}

static void finish_requests(struct rnic_rd_peer *peer)
{
	struct rnic_rd_lane *lane = &peer->lane[RNIC_RD_REQ];
	struct rnic_rd_msg *m;

	while ((m = list_first(&lane->msgs, struct rnic_rd_msg, link)) && m->arrived)
		finished(peer, m);
}

struct ack_walk {
	struct rnic_rd_lane *lane;
	struct rnic_rd_msg *m;
};

static void on_acked(void *arg, uint32_t psn)
{
	struct ack_walk *w = arg;

	while (&w->m->link != &w->lane->msgs && psn - w->m->first >= w->m->n)
		w->m = list_entry(w->m->link.next, struct rnic_rd_msg, link);
	if (&w->m->link != &w->lane->msgs)
		w->m->acked++;
}

void rnic_rd_ack_in(struct rnic_rd_peer *peer, unsigned int l, uint32_t next, const uint64_t *sack,
		    unsigned int n)
{
	struct rnic_rd_lane *lane = &peer->lane[l];
	struct ack_walk w = {lane, list_entry(lane->msgs.next, struct rnic_rd_msg, link)};
	struct rnic_rd_msg *m, *tmp;
	int got;

	if (!n && next == lane->board.una)
		return;
	got = rd_board_ack(&lane->board, next, sack, n, rnic_rd_now(peer->rd), on_acked, &w);
	if (got < 0)
		peer->rd->stats.foreign++;
	if (got <= 0)
		return;
	list_for_each_safe (m, tmp, &lane->msgs, link) {
		bool end = m == w.m;

		if (m->acked == m->n && l == RNIC_RD_REQ)
			arrived(peer, m);
		else if (m->acked == m->n)
			finished(peer, m);
		if (end)
			break;
	}
	finish_requests(peer);
	rnic_rd_number(peer, l);
	if (l == RNIC_RD_RSP)
		rnic_rd_events(peer); /* a read may have waited for one to end */
}

/* ---- refusals ---- */

/* Among those that wait, in order of numbers. */
static void requeue(struct rnic_rd_msg *m)
{
	struct list_head *head = &m->path->tx[m->lane];
	struct rnic_rd_msg *x;

	if (!m->numbered || m->arrived || !list_empty(&m->tx))
		return;
	list_for_each (x, head, tx)
		if (rd_seq_before(m->first, x->first))
			break;
	list_add_tail(&m->tx, &x->tx); /* before x, or last */
}

void rnic_rd_skip(struct rnic_rd_peer *peer, struct rnic_rd_msg *m)
{
	m->skip = true;
	m->sent = 0;
	if (m->numbered)
		rd_board_recall(&peer->lane[m->lane].board, m->first, m->n);
	requeue(m);
}

/* Requests from m on are taken back. */
static void rewind_to(struct rnic_rd_peer *peer, struct rnic_rd_msg *m)
{
	struct rnic_rd_lane *lane = &peer->lane[RNIC_RD_REQ];

	rd_board_recall(&lane->board, m->first, lane->board.high - m->first);
	for (; &m->link != &lane->msgs; m = list_entry(m->link.next, struct rnic_rd_msg, link)) {
		if (!m->numbered || !m->begun || m->arrived)
			continue;
		m->sent = 0;
		requeue(m);
	}
}

static void rnr_in(struct rnic_rd_peer *peer, struct rnic_rd_msg *m, uint8_t code)
{
	struct rnic_rd_req *r = rnic_rd_req(m);
	uint8_t retry = peer->rd->rnr_retry;
	uint64_t now = util_now_ns(), wait = rnic_rnr_ns(code);

	/* Of several paths, the one with the earliest message may come last. */
	if (m->skip || (peer->rnr && !rd_seq_before(m->first, rnic_rd_awake(peer)->rnr_psn)))
		return;
	peer->rd->stats.rnr_received++;
	if (rnic_rd_awake(peer)->rnr_msg != m) {
		rnic_rd_awake(peer)->rnr_msg = m;
		rnic_rd_awake(peer)->rnr_deadline = retry >= 7 ? UINT64_MAX : now + retry * wait;
	}
	if (now >= rnic_rd_awake(peer)->rnr_deadline) {
		r->status = IBV_WC_RNR_RETRY_EXC_ERR;
		rnic_rd_awake(peer)->rnr_msg = NULL;
		rnic_rd_skip(peer, m);
		return;
	}
	peer->rnr = true;
	rnic_rd_awake(peer)->rnr_psn = m->first;
	rnic_rd_awake(peer)->rnr_until = now + RNR_PROBE_NS;
	if (rnic_rd_awake(peer)->rnr_until > rnic_rd_awake(peer)->rnr_deadline)
		rnic_rd_awake(peer)->rnr_until = rnic_rd_awake(peer)->rnr_deadline;
	rewind_to(peer, m);
	rnic_rd_watch(peer, now);
}

void rnic_rd_nak_in(struct rnic_rd_peer *peer, uint32_t psn, const struct wire_rd_nak *nak)
{
	struct rnic_rd_lane *lane = &peer->lane[RNIC_RD_REQ];
	struct rnic_rd_msg *m = find(lane, psn);

	if (nak->reason == WIRE_RD_READY) {
		peer->rnr = false;
		return;
	}
	/* Reads are answered, never refused this way. */
	if (!m || !m->begun || m->skip || rnic_rd_is_read(m) || rd_board_acked(&lane->board, psn))
		return; /* old news */
	if (nak->reason == WIRE_RD_RNR) {
		rnr_in(peer, m, nak->arg);
		return;
	}
	rnic_rd_req(m)->status = (uint8_t)rnic_rd_status(nak->reason);
	rnic_rd_skip(peer, m);
}

/* ---- time ---- */

void rnic_rd_path_arm(struct rnic_rd_path *path)
{
	uint64_t at = rd_path_deadline(&path->p);

	/* One that fires too early arms itself again: cheaper than moving it each time. */
	if (at != UINT64_MAX && (path->timer.slot < 0 || at < path->timer.at))
		rnic_timer_arm(path->rd->e, &path->timer, at);
}

/* The path of the peer that has been silent least, if that is another one. */
static struct rnic_rd_path *better(const struct rnic_rd_path *path)
{
	struct rnic_rd_path *x, *best = NULL;

	list_for_each (x, &path->peer->paths, link)
		if (x->state == RNIC_RD_PATH_UP && x->p.backoff < path->p.backoff &&
		    (!best || x->p.backoff < best->p.backoff))
			best = x;
	return best;
}

/* A silent path gives all that it has to another one. What is posted to it later tells when it is
 * back. */
static void rescue(struct rnic_rd_path *path, uint64_t now)
{
	struct rnic_rd_path *to = better(path);

	if (!to)
		return;
	rd_path_move(&path->p, &to->p);
	for (int l = 0; l < WIRE_RD_LANES; l++) {
		struct rnic_rd_msg *m, *tmp;

		list_for_each_safe (m, tmp, &path->tx[l], tx) {
			list_del(&m->tx);
			m->path = to;
			requeue(m);
		}
	}
	rnic_rd_turn(to, now);
}

void rnic_rd_path_fire(struct rnic_timer *t, uint64_t now)
{
	struct rnic_rd_path *path = container_of(t, struct rnic_rd_path, timer);
	struct rnic_rd_peer *peer = path->peer;

	if (path->state != RNIC_RD_PATH_UP) {
		rnic_rd_contact_fire(path, now);
		return;
	}
	if (rnic_rd_check_alive(peer, now))
		return; /* it is not, and gone */
	if (rd_path_expire(&path->p, now)) {
		if (rd_path_silent(&path->p))
			rescue(path, now);
		rnic_rd_turn(path, now);
	}
	rnic_rd_path_arm(path);
}

bool rnic_rd_expects(const struct rnic_rd_peer *peer)
{
	return peer->reads || peer->rnr || peer->n_holds || peer->n_events ||
	       (peer->lane &&
		(!list_empty(&peer->lane[0].msgs) || !list_empty(&peer->lane[1].msgs)));
}

/* A program hears of it as some error or other, and can not know why. */
static void silent(struct rnic_rd_peer *peer)
{
	static atomic_bool told;

	util_log_once(&told, UTIL_LOG_WARN,
		      "RD: no answer from %s for %" PRIu64 " ms (WEFT_RD_TIMEOUT): given up "
		      "(further ones are told with WEFT_LOG=info)",
		      inet_ntoa(peer->addr), peer->rd->timeout / UTIL_NS_PER_MS);
	rnic_rd_peer_dead(peer, IBV_WC_RETRY_EXC_ERR, "it does not answer");
}

bool rnic_rd_check_alive(struct rnic_rd_peer *peer, uint64_t now)
{
	uint64_t since = peer->heard > peer->waiting ? peer->heard : peer->waiting;

	/* Of a process on this host the kernel tells. */
	if (!rnic_rd_expects(peer) || rnic_rd_shm_up(peer)) {
		peer->waiting = 0;
		return false;
	}
	if (!peer->waiting)
		peer->waiting = since = now;
	if (now > since && now - since > peer->rd->timeout) {
		silent(peer);
		return true;
	}
	if (peer->refused && now - peer->refused > REFUSED_NS) {
		rnic_rd_peer_dead(peer, IBV_WC_RETRY_EXC_ERR, "nobody listens there any more");
		return true;
	}
	return false;
}
