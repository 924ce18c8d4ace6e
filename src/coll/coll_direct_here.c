/* Pairs of one host: each rank fills a box in shared memory and says so once, and the others take
 * what is theirs (coll_mail.h). That a box is filled says that its owner has arrived. Aware, boxes
 * are looked at in any order; unaware, one by one, up to one whose owner has not arrived.
 *
 * Boxes have two banks, as everything has, in the memory that three phases use in other calls.
 */
#include <errno.h>
#include <stdlib.h>

#include "coll_direct.h"
#include "coll_here.h"

static uint8_t *box(const struct coll_direct *d, uint32_t local)
{
	const struct coll_comm *c = d->c;

	return c->shm.data + coll_gather_base(c, c->host, coll_bank(d->call)) +
	       (uint64_t)local * c->shm_slot * c->size;
}

static _Atomic uint32_t *filled(const struct coll_direct *d, uint32_t local)
{
	return coll_shm_word(&d->c->shm, local, coll_bank(d->call));
}

/* How many have not yet copied what they copy from a rank's own memory. */
static _Atomic uint32_t *lent(const struct coll_direct *d, uint32_t local)
{
	return coll_shm_word(&d->c->shm, local, COLL_WORD_LENT + coll_bank(d->call));
}

static uint32_t rank_of(const struct coll_comm *c, uint32_t local)
{
	return c->by_host[c->first[c->host] + local];
}

/* ---- what is sent ---- */

static void fill_box(struct coll_direct *d)
{
	struct coll_direct_here *h = &d->here;
	struct coll_comm *c = d->c;
	uint32_t me = c->shm.me, lends = 0;
	size_t used = 0;

	for (uint32_t i = 1; i < c->shm.ranks; i++) {
		uint32_t to = (me + i) % c->shm.ranks, rank = rank_of(c, to);
		struct coll_mail_out out = {.box = box(d, me),
					    .to = to,
					    .bytes = coll_send_at(d->a, rank),
					    .len = coll_block_len(&d->a->send, rank)};

		coll_mail_put(&h->mail, &out, &used);
		if (coll_mail_way(&h->mail, out.len) == COLL_MAIL_FETCHED)
			lends++;
		else if (out.sent < out.len)
			h->out[h->n_out++] = out;
	}
	h->lent = lends > 0;
	atomic_store_explicit(lent(d, me), lends, memory_order_relaxed);
	coll_shm_set(&c->shm, filled(d, me), d->call);
}

static bool send_parts(struct coll_direct_here *h)
{
	uint32_t left = 0;
	bool moved = false;

	for (uint32_t i = 0; i < h->n_out; i++) {
		moved |= coll_mail_more(&h->mail, &h->out[i]);
		if (h->out[i].sent < h->out[i].len)
			h->out[left++] = h->out[i];
	}
	h->n_out = left;
	return moved;
}

/* ---- what is taken ---- */

/* An owner that gives up in the middle of a call takes its memory back: what was copied then may be
 * anything. */
static int give_back(struct coll_direct *d, uint32_t local)
{
	if (!coll_shm_is(filled(d, local), d->call))
		return -ECONNABORTED;
	if (atomic_fetch_sub_explicit(lent(d, local), 1, memory_order_acq_rel) == 1)
		coll_shm_event(&d->c->shm);
	return 0;
}

/* Returns whether all of it is here, or -errno. */
static int take(struct coll_direct *d, struct coll_direct_in *in)
{
	uint32_t local = d->c->peer[in->src].local;
	int ret = coll_mail_take(&d->here.mail, &in->in);

	if (ret == -ESRCH)
		coll_comm_lost(d->c, in->src, -EOWNERDEAD);
	if (ret <= 0)
		return ret;
	ret = 0;
	if (coll_mail_way(&d->here.mail, in->in.len) == COLL_MAIL_FETCHED)
		ret = give_back(d, local);
	if (!ret && d->landing)
		ret = coll_deliver(d->a, in->src, in->in.to);
	return ret ? ret : 1;
}

/* Returns whether anything was there, or -errno. */
static int take_some(struct coll_direct *d)
{
	struct coll_direct_here *h = &d->here;
	uint32_t left = 0, i = 0;
	bool moved = false;
	int ret = 0;

	for (; i < h->n_in && ret >= 0; i++) {
		size_t before = h->in[i].in.taken;

		if (!coll_shm_is(filled(d, d->c->peer[h->in[i].src].local), d->call)) {
			if (!d->aware)
				break;
			h->in[left++] = h->in[i];
			continue;
		}
		ret = take(d, &h->in[i]);
		moved |= ret > 0 || h->in[i].in.taken != before;
		h->tell |= moved && coll_mail_way(&h->mail, h->in[i].in.len) == COLL_MAIL_PARTS;
		if (ret == 0)
			h->in[left++] = h->in[i];
	}
	for (; i < h->n_in; i++)
		h->in[left++] = h->in[i];
	h->n_in = left;
	return ret < 0 ? ret : moved;
}

/* ---- all of it ---- */

int coll_direct_here_begin(struct coll_direct *d)
{
	struct coll_direct_here *h = &d->here;
	struct coll_comm *c = d->c;

	h->mail = coll_mail_of(c);
	h->in = calloc(c->shm.ranks, sizeof(*h->in));
	h->out = calloc(c->shm.ranks, sizeof(*h->out));
	if (!h->in || !h->out)
		return -ENOMEM;
	for (uint32_t i = 1; i < c->shm.ranks; i++) {
		uint32_t from = (c->shm.me + c->shm.ranks - i) % c->shm.ranks;
		uint32_t src = rank_of(c, from);

		h->in[h->n_in++] =
			(struct coll_direct_in){.src = src,
						.in = {.box = box(d, from),
						       .pid = c->peer[src].pid,
						       .me = c->shm.me,
						       .to = coll_direct_landing(d, src),
						       .len = coll_block_len(&d->a->recv, src)}};
	}
	if (c->shm.ranks > 1)
		fill_box(d);
	return 0;
}

int coll_direct_here_turn(struct coll_direct *d)
{
	bool sent = send_parts(&d->here);
	int ret = take_some(d);

	/* Who waits for parts, or for room for them, is told once in a turn. */
	if (sent || d->here.tell)
		coll_shm_event(&d->c->shm);
	d->here.tell = false;
	return ret < 0 ? ret : ret | sent;
}

bool coll_direct_here_finished(const struct coll_direct *d)
{
	return !d->here.n_in && !d->here.n_out &&
	       (!d->here.lent || coll_shm_is(lent(d, d->c->shm.me), 0));
}

bool coll_direct_here_parts(const struct coll_direct *d)
{
	if (d->here.n_out)
		return true;
	for (uint32_t i = 0; i < d->here.n_in; i++)
		if (coll_mail_way(&d->here.mail, d->here.in[i].in.len) == COLL_MAIL_PARTS)
			return true;
	return false;
}

void coll_direct_here_free(struct coll_direct *d, int ret)
{
	if (ret && d->here.lent)
		coll_shm_set(&d->c->shm, filled(d, d->c->shm.me), 0);
	free(d->here.in);
	free(d->here.out);
}
