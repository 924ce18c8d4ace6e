/* Two processes, many threads. */
#include "ofi_node.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util_clock.h"

#define LONGEST (4u << 20)

struct side {
	struct node n;
	int me, sock;
	pid_t child;
	uint8_t *tx, *rx;
};

/* In a child cmocka's assertions would run the rest of the tests there: it ends instead. */
static void check(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "test_ofi_procs.c:%d: %s\n", line, what);
	abort();
}
#define CHECK(cond) check(cond, #cond, __LINE__)

static void side_open(struct side *s, const struct node_conf *conf)
{
	uint8_t names[2 * ADDR_LEN];
	fi_addr_t got[2];
	int sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	s->child = fork();
	CHECK(s->child >= 0);
	s->me = s->child ? 0 : 1;
	s->sock = sv[s->me];
	close(sv[!s->me]);
	alarm(60);
	node_open(&s->n, conf);
	memcpy(names + s->me * ADDR_LEN, s->n.name, ADDR_LEN);
	CHECK(write(s->sock, s->n.name, ADDR_LEN) == ADDR_LEN);
	CHECK(recv(s->sock, names + !s->me * ADDR_LEN, ADDR_LEN, MSG_WAITALL) == ADDR_LEN);
	CHECK(fi_av_insert(s->n.av, names, 2, got, 0, NULL) == 2 && got[0] == 0 && got[1] == 1);
	s->tx = malloc(LONGEST);
	s->rx = malloc(LONGEST);
	CHECK(s->tx && s->rx);
}

static void meet(struct side *s)
{
	uint64_t end = util_now_ns() + 20 * UTIL_NS_PER_S;
	char c = 'x';

	CHECK(write(s->sock, &c, 1) == 1);
	while (recv(s->sock, &c, 1, MSG_DONTWAIT) != 1) {
		CHECK(util_now_ns() < end);
		node_drive(&s->n);
	}
}

static void side_close(struct side *s)
{
	int status = 0;

	meet(s);
	node_close(&s->n);
	free(s->tx);
	free(s->rx);
	close(s->sock);
	if (s->me)
		_exit(0);
	CHECK(waitpid(s->child, &status, 0) == s->child);
	CHECK(!status);
}

static struct fi_cq_tagged_entry next(struct side *s, struct fid_cq *cq)
{
	uint64_t end = util_now_ns() + 20 * UTIL_NS_PER_S;
	struct fi_cq_tagged_entry e;
	ssize_t n;

	while ((n = fi_cq_read(cq, &e, 1)) == -FI_EAGAIN) {
		node_drive(&s->n);
		CHECK(util_now_ns() < end);
	}
	CHECK(n == 1);
	return e;
}

#define post(s, call)                                                                              \
	do {                                                                                       \
		uint64_t end_ = util_now_ns() + 20 * UTIL_NS_PER_S;                                \
		ssize_t ret_;                                                                      \
                                                                                                   \
		while ((ret_ = (call)) == -FI_EAGAIN && util_now_ns() < end_)                      \
			node_drive(&(s)->n);                                                       \
		if (ret_)                                                                          \
			fprintf(stderr, "%s\n", fi_strerror((int)-ret_));                          \
		CHECK(ret_ == 0);                                                                  \
	} while (0)

static void test_exchange(void **state)
{
	static const size_t sizes[] = {0, 1, 1000, 8192, 8193, 65536, 1 << 20, LONGEST};
	struct node_conf conf = {0};
	struct side s;

	(void)state;
	side_open(&s, &conf);
	for (unsigned int i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t len = sizes[i / 2];
		fi_addr_t peer = (fi_addr_t)!s.me;

		fill(s.tx, len, i + (unsigned int)s.me);
		if (i % 2)
			post(&s, fi_trecv(s.n.ep, s.rx, LONGEST, NULL, peer, i, 0, NULL));
		meet(&s);
		post(&s, fi_tsend(s.n.ep, s.tx, len, NULL, peer, i, NULL));
		if (!(i % 2))
			post(&s, fi_trecv(s.n.ep, s.rx, LONGEST, NULL, peer, i, 0, NULL));
		CHECK(next(&s, s.n.rx).len == len);
		next(&s, s.n.tx);
		check_filled(s.rx, len, i + !s.me);
		meet(&s);
	}
	side_close(&s);
}

static void test_remote_memory(void **state)
{
	struct node_conf conf = {.tx_op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION};
	struct {
		uint64_t addr, key;
	} own, other;
	uint64_t one = 1, before, last = 0;
	struct fid_mr *mr;
	struct side s;
	fi_addr_t peer;

	(void)state;
	side_open(&s, &conf);
	peer = (fi_addr_t)!s.me;
	memset(s.rx, 0, LONGEST);
	post(&s, fi_mr_reg(s.n.domain, s.rx, LONGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0,
			   &mr, NULL));
	own.addr = (uintptr_t)s.rx;
	own.key = fi_mr_key(mr);
	CHECK(write(s.sock, &own, sizeof(own)) == sizeof(own));
	CHECK(recv(s.sock, &other, sizeof(other), MSG_WAITALL) == sizeof(other));
	fill(s.tx, LONGEST, 3 + (unsigned int)s.me);
	post(&s, fi_write(s.n.ep, s.tx, LONGEST, NULL, peer, other.addr, other.key, NULL));
	next(&s, s.n.tx);
	meet(&s);
	check_filled(s.rx, LONGEST, 3 + !s.me);
	meet(&s);
	memset(s.rx, 0, 64);
	meet(&s);
	/* both add to one counter, which is the parent's */
	if (s.me == 0) {
		other.addr = own.addr;
		other.key = own.key;
	}
	for (int i = 0; i < 500; i++) {
		post(&s, fi_fetch_atomic(s.n.ep, &one, 1, NULL, &before, NULL, 0, other.addr,
					 other.key, FI_UINT64, FI_SUM, NULL));
		next(&s, s.n.tx);
		CHECK(before >= last);
		last = before + 1;
	}
	meet(&s);
	if (s.me == 0)
		CHECK(*(uint64_t *)s.rx == 1000);
	post(&s, fi_close(&mr->fid));
	side_close(&s);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS  4
#define MESSAGES 300

#define LONG 30000

struct worker {
	struct side *s;
	uint8_t *rx; /* a place for each message: many are under way */
	unsigned int id;
	pthread_t thread;
};

/* Everybody sends, receives and reads the same queues; only the numbers must be right. */
static void *work(void *arg)
{
	struct worker *w = arg;
	struct side *s = w->s;
	fi_addr_t peer = (fi_addr_t)!s->me;
	uint64_t got = 0, sent = 0;

	for (uint64_t i = 0; i < MESSAGES; i++) {
		size_t len = i % 10 ? 64 : LONG;
		struct fi_cq_tagged_entry e;

		post(s, fi_trecv(s->n.ep, w->rx + i * LONG, LONG, NULL, peer, w->id << 16 | i, 0,
				 NULL));
		post(s, fi_tsend(s->n.ep, s->tx, len, NULL, peer, w->id << 16 | i, NULL));
		/* somebody's, not necessarily its own */
		if (fi_cq_read(s->n.rx, &e, 1) == 1)
			got++;
		if (fi_cq_read(s->n.tx, &e, 1) == 1)
			sent++;
	}
	return (void *)(uintptr_t)(got << 20 | sent);
}

static void test_threads(void **state)
{
	struct node_conf conf = {0};
	struct worker w[THREADS];
	uint64_t got = 0, sent = 0;
	struct side s;

	(void)state;
	side_open(&s, &conf);
	fill(s.tx, LONG, 9);
	for (unsigned int i = 0; i < THREADS; i++) {
		w[i] = (struct worker){.s = &s, .rx = malloc(MESSAGES * LONG), .id = i};
		CHECK(w[i].rx);
		CHECK(!pthread_create(&w[i].thread, NULL, work, &w[i]));
	}
	for (unsigned int i = 0; i < THREADS; i++) {
		void *ret;

		CHECK(!pthread_join(w[i].thread, &ret));
		got += (uintptr_t)ret >> 20;
		sent += (uintptr_t)ret & 0xfffff;
	}
	for (; got < THREADS * MESSAGES; got++)
		next(&s, s.n.rx);
	for (; sent < THREADS * MESSAGES; sent++)
		next(&s, s.n.tx);
	node_quiet(&s.n, s.n.rx);
	for (unsigned int i = 0; i < THREADS; i++) {
		for (unsigned int k = 0; k < MESSAGES; k++)
			check_filled(w[i].rx + k * LONG, k % 10 ? 64 : LONG, 9);
		free(w[i].rx);
	}
	side_close(&s);
}

/* The peer dies: what waits for it ends, in a time that is not long. */
static void test_death(void **state)
{
	struct node_conf conf = {0};
	struct fi_cq_tagged_entry e;
	struct fi_cq_err_entry err = {0};
	uint64_t end;
	ssize_t n;
	struct side s;

	(void)state;
	side_open(&s, &conf);
	/* they know each other */
	post(&s, fi_trecv(s.n.ep, s.rx, 10, NULL, (fi_addr_t)!s.me, 1, 0, NULL));
	post(&s, fi_tsend(s.n.ep, s.tx, 10, NULL, (fi_addr_t)!s.me, 1, NULL));
	next(&s, s.n.rx);
	next(&s, s.n.tx);
	meet(&s);
	if (s.me)
		_exit(0);
	waitpid(s.child, NULL, 0);
	end = util_now_ns() + 20 * UTIL_NS_PER_S;
	while ((n = fi_tsend(s.n.ep, s.tx, LONGEST, NULL, 1, 2, NULL)) == -FI_EAGAIN) {
		node_drive(&s.n);
		CHECK(util_now_ns() < end);
	}
	/* the device may know already */
	CHECK(n == 0 || n == -FI_EHOSTUNREACH);
	if (!n) {
		while ((n = fi_cq_read(s.n.tx, &e, 1)) == -FI_EAGAIN)
			CHECK(util_now_ns() < end);
		CHECK(n == -FI_EAVAIL);
		CHECK(fi_cq_readerr(s.n.tx, &err, 0) == 1);
		CHECK(err.err == FI_EHOSTUNREACH);
	}
	node_close(&s.n);
	free(s.tx);
	free(s.rx);
	close(s.sock);
}

/* A ping-pong in which both sleep between messages, after a look or two: whatever wakes them
 * must not be lost while they look. */
static void test_sleepers(void **state)
{
	enum { ROUNDS = 3000 };
	struct node_conf conf = {.wait_obj = FI_WAIT_UNSPEC};
	struct fi_cq_tagged_entry e;
	struct side s;

	(void)state;
	side_open(&s, &conf);
	for (int i = 0; i < ROUNDS; i++) {
		fi_addr_t peer = (fi_addr_t)!s.me;
		ssize_t n = 0;

		post(&s, fi_trecv(s.n.ep, s.rx, 8, NULL, peer, 0, 0, NULL));
		if (!s.me)
			post(&s, fi_tinject(s.n.ep, s.tx, 8, peer, 0));
		for (int k = 0; k < i % 7 && n != 1; k++)
			n = fi_cq_read(s.n.rx, &e, 1);
		if (n != 1)
			CHECK(fi_cq_sread(s.n.rx, &e, 1, NULL, 20000) == 1);
		CHECK(e.len == 8);
		if (s.me)
			post(&s, fi_tinject(s.n.ep, s.tx, 8, peer, 0));
	}
	side_close(&s);
}

/* ---- a peer that computes ---- */

struct place {
	uint64_t addr, key;
};

/* Has posted a receive, of any source, of which the sender hears nothing in advance, and makes no
 * call until all is done. */
static void stay_away(struct side *s, struct fid_mr *mr)
{
	struct place own = {(uintptr_t)s->tx, fi_mr_key(mr)};
	char c;

	for (uint64_t tag = 0; tag < 3; tag++)
		post(s, fi_trecv(s->n.ep, s->rx + tag * (1 << 20), 1 << 20, NULL, FI_ADDR_UNSPEC,
				 tag, 0, NULL));
	CHECK(write(s->sock, &own, sizeof(own)) == sizeof(own));
	CHECK(recv(s->sock, &c, 1, MSG_WAITALL) == 1);
	for (unsigned int tag = 0; tag < 3; tag++) {
		struct fi_cq_tagged_entry e;

		CHECK(fi_cq_read(s->n.rx, &e, 1) == 1); /* it was there */
		CHECK(e.len == 1 << 20);
		check_filled(s->rx + tag * (1 << 20), 1 << 20, 5 + tag);
	}
	CHECK(*(double *)s->tx == 1.5);
}

static void reach(struct side *s)
{
	uint64_t start = util_now_ns();
	double half = 0.5, before;
	struct place other;

	CHECK(recv(s->sock, &other, sizeof(other), MSG_WAITALL) == sizeof(other));
	for (unsigned int tag = 0; tag < 3; tag++) {
		usleep(20000); /* whoever polled there has gone */
		fill(s->tx, 1 << 20, 5 + tag);
		post(s, fi_tsend(s->n.ep, s->tx, 1 << 20, NULL, 1, tag, NULL));
		next(s, s->n.tx);
		post(s, fi_fetch_atomic(s->n.ep, &half, 1, NULL, &before, NULL, 1, other.addr,
					other.key, FI_DOUBLE, FI_SUM, NULL));
		next(s, s->n.tx);
		CHECK(before == tag * half);
	}
	CHECK(util_now_ns() - start < 10 * UTIL_NS_PER_S);
	CHECK(write(s->sock, "d", 1) == 1);
}

static void test_busy_peer(void **state)
{
	struct node_conf conf = {0};
	struct fid_mr *mr;
	struct side s;

	(void)state;
	side_open(&s, &conf);
	memset(s.tx, 0, 64);
	post(&s,
	     fi_mr_reg(s.n.domain, s.tx, 64, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	if (s.me)
		stay_away(&s, mr);
	else
		reach(&s);
	post(&s, fi_close(&mr->fid));
	side_close(&s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exchange),      cmocka_unit_test(test_sleepers),
		cmocka_unit_test(test_remote_memory), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_death),         cmocka_unit_test(test_busy_peer),
	};

	setenv("WEFT_RD_TIMEOUT", "3000", 1); /* ms, until a silent peer is given up */
	return node_main(argc, argv, tests, sizeof(tests) / sizeof(tests[0]));
}
