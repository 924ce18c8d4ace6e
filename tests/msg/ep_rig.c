#include "ep_rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util_clock.h"
#include "msg_ep.h"

#define PATIENCE (20 * UTIL_NS_PER_S)

void check(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	abort();
}

static void done(void *arg, struct msg_op *op)
{
	struct side *s = arg;

	if (op->flags & MSG_OP_PART) {
		s->parts++;
		s->part_len = op->len;
		s->part_tag = op->tag;
		s->part_at = op->iov[0].iov_base;
		s->part_err = op->err;
		return;
	}
	if (op->flags & MSG_OP_MULTI) {
		s->wholes++;
		s->whole_err = op->err;
		return;
	}
	if (op->kind == MSG_OP_ATOMIC) {
		s->atomics++;
		return;
	}
	CHECK(!container_of(op, struct op, msg)->done);
	container_of(op, struct op, msg)->done = true;
}

static void written(void *arg, uint32_t src, uint64_t data, uint64_t len)
{
	struct side *s = arg;

	CHECK(src == s->peer);
	s->written++;
	s->written_data = data;
	s->written_len = len;
}

/* Adds (code 1), or takes the place of what is equal to compare (code 2), of 64 bits each. */
static int atomic(const struct msg_atomic_job *job)
{
	uint64_t *at = job->target;
	const uint64_t *operand = job->operand, *compare = job->compare;

	if (job->type != 7 || job->len != job->count * sizeof(*at) || !operand)
		return -EINVAL;
	for (uint32_t i = 0; i < job->count; i++) {
		if (job->result)
			((uint64_t *)job->result)[i] = at[i];
		if (job->code == 1)
			at[i] += operand[i];
		else if (compare && at[i] == compare[i])
			at[i] = operand[i];
	}
	return 0;
}

static bool wants(const char *name, const char *value)
{
	const char *is = getenv(name);

	return is && !strcmp(is, value);
}

/* Memory that a test has freed may be read once more, for a retransmission; the device catches the
 * fault. cmocka sets a handler of its own at the beginning of each test, over the device's. */
static void keep_handler(void)
{
	static struct sigaction device;
	static bool known;

	if (!known)
		sigaction(SIGSEGV, NULL, &device);
	else
		sigaction(SIGSEGV, &device, NULL);
	known = true;
}

struct msg_dev *open_dev(void)
{
	struct msg_dev_conf conf = {.piecewise = wants("TEST_MSG_LOCAL", "pieces")};
	struct msg_dev *dev;

	if (wants("TEST_MSG_TRANSPORT", "rd"))
		conf.transport = MSG_RD;
	if (wants("TEST_MSG_TRANSPORT", "rc"))
		conf.transport = MSG_RC;
	if (wants("TEST_MSG_CACHE", "on"))
		conf.cache = MSG_CACHE_ON;
	if (wants("TEST_MSG_CACHE", "off"))
		conf.cache = MSG_CACHE_OFF;
	CHECK(!msg_dev_open_conf(&conf, &dev));
	keep_handler();
	CHECK(msg_dev_transport(dev) == (conf.transport == MSG_RC ? MSG_RC : MSG_RD));
	return dev;
}

void side_open(struct side *s, const struct msg_ep_conf *mode)
{
	side_open_at(s, mode, NULL);
}

void side_open_at(struct side *s, const struct msg_ep_conf *mode, const char *const addrs[2])
{
	struct msg_ep_conf conf = {.eager_max = EAGER_MAX,
				   .rx_buffers = 64,
				   .depth = 64,
				   .speculate = mode->speculate,
				   .usage = mode->usage,
				   .reuse = mode->reuse,
				   .reuse_part = mode->reuse_part,
				   .write = mode->write,
				   .done = done,
				   .written = written,
				   .atomic = atomic,
				   .arg = s};
	const char *policy = getenv("TEST_MSG_STRIPE");
	struct msg_addr own, other;
	char why[256];
	int sv[2];

	memset(s, 0, sizeof(*s));
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	s->child = fork();
	CHECK(s->child >= 0);
	s->me = s->child ? 0 : 1;
	s->sock = sv[s->me];
	close(sv[!s->me]);
	alarm(60);
	if (addrs)
		CHECK(!setenv("WEFT_ADDR", addrs[s->me], 1));
	if (s->me && mode->eager_max)
		conf.eager_max = mode->eager_max;
	if (policy) {
		CHECK(!stripe_parse(&conf.stripe, policy, why, sizeof(why)));
		conf.stripe_min = 2 * EAGER_MAX;
		conf.live = getenv("WEFT_LIVE_DIR");
	}
	s->dev = open_dev();
	CHECK(!msg_ep_open(s->dev, &conf, &s->ep));
	own = msg_ep_addr(s->ep);
	swap(s, &own, &other, sizeof(own));
	CHECK(!msg_ep_peer(s->ep, &other, &s->peer));
	/* What is on one host is not divided otherwise. */
	s->ep->peers[s->peer].far |= policy != NULL;
	s->tx = malloc(LONGEST);
	s->rx = malloc(LONGEST);
	CHECK(s->tx && s->rx);
}

void swap(struct side *s, const void *own, void *other, size_t len)
{
	CHECK(write(s->sock, own, len) == (ssize_t)len);
	CHECK(read(s->sock, other, len) == (ssize_t)len);
}

void swap_served(struct side *s, const void *own, void *other, size_t len)
{
	meet(s);
	swap(s, own, other, len);
}

void meet(struct side *s)
{
	uint64_t end = util_now_ns() + PATIENCE;
	char c = 'x';

	CHECK(write(s->sock, &c, 1) == 1);
	while (recv(s->sock, &c, 1, MSG_DONTWAIT) != 1) {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
	}
}

void warm_up(struct side *s)
{
	uint64_t end = util_now_ns() + PATIENCE, before = s->atomics, one = 1;
	struct msg_atomic a = {.op = {.kind = MSG_OP_ATOMIC,
				      .peer = s->peer,
				      .iov = {{&one, sizeof(one)}},
				      .n_iov = 1,
				      .remote = {{.len = sizeof(one)}},
				      .n_remote = 1}};

	while (msg_atomic(s->ep, &a) == -EAGAIN)
		CHECK(util_now_ns() < end);
	while (s->atomics == before) {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
	}
	CHECK(a.op.err == -EACCES); /* there is no such memory */
	meet(s);
}

void side_free(struct side *s)
{
	msg_ep_close(s->ep);
	msg_dev_close(s->dev);
	free(s->tx);
	free(s->rx);
	close(s->sock);
}

void side_close(struct side *s)
{
	int status = 0;

	meet(s);
	side_free(s);
	if (s->me)
		_exit(0);
	CHECK(waitpid(s->child, &status, 0) == s->child);
	CHECK(!status);
	alarm(0);
}

void finish(struct side *s, struct op *op)
{
	uint64_t end = util_now_ns() + PATIENCE;

	while (!op->done) {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
	}
}

void try_send(struct side *s, struct op *op, const void *buf, uint64_t tag, size_t len,
	      uint8_t flags)
{
	uint64_t end = util_now_ns() + PATIENCE;
	int err;

	*op = (struct op){.msg = {.kind = MSG_OP_SEND,
				  .flags = flags,
				  .peer = s->peer,
				  .tag = tag,
				  .data = (uint32_t)tag + 5,
				  .iov = {{(void *)buf, len}},
				  .n_iov = 1}};
	while ((err = msg_send(s->ep, &op->msg)) == -EAGAIN)
		CHECK(util_now_ns() < end);
	CHECK(!err || err == -EHOSTUNREACH);
	if (err) {
		op->msg.err = err;
		op->done = true;
	}
}

void start_send(struct side *s, struct op *op, const void *buf, uint64_t tag, size_t len,
		uint8_t flags)
{
	try_send(s, op, buf, tag, len, flags);
	CHECK(!op->msg.err);
}

void start_recv(struct side *s, struct op *op, void *buf, uint32_t src, uint64_t tag,
		uint64_t ignore, size_t room)
{
	*op = (struct op){.msg = {.kind = MSG_OP_RECV,
				  .flags = MSG_OP_TAGGED,
				  .peer = src,
				  .tag = tag,
				  .ignore = ignore,
				  .iov = {{buf, room}},
				  .n_iov = 1}};
	CHECK(!msg_post_recv(s->ep, &op->msg));
}

void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

void check_filled(const uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		CHECK(buf[i] == (uint8_t)(i * 7 + (i >> 8) + seed));
}
