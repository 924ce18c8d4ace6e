/* Latency of messages, with and without a copy of each in one process. What differs by some percent
 * from process to process, and from endpoint to endpoint, where memory lies and which core is
 * faster, is the same for both then.
 *
 * Two processes, which are made by a fork, or find each other by a socket in the file system: that
 * leads from one network namespace to another. Each has an endpoint, whose settings take turns in
 * blocks; the order is another one each round. Both do the same, and need not agree on anything but
 * their addresses.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_copy.h"
#include "bench_msg.h"
#include "bench_sample.h"
#include "bench_time.h"
#include "msg.h"

enum { OFF, ON, SETTINGS };

struct op {
	struct msg_op msg;
	bool done;
};

struct side {
	int me, sock;
	pid_t child;
	struct msg_dev *dev;
	struct msg_ep *ep;
	uint32_t peer;
	enum msg_reusing how[SETTINGS];
	uint8_t *out, *in;
	unsigned int wrong;
};

static void die(const char *what, int err)
{
	fprintf(stderr, "weft-msg-perf: %s: %s\n", what, strerror(err < 0 ? -err : errno));
	exit(1);
}

/* ---- two processes ---- */

static int unix_socket(const struct bench_msg_conf *c)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), one;

	if (s < 0 || strlen(c->meet) >= sizeof(at.sun_path))
		die(c->meet, s < 0 ? 0 : -ENAMETOOLONG);
	strcpy(at.sun_path, c->meet);
	if (c->first) {
		while (connect(s, (struct sockaddr *)&at, sizeof(at)))
			usleep(10000); /* until it listens, or the alarm */
		return s;
	}
	unlink(c->meet);
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) || listen(s, 1))
		die(c->meet, 0);
	one = accept4(s, NULL, NULL, SOCK_CLOEXEC);
	if (one < 0)
		die(c->meet, 0);
	close(s);
	unlink(c->meet);
	return one;
}

static void come_together(struct side *s, const struct bench_msg_conf *c)
{
	cpu_set_t cpu;
	int sv[2];

	if (c->meet) {
		s->sock = unix_socket(c);
		s->me = !c->first;
	} else {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
			die("socketpair", 0);
		s->child = fork();
		if (s->child < 0)
			die("fork", 0);
		s->me = !s->child;
		s->sock = sv[s->me];
		close(sv[!s->me]);
		if (s->me) {
			alarm((unsigned int)c->seconds); /* which a child does not inherit */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
		}
	}
	/* Each on a core of its own, and a device's threads with it. */
	CPU_ZERO(&cpu);
	CPU_SET((size_t)s->me % (size_t)sysconf(_SC_NPROCESSORS_ONLN), &cpu);
	sched_setaffinity(0, sizeof(cpu), &cpu);
}

static void exchange(struct side *s, const void *own, void *other, size_t len)
{
	if (send(s->sock, own, len, MSG_NOSIGNAL) != (ssize_t)len ||
	    recv(s->sock, other, len, MSG_WAITALL) != (ssize_t)len)
		die("the other side is gone", -ECONNRESET);
}

static void done(void *arg, struct msg_op *op)
{
	(void)arg;
	container_of(op, struct op, msg)->done = true;
}

static void open_all(struct side *s, const struct bench_msg_conf *c)
{
	struct msg_dev_conf dev = {.piecewise = c->pieces,
				   .cache = c->cached ? MSG_CACHE_ON : MSG_CACHE_AUTO};
	/* As libfabric's provider has it. */
	struct msg_ep_conf conf = {.eager_max = BENCH_MSG_LONGEST,
				   .rx_buffers = 64,
				   .depth = 256,
				   .linger = BENCH_S,
				   .reuse = MSG_REUSE_NO,
				   .done = done};
	struct msg_addr own, other;
	int err = msg_dev_open_conf(&dev, &s->dev);

	if (err && s->me == 0)
		fputs("weft-msg-perf: no verbs device here; `weft verbs weft-msg-perf ...` runs on "
		      "the software RNIC\n",
		      stderr);
	if (!err)
		err = msg_ep_open(s->dev, &conf, &s->ep);
	if (err)
		die("a device", err);
	own = msg_ep_addr(s->ep);
	exchange(s, &own, &other, sizeof(own));
	err = msg_ep_peer(s->ep, &other, &s->peer);
	s->how[OFF] = MSG_REUSE_NO;
	s->how[ON] = c->same ? MSG_REUSE_NO : MSG_REUSE_AUTO;
	s->out = aligned_alloc(4096, BENCH_MSG_LONGEST);
	s->in = aligned_alloc(4096, BENCH_MSG_LONGEST);
	if (err || !s->out || !s->in)
		die("buffers", err ? err : -ENOMEM);
}

/* ---- messages ---- */

static void await(struct side *s, struct op *op)
{
	while (!op->done)
		msg_progress(s->ep);
	if (op->msg.err)
		die("a message", op->msg.err);
}

static void send_out(struct side *s, size_t size)
{
	struct op op = {.msg = {.kind = MSG_OP_SEND,
				.flags = MSG_OP_TAGGED,
				.peer = s->peer,
				.iov = {{s->out, size}},
				.n_iov = 1}};
	int err;

	while ((err = msg_send(s->ep, &op.msg)) == -EAGAIN)
		msg_progress(s->ep);
	if (err)
		die("msg_send", err);
	await(s, &op);
}

static void ping_pong(struct side *s, size_t size)
{
	struct op op = {.msg = {.kind = MSG_OP_RECV,
				.flags = MSG_OP_TAGGED,
				.peer = MSG_ANY_SRC,
				.iov = {{s->in, size}},
				.n_iov = 1}};
	int err = msg_post_recv(s->ep, &op.msg);

	if (err)
		die("msg_post_recv", err);
	if (s->me == 0)
		send_out(s, size);
	await(s, &op);
	if (s->me != 0)
		send_out(s, size);
}

/* All bytes, on both sides, outside of any time. */
static void prove(struct side *s, int which, size_t size, unsigned int n)
{
	unsigned int mine = 2 * n + (unsigned int)s->me;

	msg_ep_reuse(s->ep, s->how[which]);
	for (size_t i = 0; i < size; i++)
		s->out[i] = (uint8_t)((i + 89 * mine) % 251);
	ping_pong(s, size);
	for (size_t i = 0; i < size; i++)
		if (s->in[i] != (uint8_t)((i + 89 * (mine ^ 1)) % 251))
			s->wrong++;
}

/* ---- latency ---- */

/* Half a round trip, in nanoseconds: the median of some at a time, since a clock that goes by tens
 * of nanoseconds can not tell a percent of one. */
static double block(struct side *s, int which, size_t size, double *t, size_t n)
{
	size_t some = n < 10 ? n : 10, k = 0;
	struct bench_summary sum;

	msg_ep_reuse(s->ep, s->how[which]);
	for (size_t i = 0; i + some <= n; i += some) {
		uint64_t from = bench_now();

		for (size_t j = 0; j < some; j++)
			ping_pong(s, size);
		t[k++] = (double)(bench_now() - from) / (double)some / 2;
	}
	bench_summarize(t, k, &sum);
	return sum.median;
}

static void report(struct side *s, const struct bench_msg_conf *c, size_t size,
		   double *us[SETTINGS], double *ratio)
{
	double copy = bench_copy_time(s->in, s->out, size);
	struct bench_summary off, on, r;
	size_t n = bench_ratios(us[ON], us[OFF], c->rounds, 1, ratio);

	bench_summarize(ratio, n, &r);
	bench_summarize(us[OFF], c->rounds, &off);
	bench_summarize(us[ON], c->rounds, &on);
	if (s->me == 0)
		printf("%-8zu %9.4f %9.4f %9.4f %9.4f %9.4f %9.5f\n", size, off.median / 1e3,
		       on.median / 1e3, r.median, r.q1, r.q3, copy * 1e6);
	fflush(stdout);
}

static void measure(struct side *s, const struct bench_msg_conf *c, size_t size,
		    double *us[SETTINGS], double *t)
{
	for (unsigned int i = 0; i < 4; i++)
		prove(s, (int)(i % SETTINGS), size, i);
	for (int i = 0; i < SETTINGS; i++)
		block(s, i, size, t, c->block); /* so that a buffer that is used often is known */
	for (size_t r = 0; r < c->rounds; r++) {
		int first = r % 4 == 1 || r % 4 == 2; /* no slow drift favours either */

		us[first][r] = block(s, first, size, t, c->block);
		us[!first][r] = block(s, !first, size, t, c->block);
	}
	for (unsigned int i = 0; i < 4; i++)
		prove(s, (int)(i % SETTINGS), size, 4 + i);
}

int bench_msg_latency(const struct bench_msg_conf *c)
{
	struct side s = {.sock = -1};
	double *us[SETTINGS], *ratio = calloc(c->rounds, sizeof(double));
	double *t = calloc(c->block, sizeof(double));
	int status = 0;

	us[OFF] = calloc(c->rounds, sizeof(double));
	us[ON] = calloc(c->rounds, sizeof(double));
	if (!ratio || !t || !us[OFF] || !us[ON])
		die("memory", -ENOMEM);
	alarm((unsigned int)c->seconds);
	come_together(&s, c);
	open_all(&s, c);
	if (s.me == 0)
		printf("# half a round trip, usec: medians of %llu rounds of %llu messages each; "
		       "ratio: median and\n# quartiles of the rounds'\n"
		       "#%-7s %9s %9s %9s %9s %9s %9s\n",
		       (unsigned long long)c->rounds, (unsigned long long)c->block, "bytes", "off",
		       "on", "ratio", "q1", "q3", "copy");
	for (size_t i = 0; i < c->n_sizes; i++) {
		measure(&s, c, c->sizes[i], us, t);
		report(&s, c, c->sizes[i], us, ratio);
	}
	msg_ep_close(s.ep);
	msg_dev_close(s.dev);
	if (s.wrong)
		fprintf(stderr, "weft-msg-perf: %u bytes were not what was sent\n", s.wrong);
	if (s.child > 0)
		waitpid(s.child, &status, 0);
	free(s.out);
	free(s.in);
	free(us[OFF]);
	free(us[ON]);
	free(ratio);
	free(t);
	return s.wrong || status ? 1 : 0;
}
