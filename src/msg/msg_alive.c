/* Whether those of whom something is awaited are still there.
 *
 * A device learns of a peer's death when it has something to send to it. Who waits for a message,
 * or for somebody to fetch one, sends nothing, and would wait for ever. So whoever polls in vain
 * sends, now and then, an empty write to each peer of whom something is awaited. It is the peer's
 * device that answers, whatever its program is doing; if nobody does, the work request fails, and
 * with it all that was awaited. A receive from anybody asks nobody. */
#include "util_clock.h"
#include "msg_ep.h"

/* Polls in vain for one look at the clock. */
#define STRIDE 64

static void ask(struct msg_ep *ep, uint32_t peer)
{
	struct msg_peer *p = &ep->peers[peer];
	struct ibv_send_wr wr = {.wr_id = msg_wr_peer(peer, MSG_WR_ASK),
				 .opcode = IBV_WR_RDMA_WRITE};

	/* Nobody is connected only to be asked that. */
	if (p->dead || p->asked == ep->alive.round || (ep->port->connected && !p->conn))
		return;
	p->asked = ep->alive.round;
	ep->port->post(ep, peer, NULL, &wr); /* no room: next time */
}

static void ask_source(void *arg, const struct msg_recv *r)
{
	if (r->src != MSG_ANY_SRC)
		ask(arg, r->src);
}

static void ask_named(struct msg_ep *ep, const struct msg_op *op)
{
	uint32_t peer = msg_awaited(op);

	if (peer != UINT32_MAX)
		ask(ep, peer);
}

static void look(struct msg_ep *ep)
{
	uint64_t now = util_now_ns();

	if (now < ep->alive.next)
		return;
	if (ep->alive.next) { /* not the first time */
		ep->alive.round++;
		for (uint32_t i = 0; i < ep->n_ids; i++)
			if (ep->ids[i].op)
				ask_named(ep, ep->ids[i].op);
		for (int i = 0; i < 2; i++)
			msg_match_each(&ep->match[i], ask_source, ep);
	}
	ep->alive.next = now + ep->conf.alive;
}

void msg_alive_check(struct msg_ep *ep)
{
	if (ep->conf.alive && ++ep->alive.polls % STRIDE == 0)
		look(ep);
}

void msg_slept(struct msg_ep *ep)
{
	if (!ep->conf.alive)
		return;
	util_lock(&ep->lock);
	look(ep);
	util_unlock(&ep->lock);
}
