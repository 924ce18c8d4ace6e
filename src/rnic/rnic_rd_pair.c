/* RD: how two queue pairs find each other, and how they lose each other.
 *
 * An address handle names a place; who is there, nobody knows yet. The first work request to
 * a place sends an INIT there. The answer is a CHALLENGE: it tells the life of the queue pair that
 * listens there, and a cookie that proves, when it comes back in a second INIT, that we receive
 * what is sent to our address. Only then does the other side spend memory on us. A life that
 * is known already means that this is one more path to a peer that we have.
 *
 * Both sides may begin at the same time: each has one peer for one life, whichever message told
 * of it first, so they cannot end with two.
 */
#include <arpa/inet.h>
#include <errno.h>
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"
#include "util_siphash.h"
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "rnic_rd_shm.h"

/* The first INIT is repeated after this, then twice as late, and so on. */
#define CONTACT_NS     (10 * UTIL_NS_PER_MS)
#define CONTACT_MAX_NS (250 * UTIL_NS_PER_MS)
/* After so many of them, 1.8 s, somebody else is asked; and after as many again the first. */
#define ALONE 10
/* CHALLENGEs that are answered at once; who sends more is answered as if it were silent. */
#define CHALLENGES_MAX 8
/* How long a cookie is good, at least; twice that at most. */
#define COOKIE_NS (16 * UTIL_NS_PER_S)
/* How long a peer has to answer when somebody claims its place. */
#define DOUBT_NS (200 * UTIL_NS_PER_MS)

/* ---- asking ---- */

static void hello_out(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		      enum wire_rd_type type, uint64_t id, const struct wire_rd_hello *hello)
{
	struct wire_rd h = {.type = (uint8_t)type, .id = id};
	uint8_t buf[WIRE_RD_HDR + WIRE_RD_HELLO];

	wire_rd_encode(&h, buf);
	wire_rd_hello_encode(hello, buf + WIRE_RD_HDR);
	wire_rd_seal(buf, sizeof(buf));
	rnic_rd_io_send(sock, to, sgid, buf, sizeof(buf));
}

static struct wire_rd_hello own_hello(const struct rnic_rd *rd, uint32_t dst_qpn)
{
	return (struct wire_rd_hello){.life = rd->life,
				      .src_qpn = rd->qp->ibv.qp_num,
				      .dst_qpn = dst_qpn,
				      .mtu = rd->mtu,
				      .room = rd->room};
}

static void init_out(struct rnic_rd_path *p)
{
	struct wire_rd_hello hello = own_hello(p->rd, p->qpn);
	struct sockaddr_in to = rnic_rd_place(p);

	hello.qkey = p->qkey;
	hello.id = p->peer ? p->peer->local_id : p->nonce;
	hello.cookie = p->cookie;
	hello_out(p->sock, &to, p->sgid, WIRE_RD_INIT, 0, &hello);
}

static void contact_arm(struct rnic_rd_path *p, uint64_t now)
{
	uint64_t wait = p->tries < 5 ? CONTACT_NS << p->tries : CONTACT_MAX_NS;

	rnic_timer_arm(p->rd->e, &p->timer, now + wait);
}

static void ask_other(struct rnic_rd_path *p)
{
	struct rnic_rd_peer *before = p->peer;

	if (!p->alone && !(before && before->remote_id))
		return;
	p->alone = !p->alone;
	p->peer = NULL;
	if (before)
		rnic_rd_peer_unasked(p->rd, before);
}

void rnic_rd_contact_fire(struct rnic_rd_path *p, uint64_t now)
{
	bool refused = p->refused && now - p->refused > UTIL_NS_PER_S;

	if (now - p->since > p->rd->timeout || refused) {
		util_log(UTIL_LOG_INFO, "RD: no answer from %s, queue pair 0x%06x%s",
			 inet_ntoa(p->addr), p->qpn, refused ? ": nobody listens there" : "");
		rnic_rd_contact_failed(p, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	if (p->tries < 255)
		p->tries++;
	rnic_rd_divert(p);
	/* A cookie that nobody answers may be one of an earlier life. */
	if (p->tries > 3)
		p->cookie = 0;
	/* A peer that does not answer may be somebody else, or busy: now the one, now the other is
	 * asked. */
	if (p->tries % ALONE == 0 && p->tries < 255)
		ask_other(p);
	init_out(p);
	contact_arm(p, now);
}

void rnic_rd_contact(struct rnic_rd_path *p)
{
	uint64_t now = util_now_ns();

	if (util_random_key(&p->nonce, sizeof(p->nonce))) {
		rnic_rd_contact_failed(p, IBV_WC_GENERAL_ERR);
		return;
	}
	p->nonce |= 1; /* its low half is not 0 */
	p->since = now;
	init_out(p);
	contact_arm(p, now);
}

/* ---- being asked ---- */

/* What proves that the sender of an INIT receives at its address. Good for this INIT only, and
 * for a while: whatever is sent again later is worth nothing. */
static uint64_t cookie_of(const struct rnic_rd *rd, const struct sockaddr_in *from,
			  const struct wire_rd_hello *hello, uint64_t slot)
{
	uint64_t words[5] = {(uint64_t)from->sin_addr.s_addr << 32 | from->sin_port, hello->life,
			     (uint64_t)hello->src_qpn << 32 | hello->qkey, hello->id, slot};
	uint64_t cookie = util_siphash(rd->secret, words, sizeof(words));

	return cookie ? cookie : 1;
}

/* Somebody claims the place of a peer that we have. Old packets may come late, so the peer is
 * asked first: true when it has had the time to answer and did not. */
static bool is_gone(struct rnic_rd_peer *peer)
{
	uint64_t now = util_now_ns();

	if (rnic_rd_shm_up(peer))
		return false; /* of a process on this host the kernel tells */
	if (peer->doubted && peer->spoke)
		peer->doubted = 0;
	if (!peer->doubted) {
		peer->doubted = now;
		peer->spoke = false;
		if (peer->reply)
			rnic_rd_control(peer, peer->reply, WIRE_RD_PROBE, 0, NULL, 0);
	}
	return now - peer->doubted > DOUBT_NS;
}

/* A queue pair with the same number at the same address, but another life: the one that we
 * knew must be gone. False: it is not, or not yet. */
static bool bury_predecessor(struct rnic_rd *rd, struct in_addr addr,
			     const struct wire_rd_hello *hello)
{
	struct rnic_rd_path *p;

	list_for_each (p, &rd->all_paths, all)
		if (p->peer && p->peer->qpn == hello->src_qpn && p->peer->life != hello->life &&
		    p->addr.s_addr == addr.s_addr && p->state == RNIC_RD_PATH_UP) {
			if (!is_gone(p->peer))
				return false;
			rnic_rd_peer_dead(p->peer, IBV_WC_REM_ABORT_ERR, "it has begun a new life");
			break; /* there is one at most, and it took its paths along */
		}
	return true;
}

/* The peer that a good INIT is from. NULL with *no_room: there is none. NULL without: not now,
 * and no answer, so that it asks again. */
static struct rnic_rd_peer *init_peer(struct rnic_rd *rd, struct in_addr addr,
				      const struct wire_rd_hello *in, bool *no_room)
{
	struct rnic_rd_peer *peer = rnic_rd_peer_find(rd, in->life, addr, in->id);
	uint64_t id;

	*no_room = false;
	if (peer && peer->remote_id && peer->remote_id != in->id) {
		if (!is_gone(peer))
			return NULL;
		rnic_rd_peer_dead(peer, IBV_WC_REM_ABORT_ERR, "it has given us up before");
		peer = NULL;
	}
	if (peer)
		return peer;
	if (!bury_predecessor(rd, addr, in) || util_random_key(&id, sizeof(id)))
		return NULL;
	peer = rnic_rd_peer_new(rd, addr, in, id);
	*no_room = !peer;
	return peer;
}

static void init_in(struct rnic_rd *rd, struct rnic_rd_sock *sock, const struct sockaddr_in *from,
		    uint8_t sgid, const struct wire_rd_hello *in)
{
	struct wire_rd_hello out = own_hello(rd, in->src_qpn);
	uint64_t slot = util_now_ns() / COOKIE_NS;
	enum wire_rd_type answer = WIRE_RD_ACCEPT;
	struct rnic_rd_peer *peer;
	bool no_room;

	out.id = 1;
	if (in->dst_qpn != rd->qp->ibv.qp_num || in->qkey != rd->qp->attr.qkey) {
		out.cookie = in->dst_qpn != rd->qp->ibv.qp_num ? WIRE_RD_NO_QP : WIRE_RD_QKEY;
		answer = WIRE_RD_REFUSE;
	} else if (in->cookie != cookie_of(rd, from, in, slot) &&
		   in->cookie != cookie_of(rd, from, in, slot - 1)) {
		out.cookie = cookie_of(rd, from, in, slot);
		answer = WIRE_RD_CHALLENGE;
	} else {
		peer = init_peer(rd, from->sin_addr, in, &no_room);
		if (!peer && !no_room)
			return;
		if (!peer) {
			out.cookie = WIRE_RD_FULL;
			answer = WIRE_RD_REFUSE;
		} else {
			rnic_rd_peer_accepted(peer, in->id);
			peer->heard = util_now_ns();
			peer->reply = rnic_rd_path_seen(peer, sock, from, sgid);
			out.id = peer->local_id;
		}
	}
	hello_out(sock->fast ? rd->main : sock, from, sgid, answer, in->id, &out);
}

/* ---- being answered ---- */

/* The path in contact that an answer is for. Several may be asked under one id, that of the peer to
 * which they seem to lead: then it is the one that the answer came by, as cookies are of a path. */
static struct rnic_rd_path *asked(struct rnic_rd *rd, const struct rnic_rd_sock *sock,
				  const struct sockaddr_in *from, uint8_t sgid, uint64_t id)
{
	struct rnic_rd_path *p, *any = NULL;

	if (sock->fast)
		sock = rd->main;
	list_for_each (p, &rd->contacts, link) {
		if (id != (p->peer ? p->peer->local_id : p->nonce))
			continue;
		if (p->sock == sock && p->sgid == sgid && p->addr.s_addr == from->sin_addr.s_addr)
			return p;
		any = any ? any : p;
	}
	/* Of a path that is alone under its id it can only be that one's. */
	return any && !any->peer ? any : NULL;
}

/* Who says that it is of this life. At an address where we know it, it is the peer; elsewhere it
 * is asked under the peer's id, which only the peer itself can answer for. */
static struct rnic_rd_peer *challenger(struct rnic_rd_path *p, const struct wire_rd_hello *in)
{
	struct rnic_rd *rd = p->rd;
	struct rnic_rd_peer *peer = rnic_rd_peer_find(rd, in->life, p->addr, 0);

	if (!peer && !p->alone)
		peer = rnic_rd_peer_namesake(rd, in->life);
	if (!peer && bury_predecessor(rd, p->addr, in))
		peer = rnic_rd_peer_new(rd, p->addr, in, p->nonce);
	return peer;
}

static void challenge_in(struct rnic_rd_path *p, const struct wire_rd_hello *in)
{
	struct rnic_rd_peer *peer = challenger(p, in), *before = p->peer;

	if (!peer)
		return; /* no memory, or too many: tried again, and at last given up */
	peer->named = true;
	p->peer = peer;
	if (before != peer)
		rnic_rd_peer_unasked(p->rd, before);
	if (peer->remote_id && peer->addr.s_addr == p->addr.s_addr) {
		rnic_rd_path_up(p, peer);
		return;
	}
	p->cookie = in->cookie;
	if (p->challenges >= CHALLENGES_MAX)
		return;
	p->challenges++;
	p->tries = 0;
	init_out(p);
	contact_arm(p, util_now_ns());
}

/* It is not who we thought: asked again, as somebody new. */
static void ask_alone(struct rnic_rd_path *p)
{
	p->alone = true;
	p->peer = NULL;
	p->cookie = 0;
	init_out(p);
}

static void accept_in(struct rnic_rd_path *p, const struct wire_rd_hello *in)
{
	struct rnic_rd_peer *peer = p->peer;

	if (!peer || peer->life != in->life)
		return;
	if (peer->remote_id && peer->remote_id != in->id) {
		ask_alone(p);
		return;
	}
	rnic_rd_peer_accepted(peer, in->id);
	rnic_rd_path_up(p, peer);
}

static void answer_in(struct rnic_rd_path *p, const struct wire_rd *h,
		      const struct wire_rd_hello *in)
{
	if (h->type == WIRE_RD_CHALLENGE)
		challenge_in(p, in);
	else if (h->type == WIRE_RD_ACCEPT)
		accept_in(p, in);
	else if (in->cookie == WIRE_RD_QKEY)
		rnic_rd_contact_failed(p, IBV_WC_REM_INV_REQ_ERR);
	/* else: the others may change their mind until the time is up */
}

void rnic_rd_hello(struct rnic_rd *rd, struct rnic_rd_sock *sock, const struct sockaddr_in *from,
		   uint8_t sgid, const struct wire_rd *h, const uint8_t *body)
{
	struct rnic_rd_path *p;
	struct wire_rd_hello in;

	if (wire_rd_hello_decode(&in, body, WIRE_RD_HELLO)) {
		rd->stats.foreign++;
		return;
	}
	if (h->type == WIRE_RD_INIT) {
		init_in(rd, sock, from, sgid, &in);
		return;
	}
	p = asked(rd, sock, from, sgid, h->id);
	if (p)
		answer_in(p, h, &in);
	else
		rd->stats.stale++;
}
