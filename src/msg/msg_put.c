/* Rendezvous that the receiver starts: a receive that is posted early says where its message is to
 * go, and the sender writes it there without asking. docs/rendezvous.md tells why this is right,
 * msg_spec.h has the rules; here they meet the network. */
#include <errno.h>
#include "util_clock.h"
#include "util_log.h"
#include "msg_ep.h"

/* Of a message that comes sooner than this after its receive was posted, an RTR would have come too
 * late. */
#define ROUND_TRIP (100 * UTIL_NS_PER_US)

/* ---- the receiver ---- */

static bool may_ask(const struct msg_ep *ep, const struct msg_op *op)
{
	const struct msg_peer *peer;

	if (!ep->conf.speculate || op->room <= msg_eager_max(ep, op->peer) ||
	    op->room > UINT32_MAX || op->n_iov != 1 || op->peer == MSG_ANY_SRC ||
	    !(op->flags & MSG_OP_TAGGED) || op->flags & MSG_OP_MULTI)
		return false;
	peer = &ep->peers[op->peer];
	return !peer->dead && !peer->cancels && !msg_stripe_reads(ep, op->peer, op->room);
}

static int send_rtr(struct msg_ep *ep, struct msg_op *op, struct msg_ahead ahead)
{
	struct msg_pkt p = {.type = MSG_RTR, .flags = MSG_F_TAGGED};
	struct msg_rtr rtr;
	int err = msg_expose(ep, op, true, op->room, &p);

	if (err)
		return err;
	err = msg_id_new(ep, op);
	if (!err) {
		msg_ask_out(&op->ask, op->id, &op->recv, ahead, ep->peers[op->peer].seen, op->room,
			    &rtr);
		p.id = rtr.id;
		p.tag = rtr.tag;
		p.ignore = rtr.ignore;
		p.seen = rtr.seen;
		p.ahead = rtr.ahead;
		p.len = rtr.length;
		err = msg_tx_send(ep, op->peer, &p, NULL, 0, NULL);
	}
	if (err) {
		op->ask = (struct msg_ask){0};
		msg_unexpose(ep, op);
		msg_id_free(ep, op);
	}
	return err;
}

void msg_put_ask(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_ahead ahead;

	if (!may_ask(ep, op))
		return;
	ahead = msg_match_ahead(&ep->match[1], &op->recv);
	if (!msg_spec_may_ask(&op->ask, ahead, op->room, msg_eager_max(ep, op->peer),
			      ep->peers[op->peer].out))
		return;
	if (!msg_adapt_agrees(&ep->adapt, op->recv.src, op->recv.tag, op->recv.ignore)) {
		op->posted = util_now_ns();
		return;
	}
	if (!send_rtr(ep, op, ahead)) { /* else the message is announced, as ever */
		ep->peers[op->peer].out++;
		ep->stats.rtr_sent++;
	}
}

static void result(struct msg_ep *ep, const struct msg_op *op, bool asked, bool hit)
{
	msg_adapt_result(&ep->adapt, op->recv.src, op->recv.tag, op->recv.ignore, asked, hit);
}

/* The receive that an RTR was for, if it still waits for that. */
static struct msg_ask *named(struct msg_ep *ep, uint32_t src, uint32_t id)
{
	struct msg_op *op = msg_id_op(ep, id);

	if (!op || op->kind != MSG_OP_RECV || op->recv.src != src || !msg_ask_live(&op->ask))
		return NULL;
	return &op->ask;
}

static bool put(struct msg_ep *ep, struct msg_op *op, uint32_t src, const struct msg_pkt *p)
{
	struct msg_ask *ask = named(ep, src, p->id2);

	if (!ask || msg_ask_put(&op->ask, ask) != MSG_PUT_WAIT || p->len > op->room) {
		util_log(UTIL_LOG_ERROR, "a peer does not keep to the rules: a message is lost");
		return false;
	}
	ep->peers[src].out--;
	msg_matched(op, src, p);
	op->len = p->len;
	op->phase = MSG_PHASE_NOTICE;
	return true;
}

enum msg_match_result msg_put_matched(struct msg_ep *ep, struct msg_op *op, uint32_t src,
				      const struct msg_pkt *p, const struct msg_ghost *ghost)
{
	bool own = p->type == MSG_PUT && !ghost;
	bool back = op->ask.state == MSG_ASK_BACK;
	enum msg_match_result r = MSG_MATCH_DATA;

	if (op->cancel)
		msg_cancel_forget(ep, op);
	if (own && put(ep, op, src, p)) {
		r = MSG_MATCH_COMES;
	} else {
		if (own)
			r = MSG_MATCH_BROKEN;
		if (msg_ask_matched(&op->ask)) {
			msg_unexpose(ep, op);
			msg_id_free(ep, op);
			ep->peers[src].out--;
			result(ep, op, true, false);
		} else if (op->posted) {
			result(ep, op, false,
			       msg_adapt_would(op->posted, util_now_ns(), ROUND_TRIP, p->len,
					       msg_eager_max(ep, src), op->room));
		}
	}
	if (back)
		msg_cancel_check(ep, src);
	return r;
}

void msg_put_end(struct msg_ep *ep, struct msg_op *op)
{
	if (msg_ask_notice(&op->ask))
		return; /* there was a CTS instead */
	ep->stats.rtr_hit++;
	result(ep, op, true, true);
}

/* ---- the sender ---- */

void msg_put_rtr(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	static atomic_bool told;
	struct msg_rtr rtr = {.id = p->id,
			      .tag = p->tag,
			      .ignore = p->ignore,
			      .seen = p->seen,
			      .ahead = p->ahead,
			      .length = p->len,
			      .addr = p->seg[0].addr,
			      .key = p->seg[0].key};

	if (msg_ledger_rtr(&ep->peers[src].ledger, &rtr) == -EPROTO)
		util_log_once(&told, UTIL_LOG_ERROR, "a peer has seen messages that were not sent");
}

int msg_put_send(struct msg_ep *ep, struct msg_op *op, const struct msg_rtr *rtr)
{
	struct msg_pkt p = msg_head(op, MSG_PUT);
	int err;

	p.id2 = rtr->id;
	err = msg_tx_send(ep, op->peer, &p, NULL, 0, NULL);
	if (err)
		return err;
	op->peer_id = rtr->id;
	op->phase = MSG_PHASE_WRITE;
	op->n_remote = 1;
	op->remote[0] = (struct msg_remote){.addr = rtr->addr, .len = op->room, .key = rtr->key};
	ep->stats.put++;
	return 0;
}
