/* Pairs of different hosts: writes by the network.
 *
 * Short blocks go to the slot that the receiver keeps for the sender; that something is there says
 * that the sender has arrived. Long blocks go to where the receiver has said, and that it has said
 * so says that it has arrived. Both ends of a pair know its length, so they need not agree on which
 * it is, and in MPI_Alltoallv both kinds mix. Unaware, a rank writes to the ranks after it one by
 * one, and stops where one has not arrived; aware, to those who are there first, and to the others
 * as they come.
 *
 * The program has its memory back when the call is over, so short blocks are sent from a copy: then
 * nobody has to wait until they have arrived. The copy is written over in the call after the next
 * one; whoever comes to that knows that they have.
 *
 * Where memory to receive into can not be registered, or a block is longer than a write can be, the
 * MPI carries the data: the receiver says that, too.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "coll_direct.h"

#define PIECE (1 << 30) /* of what the MPI carries: it counts in int */

/* ---- what the MPI carries ---- */

static int more_requests(struct coll_direct *d, size_t len)
{
	size_t pieces = (len + PIECE - 1) / PIECE;
	MPI_Request *req = realloc(d->net.req, ((size_t)d->net.n_req + pieces) * sizeof(*req));

	if (!req)
		return -ENOMEM;
	d->net.req = req;
	return 0;
}

static int carry(struct coll_direct *d, uint32_t peer, void *buf, size_t len, bool out)
{
	int world = d->c->peer[peer].world, tag = d->c->tag + COLL_TAG_CARRIED;
	int ret = more_requests(d, len);

	for (size_t at = 0; at < len && !ret; at += PIECE) {
		int n = len - at < PIECE ? (int)(len - at) : PIECE;
		char *p = (char *)buf + at;

		ret = out ? PMPI_Isend(p, n, MPI_BYTE, world, tag, coll_world,
				       &d->net.req[d->net.n_req])
			  : PMPI_Irecv(p, n, MPI_BYTE, world, tag, coll_world,
				       &d->net.req[d->net.n_req]);
		ret = ret ? -EIO : 0;
		d->net.n_req += !ret;
		d->c->carried += !ret;
	}
	return ret;
}

static int carried(struct coll_direct *d)
{
	struct coll_wait w;
	int done = !d->net.n_req, ret = 0;

	coll_wait_begin(d->c, &w, COLL_FOR_NET);
	while (!done && !ret) {
		ret = PMPI_Testall(d->net.n_req, d->net.req, &done, MPI_STATUSES_IGNORE) ? -EIO : 0;
		if (!done && !ret)
			ret = coll_wait(d->c, &w);
	}
	return ret;
}

/* ---- where long blocks are received ---- */

/* From the first to the last byte of what is received there, gaps and all. */
static void open_span(struct coll_direct *d)
{
	const struct coll_blocks *b = &d->a->recv;
	char *low = NULL, *high = NULL;

	for (uint32_t i = 0; i < d->c->size; i++) {
		char *at = coll_block_at(b, i);
		size_t len = coll_block_len(b, i);

		if (coll_direct_is_here(d, i) || !coll_direct_is_long(d, len))
			continue;
		low = !low || at < low ? at : low;
		high = !high || at + len > high ? at + len : high;
	}
	d->net.span = low;
	if (low && coll_net_reg(low, (size_t)(high - low), &d->net.mem))
		d->net.mem.mr = NULL;
}

static struct coll_advert advert(const struct coll_direct *d, uint32_t src)
{
	uint64_t len = coll_block_len(&d->a->recv, src);

	if (len > coll_net_longest() || !(d->landing ? d->landing->registered : !!d->net.mem.mr))
		return (struct coll_advert){.len = len, .carried = 1};
	if (d->landing)
		return (struct coll_advert){d->landing->mem.key.addr + d->landing_at[src],
					    d->landing->mem.key.key, len, 0, 0};
	return (struct coll_advert){
		d->net.mem.key.addr + (uint64_t)(coll_block_at(&d->a->recv, src) - d->net.span),
		d->net.mem.key.key, len, 0, 0};
}

static int advertise(struct coll_direct *d, uint32_t src)
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
	d->net.flush = true;
	if (out->carried)
		ret = carry(d, src, coll_direct_landing(d, src), out->len, false);
	return ret ? ret : coll_put(c, &p);
}

/* ---- sending ---- */

static bool here(const struct coll_direct *d, uint32_t peer)
{
	return coll_arrived(d->c, d->call, COLL_ADVERT, peer) ||
	       coll_arrived(d->c, d->call, COLL_DATA, peer);
}

static bool ready(const struct coll_direct *d, uint32_t peer)
{
	return !coll_direct_is_long(d, coll_block_len(&d->a->send, peer)) ||
	       coll_arrived(d->c, d->call, COLL_ADVERT, peer);
}

static int send_long(struct coll_direct *d, uint32_t peer, size_t len)
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
	d->net.flush = true;
	if (to.len != len)
		return -EMSGSIZE;
	return to.carried ? carry(d, peer, (void *)(uintptr_t)bytes, len, true)
			  : coll_put(d->c, &p);
}

static int send_short(struct coll_direct *d, uint32_t peer, size_t len)
{
	const uint8_t *bytes = coll_send_at(d->a, peer);
	struct coll_comm *c = d->c;
	uint8_t *copy;

	if (!d->net.stage) {
		d->net.flush = true;
		return coll_put_slot(c, d->call, peer, COLL_DATA, bytes, len, d->a->desc);
	}
	copy = d->net.stage->at + ((size_t)coll_bank(d->call) * c->size + peer) * c->copy_far;
	memcpy(copy, bytes, len);
	return coll_put_slot(c, d->call, peer, COLL_DATA, copy, len, d->net.stage->mem.desc);
}

static int send_one(struct coll_direct *d, uint32_t peer)
{
	size_t len = coll_block_len(&d->a->send, peer);

	return coll_direct_is_long(d, len) ? send_long(d, peer, len) : send_short(d, peer, len);
}

/* Not for those who do not move data by themselves: they have to be waited for anyway. */
static void open_stage(struct coll_direct *d)
{
	struct coll_comm *c = d->c;

	if (!coll_net_moves() || !c->copy_far)
		return;
	d->net.stage = coll_scratch(c, 2, 2 * c->copy_far * c->size);
	if (d->net.stage && coll_net_local() && !d->net.stage->registered)
		d->net.stage = NULL;
}

/* Sends to those who can be sent to and, if only_here, are known to have arrived. Returns how many,
 * or -errno. */
static int send_some(struct coll_direct *d, bool only_here)
{
	uint32_t left = 0, before = d->net.n_to, i = 0;
	int ret = 0;

	for (; i < before && !ret; i++) {
		uint32_t peer = d->net.to[i];

		if (ready(d, peer) && (!only_here || here(d, peer)))
			ret = send_one(d, peer);
		else if (d->aware)
			d->net.to[left++] = peer;
		else
			break;
	}
	for (; i < before; i++)
		d->net.to[left++] = d->net.to[i];
	d->net.n_to = left;
	return ret ? ret : (int)(before - left);
}

/* ---- receiving ---- */

static int receive_one(struct coll_direct *d, uint32_t src)
{
	size_t len = coll_block_len(&d->a->recv, src);

	coll_consume(d->c, d->call, COLL_DATA, src);
	if (!coll_direct_is_long(d, len))
		return coll_deliver(d->a, src, coll_slot(d->c, d->call, src));
	return d->landing ? coll_deliver(d->a, src, coll_direct_landing(d, src)) : 0;
}

static int receive_some(struct coll_direct *d)
{
	uint32_t left = 0, before = d->net.n_from;
	int ret = 0;

	for (uint32_t i = 0; i < before && !ret; i++) {
		if (coll_arrived(d->c, d->call, COLL_DATA, d->net.from[i]))
			ret = receive_one(d, d->net.from[i]);
		else
			d->net.from[left++] = d->net.from[i];
	}
	d->net.n_from = left;
	return ret ? ret : (int)(before - left);
}

/* ---- all of it ---- */

static int list_peers(struct coll_direct *d)
{
	struct coll_direct_net *n = &d->net;
	struct coll_comm *c = d->c;
	int ret = 0;

	for (uint32_t i = 1; i < c->size && !ret; i++) {
		uint32_t to = (c->rank + i) % c->size, src = (c->rank + c->size - i) % c->size;

		if (!coll_direct_is_here(d, to))
			n->to[n->n_to++] = to;
		if (coll_direct_is_here(d, src))
			continue;
		if (coll_direct_is_long(d, coll_block_len(&d->a->recv, src))) {
			struct coll_advert ad = advert(d, src);

			ret = advertise(d, src);
			if (ad.carried)
				continue;
		}
		n->from[n->n_from++] = src;
	}
	return ret;
}

int coll_direct_net_begin(struct coll_direct *d)
{
	struct coll_comm *c = d->c;
	int ret;

	if (c->hosts == 1)
		return 0;
	d->net.to = calloc(2 * (size_t)c->size, sizeof(*d->net.to));
	if (!d->net.to)
		return -ENOMEM;
	d->net.from = d->net.to + c->size;
	if (!d->landing)
		open_span(d);
	open_stage(d);
	ret = list_peers(d);
	d->net.n_in = d->net.n_req;
	/* Others may be known to be there by now; they come first. */
	if (!ret && d->aware)
		ret = send_some(d, true);
	return ret < 0 ? ret : 0;
}

int coll_direct_net_turn(struct coll_direct *d)
{
	int sent = 0, got = 0;

	if (d->net.n_to) {
		sent = send_some(d, false);
		if (sent >= 0 && !d->aware && !d->net.n_to && d->net.flush) {
			int ret = coll_flush(d->c);

			sent = ret ? ret : sent;
		}
	}
	if (sent >= 0 && (d->aware || !d->net.n_to))
		got = receive_some(d);
	return sent < 0 ? sent : got < 0 ? got : sent + got;
}

bool coll_direct_net_finished(const struct coll_direct *d)
{
	return !d->net.n_to && !d->net.n_from;
}

bool coll_direct_net_waits_for(const struct coll_direct *d, uint32_t rank)
{
	for (uint32_t i = 0; i < d->net.n_to; i++)
		if (d->net.to[i] == rank)
			return true;
	for (uint32_t i = 0; i < d->net.n_from; i++)
		if (d->net.from[i] == rank)
			return true;
	return false;
}

/* What the MPI has carried, if it is not where it belongs. */
static int deliver_carried(struct coll_direct *d)
{
	int ret = 0;

	if (!d->landing)
		return 0;
	for (uint32_t i = 0; i < d->c->size && !ret; i++)
		if (!coll_direct_is_here(d, i) &&
		    coll_direct_is_long(d, coll_block_len(&d->a->recv, i)) && advert(d, i).carried)
			ret = coll_deliver(d->a, i, coll_direct_landing(d, i));
	return ret;
}

int coll_direct_net_end(struct coll_direct *d)
{
	int ret = 0;

	if (d->c->hosts == 1)
		return 0;
	ret = carried(d);
	if (!ret)
		ret = deliver_carried(d);
	return ret || !d->net.flush ? ret : coll_flush(d->c);
}

/* What the MPI still carries where the call has failed. The program's memory is its own again, so
 * nothing may be received there any more; what has begun to come can not be waited for. */
static void take_back(struct coll_direct *d)
{
	for (int i = 0; i < d->net.n_req; i++) {
		MPI_Request *req = &d->net.req[i];
		int done = *req == MPI_REQUEST_NULL;

		if (!done && i < d->net.n_in)
			PMPI_Cancel(req);
		if (!done && !PMPI_Test(req, &done, MPI_STATUS_IGNORE) && !done)
			PMPI_Request_free(req);
	}
}

void coll_direct_net_free(struct coll_direct *d)
{
	take_back(d);
	coll_net_dereg(&d->net.mem);
	free(d->net.to);
	free(d->net.req);
}
