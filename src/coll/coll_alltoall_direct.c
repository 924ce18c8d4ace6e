/* Everybody writes to everybody (section 4.2 of the paper, docs/collectives.md).
 *
 * Short blocks go to the slot that the receiver keeps for the sender; that something is there says
 * that the sender has arrived. Long blocks go to where the receiver has said, and that it has said
 * so says that it has arrived. Both ends of a pair know its length, so they need not agree on which
 * it is, and in MPI_Alltoallv both kinds mix. Unaware, a rank writes to the ranks after it one by
 * one, and stops where one has not arrived; aware, to those who are there first, and to the others
 * as they come.
 *
 * Where memory to receive into can not be registered, the MPI carries the data: the receiver says
 * that, too.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "coll_alltoall.h"

#define TAG   0x6ef8
#define PIECE (1 << 30) /* of what the MPI carries: it counts in int */

struct direct {
	struct coll_alltoall *a;
	struct coll_comm *c;
	uint32_t call;
	bool aware;
	uint32_t *to, n_to;     /* who is still to be sent to, in order */
	uint32_t *from, n_from; /* who is still to be heard of */
	struct coll_mem mem;    /* of the program's, for long blocks */
	char *span;             /* where that begins */
	struct coll_scratch *landing;
	uint64_t *landing_at; /* of each block */
	MPI_Request *req;     /* what the MPI carries */
	int n_req;
};

static bool is_long(const struct direct *d, size_t len)
{
	return len > d->c->copy_max;
}

/* ---- what the MPI carries ---- */

static int more_requests(struct direct *d, size_t len)
{
	size_t pieces = (len + PIECE - 1) / PIECE;
	MPI_Request *req = realloc(d->req, ((size_t)d->n_req + pieces) * sizeof(*req));

	if (!req)
		return -ENOMEM;
	d->req = req;
	return 0;
}

static int carry(struct direct *d, uint32_t peer, void *buf, size_t len, bool out)
{
	int ret = more_requests(d, len);

	for (size_t at = 0; at < len && !ret; at += PIECE) {
		int n = len - at < PIECE ? (int)(len - at) : PIECE;
		char *p = (char *)buf + at;

		ret = out ? PMPI_Isend(p, n, MPI_BYTE, (int)peer, TAG, d->c->priv,
				       &d->req[d->n_req])
			  : PMPI_Irecv(p, n, MPI_BYTE, (int)peer, TAG, d->c->priv,
				       &d->req[d->n_req]);
		ret = ret ? -EIO : 0;
		d->n_req += !ret;
		d->c->carried += !ret;
	}
	return ret;
}

static int carried(struct direct *d)
{
	struct coll_wait w;
	int done = !d->n_req, ret = 0;

	coll_wait_begin(d->c, &w, COLL_FOR_NET);
	while (!done && !ret) {
		ret = PMPI_Testall(d->n_req, d->req, &done, MPI_STATUSES_IGNORE) ? -EIO : 0;
		if (!done && !ret)
			ret = coll_wait(d->c, &w);
	}
	return ret;
}

/* ---- where long blocks are received ---- */

static uint8_t *landing(const struct direct *d, uint32_t src)
{
	return d->landing ? d->landing->at + d->landing_at[src]
			  : (uint8_t *)coll_block_at(&d->a->recv, src);
}

/* From the first to the last byte of what is received there, gaps and all. */
static void open_span(struct direct *d)
{
	const struct coll_blocks *b = &d->a->recv;
	char *low = NULL, *high = NULL;

	for (uint32_t i = 0; i < d->c->size; i++) {
		char *at = coll_block_at(b, i);
		size_t len = coll_block_len(b, i);

		if (i == d->c->rank || !is_long(d, len))
			continue;
		low = !low || at < low ? at : low;
		high = !high || at + len > high ? at + len : high;
	}
	d->span = low;
	if (low && coll_net_reg(low, (size_t)(high - low), &d->mem))
		d->mem.mr = NULL;
}

static int open_landing(struct direct *d)
{
	uint64_t len = 0;

	if (d->a->recv.type.plain) {
		open_span(d);
		return 0;
	}
	d->landing_at = calloc(d->c->size, sizeof(*d->landing_at));
	if (!d->landing_at)
		return -ENOMEM;
	for (uint32_t i = 0; i < d->c->size; i++) {
		d->landing_at[i] = len;
		if (i != d->c->rank && is_long(d, coll_block_len(&d->a->recv, i)))
			len += coll_block_len(&d->a->recv, i);
	}
	d->landing = coll_scratch(d->c, 1, len);
	return d->landing ? 0 : -ENOMEM;
}

static struct coll_advert advert(const struct direct *d, uint32_t src)
{
	uint64_t len = coll_block_len(&d->a->recv, src);

	if (d->landing)
		return d->landing->registered
			       ? (struct coll_advert){d->landing->mem.key.addr + d->landing_at[src],
						      d->landing->mem.key.key, len, 0, 0}
			       : (struct coll_advert){.len = len, .carried = 1};
	if (!d->mem.mr)
		return (struct coll_advert){.len = len, .carried = 1};
	return (struct coll_advert){d->mem.key.addr +
					    (uint64_t)(coll_block_at(&d->a->recv, src) - d->span),
				    d->mem.key.key, len, 0, 0};
}

static int advertise(struct direct *d, uint32_t src)
{
	struct coll_comm *c = d->c;
	struct coll_advert *out = coll_advert_out(c, src);
	uint64_t offset = (uint64_t)2 * c->size * c->slot + c->rank * sizeof(*out);
	struct coll_put p = {
		.buf = out,
		.len = sizeof(*out),
		.desc = c->mem.desc,
		.peer = src,
		.kind = COLL_ADVERT,
		.call = d->call,
		.to = {c->peer[src].mem.addr + offset, c->peer[src].mem.key},
	};
	int ret = 0;

	*out = advert(d, src);
	if (out->carried)
		ret = carry(d, src, landing(d, src), out->len, false);
	return ret ? ret : coll_put(c, &p);
}

/* ---- sending ---- */

static bool here(const struct direct *d, uint32_t peer)
{
	return coll_arrived(d->c, d->call, COLL_ADVERT, peer) ||
	       coll_arrived(d->c, d->call, COLL_DATA, peer);
}

static bool ready(const struct direct *d, uint32_t peer)
{
	return !is_long(d, coll_block_len(&d->a->send, peer)) ||
	       coll_arrived(d->c, d->call, COLL_ADVERT, peer);
}

static int send_long(struct direct *d, uint32_t peer, size_t len)
{
	const uint8_t *bytes = coll_send_at(d->a, peer);
	struct coll_advert to = *coll_advert(d->c, peer);
	struct coll_put p = {
		.buf = bytes,
		.len = len,
		.desc = d->a->desc,
		.peer = peer,
		.kind = COLL_DATA,
		.call = d->call,
		.to = {to.addr, to.key},
	};

	coll_consume(d->c, d->call, COLL_ADVERT, peer);
	if (to.len != len)
		return -EMSGSIZE;
	return to.carried ? carry(d, peer, (void *)(uintptr_t)bytes, len, true)
			  : coll_put(d->c, &p);
}

static int send_one(struct direct *d, uint32_t peer)
{
	size_t len = coll_block_len(&d->a->send, peer);

	if (is_long(d, len))
		return send_long(d, peer, len);
	return coll_put_slot(d->c, d->call, peer, COLL_DATA, coll_send_at(d->a, peer), len,
			     d->a->desc);
}

/* Sends to those who can be sent to and, if only_here, are known to have arrived. Returns how many,
 * or -errno. */
static int send_some(struct direct *d, bool only_here)
{
	uint32_t left = 0, before = d->n_to, i = 0;
	int ret = 0;

	for (; i < before && !ret; i++) {
		uint32_t peer = d->to[i];

		if (ready(d, peer) && (!only_here || here(d, peer)))
			ret = send_one(d, peer);
		else if (d->aware)
			d->to[left++] = peer;
		else
			break;
	}
	for (; i < before; i++)
		d->to[left++] = d->to[i];
	d->n_to = left;
	return ret ? ret : (int)(before - left);
}

/* ---- receiving ---- */

static int receive_one(struct direct *d, uint32_t src)
{
	size_t len = coll_block_len(&d->a->recv, src);

	coll_consume(d->c, d->call, COLL_DATA, src);
	if (!is_long(d, len))
		return coll_deliver(d->a, src, coll_slot(d->c, d->call, src));
	return d->landing ? coll_deliver(d->a, src, landing(d, src)) : 0;
}

static int receive_some(struct direct *d)
{
	uint32_t left = 0, before = d->n_from;
	int ret = 0;

	for (uint32_t i = 0; i < before && !ret; i++) {
		if (coll_arrived(d->c, d->call, COLL_DATA, d->from[i]))
			ret = receive_one(d, d->from[i]);
		else
			d->from[left++] = d->from[i];
	}
	d->n_from = left;
	return ret ? ret : (int)(before - left);
}

/* ---- all of it ---- */

static int begin(struct direct *d)
{
	struct coll_comm *c = d->c;
	size_t own = coll_block_len(&d->a->recv, c->rank);
	int ret = open_landing(d);

	d->to = calloc(2 * (size_t)c->size, sizeof(*d->to));
	d->from = d->to + c->size;
	if (!ret && !d->to)
		ret = -ENOMEM;
	if (!ret && own != coll_block_len(&d->a->send, c->rank))
		ret = -EMSGSIZE;
	for (uint32_t i = 1; i < c->size && !ret; i++) {
		uint32_t src = (c->rank + c->size - i) % c->size;
		struct coll_advert ad;

		d->to[d->n_to++] = (c->rank + i) % c->size;
		if (is_long(d, coll_block_len(&d->a->recv, src))) {
			ad = advert(d, src);
			ret = advertise(d, src);
			if (ad.carried)
				continue;
		}
		d->from[d->n_from++] = src;
	}
	return ret ? ret : coll_deliver(d->a, c->rank, coll_send_at(d->a, c->rank));
}

/* What the MPI has carried, if it is not where it belongs. */
static int deliver_carried(struct direct *d)
{
	int ret = 0;

	if (!d->landing || d->landing->registered)
		return 0;
	for (uint32_t i = 0; i < d->c->size && !ret; i++)
		if (i != d->c->rank && is_long(d, coll_block_len(&d->a->recv, i)))
			ret = coll_deliver(d->a, i, landing(d, i));
	return ret;
}

static bool missing(const void *arg, uint32_t rank)
{
	const struct direct *d = arg;

	for (uint32_t i = 0; i < d->n_to; i++)
		if (d->to[i] == rank)
			return true;
	for (uint32_t i = 0; i < d->n_from; i++)
		if (d->from[i] == rank)
			return true;
	return false;
}

static int run(struct direct *d)
{
	struct coll_wait w;
	int moved = d->aware ? send_some(d, true) : 0;

	coll_wait_begin(d->c, &w, COLL_FOR_NET);
	w.missing = missing;
	w.arg = d;
	while (moved >= 0 && (d->n_to || d->n_from)) {
		moved = send_some(d, false);
		if (moved >= 0 && !d->aware && !d->n_to)
			moved = coll_flush(d->c);
		if (moved >= 0 && (d->aware || !d->n_to))
			moved = receive_some(d);
		if (moved >= 0 && (d->n_to || d->n_from))
			moved = coll_wait(d->c, &w);
	}
	return moved < 0 ? moved : 0;
}

int coll_alltoall_direct(struct coll_alltoall *a, bool aware)
{
	struct direct d = {.a = a, .c = a->c, .aware = aware};
	int ret;

	d.call = coll_begin(a->c);
	ret = begin(&d);
	if (!ret)
		ret = run(&d);
	if (!ret)
		ret = carried(&d);
	if (!ret)
		ret = deliver_carried(&d);
	if (!ret)
		ret = coll_flush(a->c);
	coll_net_dereg(&d.mem);
	free(d.to);
	free(d.landing_at);
	free(d.req);
	return ret;
}
