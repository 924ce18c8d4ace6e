#include "msg_where.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "util_rand.h"
#include "msg_ep.h"

/* How long an answer is waited for, at first, and how often there is a question. */
#define WAIT_NS UTIL_NS_PER_S
#define ASKS    4
#define TRIES   4

/* ---- own addresses ---- */

/* Of an address that no interface has, as those of loopback, that of the subnet which it is in. */
static uint32_t mask_of(const struct ifaddrs *all, uint32_t ip)
{
	uint32_t mask = UINT32_MAX;

	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct msg_own has;

		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !i->ifa_netmask)
			continue;
		has.ip = ((const struct sockaddr_in *)i->ifa_addr)->sin_addr.s_addr;
		has.mask = ((const struct sockaddr_in *)i->ifa_netmask)->sin_addr.s_addr;
		if (has.ip == ip)
			return has.mask;
		if (!((has.ip ^ ip) & has.mask))
			mask = has.mask;
	}
	return mask;
}

static void add_own(struct msg_owns *o, uint32_t ip, uint8_t sgid, const struct ifaddrs *all)
{
	for (uint32_t i = 0; i < o->n; i++)
		if (o->own[i].ip == ip) /* on several interfaces */
			return;
	if (o->n < MSG_ADDRS)
		o->own[o->n++] = (struct msg_own){ip, mask_of(all, ip), sgid};
}

static const struct msg_owns *owns(struct msg_ep *ep)
{
	const struct msg_dev *dev = ep->dev;
	struct ifaddrs *all = NULL;
	struct ibv_gid_entry e;
	struct msg_addr a;

	if (ep->owns.n)
		return &ep->owns;
	if (getifaddrs(&all))
		all = NULL; /* then nothing is in a subnet */
	add_own(&ep->owns, dev->addr.ip, dev->gid_index, all);
	for (uint32_t i = 0; i <= UINT8_MAX; i++) {
		if (ibv_query_gid_ex(dev->ctx, dev->port, i, &e, 0))
			break;
		memcpy(a.gid, e.gid.raw, sizeof(a.gid));
		if (!memcmp(a.prefix, dev->addr.prefix, sizeof(a.prefix)))
			add_own(&ep->owns, a.ip, (uint8_t)i, all);
	}
	freeifaddrs(all);
	return &ep->owns;
}

/* ---- the scout ---- */

#define SCOUT_DEPTH   256
#define SCOUT_TIMEOUT 18 /* 4 us << 18 is a second */

struct msg_scout {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	uint32_t busy; /* peers, of each of which a pair is being tried */
};

void msg_scout_close(struct msg_ep *ep)
{
	struct msg_scout *s = ep->scout;

	if (!s)
		return;
	if (s->qp)
		ibv_destroy_qp(s->qp);
	if (s->cq)
		ibv_destroy_cq(s->cq);
	free(s);
	ep->scout = NULL;
}

static int open_scout(struct msg_ep *ep)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
					   .cap = {.max_send_wr = SCOUT_DEPTH,
						   .max_recv_wr = 1,
						   .max_send_sge = 1,
						   .max_recv_sge = 1},
					   .comp_mask = IBV_QP_INIT_ATTR_PD |
							IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
					   .pd = ep->dev->pd,
					   .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};
	struct msg_scout *s = calloc(1, sizeof(*s));
	uint32_t qkey;

	if (!s)
		return -ENOMEM;
	ep->scout = s;
	s->cq = ibv_create_cq(ep->dev->ctx, SCOUT_DEPTH + 1, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = s->cq;
	if (s->cq)
		s->qp = msg_verbs_dv()->create_rd_qp(ep->dev->ctx, &attr);
	if (!s->qp || msg_bring_up(ep->dev, s->qp, &qkey, SCOUT_TIMEOUT)) {
		msg_scout_close(ep);
		return -EIO;
	}
	s->ex = ibv_qp_to_qp_ex(s->qp);
	return 0;
}

/* An empty write needs no key, and no receive: only somebody who is there and has our Q_Key. */
static int try_pair(struct msg_ep *ep, uint32_t peer, uint32_t i)
{
	const struct msg_peer *p = &ep->peers[peer];
	const struct msg_pair *pair = &p->where->pair[i];
	struct msg_addr to = msg_addr_v4(pair->peer, p->addr.qpn, p->addr.qkey);
	struct ibv_ah_attr attr = msg_dev_ah(ep->dev, &to);
	struct ibv_qp_ex *ex = ep->scout->ex;
	struct ibv_ah *ah;
	int err;

	attr.grh.sgid_index = ep->owns.own[pair->own].sgid;
	ah = ibv_create_ah(ep->dev->pd, &attr);
	if (!ah)
		return -errno;
	ibv_wr_start(ex);
	ex->wr_id = peer;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, 0, 0);
	ibv_wr_set_ud_addr(ex, ah, to.qpn, to.qkey);
	ibv_wr_set_inline_data_list(ex, 0, NULL);
	err = ibv_wr_complete(ex);
	ibv_destroy_ah(ah);
	return -err;
}

static uint32_t all(const struct msg_where *w)
{
	return (1u << w->n_pairs) - 1;
}

/* The next that has not answered. One at a time: those to one peer would wait for each other. */
static void try_next(struct msg_ep *ep, uint32_t peer)
{
	struct msg_where *w = ep->peers[peer].where;

	for (; w->at < w->n_pairs; w->at++)
		if (!(w->good >> w->at & 1) && !try_pair(ep, peer, w->at)) {
			ep->scout->busy++;
			return;
		}
}

static void try_all(struct msg_ep *ep, uint32_t peer)
{
	struct msg_where *w = ep->peers[peer].where;

	if (ep->scout && ep->scout->busy == SCOUT_DEPTH)
		return; /* later */
	w->tried++;
	w->when = util_now_ns();
	if (!ep->scout && open_scout(ep))
		return;
	w->at = 0;
	try_next(ep, peer);
}

void msg_scout_collect(struct msg_ep *ep)
{
	struct ibv_wc wc[16];
	int n = 1;

	while (ep->scout->busy && n > 0) {
		n = ibv_poll_cq(ep->scout->cq, 16, wc);
		for (int i = 0; i < n; i++) {
			uint32_t peer = (uint32_t)wc[i].wr_id;
			struct msg_where *w = ep->peers[peer].where;

			ep->scout->busy--;
			w->good |= wc[i].status == IBV_WC_SUCCESS ? 1u << w->at : 0;
			w->at++;
			try_next(ep, peer);
		}
	}
	if (!ep->scout->busy)
		msg_scout_close(ep);
}

/* ---- asking, and being told ---- */

static void ask(struct msg_ep *ep, uint32_t peer)
{
	struct msg_where *w = ep->peers[peer].where;
	struct msg_pkt p = {.type = MSG_WHERE, .id = w->id};

	w->when = util_now_ns();
	/* Without room for it: the next message asks again. */
	if (!msg_tx_send(ep, peer, &p, NULL, 0, NULL))
		w->asked++;
}

static bool begin(struct msg_ep *ep, uint32_t peer)
{
	struct msg_where *w = calloc(1, sizeof(*w));

	if (!w || util_random_key(&w->id, sizeof(w->id))) {
		free(w);
		return false;
	}
	ep->peers[peer].where = w;
	ask(ep, peer);
	return false;
}

/* Waits become longer with each time. */
static bool is_time(const struct msg_where *w, uint32_t times)
{
	return !times || util_now_ns() - w->when > WAIT_NS << 2 * (times - 1);
}

bool msg_where_news(struct msg_ep *ep, uint32_t peer)
{
	struct msg_where *w = ep->peers[peer].where;

	if (!w)
		return begin(ep, peer);
	if (!w->n_pairs) {
		if (w->asked < ASKS && is_time(w, w->asked))
			ask(ep, peer);
		return false;
	}
	if (w->used == all(w) || w->n_pairs == 1)
		return false;
	if (w->at == w->n_pairs && w->good != all(w) && w->tried < TRIES && is_time(w, w->tried))
		try_all(ep, peer);
	/* All at once, if those that are still to be tried do not take too long. */
	if (w->good == w->used || (w->at < w->n_pairs && !is_time(w, 1)))
		return false;
	w->used = w->good;
	return w->used & (w->used - 1);
}

uint32_t msg_where_pairs(const struct msg_peer *p, struct msg_pair out[MSG_ADDRS])
{
	const struct msg_where *w = p->where;
	uint32_t n = 0;

	for (uint32_t i = 0; w && i < w->n_pairs; i++)
		if (w->used >> i & 1)
			out[n++] = w->pair[i];
	return n > 1 ? n : 0;
}

/* Who asks again and again, and takes no answers, has at most one waiting. */
void msg_where_asked(struct msg_ep *ep, uint32_t src, uint32_t id)
{
	const struct msg_owns *o = owns(ep);
	struct msg_pkt p = {.type = MSG_HERE, .id = id, .len = o->n * sizeof(uint32_t)};
	uint32_t list[MSG_ADDRS];

	if (ep->port != &msg_port_rd || ep->peers[src].wait)
		return;
	for (uint32_t i = 0; i < o->n; i++)
		list[i] = o->own[i].ip;
	msg_tx_post(ep, src, &p, list, p.len);
}

void msg_where_told(struct msg_ep *ep, uint32_t src, uint32_t id, const uint8_t *list, uint64_t len)
{
	struct msg_where *w = ep->peers[src].where;
	const struct msg_owns *o = owns(ep);
	uint32_t ip[MSG_ADDRS];

	if (!w || !w->asked || w->n_pairs || w->id != id)
		return;
	memcpy(ip, list, len);
	w->n_pairs = msg_pairs(o->own, o->n, ep->peers[src].addr.ip, ip,
			       (uint32_t)(len / sizeof(*ip)), w->pair);
	w->at = w->n_pairs;
	if (w->n_pairs > 1)
		try_all(ep, src);
}
