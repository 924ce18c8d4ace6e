/* RD: peers, how they are known, and how they are lost. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"
#include "rnic_conn.h"
#include "rnic_rd.h"
#include "rnic_rd_shm.h"
#include "rnic_table.h"

/* How often room is made for new ones. */
#define EVICT_NS (100 * UTIL_NS_PER_MS)
/* Peers that may be awake without need. */
#define AWAKE_MAX 32
/* Records of packets that are kept when there is none on the way. */
#define POOL_IDLE 64

/* ---- names ---- */

struct rnic_rd_peer *rnic_rd_peer_find(const struct rnic_rd *rd, uint64_t life, struct in_addr addr,
				       uint64_t id)
{
	struct rnic_rd_peer *peer = rnic_table_get(rd->lives, (uint32_t)life);

	for (; peer; peer = peer->namesake)
		if (peer->life == life &&
		    (peer->addr.s_addr == addr.s_addr || (id && peer->remote_id == id) ||
		     (peer->named && !peer->remote_id)))
			return peer;
	return NULL;
}

struct rnic_rd_peer *rnic_rd_peer_namesake(const struct rnic_rd *rd, uint64_t life)
{
	struct rnic_rd_peer *peer = rnic_table_get(rd->lives, (uint32_t)life);

	while (peer && (peer->life != life || !peer->remote_id))
		peer = peer->namesake;
	return peer;
}

static int life_add(struct rnic_rd *rd, struct rnic_rd_peer *peer)
{
	struct rnic_rd_peer *first = rnic_table_get(rd->lives, (uint32_t)peer->life);

	if (!first)
		return rnic_table_add(rd->lives, (uint32_t)peer->life, peer);
	peer->namesake = first->namesake;
	first->namesake = peer;
	return 0;
}

static void life_del(struct rnic_rd *rd, struct rnic_rd_peer *peer)
{
	struct rnic_rd_peer *at = rnic_table_get(rd->lives, (uint32_t)peer->life);

	if (at == peer) {
		rnic_table_del(rd->lives, (uint32_t)peer->life);
		if (peer->namesake)
			rnic_table_add(rd->lives, (uint32_t)peer->life, peer->namesake);
		return;
	}
	while (at->namesake != peer)
		at = at->namesake;
	at->namesake = peer->namesake;
}

/* The id that the peer shall use: the one that was offered to it, if that is free. */
static int take_id(struct rnic_rd *rd, struct rnic_rd_peer *peer, uint64_t id)
{
	int err = -EEXIST;

	do {
		peer->local_id = id;
		if ((uint32_t)id)
			err = rnic_table_add(rd->ids, (uint32_t)id, peer);
		if (err == -EEXIST && util_random_key(&id, sizeof(id)))
			return -EIO;
	} while (err == -EEXIST);
	return err;
}

/* ---- room ---- */

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

/* The peer that has been silent longest, and of which nothing is expected, makes room for a
 * new one. It has been silent for so long that nothing of its can be on the way any more. */
static void make_room(struct rnic_rd *rd)
{
	struct rnic_rd_peer *peer, *oldest = NULL;
	uint64_t now = util_now_ns();

	if (now - rd->evicted < EVICT_NS)
		return; /* looking at all of them is not for free */
	rd->evicted = now;
	list_for_each (peer, &rd->peers, link)
		if (!rnic_rd_expects(peer) && !peer->shm && peer->remote_id &&
		    (!oldest || peer->heard < oldest->heard))
			oldest = peer;
	if (oldest && now - oldest->heard > rd->timeout)
		rnic_rd_peer_dead(oldest, IBV_WC_RETRY_EXC_ERR, "others need its place");
}

/* ---- life and death ---- */

static void peer_init(struct rnic_rd_peer *peer, struct rnic_rd *rd, struct in_addr addr,
		      const struct wire_rd_hello *hello)
{
	peer->rd = rd;
	peer->life = hello->life;
	peer->qpn = hello->src_qpn;
	peer->mtu = hello->mtu < rd->mtu ? hello->mtu : rd->mtu;
	peer->room = hello->room;
	peer->addr = addr;
	list_init(&peer->paths);
	list_init(&peer->unanswered);
	list_init(&peer->touched);
	rnic_timer_init(&peer->timer, rnic_rd_peer_fire);
}

/* ---- waking and sleeping ---- */

bool rnic_rd_peer_wake(struct rnic_rd_peer *peer)
{
	struct rnic_rd *rd = peer->rd;
	struct rnic_rd_awake *a;

	if (peer->lane) {
		if (rd->awake.prev != &rnic_rd_awake(peer)->link) {
			list_del(&rnic_rd_awake(peer)->link);
			list_add_tail(&rnic_rd_awake(peer)->link, &rd->awake);
		}
		return true;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return false;
	a->peer = peer;
	list_init(&a->due.link);
	a->due.run = rnic_rd_due;
	list_init(&a->holds);
	list_init(&a->events);
	list_init(&a->starved_link);
	for (int l = 0; l < WIRE_RD_LANES; l++) {
		rd_board_init(&a->lane[l].board, &rd->pool, peer->next[l].tx);
		rd_rx_init(&a->lane[l].rx, peer->next[l].rx);
		a->lane[l].next = peer->next[l].tx;
		list_init(&a->lane[l].msgs);
	}
	peer->lane = a->lane;
	list_init(&a->link);
	list_add_tail(&a->link, &rd->awake);
	rd->n_awake++;
	return true;
}

static void put_to_sleep(struct rnic_rd_peer *peer)
{
	struct rnic_rd_awake *a = rnic_rd_awake(peer);

	for (int l = 0; l < WIRE_RD_LANES; l++) {
		peer->next[l].tx = a->lane[l].next;
		peer->next[l].rx = a->lane[l].rx.next;
		rd_board_free(&a->lane[l].board);
		rd_rx_free(&a->lane[l].rx);
	}
	list_del(&a->due.link);
	list_del(&a->starved_link);
	list_del(&a->link);
	peer->rd->n_awake--;
	peer->lane = NULL;
	free(a);
}

static bool is_tired(struct rnic_rd_peer *peer)
{
	if (rnic_rd_expects(peer) || peer->owe[0] || peer->owe[1] || peer->starved ||
	    !list_empty(&peer->touched) || !list_empty(&rnic_rd_due_of(peer)->link))
		return false;
	for (int l = 0; l < WIRE_RD_LANES; l++)
		if (!rd_board_empty(&peer->lane[l].board) || peer->lane[l].rx.beyond)
			return false;
	return true;
}

void rnic_rd_peers_rest(struct rnic_rd *rd)
{
	if (!rd->pool.n_used)
		rd_pool_trim(&rd->pool, POOL_IDLE);
	/* Those that are busy do not stop others, but not all of them are looked at. */
	for (int busy = 0; busy < 8 && rd->n_awake > AWAKE_MAX;) {
		struct rnic_rd_awake *a = list_first(&rd->awake, struct rnic_rd_awake, link);

		if (is_tired(a->peer)) {
			put_to_sleep(a->peer);
			continue;
		}
		list_del(&a->link);
		list_add_tail(&a->link, &rd->awake);
		busy++;
	}
}

struct rnic_rd_peer *rnic_rd_peer_new(struct rnic_rd *rd, struct in_addr addr,
				      const struct wire_rd_hello *hello, uint64_t id)
{
	struct rnic_rd_peer *peer;

	if (full(rd, addr))
		make_room(rd);
	if (full(rd, addr))
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer_init(peer, rd, addr, hello);
	if (take_id(rd, peer, id)) {
		free(peer);
		return NULL;
	}
	if (life_add(rd, peer)) {
		rnic_table_del(rd->ids, (uint32_t)peer->local_id);
		free(peer);
		return NULL;
	}
	list_add_tail(&peer->link, &rd->peers);
	rd->n_peers++;
	at_addr(rd, addr, 1);
	return peer;
}

void rnic_rd_peer_accepted(struct rnic_rd_peer *peer, uint64_t remote_id)
{
	if (peer->remote_id)
		return;
	peer->remote_id = remote_id;
	rnic_rd_shm_try(peer, peer->addr);
}

void rnic_rd_peer_unasked(struct rnic_rd *rd, struct rnic_rd_peer *peer)
{
	struct rnic_rd_path *p;

	if (!peer || peer->remote_id)
		return;
	list_for_each (p, &rd->contacts, link)
		if (p->peer == peer)
			return;
	rnic_rd_peer_free(peer);
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

	rnic_timer_cancel(rd->e, &peer->timer);
	list_del(&peer->touched);
	if (peer->lane)
		put_to_sleep(peer);
	rnic_table_del(rd->ids, (uint32_t)peer->local_id);
	life_del(rd, peer);
	list_for_each_safe (p, tmp, &peer->paths, link)
		rnic_rd_path_free(p);
	/* Paths that were asking this peer go back to asking whoever is there. */
	list_for_each (p, &rd->contacts, link)
		if (p->peer == peer)
			path_anew(p);
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
	for (int l = 0; peer->lane && l < WIRE_RD_LANES; l++)
		fail_lane(peer, &peer->lane[l], status);
	if (peer->shm)
		rnic_rd_shm_fail(peer->shm, status);
	if (peer->lane)
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
