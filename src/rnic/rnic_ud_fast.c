/* A fast lane for the peer that a UD queue pair talks to most.
 *
 * A datagram sent on an unconnected socket looks up its route every time; on a connected
 * one it does not, which takes a fifth off the latency. A connected socket reaches only
 * one peer, though, so the queue pair keeps its own and adds a second one, bound to the
 * same address and port and connected to the peer that the last sends all went to. The
 * kernel gives that peer's datagrams to the connected socket, as the better match, and
 * everybody else's to the other. Both are read alike.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "rnic_conn.h"

/* Sends in a row to one peer before it is worth a socket. */
#define RUN 64

struct rnic_ud_fast {
	struct rnic_io io; /* first */
	struct rnic_qp *qp;
	struct sockaddr_in to;
	uint8_t sgid_index;
};

static bool fast_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_ud_fast *f = (struct rnic_ud_fast *)io;

	return rnic_ud_drain(f->qp, io->fd, false, f->sgid_index, events);
}

static void fast_release(struct rnic_io *io)
{
	free(io);
}

/* Two sockets may share a port only if both say so while the second one binds. Before
 * and after, nobody else may join them. */
int rnic_bind_beside(int first, int second, const struct sockaddr_in *own)
{
	int on = 1, off = 0, err;

	setsockopt(first, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	setsockopt(second, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	err = bind(second, (const struct sockaddr *)own, sizeof(*own)) ? -errno : 0;
	setsockopt(first, SOL_SOCKET, SO_REUSEPORT, &off, sizeof(off));
	setsockopt(second, SOL_SOCKET, SO_REUSEPORT, &off, sizeof(off));
	return err;
}

static void fast_open(struct rnic_qp *qp, const struct sockaddr_in *to, uint8_t sgid_index)
{
	struct sockaddr_in own = {.sin_family = AF_INET,
				  .sin_addr = qp->ctx->dev->addr[sgid_index].addr,
				  .sin_port = htons((uint16_t)(qp->ibv.qp_num >> 8))};
	struct rnic_ud_fast *f = calloc(1, sizeof(*f));
	int size = RNIC_UD_SOCKBUF;

	if (!f)
		return;
	f->io = (struct rnic_io){.ready = fast_ready, .release = fast_release, .data = true};
	f->qp = qp;
	f->to = *to;
	f->sgid_index = sgid_index;
	f->io.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (f->io.fd < 0)
		goto fail;
	setsockopt(f->io.fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(f->io.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	/* Between bind and connect it may get datagrams of any peer: they are read. */
	if (rnic_bind_beside(qp->ud_io.fd, f->io.fd, &own) || rnic_io_add(qp->e, &f->io, EPOLLIN))
		goto fail;
	if (connect(f->io.fd, (const struct sockaddr *)to, sizeof(*to))) {
		rnic_io_close(&f->io);
		return;
	}
	qp->ud_fast = f;
	return;
fail:
	if (f->io.fd >= 0)
		close(f->io.fd);
	free(f);
}

void rnic_ud_fast_close(struct rnic_qp *qp)
{
	struct rnic_ud_fast *f = qp->ud_fast;

	if (!f)
		return;
	qp->ud_fast = NULL;
	/* What has arrived there would be lost with it; what keeps arriving is not waited
	 * for. */
	for (int i = 0; i < RUN; i++)
		if (!rnic_ud_drain(qp, f->io.fd, false, f->sgid_index, EPOLLIN))
			break;
	rnic_io_close(&f->io);
}

static bool same(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
	return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
}

int rnic_ud_fast(struct rnic_qp *qp, const struct sockaddr_in *to, uint8_t sgid_index)
{
	struct rnic_ud_fast *f = qp->ud_fast;

	if (f && same(&f->to, to) && f->sgid_index == sgid_index) {
		qp->ud_run = 0;
		return f->io.fd;
	}
	if (!qp->ud_run || !same(&qp->ud_run_to, to)) {
		qp->ud_run_to = *to;
		qp->ud_run = 1;
	} else if (++qp->ud_run == RUN) {
		rnic_ud_fast_close(qp);
		fast_open(qp, to, sgid_index);
		return qp->ud_fast ? qp->ud_fast->io.fd : -1;
	}
	return -1;
}
