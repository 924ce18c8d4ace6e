/* RD: paths, and requests that wait for theirs.
 *
 * A path is found by what an address handle and a number name: an address, the queue pair there,
 * our own address and the flow label. One that a peer has shown us by sending over it has no such
 * name until somebody uses it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include "util_clock.h"
#include "rnic_conn.h"
#include "rnic_rd.h"

/* A window larger than the cache only makes everything slower. */
#define WINDOW_MAX (1u << 20)

static uint32_t hash_place(struct in_addr addr, uint32_t qpn, uint8_t sgid, uint32_t label)
{
	uint64_t x = ((uint64_t)addr.s_addr << 32 | qpn) * UINT64_C(0x9e3779b97f4a7c15);

	x ^= ((uint64_t)label << 8 | sgid) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(x >> 32);
}

/* ---- finding and making ---- */

static struct rnic_rd_path *first_of(struct rnic_rd_path *p, struct in_addr addr, uint32_t qpn,
				     uint8_t sgid, uint32_t label)
{
	while (p && (p->addr.s_addr != addr.s_addr || p->qpn != qpn || p->sgid != sgid ||
		     p->label != label))
		p = p->chain;
	return p;
}

struct rnic_rd_path *rnic_rd_path_find(struct rnic_rd *rd, struct in_addr addr, uint32_t qpn,
				       uint8_t sgid, uint32_t label)
{
	return first_of(rd->paths[hash_place(addr, qpn, sgid, label) & rd->path_mask], addr, qpn,
			sgid, label);
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
	list_init(&p->turn);
	rnic_timer_init(&p->timer, rnic_rd_path_fire);
	rd_path_init(&p->p, rd->mtu + RNIC_RD_OVERHEAD, WINDOW_MAX);
	list_add_tail(&p->all, &rd->all_paths);
	rd->n_paths++;
	return p;
}

/* Who names another key means somebody else: a queue pair that has its number of one that has gone,
 * of which we have not heard yet. Or errs; then it is told so by the one that is there. */
struct rnic_rd_path *rnic_rd_path_get(struct rnic_rd *rd, struct in_addr addr, uint32_t qpn,
				      uint8_t sgid, uint32_t label, uint32_t qkey)
{
	struct rnic_rd_path *p = rnic_rd_path_find(rd, addr, qpn, sgid, label);
	struct rnic_rd_sock *sock;

	while (p && p->qkey != qkey)
		p = first_of(p->chain, addr, qpn, sgid, label);
	if (p)
		return p;
	sock = rnic_rd_sock(rd, label);
	p = sock ? path_new(rd, sock, addr, (uint16_t)(qpn >> 8), sgid) : NULL;
	if (!p)
		return NULL;
	p->qkey = qkey;
	path_public(p, qpn, label);
	return p;
}

static bool same_way(const struct rnic_rd_path *p, const struct rnic_rd_sock *sock,
		     const struct sockaddr_in *from, uint8_t sgid)
{
	return p->addr.s_addr == from->sin_addr.s_addr && htons(p->port) == from->sin_port &&
	       p->sock == sock && p->sgid == sgid;
}

/* The path leads to this peer. */
static void join(struct rnic_rd_path *p, struct rnic_rd_peer *peer)
{
	p->peer = peer;
	p->state = RNIC_RD_PATH_UP;
	p->completions = p->completed_bytes = p->per_kb = 0;
	rd_path_init(&p->p, peer->mtu + RNIC_RD_OVERHEAD,
		     peer->room < WINDOW_MAX ? peer->room : WINDOW_MAX);
	rd_rtt_expect(&peer->rtt, &p->rd->rtt);
	p->p.all = &peer->rtt;
	list_del(&p->link);
	list_add_tail(&p->link, &peer->paths);
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
	join(p, peer);
	return p;
}

/* A path that was only seen so far turns out to be one that we name: they become one. */
static void absorb(struct rnic_rd_path *p, struct rnic_rd_path *seen)
{
	struct rnic_rd_peer *peer = p->peer;
	struct rnic_rd_event *ev;
	struct rnic_rd_msg *m;

	p->p.rtt = seen->p.rtt;
	rd_path_move(&seen->p, &p->p);
	for (int l = 0; l < WIRE_RD_LANES; l++) {
		if (peer->lane)
			list_for_each (m, &peer->lane[l].msgs, link)
				if (m->path == seen)
					m->path = p;
		list_splice_tail(&seen->tx[l], &p->tx[l]);
	}
	if (peer->lane)
		list_for_each (ev, &rnic_rd_awake(peer)->events, link)
			if (ev->from == seen)
				ev->from = p;
	if (peer->reply == seen)
		peer->reply = p;
	rnic_rd_path_free(seen);
	rnic_rd_path_arm(p);
}

void rnic_rd_path_up(struct rnic_rd_path *p, struct rnic_rd_peer *peer)
{
	struct sockaddr_in place = rnic_rd_place(p);
	struct rnic_rd_path *x, *seen = NULL;

	list_for_each (x, &peer->paths, link)
		if (!x->qpn && same_way(x, p->sock, &place, p->sgid))
			seen = x;
	join(p, peer);
	if (!peer->reply)
		peer->reply = p;
	if (seen)
		absorb(p, seen);
	peer->heard = util_now_ns();
	rnic_rd_contact_over(p);
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
	if (!rnic_rd_peer_wake(p->peer)) {
		rnic_rd_fail(r, IBV_WC_LOC_QP_OP_ERR);
		return;
	}
	rnic_rd_send(p->peer, &r->msg);
	rnic_rd_touch(p->peer);
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

/* A path that is up and surely leads to the same queue pair; NULL: none is known. */
static struct rnic_rd_path *sibling(const struct rnic_rd_path *p)
{
	struct rnic_rd_path *x;

	list_for_each (x, &p->rd->all_paths, all)
		if (x->state == RNIC_RD_PATH_UP && x->qpn == p->qpn && x->qkey == p->qkey &&
		    (x->addr.s_addr == p->addr.s_addr || (p->peer && x->peer == p->peer)))
			return x;
	return NULL;
}

bool rnic_rd_overdue(const struct rnic_rd_path *p)
{
	return p->state == RNIC_RD_PATH_CONTACT && p->group && p->tries >= RNIC_RD_OVERDUE;
}

void rnic_rd_divert(struct rnic_rd_path *p)
{
	struct rnic_rd_path *x = rnic_rd_overdue(p) ? sibling(p) : NULL;
	struct rnic_rd_req *r;

	if (!x)
		return;
	list_for_each (r, &p->group->waiting, wait)
		if (r->msg.path == p)
			r->msg.path = x;
	group_release(p->rd, p->group);
}

void rnic_rd_contact_over(struct rnic_rd_path *p)
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

void rnic_rd_contact_failed(struct rnic_rd_path *p, enum ibv_wc_status status)
{
	struct rnic_rd *rd = p->rd;
	struct rnic_rd_peer *peer = p->peer;

	rd->stats.deaths++;
	fail_waiting(p->group, p, status);
	list_del(&p->link);
	rnic_rd_contact_over(p);
	rnic_rd_path_free(p);
	rnic_rd_peer_unasked(rd, peer);
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
	list_del(&p->turn);
	list_del(&p->link);
	list_del(&p->all);
	rd->n_paths--;
	free(p);
}

void rnic_rd_route(struct rnic_rd_path *p, struct rnic_rd_req *r)
{
	struct rnic_rd *rd = p->rd;
	struct rnic_rd_group *g = group_get(rd, p->qpn, p->state != RNIC_RD_PATH_UP);

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
	if (rnic_rd_overdue(p))
		rnic_rd_divert(p);
	else if (p->state == RNIC_RD_PATH_UP)
		group_release(rd, g);
	if (p->state == RNIC_RD_PATH_UP || p->group)
		return;
	p->group = g;
	g->contacts++;
	list_add_tail(&p->link, &rd->contacts);
	rnic_rd_contact(p);
}
