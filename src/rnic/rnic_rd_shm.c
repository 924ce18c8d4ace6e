/* RD through shared memory: links, and messages out. Messages in: rnic_rd_shm_rx.c. */
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

/* ---- sending ---- */

/* Room for a record, with its header filled in. NULL: the ring is full. */
static struct rec *reserve(struct rnic_rd_shm *s, enum rec_op op, size_t extra)
{
	struct rec *r = shm_ring_reserve(&s->link.tx, (uint32_t)(sizeof(*r) + extra));

	if (!r)
		return NULL;
	/* A refusal that is not told yet must not be overtaken. */
	*r = (struct rec){.op = (uint8_t)op, .ack = s->n_naks ? s->naks[0].seq - 1 : s->done};
	s->owe = s->n_naks;
	return r;
}

static void commit(struct rnic_rd_shm *s, size_t extra)
{
	shm_ring_commit(&s->link.tx, (uint32_t)(sizeof(struct rec) + extra));
	s->committed = true;
}

static void bell(struct rnic_rd_shm *s)
{
	if (s->committed)
		shm_link_ring(&s->link);
	s->committed = false;
}

/* A record without a body. */
static bool tell(struct rnic_rd_shm *s, enum rec_op op, uint32_t seq, uint32_t imm)
{
	struct rec *r = reserve(s, op, 0);

	if (!r)
		return false;
	r->seq = seq;
	r->imm = imm;
	commit(s, 0);
	return true;
}

/* What the other side must hear, as far as there is room. */
static bool tell_all(struct rnic_rd_shm *s)
{
	uint32_t told = 0;

	while (told < s->n_naks && tell(s, REC_NAK, s->naks[told].seq, s->naks[told].reason))
		told++;
	s->n_naks -= told;
	if (told)
		memmove(s->naks, s->naks + told, s->n_naks * sizeof(*s->naks));
	if (s->n_naks)
		return false;
	if (s->owe_rnr && tell(s, REC_RNR, s->done + 1, s->rd->qp->attr.min_rnr_timer))
		s->owe_rnr = false;
	if (s->owe_ready && !s->owe_rnr && tell(s, REC_READY, s->done + 1, 0))
		s->owe_ready = false;
	if (s->owe_found && tell(s, REC_FOUND, 0, s->can_fetch))
		s->owe_found = false;
	return !s->owe_rnr && !s->owe_ready && !s->owe_found;
}

void rnic_rd_shm_ack(struct rnic_rd_shm *s)
{
	if (tell_all(s) && s->owe)
		tell(s, REC_ACK, 0, 0);
	bell(s);
}

/* Without room for it the link's end has to do. */
void rnic_rd_shm_bye(struct rnic_rd_shm *s)
{
	if (s->link.state == SHM_LINK_UP)
		tell(s, REC_BYE, 0, 0);
	bell(s);
}

static struct rnic_swqe *swqe_of(const struct rnic_rd_msg *m)
{
	const struct rnic_rd_req *r = (const struct rnic_rd_req *)m;

	return rnic_swqe_at(r->rd->qp, r->slot);
}

static void spoiled(struct rnic_rd_msg *m, uint8_t status)
{
	if (!rnic_rd_req(m)->status)
		rnic_rd_req(m)->status = status;
}

/* The target of a write, a read or an atomic. */
static uint8_t *put_target(uint8_t *to, const struct rnic_swqe *w, uint32_t handle)
{
	struct rec_target t = {.addr = w->remote_addr, .rkey = w->rkey, .handle = handle};

	memcpy(to, &t, sizeof(t));
	return to + sizeof(t);
}

/* A request that failed before it was sent: its number must be used up. */
static bool push_void(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rec *r = reserve(s, REC_VOID, 0);

	if (!r)
		return false;
	r->seq = m->first;
	commit(s, 0);
	m->sent = UINT32_MAX;
	return true;
}

/* Only where the data is. True: done, false: the ring is full. */
static bool push_direct(struct rnic_rd_shm *s, struct rnic_rd_msg *m, enum rec_op op)
{
	struct rnic_swqe *w = swqe_of(m);
	size_t target = op == REC_SEND ? 0 : sizeof(struct rec_target);
	struct iovec iov[RNIC_MAX_SGE];
	struct rec *r;
	int n;

	if (rnic_mem_iov(s->rd->e, s->rd->qp->ibv.pd, w->sge, w->num_sge, 0, w->length, 0, iov,
			 &n)) {
		spoiled(m, IBV_WC_LOC_PROT_ERR);
		return push_void(s, m);
	}
	r = reserve(s, op, target + (size_t)n * sizeof(*iov));
	if (!r)
		return false;
	r->flags = REC_DIRECT | REC_LAST | rec_flags(w);
	r->n = (uint16_t)n;
	r->seq = m->first;
	r->imm = w->imm;
	r->len = m->length;
	if (target)
		put_target(r->body, w, 0);
	memcpy(r->body + target, iov, (size_t)n * sizeof(*iov));
	commit(s, target + (size_t)n * sizeof(*iov));
	m->sent = UINT32_MAX;
	return true;
}

/* The data itself, one piece. */
static bool push_piece(struct rnic_rd_shm *s, struct rnic_rd_msg *m, enum rec_op op)
{
	struct rnic_swqe *w = swqe_of(m);
	size_t target = op == REC_SEND ? 0 : sizeof(struct rec_target);
	uint32_t n = m->length - m->sent;
	struct rec *r;
	uint8_t *to;

	if (n > REC_PIECE)
		n = REC_PIECE;
	r = reserve(s, op, target + n);
	if (!r)
		return false;
	r->seq = m->first;
	r->imm = w->imm;
	r->len = m->length;
	r->off = m->sent;
	to = target ? put_target(r->body, w, 0) : r->body;
	if (w->inl) {
		memcpy(to, (const uint8_t *)w->sge + m->sent, n);
	} else if (n && rnic_mem_gather(s->rd->e, s->rd->qp->ibv.pd, w->sge, w->num_sge, m->sent,
					to, n, NULL)) {
		spoiled(m, IBV_WC_LOC_PROT_ERR);
		return push_void(s, m);
	}
	m->sent += n;
	r->flags = rec_flags(w) | (m->sent == m->length ? REC_LAST : 0);
	commit(s, target + n);
	if (m->sent == m->length)
		m->sent = UINT32_MAX;
	return true;
}

static bool push_read(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rnic_rd_req *q = rnic_rd_req(m);
	struct rnic_swqe *w = swqe_of(m);
	size_t target = sizeof(struct rec_target);
	struct iovec iov[RNIC_MAX_SGE];
	struct rec *r;
	int n = 0;

	if (rnic_mem_iov(s->rd->e, s->rd->qp->ibv.pd, w->sge, w->num_sge, 0, w->length,
			 IBV_ACCESS_LOCAL_WRITE, iov, &n)) {
		spoiled(m, IBV_WC_LOC_PROT_ERR);
		return push_void(s, m);
	}
	r = reserve(s, REC_READ, target + (size_t)n * sizeof(*iov));
	if (!r)
		return false;
	r->flags = REC_LAST;
	r->seq = m->first;
	r->n = (uint16_t)n;
	r->len = w->length;
	put_target(r->body, w, q->handle);
	memcpy(r->body + target, iov, (size_t)n * sizeof(*iov));
	commit(s, target + (size_t)n * sizeof(*iov));
	m->sent = UINT32_MAX;
	return true;
}

static bool push_atomic(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rnic_swqe *w = swqe_of(m);
	uint64_t args[2] = {w->compare_add, w->swap};
	size_t target = sizeof(struct rec_target);
	struct rec *r = reserve(s, w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? REC_ADD : REC_SWAP,
				target + sizeof(args));

	if (!r)
		return false;
	r->flags = REC_LAST;
	r->seq = m->first;
	put_target(r->body, w, rnic_rd_req(m)->handle);
	memcpy(r->body + target, args, sizeof(args));
	commit(s, target + sizeof(args));
	m->sent = UINT32_MAX;
	return true;
}

static bool push_request(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	static const enum rec_op op[] = {[RNIC_RD_SEND] = REC_SEND,
					 [RNIC_RD_WRITE] = REC_WRITE,
					 [RNIC_RD_WRITE_IMM] = REC_WRITE_IMM};

	if (m->kind == RNIC_RD_READ)
		return push_read(s, m);
	if (m->kind == RNIC_RD_ATOMIC)
		return push_atomic(s, m);
	if (s->reachable && m->length >= REC_DIRECT_MIN && !swqe_of(m)->inl)
		return push_direct(s, m, op[m->kind]);
	return push_piece(s, m, op[m->kind]);
}

/* Straight into the requester's memory, which it has told. 0, or -errno when it must be
 * tried through the ring. */
static int push_into(struct rnic_rd_shm *s, struct rnic_rd_job *job, const void *from)
{
	struct iovec local = {(void *)from, job->msg.length};

	if (!s->can_fetch || !job->n_iov || job->msg.length < REC_DIRECT_MIN)
		return -EPERM;
	return shm_copy_to(s->link.pid, (struct shm_vec){&local, 1},
			   (struct shm_vec){job->iov, (unsigned long)job->n_iov});
}

/* A response, or a piece of it. */
static bool push_response(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rnic_rd_job *job = rnic_rd_job(m);
	uint32_t n = m->length - m->sent;
	enum rnic_mem_error err = RNIC_MEM_OK;
	void *from = NULL;
	struct rec *r;

	if (m->kind != RNIC_RD_READ_RSP) {
		r = reserve(s, m->kind == RNIC_RD_ATOMIC_RSP ? REC_VALUE : REC_ERROR,
			    sizeof(job->value));
		if (!r)
			return false;
		r->imm = job->handle;
		memcpy(r->body, &job->value, sizeof(job->value));
		commit(s, sizeof(job->value));
		m->sent = UINT32_MAX;
		return true;
	}
	if (m->length)
		err = rnic_mem_remote(s->rd->e, s->rd->qp->ibv.pd, job->rkey, job->addr, m->length,
				      IBV_ACCESS_REMOTE_READ, &from);
	if (!err && !m->sent && !push_into(s, job, from))
		n = 0, m->sent = m->length; /* only the news is left */
	if (n > REC_PIECE)
		n = REC_PIECE;
	r = reserve(s, REC_DATA, n);
	if (!r)
		return false;
	r->imm = job->handle;
	r->off = m->sent;
	if (!err && n)
		err = rnic_guard_copy(r->body, (uint8_t *)from + m->sent, n);
	if (err) {
		r->op = REC_ERROR;
		job->value = WIRE_RD_OPERATION;
		memcpy(r->body, &job->value, sizeof(job->value));
		commit(s, sizeof(job->value));
		m->sent = UINT32_MAX;
		return true;
	}
	m->sent += n;
	if (m->sent == m->length) {
		r->flags = REC_LAST;
		m->sent = UINT32_MAX;
	}
	commit(s, n);
	return true;
}

static bool may_go(const struct rnic_rd_shm *s, const struct rnic_rd_msg *m)
{
	const struct rnic_rd_peer *peer = s->peer;

	if (m->begun)
		return true;
	if ((m->kind == RNIC_RD_READ || m->kind == RNIC_RD_ATOMIC) && peer->reads >= RNIC_RD_READS)
		return false;
	return !peer->reads || !(swqe_of(m)->flags & IBV_SEND_FENCE);
}

static void begin(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	if (m->begun)
		return;
	m->begun = s->rd->e->now | 1; /* roughly: nobody chooses paths by it */
	if (m->kind == RNIC_RD_READ || m->kind == RNIC_RD_ATOMIC)
		s->peer->reads++;
}

static void pump_requests(struct rnic_rd_shm *s)
{
	struct rnic_rd_msg *m;

	if (!s->open) {
		if (s->peer->lane && !list_empty(&s->peer->lane[RNIC_RD_REQ].msgs))
			return; /* those come first */
		s->open = true;
	}
	while (!s->rnr && (m = list_first(&s->requests, struct rnic_rd_msg, link)) &&
	       may_go(s, m)) {
		begin(s, m);
		while (m->sent != UINT32_MAX)
			if (!(m->skip ? push_void(s, m) : push_request(s, m)))
				return;
		list_del(&m->link);
		list_add_tail(&m->link, &s->sent);
	}
}

void rnic_rd_shm_pump(struct rnic_rd_shm *s)
{
	struct rnic_rd_msg *m;

	if (s->link.state != SHM_LINK_UP || !tell_all(s))
		goto out;
	while ((m = list_first(&s->responses, struct rnic_rd_msg, link))) {
		while (m->sent != UINT32_MAX)
			if (!push_response(s, m))
				goto out;
		list_del(&m->link);
		s->peer->n_jobs--;
		free(m);
	}
	pump_requests(s);
out:
	bell(s);
}

void rnic_rd_shm_send(struct rnic_rd_peer *peer, struct rnic_rd_msg *m)
{
	struct rnic_rd_shm *s = peer->shm;

	peer->rd->stats.local_messages++;
	if (m->lane == RNIC_RD_RSP) {
		list_add_tail(&m->link, &s->responses);
		return;
	}
	m->first = ++s->seq;
	list_add_tail(&m->link, &s->requests);
}

void rnic_rd_shm_expire(struct rnic_rd_shm *s, uint64_t now)
{
	struct rnic_rd_msg *m = list_first(&s->requests, struct rnic_rd_msg, link);

	if (!s->rnr || now < s->rnr_deadline || !m)
		return;
	/* The first of those that wait is the one that was refused. */
	spoiled(m, IBV_WC_RNR_RETRY_EXC_ERR);
	m->skip = true;
	m->sent = 0;
	s->rnr = false;
	rnic_rd_shm_pump(s);
}

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
		rnic_rq_give_back(s->rd->qp->rq, s->wqe);
		s->has_wqe = false;
	}
	if (s->peer)
		s->peer->shm = NULL;
	s->peer = NULL;
	list_del(&s->all);
	list_del(&s->ring.link);
	s->link.fd = -1; /* closed with the descriptor's registration */
	rnic_io_close(&s->io);
	shm_link_close(&s->link);
}

void rnic_rd_shm_fail(struct rnic_rd_shm *s, enum ibv_wc_status status)
{
	struct list_head *lists[] = {&s->sent, &s->requests};
	struct rnic_rd_msg *m;

	for (int i = 0; i < 2; i++)
		while ((m = list_first(lists[i], struct rnic_rd_msg, link))) {
			list_del(&m->link);
			rnic_rd_fail(rnic_rd_req(m), status);
		}
	while ((m = list_first(&s->responses, struct rnic_rd_msg, link))) {
		list_del(&m->link);
		free(m);
	}
	shm_end(s);
}

/* Each side tells the other where a word is that only its own memory has. */
static void introduce(struct rnic_rd_shm *s)
{
	struct rec *r;

	if (util_random_key(&s->word, sizeof(s->word)))
		return;
	r = reserve(s, REC_WORD, 2 * sizeof(uint64_t));
	if (r) {
		uint64_t body[2] = {(uintptr_t)&s->word, s->word};

		memcpy(r->body, body, sizeof(body));
		commit(s, sizeof(body));
		bell(s);
	}
}

static bool is_own(const struct rnic_rd *rd, struct in_addr addr)
{
	const struct rnic_device *dev = rd->qp->ctx->dev;

	if (ntohl(addr.s_addr) >> 24 == 127)
		return true;
	for (int i = 0; i < dev->n_addr; i++)
		if (dev->addr[i].addr.s_addr == addr.s_addr)
			return true;
	return false;
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
	list_add_tail(&s->ring.link, &s->rd->e->rings);
	introduce(s);
	if (list_empty(&peer->touched))
		list_add_tail(&peer->touched, &s->rd->touched);
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
		while (rnic_rd_shm_look(s) && io->fd >= 0)
			; /* what it has said before it went */
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
	s->since = util_now_ns();
	list_init(&s->ring.link);
	list_init(&s->all);
	list_init(&s->requests);
	list_init(&s->responses);
	list_init(&s->sent);
	return s;
}

static bool shm_watch(struct rnic_rd_shm *s)
{
	s->io.fd = s->link.fd;
	if (rnic_io_add(s->rd->e, &s->io, EPOLLIN)) {
		shm_link_close(&s->link);
		shm_release(&s->io);
		return false;
	}
	list_add_tail(&s->all, &s->rd->links);
	return true;
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
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM)
		rnic_io_want(io, 0); /* or epoll would call again and again */
	return true;
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
	if (rd->port)
		rnic_io_close(&rd->port->io);
	rd->port = NULL;
}

void rnic_rd_shm_discard(struct rnic_rd *rd)
{
	struct rnic_rd_shm *s;
	struct rnic_rd_msg *m;

	while ((s = list_first(&rd->links, struct rnic_rd_shm, all))) {
		list_del(&s->all);
		while ((m = list_first(&s->responses, struct rnic_rd_msg, link))) {
			list_del(&m->link);
			free(m);
		}
		s->link.fd = -1;
		shm_link_close(&s->link);
		shm_release(&s->io);
	}
	free(rd->port);
	rd->port = NULL;
}
