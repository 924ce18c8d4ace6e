/* Peers: by number, and by address. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "msg_ep.h"

#define NONE UINT32_MAX

static uint32_t hash(const struct msg_ep *ep, const struct msg_addr *a)
{
	/* Of an IP address only what a completion tells of it (msg_peer_from). */
	uint32_t host = (uint16_t)ntohl(a->ip) ^ a->lid;
	uint64_t x = ((uint64_t)host << 32 | a->qpn) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(x >> 32) & (ep->n_buckets - 1);
}

static int grow(struct msg_ep *ep)
{
	uint32_t cap = ep->peers_cap ? 2 * ep->peers_cap : 16;
	struct msg_peer *peers = realloc(ep->peers, cap * sizeof(*peers));
	uint32_t *buckets;

	if (!peers)
		return -ENOMEM;
	ep->peers = peers;
	buckets = malloc(2 * cap * sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	free(ep->buckets);
	ep->buckets = buckets;
	ep->n_buckets = 2 * cap;
	ep->peers_cap = cap;
	memset(buckets, 0xff, 2 * cap * sizeof(*buckets));
	for (uint32_t i = 0; i < ep->n_peers; i++) {
		uint32_t h = hash(ep, &peers[i].addr);

		peers[i].chain = buckets[h];
		buckets[h] = i;
	}
	return 0;
}

uint32_t msg_peer_get(struct msg_ep *ep, const struct msg_addr *addr)
{
	struct ibv_ah_attr attr = msg_dev_ah(ep->dev, addr);
	struct msg_flow *flow;
	struct ibv_ah *ah;
	uint32_t h, i;

	if (ep->n_buckets)
		for (i = ep->buckets[hash(ep, addr)]; i != NONE; i = ep->peers[i].chain)
			if (!memcmp(&ep->peers[i].addr, addr, sizeof(*addr)))
				return i;
	if (ep->n_peers == ep->peers_cap && grow(ep))
		return NONE;
	ah = ibv_create_ah(ep->dev->pd, &attr);
	if (!ah)
		return NONE;
	flow = ep->port->connected ? msg_flow_new() : NULL;
	if (ep->port->connected && !flow) {
		ibv_destroy_ah(ah);
		return NONE;
	}
	i = ep->n_peers++;
	h = hash(ep, addr);
	ep->peers[i] =
		(struct msg_peer){.addr = *addr, .ah = ah, .flow = flow, .chain = ep->buckets[h]};
	/* RD reaches those with the address of the own host through shared memory. */
	ep->peers[i].far = ep->dev->transport != MSG_RD || addr->ip != ep->dev->addr.ip;
	msg_ledger_init(&ep->peers[i].ledger, 0, &ep->spec);
	ep->buckets[h] = i;
	return i;
}

uint32_t msg_peer_from(const struct msg_ep *ep, const struct ibv_wc *wc)
{
	struct msg_addr like = {.ip = htonl(wc->slid), .qpn = wc->src_qp};
	uint32_t found = NONE;

	for (uint32_t i = ep->n_buckets ? ep->buckets[hash(ep, &like)] : NONE; i != NONE;
	     i = ep->peers[i].chain) {
		if (ep->peers[i].dead || !ep->port->is_from(ep, wc, i))
			continue;
		/* Of those at one address the newest, which is first, has taken another's place. */
		if (found == NONE)
			found = i;
		else if (ep->peers[i].addr.ip != ep->peers[found].addr.ip)
			return NONE;
	}
	return found;
}

void msg_peers_free(struct msg_ep *ep)
{
	for (uint32_t i = 0; i < ep->n_peers; i++) {
		ibv_destroy_ah(ep->peers[i].ah);
		msg_paths_free(ep, ep->peers[i].paths);
		msg_flow_free(ep->peers[i].flow);
		free(ep->peers[i].where);
		msg_ledger_free(&ep->peers[i].ledger);
	}
	free(ep->peers);
	free(ep->buckets);
}

/* ---- death ---- */

uint32_t msg_awaited(const struct msg_op *op)
{
	switch (op->phase) {
	case MSG_PHASE_RTS:
	case MSG_PHASE_ANSWER:
		return op->peer;
	case MSG_PHASE_NOTICE:
		return op->src;
	case MSG_PHASE_WRITE:
	case MSG_PHASE_NONE:
		/* else completions will come */
		return op->strip && msg_stripe_waits(op) ? op->peer : UINT32_MAX;
	default:
		return UINT32_MAX;
	}
}

/* Operations that the peer could name. Receives that have asked stay posted here. */
static void end_named(struct msg_ep *ep, uint32_t peer)
{
	for (uint32_t i = 0; i < ep->n_ids; i++) {
		struct msg_op *op = ep->ids[i].op;
		bool posted = op && op->kind == MSG_OP_RECV && msg_recv_posted(&op->recv);

		if (!op || !(posted ? op->recv.src == peer : msg_awaited(op) == peer))
			continue;
		if (op->strip)
			msg_stripe_end(ep, op);
		msg_unexpose(ep, op);
		msg_id_free(ep, op);
		op->ask = (struct msg_ask){0};
		op->phase = MSG_PHASE_NONE;
		if (!posted)
			msg_done(ep, op, -EHOSTUNREACH);
	}
}

static void end_posted(void *arg, struct msg_recv *r)
{
	struct msg_op *op = container_of(r, struct msg_op, recv);
	struct msg_ep *ep = arg;

	if (op->cancel)
		msg_cancel_forget(ep, op);
	msg_end_recv(ep, op, -EHOSTUNREACH);
}

void msg_peer_died(struct msg_ep *ep, uint32_t peer)
{
	if (ep->peers[peer].dead)
		return;
	ep->peers[peer].dead = true;
	ep->peers[peer].out = 0;
	msg_ghosts_died(ep, peer);
	end_named(ep, peer);
	for (int i = 0; i < 2; i++)
		msg_match_drop_src(&ep->match[i], peer, end_posted, NULL, ep);
}
