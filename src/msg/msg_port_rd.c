/* One queue pair for all peers: reliable datagrams of Weft's own device. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "msg_ep.h"

static int rd_open(struct msg_ep *ep)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_DRIVER,
		.cap = {.max_send_wr = ep->conf.depth,
			.max_recv_wr = ep->conf.rx_buffers,
			.max_send_sge = MSG_IOV + 1,
			.max_recv_sge = 1,
			.max_inline_data = MSG_INLINE_WANT},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = ep->dev->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ,
	};

	ep->cq = ibv_create_cq(ep->dev->ctx, (int)(ep->conf.depth + ep->conf.rx_buffers), NULL,
			       ep->channel, 0);
	if (!ep->cq)
		return -errno;
	attr.send_cq = attr.recv_cq = ep->cq;
	ep->qp = msg_verbs_dv()->create_rd_qp(ep->dev->ctx, &attr);
	if (!ep->qp)
		return -errno;
	ep->ex = ibv_qp_to_qp_ex(ep->qp);
	ep->max_inline = attr.cap.max_inline_data;
	return msg_start_qp(ep);
}

static void rd_close(struct msg_ep *ep)
{
	msg_scout_close(ep);
	if (ep->qp)
		ibv_destroy_qp(ep->qp);
	if (ep->cq)
		ibv_destroy_cq(ep->cq);
}

static void set_data(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buf[MSG_PIECES];

	/* nothing at all goes inline: there is no list */
	if (wr->num_sge && !(wr->send_flags & IBV_SEND_INLINE)) {
		ibv_wr_set_sge_list(ex, (size_t)wr->num_sge, wr->sg_list);
		return;
	}
	for (int i = 0; i < wr->num_sge; i++)
		buf[i] = (struct ibv_data_buf){(void *)(uintptr_t)wr->sg_list[i].addr,
					       wr->sg_list[i].length};
	ibv_wr_set_inline_data_list(ex, (size_t)wr->num_sge, buf);
}

/* All but the end of it. */
static void build(struct msg_ep *ep, const struct msg_peer *p, void *way, struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *ex = ep->ex;

	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id;
	ex->wr_flags = wr->send_flags & IBV_SEND_SIGNALED;
	if (wr->opcode == IBV_WR_SEND)
		ibv_wr_send(ex);
	else if (wr->opcode == IBV_WR_RDMA_READ)
		ibv_wr_rdma_read(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	else if (wr->opcode == IBV_WR_RDMA_WRITE)
		ibv_wr_rdma_write(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
	else
		ibv_wr_rdma_write_imm(ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr, wr->imm_data);
	ibv_wr_set_ud_addr(ex, way ? way : p->ah, p->addr.qpn, p->addr.qkey);
	set_data(ex, wr);
}

static int posted(struct msg_peer *p, int err)
{
	p->unsure |= !err;
	return err == ENOMEM ? -ENOBUFS : -err;
}

static int rd_post(struct msg_ep *ep, uint32_t peer, void *way, struct ibv_send_wr *wr)
{
	struct msg_peer *p = &ep->peers[peer];

	build(ep, p, way, wr);
	return posted(p, ibv_wr_complete(ep->ex));
}

static int rd_post_keep(struct msg_ep *ep, uint32_t peer, struct ibv_send_wr *wr, void *keep)
{
	struct msg_peer *p = &ep->peers[peer];

	if (!verbs_dv_has(msg_verbs_dv(), complete_keep))
		return -EOPNOTSUPP;
	build(ep, p, NULL, wr);
	return posted(p, msg_verbs_dv()->complete_keep(ep->ex, keep, ep->tx_mr->lkey));
}

/* ---- paths ---- */

/* Pairs of addresses, as far as they are known; then the same again, from other ports. */
static int rd_ways(struct msg_ep *ep, uint32_t peer, struct msg_paths *paths)
{
	struct ibv_ah_attr attr = msg_dev_ah(ep->dev, &ep->peers[peer].addr);
	struct msg_pair pairs[MSG_ADDRS];
	uint32_t n = msg_where_pairs(&ep->peers[peer], pairs);
	bool known = n;

	n = known ? n : 1;
	paths->addresses = n < paths->conf.paths ? n : paths->conf.paths;
	for (uint32_t i = 0; i < paths->conf.paths; i++) {
		attr.grh.flow_label = i / n;
		paths->ip[i] = ep->peers[peer].addr.ip;
		if (known) {
			const struct msg_pair *pair = &pairs[i % n];

			paths->ip[i] = pair->peer;
			attr.grh.sgid_index = ep->owns.own[pair->own].sgid;
			memcpy(attr.grh.dgid.raw + 12, &pair->peer, sizeof(pair->peer));
		}
		paths->way[i] = ibv_create_ah(ep->dev->pd, &attr);
		if (!paths->way[i])
			return -errno;
	}
	return 0;
}

static void rd_ways_free(struct msg_paths *paths)
{
	for (uint32_t i = 0; i < STRIPE_PATHS_MAX; i++)
		if (paths->way[i])
			ibv_destroy_ah(paths->way[i]);
}

static bool rd_way_silent(struct msg_ep *ep, uint32_t peer, void *way)
{
	struct weftdv_path path;

	return !msg_verbs_dv()->query_path(ep->qp, way, ep->peers[peer].addr.qpn, &path) &&
	       path.state == WEFTDV_PATH_SILENT;
}

static int rd_tick(struct msg_ep *ep)
{
	if (ep->scout)
		msg_scout_collect(ep);
	return 0;
}

static int rd_post_recv(struct msg_ep *ep, struct ibv_recv_wr *wr)
{
	struct ibv_recv_wr *bad;

	return -ibv_post_recv(ep->qp, wr, &bad);
}

/* ---- what has arrived ---- */

/* Requests to one peer complete in their order, and an empty write is nothing else: it says that
 * all before it have arrived. */
static int ask(struct msg_ep *ep, uint32_t peer)
{
	struct msg_tx *tx = ep->tx_free;
	struct ibv_send_wr wr = {.wr_id = msg_wr_id(tx, MSG_WR_TX),
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED};
	int err = tx ? rd_post(ep, peer, NULL, &wr) : -ENOBUFS;

	if (err)
		return err;
	ep->tx_free = tx->next;
	tx->op = NULL;
	tx->peer = peer;
	ep->peers[peer].unsure = false;
	return 0;
}

/* A peer that the device does not know (any more) is not asked: it has said good-bye, or was given
 * up, and nothing of ours is under way to it. */
static bool asked(struct msg_ep *ep, uint32_t peer)
{
	struct msg_peer *p = &ep->peers[peer];
	struct weftdv_path path;

	if (p->unsure && !p->dead && !msg_verbs_dv()->query_path(ep->qp, p->ah, p->addr.qpn, &path))
		return ask(ep, peer) != -ENOBUFS;
	p->unsure = false;
	return true;
}

static bool rd_settled(struct msg_ep *ep)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < ep->n_peers; i++)
		if (!asked(ep, i))
			return false;
	for (const struct msg_tx *tx = ep->tx_free; tx; tx = tx->next)
		n++;
	return n == ep->conf.depth;
}

/* ---- what comes ---- */

/* The device vouches for the queue pair's number and for half of the IP address, as a LID; the
 * packet has the rest. Who claims to be somebody else is not believed: each claim would cost
 * memory, and answers to where nobody is. */
static bool is_at(uint32_t ip, const struct ibv_wc *wc)
{
	return (uint16_t)ntohl(ip) == wc->slid;
}

static uint32_t rd_source(struct msg_ep *ep, const struct ibv_wc *wc, const struct msg_pkt *p)
{
	struct msg_addr from = msg_addr_v4(p->ip, wc->src_qp, p->qkey);

	return is_at(p->ip, wc) ? msg_peer_get(ep, &from) : UINT32_MAX;
}

/* Not by the number alone, which is everybody's own choice: who has the same elsewhere, and knows
 * the Q_Key, could end a receive that waits for the peer's bytes. */
static bool rd_is_from(const struct msg_ep *ep, const struct ibv_wc *wc, uint32_t peer)
{
	const struct msg_addr *a = &ep->peers[peer].addr;

	return a->qpn == wc->src_qp && is_at(a->ip, wc);
}

static void rd_stats(const struct msg_ep *ep, struct msg_stats *out)
{
	struct weftdv_rd_stats rd;

	if (msg_verbs_dv()->query_rd(ep->qp, &rd))
		return;
	out->packets = rd.sent;
	out->resent = rd.resent;
}

const struct msg_port msg_port_rd = {
	.open = rd_open,
	.close = rd_close,
	.post = rd_post,
	.post_keep = rd_post_keep,
	.post_recv = rd_post_recv,
	.ways = rd_ways,
	.ways_free = rd_ways_free,
	.way_silent = rd_way_silent,
	.ways_news = msg_where_news,
	.tick = rd_tick,
	.settled = rd_settled,
	.source = rd_source,
	.is_from = rd_is_from,
	.stats = rd_stats,
};
