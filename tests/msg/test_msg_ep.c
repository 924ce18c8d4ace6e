/* Endpoints of two processes: messages of all lengths arrive whole, once, and where they belong. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "util_clock.h"
#include "msg.h"

#define EAGER_MAX 8192
#define LONGEST   (4u << 20)
#define PATIENCE  (20 * UTIL_NS_PER_S)

struct side {
	int me; /* 0: the parent */
	int sock;
	pid_t child;
	struct msg_dev *dev;
	struct msg_ep *ep;
	uint32_t peer;
	uint8_t *tx, *rx;
};

/* What `done` leaves behind: operations begin with -EINPROGRESS in `err` of their own. */
struct op {
	struct msg_op msg;
	bool done;
};

static void done(void *arg, struct msg_op *op)
{
	(void)arg;
	container_of(op, struct op, msg)->done = true;
}

static void check(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "test_msg_ep.c:%d: %s\n", line, what);
	abort();
}
#define CHECK(cond) check(cond, #cond, __LINE__)

static void side_open(struct side *s)
{
	struct msg_ep_conf conf = {
		.eager_max = EAGER_MAX, .rx_buffers = 64, .depth = 64, .done = done};
	struct msg_addr own, other;
	int sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	s->child = fork();
	CHECK(s->child >= 0);
	s->me = s->child ? 0 : 1;
	s->sock = sv[s->me];
	close(sv[!s->me]);
	alarm(60);
	CHECK(!msg_dev_open(NULL, &s->dev));
	CHECK(!msg_ep_open(s->dev, &conf, &s->ep));
	own = msg_ep_addr(s->ep);
	CHECK(write(s->sock, &own, sizeof(own)) == sizeof(own));
	CHECK(read(s->sock, &other, sizeof(other)) == sizeof(other));
	CHECK(!msg_ep_peer(s->ep, &other, &s->peer));
	s->tx = malloc(LONGEST);
	s->rx = malloc(LONGEST);
	CHECK(s->tx && s->rx);
}

/* Serves the other until it says that it has finished, too. */
static void meet(struct side *s)
{
	uint64_t end = util_now_ns() + PATIENCE;
	char c = 'x';

	CHECK(write(s->sock, &c, 1) == 1);
	while (recv(s->sock, &c, 1, MSG_DONTWAIT) != 1) {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
	}
}

static void side_close(struct side *s)
{
	int status = 0;

	meet(s);
	msg_ep_close(s->ep);
	msg_dev_close(s->dev);
	free(s->tx);
	free(s->rx);
	close(s->sock);
	if (s->me)
		_exit(0);
	CHECK(waitpid(s->child, &status, 0) == s->child);
	CHECK(!status);
	alarm(0);
}

static void finish(struct side *s, struct op *op)
{
	uint64_t end = util_now_ns() + PATIENCE;

	while (!op->done) {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
	}
}

static void start_send(struct side *s, struct op *op, uint64_t tag, size_t len, uint8_t flags)
{
	uint64_t end = util_now_ns() + PATIENCE;
	int err;

	*op = (struct op){.msg = {.kind = MSG_OP_SEND,
				  .flags = flags,
				  .peer = s->peer,
				  .tag = tag,
				  .data = (uint32_t)tag + 5,
				  .iov = {{s->tx, len}},
				  .n_iov = 1}};
	while ((err = msg_send(s->ep, &op->msg)) == -EAGAIN)
		CHECK(util_now_ns() < end);
	CHECK(!err);
}

static void start_recv(struct side *s, struct op *op, uint32_t src, uint64_t tag, uint64_t ignore,
		       size_t room)
{
	*op = (struct op){.msg = {.kind = MSG_OP_RECV,
				  .flags = MSG_OP_TAGGED,
				  .peer = src,
				  .tag = tag,
				  .ignore = ignore,
				  .iov = {{s->rx, room}},
				  .n_iov = 1}};
	CHECK(!msg_post_recv(s->ep, &op->msg));
}

static void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)(i * 7 + (i >> 8) + seed);
}

static void check_filled(const uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		CHECK(buf[i] == (uint8_t)(i * 7 + (i >> 8) + seed));
}

static const size_t sizes[] = {0,     1,     200,     5000,   EAGER_MAX, EAGER_MAX + 1,
			       40000, 65536, 1 << 20, LONGEST};

/* The receive is there first, or the message. */
static void test_sizes(void **state)
{
	struct side s;

	(void)state;
	side_open(&s);
	for (int early = 0; early < 2; early++)
		for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
			struct op send, recv;
			size_t len = sizes[k];

			fill(s.tx, len, k + (uint64_t)s.me);
			if (early)
				start_recv(&s, &recv, s.peer, k, 0, LONGEST);
			meet(&s);
			start_send(&s, &send, k, len, MSG_OP_TAGGED | MSG_OP_DATA);
			if (!early) {
				usleep(1000);
				start_recv(&s, &recv, s.peer, k, 0, LONGEST);
			}
			finish(&s, &recv);
			finish(&s, &send);
			CHECK(!recv.msg.err && !send.msg.err);
			CHECK(recv.msg.len == len && recv.msg.src == s.peer && recv.msg.tag == k);
			CHECK(recv.msg.flags & MSG_OP_DATA && recv.msg.data == k + 5);
			check_filled(s.rx, len, k + !s.me);
			meet(&s);
		}
	side_close(&s);
}

/* Order, any source, ignored bits, messages that are too long, cancelled receives. */
static void test_rules(void **state)
{
	struct op send[6], recv[6];
	struct side s;

	(void)state;
	side_open(&s);
	for (size_t i = 0; i < 6; i++) {
		fill(s.tx, 20000, i);
		start_send(&s, &send[i], 100 + i % 2, i % 3 ? 20000 : 100, MSG_OP_TAGGED);
		if (i % 3 == 0)
			finish(&s, &send[i]);
		else
			meet(&s); /* the other one receives in step: the buffer is used again */
		if (i % 3 == 0)
			continue;
		start_recv(&s, &recv[i], i % 2 ? MSG_ANY_SRC : s.peer, 100, 1, 20000);
		finish(&s, &recv[i]);
		CHECK(!recv[i].msg.err);
		if (recv[i].msg.len == 100) { /* the short one came first */
			start_recv(&s, &recv[i], s.peer, 100, 1, 20000);
			finish(&s, &recv[i]);
		}
		CHECK(recv[i].msg.len == 20000 && recv[i].msg.tag == 100 + i % 2);
		check_filled(s.rx, 20000, i);
		finish(&s, &send[i]);
		meet(&s);
	}
	/* too long for its receive */
	for (size_t k = 2; k < 9; k += 3) {
		start_recv(&s, &recv[0], s.peer, 7, 0, sizes[k] / 2);
		meet(&s);
		fill(s.tx, sizes[k], 3);
		start_send(&s, &send[0], 7, sizes[k], MSG_OP_TAGGED);
		finish(&s, &recv[0]);
		finish(&s, &send[0]);
		CHECK(recv[0].msg.err == -EMSGSIZE && recv[0].msg.len == sizes[k] / 2);
		CHECK(recv[0].msg.over == sizes[k] - sizes[k] / 2);
		check_filled(s.rx, sizes[k] / 2, 3);
		meet(&s);
	}
	start_recv(&s, &recv[0], s.peer, 9, 0, 10);
	CHECK(!msg_cancel(s.ep, &recv[0].msg));
	CHECK(recv[0].done && recv[0].msg.err == -ECANCELED);
	CHECK(msg_cancel(s.ep, &recv[0].msg) == -ENOENT);
	side_close(&s);
}

/* The peer's memory, read and written. */
static void test_rma(void **state)
{
	struct {
		uint64_t addr;
		uint32_t key;
	} own, other;
	struct side s;
	struct op op;
	void *mr;

	(void)state;
	side_open(&s);
	fill(s.tx, LONGEST, 10 + (uint64_t)s.me);
	memset(s.rx, 0, LONGEST);
	CHECK(!msg_reg(s.dev, s.tx, LONGEST, true, &mr, &own.key));
	own.addr = (uintptr_t)s.tx;
	CHECK(write(s.sock, &own, sizeof(own)) == sizeof(own));
	CHECK(read(s.sock, &other, sizeof(other)) == sizeof(other));
	op = (struct op){.msg = {.kind = MSG_OP_READ,
				 .peer = s.peer,
				 .iov = {{s.rx, LONGEST}},
				 .n_iov = 1,
				 .remote = {{other.addr, LONGEST, other.key}},
				 .n_remote = 1}};
	CHECK(!msg_rma(s.ep, &op.msg));
	finish(&s, &op);
	CHECK(!op.msg.err);
	check_filled(s.rx, LONGEST, 10 + !s.me);
	meet(&s);
	fill(s.rx, 1000, 50);
	op = (struct op){.msg = {.kind = MSG_OP_WRITE,
				 .peer = s.peer,
				 .iov = {{s.rx, 1000}},
				 .n_iov = 1,
				 .remote = {{other.addr + 5000, 1000, other.key}},
				 .n_remote = 1}};
	CHECK(!msg_rma(s.ep, &op.msg));
	finish(&s, &op);
	CHECK(!op.msg.err);
	meet(&s);
	check_filled(s.tx + 5000, 1000, 50);
	/* without a key */
	op.done = false;
	op.msg.remote[0].key ^= 0x5a5a;
	CHECK(!msg_rma(s.ep, &op.msg));
	finish(&s, &op);
	CHECK(op.msg.err == -EACCES);
	meet(&s);
	msg_dereg(mr);
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_rma),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
