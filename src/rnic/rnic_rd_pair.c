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
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"
#include "util_siphash.h"
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "rnic_rd_shm.h"
#include "rnic_table.h"

/* The first INIT is repeated after this, then twice as late, and so on. */
#define CONTACT_NS     (10 * UTIL_NS_PER_MS)
#define CONTACT_MAX_NS (250 * UTIL_NS_PER_MS)
/* A window larger than the cache only makes everything slower. */
#define WINDOW_MAX (1u << 20)
#define MSS_EXTRA  (28 + 256) /* as rnic_rd_tx.c counts */

static uint32_t hash_place(struct in_addr addr, uint32_t qpn, uint8_t sgid, uint32_t label)
{
	uint64_t x = ((uint64_t)addr.s_addr << 32 | qpn) * UINT64_C(0x9e3779b97f4a7c15);

	x ^= ((uint64_t)label << 8 | sgid) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 32);
}

/* ---- paths ---- */

struct rnic_rd_path *rnic_rd_path_find(struct rnic_rd *rd, struct in_addr addr, uint32_t qpn,
				       uint8_t sgid, uint32_t label)
{
	struct rnic_rd_path *p = rd->paths[hash_place(addr, qpn, sgid, label) & rd->path_mask];

	while (p && (p->addr.s_addr != addr.s_addr || p->qpn != qpn || p->sgid != sgid ||
		     p->label != label))
		p = p->chain;
	return p;
}

static void grow_paths(struct rnic_rd *rd)
{
	uint32_t n = 2 * (rd->path_mask + 1);
	struct rnic_rd_path **table = calloc(n, sizeof(*table)), *p;

	if (!table)
		return; /* longer chains, nothing worse */
	free(rd->paths);
	rd->paths = table;
	rd->path_mask = n - 1;
	list_for_each (p, &rd->all_paths, all) {
		struct rnic_rd_path **slot;

		if (!p->qpn)
			continue;
		slot = &table[hash_place(p->addr, p->qpn, p->sgid, p->label) & (n - 1)];
		p->chain = *slot;
		*slot = p;
	}
}

/* Makes the path known by the place that it leads to. */
static void path_public(struct rnic_rd_path *p, uint32_t qpn, uint32_t label)
{
	struct rnic_rd *rd = p->rd;
	struct rnic_rd_path **slot;

	if (rd->n_paths > rd->path_mask)
		grow_paths(rd);
	p->qpn = qpn; /* not before: growing the table takes along those that have one */
	p->label = label;
	slot = &rd->paths[hash_place(p->addr, qpn, p->sgid, label) & rd->path_mask];
	p->chain = *slot;
	*slot = p;
}

static struct rnic_rd_path *path_new(struct rnic_rd *rd, struct rnic_rd_sock *sock,
				     struct in_addr addr, uint16_t port, uint8_t sgid)
{
	struct rnic_rd_path *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->rd = rd;
	p->sock = sock;
	p->addr = addr;
	p->port = port;
	p->sgid = sgid;
	list_init(&p->link);
	list_init(&p->all);
	list_init(&p->tx[0]);
	list_init(&p->tx[1]);
	rnic_timer_init(&p->timer, rnic_rd_path_fire);
	rd_path_init(&p->p, rd->mtu + MSS_EXTRA, WINDOW_MAX);
	list_add_tail(&p->all, &rd->all_paths);
	rd->n_paths++;
	return p;
}

struct rnic_rd_path *rnic_rd_path_get(struct rnic_rd *rd, struct in_addr addr, uint32_t qpn,
				      uint8_t sgid, uint32_t label)
{
	struct rnic_rd_path *p = rnic_rd_path_find(rd, addr, qpn, sgid, label);
	struct rnic_rd_sock *sock;

	if (p)
		return p;
	sock = rnic_rd_sock(rd, label);
	p = sock ? path_new(rd, sock, addr, (uint16_t)(qpn >> 8), sgid) : NULL;
	if (!p)
		return NULL;
	path_public(p, qpn, label);
	return p;
}

static bool same_way(const struct rnic_rd_path *p, const struct rnic_rd_sock *sock,
		     const struct sockaddr_in *from, uint8_t sgid)
{
	return p->addr.s_addr == from->sin_addr.s_addr && htons(p->port) == from->sin_port &&
	       p->sock == sock && p->sgid == sgid;
}

struct rnic_rd_path *rnic_rd_path_seen(struct rnic_rd_peer *peer, struct rnic_rd_sock *sock,
				       const struct sockaddr_in *from, uint8_t sgid)
{
	struct rnic_rd_path *p;
	int n = 0;

	if (sock->fast)
		sock = peer->rd->main;
	if (peer->reply && same_way(peer->reply, sock, from, sgid))
		return peer->reply;
	list_for_each (p, &peer->paths, link) {
		if (same_way(p, sock, from, sgid))
			return p;
		n++;
	}
	if (n >= WEFTDV_MAX_PATHS)
		return peer->reply;
	p = path_new(peer->rd, sock, from->sin_addr, ntohs(from->sin_port), sgid);
	if (!p)
		return peer->reply;
	p->state = RNIC_RD_PATH_UP;
	p->peer = peer;
	rd_path_init(&p->p, peer->mtu + MSS_EXTRA,
		     peer->room < WINDOW_MAX ? peer->room : WINDOW_MAX);
	list_add_tail(&p->link, &peer->paths);
	return p;
}

/* ---- requests that wait for their path ---- */

static struct rnic_rd_group *group_get(struct rnic_rd *rd, uint32_t qpn, bool make)
{
	struct rnic_rd_group **slot =
		&rd->groups[hash_place((struct in_addr){0}, qpn, 0, 0) & rd->group_mask];
	struct rnic_rd_group *g = *slot;

	while (g && g->qpn != qpn)
		g = g->chain;
	if (g || !make)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->qpn = qpn;
	list_init(&g->waiting);
	g->chain = *slot;
	*slot = g;
	return g;
}

static void group_put(struct rnic_rd *rd, struct rnic_rd_group *g)
{
	struct rnic_rd_group **slot =
		&rd->groups[hash_place((struct in_addr){0}, g->qpn, 0, 0) & rd->group_mask];

	if (g->contacts || !list_empty(&g->waiting))
		return;
	while (*slot != g)
		slot = &(*slot)->chain;
	*slot = g->chain;
	free(g);
}

static void to_peer(struct rnic_rd_path *p, struct rnic_rd_req *r)
{
	/* The peer has seen the first one's. */
	if (r->qkey != p->qkey) {
		rnic_rd_fail(r, IBV_WC_REM_INV_REQ_ERR);
		return;
	}
	rnic_rd_send(p->peer, &r->msg);
	if (list_empty(&p->peer->touched))
		list_add_tail(&p->peer->touched, &p->rd->touched);
}

/* Those at the head whose path is up go to their peers. */
static void group_release(struct rnic_rd *rd, struct rnic_rd_group *g)
{
	struct rnic_rd_req *r;

	while ((r = list_first(&g->waiting, struct rnic_rd_req, wait))) {
		struct rnic_rd_path *p = r->msg.path;

		if (p->state != RNIC_RD_PATH_UP)
			break;
		list_del(&r->wait);
		to_peer(p, r);
	}
	group_put(rd, g);
}

static void contact_over(struct rnic_rd_path *p)
{
	struct rnic_rd_group *g = p->group;

	p->group = NULL;
	rnic_timer_cancel(p->rd->e, &p->timer);
	g->contacts--;
	group_release(p->rd, g);
}

static void fail_waiting(struct rnic_rd_group *g, struct rnic_rd_path *p, enum ibv_wc_status status)
{
	struct rnic_rd_req *r, *tmp;

	list_for_each_safe (r, tmp, &g->waiting, wait)
		if (r->msg.path == p) {
			list_del(&r->wait);
			rnic_rd_fail(r, status);
		}
}

static void contact_failed(struct rnic_rd_path *p, enum ibv_wc_status status)
{
	struct rnic_rd *rd = p->rd;
	struct rnic_rd_group *g = p->group;

	rd->stats.deaths++;
	fail_waiting(g, p, status);
	list_del(&p->link);
	contact_over(p);
	rnic_rd_path_free(p);
}

void rnic_rd_path_free(struct rnic_rd_path *p)
{
	struct rnic_rd *rd = p->rd;
	struct rnic_rd_group *g = p->qpn ? group_get(rd, p->qpn, false) : NULL;

	/* Some may wait behind the contact of another path. */
	if (g) {
		fail_waiting(g, p, IBV_WC_RETRY_EXC_ERR);
		if (p->group == g)
			g->contacts--;
		group_put(rd, g);
	}
	if (p->qpn) {
		struct rnic_rd_path **slot =
			&rd->paths[hash_place(p->addr, p->qpn, p->sgid, p->label) & rd->path_mask];

		while (*slot != p)
			slot = &(*slot)->chain;
		*slot = p->chain;
	}
	if (rd->run_path == p)
		rd->run_path = NULL;
	rnic_timer_cancel(rd->e, &p->timer);
	list_del(&p->link);
	list_del(&p->all);
	rd->n_paths--;
	free(p);
}

/* ---- hellos out ---- */

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
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr = p->addr, .sin_port = htons(p->port)};

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

void rnic_rd_contact_fire(struct rnic_rd_path *p, uint64_t now)
{
	bool refused = p->refused && now - p->refused > UTIL_NS_PER_S;

	if (now - p->since > p->rd->timeout || refused) {
		util_log(UTIL_LOG_INFO, "RD: no answer from %s, queue pair 0x%06x%s",
			 inet_ntoa(p->addr), p->qpn, refused ? ": nobody listens there" : "");
		contact_failed(p, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	if (p->tries < 255)
		p->tries++;
	/* A cookie that nobody answers may be one of an earlier life: from the beginning. */
	if (p->tries > 3)
		p->cookie = 0;
	init_out(p);
	contact_arm(p, now);
}

void rnic_rd_route(struct rnic_rd_path *p, struct rnic_rd_req *r)
{
	struct rnic_rd *rd = p->rd;
	struct rnic_rd_group *g = group_get(rd, p->qpn, p->state != RNIC_RD_PATH_UP);
	uint64_t now;

	r->msg.path = p;
	if (p->state == RNIC_RD_PATH_UP && !g) {
		to_peer(p, r);
		return;
	}
	if (!g) {
		rnic_rd_fail(r, IBV_WC_GENERAL_ERR);
		return;
	}
	list_add_tail(&r->wait, &g->waiting);
	if (p->state == RNIC_RD_PATH_UP || p->group)
		return;
	p->group = g;
	g->contacts++;
	list_add_tail(&p->link, &rd->contacts);
	if (!p->nonce && util_random_key(&p->nonce, sizeof(p->nonce))) {
		contact_failed(p, IBV_WC_GENERAL_ERR);
		return;
	}
	p->nonce |= 1; /* not 0 */
	p->qkey = r->qkey;
	now = util_now_ns();
	p->since = now;
	init_out(p);
	contact_arm(p, now);
}

/* ---- peers ---- */

static struct rnic_rd_peer *by_life(const struct rnic_rd *rd, uint64_t life)
{
	struct rnic_rd_peer *peer = rnic_table_get(rd->lives, (uint32_t)life);

	return peer && peer->life == life ? peer : NULL;
}

static int draw_id(struct rnic_rd *rd, struct rnic_rd_peer *peer)
{
	int err;

	do {
		err = util_random_key(&peer->local_id, sizeof(peer->local_id));
		if (!err && (!peer->local_id || !(uint32_t)peer->local_id))
			err = -EEXIST;
		if (!err)
			err = rnic_table_add(rd->ids, (uint32_t)peer->local_id, peer);
	} while (err == -EEXIST);
	return err;
}

/* How many peers an address has; `change` more from now on. */
static uintptr_t at_addr(struct rnic_rd *rd, struct in_addr addr, int change)
{
	uintptr_t n = (uintptr_t)rnic_table_get(rd->addrs, addr.s_addr);

	if (change) {
		rnic_table_del(rd->addrs, addr.s_addr);
		n += (uintptr_t)change;
		if (n)
			rnic_table_add(rd->addrs, addr.s_addr, (void *)n);
	}
	return n;
}

/* One machine alone may not use up all that there is room for. */
static bool full(struct rnic_rd *rd, struct in_addr addr)
{
	return rd->n_peers >= rd->max_peers || at_addr(rd, addr, 0) > rd->max_peers / 2;
}

static struct rnic_rd_peer *peer_new(struct rnic_rd *rd, struct in_addr addr,
				     const struct wire_rd_hello *hello)
{
	struct rnic_rd_peer *peer;

	if (full(rd, addr))
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->rd = rd;
	peer->life = hello->life;
	peer->qpn = hello->src_qpn;
	peer->mtu = hello->mtu < rd->mtu ? hello->mtu : rd->mtu;
	peer->room = hello->room;
	if (rnic_table_add(rd->lives, (uint32_t)hello->life, peer)) {
		free(peer);
		return NULL;
	}
	if (draw_id(rd, peer)) {
		rnic_table_del(rd->lives, (uint32_t)hello->life);
		free(peer);
		return NULL;
	}
	list_init(&peer->paths);
	list_init(&peer->holds);
	list_init(&peer->events);
	list_init(&peer->unanswered);
	list_init(&peer->starved_link);
	list_init(&peer->touched);
	list_init(&peer->due.link);
	peer->due.run = rnic_rd_due;
	rnic_timer_init(&peer->timer, rnic_rd_peer_fire);
	for (int l = 0; l < WIRE_RD_LANES; l++) {
		rd_board_init(&peer->lane[l].board, &rd->pool, 0);
		rd_rx_init(&peer->lane[l].rx, 0);
		list_init(&peer->lane[l].msgs);
	}
	list_add_tail(&peer->link, &rd->peers);
	rd->n_peers++;
	peer->addr = addr;
	at_addr(rd, addr, 1);
	return peer;
}

/* The other side has told its id. */
static void peer_accepted(struct rnic_rd_peer *peer, uint64_t remote_id)
{
	if (peer->remote_id)
		return;
	peer->remote_id = remote_id;
	if (!rnic_table_get(peer->rd->remote, (uint32_t)remote_id))
		rnic_table_add(peer->rd->remote, (uint32_t)remote_id, peer);
	rnic_rd_shm_try(peer, peer->addr);
}

static void path_up(struct rnic_rd_path *p, struct rnic_rd_peer *peer)
{
	p->peer = peer;
	p->state = RNIC_RD_PATH_UP;
	rd_path_init(&p->p, peer->mtu + MSS_EXTRA,
		     peer->room < WINDOW_MAX ? peer->room : WINDOW_MAX);
	list_del(&p->link);
	list_add_tail(&p->link, &peer->paths);
	if (!peer->reply)
		peer->reply = p;
	peer->heard = util_now_ns();
	contact_over(p);
}

static void path_anew(struct rnic_rd_path *p)
{
	p->peer = NULL;
	p->cookie = 0;
}

void rnic_rd_peer_free(struct rnic_rd_peer *peer)
{
	struct rnic_rd *rd = peer->rd;
	struct rnic_rd_path *p, *tmp;

	peer->gone = true;
	rnic_timer_cancel(rd->e, &peer->timer);
	list_del(&peer->due.link);
	list_del(&peer->touched);
	list_del(&peer->starved_link);
	for (int l = 0; l < WIRE_RD_LANES; l++) {
		rd_board_free(&peer->lane[l].board);
		rd_rx_free(&peer->lane[l].rx);
	}
	rnic_table_del(rd->ids, (uint32_t)peer->local_id);
	rnic_table_del(rd->lives, (uint32_t)peer->life);
	if (peer->remote_id && rnic_table_get(rd->remote, (uint32_t)peer->remote_id) == peer)
		rnic_table_del(rd->remote, (uint32_t)peer->remote_id);
	/* Paths that were asking this peer go back to asking whoever is there. */
	list_for_each_safe (p, tmp, &rd->all_paths, all) {
		if (p->peer != peer)
			continue;
		if (p->state == RNIC_RD_PATH_UP)
			rnic_rd_path_free(p);
		else
			path_anew(p);
	}
	list_del(&peer->link);
	rd->n_peers--;
	at_addr(rd, peer->addr, -1);
	free(peer);
}

static void fail_lane(struct rnic_rd_peer *peer, struct rnic_rd_lane *lane,
		      enum ibv_wc_status status)
{
	struct rnic_rd_msg *m;

	while ((m = list_first(&lane->msgs, struct rnic_rd_msg, link))) {
		list_del(&m->link);
		list_del(&m->tx);
		if (m->lane == RNIC_RD_RSP) {
			peer->n_jobs--;
			free(m);
		} else {
			rnic_rd_fail(rnic_rd_req(m), status);
		}
	}
}

void rnic_rd_peer_dead(struct rnic_rd_peer *peer, enum ibv_wc_status status, const char *why)
{
	struct rnic_rd *rd = peer->rd;
	struct rnic_rd_msg *m;

	util_log(UTIL_LOG_INFO, "RD: peer 0x%06x given up: %s", peer->qpn, why);
	rd->stats.deaths++;
	/* First what was posted first. */
	while ((m = list_first(&peer->unanswered, struct rnic_rd_msg, link))) {
		list_del(&m->link);
		rnic_rd_fail(rnic_rd_req(m), status);
	}
	for (int l = 0; l < WIRE_RD_LANES; l++)
		fail_lane(peer, &peer->lane[l], status);
	if (peer->shm)
		rnic_rd_shm_fail(peer->shm, status);
	rnic_rd_give_back(peer);
	rnic_rd_peer_free(peer);
}

void rnic_rd_unreachable(struct rnic_rd *rd, const struct sockaddr_in *where)
{
	struct rnic_rd_path *p;
	uint64_t now = util_now_ns();

	list_for_each (p, &rd->all_paths, all) {
		if (p->addr.s_addr != where->sin_addr.s_addr || htons(p->port) != where->sin_port)
			continue;
		if (p->state != RNIC_RD_PATH_UP && !p->refused)
			p->refused = now;
		else if (p->peer && !p->peer->refused)
			p->peer->refused = now;
	}
}

/* ---- hellos in ---- */

static uint64_t cookie_of(const struct rnic_rd *rd, const struct sockaddr_in *from,
			  const struct wire_rd_hello *hello)
{
	uint64_t words[3] = {(uint64_t)from->sin_addr.s_addr << 32 | from->sin_port, hello->life,
			     (uint64_t)hello->src_qpn << 32 | hello->qkey};
	uint64_t cookie = util_siphash(rd->secret, words, sizeof(words));

	return cookie ? cookie : 1;
}

/* A queue pair with the same number at the same address, but another life: the one that we
 * knew is gone. */
static void bury_predecessor(struct rnic_rd *rd, struct in_addr addr,
			     const struct wire_rd_hello *hello)
{
	struct rnic_rd_path *p, *tmp;

	list_for_each_safe (p, tmp, &rd->all_paths, all)
		if (p->peer && p->peer->qpn == hello->src_qpn && p->peer->life != hello->life &&
		    p->addr.s_addr == addr.s_addr && p->state == RNIC_RD_PATH_UP) {
			rnic_rd_peer_dead(p->peer, IBV_WC_REM_ABORT_ERR, "it has begun a new life");
			return; /* there is one at most, and it took its paths along */
		}
}

static void init_in(struct rnic_rd *rd, struct rnic_rd_sock *sock, const struct sockaddr_in *from,
		    uint8_t sgid, const struct wire_rd_hello *in)
{
	struct wire_rd_hello out = own_hello(rd, in->src_qpn);
	uint64_t cookie = cookie_of(rd, from, in);
	enum wire_rd_type answer = WIRE_RD_ACCEPT;
	struct rnic_rd_peer *peer;

	out.id = 1;
	if (in->dst_qpn != rd->qp->ibv.qp_num || in->qkey != rd->qp->attr.qkey) {
		out.cookie = in->dst_qpn != rd->qp->ibv.qp_num ? WIRE_RD_NO_QP : WIRE_RD_QKEY;
		answer = WIRE_RD_REFUSE;
	} else if (in->cookie != cookie) {
		out.cookie = cookie;
		answer = WIRE_RD_CHALLENGE;
	} else {
		peer = by_life(rd, in->life);
		if (peer && peer->remote_id && peer->remote_id != in->id) {
			rnic_rd_peer_dead(peer, IBV_WC_REM_ABORT_ERR, "it has given us up before");
			peer = NULL;
		}
		if (!peer) {
			bury_predecessor(rd, from->sin_addr, in);
			peer = peer_new(rd, from->sin_addr, in);
		}
		if (!peer) {
			out.cookie = WIRE_RD_FULL;
			answer = WIRE_RD_REFUSE;
		} else {
			peer_accepted(peer, in->id);
			peer->heard = util_now_ns();
			peer->reply = rnic_rd_path_seen(peer, sock, from, sgid);
			out.id = peer->local_id;
		}
	}
	hello_out(sock->fast ? rd->main : sock, from, sgid, answer, in->id, &out);
}

/* The path in contact that an answer is for. */
static struct rnic_rd_path *asked(struct rnic_rd *rd, uint64_t id)
{
	struct rnic_rd_path *p;

	list_for_each (p, &rd->contacts, link)
		if (id == (p->peer ? p->peer->local_id : p->nonce))
			return p;
	return NULL;
}

static void challenge_in(struct rnic_rd_path *p, const struct wire_rd_hello *in)
{
	struct rnic_rd *rd = p->rd;
	struct rnic_rd_peer *peer = by_life(rd, in->life);

	if (!peer) {
		bury_predecessor(rd, p->addr, in);
		peer = peer_new(rd, p->addr, in);
	}
	if (!peer)
		return; /* no memory, or too many: tried again, and at last given up */
	if (peer->remote_id) {
		path_up(p, peer);
		return;
	}
	p->peer = peer;
	p->cookie = in->cookie;
	p->tries = 0;
	init_out(p);
	contact_arm(p, util_now_ns());
}

static void answer_in(struct rnic_rd_path *p, const struct wire_rd *h,
		      const struct wire_rd_hello *in)
{
	struct rnic_rd_peer *peer = p->peer;

	switch (h->type) {
	case WIRE_RD_CHALLENGE:
		challenge_in(p, in);
		break;
	case WIRE_RD_ACCEPT:
		if (!peer || peer->life != in->life)
			break;
		peer_accepted(peer, in->id);
		path_up(p, peer);
		break;
	default:
		if (in->cookie == WIRE_RD_QKEY)
			contact_failed(p, IBV_WC_REM_INV_REQ_ERR);
		break; /* the others may change their mind until the time is up */
	}
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
	p = asked(rd, h->id);
	if (p)
		answer_in(p, h, &in);
	else
		rd->stats.stale++;
}
