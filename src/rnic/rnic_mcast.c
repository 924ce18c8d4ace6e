/* Multicast groups: IP multicast below UD.
 *
 * A group's datagrams go to the group's address and to the port of the queue pair
 * number 0xffffff. Each process opens one socket for each group, shared by its queue
 * pairs that are attached; the kernel gives every such socket of the machine a copy.
 *
 * A v4-mapped MGID is the IP group itself. Any other MGID (ff..) is hashed into
 * 239.192.0.0/14, the organisation-local scope; since two MGIDs may share an address
 * there, the message number of a multicast datagram is a hash of the whole MGID.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "wire_crc32c.h"
#include "rnic_conn.h"

struct member {
	struct list_head by_group, by_qp;
	struct rnic_qp *qp;
	struct group *group;
};

struct group {
	struct rnic_io io;     /* first */
	struct list_head link; /* on e->groups */
	struct list_head members;
	struct rnic_ctx *ctx;
	struct in_addr addr;
	uint32_t hash;
};

bool rnic_mcast_map(const union ibv_gid *gid, struct in_addr *addr, uint32_t *hash)
{
	static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

	*hash = wire_crc32c(0, gid->raw, sizeof(gid->raw)) | 1; /* never 0 */
	if (!memcmp(gid->raw, v4_mapped, sizeof(v4_mapped))) {
		memcpy(addr, gid->raw + 12, sizeof(*addr));
		return IN_MULTICAST(ntohl(addr->s_addr));
	}
	if (gid->raw[0] != 0xff)
		return false;
	addr->s_addr = htonl(0xefc00000 | (*hash >> 14));
	return true;
}

/* Ports are unique only on one machine. */
static bool is_own(const struct rnic_qp *qp, const struct sockaddr_in *from)
{
	const struct rnic_device *dev = qp->ctx->dev;

	if (qp->ibv.qp_num >> 8 != ntohs(from->sin_port))
		return false;
	for (int i = 0; i < dev->n_addr; i++)
		if (dev->addr[i].addr.s_addr == from->sin_addr.s_addr)
			return true;
	return false;
}

static bool group_ready(struct rnic_io *io, uint32_t events)
{
	struct group *g = (struct group *)io;
	struct member *m;
	bool did = false;

	(void)events;
	for (int i = 0; i < 16; i++) {
		struct sockaddr_in from;
		struct in_addr to = g->addr;
		struct wire_seg seg;
		ssize_t n = rnic_ud_recv(io->e, io->fd, &from, &to);

		if (n < 0)
			break;
		did = true;
		if (!rnic_ud_decode(io->e, &seg, (size_t)n) || seg.msn != g->hash)
			continue;
		list_for_each (m, &g->members, by_group) {
			bool own = is_own(m->qp, &from);

			if (m->qp->ibv.state < IBV_QPS_RTR || m->qp->ibv.state == IBV_QPS_ERR ||
			    (own && m->qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
				continue;
			rnic_ud_deliver(m->qp, &seg, io->e->rxbuf + WIRE_DGRAM_HDR,
					(size_t)n - WIRE_DGRAM_HDR, &from, to);
		}
	}
	return did;
}

static void group_release(struct rnic_io *io)
{
	free(io);
}

/* Joins on every interface of the device: any of them may carry the group. */
static int join(const struct rnic_device *dev, int fd, struct in_addr addr)
{
	int err = ENODEV;

	for (int i = 0; i < dev->n_addr; i++) {
		struct ip_mreqn mreq = {.imr_multiaddr = addr,
					.imr_address = dev->addr[i].addr,
					.imr_ifindex = (int)dev->addr[i].ifindex};

		if (!setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq, sizeof(mreq)) ||
		    errno == EADDRINUSE)
			err = 0;
		else if (err)
			err = errno;
	}
	return -err;
}

static struct group *group_new(struct rnic_ctx *ctx, struct in_addr addr, uint32_t hash)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr = addr, .sin_port = htons(RNIC_MCAST_PORT)};
	struct group *g = calloc(1, sizeof(*g));
	int on = 1, size = 4 << 20, err;

	if (!g)
		return NULL;
	g->io = (struct rnic_io){.ready = group_ready, .release = group_release, .data = true};
	g->io.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (g->io.fd < 0)
		goto fail;
	setsockopt(g->io.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(g->io.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (bind(g->io.fd, (struct sockaddr *)&sin, sizeof(sin)))
		goto fail;
	err = join(ctx->dev, g->io.fd, addr);
	if (!err)
		err = rnic_io_add(ctx->e, &g->io, EPOLLIN);
	if (err) {
		errno = -err;
		goto fail;
	}
	g->ctx = ctx;
	g->addr = addr;
	g->hash = hash;
	list_init(&g->members);
	list_add_tail(&g->link, &ctx->e->groups);
	return g;
fail:
	err = errno;
	if (g->io.fd >= 0)
		close(g->io.fd);
	free(g);
	errno = err;
	return NULL;
}

static struct group *group_find(struct rnic_ctx *ctx, uint32_t hash, struct in_addr addr)
{
	struct group *g;

	list_for_each (g, &ctx->e->groups, link) {
		if (g->ctx == ctx && g->hash == hash && g->addr.s_addr == addr.s_addr)
			return g;
	}
	return NULL;
}

static struct member *member_find(struct rnic_qp *qp, const struct group *g)
{
	struct member *m;

	list_for_each (m, &qp->groups, by_qp) {
		if (m->group == g)
			return m;
	}
	return NULL;
}

int rnic_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	struct rnic_qp *qp = rnic_qp(ibqp);
	struct member *m = NULL;
	struct in_addr addr;
	struct group *g;
	uint32_t hash;
	int err = 0;

	(void)lid; /* the group is named by its GID alone */
	if (qp->e->dead)
		return EIO;
	if (ibqp->qp_type != IBV_QPT_UD || !rnic_mcast_map(gid, &addr, &hash))
		return EINVAL;
	rnic_enter(qp->e);
	g = group_find(qp->ctx, hash, addr);
	if (g && member_find(qp, g))
		goto out; /* attaching twice is attaching once */
	m = calloc(1, sizeof(*m));
	if (m && !g)
		g = group_new(qp->ctx, addr, hash);
	if (!m || !g) {
		err = m ? errno : ENOMEM;
		free(m);
		goto out;
	}
	m->qp = qp;
	m->group = g;
	list_add_tail(&m->by_group, &g->members);
	list_add_tail(&m->by_qp, &qp->groups);
out:
	rnic_leave(qp->e);
	return err;
}

int rnic_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
	struct rnic_qp *qp = rnic_qp(ibqp);
	struct in_addr addr;
	struct member *m;
	struct group *g;
	uint32_t hash;
	int err = 0;

	(void)lid;
	if (qp->e->dead)
		return EIO;
	if (ibqp->qp_type != IBV_QPT_UD || !rnic_mcast_map(gid, &addr, &hash))
		return EINVAL;
	rnic_enter(qp->e);
	g = group_find(qp->ctx, hash, addr);
	m = g ? member_find(qp, g) : NULL;
	if (m) {
		list_del(&m->by_group);
		list_del(&m->by_qp);
		free(m);
		if (list_empty(&g->members)) {
			list_del(&g->link);
			rnic_io_close(&g->io);
		}
	} else {
		err = EINVAL;
	}
	rnic_leave(qp->e);
	return err;
}
