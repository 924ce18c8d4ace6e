/* Connections that fail while messages go over them, see msg_stripe.h and msg_finish.c. */
#include <errno.h>
#include "util_clock.h"
#include "msg_ep.h"

/* ---- paths ---- */

static struct msg_paths *known(const struct msg_ep *ep, uint32_t peer, uint32_t path)
{
	struct msg_paths *paths = ep->peers[peer].paths;

	return paths && path < paths->conf.paths ? paths : NULL;
}

void msg_path_up(struct msg_ep *ep, uint32_t peer, uint32_t path)
{
	struct msg_paths *paths = known(ep, peer, path);

	if (!paths)
		return;
	stripe_heal(&paths->conf, &paths->state, path);
	stripe_heal(&paths->whole.conf, &paths->whole.state, path);
}

void msg_path_down(struct msg_ep *ep, uint32_t peer, uint32_t path)
{
	struct msg_paths *paths = known(ep, peer, path);

	if (!paths)
		return;
	paths->state.down[path] = true;
	paths->whole.state.down[path] = true;
}

bool msg_path_in_doubt(const struct msg_ep *ep, uint32_t peer, uint32_t path)
{
	const struct msg_paths *paths = known(ep, peer, path);

	return paths && paths->doubt[path];
}

/* ---- messages ---- */

void msg_stripe_hold(struct msg_ep *ep, struct msg_part *part)
{
	struct msg_strip *s = part->op->strip;

	/* Others may be under way instead. It is the policy's again with the rest of its path. */
	msg_part_ended(ep, s, part, 0, util_now_ns());
	part->next = s->held;
	s->held = part;
}

/* What was posted of the part that is not all posted yet, and may have arrived, goes again with the
 * rest of it: nobody would tell of it in a finish. */
static void give_up_part(struct msg_ep *ep, struct msg_strip *s)
{
	struct msg_part *part = s->part;

	s->part = NULL;
	part->failed = true;
	if (!part->posted) /* else with the last of it */
		msg_stripe_hold(ep, part);
}

void msg_stripe_lose(struct msg_ep *ep, struct msg_op *op, uint32_t path)
{
	struct msg_strip *s = op->strip;

	if (s->part && s->part->piece.path == path)
		give_up_part(ep, s);
	if (s->lost >> path & 1)
		return;
	s->lost |= 1u << path;
	s->paths->doubt[path]++;
}

static void settled(struct msg_strip *s, uint32_t path)
{
	s->lost &= ~(1u << path);
	s->asked &= ~(1u << path);
	s->paths->doubt[path]--;
}

/* What has arrived over a path that is no more is told of over another one, as if it had carried
 * it: should that one fail, too, it is told of again. */
static void move_share(struct msg_strip *s, uint32_t path)
{
	const struct msg_paths *paths = s->paths;
	uint64_t there = s->there[path];
	uint32_t to = 0;

	s->there[path] = s->due[path] = 0;
	while (to + 1 < paths->conf.paths && (paths->state.down[to] || s->lost >> to & 1))
		to++;
	s->there[to] += there;
	s->due[to] += there;
}

/* Everything that a path was to carry and has not is the policy's again. */
static void give_back(struct msg_ep *ep, struct msg_op *op, uint32_t path)
{
	struct msg_strip *s = op->strip;
	struct msg_part **at = &s->held, *part;

	settled(s, path);
	while ((part = *at)) {
		if (part->piece.path != path) {
			at = &part->next;
			continue;
		}
		*at = part->next;
		stripe_failed(msg_stripe_conf(s), msg_stripe_state(s), &s->msg, &part->piece);
		msg_part_free(ep, part);
	}
	/* It may have been connected again. */
	if (ep->port->way_up(s->paths->way[path]))
		stripe_heal(msg_stripe_conf(s), msg_stripe_state(s), path);
	move_share(s, path);
}

static int ask(struct msg_ep *ep, struct msg_op *op, uint32_t path)
{
	struct msg_pkt p = {.type = MSG_LOST,
			    .id = op->kind == MSG_OP_SEND ? op->peer_id : 0,
			    .tag = path,
			    .data = ep->port->way_name(op->strip->paths->way[path])};
	int err = op->id ? 0 : msg_id_new(ep, op);

	if (err)
		return err;
	p.id2 = op->id;
	op->strip->asked |= 1u << path;
	return msg_tx_post(ep, op->peer, &p, NULL, 0);
}

int msg_stripe_recover(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	bool reads = op->kind == MSG_OP_RECV || op->kind == MSG_OP_READ;
	int err = 0;

	for (uint32_t i = 0; i < STRIPE_PATHS_MAX && s->lost >> i && !err; i++) {
		if (!(s->lost >> i & 1) || s->asked >> i & 1 || s->posted[i])
			continue;
		if (reads)
			give_back(ep, op, i);
		else if (!s->here)
			err = ask(ep, op, i);
	}
	return err;
}

void msg_stripe_again(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	struct msg_op *op = msg_id_op(ep, p->id);

	if (!op || !op->strip || op->peer != src || p->tag >= STRIPE_PATHS_MAX ||
	    !(op->strip->asked >> p->tag & 1))
		return;
	if (p->id2)
		op->strip->here = true;
	else
		give_back(ep, op, (uint32_t)p->tag);
	if (list_empty(&op->link)) /* else its turn comes */
		msg_rdma_go_on(ep, op);
}

bool msg_stripe_waits(const struct msg_op *op)
{
	return op->strip->asked && !op->pending && list_empty(&op->link);
}

void msg_stripe_forget(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_strip *s = op->strip;
	struct msg_part *part;

	for (uint32_t i = 0; i < STRIPE_PATHS_MAX; i++)
		if (s->lost >> i & 1)
			settled(s, i);
	while ((part = s->held)) {
		s->held = part->next;
		stripe_forget(msg_stripe_state(s), &s->msg, &part->piece);
		msg_part_free(ep, part);
	}
	/* It may have got a name to be asked by. */
	if (ep->port->connected && ep->dev->all)
		msg_id_free(ep, op);
}
