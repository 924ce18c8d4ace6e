/* Raw UDP: what UD is compared with, in three variants.
 *
 * udp       sendto and recvfrom with an address in every call, as one socket that serves
 *           many peers must do
 * udp-conn  a connected socket: no route look-up per datagram
 * udp-gso   streams only: many datagrams per call, cut by the kernel (UDP_SEGMENT) and
 *           put together again (UDP_GRO); the most that UDP can carry on this machine
 *
 * A stream is sent as fast as the socket takes it; the receiver counts what arrived.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_pingpong.h"
#include "bench_time.h"

#define UDP_LIMIT    65507           /* 64 KB less the IP and UDP headers */
#define GSO_SEGMENTS 64              /* the kernel's limit before Linux 6.9 */
#define QUIET_NS     (20 * BENCH_MS) /* a stream is over when nothing came for so long */

enum { UNCONNECTED, CONNECTED, SEGMENTED };

struct udp_chan {
	struct bench_chan chan; /* first */
	int fd;
	size_t size;
	uint32_t empty; /* receives in a row that found nothing */
	size_t segment; /* the largest datagram that fits into the path's MTU */
	struct sockaddr_in peer;
	char *buf;
};

static struct udp_chan *to_udp(struct bench_chan *chan)
{
	return (struct udp_chan *)chan;
}

static void udp_close(struct bench_chan *chan)
{
	struct udp_chan *u = to_udp(chan);

	if (u->fd >= 0)
		close(u->fd);
	free(u->buf);
	free(u);
}

/* The path's MTU is known only to a connected socket. */
static int find_segment(struct udp_chan *u)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu, ret = 0;
	socklen_t len = sizeof(mtu);

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&u->peer, sizeof(u->peer)) ||
	    getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &len))
		ret = -errno;
	else
		u->segment = (size_t)(mtu < UDP_LIMIT + 28 ? mtu : UDP_LIMIT + 28) - 28;
	close(fd);
	return ret;
}

static int udp_setup(struct udp_chan *u)
{
	struct bench_env *env = u->chan.env;
	struct sockaddr_in sin = env->ctl.local;
	socklen_t len = sizeof(sin);
	int bytes = 4 << 20, one = 1;

	sin.sin_port = 0;
	u->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (u->fd < 0 || bind(u->fd, (struct sockaddr *)&sin, len) ||
	    getsockname(u->fd, (struct sockaddr *)&sin, &len))
		return -errno;
	u->peer = env->ctl.peer;

	int ret = bench_ctl_swap(&env->ctl, &sin.sin_port, &u->peer.sin_port, sizeof(sin.sin_port));

	if (ret)
		return ret;
	setsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	setsockopt(u->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (u->chan.kind->variant != UNCONNECTED &&
	    connect(u->fd, (struct sockaddr *)&u->peer, sizeof(u->peer)))
		return -errno;
	if (u->chan.kind->variant == SEGMENTED &&
	    setsockopt(u->fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one)))
		return -errno;
	return find_segment(u);
}

static int udp_open(struct bench_env *env, const struct bench_kind *kind, struct bench_chan **out)
{
	struct udp_chan *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	u->chan.kind = kind;
	u->chan.env = env;
	ret = udp_setup(u);
	u->buf = aligned_alloc(4096, 65536);
	if (!ret && !u->buf)
		ret = -ENOMEM;
	if (ret) {
		udp_close(&u->chan);
		return ret;
	}
	memset(u->buf, 0x5a, 65536);
	*out = &u->chan;
	return 0;
}

static size_t udp_max_size(const struct bench_env *env, const struct bench_kind *kind)
{
	(void)env;
	return kind->variant == SEGMENTED ? SIZE_MAX : UDP_LIMIT;
}

static ssize_t put(struct udp_chan *u, const void *buf, size_t len, int flags)
{
	if (u->chan.kind->variant != UNCONNECTED)
		return send(u->fd, buf, len, flags);
	return sendto(u->fd, buf, len, flags, (struct sockaddr *)&u->peer, sizeof(u->peer));
}

static ssize_t get(struct udp_chan *u, void *buf, size_t len)
{
	struct sockaddr_in from;
	socklen_t alen = sizeof(from);

	if (u->chan.kind->variant != UNCONNECTED)
		return recv(u->fd, buf, len, MSG_DONTWAIT);
	return recvfrom(u->fd, buf, len, MSG_DONTWAIT, (struct sockaddr *)&from, &alen);
}

static int udp_prepare(struct bench_chan *chan, const struct bench_step *step)
{
	struct udp_chan *u = to_udp(chan);

	/* Leftovers of a step that was cut short. */
	while (get(u, u->buf, 65536) >= 0)
		;
	u->size = step->size;
	return 0;
}

static int udp_send(struct bench_chan *chan, uint32_t seq)
{
	struct udp_chan *u = to_udp(chan);

	bench_seq_put(u->buf, u->size, seq);
	return put(u, u->buf, u->size, 0) < 0 ? -errno : 0;
}

static int udp_try_recv(struct bench_chan *chan, uint32_t *seq)
{
	struct udp_chan *u = to_udp(chan);
	ssize_t n = get(u, u->buf, u->size);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		bench_yield(&u->empty);
		return 0;
	}
	u->empty = 0;
	*seq = bench_seq_get(u->buf, u->size);
	return (size_t)n == u->size;
}

static int udp_tx(struct bench_chan *chan, struct bench_step *step)
{
	struct udp_chan *u = to_udp(chan);
	uint32_t spins = 0;

	for (uint64_t i = 0; i < step->count; i++) {
		if (put(u, u->buf, step->size, 0) < 0 && errno != ENOBUFS)
			return -errno;
		if (bench_expired(&spins, step->deadline))
			return -ETIMEDOUT;
	}
	return 0;
}

/* Messages that fit into a datagram stay whole, many to a call. Longer ones are a plain
 * run of bytes, cut wherever the MTU wants it. */
static int gso_tx(struct bench_chan *chan, struct bench_step *step)
{
	struct udp_chan *u = to_udp(chan);
	int segment = (int)(step->size < u->segment ? step->size : u->segment);
	size_t most = (size_t)segment * GSO_SEGMENTS;
	uint64_t left = step->count * step->size;

	if (most > UDP_LIMIT)
		most = UDP_LIMIT / (size_t)segment * (size_t)segment;
	if (setsockopt(u->fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
		return -errno;
	while (left) {
		size_t len = left < most ? (size_t)left : most;

		if (send(u->fd, u->buf, len, 0) < 0 && errno != ENOBUFS)
			return -errno;
		left -= len;
		if (bench_now() > step->deadline)
			return -ETIMEDOUT;
	}
	return 0;
}

/* The client has finished, and since then nothing came for a while. */
static bool over(struct udp_chan *u, uint64_t last, uint64_t *done)
{
	uint64_t now = bench_now();

	if (!*done && bench_ctl_readable(&u->chan.env->ctl))
		*done = now;
	return *done && now > *done + QUIET_NS && now > last + QUIET_NS;
}

static int udp_rx(struct bench_chan *chan, struct bench_step *step)
{
	struct udp_chan *u = to_udp(chan);
	uint64_t all = step->count * step->size, t0 = bench_now(), last = t0, done = 0;
	uint32_t spins = 0;

	while (step->rx_bytes < all) {
		ssize_t n = get(u, u->buf, 65536);

		if (n >= 0) {
			u->empty = 0;
			step->rx_bytes += (uint64_t)n;
			last = bench_now();
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		bench_yield(&u->empty);
		if (++spins & 255)
			continue;

		if (bench_now() > step->deadline)
			return -ETIMEDOUT;
		if (over(u, last, &done))
			break;
	}
	step->rx_msgs = step->rx_bytes / step->size;
	step->rx_ns = last - t0;
	return 0;
}

#define UDP_COMMON                                                                                 \
	.lossy = true, .open = udp_open, .close = udp_close, .max_size = udp_max_size,             \
	.prepare = udp_prepare

const struct bench_kind bench_kind_udp = {
	.name = "udp",
	.help = "raw UDP socket, sendto and recvfrom",
	.tests = BENCH_LAT | BENCH_BW,
	.variant = UNCONNECTED,
	UDP_COMMON,
	.ping = bench_ping,
	.pong = bench_pong,
	.send = udp_send,
	.try_recv = udp_try_recv,
	.tx = udp_tx,
	.rx = udp_rx,
};

const struct bench_kind bench_kind_udp_conn = {
	.name = "udp-conn",
	.help = "raw UDP socket, connected",
	.base = {"udp"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = CONNECTED,
	UDP_COMMON,
	.ping = bench_ping,
	.pong = bench_pong,
	.send = udp_send,
	.try_recv = udp_try_recv,
	.tx = udp_tx,
	.rx = udp_rx,
};

const struct bench_kind bench_kind_udp_gso = {
	.name = "udp-gso",
	.help = "raw UDP socket with segmentation and receive offload (streams only)",
	.base = {"udp"},
	.tests = BENCH_BW,
	.variant = SEGMENTED,
	UDP_COMMON,
	.tx = gso_tx,
	.rx = udp_rx,
};
