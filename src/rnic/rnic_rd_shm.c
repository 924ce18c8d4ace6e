/* RD through shared memory: links. Messages out: rnic_rd_shm_tx.c; in: rnic_rd_shm_rx.c. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"
#include "rnic_conn.h"
#include "rnic_rd_shm_rec.h"
#include "rnic_table.h"
#include "rnic_tune.h"

#define RING_SIZE (256u << 10)
#define BACKLOG   128
/* Links of which we do not know yet who they are, and how long they have to say it. */
#define STRANGERS_MAX 64
#define STRANGER_NS   (5 * UTIL_NS_PER_S)
/* When to look for connections again, if there was no room for one. */
#define AGAIN_NS (100 * UTIL_NS_PER_MS)

/* ---- links ---- */

bool rnic_rd_shm_up(const struct rnic_rd_peer *peer)
{
	return peer->shm && peer->shm->link.state == SHM_LINK_UP;
}

static bool ring_look(struct rnic_ring *ring)
{
	struct rnic_rd_shm *s = container_of(ring, struct rnic_rd_shm, ring);

	return rnic_rd_shm_look(s);
}

static bool ring_sleep(struct rnic_ring *ring, bool asleep)
{
	struct rnic_rd_shm *s = container_of(ring, struct rnic_rd_shm, ring);
	const void *rec;
	uint32_t len;

	shm_link_sleep(&s->link, asleep);
	if (!asleep)
		return false;
	/* Once more: what came before the flag was seen rings no bell. */
	if (s->link.tx.full)
		rnic_rd_shm_pump(s);
	return shm_ring_peek(&s->link.rx, &rec, &len) != 0;
}

/* Memory of this key is taken back: who copies from it now gets nothing. */
static void ring_revoke(struct rnic_ring *ring, uint32_t key)
{
	struct rnic_rd_shm *s = container_of(ring, struct rnic_rd_shm, ring);

	for (uint64_t left = s->link.granted; left; left &= left - 1) {
		int i = __builtin_ctzll(left);
		struct rnic_rd_msg *m = s->granted[i];
		bool named = m->lane == RNIC_RD_RSP && rnic_rd_job(m)->rkey == key;

		for (int k = 0; m->lane == RNIC_RD_REQ && k < rnic_rd_swqe(m)->num_sge; k++)
			named |= rnic_rd_swqe(m)->sge[k].lkey == key;
		if (named)
			shm_grant_revoke(&s->link, i);
	}
}

/* Everything: before anybody hears that it is over. */
static void revoke_all(struct rnic_rd_shm *s)
{
	for (uint64_t left = s->link.granted; left; left &= left - 1)
		shm_grant_revoke(&s->link, __builtin_ctzll(left));
}

/* Responses that the peer has not copied yet. */
static void drop_responses(struct rnic_rd_shm *s)
{
	struct rnic_rd_msg *m;

	while ((m = list_first(&s->responses, struct rnic_rd_msg, link))) {
		list_del(&m->link);
		if (!m->grant)
			free(m);
	}
	for (int i = 0; i < SHM_GRANTS; i++) {
		if (s->granted[i] && s->granted[i]->lane == RNIC_RD_RSP)
			free(s->granted[i]);
		s->granted[i] = NULL;
	}
}

static void shm_release(struct rnic_io *io)
{
	struct rnic_rd_shm *s = (struct rnic_rd_shm *)io;

	free(s->naks);
	free(s->wqe);
	free(s);
}

/* The link ends. What has arrived is not lost: the peer did not hear of it, and neither does
 * anybody else. */
static void shm_end(struct rnic_rd_shm *s)
{
	if (s->has_wqe) {
		rnic_rd_return(s->rd, s->wqe);
		s->has_wqe = false;
	}
	if (s->peer)
		s->peer->shm = NULL;
	s->peer = NULL;
	if (s->link.state == SHM_LINK_UP)
		revoke_all(s);
	drop_responses(s);
	list_del(&s->all);
	list_del(&s->ring.link);
	s->link.fd = -1; /* closed with the descriptor's registration */
	shm_link_close(&s->link);
	rnic_io_close(&s->io);
}

void rnic_rd_shm_fail(struct rnic_rd_shm *s, enum ibv_wc_status status)
{
	struct list_head *lists[] = {&s->sent, &s->requests};
	struct rnic_rd_msg *m;

	if (s->link.state == SHM_LINK_UP)
		revoke_all(s);
	for (int i = 0; i < 2; i++)
		while ((m = list_first(lists[i], struct rnic_rd_msg, link))) {
			list_del(&m->link);
			if (m->grant)
				s->granted[m->grant - 1] = NULL;
			rnic_rd_fail(rnic_rd_req(m), status);
		}
	shm_end(s);
}

/* Whether an address is one of this network namespace's. Not only of the device's: the other side
 * may have been told to use one that we do not, and both must come to the same answer. */
static bool is_own(const struct rnic_rd *rd, struct in_addr addr)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr = addr};
	bool own;
	int fd;

	if (rnic_addr_index(rd->qp->ctx->dev, addr) >= 0)
		return true;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	own = !bind(fd, (struct sockaddr *)&sa, sizeof(sa));
	close(fd);
	return own;
}

/* Of this life, and on this host. */
static struct rnic_rd_peer *peer_of(const struct rnic_rd *rd, uint64_t life)
{
	struct rnic_rd_peer *peer = rnic_table_get(rd->lives, (uint32_t)life);

	while (peer && (peer->life != life || !is_own(rd, peer->addr)))
		peer = peer->namesake;
	return peer;
}

/* The link is up, and it is this peer's. */
static void attach(struct rnic_rd_shm *s, struct rnic_rd_peer *peer)
{
	s->peer = peer;
	peer->shm = s;
	rnic_engine_ring(s->rd->e, &s->ring);
	rnic_rd_shm_introduce(s);
	rnic_rd_touch(peer);
}

/* The other says who it is; it must be a peer that we have, without a link. One of which we have
 * asked, but not heard the answer yet, waits for it: its link was faster. */
static void link_up(struct rnic_rd_shm *s)
{
	struct rnic_rd_peer *peer = peer_of(s->rd, s->link.peer);

	if (!peer || peer->shm) {
		shm_end(s);
	} else if (peer->remote_id) {
		attach(s, peer);
		rnic_rd_settle(s->rd);
	}
}

/* The link is gone before it was used: everything goes on over UDP. */
static void fall_back(struct rnic_rd_shm *s)
{
	struct rnic_rd_peer *peer = s->peer;
	struct list_head back;
	struct rnic_rd_msg *m;

	list_init(&back);
	list_splice_tail(&s->requests, &back);
	shm_end(s);
	while ((m = list_first(&back, struct rnic_rd_msg, link))) {
		list_del(&m->link);
		if (rnic_rd_peer_wake(peer))
			rnic_rd_send(peer, m);
		else
			rnic_rd_fail(rnic_rd_req(m), IBV_WC_LOC_QP_OP_ERR);
	}
	rnic_rd_pump(peer);
}

static bool unused(const struct rnic_rd_shm *s)
{
	return list_empty(&s->sent) && list_empty(&s->responses) && !s->done && !s->active &&
	       !s->open;
}

static bool link_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_rd_shm *s = (struct rnic_rd_shm *)io;
	bool was_up = s->link.state == SHM_LINK_UP;
	int ret = shm_link_input(&s->link);

	(void)events;
	if (ret > 0 && !was_up) {
		link_up(s);
	} else if (ret < 0 && was_up && s->peer) {
		/* What it has said before it went: no more records than there are places. */
		for (unsigned int i = 0; i < RING_SIZE / SHM_RING_ALIGN && io->fd >= 0; i++)
			if (!rnic_rd_shm_look(s))
				break;
		if (io->fd >= 0 && unused(s))
			fall_back(s);
		else if (io->fd >= 0)
			rnic_rd_peer_dead(s->peer, IBV_WC_RETRY_EXC_ERR, "its process has ended");
	} else if (ret < 0) {
		shm_end(s);
	}
	return true;
}

static struct rnic_rd_shm *shm_new(struct rnic_rd *rd)
{
	struct rnic_rd_shm *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->wqe = calloc(1, sizeof(*s->wqe) + rd->qp->rq->max_sge * sizeof(struct ibv_sge));
	if (!s->wqe) {
		free(s);
		return NULL;
	}
	s->rd = rd;
	s->io = (struct rnic_io){.fd = -1, .ready = link_ready, .release = shm_release};
	s->ring.look = ring_look;
	s->ring.sleep = ring_sleep;
	s->ring.revoke = ring_revoke;
	s->since = util_now_ns();
	list_init(&s->ring.link);
	list_init(&s->all);
	list_init(&s->requests);
	list_init(&s->responses);
	list_init(&s->sent);
	s->copies = UINT64_MAX;
	return s;
}

static void shm_watch(struct rnic_rd_shm *s)
{
	s->io.fd = s->link.fd;
	if (rnic_io_add(s->rd->e, &s->io, EPOLLIN)) {
		shm_link_close(&s->link);
		shm_release(&s->io);
		return;
	}
	list_add_tail(&s->all, &s->rd->links);
}

void rnic_rd_shm_try(struct rnic_rd_peer *peer, struct in_addr addr)
{
	struct rnic_rd *rd = peer->rd;
	struct rnic_rd_shm *s;

	list_for_each (s, &rd->links, all)
		if (!s->peer && s->link.state == SHM_LINK_UP && s->link.peer == peer->life &&
		    !peer->shm && is_own(rd, addr)) {
			attach(s, peer);
			return;
		}
	/* One of the two has to begin; it is tried once. */
	if (!rd->port || peer->shm || peer->shm_tried || rd->life >= peer->life ||
	    !is_own(rd, addr))
		return;
	peer->shm_tried = true;
	s = shm_new(rd);
	if (!s)
		return;
	if (shm_link_connect(&s->link, peer->life, rd->life, RING_SIZE, rd->e->bell_io.fd)) {
		shm_release(&s->io);
		return;
	}
	shm_watch(s);
}

/* Those who have connected and do not say who they are. */
static bool drop_strangers(struct rnic_rd *rd)
{
	struct rnic_rd_shm *s, *tmp;
	uint64_t now = util_now_ns();
	int n = 0;

	list_for_each_safe (s, tmp, &rd->links, all) {
		if (s->peer)
			continue;
		if (now - s->since > STRANGER_NS)
			shm_end(s);
		else
			n++;
	}
	return n < STRANGERS_MAX;
}

static bool port_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_rd *rd = ((struct rnic_rd_port *)io)->rd;
	int err = 0;

	(void)events;
	while (drop_strangers(rd)) {
		struct rnic_rd_shm *s = shm_new(rd);

		if (!s)
			break;
		err = shm_port_accept(&rd->port->port, rd->e->bell_io.fd, &s->link);
		if (err) {
			shm_release(&s->io);
			if (err == -EACCES || err == -ECONNABORTED)
				continue;
			break;
		}
		shm_watch(s);
	}
	if (err == -EAGAIN)
		return true;
	/* Somebody waits whom we can not take now: or epoll would call again and again. */
	rnic_io_want(io, 0);
	rnic_timer_arm(rd->e, &rd->port->again, util_now_ns() + AGAIN_NS);
	return true;
}

static void port_again(struct rnic_timer *t, uint64_t now)
{
	struct rnic_rd_port *p = container_of(t, struct rnic_rd_port, again);

	(void)now;
	rnic_io_want(&p->io, EPOLLIN);
}

static void port_release(struct rnic_io *io)
{
	free(io);
}

void rnic_rd_shm_open(struct rnic_rd *rd)
{
	struct rnic_rd_port *p;

	/* Who asks for faults of the network wants to see them. */
	if (!util_tune_bool(rnic_tune(RNIC_TUNE_RD_SHM)) || rnic_fault_any(&rd->fault) ||
	    rnic_engine_bell(rd->e))
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
	p->rd = rd;
	rnic_timer_init(&p->again, port_again);
	if (shm_port_open(&p->port, rd->life, BACKLOG)) {
		free(p);
		return;
	}
	p->io = (struct rnic_io){.fd = p->port.fd, .ready = port_ready, .release = port_release};
	if (rnic_io_add(rd->e, &p->io, EPOLLIN)) {
		shm_port_close(&p->port);
		free(p);
		return;
	}
	rd->port = p;
}

void rnic_rd_shm_shut(struct rnic_rd *rd)
{
	struct rnic_rd_shm *s;

	while ((s = list_first(&rd->links, struct rnic_rd_shm, all)))
		shm_end(s);
	if (rd->port) {
		rnic_timer_cancel(rd->e, &rd->port->again);
		rnic_io_close(&rd->port->io);
	}
	rd->port = NULL;
}

void rnic_rd_shm_discard(struct rnic_rd *rd)
{
	struct rnic_rd_shm *s;

	while ((s = list_first(&rd->links, struct rnic_rd_shm, all))) {
		list_del(&s->all);
		list_del(&s->ring.link);
		drop_responses(s);
		s->link.fd = -1;
		shm_link_close(&s->link);
		shm_release(&s->io);
	}
	free(rd->port);
	rd->port = NULL;
}
