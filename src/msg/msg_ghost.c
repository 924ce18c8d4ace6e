/* RTRs without a receive. When one is cancelled, or one ahead of it is, its RTR is asked back, and
 * the answer comes when the sender's program makes its next call: who cancels does not wait for
 * that. The device leads the key to other memory, and the RTR, with its name, becomes a ghost's.
 *
 * A ghost ends with the answer. Or it was used before that: the PUT is a message like any other,
 * for whatever receive is the first now, or for none yet; its data is here when the notice comes,
 * and is copied. Until then a ghost counts as an RTR that is out, so that a peer has no more than
 * MSG_LEDGER_HELD of them. */
#include <sys/mman.h>
#include <errno.h>
#include <stdlib.h>
#include "msg_ep.h"

static struct msg_ghost *ghost(struct msg_op *op)
{
	return container_of(op, struct msg_ghost, op);
}

/* Pages that are never touched cost nothing. They are new, and hence empty: whoever has the key may
 * read there. */
static void *get_pages(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

bool msg_ghost_take(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_ghost *g = calloc(1, sizeof(*g));
	void *data = g ? get_pages(op->room) : NULL;

	if (!data || msg_move(&op->hold[0], data)) {
		if (data)
			munmap(data, op->room);
		free(g);
		return false;
	}
	g->data = data;
	g->op.kind = MSG_OP_GHOST;
	g->op.src = op->recv.src;
	g->op.room = op->room;
	g->op.hold[0] = op->hold[0];
	op->hold[0] = (struct msg_hold){0};
	msg_id_move(ep, op, &g->op);
	msg_ask_move(&op->ask, &g->op.ask);
	list_add_tail(&g->op.link, &ep->ghosts);
	return true;
}

void msg_ghost_free(struct msg_ep *ep, struct msg_ghost *g)
{
	struct msg_peer *peer = &ep->peers[g->op.src];

	if (!peer->dead) /* else all of it is over */
		peer->out--;
	msg_unexpose(ep, &g->op);
	msg_id_free(ep, &g->op);
	list_del(&g->op.link);
	munmap(g->data, g->op.room);
	free(g);
}

struct msg_ghost *msg_ghost_put(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	struct msg_op *op = msg_id_op(ep, p->id2);

	if (!op || op->kind != MSG_OP_GHOST || op->src != src || p->len > op->room ||
	    msg_ask_put(NULL, &op->ask) != MSG_PUT_GHOST)
		return NULL;
	op->phase = MSG_PHASE_NOTICE;
	op->len = p->len;
	return ghost(op);
}

static void hand_over(struct msg_ep *ep, struct msg_ghost *g)
{
	struct msg_op *to = g->to;
	int err = g->op.err;

	if (err)
		to->len = 0;
	else
		msg_scatter(to, g->data, to->len);
	msg_ghost_free(ep, g);
	msg_done(ep, to, err ? err : to->over ? -EMSGSIZE : 0);
}

void msg_ghost_deliver(struct msg_ep *ep, struct msg_ghost *g, struct msg_op *to)
{
	g->to = to;
	if (g->op.phase == MSG_PHASE_NONE)
		hand_over(ep, g);
}

/* All that will come has come. */
static void ended(struct msg_ep *ep, struct msg_ghost *g, int err)
{
	g->op.phase = MSG_PHASE_NONE;
	g->op.err = err;
	msg_unexpose(ep, &g->op);
	msg_id_free(ep, &g->op);
	if (g->to)
		hand_over(ep, g);
	else if (!g->kept)
		msg_ghost_free(ep, g);
}

void msg_ghost_notice(struct msg_ep *ep, struct msg_op *op)
{
	if (!msg_ask_notice(&op->ask))
		ended(ep, ghost(op), 0);
}

void msg_ghost_answer(struct msg_ep *ep, struct msg_op *op)
{
	if (msg_ask_answered(&op->ask))
		msg_ghost_free(ep, ghost(op));
}

void msg_ghost_drop(struct msg_ep *ep, struct msg_ghost *g)
{
	g->kept = false;
	if (g->op.phase == MSG_PHASE_NONE)
		msg_ghost_free(ep, g);
}

void msg_ghosts_died(struct msg_ep *ep, uint32_t peer)
{
	struct msg_op *op, *tmp;

	list_for_each_safe (op, tmp, &ep->ghosts, link)
		if (op->src == peer && op->id)
			ended(ep, ghost(op), -EHOSTUNREACH);
}

void msg_ghosts_free(struct msg_ep *ep)
{
	struct msg_op *op;

	while ((op = list_first(&ep->ghosts, struct msg_op, link)))
		msg_ghost_free(ep, ghost(op));
}
