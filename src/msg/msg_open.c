/* Endpoints: made, named, closed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "util_rand.h"
#include "msg_rc.h"

int msg_bring_up(const struct msg_dev *dev, struct ibv_qp *qp, uint32_t *qkey, uint8_t timeout)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = dev->port, .timeout = timeout};
	int err = util_random_key(qkey, sizeof(*qkey));

	*qkey &= 0x7fffffff; /* the top bit has a meaning of its own */
	attr.qkey = *qkey;
	if (!err)
		err = -ibv_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR;
	if (!err)
		err = -ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = -ibv_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_SQ_PSN | (timeout ? IBV_QP_TIMEOUT : 0));
	return err;
}

int msg_start_qp(struct msg_ep *ep)
{
	return msg_bring_up(ep->dev, ep->qp, &ep->qkey, 0);
}

static int make_buffers(struct msg_ep *ep)
{
	uint32_t n = ep->conf.rx_buffers;

	/* Pages that no message has reached yet are no memory, except for devices that pin them. */
	if (!ep->dev->own || ep->conf.eager_far < ep->conf.eager_max)
		ep->conf.eager_far = ep->conf.eager_max;
	ep->rx_size = (MSG_WIRE_MAX + ep->conf.eager_far + 63) / 64 * 64;
	ep->rx = aligned_alloc(64, n * ep->rx_size);
	ep->idle = malloc(n * sizeof(*ep->idle));
	ep->tx = calloc(ep->conf.depth, sizeof(*ep->tx));
	ep->tx_data = aligned_alloc(64, ep->conf.depth * ep->rx_size);
	if (!ep->rx || !ep->idle || !ep->tx || !ep->tx_data)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		ep->idle[ep->n_idle++] = i;
	for (uint32_t i = 0; i < ep->conf.depth; i++) {
		ep->tx[i].next = ep->tx_free;
		ep->tx[i].data = ep->tx_data + i * ep->rx_size;
		ep->tx_free = &ep->tx[i];
	}
	ep->rx_mr = ibv_reg_mr_iova2(ep->dev->pd, ep->rx, n * ep->rx_size, (uintptr_t)ep->rx,
				     IBV_ACCESS_LOCAL_WRITE);
	ep->tx_mr = ibv_reg_mr_iova2(ep->dev->pd, ep->tx_data, ep->conf.depth * ep->rx_size,
				     (uintptr_t)ep->tx_data, IBV_ACCESS_LOCAL_WRITE);
	return ep->rx_mr && ep->tx_mr ? 0 : -errno;
}

/* What whoever sleeps waits for: completions, and the time to call a peer again. */
static int make_fd(struct msg_ep *ep)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int fd = ep->channel->fd, timer = ep->rc ? ep->rc->timer : -1;

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		return -errno;
	if (timer < 0) {
		ep->fd = fd;
		return 0;
	}
	ep->fd = epoll_create1(EPOLL_CLOEXEC);
	return ep->fd < 0 || epoll_ctl(ep->fd, EPOLL_CTL_ADD, fd, &ev) ||
			       epoll_ctl(ep->fd, EPOLL_CTL_ADD, timer, &ev)
		       ? -errno
		       : 0;
}

static void free_early(void *arg, struct msg_unexp *u)
{
	(void)arg;
	free(container_of(u, struct msg_early, unexp));
}

static void destroy(struct msg_ep *ep)
{
	struct msg_unexp *u;

	while ((u = list_first(&ep->claimed, struct msg_unexp, all))) {
		list_del(&u->all);
		free_early(NULL, u);
	}
	for (int i = 0; i < 2; i++) {
		msg_match_drop_src(&ep->match[i], MSG_ANY_SRC, NULL, free_early, NULL);
		msg_match_free(&ep->match[i]);
	}
	msg_tx_drop(ep);
	if (ep->fd >= 0 && ep->fd != ep->channel->fd)
		close(ep->fd);
	ep->port->close(ep);
	if (ep->channel)
		ibv_destroy_comp_channel(ep->channel);
	msg_ghosts_free(ep);
	for (uint32_t i = 0; i < ep->n_ids; i++)
		if (ep->ids[i].op) {
			msg_unexpose(ep, ep->ids[i].op);
			free(ep->ids[i].op->share);
		}
	if (ep->rx_mr)
		ibv_dereg_mr(ep->rx_mr);
	if (ep->tx_mr)
		ibv_dereg_mr(ep->tx_mr);
	msg_strips_free(ep);
	msg_peers_free(ep);
	msg_live_close(ep->live);
	msg_reuse_free(&ep->reuse);
	free(ep->rx);
	free(ep->idle);
	free(ep->tx);
	free(ep->tx_data);
	free(ep->ids);
	free(ep);
}

void msg_ep_reuse(struct msg_ep *ep, enum msg_reusing how)
{
	ep->conf.reuse = how;
	ep->late = ep->dev->all && ep->port->post_keep && how != MSG_REUSE_NO;
}

int msg_ep_open(struct msg_dev *dev, const struct msg_ep_conf *conf, struct msg_ep **out)
{
	struct msg_ep *ep = calloc(1, sizeof(*ep));
	int err;

	if (!ep)
		return -ENOMEM;
	ep->dev = dev;
	ep->conf = *conf;
	ep->port = dev->transport == MSG_RC ? &msg_port_rc : &msg_port_rd;
	ep->fd = -1;
	ep->id_free = ep->wait_first = UINT32_MAX;
	list_init(&ep->stalled);
	list_init(&ep->again);
	list_init(&ep->turns);
	list_init(&ep->cancelling);
	list_init(&ep->claimed);
	list_init(&ep->ghosts);
	list_init(&ep->strips);
	msg_adapt_init(&ep->adapt, conf->usage);
	err = msg_match_init(&ep->match[0]);
	if (!err)
		err = msg_match_init(&ep->match[1]);
	if (!err && conf->wait) {
		ep->channel = ibv_create_comp_channel(dev->ctx);
		err = ep->channel ? 0 : -errno;
	}
	if (!err)
		err = ep->port->open(ep);
	msg_ep_reuse(ep, conf->reuse);
	if (!err && conf->wait)
		err = make_fd(ep);
	if (!err)
		err = make_buffers(ep);
	if (err) {
		destroy(ep);
		return err;
	}
	msg_refill(ep);
	*out = ep;
	return 0;
}

/* ---- closed ---- */

/* Not even those packets are left that wait for room. The lock may be somebody's who is gone: in a
 * child of fork. */
static bool settled(struct msg_ep *ep)
{
	bool yes;

	if (!util_trylock(&ep->lock))
		return false;
	if (ep->wait_first != UINT32_MAX)
		msg_tx_flush(ep);
	yes = ep->wait_first == UINT32_MAX && list_empty(&ep->stalled) && list_empty(&ep->again) &&
	      ep->port->settled(ep);
	util_unlock(&ep->lock);
	return yes;
}

/* What was said to be sent is on its way, and a queue pair that goes takes it along. Peers that
 * close at the same time send to us, too, and would wait for receive buffers. */
void msg_ep_linger(struct msg_ep *ep)
{
	uint64_t end = util_now_ns() + ep->conf.linger;

	while (ep->conf.linger && !settled(ep)) {
		if (msg_progress(ep) < 0) /* the device is a parent's */
			return;
		if (util_now_ns() >= end) {
			util_log(UTIL_LOG_INFO, "closed before all peers had all that was sent");
			return;
		}
	}
}

void msg_ep_close(struct msg_ep *ep)
{
	msg_ep_linger(ep);
	destroy(ep);
}

/* ---- names ---- */

struct msg_addr msg_ep_addr(const struct msg_ep *ep)
{
	struct msg_addr a = ep->dev->addr;

	a.qpn = ep->qp->qp_num;
	a.qkey = ep->qkey;
	return a;
}

int msg_ep_peer(struct msg_ep *ep, const struct msg_addr *addr, uint32_t *peer)
{
	struct msg_addr v4 = msg_addr_v4(addr->ip, addr->qpn, addr->qkey);

	/* Packets name their sender so, and all others could not answer. */
	if (ep->port == &msg_port_rd && memcmp(&v4, addr, sizeof(v4)) != 0)
		return -EINVAL;
	util_lock(&ep->lock);
	*peer = msg_peer_get(ep, addr);
	util_unlock(&ep->lock);
	return *peer == UINT32_MAX ? -ENOMEM : 0;
}

struct msg_addr msg_peer_addr(struct msg_ep *ep, uint32_t peer)
{
	struct msg_addr a;

	util_lock(&ep->lock);
	a = ep->peers[peer].addr;
	util_unlock(&ep->lock);
	return a;
}
