/* Rendezvous by write: the sender announces its message, the receiver says where it goes, the
 * sender writes it there, with a notice. */
#include <endian.h>
#include <errno.h>
#include "msg_ep.h"

/* ---- the sender ---- */

int msg_write_announce(struct msg_ep *ep, struct msg_op *op)
{
	struct msg_pkt p = msg_head(op, MSG_RTS);
	int err = msg_id_new(ep, op);

	p.id = op->id;
	if (!err)
		err = msg_tx_send(ep, op->peer, &p, NULL, 0, NULL);
	if (err) {
		msg_id_free(ep, op);
		return err;
	}
	op->phase = MSG_PHASE_RTS;
	ep->stats.written++;
	return 0;
}

/* A CTS. */
void msg_write_start(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	struct msg_op *op = msg_id_op(ep, p->id);

	if (!op || op->phase != MSG_PHASE_RTS || op->peer != src || op->hold[0].mr)
		return;
	msg_id_free(ep, op);
	op->peer_id = p->id2;
	op->phase = MSG_PHASE_WRITE;
	msg_rdma_start(ep, op, p);
}

/* ---- the receiver ---- */

/* A receive without room: nothing is written, and the sender told that it is done. */
static void refuse(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p, int err)
{
	op->err = err;
	op->peer_id = p->id;
	msg_read_finish(ep, op);
}

void msg_write_clear(struct msg_ep *ep, struct msg_op *op, const struct msg_pkt *p)
{
	struct msg_pkt cts = {.type = MSG_CTS, .id = p->id, .len = p->len};
	int err = op->room ? msg_expose(ep, op, true, p->len, &cts) : -EMSGSIZE;

	if (!err) {
		err = msg_id_new(ep, op);
		if (err)
			msg_unexpose(ep, op);
	}
	if (err) {
		refuse(ep, op, p, err);
		return;
	}
	cts.id2 = op->id;
	op->phase = MSG_PHASE_NOTICE;
	op->len = p->len - op->over;
	err = msg_tx_post(ep, op->src, &cts, NULL, 0);
	if (err) {
		msg_unexpose(ep, op);
		msg_id_free(ep, op);
		refuse(ep, op, p, err);
	}
}

void msg_write_notice(struct msg_ep *ep, const struct ibv_wc *wc)
{
	uint32_t imm = be32toh(wc->imm_data);
	struct msg_op *op = msg_id_op(ep, imm);

	if (!(imm & MSG_IMM_NAME)) {
		if (ep->conf.written && !ep->port->connected)
			ep->conf.written(ep->conf.arg, msg_peer_from(ep, wc), imm, wc->byte_len);
		return;
	}
	if (!op || op->phase != MSG_PHASE_NOTICE || !ep->port->is_from(ep, wc, op->src))
		return;
	msg_write_ended(ep, op);
}

void msg_write_ended(struct msg_ep *ep, struct msg_op *op)
{
	if (op->kind == MSG_OP_GHOST) {
		msg_ghost_notice(ep, op);
		return;
	}
	msg_put_end(ep, op);
	msg_unexpose(ep, op);
	msg_id_free(ep, op);
	op->phase = MSG_PHASE_NONE;
	msg_done(ep, op, op->over ? -EMSGSIZE : 0);
}
