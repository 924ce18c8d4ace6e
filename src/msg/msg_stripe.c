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
	/* Of paths that may share links, some are enough; none of those that do not is left out. */
	if (ep->conf.stripe_auto && msg_paths_distinct(paths))
		paths->conf.batch = paths->conf.paths;
	stripe_peer_init(&paths->conf, &paths->state, seed);
	msg_use_open(ep, peer, paths);
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
			paths->before += p->paths->use.path[i].bytes;
		retire(ep, p->paths);
	}
	p->paths = paths;
	return paths;
}

/* Asking the device takes its lock, for each path. */
#define WATCH_EVERY (20 * UTIL_NS_PER_MS)
/* A silent way is tried again after that long, and later and later. */
#define DOWN_FIRST (500 * UTIL_NS_PER_MS)
#define DOWN_MOST  (16 * UTIL_NS_PER_S)

/* The device sends what is on a silent way over another one; no more is given to it for a while. */
static void watch_ways(struct msg_ep *ep, uint32_t peer, struct msg_paths *paths, uint64_t now)
{
	if (!ep->port->way_silent || now - paths->watched < WATCH_EVERY)
		return;
	paths->watched = now;
	for (uint32_t i = 0; i < paths->conf.paths; i++) {
		bool silent = ep->port->way_silent(ep, peer, paths->way[i]);

		if (paths->state.down[i]) {
			if (now >= paths->down_until[i])
				stripe_heal(&paths->conf, &paths->state, i);
		} else if (silent) {
			/* Not long ago it was so, too. */
			if (now - paths->down_until[i] < paths->down_for[i])
				paths->down_for[i] *= 2;
			else
				paths->down_for[i] = DOWN_FIRST;
			if (paths->down_for[i] > DOWN_MOST)
				paths->down_for[i] = DOWN_MOST;
			paths->down_until[i] = now + paths->down_for[i];
			stripe_down(&paths->conf, &paths->state, i);
		}
	}
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

bool msg_stripe_asks(struct msg_ep *ep, uint32_t peer, uint64_t len)
{
	struct msg_peer *p = &ep->peers[peer];
	struct weftdv_rd_stats rd;

	if (!ep->conf.stripe.policy || !ep->port->ways || !p->far || len < ep->conf.stripe_min)
		return false;
	if (!ep->conf.stripe_auto)
		return true;
	return !msg_verbs_dv()->query_rd(ep->qp, &rd) &&
	       stripe_auto(&ep->crowd, rd.sent, rd.resent);
}

void msg_stripe_begun(struct msg_ep *ep, struct msg_op *op)
{
	op->posted = ep->conf.stripe_auto && op->room >= ep->conf.stripe_min ? util_now_ns() : 0;
}

void msg_stripe_arrived(struct msg_ep *ep, const struct msg_op *op)
{
	if (op->posted)
		stripe_auto_done(&ep->crowd, op->strip_it, op->room, op->posted, util_now_ns());
}

/* What the other one has said, or we would say. */
static bool is_hot(const struct msg_ep *ep, const struct msg_peer *p)
{
	return p->hot || ep->crowd.left || (ep->conf.stripe.policy && !ep->conf.stripe_auto);
}

/* Data that is written holds up what is sent later to the same peer until the slowest path has
 * brought its part, and requests for what the peer sends wait behind it. */
bool msg_stripe_reads(const struct msg_ep *ep, uint32_t peer, uint64_t len)
{
	const struct msg_peer *p = &ep->peers[peer];

	return p->far && len >= ep->conf.stripe_min && is_hot(ep, p);
}

bool msg_stripe_wanted(struct msg_ep *ep, struct msg_op *op)
{
	uint32_t peer = msg_rdma_peer(op);
	struct msg_peer *p = &ep->peers[peer];
	struct msg_paths *paths;

	if (op->strip)
		return true;
	if (op->len)
		return false;
	/* Of a message the sender has decided, unless the way there is crowded, too. */
	if (op->kind == MSG_OP_READ || op->kind == MSG_OP_WRITE)
		op->strip_it = msg_stripe_asks(ep, peer, op->room);
	else if (op->kind == MSG_OP_RECV && op->room >= ep->conf.stripe_min && ep->crowd.left)
		op->strip_it = true;
	if (!op->strip_it || !ep->conf.stripe.policy || !ep->port->ways || !p->far)
		return false;
	/* Without memory one path has to do. */
	paths = paths_now(ep, peer);
	if (paths)
		op->strip = calloc(1, sizeof(*op->strip));
	if (!op->strip)
		return false;
	op->strip->op = op;
	list_init(&op->strip->turn);
	list_add_tail(&op->strip->link, &ep->strips);
	op->strip->paths = paths;
	paths->users++;
	watch_ways(ep, peer, paths, util_now_ns());
	stripe_begin(&paths->conf, &paths->state, &op->strip->msg, msg_rdma_left(op));
	return true;
}

/* Small pieces of so many messages at once, from all peers: many that send to one host would fill
 * the queue of its link. */
#define PARTS_MOST 16

/* ... but two on each path, where a message has more of them. */
static uint32_t most(const struct msg_strip *s)
{
	uint32_t two = 2 * s->paths->conf.batch;

	return two > PARTS_MOST ? two : PARTS_MOST;
}

/* Whether this message has to wait for its turn. Shares are all posted at once. */
static bool waits_turn(const struct msg_ep *ep, const struct msg_strip *s)
{
	return s->msg.piece && !s->part &&
	       (ep->parts_out >= most(s) || (!s->called && !list_empty(&ep->turns)));
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
	msg_use_begin(&paths->use, part->piece.path, part->began);
	s->part = part;
	ep->parts_out++;
	s->left = part->piece.bytes;
	return 0;
}

int msg_stripe_post(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	int err = 0;

	list_del(&s->turn);
	while (!err && msg_rdma_left(op)) {
		uint64_t n;

		if (waits_turn(ep, s)) {
			list_add_tail(&s->turn, &ep->turns);
			break;
		}
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
		s->called = false;
	}
	s->called = false;
	return err == -EBUSY ? 0 : err;
}

bool msg_stripe_waits(const struct msg_op *op)
{
	return op->strip && !list_empty(&op->strip->turn);
}

/* Who waits first may post a piece, and more if nobody else waits. */
static void call_next(struct msg_ep *ep)
{
	struct msg_strip *s;

	while ((s = list_first(&ep->turns, struct msg_strip, turn)) && ep->parts_out < most(s)) {
		list_del(&s->turn);
		s->called = true;
		msg_rdma_go_on(ep, s->op);
	}
}

void msg_stripe_end(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_part *part = op->strip->part;

	if (part && !part->posted) {
		stripe_forget(&op->strip->paths->state, &op->strip->msg, &part->piece);
		msg_use_end(&op->strip->paths->use, part->piece.path, 0, util_now_ns());
		ep->parts_out--;
		part_free(ep, part);
	}
	list_del(&op->strip->turn);
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
		uint64_t now = util_now_ns();
		bool end = !err && stripe_done(&paths->conf, &paths->state, &s->msg, &part->piece,
					       part->began, now);

		if (err)
			stripe_forget(&paths->state, &s->msg, &part->piece);
		msg_use_end(&paths->use, part->piece.path, err ? 0 : part->piece.bytes, now);
		if (paths->old && !err)
			ep->peers[msg_rdma_peer(op)].paths->before += part->piece.bytes;
		watch_ways(ep, msg_rdma_peer(op), paths, now);
		msg_use_show(ep, paths, now, end);
		ep->parts_out--;
		part_free(ep, part);
	}
	if (!op->err && !err && list_empty(&op->link) && msg_rdma_left(op)) {
		op->pending--;
		msg_rdma_go_on(ep, op);
	} else {
		msg_rdma_done(ep, op, err);
	}
	call_next(ep);
}

/* ---- for people ---- */

bool msg_ep_paths(struct msg_ep *ep, uint32_t *peer, struct msg_path_stats *out)
{
	bool found = false;
	uint64_t now;

	util_lock(&ep->lock);
	now = util_now_ns();
	for (; *peer < ep->n_peers && !found; ++*peer) {
		const struct msg_paths *paths = ep->peers[*peer].paths;

		if (!paths)
			continue;
		*out = (struct msg_path_stats){.ip = ep->peers[*peer].addr.ip,
					       .paths = paths->conf.paths,
					       .addresses = paths->addresses,
					       .before = paths->before};
		for (uint32_t i = 0; i < out->paths; i++) {
			struct msg_live_path p = msg_use_path(paths, i, now);

			out->weight[i] = p.weight;
			out->bytes[i] = p.bytes;
			out->busy[i] = p.busy;
			out->to[i] = paths->ip[i];
		}
		found = true;
	}
	util_unlock(&ep->lock);
	return found;
}
