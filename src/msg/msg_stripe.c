#include "msg_stripe.h"

#include <errno.h>
#include <stdlib.h>
#include "util_clock.h"
#include "msg_ep.h"

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
		msg_paths_leave(ep, s->paths);
		free(s);
	}
	while ((part = ep->parts)) {
		ep->parts = part->all;
		free(part);
	}
}

struct stripe_conf *msg_stripe_conf(const struct msg_strip *s)
{
	return s->whole ? &s->paths->whole.conf : &s->paths->conf;
}

struct stripe_peer *msg_stripe_state(const struct msg_strip *s)
{
	return s->whole ? &s->paths->whole.state : &s->paths->state;
}

/* A piece is given to its path. */
static void part_begun(struct msg_ep *ep, struct msg_strip *s, const struct msg_part *part)
{
	ep->parts_out++;
	msg_use_begin(&s->paths->use, part->piece.path, part->began);
}

void msg_part_ended(struct msg_ep *ep, struct msg_strip *s, const struct msg_part *part,
		    uint64_t bytes, uint64_t now)
{
	ep->parts_out--;
	msg_use_end(&s->paths->use, part->piece.path, bytes, now);
}

/* ---- what is divided ---- */

/* Nothing tells of losses between connected peers, so auto is one path there. */
static bool may_divide(const struct msg_ep *ep, const struct msg_peer *p)
{
	return ep->conf.stripe.policy && ep->port->ways && p->far && !p->alone &&
	       !(ep->conf.stripe_auto && ep->port->connected);
}

void msg_stripe_ask(struct msg_ep *ep, struct msg_op *op)
{
	struct weftdv_rd_stats rd;

	if (op->room < ep->conf.stripe_min || !may_divide(ep, &ep->peers[msg_rdma_peer(op)]))
		return;
	if (!ep->conf.stripe_auto) {
		op->strip_it = true;
	} else if (!msg_verbs_dv()->query_rd(ep->qp, &rd)) {
		op->strip_it = stripe_auto(&ep->crowd, rd.sent, rd.resent, (double)rd.link / 1e9);
		op->posted = util_now_ns();
	}
}

void msg_stripe_refused(struct msg_ep *ep, struct msg_op *op)
{
	if (op->posted)
		stripe_auto_done(&ep->crowd, op->strip_it, 0, op->posted, op->posted);
	op->posted = 0;
}

void msg_stripe_arrived(struct msg_ep *ep, const struct msg_op *op)
{
	if (op->posted)
		stripe_auto_done(&ep->crowd, op->strip_it, op->err ? 0 : op->room, op->posted,
				 util_now_ns());
}

/* What the other one has said, or we would say. */
static bool is_hot(const struct msg_ep *ep, const struct msg_peer *p)
{
	return p->hot || ep->crowd.left || (ep->conf.stripe.policy && !ep->conf.stripe_auto);
}

/* With RD, data that is written holds up what is sent later to the same peer until the slowest path
 * has brought its part, and requests for what the peer sends wait behind it. Connections do not
 * wait for each other. */
bool msg_stripe_reads(const struct msg_ep *ep, uint32_t peer, uint64_t len)
{
	const struct msg_peer *p = &ep->peers[peer];

	return !ep->port->connected && p->far && len >= ep->conf.stripe_min && is_hot(ep, p);
}

bool msg_stripe_fins(const struct msg_ep *ep, const struct msg_op *op)
{
	return op->strip && ep->port->connected && op->kind == MSG_OP_SEND;
}

/* Of the own link, in bytes per ns; 0: nobody knows. It may never have been full with what we send,
 * but then it has brought us something. */
static double line(const struct msg_ep *ep)
{
	struct weftdv_rd_stats rd;
	double link;

	if (ep->port->connected || msg_verbs_dv()->query_rd(ep->qp, &rd))
		return 0;
	link = (double)rd.link / 1e9;
	return link > ep->pace ? link : ep->pace;
}

/* The fastest message counts, but not for ever. */
#define PACE_AGE 0.03

static void learn_pace(struct msg_ep *ep, const struct stripe_msg *m, uint64_t now)
{
	double pace = now > m->began ? (double)m->bytes / (double)(now - m->began) : 0;

	ep->pace -= PACE_AGE * ep->pace;
	ep->pace = pace > ep->pace ? pace : ep->pace;
}

static int begin(struct msg_ep *ep, struct msg_op *op, struct msg_paths *paths)
{
	struct msg_strip *s = calloc(1, sizeof(*s));
	uint64_t now = util_now_ns();

	if (!s)
		return -ENOMEM;
	s->op = op;
	s->whole = !op->strip_it;
	s->paths = paths;
	paths->users++;
	list_init(&s->turn);
	list_add_tail(&s->link, &ep->strips);
	msg_paths_watch(ep, msg_rdma_peer(op), paths, now);
	msg_stripe_conf(s)->least = stripe_least(line(ep));
	stripe_begin(msg_stripe_conf(s), msg_stripe_state(s), &s->msg, msg_rdma_len(op), now);
	op->strip = s;
	return 0;
}

int msg_stripe_wanted(struct msg_ep *ep, struct msg_op *op)
{
	uint32_t peer = msg_rdma_peer(op);
	struct msg_peer *p = &ep->peers[peer];
	int err = 0;

	if (op->strip || op->len || !msg_rdma_len(op))
		return 0;
	/* Of a message the sender has decided, unless the way there is crowded, too. */
	if (op->kind == MSG_OP_RECV) {
		op->strip_it |= op->room >= ep->conf.stripe_min && ep->crowd.left;
	} else if (op->kind != MSG_OP_SEND && !op->posted && !op->strip_it) {
		msg_stripe_ask(ep, op);
	}
	if (!may_divide(ep, p) || !(op->strip_it || (ep->port->connected && p->paths)))
		return 0;
	err = msg_paths_now(ep, peer);
	p->alone = err == -EOPNOTSUPP;
	if (!err)
		err = begin(ep, op, p->paths);
	return err == -EAGAIN ? err : 0; /* else one path has to do, without memory, too */
}

/* ---- the communication scheduler ---- */

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
	struct msg_strip *s = op->strip;
	struct msg_part *part;

	if (s->part)
		return 0;
	part = new_part(ep, op);
	if (!part)
		return -ENOMEM;
	if (!stripe_next(msg_stripe_conf(s), msg_stripe_state(s), &s->msg, &part->piece)) {
		msg_part_free(ep, part);
		return -EBUSY;
	}
	part_begun(ep, s, part);
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
			s->paths->way[path], &err);
	if (err)
		return err;
	part->posted++;
	s->posted[path]++;
	s->due[path] += n;
	s->left -= n;
	if (!s->left)
		s->part = NULL; /* its work requests have it */
	s->called = false;
	return 0;
}

static int post_pieces(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	int err = 0;

	while (!err && (s->msg.left || s->part)) {
		if (waits_turn(ep, s)) {
			list_add_tail(&s->turn, &ep->turns);
			break;
		}
		err = next_part(ep, op);
		if (err)
			break;
		err = post_part(ep, op);
		if (err == -ENOTCONN) {
			msg_stripe_lose(ep, op, s->part->piece.path);
			err = msg_stripe_recover(ep, op);
		}
	}
	s->called = false;
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
	err = msg_tx_finish(ep, op, s->due[path], part, s->paths->way[path]);
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

	list_del(&s->turn);
	if (!err && !s->here)
		err = post_pieces(ep, op);
	if (!err && !s->here && !s->msg.left && msg_stripe_fins(ep, op))
		err = post_finishes(ep, op);
	return err == -EBUSY ? 0 : err;
}

void msg_stripe_call(struct msg_ep *ep)
{
	struct msg_strip *s;

	while ((s = list_first(&ep->turns, struct msg_strip, turn)) && ep->parts_out < most(s)) {
		list_del(&s->turn);
		s->called = true;
		msg_rdma_go_on(ep, s->op);
	}
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
	struct msg_strip *s = op->strip;

	msg_stripe_forget(ep, op);
	if (s->part) {
		stripe_forget(msg_stripe_state(s), &s->msg, &s->part->piece);
		msg_part_ended(ep, s, s->part, 0, util_now_ns());
		msg_part_free(ep, s->part);
	}
	list_del(&s->turn);
	list_del(&s->link);
	msg_paths_leave(ep, s->paths);
	free(s);
	op->strip = NULL;
}

/* ---- the completion filter ---- */

static void piece_done(struct msg_ep *ep, struct msg_part *part)
{
	struct msg_op *op = part->op;
	struct msg_strip *s = op->strip;
	struct msg_paths *paths = s->paths;
	uint64_t now = util_now_ns(), bytes = op->err ? 0 : part->piece.bytes;
	bool end = false;

	if (bytes)
		end = stripe_done(msg_stripe_conf(s), msg_stripe_state(s), &s->msg, &part->piece,
				  part->began, now);
	else
		stripe_forget(msg_stripe_state(s), &s->msg, &part->piece);
	if (end)
		learn_pace(ep, &s->msg, now);
	s->there[part->piece.path] += bytes;
	if (paths->old)
		ep->peers[msg_rdma_peer(op)].paths->before += bytes;
	msg_part_ended(ep, s, part, bytes, now);
	msg_paths_watch(ep, msg_rdma_peer(op), paths, now);
	msg_use_show(ep, paths, now, end);
}

/* All of a piece, or a finish, is done. */
static void part_done(struct msg_ep *ep, struct msg_part *part)
{
	if (part->piece.bytes && part->failed) {
		msg_stripe_hold(ep, part);
		return;
	}
	if (part->piece.bytes)
		piece_done(ep, part);
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
		if (s->part == part)
			s->part = NULL; /* what is left of it goes another way, too */
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
	msg_stripe_call(ep);
}
