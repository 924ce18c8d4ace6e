/* Messages that were written over several connections: when all of one is here.
 *
 * What is written over one connection and what is sent behind it come in that order, but nothing
 * orders connections. So each that has carried some of a message ends with a FIN, which says how
 * much that was, and the message is here when these shares add up to its length, which the start
 * message has brought (section 4.3.2 of the paper on hot-spot avoidance, where it is weights that
 * add up). A FIN may come before the PUT that it belongs to, which takes another connection.
 *
 * When a connection fails, the sender may not know whether a FIN has arrived, nor what of the data;
 * and some may still be on its way. So it asks (LOST) before it writes anything again. We give up
 * our end of the connection, so nothing more comes by it, forget its share, also of finishes that
 * have come and were not looked at yet, and say so (AGAIN). The sender then accounts for all that
 * had gone that way anew: nothing counts twice. If the message is complete, its memory is the
 * application's again, and the answer is that nothing is missing. For other messages finishes that
 * came over that connection go on to count: their senders may know that they have arrived. */
#include <stdlib.h>
#include "util_log.h"
#include "msg_ep.h"

struct msg_share {
	uint64_t sum, of[STRIPE_PATHS_MAX];
	uint32_t shut;                    /* paths of which a connection does not count, as bits, */
	uint16_t epoch[STRIPE_PATHS_MAX]; /* which one */
};

/* A receive, or a ghost, that this peer writes to, or may. */
static struct msg_op *written_by(const struct msg_ep *ep, uint32_t src, uint32_t id)
{
	struct msg_op *op = msg_id_op(ep, id);

	if (!op || (op->kind != MSG_OP_RECV && op->kind != MSG_OP_GHOST))
		return NULL;
	if (op->phase == MSG_PHASE_NOTICE || op->kind == MSG_OP_GHOST)
		return op->src == src ? op : NULL;
	return op->recv.src == src && msg_ask_live(&op->ask) ? op : NULL;
}

/* What may come in all. */
static uint64_t room(const struct msg_op *op)
{
	return op->phase == MSG_PHASE_NOTICE ? op->len : op->room;
}

/* NULL: no memory, and no peer any more. */
static struct msg_share *share_of(struct msg_ep *ep, struct msg_op *op, uint32_t src)
{
	if (!op->share)
		op->share = calloc(1, sizeof(*op->share));
	if (!op->share) {
		util_log(UTIL_LOG_ERROR,
			 "no memory for a message that comes: its sender is given up");
		msg_peer_died(ep, src);
		return NULL;
	}
	return op->share;
}

void msg_finish_share(struct msg_ep *ep, const struct ibv_wc *wc, uint32_t src,
		      const struct msg_pkt *p)
{
	struct msg_op *op = written_by(ep, src, p->id);
	struct msg_share *s = op ? share_of(ep, op, src) : NULL;
	struct msg_via via = ep->port->via(ep, wc);

	if (!s || (s->shut >> via.path & 1 && s->epoch[via.path] == via.epoch))
		return;
	if (p->len > room(op) || s->sum > room(op) - p->len) {
		util_log(UTIL_LOG_ERROR, "a peer has written more than there is");
		return;
	}
	s->of[via.path] += p->len;
	s->sum += p->len;
	msg_finish_check(ep, p->id);
}

void msg_finish_check(struct msg_ep *ep, uint32_t id)
{
	struct msg_op *op = msg_id_op(ep, id);

	if (op && op->phase == MSG_PHASE_NOTICE && op->share && op->share->sum == op->len)
		msg_write_ended(ep, op);
}

void msg_finish_lost(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	struct msg_pkt again = {.type = MSG_AGAIN, .id = p->id2, .tag = p->tag};
	struct msg_share *s;
	struct msg_via via;
	struct msg_op *op;
	bool found;

	if (p->tag >= STRIPE_PATHS_MAX)
		return;
	found = ep->port->way_lost(ep, src, p->data, &via) && via.path == p->tag;
	op = written_by(ep, src, p->id);
	s = op ? share_of(ep, op, src) : NULL;
	if (op && !s)
		return;
	if (s) {
		s->sum -= s->of[p->tag];
		s->of[p->tag] = 0;
	}
	if (s && found) {
		s->shut |= 1u << via.path;
		s->epoch[via.path] = via.epoch;
	}
	/* Of what the application writes, there is no receive. */
	again.id2 = p->id && !op;
	msg_tx_post(ep, src, &again, NULL, 0);
}
