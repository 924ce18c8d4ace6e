/* Raw TCP: what RC and UC are compared with.
 *
 * Latency spins on a non-blocking recv of one connected socket without Nagle's delay,
 * as a polling verbs program does, and so does a stream: send and recv of the message's
 * size. tcp-block is the same stream with calls that sleep, as most programs have it.
 * Neither is always the faster one: on two quiet cores, at 64 KB, spinning reached 4.2 GB/s
 * and sleeping 2.0, because every wake-up costs; with others on the same cores, a sleeper
 * is served sooner.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench_pingpong.h"
#include "bench_time.h"

enum { SPINNING, BLOCKING };

struct tcp_chan {
	struct bench_chan chan; /* first */
	int fd;
	size_t size, have; /* of the message that is coming in */
	uint32_t spins, empty;
	uint64_t deadline;
	char *buf;
};

static struct tcp_chan *to_tcp(struct bench_chan *chan)
{
	return (struct tcp_chan *)chan;
}

static int serve(struct bench_env *env, int *out)
{
	struct sockaddr_in sin = env->ctl.local;
	socklen_t len = sizeof(sin);
	uint16_t port, unused;
	int fd, ret = 0;

	sin.sin_port = 0;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&sin, len) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)&sin, &len))
		ret = -errno;
	port = ret ? 0 : sin.sin_port;
	if (!bench_ctl_swap(&env->ctl, &port, &unused, sizeof(port)) && !ret) {
		struct bench_ctl conn = {.fd = -1};

		ret = bench_ctl_accept(&conn, fd, 10000);
		*out = conn.fd;
	}
	close(fd);
	return ret;
}

static int reach(struct bench_env *env, int *out)
{
	struct sockaddr_in sin = env->ctl.peer;
	uint16_t unused = 0, port;
	int ret = bench_ctl_swap(&env->ctl, &unused, &port, sizeof(port));

	if (ret)
		return ret;
	if (!port)
		return -ECONNREFUSED;
	sin.sin_port = port;
	*out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*out < 0)
		return -errno;
	return connect(*out, (struct sockaddr *)&sin, sizeof(sin)) ? -errno : 0;
}

static void tcp_close(struct bench_chan *chan)
{
	struct tcp_chan *t = to_tcp(chan);

	if (t->fd >= 0)
		close(t->fd);
	free(t->buf);
	free(t);
}

static int tcp_open(struct bench_env *env, const struct bench_kind *kind, struct bench_chan **out)
{
	struct timeval limit = {.tv_sec = (time_t)(env->conf.step_ms / 1000) + 1};
	struct tcp_chan *t = calloc(1, sizeof(*t));
	int one = 1, ret;

	if (!t)
		return -ENOMEM;
	t->chan.kind = kind;
	t->chan.env = env;
	t->fd = -1;
	t->buf = aligned_alloc(4096, (env->conf.max_size + 4095) / 4096 * 4096);
	ret = env->role == BENCH_SERVER ? serve(env, &t->fd) : reach(env, &t->fd);
	if (!ret && !t->buf)
		ret = -ENOMEM;
	if (ret) {
		tcp_close(&t->chan);
		return ret;
	}
	memset(t->buf, 0x5a, env->conf.max_size);
	setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(t->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(t->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	*out = &t->chan;
	return 0;
}

static int tcp_prepare(struct bench_chan *chan, const struct bench_step *step)
{
	struct tcp_chan *t = to_tcp(chan);

	t->size = step->size;
	t->have = 0;
	t->deadline = step->deadline;
	return 0;
}

static int tcp_send(struct bench_chan *chan, uint32_t seq)
{
	struct tcp_chan *t = to_tcp(chan);
	size_t done = 0;

	bench_seq_put(t->buf, t->size, seq);
	while (done < t->size) {
		ssize_t n = send(t->fd, t->buf + done, t->size - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EAGAIN && errno != EINTR)
			return -errno;
		else if (bench_expired(&t->spins, t->deadline))
			return -ETIMEDOUT;
	}
	return 0;
}

static int tcp_try_recv(struct bench_chan *chan, uint32_t *seq)
{
	struct tcp_chan *t = to_tcp(chan);
	ssize_t n = recv(t->fd, t->buf + t->have, t->size - t->have, MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		bench_yield(&t->empty);
		return 0;
	}
	if (!n)
		return -ECONNRESET;
	t->empty = 0;
	t->have += (size_t)n;
	if (t->have < t->size)
		return 0;
	t->have = 0;
	*seq = bench_seq_get(t->buf, t->size);
	return 1;
}

/* Zero when the kind blocks. */
static int stream_flags(const struct bench_chan *chan)
{
	return chan->kind->variant == BLOCKING ? 0 : MSG_DONTWAIT;
}

/* After a call that returned n < 0. 0: try again. */
static int try_again(struct tcp_chan *t)
{
	if (errno != EAGAIN && errno != EINTR)
		return -errno;
	/* A blocking call returns EAGAIN only when its time limit is over. */
	if (t->chan.kind->variant == BLOCKING && errno == EAGAIN)
		return -ETIMEDOUT;
	bench_yield(&t->empty);
	return bench_expired(&t->spins, t->deadline) ? -ETIMEDOUT : 0;
}

static int tcp_tx(struct bench_chan *chan, struct bench_step *step)
{
	struct tcp_chan *t = to_tcp(chan);
	int flags = stream_flags(chan) | MSG_NOSIGNAL, ret;

	for (uint64_t i = 0; i < step->count; i++) {
		for (size_t done = 0; done < step->size;) {
			ssize_t n = send(t->fd, t->buf + done, step->size - done, flags);

			if (n < 0) {
				ret = try_again(t);
				if (ret)
					return ret;
				continue;
			}
			t->empty = 0;
			done += (size_t)n;
		}
		if (bench_expired(&t->spins, step->deadline))
			return -ETIMEDOUT;
	}
	return 0;
}

static int tcp_rx(struct bench_chan *chan, struct bench_step *step)
{
	struct tcp_chan *t = to_tcp(chan);
	uint64_t left = step->count * step->size, t0 = bench_now();
	int flags = stream_flags(chan), ret;

	while (left) {
		ssize_t n = recv(t->fd, t->buf, left < step->size ? left : step->size, flags);

		if (!n)
			return -ECONNRESET;
		if (n < 0) {
			ret = try_again(t);
			if (ret)
				return ret;
			continue;
		}
		t->empty = 0;
		left -= (uint64_t)n;
		if (bench_expired(&t->spins, step->deadline))
			return -ETIMEDOUT;
	}
	step->rx_msgs = step->count;
	step->rx_bytes = step->count * step->size;
	step->rx_ns = bench_now() - t0;
	return 0;
}

const struct bench_kind bench_kind_tcp = {
	.name = "tcp",
	.help = "raw TCP socket, no delay, both sides spin",
	.tests = BENCH_LAT | BENCH_BW,
	.variant = SPINNING,
	.open = tcp_open,
	.close = tcp_close,
	.prepare = tcp_prepare,
	.ping = bench_ping,
	.pong = bench_pong,
	.send = tcp_send,
	.try_recv = tcp_try_recv,
	.tx = tcp_tx,
	.rx = tcp_rx,
};

const struct bench_kind bench_kind_tcp_block = {
	.name = "tcp-block",
	.help = "raw TCP socket, blocking calls (streams only)",
	.base = {"tcp"},
	.tests = BENCH_BW,
	.variant = BLOCKING,
	.open = tcp_open,
	.close = tcp_close,
	.prepare = tcp_prepare,
	.tx = tcp_tx,
	.rx = tcp_rx,
};
