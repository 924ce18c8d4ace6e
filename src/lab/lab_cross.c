/* Background traffic: one paced UDP flow between two hosts.
 *
 * Two children, a receiver on one host and a sender on the other, and the caller, who
 * watches them. They share one page: the caller says there when to stop, the children what
 * they have counted. A pipe per child tells the caller that the child is ready, and by its
 * end that it is gone.
 *
 * Nobody waits without a limit: the sender ends when the time is over, the receiver when
 * everything has come, or nothing comes any more, or the time is over by far.
 */
#include "lab.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util_clock.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define HEADERS      (14 + 20 + 8)  /* Ethernet, IPv4, UDP: what is on the wire beside the data */
#define BATCH_NS     UTIL_NS_PER_MS /* traffic that may leave at once */
#define DEBT_NS      (20 * UTIL_NS_PER_MS) /* what a sender that was late makes up for */
#define LOOK_NS      (50 * UTIL_NS_PER_MS) /* how often everybody looks whether to stop */
#define READY_NS     (10 * UTIL_NS_PER_S)
#define SEND_MAX     65507 /* bytes of one call, with segmentation */
#define SEGMENTS_MAX 64
#define RECEIVE_MAX  64 /* datagrams of one call */
#define SOCKET_BYTES (4 << 20)

/* What a child has to say when it fails. */
struct report {
	int code; /* -errno */
	struct lab_error why;
};

struct shared {
	atomic_bool stop;
	atomic_bool done;             /* nothing more will be sent */
	atomic_ullong sent, received; /* datagrams */
	atomic_ullong ns;             /* how long the sender was at it */
	atomic_ullong rx_ns;          /* from the first to the last that came */
	in_port_t port;               /* of the receiver, network byte order */
	struct report rx, tx;
};

struct flow {
	const struct lab *lab;
	volatile struct lab_cross *x;
	struct sockaddr_in to;
	uint32_t wire; /* bytes of a datagram with its headers */
	struct shared *sh;
};

struct child {
	pid_t pid;
	int fd; /* reads a byte when it is ready, the end when it is gone */
	struct report *report;
};

/* A datagram fills a packet, but on slow flows takes no more than 10 ms: a flow of one
 * packet per second would not be "evenly paced". */
static uint32_t datagram_size(const struct lab *lab, uint64_t rate)
{
	uint64_t wire = rate / 8 / 100, max = lab->spec.mtu + 14;

	if (wire < 128)
		wire = 128;
	return (uint32_t)(wire < max ? wire : max);
}

static void sleep_until(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / UTIL_NS_PER_S),
			      .tv_nsec = (long)(ns % UTIL_NS_PER_S)};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

/* ---- the receiver ---- */

static int receiver_open(struct flow *f)
{
	const struct timeval never_long = {.tv_usec = LOOK_NS / UTIL_NS_PER_US};
	socklen_t len = sizeof(f->to);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = SOCKET_BYTES;

	if (fd < 0)
		return -errno;
	/* The first is for root only; the second is cut to what the machine allows. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &never_long, sizeof(never_long));
	if (bind(fd, (struct sockaddr *)&f->to, sizeof(f->to)) ||
	    getsockname(fd, (struct sockaddr *)&f->to, &len)) {
		int err = errno;

		close(fd);
		return -err;
	}
	f->sh->port = f->to.sin_port;
	return fd;
}

/* Takes what is there, waiting a little for the first; how many. With MSG_TRUNC the
 * contents are thrown away inside the kernel. */
static unsigned int receive_some(int fd)
{
	static struct mmsghdr msgs[RECEIVE_MAX];
	unsigned int total = 0;
	int n;

	do {
		n = recvmmsg(fd, msgs, RECEIVE_MAX,
			     MSG_TRUNC | (total ? MSG_DONTWAIT : MSG_WAITFORONE), NULL);
		total += n > 0 ? (unsigned int)n : 0;
	} while (n == RECEIVE_MAX);
	return total;
}

/* What reached the host and found the socket full did cross the network. */
static uint64_t overflowed(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len))
		return 0;
	return info[SK_MEMINFO_DROPS];
}

/* How long nothing may come before the rest counts as lost: queues on the way hold data
 * for a while, longer on slow cables. */
static uint64_t patience(const struct flow *f)
{
	uint64_t rate = f->lab->spec.rate, ns = 300 * UTIL_NS_PER_MS;

	if (rate)
		ns += 8 * UTIL_NS_PER_S * f->wire / rate * 8;
	return ns < 5 * UTIL_NS_PER_S ? ns : 5 * UTIL_NS_PER_S;
}

static void receive(struct flow *f, int fd)
{
	uint64_t start = util_now_ns(), last = start, first = 0, taken = 0, now;
	uint64_t quiet = patience(f), limit = f->x->duration + READY_NS + 2 * quiet;

	do {
		unsigned int n = receive_some(fd);

		taken += n;
		now = util_now_ns();
		if (n && !first)
			first = now;
		if (n)
			f->sh->rx_ns = now - first;
		if (n || !f->sh->done)
			last = now;
		f->sh->received = taken + overflowed(fd);
		if (f->sh->done && f->sh->received >= f->sh->sent)
			return;
		/* One wake-up per millisecond, not per packet: the machine has other work. */
		if (n)
			sleep_until(now + BATCH_NS);
	} while (now - last < quiet && now - start < limit);
}

static int receiver(struct flow *f, int ready, struct lab_error *e)
{
	int fd = receiver_open(f);

	if (fd < 0)
		return lab_fail(e, -fd, "the receiving host can not open a socket: %s",
				strerror(-fd));
	if (write(ready, "", 1) == 1)
		receive(f, fd);
	close(fd);
	return 0;
}

/* ---- the sender ---- */

struct sender {
	int fd;
	uint32_t size;    /* of a datagram's data */
	uint32_t at_once; /* datagrams of one call: more than one with segmentation only */
	double ns;        /* that a datagram takes at the flow's rate */
	uint64_t batch;   /* datagrams of BATCH_NS, at least one */
	uint64_t base;    /* when the flow began, and later if time was lost */
	uint64_t handled; /* datagrams since then, sent or not */
	int err;          /* the last that hindered it */
};

/* The kernel cuts a large send into datagrams late, which is what makes small ones cheap. */
static void set_segmentation(struct sender *s, bool on)
{
	int size = on ? (int)s->size : 0;

	if (setsockopt(s->fd, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)))
		on = false;
	s->at_once = on ? SEND_MAX / s->size : 1;
	if (s->at_once > SEGMENTS_MAX)
		s->at_once = SEGMENTS_MAX;
}

static int sender_open(struct sender *s, struct flow *f)
{
	const struct timeval never_long = {.tv_usec = LOOK_NS / UTIL_NS_PER_US};

	f->to.sin_port = f->sh->port;
	s->size = f->wire - HEADERS;
	s->ns = f->wire * 8e9 / (double)f->x->rate;
	s->batch = s->ns < BATCH_NS ? (uint64_t)(BATCH_NS / s->ns) : 1;
	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		return -errno;
	setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &never_long, sizeof(never_long));
	set_segmentation(s, true);
	/* Without a route yet it is tried again with each datagram. */
	if (connect(s->fd, (const struct sockaddr *)&f->to, sizeof(f->to))) {
		int err = errno;

		close(s->fd);
		return -err;
	}
	return 0;
}

/* Up to n datagrams in one call. Returns how many are done with, or -errno. */
static int64_t send_some(struct sender *s, uint64_t n)
{
	static const char data[SEND_MAX];

	if (n > s->at_once)
		n = s->at_once;
	if (send(s->fd, data, n * s->size, 0) >= 0)
		return (int64_t)n;
	if (n > 1 && (errno == EIO || errno == EINVAL || errno == EOPNOTSUPP)) {
		set_segmentation(s, false); /* not every device can: then one by one */
		return 0;
	}
	return -errno;
}

/* A broken way may be whole in a moment: what was to go meanwhile is not sent. */
static bool passing(int err)
{
	return err == ENETUNREACH || err == EHOSTUNREACH || err == ENETDOWN || err == ENOBUFS ||
	       err == ECONNREFUSED;
}

/* Sends one batch of the n datagrams that are due. */
static int send_batch(struct sender *s, struct flow *f, uint64_t n)
{
	int64_t ret;

	if (n > s->batch)
		n = s->batch;
	ret = send_some(s, n);
	if (ret >= 0) {
		f->sh->sent += (uint64_t)ret;
		s->handled += (uint64_t)ret;
		return 0;
	}
	if (ret == -EAGAIN || ret == -EINTR) /* the queue of the own cable is full: later */
		return 0;
	s->err = (int)ret;
	s->handled += n;
	return passing((int)-ret) ? 0 : (int)ret;
}

/* When the next batch is due. */
static uint64_t next_batch(const struct sender *s)
{
	return s->base + (uint64_t)((double)(s->handled + s->batch) * s->ns) + 1;
}

/* A sender that did not get to run makes up for a little; the rest is forgotten, as a burst
 * would not be an even flow. */
static void forgive(struct sender *s, uint64_t now)
{
	uint64_t next = next_batch(s);

	if (now > next + DEBT_NS)
		s->base += now - next - DEBT_NS;
}

static uint64_t earliest(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t m = a < b ? a : b;

	return m < c ? m : c;
}

static int send_all(struct sender *s, struct flow *f)
{
	uint64_t start = util_now_ns(), end = start + f->x->duration, now = start;
	int ret = 0;

	s->base = start;
	while (!ret && !f->sh->stop && now < end + DEBT_NS) {
		uint64_t until = now < end ? now : end, due = 0;

		if (until > s->base)
			due = (uint64_t)((double)(until - s->base) / s->ns);
		if (due > s->handled)
			ret = send_batch(s, f, due - s->handled);
		else if (now >= end)
			break;
		else
			sleep_until(earliest(next_batch(s), now + LOOK_NS, end));
		now = util_now_ns();
		forgive(s, now < end ? now : end);
	}
	f->sh->ns = now - start;
	return ret;
}

static int sender(struct flow *f, int ready, struct lab_error *e)
{
	struct sender s = {0};
	int ret = sender_open(&s, f);

	(void)ready;
	if (!ret) {
		ret = send_all(&s, f);
		close(s.fd);
	}
	if (!ret && !f->sh->sent)
		ret = s.err;
	return ret ? lab_fail(e, -ret, "the sending host can not send: %s", strerror(-ret)) : 0;
}

/* ---- the caller ---- */

static int spawn(struct child *c, struct flow *f, struct fabric_node n,
		 int (*run)(struct flow *f, int ready, struct lab_error *e), struct lab_error *e)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return lab_fail(e, errno, "can not make a pipe: %s", strerror(errno));
	c->pid = lab_fork(f->lab, n, e);
	if (c->pid == 0) {
		close(fds[0]);
		/* The terminal sends it to everybody; the caller tells when to stop. */
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_DFL);
		c->report->code = run(f, fds[1], &c->report->why);
		_exit(c->report->code != 0);
	}
	close(fds[1]);
	c->fd = fds[0];
	if (c->pid < 0) {
		close(c->fd);
		return c->pid;
	}
	return 0;
}

/* Waits a little for a child: 1 when it said that it is ready, 0 when it is gone, -EAGAIN. */
static int listen_to(const struct child *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	char byte;

	if (poll(&p, 1, LOOK_NS / UTIL_NS_PER_MS) <= 0)
		return -EAGAIN;
	return read(c->fd, &byte, 1) == 1;
}

static bool gone(const struct child *c)
{
	struct pollfd p = {.fd = c->fd};

	return poll(&p, 1, 0) == 1;
}

static int reap(struct child *c, const char *who, struct lab_error *e)
{
	int status = 0;

	kill(c->pid, SIGKILL); /* if it is gone already, it is a zombie that does not mind */
	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(c->fd);
	if (c->report->code)
		return lab_fail(e, -c->report->code, "%s", c->report->why.text);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return lab_fail(e, EIO, "the %s was killed; is the lab still there?", who);
	return 0;
}

static int wait_ready(const struct child *rx, struct lab_error *e)
{
	uint64_t limit = util_now_ns() + READY_NS;
	int ret;

	do
		ret = listen_to(rx);
	while (ret == -EAGAIN && util_now_ns() < limit);
	if (ret == 1)
		return 0;
	return lab_fail(e, ETIMEDOUT, "the receiver did not start");
}

static void wait_sender(struct flow *f, const struct child *tx, const struct child *rx)
{
	while (listen_to(tx) != 0) {
		if (f->x->stop || gone(rx))
			f->sh->stop = true;
	}
	f->sh->done = true;
}

static void wait_receiver(const struct flow *f, const struct child *rx)
{
	uint64_t limit = util_now_ns() + 3 * patience(f) + READY_NS;

	while (listen_to(rx) != 0 && util_now_ns() < limit)
		;
}

static int run(struct flow *f, struct lab_error *e)
{
	struct child rx = {.report = &f->sh->rx}, tx = {.report = &f->sh->tx};
	struct lab_error later;
	int ret, ret2 = 0;

	ret = spawn(&rx, f, f->x->to, receiver, e);
	if (ret)
		return ret;
	ret = wait_ready(&rx, e);
	if (!ret)
		ret = spawn(&tx, f, f->x->from, sender, e);
	if (!ret) {
		wait_sender(f, &tx, &rx);
		ret = reap(&tx, "sender", e);
		if (!ret)
			wait_receiver(f, &rx);
	}
	/* Of two failures the first is the cause; but a receiver that never got ready
	 * knows best why. */
	ret2 = reap(&rx, "receiver", &later);
	if (ret2 && (!ret || rx.report->code)) {
		*e = later;
		ret = ret2;
	}
	return ret;
}

static int check(const volatile struct lab_cross *x, struct lab_error *e)
{
	if (x->from.level || x->to.level || x->from.index == x->to.index)
		return lab_fail(e, EINVAL, "traffic goes from one host to another");
	if (!x->rate || !x->duration)
		return lab_fail(e, EINVAL, "traffic needs a rate and a time");
	return 0;
}

int lab_cross(const struct lab *lab, volatile struct lab_cross *x, struct lab_cross_result *result,
	      struct lab_error *e)
{
	struct fabric_node to = {.level = x->to.level, .index = x->to.index};
	struct flow f = {.lab = lab, .x = x, .wire = datagram_size(lab, x->rate)};
	int ret = check(x, e);

	if (ret)
		return ret;
	f.to.sin_family = AF_INET;
	f.to.sin_addr = lab_address(&lab->spec, to, x->address);
	f.sh = mmap(NULL, sizeof(*f.sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f.sh == MAP_FAILED)
		return lab_fail(e, errno, "can not map memory: %s", strerror(errno));
	ret = run(&f, e);
	result->packets_sent = f.sh->sent;
	result->packets_received = f.sh->received;
	result->sent = result->packets_sent * f.wire;
	result->received = result->packets_received * f.wire;
	result->ns = f.sh->ns;
	/* What waited in queues goes on arriving. */
	result->rx_ns = f.sh->rx_ns > f.sh->ns ? f.sh->rx_ns : f.sh->ns;
	munmap(f.sh, sizeof(*f.sh));
	return ret;
}
