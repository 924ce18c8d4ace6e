#include "msg_stripe.h"

#include <errno.h>
#include <stdlib.h>
#include "util_clock.h"
#include "util_rand.h"
#include "msg_ep.h"

/* ---- paths ---- */

void msg_paths_free(struct msg_ep *ep, struct msg_paths *paths)
{
	if (paths && ep->port->ways_free)
		ep->port->ways_free(paths);
	free(paths);
}

static struct msg_paths *make_paths(struct msg_ep *ep, uint32_t peer)
{
	struct msg_paths *paths = calloc(1, sizeof(*paths));
	uint64_t seed;

	if (!paths || util_random_key(&seed, sizeof(seed)))
		goto fail;
	paths->conf = ep->conf.stripe;
	if (ep->port->ways(ep, peer, paths))
		goto fail;
	stripe_peer_init(&paths->conf, &paths->state, seed);
	return paths;
fail:
	msg_paths_free(ep, paths);
	return NULL;
}

/* Messages that are under way keep those that they have. */
static void retire(struct msg_ep *ep, struct msg_paths *paths)
{
	paths->old = true;
	if (!paths->users)
		msg_paths_free(ep, paths);
}

static void leave(struct msg_ep *ep, struct msg_paths *paths)
{
	if (!--paths->users && paths->old)
		msg_paths_free(ep, paths);
}

static struct msg_paths *paths_now(struct msg_ep *ep, uint32_t peer)
{
	bool news = ep->port->ways_news && ep->port->ways_news(ep, peer);
	struct msg_peer *p = &ep->peers[peer];
	struct msg_paths *paths;

	if (p->paths && !news)
		return p->paths;
	paths = make_paths(ep, peer);
	if (!paths)
		return p->paths;
	if (p->paths) {
		paths->before = p->paths->before;
		for (uint32_t i = 0; i < p->paths->conf.paths; i++)
			paths->before += p->paths->bytes[i];
		retire(ep, p->paths);
	}
	p->paths = paths;
	return paths;
}

/* ---- parts ---- */

static struct msg_part *part_new(struct msg_ep *ep)
{
	struct msg_part *part = ep->part_free;

	if (part) {
		ep->part_free = part->next;
		return part;
	}
	part = malloc(sizeof(*part));
	if (part) {
		part->all = ep->parts;
		ep->parts = part;
	}
	return part;
}

static void part_free(struct msg_ep *ep, struct msg_part *part)
{
	part->next = ep->part_free;
	ep->part_free = part;
}

void msg_strips_free(struct msg_ep *ep)
{
	struct msg_strip *s;
	struct msg_part *part;

	while ((s = list_first(&ep->strips, struct msg_strip, link))) {
		list_del(&s->link);
		leave(ep, s->paths);
		free(s);
	}
	while ((part = ep->parts)) {
		ep->parts = part->all;
		free(part);
	}
}

/* ---- the communication scheduler ---- */

bool msg_stripe_wanted(struct msg_ep *ep, struct msg_op *op)
{
	uint32_t peer = msg_rdma_peer(op);
	struct msg_peer *p = &ep->peers[peer];
	struct msg_paths *paths;

	if (op->strip)
		return true;
	if (!ep->conf.stripe.policy || !ep->port->ways || !p->far || op->len ||
	    op->room < ep->conf.stripe_min)
		return false;
	/* Without memory one path has to do. */
	paths = paths_now(ep, peer);
	if (paths)
		op->strip = calloc(1, sizeof(*op->strip));
	if (!op->strip)
		return false;
	list_add_tail(&op->strip->link, &ep->strips);
	op->strip->paths = paths;
	paths->users++;
	stripe_begin(&paths->conf, &paths->state, &op->strip->msg, msg_rdma_left(op));
	return true;
}

/* 0: there is one; -EBUSY: not before others have arrived. */
static int next_part(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	struct msg_paths *paths = s->paths;
	struct msg_part *part;

	if (s->part)
		return 0;
	part = part_new(ep);
	if (!part)
		return -ENOMEM;
	if (!stripe_next(&paths->conf, &paths->state, &s->msg, &part->piece)) {
		part_free(ep, part);
		return -EBUSY;
	}
	part->op = op;
	part->posted = 0;
	part->began = util_now_ns();
	s->part = part;
	s->left = part->piece.bytes;
	return 0;
}

int msg_stripe_post(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	int err = 0;

	while (!err && msg_rdma_left(op)) {
		uint64_t n;

		err = next_part(ep, op);
		if (err)
			break;
		n = msg_tx_part(ep, op, s->left, s->part, s->paths->way[s->part->piece.path], &err);
		if (err)
			break;
		s->part->posted++;
		s->left -= n;
		if (!s->left)
			s->part = NULL; /* its work requests have it */
	}
	return err == -EBUSY ? 0 : err;
}

void msg_stripe_end(struct msg_ep *ep, struct msg_op *op)
{
	if (op->strip->part && !op->strip->part->posted)
		part_free(ep, op->strip->part);
	list_del(&op->strip->link);
	leave(ep, op->strip->paths);
	free(op->strip);
	op->strip = NULL;
}

/* ---- the completion filter ---- */

void msg_stripe_done(struct msg_ep *ep, struct msg_part *part, int err)
{
	struct msg_op *op = part->op;
	struct msg_strip *s = op->strip;
	struct msg_paths *paths = s->paths;

	part->posted--;
	if (!part->posted && s->part != part) {
		if (!err) {
			stripe_done(&paths->conf, &paths->state, &s->msg, &part->piece, part->began,
				    util_now_ns());
			if (paths->old)
				ep->peers[msg_rdma_peer(op)].paths->before += part->piece.bytes;
			else
				paths->bytes[part->piece.path] += part->piece.bytes;
		}
		part_free(ep, part);
	}
	if (!op->err && !err && list_empty(&op->link) && msg_rdma_left(op)) {
		op->pending--;
		msg_rdma_go_on(ep, op);
		return;
	}
	msg_rdma_done(ep, op, err);
}

/* ---- for people ---- */

bool msg_ep_paths(struct msg_ep *ep, uint32_t *peer, struct msg_path_stats *out)
{
	bool found = false;

	util_lock(&ep->lock);
	for (; *peer < ep->n_peers && !found; ++*peer) {
		const struct msg_paths *paths = ep->peers[*peer].paths;

		if (!paths)
			continue;
		*out = (struct msg_path_stats){.ip = ep->peers[*peer].addr.ip,
					       .paths = paths->conf.paths,
					       .addresses = paths->addresses,
					       .before = paths->before};
		for (uint32_t i = 0; i < out->paths; i++) {
			out->weight[i] = paths->state.weight[i];
			out->bytes[i] = paths->bytes[i];
			out->to[i] = paths->ip[i];
		}
		found = true;
	}
	util_unlock(&ep->lock);
	return found;
}
