/* RD through shared memory: messages out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_rand.h"
#include "rnic_conn.h"
#include "rnic_rd_shm_rec.h"

/* A record is put together elsewhere and copied at once: the peer polls the very line that it is
 * written to, and would take it away between the first store and the last, which costs two more
 * trips between the cores. Of a long one that is the first line, and its data goes straight to its
 * place behind that. It begins there at a line, for whole lines are written without being fetched
 * first; of a message in several pieces the second does, because the first is a header. */
_Static_assert(sizeof(struct rec) + sizeof(struct rec_target) + sizeof(struct rec_from) +
			       RNIC_MAX_SGE * sizeof(struct iovec) <=
		       sizeof(((struct rnic_rd_shm *)0)->stage),
	       "all that is not data");

/* ---- copies ----
 *
 * What is in the application's memory, which gets that back at once, may have to be sent again if
 * the peer has no receive for it. It need not be copied for that: it is in the ring, where it stays
 * until the ring has come round. Mostly it is acknowledged by then; else it is copied now. (The
 * peer can write there, too, but only to itself.) */

void rnic_rd_shm_rescue(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rnic_swqe *w = rnic_rd_swqe(m);

	if (!m->copy)
		return;
	memcpy((void *)(uintptr_t)w->remote_addr, shm_ring_old(&s->link.tx, m->copy), w->length);
	rnic_swqe_kept(w);
	m->copy = 0;
}

/* Before so many bytes are written. A quarter more than is necessary, to be asked less often. */
static void rescue_all(struct rnic_rd_shm *s, uint32_t bytes)
{
	uint32_t more = bytes + s->link.tx.size / 4;
	struct rnic_rd_msg *m;

	if (shm_ring_lasts(&s->link.tx, s->copies, bytes))
		return;
	s->copies = UINT64_MAX;
	list_for_each (m, &s->sent, link) {
		if (!m->copy)
			continue;
		if (shm_ring_lasts(&s->link.tx, m->copy, more)) {
			s->copies = m->copy;
			return;
		}
		rnic_rd_shm_rescue(s, m);
	}
}

/* All of it is in the ring. */
static void in_ring(struct rnic_rd_shm *s, struct rnic_rd_msg *m, const uint8_t *at)
{
	rnic_rd_swqe(m)->keep = false;
	m->copy = shm_ring_place(&s->link.tx, at);
	if (s->copies > m->copy)
		s->copies = m->copy;
}

/* ---- records ---- */

/* Room for a record of so many bytes, with its header filled in. NULL: the ring is full. */
static struct rec *reserve_bytes(struct rnic_rd_shm *s, enum rec_op op, size_t bytes)
{
	struct rec *r = (struct rec *)s->stage;

	rescue_all(s, (uint32_t)bytes);
	s->room = shm_ring_reserve(&s->link.tx, (uint32_t)bytes);
	if (!s->room)
		return NULL;
	/* A refusal that is not told yet must not be overtaken. */
	*r = (struct rec){.op = (uint8_t)op, .ack = s->n_naks ? s->naks[0].seq - 1 : s->done};
	s->owe = s->n_naks;
	return r;
}

/* One with so many bytes in its body. */
static struct rec *reserve(struct rnic_rd_shm *s, enum rec_op op, size_t extra)
{
	return reserve_bytes(s, op, sizeof(struct rec) + extra);
}

/* Where the data of a record goes: the first of it is put together with the record. */
struct data {
	uint8_t *first, *rest;
	size_t n_first, n_rest;
	size_t at; /* in the record */
};

/* One with so many bytes in its body, then `n` bytes of data; `first` of these are a header, or 0.
 */
static struct rec *reserve_data(struct rnic_rd_shm *s, enum rec_op op, size_t extra, size_t first,
				size_t n, struct data *to)
{
	size_t at = sizeof(struct rec) + extra, gap = 0;
	struct rec *r;

	if (at + n <= sizeof(s->stage))
		first = n;
	else
		gap = -(SHM_RING_HEADER + at + first) & (SHM_RING_ALIGN - 1);
	r = reserve_bytes(s, op, at + gap + n);
	if (!r)
		return NULL;
	r->n = (uint16_t)gap;
	at += gap;
	*to = (struct data){(uint8_t *)r + at, (uint8_t *)s->room + at + first, first, n - first,
			    at};
	return r;
}

static void commit_bytes(struct rnic_rd_shm *s, size_t staged, size_t bytes)
{
	memcpy(s->room, s->stage, staged);
	shm_ring_commit(&s->link.tx, (uint32_t)bytes);
	s->committed = true;
}

static void commit(struct rnic_rd_shm *s, size_t extra)
{
	commit_bytes(s, sizeof(struct rec) + extra, sizeof(struct rec) + extra);
}

static void commit_data(struct rnic_rd_shm *s, const struct data *d)
{
	commit_bytes(s, d->at + d->n_first, d->at + d->n_first + d->n_rest);
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
	bool waits = s->link.tx.full;

	if (tell_all(s) && s->owe)
		tell(s, REC_ACK, 0, 0);
	/* There was room for this little, perhaps because the peer has just made some. What waits
	 * for more does not hear of that by itself. */
	s->link.tx.full |= waits;
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
static void put_target(uint8_t *to, const struct rnic_swqe *w, uint32_t handle)
{
	struct rec_target t = {.addr = w->remote_addr, .rkey = w->rkey, .handle = handle};

	memcpy(to, &t, sizeof(t));
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

/* Headers are at most so long. */
#define HEADER_MAX 128

/* Whether the first piece of memory is one: how long it is. */
static size_t header_of(const struct rnic_swqe *w, const struct rnic_rd_msg *m)
{
	return m->sent || w->inl || w->num_sge < 2 || w->sge[0].length > HEADER_MAX
		       ? 0
		       : w->sge[0].length;
}

/* Copies that part of a request's data. False: it is not there. */
static bool fill(struct rnic_rd_shm *s, const struct rnic_swqe *w, uint32_t off, uint8_t *to,
		 size_t n)
{
	if (!n)
		return true;
	if (!w->inl)
		return !rnic_mem_gather(s->rd->e, s->rd->qp->ibv.pd, w->sge, w->num_sge, off, to,
					(uint32_t)n, NULL);
	memcpy(to, (const uint8_t *)w->sge + off, n);
	return true;
}

/* The data itself, one piece. */
static bool push_piece(struct rnic_rd_shm *s, struct rnic_rd_msg *m, enum rec_op op)
{
	struct rnic_swqe *w = rnic_rd_swqe(m);
	size_t target = op == REC_SEND ? 0 : sizeof(struct rec_target);
	uint32_t n = m->length - m->sent;
	struct data to;
	struct rec *r;

	if (n > REC_PIECE)
		n = REC_PIECE;
	r = reserve_data(s, op, target, header_of(w, m), n, &to);
	if (!r)
		return false;
	r->seq = m->first;
	r->imm = w->imm;
	r->len = m->length;
	r->off = m->sent;
	if (target)
		put_target(r->body, w, 0);
	if (!fill(s, w, m->sent, to.first, to.n_first) ||
	    !fill(s, w, m->sent + (uint32_t)to.n_first, to.rest, to.n_rest)) {
		spoiled(m, IBV_WC_LOC_PROT_ERR);
		return push_void(s, m);
	}
	if (w->keep && n == m->length && to.n_rest)
		in_ring(s, m, to.rest - to.n_first);
	m->sent += n;
	r->flags = rec_flags(w) | (m->sent == m->length ? REC_LAST : 0);
	commit_data(s, &to);
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

/* What an atomic has found, or why there is no answer. */
static bool push_value(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rnic_rd_job *job = rnic_rd_job(m);
	struct rec *r = reserve(s, m->kind == RNIC_RD_ATOMIC_RSP ? REC_VALUE : REC_ERROR,
				sizeof(job->value));

	if (!r)
		return false;
	r->imm = job->handle;
	memcpy(r->body, &job->value, sizeof(job->value));
	commit(s, sizeof(job->value));
	m->sent = UINT32_MAX;
	return true;
}

/* A response, or a piece of it. */
static bool push_data(struct rnic_rd_shm *s, struct rnic_rd_msg *m, uint8_t *from)
{
	uint32_t n = m->length - m->sent;
	bool direct = grant(s, m);
	struct data to;
	struct rec *r;

	if (direct) {
		n = direct_len(m);
		r = put_direct(s, m, REC_DATA, 0, &(struct iovec){from + m->sent, n}, 1);
	} else {
		n = n > REC_PIECE ? REC_PIECE : n;
		r = reserve_data(s, REC_DATA, 0, 0, n, &to);
	}
	if (!r)
		return false;
	r->imm = rnic_rd_job(m)->handle;
	r->off = m->sent;
	r->flags |= m->sent + n == m->length ? REC_LAST : 0;
	if (direct) {
		commit_direct(s, m, 0, 1, n);
	} else if (n && rnic_guard_copy(to.n_first ? to.first : to.rest, from + m->sent, n)) {
		m->kind = RNIC_RD_ERROR_RSP;
		rnic_rd_job(m)->value = WIRE_RD_OPERATION;
		return push_value(s, m);
	} else {
		commit_data(s, &to);
		m->sent = m->sent + n == m->length ? UINT32_MAX : m->sent + n;
	}
	return true;
}

static bool push_response(struct rnic_rd_shm *s, struct rnic_rd_msg *m)
{
	struct rnic_rd_job *job = rnic_rd_job(m);
	enum rnic_mem_error err = RNIC_MEM_OK;
	void *from = NULL;

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
	return push_value(s, m);
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
