/* RD through shared memory: messages out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_rand.h"
#include "rnic_conn.h"
#include "rnic_rd_shm_rec.h"

/* Room for a record, with its header filled in. NULL: the ring is full.
 *
 * A short one is put together elsewhere and copied at once: the peer polls the very line that it is
 * written to, and would take it away between the first store and the last, which costs two more
 * trips between the cores. */
static struct rec *reserve(struct rnic_rd_shm *s, enum rec_op op, size_t extra)
{
	void *room = shm_ring_reserve(&s->link.tx, (uint32_t)(sizeof(struct rec) + extra));
	struct rec *r = room;

	if (!room)
		return NULL;
	s->room = NULL;
	if (sizeof(*r) + extra <= sizeof(s->stage)) {
		s->room = room;
		r = (struct rec *)s->stage;
	}
	/* A refusal that is not told yet must not be overtaken. */
	*r = (struct rec){.op = (uint8_t)op, .ack = s->n_naks ? s->naks[0].seq - 1 : s->done};
	s->owe = s->n_naks;
	return r;
}

static void commit(struct rnic_rd_shm *s, size_t extra)
{
	if (s->room)
		memcpy(s->room, s->stage, sizeof(struct rec) + extra);
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
	while (s->owe_copied && tell(s, REC_COPIED, 0, (uint32_t)__builtin_ctzll(s->owe_copied)))
		s->owe_copied &= s->owe_copied - 1;
	return !s->owe_rnr && !s->owe_ready && !s->owe_found && !s->owe_copied;
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

/* ---- grants ---- */

/* Whether the peer is to fetch it. What has begun one way goes on that way. */
static bool grant(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	uint32_t word;
	int i;

	if (m->grant || m->sent || !s->reachable || m->length < REC_DIRECT_MIN)
		return m->grant;
	i = shm_grant_give(&s->link, &word);
	if (i < 0)
		return false;
	if (m->lane == RNIC_RD_REQ)
		rnic_swqe_keep(rnic_rd_swqe(m));
	s->granted[i] = m;
	m->grant = (uint8_t)(i + 1);
	return true;
}

void rnic_rd_shm_ungrant(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	if (!m->grant)
		return;
	shm_grant_end(&s->link, m->grant - 1);
	s->granted[m->grant - 1] = NULL;
	m->grant = 0;
}

/* A record without data, only where that is. NULL: the ring is full. */
static struct rec *put_direct(struct rnic_rd_shm *s, struct rnic_rd_msg *m, enum rec_op op,
			      size_t target, const struct iovec *iov, int n)
{
	struct rec_from from = {.grant = m->grant - 1u};
	struct rec *r;

	r = reserve(s, op, target + sizeof(from) + (size_t)n * sizeof(*iov));
	if (!r)
		return NULL;
	from.word = atomic_load_explicit(&s->link.grants[from.grant], memory_order_relaxed);
	r->flags = REC_DIRECT;
	r->n = (uint16_t)n;
	r->off = m->sent;
	memcpy(r->body + target, &from, sizeof(from));
	memcpy(r->body + target + sizeof(from), iov, (size_t)n * sizeof(*iov));
	return r;
}

static void commit_direct(struct rnic_rd_shm *s, struct rnic_rd_msg *m, size_t target, int n,
			  uint32_t len)
{
	commit(s, target + sizeof(struct rec_from) + (size_t)n * sizeof(struct iovec));
	m->sent += len;
	if (m->sent == m->length)
		m->sent = UINT32_MAX;
}

static uint32_t direct_len(const struct rnic_rd_msg *m)
{
	uint32_t left = m->length - m->sent;

	return left < REC_DIRECT_MAX ? left : REC_DIRECT_MAX;
}

/* ---- requests ---- */

/* Only where the data is, of one piece. False: the ring is full. */
static bool push_direct(struct rnic_rd_shm *s, struct rnic_rd_msg *m, enum rec_op op)
{
	struct rnic_swqe *w = rnic_rd_swqe(m);
	size_t target = op == REC_SEND ? 0 : sizeof(struct rec_target);
	struct iovec iov[RNIC_MAX_SGE];
	uint32_t len = direct_len(m);
	struct rec *r;
	int n;

	if (rnic_mem_iov(s->rd->e, s->rd->qp->ibv.pd, w->sge, w->num_sge, m->sent, len, 0, iov,
			 &n)) {
		spoiled(m, IBV_WC_LOC_PROT_ERR);
		return push_void(s, m);
	}
	r = put_direct(s, m, op, target, iov, n);
	if (!r)
		return false;
	r->flags |= rec_flags(w) | (m->sent + len == m->length ? REC_LAST : 0);
	r->seq = m->first;
	r->imm = w->imm;
	r->len = m->length;
	if (target)
		put_target(r->body, w, 0);
	commit_direct(s, m, target, n, len);
	return true;
}

/* The data itself, one piece. */
static bool push_piece(struct rnic_rd_shm *s, struct rnic_rd_msg *m, enum rec_op op)
{
	struct rnic_swqe *w = rnic_rd_swqe(m);
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
	struct rnic_swqe *w = rnic_rd_swqe(m);
	struct iovec iov[RNIC_MAX_SGE];
	struct rec *r;
	int n = 0;

	if (rnic_mem_iov(s->rd->e, s->rd->qp->ibv.pd, w->sge, w->num_sge, 0, w->length,
			 IBV_ACCESS_LOCAL_WRITE, iov, &n)) {
		spoiled(m, IBV_WC_LOC_PROT_ERR);
		return push_void(s, m);
	}
	r = reserve(s, REC_READ, sizeof(struct rec_target));
	if (!r)
		return false;
	r->flags = REC_LAST;
	r->seq = m->first;
	r->len = w->length;
	put_target(r->body, w, q->handle);
	commit(s, sizeof(struct rec_target));
	m->sent = UINT32_MAX;
	return true;
}

static bool push_atomic(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rnic_swqe *w = rnic_rd_swqe(m);
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
	if (!rnic_rd_swqe(m)->inl && grant(s, m))
		return push_direct(s, m, op[m->kind]);
	return push_piece(s, m, op[m->kind]);
}

/* A response, or a piece of it. */
static bool push_data(struct rnic_rd_shm *s, struct rnic_rd_msg *m, uint8_t *from)
{
	uint32_t n = m->length - m->sent;
	bool direct = grant(s, m);
	struct rec *r;

	if (direct) {
		n = direct_len(m);
		r = put_direct(s, m, REC_DATA, 0, &(struct iovec){from + m->sent, n}, 1);
	} else {
		n = n > REC_PIECE ? REC_PIECE : n;
		/* Room for an error, too. */
		r = reserve(s, REC_DATA, n > sizeof(uint64_t) ? n : sizeof(uint64_t));
	}
	if (!r)
		return false;
	r->imm = rnic_rd_job(m)->handle;
	r->off = m->sent;
	r->flags |= m->sent + n == m->length ? REC_LAST : 0;
	if (direct) {
		commit_direct(s, m, 0, 1, n);
	} else if (n && rnic_guard_copy(r->body, from + m->sent, n)) {
		uint64_t reason = WIRE_RD_OPERATION;

		r->op = REC_ERROR;
		memcpy(r->body, &reason, sizeof(reason));
		commit(s, sizeof(reason));
		m->sent = UINT32_MAX;
	} else {
		commit(s, n);
		m->sent = m->sent + n == m->length ? UINT32_MAX : m->sent + n;
	}
	return true;
}

static bool push_response(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rnic_rd_job *job = rnic_rd_job(m);
	enum rnic_mem_error err = RNIC_MEM_OK;
	void *from = NULL;
	struct rec *r;

	if (m->kind == RNIC_RD_READ_RSP && m->length)
		err = rnic_mem_remote(s->rd->e, s->rd->qp->ibv.pd, job->rkey, job->addr, m->length,
				      IBV_ACCESS_REMOTE_READ, &from);
	if (m->kind == RNIC_RD_READ_RSP && !err)
		return push_data(s, m, from);
	if (err) { /* the memory has been taken back, perhaps in the middle */
		rnic_rd_shm_ungrant(s, m);
		m->kind = RNIC_RD_ERROR_RSP;
		job->value = rnic_rd_reason(err);
	}
	r = reserve(s, m->kind == RNIC_RD_ATOMIC_RSP ? REC_VALUE : REC_ERROR, sizeof(job->value));
	if (!r)
		return false;
	r->imm = job->handle;
	memcpy(r->body, &job->value, sizeof(job->value));
	commit(s, sizeof(job->value));
	m->sent = UINT32_MAX;
	return true;
}

static bool may_go(const struct rnic_rd_shm *s, const struct rnic_rd_msg *m)
{
	const struct rnic_rd_peer *peer = s->peer;

	if (m->begun)
		return true;
	if (rnic_rd_is_read(m) && peer->reads >= RNIC_RD_READS)
		return false;
	return !peer->reads || !(rnic_rd_swqe(m)->flags & IBV_SEND_FENCE);
}

static void begin(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	if (m->begun)
		return;
	m->begun = 1; /* when does not matter: nobody chooses paths by it */
	if (rnic_rd_is_read(m))
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
		s->n_responses--;
		s->peer->n_jobs--;
		if (!m->grant)
			free(m); /* else when the peer has copied it */
		/* What came over UDP may have waited for its turn to be answered. */
		if (s->peer->n_events && list_empty(&s->responses))
			rnic_rd_events(s->peer);
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
		s->n_responses++;
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

/* Each side tells the other where a word is that only its own memory has. */
void rnic_rd_shm_introduce(struct rnic_rd_shm *s)
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
