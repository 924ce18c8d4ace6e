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

/* Short messages take the first path that is up. */
static int plan_whole(struct msg_paths *paths, uint64_t seed)
{
	char why[128];
	int err = stripe_parse(&paths->whole.conf, "single", why, sizeof(why));

	paths->whole.conf.paths = paths->conf.paths;
	if (!err)
		stripe_peer_init(&paths->whole.conf, &paths->whole.state, seed);
	return err;
}

/* 0; -EAGAIN: not yet; or one path has to do. */
static int make_paths(struct msg_ep *ep, uint32_t peer)
{
	struct msg_paths *paths = calloc(1, sizeof(*paths));
	uint64_t seed;
	int err = paths ? util_random_key(&seed, sizeof(seed)) : -ENOMEM;

	if (!err) {
		paths->conf = ep->conf.stripe;
		err = ep->port->ways(ep, peer, paths);
	}
	if (!err)
		err = plan_whole(paths, seed);
	if (err) {
		msg_paths_free(ep, paths);
		return err;
	}
	stripe_peer_init(&paths->conf, &paths->state, seed);
	ep->peers[peer].paths = paths;
	for (uint32_t i = 0; i < paths->conf.paths && ep->port->way_up; i++)
		if (!ep->port->way_up(paths->way[i]))
			msg_path_down(ep, peer, i);
	return 0;
}

struct stripe_conf *msg_stripe_conf(struct msg_paths *paths, const struct msg_strip *s)
{
	return s->whole ? &paths->whole.conf : &paths->conf;
}

struct stripe_peer *msg_stripe_state(struct msg_paths *paths, const struct msg_strip *s)
{
	return s->whole ? &paths->whole.state : &paths->state;
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

void msg_part_free(struct msg_ep *ep, struct msg_part *part)
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
		free(s);
	}
	while ((part = ep->parts)) {
		ep->parts = part->all;
		free(part);
	}
}

/* ---- the communication scheduler ---- */

struct msg_paths *msg_paths_of(struct msg_ep *ep, const struct msg_op *op)
{
	return ep->peers[msg_rdma_peer(op)].paths;
}

bool msg_stripe_fins(const struct msg_ep *ep, const struct msg_op *op)
{
	return op->strip && ep->port->connected && op->kind == MSG_OP_SEND;
}

int msg_stripe_wanted(struct msg_ep *ep, struct msg_op *op)
{
	uint32_t peer = msg_rdma_peer(op);
	struct msg_peer *p = &ep->peers[peer];
	bool is_long = op->room >= ep->conf.stripe_min;
	int err;

	if (op->strip || !ep->conf.stripe.policy || !ep->port->ways || !p->far || p->alone ||
	    op->len || !msg_rdma_len(op))
		return 0;
	if (!is_long && !(ep->port->connected && p->paths))
		return 0;
	err = p->paths ? 0 : make_paths(ep, peer);
	p->alone = err == -EOPNOTSUPP;
	if (err)
		return err == -EAGAIN ? err : 0; /* one path has to do, without memory, too */
	op->strip = calloc(1, sizeof(*op->strip));
	if (!op->strip)
		return 0;
	op->strip->whole = !is_long;
	list_add_tail(&op->strip->link, &ep->strips);
	stripe_begin(msg_stripe_conf(p->paths, op->strip), msg_stripe_state(p->paths, op->strip),
		     &op->strip->msg, msg_rdma_len(op));
	return 0;
}

static struct msg_part *new_part(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_part *part = part_new(ep);

	if (part) {
		part->op = op;
		part->posted = 0;
		part->failed = false;
		part->began = util_now_ns();
	}
	return part;
}

/* 0: there is one; -EBUSY: not before others have arrived. */
static int next_part(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_paths *paths = msg_paths_of(ep, op);
	struct msg_strip *s = op->strip;
	struct msg_part *part;

	if (s->part)
		return 0;
	part = new_part(ep, op);
	if (!part)
		return -ENOMEM;
	if (!stripe_next(msg_stripe_conf(paths, s), msg_stripe_state(paths, s), &s->msg,
			 &part->piece)) {
		msg_part_free(ep, part);
		return -EBUSY;
	}
	s->part = part;
	s->left = part->piece.bytes;
	return 0;
}

/* What was given out last, or a part of that. */
static int post_part(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	struct msg_part *part = s->part;
	uint32_t path = part->piece.path;
	uint64_t n;
	int err;

	if (s->lost >> path & 1)
		return -ENOTCONN;
	n = msg_tx_part(ep, op, part->piece.offset + part->piece.bytes - s->left, s->left, part,
			msg_paths_of(ep, op)->way[path], &err);
	if (err)
		return err;
	part->posted++;
	s->posted[path]++;
	s->due[path] += n;
	s->left -= n;
	if (!s->left)
		s->part = NULL; /* its work requests have it */
	return 0;
}

/* What it has under way, if anything, fails, too. */
static int part_lost(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_part *part = op->strip->part;

	op->strip->part = NULL;
	part->failed = true;
	msg_stripe_lose(ep, op, part->piece.path);
	if (!part->posted)
		msg_stripe_hold(op->strip, part);
	return msg_stripe_recover(ep, op);
}

static int post_pieces(struct msg_ep *ep, struct msg_op *op)
{
	int err = 0;

	while (!err && (op->strip->msg.left || op->strip->part)) {
		err = next_part(ep, op);
		if (err)
			break;
		err = post_part(ep, op);
		if (err == -ENOTCONN)
			err = part_lost(ep, op);
	}
	return err;
}

static int post_finish(struct msg_ep *ep, struct msg_op *op, uint32_t path)
{
	struct msg_strip *s = op->strip;
	struct msg_part *part = new_part(ep, op);
	int err;

	if (!part)
		return -ENOMEM;
	part->piece = (struct stripe_piece){.path = path};
	err = msg_tx_finish(ep, op, s->due[path], part, msg_paths_of(ep, op)->way[path]);
	if (err) {
		msg_part_free(ep, part);
		return err;
	}
	part->posted = 1;
	s->posted[path]++;
	s->due[path] = 0;
	return 0;
}

/* Behind the last that each path has carried; nobody waits until that has arrived. */
static int post_finishes(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	int err = 0;

	for (uint32_t i = 0; i < STRIPE_PATHS_MAX && !err; i++) {
		if (!s->due[i] || s->lost >> i & 1)
			continue;
		err = post_finish(ep, op, i);
		if (err == -ENOTCONN) {
			msg_stripe_lose(ep, op, i);
			err = msg_stripe_recover(ep, op);
		}
	}
	return err;
}

int msg_stripe_post(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	int err = ep->peers[msg_rdma_peer(op)].dead ? -EHOSTUNREACH : 0;

	if (!err && !s->here)
		err = post_pieces(ep, op);
	if (!err && !s->here && !s->msg.left && msg_stripe_fins(ep, op))
		err = post_finishes(ep, op);
	return err == -EBUSY ? 0 : err;
}

bool msg_stripe_over(const struct msg_ep *ep, const struct msg_op *op)
{
	const struct msg_strip *s = op->strip;

	if (s->here)
		return true;
	for (uint32_t i = 0; i < STRIPE_PATHS_MAX && msg_stripe_fins(ep, op); i++)
		if (s->due[i])
			return false;
	return !s->msg.left && !s->msg.all_out && !s->lost;
}

void msg_stripe_end(struct msg_ep *ep, struct msg_op *op)
{
	msg_stripe_forget(ep, op);
	if (op->strip->part)
		msg_part_free(ep, op->strip->part);
	list_del(&op->strip->link);
	free(op->strip);
	op->strip = NULL;
}

/* ---- the completion filter ---- */

/* All of a piece, or a finish, is done. */
static void part_done(struct msg_ep *ep, struct msg_part *part)
{
	struct msg_strip *s = part->op->strip;
	struct msg_paths *paths = msg_paths_of(ep, part->op);
	uint32_t path = part->piece.path;

	if (part->piece.bytes && part->failed) {
		msg_stripe_hold(s, part);
		return;
	}
	if (part->piece.bytes && !part->op->err) {
		stripe_done(msg_stripe_conf(paths, s), msg_stripe_state(paths, s), &s->msg,
			    &part->piece, part->began, util_now_ns());
		paths->bytes[path] += part->piece.bytes;
		s->there[path] += part->piece.bytes;
	}
	msg_part_free(ep, part);
}

void msg_stripe_done(struct msg_ep *ep, struct msg_part *part, int err)
{
	struct msg_op *op = part->op;
	struct msg_strip *s = op->strip;
	uint32_t path = part->piece.path, peer = msg_rdma_peer(op);

	part->posted--;
	s->posted[path]--;
	op->pending--;
	if (err == -EHOSTUNREACH && ep->port->connected && !ep->peers[peer].dead) {
		part->failed = true;
		msg_stripe_lose(ep, op, path);
	} else if (err && !op->err) {
		op->err = err;
	}
	if (!part->posted && s->part != part)
		part_done(ep, part);
	err = msg_stripe_recover(ep, op);
	if (err && !op->err)
		op->err = err;
	if (list_empty(&op->link)) /* else its turn comes */
		msg_rdma_go_on(ep, op);
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
					       .paths = paths->conf.paths};
		for (uint32_t i = 0; i < out->paths; i++) {
			out->weight[i] = paths->state.weight[i];
			out->bytes[i] = paths->bytes[i];
		}
		found = true;
	}
	util_unlock(&ep->lock);
	return found;
}
