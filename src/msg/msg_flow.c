#include "msg_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "util_rand.h"
#include "msg_ep.h"
#include "msg_rc.h"

/* The other side keeps no more than MSG_ORDER_WINDOW that are before their turn, of which some may
 * be older than these. */
#define AHEAD (MSG_ORDER_WINDOW / 2)

struct msg_flow *msg_flow_new(void)
{
	struct msg_flow *f = calloc(1, sizeof(*f));

	if (f && util_random_key(&f->token, sizeof(f->token))) {
		free(f);
		return NULL;
	}
	if (f)
		list_init(&f->kept);
	return f;
}

void msg_flow_free(struct msg_flow *f)
{
	if (f)
		msg_order_free(&f->order);
	free(f);
}

bool msg_flow_keeps(const struct msg_ep *ep, uint32_t peer)
{
	const struct msg_conn *c = ep->peers[peer].conn;

	return ep->peers[peer].flow && c && c->also;
}

/* ---- out ---- */

/* NULL: the first that there is. */
static void *choose(struct msg_ep *ep, const struct msg_tx *tx)
{
	struct msg_peer *p = &ep->peers[tx->peer];
	const struct msg_paths *paths = p->paths;

	if (!paths || tx->data[0] != MSG_EAGER || !stripe_whole(&paths->conf))
		return NULL;
	for (uint32_t i = 0; i < paths->conf.paths; i++) {
		void *way = paths->way[p->flow->turn++ % paths->conf.paths];

		if (ep->port->way_up(way))
			return way;
	}
	return NULL;
}

static int post(struct msg_ep *ep, struct msg_tx *tx)
{
	struct ibv_sge sge = {(uintptr_t)tx->data, tx->len, ep->tx_mr->lkey};
	struct ibv_send_wr wr = {.wr_id = msg_wr_id(tx, MSG_WR_TX),
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED |
					       (tx->len <= ep->max_inline ? IBV_SEND_INLINE : 0)};

	if (ep->peers[tx->peer].dead)
		return -EHOSTUNREACH;
	return ep->port->post(ep, tx->peer, choose(ep, tx), &wr);
}

int msg_flow_send(struct msg_ep *ep, uint32_t peer, const struct ibv_sge *buf, int n,
		  struct msg_op *report)
{
	struct msg_flow *f = ep->peers[peer].flow;
	const struct msg_tx *oldest = list_first(&f->kept, struct msg_tx, link);
	struct msg_tx *tx = ep->tx_free;
	int err;

	if (!tx)
		return -ENOBUFS;
	*tx = (struct msg_tx){.next = tx->next, .op = report, .peer = peer, .data = tx->data};
	for (int i = 0; i < n; i++) {
		memcpy(tx->data + tx->len, (const void *)(uintptr_t)buf[i].addr, buf[i].length);
		tx->len += buf[i].length;
	}
	tx->seq = msg_wire_seq(tx->data);
	if (oldest && tx->seq - oldest->seq >= AHEAD)
		return -EAGAIN;
	err = post(ep, tx);
	if (err)
		return err;
	ep->tx_free = tx->next;
	tx->kept = true;
	list_add_tail(&tx->link, &f->kept);
	list_init(&tx->again);
	return 0;
}

bool msg_flow_sent(struct msg_ep *ep, struct msg_tx *tx, int err)
{
	if (err == -EHOSTUNREACH && !ep->peers[tx->peer].dead) {
		list_add_tail(&tx->again, &ep->again);
		return false;
	}
	list_del(&tx->link);
	tx->kept = false;
	return true;
}

/* In their order, as they have failed. What finds no room waits, and others behind it. */
void msg_flow_flush(struct msg_ep *ep)
{
	struct msg_tx *tx, *tmp;

	list_for_each_safe (tx, tmp, &ep->again, again) {
		int err = post(ep, tx);

		if (err == -EAGAIN || err == -ENOTCONN)
			continue;
		if (err == -ENOBUFS)
			return;
		list_del(&tx->again);
		if (err) {
			list_del(&tx->link);
			msg_tx_free(ep, tx, err);
		}
	}
}
