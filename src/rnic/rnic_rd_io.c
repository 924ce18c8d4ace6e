/* Sockets of an RD queue pair.
 *
 * The main socket's port is the queue pair's number; it receives from everybody. Each flow
 * label that is used has a socket of its own to send from, which receives what is answered
 * there. Packets to one place leave in bursts that the kernel cuts into datagrams
 * (UDP_SEGMENT), and arrive glued together (UDP_GRO): one system call for forty packets.
 *
 * The peer that the last bursts all went to gets a connected socket, as in rnic_ud_fast.c:
 * the kernel does not look up the route each time.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_log.h"
#include "rnic_rd.h"
#include "rnic_table.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define DGRAM_MAX 65507
/* Receive calls in a pass, at most; see rnic_ud.c. */
#define READS_PER_PASS 16
/* Bursts in a row to one path before it is worth a socket. */
#define RUN 64
/* Packets in a row that are full, or short, before a socket changes its ways. */
#define FULL_RUN 8
/* A round trip that takes longer than this waits in queues. */
#define QUEUED_NS (500 * UTIL_NS_PER_US)
/* Bursts from this length on are timed. What a kilobyte of them may take at most. */
#define TIMED_MIN   16384
#define COST_MAX_NS (50 * UTIL_NS_PER_US)
/* Error reports taken in a pass. */
#define ERRORS_PER_PASS 16

/* ---- one system call ---- */

static bool is_fast(const struct rnic_rd *rd, const struct rnic_rd_sock *sock,
		    const struct sockaddr_in *to, uint8_t sgid)
{
	const struct rnic_rd_sock *f = rd->fast;

	return f && sock == rd->main && f->to_port == to->sin_port &&
	       f->to_addr.s_addr == to->sin_addr.s_addr && f->sgid == sgid;
}

/* seg 0: one datagram. 0 or -errno. */
static int call(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		const uint8_t *data, size_t len, size_t seg)
{
	const struct rnic_device *dev = sock->rd->qp->ctx->dev;
	struct iovec iov = {(void *)data, len};
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(uint16_t))];
	} ctl;
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c = &ctl.hdr;
	uint16_t size = (uint16_t)seg;

	sock->queued = true;
	if (sock->fast && seg >= len)
		return send(sock->io.fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;

	if (!sock->fast) {
		msg.msg_name = (void *)to;
		msg.msg_namelen = sizeof(*to);
		if (dev->n_addr > 1) {
			struct in_pktinfo pi = {.ipi_spec_dst = dev->addr[sgid].addr};

			c->cmsg_level = IPPROTO_IP;
			c->cmsg_type = IP_PKTINFO;
			c->cmsg_len = CMSG_LEN(sizeof(pi));
			memcpy(CMSG_DATA(c), &pi, sizeof(pi));
			msg.msg_controllen += CMSG_SPACE(sizeof(pi));
			c = (struct cmsghdr *)(ctl.room + msg.msg_controllen);
		}
	}
	if (seg && seg < len) {
		c->cmsg_level = IPPROTO_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(size));
		memcpy(CMSG_DATA(c), &size, sizeof(size));
		msg.msg_controllen += CMSG_SPACE(sizeof(size));
	}
	if (msg.msg_controllen)
		msg.msg_control = ctl.room;
	return sendmsg(sock->io.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* An error of an earlier datagram is reported by the next call, which then has sent
 * nothing. */
static int call_again(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		      const uint8_t *data, size_t len, size_t seg)
{
	int err = call(sock, to, sgid, data, len, seg);

	if (err == -ECONNREFUSED) {
		if (sock->fast)
			rnic_rd_unreachable(sock->rd, to);
		err = call(sock, to, sgid, data, len, seg);
	}
	return err;
}

static void keep(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		 const uint8_t *data, size_t len, size_t seg)
{
	if (sock->pend_len)
		return; /* short packets that did not ask; as good as lost */
	if (!sock->pend)
		sock->pend = malloc(DGRAM_MAX);
	if (!sock->pend)
		return;
	memcpy(sock->pend, data, len);
	sock->pend_len = len;
	sock->pend_seg = seg;
	sock->pend_to = *to;
	sock->pend_sgid = sgid;
	rnic_io_want(&sock->io, EPOLLIN | EPOLLOUT);
}

void rnic_rd_transmit(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		      const uint8_t *data, size_t len, size_t seg)
{
	struct rnic_rd *rd = sock->rd;
	static atomic_bool told;
	int err = 0;

	if (is_fast(rd, sock, to, sgid) && (rd->gso || len <= seg) &&
	    !call_again(rd->fast, to, sgid, data, len, seg))
		return;
	if (rd->gso || len <= seg) {
		err = call_again(sock, to, sgid, data, len, seg);
		if (err == -EIO || err == -EINVAL || err == -EOPNOTSUPP)
			rd->gso = false; /* the interface cannot */
	}
	for (size_t off = 0; !rd->gso && len > seg && off < len; off += seg)
		err = call_again(sock, to, sgid, data + off, len - off < seg ? len - off : seg, 0);
	/* ENOBUFS: the queue of our own interface has dropped it, as one further on would have. It
	 * is lost, and says as much about the way; sent again at once it would be dropped again. */
	if (err == -EAGAIN)
		keep(sock, to, sgid, data, len, seg);
	else if (err && err != -ENOBUFS)
		util_log_once(&told, UTIL_LOG_INFO, "RD datagram dropped: %s", strerror(-err));
}

static void emit(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		 uint8_t *data, size_t len, size_t seg)
{
	if (rnic_fault_any(&sock->rd->fault))
		rnic_rd_faults_send(sock, to, sgid, data, len, seg);
	else
		rnic_rd_transmit(sock, to, sgid, data, len, seg);
}

void rnic_rd_io_send(struct rnic_rd_sock *sock, const struct sockaddr_in *to, uint8_t sgid,
		     uint8_t *data, size_t len)
{
	sock->rd->stats.sent++;
	emit(sock, to, sgid, data, len, len);
}

/* ---- bursts ---- */

static void fast_open(struct rnic_rd *rd, const struct rnic_rd_path *path);
static void sock_close(struct rnic_rd_sock *sock);

/* The favourite gets the connected socket. */
static void count_run(struct rnic_rd *rd, struct rnic_rd_path *path)
{
	struct sockaddr_in to = rnic_rd_place(path);

	if (path->sock != rd->main || is_fast(rd, rd->main, &to, path->sgid)) {
		rd->run_n = 0;
	} else if (rd->run_path != path) {
		rd->run_path = path;
		rd->run_n = 1;
	} else if (++rd->run_n == RUN) {
		rd->run_n = 0;
		fast_open(rd, path);
	}
}

static void learn_cost(struct rnic_rd *rd, size_t len, uint64_t ns)
{
	uint64_t kb_ns = ns * 1024 / len;

	if (kb_ns > COST_MAX_NS) /* it was interrupted */
		kb_ns = COST_MAX_NS;
	rd->kb_ns = (uint32_t)((7 * (uint64_t)rd->kb_ns + kb_ns) / 8);
}

void rnic_rd_io_flush(struct rnic_rd_path *path)
{
	uint64_t start;
	struct rnic_rd *rd = path->rd;
	struct sockaddr_in to = rnic_rd_place(path);
	size_t len = rd->burst.len, seg = rd->burst.seg;

	if (!rd->burst.n)
		return;
	rd->stats.sent += rd->burst.n;
	rd_egress_put(&rd->egress, (uint32_t)len);
	rd->burst.n = 0;
	rd->burst.len = 0;
	rd->burst.closed = false;
	count_run(rd, path);
	if (len < TIMED_MIN) {
		emit(path->sock, &to, path->sgid, rd->e->txbuf, len, seg);
		return;
	}
	start = util_now_ns();
	emit(path->sock, &to, path->sgid, rd->e->txbuf, len, seg);
	learn_cost(rd, len, util_now_ns() - start);
}

/* A queue on the way takes or drops a burst as a whole. One that is a small part of the window
 * costs less when it is dropped, and lets flows share a link more evenly. */
static unsigned int burst_max(const struct rnic_rd_path *path)
{
	uint32_t mss = path->p.cc.mss, n = path->p.cc.window / mss / 8;
	uint32_t piece = rd_egress_piece(&path->rd->egress) / mss;

	/* Where nothing queues up, large bursts are only cheaper. */
	if (!path->p.cc.reduced_any || path->p.rtt.smoothed < QUEUED_NS)
		n = RNIC_RD_BURST;
	n = n < piece ? n : piece;
	return n < 2 ? 2 : n < RNIC_RD_BURST ? n : RNIC_RD_BURST;
}

uint8_t *rnic_rd_io_room(struct rnic_rd_path *path, size_t mtu)
{
	struct rnic_rd *rd = path->rd;

	if (rd->burst.n &&
	    (rd->burst.closed || rd->burst.n >= rd->burst.max || rd->burst.len + mtu > DGRAM_MAX))
		rnic_rd_io_flush(path);
	return rd->e->txbuf + rd->burst.len;
}

void rnic_rd_io_put(struct rnic_rd_path *path, size_t len)
{
	struct rnic_rd *rd = path->rd;
	uint8_t *at = rd->e->txbuf + rd->burst.len;

	/* All datagrams of a burst have one length, but for the last, which may be shorter. */
	if (rd->burst.n && len > rd->burst.seg) {
		rnic_rd_io_flush(path);
		memmove(rd->e->txbuf, at, len);
	}
	if (!rd->burst.n) {
		rd->burst.seg = len;
		rd->burst.max = burst_max(path);
	} else if (len < rd->burst.seg) {
		rd->burst.closed = true;
	}
	rd->burst.len += len;
	rd->burst.n++;
}

uint32_t rnic_rd_io_queued(struct rnic_rd *rd)
{
	struct rnic_rd_sock *sock;
	uint32_t sum = 0;

	list_for_each (sock, &rd->socks, link) {
		int n;

		if (!sock->queued)
			continue;
		if (!ioctl(sock->io.fd, SIOCOUTQ, &n) && n > 0)
			sum += (uint32_t)n;
		else
			sock->queued = false;
	}
	return sum;
}

/* ---- receiving ---- */

struct arrival {
	struct sockaddr_in from;
	struct in_addr to;
	size_t seg; /* length of each datagram but the last; 0: it is one */
};

static ssize_t receive(struct rnic_rd_sock *sock, struct arrival *a)
{
	struct iovec iov = {sock->rd->e->rxbuf, RNIC_RXBUF};
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(struct in_pktinfo)) + CMSG_SPACE(sizeof(int))];
	} ctl;
	struct msghdr msg = {.msg_name = &a->from,
			     .msg_namelen = sizeof(a->from),
			     .msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &ctl,
			     .msg_controllen = sizeof(ctl.room)};
	ssize_t n = recvmsg(sock->io.fd, &msg, MSG_DONTWAIT);

	if (n < 0)
		return -errno;
	a->seg = 0;
	a->to.s_addr = 0;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&msg); h; h = CMSG_NXTHDR(&msg, h)) {
		if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo pi;

			memcpy(&pi, CMSG_DATA(h), sizeof(pi));
			a->to = pi.ipi_addr;
		} else if (h->cmsg_level == IPPROTO_UDP && h->cmsg_type == UDP_GRO) {
			int size;

			memcpy(&size, CMSG_DATA(h), sizeof(size));
			a->seg = (size_t)size;
		}
	}
	return n;
}

/* Glued datagrams need a call that tells where to cut, which costs a fifteenth of the time of a
 * short message. So the connected socket gets them only while there is a stream of full packets:
 * it is asked for after some of them, and given up after as many short ones, when the socket is
 * empty. (A glued datagram that slips through is damaged, and comes again.) */
static void set_gro(struct rnic_rd_sock *sock, bool on)
{
	int value = on;

	sock->gro = on;
	sock->full = 0;
	setsockopt(sock->io.fd, IPPROTO_UDP, UDP_GRO, &value, sizeof(value));
}

static void count_full(struct rnic_rd_sock *sock, ssize_t n)
{
	bool full = n >= (ssize_t)sock->rd->mtu / 2;

	if (full == sock->gro)
		sock->full = 0;
	else if (++sock->full >= FULL_RUN && !sock->gro)
		set_gro(sock, true);
}

static ssize_t receive_fast(struct rnic_rd_sock *sock, struct arrival *a)
{
	ssize_t n;

	if (sock->gro) {
		n = receive(sock, a);
		if (n == -EAGAIN && sock->full >= FULL_RUN)
			set_gro(sock, false);
	} else {
		n = recv(sock->io.fd, sock->rd->e->rxbuf, RNIC_RXBUF, MSG_DONTWAIT);
		if (n < 0)
			n = -errno;
		a->seg = 0;
		a->to.s_addr = 0;
		a->from = (struct sockaddr_in){.sin_family = AF_INET,
					       .sin_addr = sock->to_addr,
					       .sin_port = sock->to_port};
	}
	if (n >= 0)
		count_full(sock, n);
	return n;
}

static uint8_t sgid_of(const struct rnic_rd_sock *sock, struct in_addr to)
{
	int i = sock->fast ? sock->sgid : rnic_addr_index(sock->rd->qp->ctx->dev, to);

	return i > 0 ? (uint8_t)i : 0;
}

static void deliver(struct rnic_rd_sock *sock, const struct arrival *a, size_t n)
{
	size_t seg = a->seg ? a->seg : n;
	const uint8_t *data = sock->rd->e->rxbuf;
	uint8_t sgid = sgid_of(sock, a->to);

	for (size_t off = 0; off < n; off += seg)
		rnic_rd_packet(sock->rd, sock, &a->from, sgid, data + off,
			       n - off < seg ? n - off : seg);
	if (!n)
		rnic_rd_packet(sock->rd, sock, &a->from, sgid, data, 0);
}

/* What ICMP says about datagrams that we sent. */
static void read_errors(struct rnic_rd_sock *sock)
{
	for (int i = 0; i < ERRORS_PER_PASS; i++) {
		struct sockaddr_in where;
		union {
			struct cmsghdr hdr;
			char room[CMSG_SPACE(sizeof(struct sock_extended_err) +
					     sizeof(struct sockaddr_in))];
		} ctl;
		struct msghdr msg = {.msg_name = &where,
				     .msg_namelen = sizeof(where),
				     .msg_control = &ctl,
				     .msg_controllen = sizeof(ctl.room)};
		struct sock_extended_err ee = {0};

		if (recvmsg(sock->io.fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		for (struct cmsghdr *h = CMSG_FIRSTHDR(&msg); h; h = CMSG_NXTHDR(&msg, h))
			if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_RECVERR)
				memcpy(&ee, CMSG_DATA(h), sizeof(ee));
		if (ee.ee_errno == ECONNREFUSED && msg.msg_namelen == sizeof(where))
			rnic_rd_unreachable(sock->rd, &where);
	}
}

static bool sock_writable(struct rnic_rd_sock *sock)
{
	struct rnic_rd_peer *peer;
	size_t len = sock->pend_len;

	sock->pend_len = 0;
	rnic_io_want(&sock->io, EPOLLIN);
	if (len)
		rnic_rd_transmit(sock, &sock->pend_to, sock->pend_sgid, sock->pend, len,
				 sock->pend_seg);
	if (!sock->pend_len)
		list_for_each (peer, &sock->rd->peers, link)
			rnic_rd_pump(peer);
	return true;
}

static bool sock_ready(struct rnic_io *io, uint32_t events)
{
	struct rnic_rd_sock *sock = (struct rnic_rd_sock *)io;
	struct rnic_rd *rd = sock->rd;
	unsigned int got = 0, want = sock->burst ? sock->burst : 1;
	struct arrival a;

	if (events & EPOLLERR && !sock->fast)
		read_errors(sock);
	rd->rx_now = rd->e->now;
	while (got < want && events & (EPOLLIN | EPOLLERR)) {
		ssize_t n = sock->fast ? receive_fast(sock, &a) : receive(sock, &a);

		if (n == -ECONNREFUSED && sock->fast) {
			struct sockaddr_in to = {.sin_addr = sock->to_addr,
						 .sin_port = sock->to_port};

			rnic_rd_unreachable(rd, &to);
		}
		if (n < 0)
			break;
		got++;
		deliver(sock, &a, (size_t)n);
		if (io->fd < 0)
			break; /* closed meanwhile */
	}
	if (got < want)
		sock->burst = got ? 1 : 0;
	else
		sock->burst = want < READS_PER_PASS ? 2 * want : want;
	if (got)
		rnic_rd_settle(rd);
	rd->rx_now = 0;
	if (events & EPOLLOUT && io->fd >= 0)
		return sock_writable(sock);
	return got;
}

/* ---- opening and closing ---- */

static void sock_release(struct rnic_io *io)
{
	free(((struct rnic_rd_sock *)io)->pend);
	free(io);
}

static void sock_options(int fd, bool errors, bool pktinfo)
{
	int on = 1, size = RNIC_UD_SOCKBUF, pmtu = IP_PMTUDISC_DONT;

	/* With privileges the system's limit does not count. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	/* A narrower link on the way fragments; slow, but it works. */
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &pmtu, sizeof(pmtu));
	setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	if (errors)
		setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
	if (pktinfo)
		setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
}

static struct rnic_rd_sock *sock_new(struct rnic_rd *rd, const struct sockaddr_in *own, bool beside)
{
	struct rnic_rd_sock *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return NULL;
	s->rd = rd;
	s->io = (struct rnic_io){.ready = sock_ready, .release = sock_release, .data = true};
	list_init(&s->link);
	s->io.fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->io.fd < 0) {
		free(s);
		return NULL;
	}
	sock_options(s->io.fd, !beside, rd->qp->ctx->dev->n_addr > 1);
	if (beside)
		err = rnic_bind_beside(rd->main->io.fd, s->io.fd, own);
	else
		err = bind(s->io.fd, (const struct sockaddr *)own, sizeof(*own)) ? -errno : 0;
	if (!err)
		err = rnic_io_add(rd->e, &s->io, EPOLLIN);
	if (err) {
		close(s->io.fd);
		free(s);
		errno = -err;
		return NULL;
	}
	list_add_tail(&s->link, &rd->socks);
	return s;
}

static struct sockaddr_in any_port(const struct rnic_rd *rd)
{
	const struct rnic_device *dev = rd->qp->ctx->dev;

	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = dev->n_addr == 1 ? dev->addr[0].addr.s_addr
									: htonl(INADDR_ANY)};
}

static void sock_close(struct rnic_rd_sock *sock)
{
	rnic_rd_faults_forget(sock->rd, sock);
	list_del(&sock->link);
	rnic_io_close(&sock->io);
}

static void fast_open(struct rnic_rd *rd, const struct rnic_rd_path *path)
{
	struct sockaddr_in own = {.sin_family = AF_INET,
				  .sin_addr = rd->qp->ctx->dev->addr[path->sgid].addr,
				  .sin_port = htons((uint16_t)(rd->qp->ibv.qp_num >> 8))};
	struct sockaddr_in to = rnic_rd_place(path);
	struct rnic_rd_sock *s;

	/* What has arrived on the old one is lost with it, and comes again. */
	if (rd->fast)
		sock_close(rd->fast);
	rd->fast = NULL;
	s = sock_new(rd, &own, true);
	if (!s)
		return;
	if (connect(s->io.fd, (struct sockaddr *)&to, sizeof(to))) {
		sock_close(s);
		return;
	}
	/* What came between bind and connect may be anybody's; it comes again. */
	while (recv(s->io.fd, rd->e->rxbuf, RNIC_RXBUF, MSG_DONTWAIT) >= 0)
		;
	s->fast = true;
	set_gro(s, false);
	s->to_addr = to.sin_addr;
	s->to_port = to.sin_port;
	s->sgid = path->sgid;
	rd->fast = s;
}

struct rnic_rd_sock *rnic_rd_sock(struct rnic_rd *rd, uint32_t label)
{
	struct sockaddr_in own = any_port(rd);
	struct rnic_rd_sock *s;

	if (!label)
		return rd->main;
	list_for_each (s, &rd->socks, link)
		if (s->label == label && !s->fast)
			return s;
	if (rd->n_label >= WEFTDV_MAX_PATHS)
		return NULL;
	s = sock_new(rd, &own, false);
	if (s) {
		s->label = label;
		rd->n_label++;
	}
	return s;
}

int rnic_rd_io_open(struct rnic_rd *rd)
{
	struct sockaddr_in own = any_port(rd);
	socklen_t len = sizeof(own), size_len = sizeof(int);
	int size = 0, err;

	list_init(&rd->socks);
	list_init(&rd->turns);
	rnic_timer_init(&rd->turn_timer, rnic_rd_turn_fire);
	rnic_rd_faults_init(rd);
	rd->main = sock_new(rd, &own, false);
	if (!rd->main)
		return -errno;
	if (getsockname(rd->main->io.fd, (struct sockaddr *)&own, &len) ||
	    getsockopt(rd->main->io.fd, SOL_SOCKET, SO_RCVBUF, &size, &size_len)) {
		err = -errno;
		goto fail;
	}
	/* The kernel counts its own overhead, up to three quarters with short packets. */
	rd->room = (uint32_t)size / 4;
	rd->gso = true;
	rd->qp->ibv.qp_num = (uint32_t)ntohs(own.sin_port) << 8 | RNIC_RD_INDEX;
	err = rnic_table_add(rd->e->qps, rd->qp->ibv.qp_num, rd->qp);
	if (!err)
		return 0;
fail:
	sock_close(rd->main);
	return err;
}

void rnic_rd_io_close(struct rnic_rd *rd)
{
	struct rnic_rd_sock *s;

	rnic_timer_cancel(rd->e, &rd->fault_timer);
	rnic_timer_cancel(rd->e, &rd->turn_timer);
	rnic_table_del(rd->e->qps, rd->qp->ibv.qp_num);
	while ((s = list_first(&rd->socks, struct rnic_rd_sock, link)))
		sock_close(s);
	rd->fast = rd->main = NULL;
}

void rnic_rd_io_discard(struct rnic_rd *rd)
{
	struct rnic_rd_sock *s;

	rnic_rd_faults_forget(rd, NULL);
	while ((s = list_first(&rd->socks, struct rnic_rd_sock, link))) {
		list_del(&s->link);
		sock_release(&s->io);
	}
}
