/* Many endpoints: everybody to everybody at once, strangers, ghosts and forgeries; sleep. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_rand.h"
#include "ep_rig.h"
#include "msg_rc.h"

#define PATIENCE (40 * UTIL_NS_PER_S)

static void done(void *arg, struct msg_op *op)
{
	(void)arg;
	CHECK(!container_of(op, struct op, msg)->done);
	container_of(op, struct op, msg)->done = true;
}

static struct msg_ep *open_ep(struct msg_dev *dev, bool wait, uint32_t connect_ms)
{
	struct msg_ep_conf conf = {.eager_max = EAGER_MAX,
				   .rx_buffers = 32,
				   .depth = 16,
				   .wait = wait,
				   .connect_ms = connect_ms,
				   .linger = UTIL_NS_PER_S,
				   .done = done};
	struct msg_ep *ep;

	CHECK(!msg_ep_open(dev, &conf, &ep));
	return ep;
}

static uint32_t peer_of(struct msg_ep *ep, struct msg_addr addr)
{
	uint32_t peer;

	CHECK(!msg_ep_peer(ep, &addr, &peer));
	return peer;
}

static struct op send_op(uint32_t peer, uint64_t tag, void *buf, size_t len)
{
	return (struct op){.msg = {.kind = MSG_OP_SEND,
				   .flags = MSG_OP_TAGGED,
				   .peer = peer,
				   .tag = tag,
				   .iov = {{buf, len}},
				   .n_iov = 1}};
}

static struct op recv_op(uint32_t peer, uint64_t tag, void *buf, size_t len)
{
	struct op op = send_op(peer, tag, buf, len);

	op.msg.kind = MSG_OP_RECV;
	return op;
}

/* ---- everybody to everybody ---- */

/* Datagrams get lost when a test says so: so many percent of them. */
static uint32_t loss;
static struct util_rand losses;

int __real_msg_hello_decode(struct msg_hello *h, const uint8_t *buf, size_t len);
int __wrap_msg_hello_decode(struct msg_hello *h, const uint8_t *buf, size_t len);

int __wrap_msg_hello_decode(struct msg_hello *h, const uint8_t *buf, size_t len)
{
	return util_rand_below(&losses, 100) < loss ? -EPROTO
						    : __real_msg_hello_decode(h, buf, len);
}

enum { PEERS = 12, EACH = 6, LONG = 20000 };

/* An endpoint that sends to all others, itself included, and receives as much. */
struct member {
	struct msg_ep *ep;
	uint32_t me, peer[PEERS];
	struct op send[PEERS][EACH], recv[PEERS][EACH];
	bool sent[PEERS][EACH];
	uint8_t *tx, *rx;
};

/* Short and long messages have one tag: it is their order that tells them apart. */
static size_t length_of(uint32_t from, uint32_t to, uint32_t k)
{
	return (from + to + k) % 3 ? 64 + k : LONG - k;
}

static void member_start(struct member *m, const struct msg_addr *addrs)
{
	m->tx = malloc((size_t)PEERS * EACH * LONG);
	m->rx = malloc((size_t)PEERS * EACH * LONG);
	CHECK(m->tx && m->rx);
	for (uint32_t p = 0; p < PEERS; p++) {
		m->peer[p] = peer_of(m->ep, addrs[p]);
		for (uint32_t k = 0; k < EACH; k++) {
			size_t at = ((size_t)p * EACH + k) * LONG, len = length_of(m->me, p, k);

			fill(m->tx + at, len, m->me * 31 + p * 7 + k);
			m->send[p][k] = send_op(m->peer[p], 1, m->tx + at, len);
			m->recv[p][k] = recv_op(m->peer[p], 1, m->rx + at, LONG);
			m->sent[p][k] = false;
			CHECK(!msg_post_recv(m->ep, &m->recv[p][k].msg));
		}
	}
}

/* One step; true: all is done. Who can not send to one goes on with the next. */
static bool member_step(struct member *m)
{
	bool all = true;

	msg_progress(m->ep);
	for (uint32_t i = 0; i < PEERS; i++) {
		uint32_t p = (i + m->me) % PEERS;

		for (uint32_t k = 0; k < EACH && (k == 0 || m->sent[p][k - 1]); k++) {
			int err = m->sent[p][k] ? 0 : msg_send(m->ep, &m->send[p][k].msg);

			CHECK(!err || err == -EAGAIN);
			m->sent[p][k] = !err;
		}
		for (uint32_t k = 0; k < EACH; k++)
			all &= m->send[p][k].done && m->recv[p][k].done;
	}
	return all;
}

static void member_check(struct member *m)
{
	for (uint32_t p = 0; p < PEERS; p++)
		for (uint32_t k = 0; k < EACH; k++) {
			const struct msg_op *r = &m->recv[p][k].msg;

			CHECK(!r->err && !m->send[p][k].msg.err && r->src == m->peer[p]);
			CHECK(r->len == length_of(p, m->me, k));
			check_filled(r->iov[0].iov_base, r->len, p * 31 + m->me * 7 + k);
		}
	free(m->tx);
	free(m->rx);
}

/* All in one thread: nobody waits for anybody. */
static void test_all_in_one(void **state)
{
	struct member *m = calloc(PEERS, sizeof(*m));
	uint64_t end = util_now_ns() + PATIENCE;
	struct msg_dev *dev = open_dev();
	struct msg_addr addrs[PEERS];
	bool all = false;

	loss = *(uint32_t *)*state;
	util_rand_seed(&losses, 1);
	CHECK(m);
	for (uint32_t i = 0; i < PEERS; i++) {
		m[i].me = i;
		m[i].ep = open_ep(dev, false, 0);
		addrs[i] = msg_ep_addr(m[i].ep);
	}
	for (uint32_t i = 0; i < PEERS; i++)
		member_start(&m[i], addrs);
	while (!all) {
		CHECK(util_now_ns() < end);
		all = true;
		for (uint32_t i = 0; i < PEERS; i++)
			all &= member_step(&m[i]);
	}
	for (uint32_t i = 0; i < PEERS; i++)
		member_check(&m[i]);
	for (uint32_t i = 0; i < PEERS; i++)
		msg_ep_close(m[i].ep);
	msg_dev_close(dev);
	free(m);
	loss = 0;
}

struct shared {
	atomic_uint here, through;
	struct msg_addr addrs[PEERS];
};

static void one_process(struct shared *sh, uint32_t me)
{
	struct member *m = calloc(1, sizeof(*m));
	uint64_t end = util_now_ns() + PATIENCE;
	struct msg_dev *dev = open_dev();

	CHECK(m);
	m->me = me;
	m->ep = open_ep(dev, false, 0);
	sh->addrs[me] = msg_ep_addr(m->ep);
	for (atomic_fetch_add(&sh->here, 1); atomic_load(&sh->here) < PEERS;)
		sched_yield();
	member_start(m, sh->addrs);
	while (!member_step(m)) {
		CHECK(util_now_ns() < end);
		sched_yield();
	}
	for (atomic_fetch_add(&sh->through, 1); atomic_load(&sh->through) < PEERS;) {
		msg_progress(m->ep);
		sched_yield();
	}
	member_check(m);
	msg_ep_close(m->ep);
	msg_dev_close(dev);
	free(m);
}

static void test_processes(void **state)
{
	struct shared *sh =
		mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	loss = *(uint32_t *)*state;
	CHECK(sh != MAP_FAILED);
	for (uint32_t i = 0; i < PEERS; i++) {
		pid_t pid = fork();

		util_rand_seed(&losses, i);

		CHECK(pid >= 0);
		if (!pid) {
			alarm(60);
			one_process(sh, i);
			_exit(0);
		}
	}
	for (uint32_t i = 0; i < PEERS; i++) {
		CHECK(wait(&status) > 0);
		CHECK(!status);
	}
	munmap(sh, sizeof(*sh));
	loss = 0;
}

/* ---- pairs ---- */

struct pair {
	struct msg_dev *dev;
	struct msg_ep *ep[2];
	uint32_t peer[2];
};

static void pair_open(struct pair *p, bool wait, uint32_t connect_ms)
{
	p->dev = open_dev();
	for (int i = 0; i < 2; i++)
		p->ep[i] = open_ep(p->dev, wait, connect_ms);
	for (int i = 0; i < 2; i++)
		p->peer[i] = peer_of(p->ep[i], msg_ep_addr(p->ep[!i]));
}

static void pair_close(struct pair *p)
{
	msg_ep_close(p->ep[0]);
	msg_ep_close(p->ep[1]);
	msg_dev_close(p->dev);
}

/* A message each, both at once. */
static void exchange(struct pair *p, uint8_t tag, size_t len)
{
	uint64_t end = util_now_ns() + PATIENCE;
	struct op send[2], recv[2];
	uint8_t *buf[4];
	bool sent[2] = {false};

	for (int i = 0; i < 4; i++)
		buf[i] = malloc(len);
	for (int i = 0; i < 2; i++) {
		fill(buf[i], len, tag + (unsigned int)i);
		send[i] = send_op(p->peer[i], tag, buf[i], len);
		recv[i] = recv_op(p->peer[i], tag, buf[2 + i], len);
		CHECK(!msg_post_recv(p->ep[i], &recv[i].msg));
	}
	while (!send[0].done || !send[1].done || !recv[0].done || !recv[1].done) {
		CHECK(util_now_ns() < end);
		for (int i = 0; i < 2; i++) {
			if (!sent[i])
				sent[i] = !msg_send(p->ep[i], &send[i].msg);
			msg_progress(p->ep[i]);
		}
	}
	for (int i = 0; i < 2; i++) {
		CHECK(!send[i].msg.err && !recv[i].msg.err && recv[i].msg.len == len);
		check_filled(buf[2 + i], len, tag + (unsigned int)!i);
	}
	for (int i = 0; i < 4; i++)
		free(buf[i]);
}

/* Endpoints that come and go: their numbers are used again, their names are not. */
static void test_come_and_go(void **state)
{
	struct msg_dev *dev = open_dev();
	struct msg_ep *hub = open_ep(dev, false, 0);
	struct pair p = {.dev = dev, .ep = {hub}};

	(void)state;
	for (uint8_t round = 0; round < 40; round++) {
		p.ep[1] = open_ep(dev, false, 0);
		p.peer[0] = peer_of(hub, msg_ep_addr(p.ep[1]));
		p.peer[1] = peer_of(p.ep[1], msg_ep_addr(hub));
		exchange(&p, round, round % 2 ? 100 : LONG);
		msg_ep_close(p.ep[1]);
	}
	msg_ep_close(hub);
	msg_dev_close(dev);
}

/* What was said to be sent before the endpoint went does arrive. */
static void test_last_words(void **state)
{
	enum { N = 10 };
	struct op send, recv[N];
	struct pair p;
	uint8_t tx[100], rx[N][100];
	uint64_t end = util_now_ns() + PATIENCE;
	unsigned int n = 0;

	(void)state;
	pair_open(&p, false, 0);
	exchange(&p, 1, 10);
	for (unsigned int i = 0; i < N; i++) {
		fill(tx, sizeof(tx), i);
		send = send_op(p.peer[0], 2, tx, sizeof(tx));
		CHECK(!msg_send(p.ep[0], &send.msg));
	}
	msg_ep_close(p.ep[0]);
	for (unsigned int i = 0; i < N; i++) {
		recv[i] = recv_op(p.peer[1], 2, rx[i], sizeof(rx[i]));
		CHECK(!msg_post_recv(p.ep[1], &recv[i].msg));
	}
	while (n < N) {
		CHECK(util_now_ns() < end);
		msg_progress(p.ep[1]);
		for (n = 0; n < N && recv[n].done; n++)
			;
	}
	for (unsigned int i = 0; i < N; i++)
		check_filled(rx[i], sizeof(rx[i]), i);
	msg_ep_close(p.ep[1]);
	msg_dev_close(p.dev);
}

/* ---- who does not answer ---- */

/* Nobody has this address: everything ends, in time, and nobody else waits for that. */
static void test_nobody(void **state)
{
	struct op recv, read, send;
	uint64_t start = util_now_ns(), end = start + PATIENCE;
	uint8_t a[10], b[10], c[10];
	struct msg_addr nobody;
	struct msg_ep *gone;
	uint32_t peer;
	struct pair p;
	int err;

	(void)state;
	pair_open(&p, false, 2000);
	if (!p.ep[0]->rc) { /* RD queue pairs have their own idea of how long that takes */
		pair_close(&p);
		skip();
	}
	gone = open_ep(p.dev, false, 0);
	nobody = msg_ep_addr(gone);
	msg_ep_close(gone);
	peer = peer_of(p.ep[0], nobody);
	recv = recv_op(peer, 1, a, sizeof(a));
	CHECK(!msg_post_recv(p.ep[0], &recv.msg));
	read = (struct op){.msg = {.kind = MSG_OP_READ,
				   .peer = peer,
				   .iov = {{b, sizeof(b)}},
				   .n_iov = 1,
				   .remote = {{0x1000, sizeof(b), 5}},
				   .n_remote = 1}};
	CHECK(!msg_rma(p.ep[0], &read.msg));
	send = send_op(peer, 1, c, sizeof(c));
	CHECK(msg_send(p.ep[0], &send.msg) == -EAGAIN);
	for (uint8_t i = 0; i < 20; i++)
		exchange(&p, i, i % 2 ? 1000 : LONG);
	CHECK(util_now_ns() - start < 1900 * UTIL_NS_PER_MS); /* before it was given up */
	while ((err = msg_send(p.ep[0], &send.msg)) == -EAGAIN)
		CHECK(util_now_ns() < end);
	CHECK(err == -EHOSTUNREACH && util_now_ns() - start > 1900 * UTIL_NS_PER_MS);
	while (!recv.done || !read.done) {
		CHECK(util_now_ns() < end);
		msg_progress(p.ep[0]);
	}
	CHECK(recv.msg.err == -EHOSTUNREACH && read.msg.err == -EHOSTUNREACH);
	exchange(&p, 99, LONG);
	pair_close(&p);
}

/* ---- datagrams that nobody should believe ---- */

static void post_dgram(struct msg_ep *from, const struct ibv_mr *mr, struct msg_ep *to, size_t len)
{
	struct msg_addr addr = msg_ep_addr(to);
	uint32_t peer = peer_of(from, addr);
	struct ibv_sge sge = {(uintptr_t)mr->addr, (uint32_t)len, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = MSG_RC_DGRAMS,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr = {.ud = {.ah = from->peers[peer].ah,
					       .remote_qpn = addr.qpn,
					       .remote_qkey = addr.qkey}}},
			   *bad;
	uint32_t before = from->rc->gone;

	from->rc->sent++;
	CHECK(!ibv_post_send(from->qp, &wr, &bad));
	while (from->rc->gone == before)
		msg_progress(from);
	msg_progress(to);
}

static struct msg_hello any_hello(struct util_rand *r, struct msg_addr from)
{
	return (struct msg_hello){
		.type = (uint8_t)(1 + util_rand_below(r, 2)),
		.mtu = (uint8_t)(1 + util_rand_below(r, 5)),
		.reads = (uint8_t)(1 + util_rand_below(r, 255)),
		.qpn = (uint32_t)(1 + util_rand_below(r, 0xffffff)),
		.psn = (uint32_t)util_rand_below(r, 0x1000000),
		.path = (uint8_t)util_rand_below(r, STRIPE_PATHS_MAX),
		.epoch = (uint16_t)util_rand_below(r, 3),
		.token = (uint32_t)util_rand_next(r),
		.other = util_rand_below(r, 2) ? (uint32_t)util_rand_below(r, 0x1000000) : 0,
		.from = from};
}

static void test_forged(void **state)
{
	enum { ROUNDS = 600, LONGEST_DGRAM = 200 };
	uint64_t seed = (uint64_t)getpid();
	uint8_t buf[LONGEST_DGRAM];
	struct util_rand r;
	struct msg_ep *ghost;
	struct ibv_mr *mr;
	struct pair p;
	uint32_t other;

	(void)state;
	pair_open(&p, false, 0);
	if (!p.ep[0]->rc) {
		pair_close(&p);
		skip();
	}
	printf("seed %llu\n", (unsigned long long)seed);
	util_rand_seed(&r, seed);
	ghost = open_ep(p.dev, false, 0);
	mr = ibv_reg_mr_iova2(p.dev->pd, buf, sizeof(buf), (uintptr_t)buf, 0);
	CHECK(mr);
	exchange(&p, 1, 100);
	other = p.ep[0]->peers[p.peer[0]].conn->other;
	for (int i = 0; i < ROUNDS; i++) {
		struct msg_ep *from = util_rand_below(&r, 2) ? ghost : p.ep[1];
		struct msg_hello h =
			any_hello(&r, msg_ep_addr(util_rand_below(&r, 2) ? ghost : p.ep[1]));
		size_t len = MSG_HELLO_LEN;

		if (util_rand_below(&r, 4) == 0)
			util_rand_bytes(&r, h.from.gid, util_rand_below(&r, 17));
		msg_hello_encode(&h, buf);
		if (util_rand_below(&r, 2) == 0)
			buf[util_rand_below(&r, MSG_HELLO_LEN)] ^= 1 << util_rand_below(&r, 8);
		if (util_rand_below(&r, 4) == 0) {
			len = util_rand_below(&r, sizeof(buf) + 1);
			util_rand_bytes(&r, buf, util_rand_below(&r, len + 1));
		}
		post_dgram(from, mr, p.ep[0], len);
		if (i % 20 == 0)
			exchange(&p, (uint8_t)i, i % 40 ? LONG : 50);
	}
	CHECK(p.ep[0]->peers[p.peer[0]].conn->other == other);
	ibv_dereg_mr(mr);
	msg_ep_close(ghost);
	pair_close(&p);
}

/* ---- sleep ---- */

/* Whoever sleeps until the descriptor says so misses nothing, not even the time to call again. */
static void test_sleep(void **state)
{
	struct op send[2], recv[2];
	uint8_t tx[2][LONG], rx[2][LONG];
	uint64_t end = util_now_ns() + PATIENCE;
	bool sent[2] = {false};
	unsigned int naps = 0;
	struct pair p;

	loss = *(uint32_t *)*state;
	util_rand_seed(&losses, 2);
	pair_open(&p, true, 0);
	for (unsigned int i = 0; i < 2; i++) {
		fill(tx[i], LONG, i);
		send[i] = send_op(p.peer[i], 1, tx[i], LONG);
		recv[i] = recv_op(p.peer[i], 1, rx[i], LONG);
		CHECK(!msg_post_recv(p.ep[i], &recv[i].msg));
	}
	while (!send[0].done || !send[1].done || !recv[0].done || !recv[1].done) {
		struct pollfd fds[2];
		bool quiet = true;

		CHECK(util_now_ns() < end);
		for (int i = 0; i < 2; i++) {
			if (!sent[i])
				sent[i] = !msg_send(p.ep[i], &send[i].msg);
			quiet &= msg_ep_arm(p.ep[i]);
			fds[i] = (struct pollfd){.fd = msg_ep_fd(p.ep[i]), .events = POLLIN};
		}
		if (!quiet || (send[0].done && send[1].done && recv[0].done && recv[1].done))
			continue;
		naps++;
		CHECK(poll(fds, 2, 10000) > 0);
	}
	CHECK(naps < 10000);
	naps = 0;
	check_filled(rx[0], LONG, 1);
	check_filled(rx[1], LONG, 0);
	/* When nothing happens any more, there is nothing to wake up for. */
	for (int i = 0; i < 2; i++) {
		struct pollfd fd = {.fd = msg_ep_fd(p.ep[i]), .events = POLLIN};

		do {
			CHECK(++naps < 100);
			while (!msg_ep_arm(p.ep[i]))
				CHECK(util_now_ns() < end);
		} while (poll(&fd, 1, 30));
	}
	pair_close(&p);
	loss = 0;
}

int main(void)
{
	static uint32_t none = 0, half = 50;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_all_in_one, &none),
		cmocka_unit_test_prestate(test_all_in_one, &half),
		cmocka_unit_test_prestate(test_processes, &none),
		cmocka_unit_test_prestate(test_processes, &half),
		cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_last_words),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_forged),
		cmocka_unit_test_prestate(test_sleep, &none),
		cmocka_unit_test_prestate(test_sleep, &half),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
