/* Listeners: a TCP port and 255 indices make the numbers of RC and UC queue pairs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "rnic_conn.h"
#include "rnic_table.h"

#define INDICES 255 /* 0xff is left to UD */
#define BACKLOG 4096
/* Accepted per pass; more wait in the kernel. */
#define ACCEPTS 16
/* Without a descriptor for the next connection, the kernel would report it for ever. */
#define PAUSE_NS (100 * UTIL_NS_PER_MS)

static void resume(struct rnic_timer *t, uint64_t now)
{
	(void)now;
	rnic_io_want(&container_of(t, struct rnic_listener, pause)->io, EPOLLIN);
}

static void pause_listener(struct rnic_listener *l)
{
	rnic_conn_scarce(errno);
	if (!rnic_timer_arm(l->io.e, &l->pause, util_now_ns() + PAUSE_NS))
		rnic_io_want(&l->io, 0);
}

static bool listener_ready(struct rnic_io *io, uint32_t events)
{
	bool did = false;

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		struct sockaddr_in from;
		socklen_t len = sizeof(from);
		int fd = accept4(io->fd, (struct sockaddr *)&from, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			    errno == ENOMEM)
				pause_listener((struct rnic_listener *)io);
			break;
		}
		rnic_conn_accepted(io->e, fd, from.sin_addr);
		did = true;
	}
	return did;
}

static void listener_release(struct rnic_io *io)
{
	free(io);
}

/* A device with a single address listens on that one only. */
static struct in_addr bind_addr(const struct rnic_device *dev)
{
	if (dev->n_addr == 1)
		return dev->addr[0].addr;
	return (struct in_addr){.s_addr = htonl(INADDR_ANY)};
}

static struct rnic_listener *listener_new(struct rnic_ctx *ctx)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr = bind_addr(ctx->dev)};
	socklen_t len = sizeof(sin);
	struct rnic_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return NULL;
	l->ctx = ctx;
	rnic_timer_init(&l->pause, resume);
	l->io = (struct rnic_io){.ready = listener_ready, .release = listener_release};
	l->io.fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l->io.fd < 0 || bind(l->io.fd, (struct sockaddr *)&sin, len) ||
	    listen(l->io.fd, BACKLOG) || getsockname(l->io.fd, (struct sockaddr *)&sin, &len))
		goto fail;
	l->port = ntohs(sin.sin_port);
	err = rnic_io_add(ctx->e, &l->io, EPOLLIN);
	if (err) {
		errno = -err;
		goto fail;
	}
	list_add_tail(&l->link, &ctx->e->listeners);
	return l;
fail:
	err = errno;
	if (l->io.fd >= 0)
		close(l->io.fd);
	free(l);
	errno = err;
	return NULL;
}

static struct rnic_listener *listener_with_room(struct rnic_ctx *ctx)
{
	struct rnic_listener *l;

	list_for_each (l, &ctx->e->listeners, link) {
		if (l->ctx == ctx && l->used < INDICES)
			return l;
	}
	return listener_new(ctx);
}

int rnic_listen_get(struct rnic_qp *qp)
{
	struct rnic_listener *l = listener_with_room(qp->ctx);
	uint8_t i;
	int err;

	if (!l)
		return -errno;
	while (i = l->next++ % INDICES, l->map[i / 8] & 1u << i % 8)
		;
	qp->ibv.qp_num = (uint32_t)l->port << 8 | i;
	err = rnic_table_add(qp->e->qps, qp->ibv.qp_num, qp);
	if (err)
		return err;
	l->map[i / 8] |= (uint8_t)(1u << i % 8);
	l->used++;
	qp->listener = l;
	return 0;
}

void rnic_listen_put(struct rnic_qp *qp)
{
	struct rnic_listener *l = qp->listener;
	uint8_t i = (uint8_t)qp->ibv.qp_num;

	rnic_table_del(qp->e->qps, qp->ibv.qp_num);
	l->map[i / 8] &= (uint8_t) ~(1u << i % 8);
	if (!--l->used) {
		list_del(&l->link);
		rnic_timer_cancel(qp->e, &l->pause);
		rnic_io_close(&l->io);
	}
	qp->listener = NULL;
}
