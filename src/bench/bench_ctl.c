#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_ctl.h"
#include "bench_time.h"

#define SWAP_MS  30000
#define WRITE_S  30 /* that the other side may leave our words unread */
#define LAST_ERR 4095

/* On the wire all fields are big-endian. */
struct wire_msg {
	uint32_t op;
	uint32_t status;
	char kind[BENCH_KIND_NAME];
	uint64_t arg[BENCH_ARGS];
};

static int resolve(const char *host, int port, struct sockaddr_in *sin)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *res;

	*sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	if (!host)
		return 0;
	if (getaddrinfo(host, NULL, &hints, &res))
		return -EADDRNOTAVAIL;
	sin->sin_addr = ((struct sockaddr_in *)res->ai_addr)->sin_addr;
	freeaddrinfo(res);
	return 0;
}

static int adopt(struct bench_ctl *ctl, int fd)
{
	socklen_t len = sizeof(ctl->local);
	struct timeval patience = {.tv_sec = WRITE_S};
	int one = 1;

	ctl->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (getsockname(fd, (struct sockaddr *)&ctl->local, &len))
		return -errno;
	len = sizeof(ctl->peer);
	if (getpeername(fd, (struct sockaddr *)&ctl->peer, &len))
		return -errno;
	return 0;
}

int bench_ctl_connect(struct bench_ctl *ctl, const char *host, int port, int timeout_ms)
{
	uint64_t deadline = bench_now() + (uint64_t)timeout_ms * BENCH_MS;
	struct sockaddr_in sin;
	int ret = resolve(host, port, &sin);

	if (ret)
		return ret;
	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return -errno;
		if (!connect(fd, (struct sockaddr *)&sin, sizeof(sin)))
			return adopt(ctl, fd);
		ret = -errno;
		close(fd);
		/* The server may be starting still. */
		if (bench_now() > deadline)
			return ret;
		usleep(20000);
	}
}

int bench_ctl_listen(const char *host, int port)
{
	struct sockaddr_in sin;
	int one = 1, ret = resolve(host, port, &sin);

	if (ret)
		return ret;

	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sin, sizeof(sin)) || listen(fd, 4)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static int wait_readable(int fd, int timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int n;

	do
		n = poll(&pfd, 1, timeout_ms);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n ? 0 : -ETIMEDOUT;
}

int bench_ctl_accept(struct bench_ctl *ctl, int listener, int timeout_ms)
{
	int ret = wait_readable(listener, timeout_ms);

	if (ret)
		return ret;

	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	return fd < 0 ? -errno : adopt(ctl, fd);
}

void bench_ctl_close(struct bench_ctl *ctl)
{
	if (ctl->fd >= 0)
		close(ctl->fd);
	ctl->fd = -1;
}

int bench_ctl_write(struct bench_ctl *ctl, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = send(ctl->fd, p, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int bench_ctl_read(struct bench_ctl *ctl, void *buf, size_t len, int timeout_ms)
{
	uint64_t deadline = bench_now() + (uint64_t)timeout_ms * BENCH_MS;
	char *p = buf;

	while (len) {
		/* For all of it: one byte now and then must not hold us for ever. */
		uint64_t now = bench_now();
		int left = now < deadline ? (int)((deadline - now) / BENCH_MS) + 1 : 0;
		int ret = wait_readable(ctl->fd, left);

		if (ret)
			return ret;

		ssize_t n = recv(ctl->fd, p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int bench_ctl_send(struct bench_ctl *ctl, const struct bench_msg *msg)
{
	struct wire_msg w = {.op = htobe32(msg->op), .status = htobe32((uint32_t)msg->status)};

	memcpy(w.kind, msg->kind, sizeof(w.kind));
	for (int i = 0; i < BENCH_ARGS; i++)
		w.arg[i] = htobe64(msg->arg[i]);
	return bench_ctl_write(ctl, &w, sizeof(w));
}

int bench_ctl_recv(struct bench_ctl *ctl, struct bench_msg *msg, int timeout_ms)
{
	struct wire_msg w;
	int ret = bench_ctl_read(ctl, &w, sizeof(w), timeout_ms);

	if (ret)
		return ret;
	msg->op = be32toh(w.op);
	msg->status = (int32_t)be32toh(w.status);
	/* Callers hand it on as their own result. */
	if (msg->status > 0 || msg->status < -LAST_ERR)
		return -EPROTO;
	memcpy(msg->kind, w.kind, sizeof(msg->kind));
	msg->kind[BENCH_KIND_NAME - 1] = 0;
	for (int i = 0; i < BENCH_ARGS; i++)
		msg->arg[i] = be64toh(w.arg[i]);
	return 0;
}

int bench_ctl_expect(struct bench_ctl *ctl, uint32_t op, struct bench_msg *msg, int timeout_ms)
{
	struct bench_msg scratch;
	int ret;

	if (!msg)
		msg = &scratch;
	ret = bench_ctl_recv(ctl, msg, timeout_ms);
	if (ret)
		return ret;
	if (msg->op != op) {
		fprintf(stderr, "%s: control: got message %u where %u was due\n",
			program_invocation_short_name, msg->op, op);
		return -EPROTO;
	}
	return msg->status;
}

int bench_ctl_swap(struct bench_ctl *ctl, const void *mine, void *theirs, size_t len)
{
	/* Far below the size of a socket buffer, or the two writes could wait for each
	 * other: callers swap addresses and not data. */
	int ret = bench_ctl_write(ctl, mine, len);

	return ret ? ret : bench_ctl_read(ctl, theirs, len, SWAP_MS);
}

bool bench_ctl_readable(struct bench_ctl *ctl)
{
	struct pollfd pfd = {.fd = ctl->fd, .events = POLLIN};

	return poll(&pfd, 1, 0) != 0;
}
