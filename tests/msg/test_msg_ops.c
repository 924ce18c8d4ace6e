/* Endpoints of two processes: speculation, cancelled receives, probes, receives of many messages,
 * atomic operations, data with writes, and what is left when the other one dies. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_rand.h"
#include "ep_rig.h"
#include "msg_ep.h"

static const struct msg_ep_conf plain, writing = {.write = true},
				       speculating = {.speculate = true, .usage = 0};

/* Receives that are posted early are written into, without a step of this side in between. */
static void test_put(void **state)
{
	enum { N = 8, LEN = 100000 };
	struct op send[N], recv[N];
	struct msg_stats st;
	struct side s;

	(void)state;
	side_open(&s, &speculating);
	/* With RD, what is divided is read, and nobody says where in advance. */
	if (msg_stripe_reads(s.ep, s.peer, LEN))
		s.ep->conf.stripe_min = LEN + 1;
	warm_up(&s);
	for (size_t i = 0; i < N; i++)
		start_recv(&s, &recv[i], s.rx + i * LEN, s.peer, 5 + i % 2, 0, LEN);
	do {
		msg_progress(s.ep);
		msg_ep_stats(s.ep, &st);
	} while (st.rtr_came < N);
	meet(&s);
	for (size_t i = 0; i < N; i++) {
		fill(s.tx + i * LEN, LEN, i);
		start_send(&s, &send[i], s.tx + i * LEN, 5 + i % 2, LEN - i, MSG_OP_TAGGED);
	}
	for (size_t i = 0; i < N; i++) {
		finish(&s, &send[i]);
		finish(&s, &recv[i]);
		CHECK(!recv[i].msg.err && recv[i].msg.len == LEN - i);
		check_filled(s.rx + i * LEN, LEN - i, i);
	}
	msg_ep_stats(s.ep, &st);
	CHECK(st.put == N && st.rtr_sent == N && st.rtr_hit == N && st.rtr_used == N);
	CHECK(!st.read && !st.unexpected && !st.rtr_dropped);
	side_close(&s);
}

/* A receive whose RTR is out is cancelled; what counted on it is not led astray. */
static void test_cancel(void **state)
{
	enum { LEN = 50000 };
	struct op send[2], recv[3];
	struct side s;

	(void)state;
	side_open(&s, &speculating);
	warm_up(&s);
	for (size_t i = 0; i < 3; i++)
		start_recv(&s, &recv[i], s.rx + i * LEN, s.peer, 1, 0, LEN);
	memset(s.rx, 0x55, LEN);
	CHECK(!msg_cancel(s.ep, &recv[0].msg));
	/* Twice is as good as once. */
	CHECK(msg_cancel(s.ep, &recv[0].msg) == (recv[0].done ? -ENOENT : 0));
	finish(&s, &recv[0]);
	CHECK(recv[0].msg.err == -ECANCELED);
	meet(&s);
	for (size_t i = 0; i < 2; i++) {
		fill(s.tx + i * LEN, LEN, i);
		start_send(&s, &send[i], s.tx + i * LEN, 1, LEN, MSG_OP_TAGGED);
	}
	for (size_t i = 0; i < 2; i++) {
		finish(&s, &recv[i + 1]);
		finish(&s, &send[i]);
		CHECK(!recv[i + 1].msg.err);
		check_filled(s.rx + (i + 1) * LEN, LEN, i);
	}
	for (size_t i = 0; i < LEN; i++)
		CHECK(s.rx[i] == 0x55);
	side_close(&s);
}

/* Both sides send, receive and cancel as chance will have it. A cancelled receive either has its
 * message or is as it was; the sequence of messages that do arrive has no hole. */
static void test_storm(void **state)
{
	enum { ROUNDS = 300, WINDOW = 6, ROOM = 40000 };
	struct op send[WINDOW], recv[WINDOW];
	struct util_rand r;
	struct side s;
	uint32_t sent = 0, got = 0, cancelled = 0, other;

	side_open(&s, *state);
	util_rand_seed(&r, 77 + (uint64_t)s.me);
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t n = 1 + (uint32_t)util_rand_below(&r, WINDOW), came = 0, want;
		bool late = util_rand_below(&r, 2);

		swap(&s, &n, &want, sizeof(n));
		if (late)
			msg_progress(s.ep);
		for (uint32_t i = 0; i < WINDOW; i++)
			start_recv(&s, &recv[i], s.rx + i * ROOM, s.peer, 3, 0, ROOM);
		for (uint32_t i = 0; i < n; i++) {
			size_t len = util_rand_below(&r, 2) ? 100 : ROOM - i;

			memcpy(s.tx + i * ROOM, &sent, sizeof(sent));
			fill(s.tx + i * ROOM + 4, len - 4, sent++);
			start_send(&s, &send[i], s.tx + i * ROOM, 3, len, MSG_OP_TAGGED);
		}
		for (uint32_t i = 0; i < WINDOW; i++)
			if (util_rand_below(&r, 4) == 0 && !recv[i].done)
				msg_cancel(s.ep, &recv[i].msg);
		/* Messages that found no receive get one now. */
		while (came < want) {
			for (uint32_t i = 0; i < WINDOW; i++) {
				uint32_t number;

				if (!recv[i].done)
					continue;
				recv[i].done = false;
				if (recv[i].msg.err == -ECANCELED) {
					cancelled++;
				} else {
					CHECK(!recv[i].msg.err);
					memcpy(&number, recv[i].msg.iov[0].iov_base, 4);
					check_filled((uint8_t *)recv[i].msg.iov[0].iov_base + 4,
						     recv[i].msg.len - 4, number);
					came++;
				}
				start_recv(&s, &recv[i], s.rx + i * ROOM, s.peer, 3, 0, ROOM);
			}
			msg_progress(s.ep);
		}
		got += came;
		for (uint32_t i = 0; i < n; i++)
			finish(&s, &send[i]);
		for (uint32_t i = 0; i < WINDOW; i++) {
			CHECK(!recv[i].done || recv[i].msg.err == -ECANCELED);
			if (!recv[i].done)
				CHECK(!msg_cancel(s.ep, &recv[i].msg));
			finish(&s, &recv[i]);
			CHECK(recv[i].msg.err == -ECANCELED);
		}
		meet(&s);
	}
	swap(&s, &sent, &other, sizeof(sent));
	CHECK(got == other && cancelled);
	side_close(&s);
}

static void test_peek(void **state)
{
	static const size_t len[] = {100, 20000};
	struct msg_early *claimed;
	struct op send[2], recv;
	struct side s;

	(void)state;
	side_open(&s, &plain);
	for (size_t i = 0; i < 2; i++) {
		struct op probe = {.msg = {.kind = MSG_OP_RECV,
					   .flags = MSG_OP_TAGGED,
					   .peer = MSG_ANY_SRC,
					   .tag = 4,
					   .ignore = 3}};

		CHECK(msg_peek(s.ep, &probe.msg, NULL) == -ENOMSG);
		meet(&s);
		fill(s.tx, len[i], i);
		start_send(&s, &send[0], s.tx, 6, len[i], MSG_OP_TAGGED | MSG_OP_DATA);
		start_send(&s, &send[1], s.tx, 7, len[i], MSG_OP_TAGGED);
		meet(&s);
		while (msg_peek(s.ep, &probe.msg, NULL))
			;
		CHECK(probe.msg.len == len[i] && probe.msg.tag == 6 && probe.msg.src == s.peer);
		CHECK(probe.msg.flags & MSG_OP_DATA && probe.msg.data == 11);
		probe.msg.tag = 4;
		CHECK(!msg_peek(s.ep, &probe.msg, &claimed));
		CHECK(probe.msg.tag == 6);
		/* what is claimed is nobody else's */
		start_recv(&s, &recv, s.rx, s.peer, 4, 3, 30000);
		finish(&s, &recv);
		CHECK(recv.msg.tag == 7);
		recv = (struct op){.msg = {.kind = MSG_OP_RECV,
					   .flags = MSG_OP_TAGGED,
					   .iov = {{s.rx, 30000}},
					   .n_iov = 1}};
		CHECK(!msg_recv_claimed(s.ep, &recv.msg, claimed));
		finish(&s, &recv);
		CHECK(!recv.msg.err && recv.msg.len == len[i] && recv.msg.tag == 6);
		check_filled(s.rx, len[i], i);
		finish(&s, &send[0]);
		finish(&s, &send[1]);
		meet(&s);
	}
	side_close(&s);
}

static void post_multi(struct side *s, struct msg_multi *m, size_t room, uint64_t least)
{
	*m = (struct msg_multi){.op = {.kind = MSG_OP_RECV,
				       .flags = MSG_OP_MULTI,
				       .peer = MSG_ANY_SRC,
				       .iov = {{s->rx, room}},
				       .n_iov = 1},
				.least = least};
	CHECK(!msg_post_recv(s->ep, &m->op));
}

static void until(struct side *s, const uint64_t *count, uint64_t n)
{
	uint64_t end = util_now_ns() + 20 * UTIL_NS_PER_S;

	while (*count < n) {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
	}
	CHECK(*count == n);
}

static void test_multi(void **state)
{
	struct msg_multi m;
	struct op send;
	struct side s;

	side_open(&s, *state);
	/* The first message is there before. */
	fill(s.tx, 60000, 1);
	start_send(&s, &send, s.tx, 0, 1000, 0);
	finish(&s, &send);
	meet(&s);
	post_multi(&s, &m, 100000, 1000);
	until(&s, &s.parts, 1);
	CHECK(s.part_len == 1000 && s.part_at == s.rx && !s.part_err);
	meet(&s);
	start_send(&s, &send, s.tx, 0, 60000, 0);
	finish(&s, &send);
	until(&s, &s.parts, 2);
	CHECK(s.part_len == 60000 && s.part_at == s.rx + 1000);
	check_filled(s.rx + 1000, 60000, 1);
	CHECK(!s.wholes);
	meet(&s);
	/* More than is left. */
	start_send(&s, &send, s.tx, 0, 40000, 0);
	finish(&s, &send);
	until(&s, &s.parts, 3);
	CHECK(s.part_err == -EMSGSIZE && s.part_len == 39000);
	until(&s, &s.wholes, 1);
	CHECK(!s.whole_err);
	meet(&s);
	post_multi(&s, &m, 100000, 1000);
	CHECK(!msg_cancel(s.ep, &m.op));
	until(&s, &s.wholes, 2);
	CHECK(s.whole_err == -ECANCELED);
	side_close(&s);
}

struct place {
	uint64_t addr;
	uint32_t key;
};

static int start_atomic(struct side *s, struct msg_atomic *a, const struct place *at,
			uint64_t *operand, uint64_t *compare, uint64_t *result, uint32_t n)
{
	*a = (struct msg_atomic){
		.op = {.kind = MSG_OP_ATOMIC,
		       .peer = s->peer,
		       .iov = {{operand, n * 8}},
		       .n_iov = 1,
		       .remote = {{at->addr, n * 8, at->key}},
		       .n_remote = 1},
		.code = compare ? 2 : 1,
		.type = 7,
		.count = n,
		.compare = {{compare, n * 8}},
		.n_compare = compare ? 1 : 0,
		.result = {{result, n * 8}},
		.n_result = result ? 1 : 0,
	};
	return msg_atomic(s->ep, a);
}

static int atomically(struct side *s, const struct place *at, uint64_t *operand, uint64_t *compare,
		      uint64_t *result, uint32_t n)
{
	struct msg_atomic a;
	uint64_t before = s->atomics;

	CHECK(!start_atomic(s, &a, at, operand, compare, result, n));
	until(s, &s->atomics, before + 1);
	return a.op.err;
}

static void test_atomic(void **state)
{
	enum { N = 500 };
	uint64_t add[4] = {1, 2, 3, 4}, before[4], nines[4] = {9, 9, 9, 9};
	uint64_t *mine, sum[4] = {N, 2 * N, 3 * N, 4 * N}, big[2000] = {0};
	struct place own, other, bad;
	struct msg_mem *mem;
	struct msg_atomic a;
	struct side s;

	(void)state;
	side_open(&s, &plain);
	warm_up(&s);
	mine = (uint64_t *)(void *)s.tx;
	memset(mine, 0, 32);
	CHECK(!msg_reg(s.dev, mine, 32, true, &mem, &own.key));
	own.addr = (uintptr_t)mine;
	swap(&s, &own, &other, sizeof(own));
	for (uint64_t i = 0; i < N; i++) {
		CHECK(!atomically(&s, &other, add, NULL, i % 2 ? before : NULL, 4));
		CHECK(i % 2 == 0 || (before[0] == i && before[3] == 4 * i));
	}
	meet(&s);
	CHECK(!memcmp(mine, sum, sizeof(sum)));
	meet(&s);
	sum[1]++; /* not what is there */
	CHECK(!atomically(&s, &other, nines, sum, before, 4));
	CHECK(before[0] == N && before[1] == 2 * N);
	meet(&s);
	CHECK(mine[0] == 9 && mine[1] == 2 * N && mine[3] == 9);
	/* Not its memory; too much of it; without a key; more than a packet holds. */
	bad = other;
	bad.addr += 8;
	CHECK(atomically(&s, &bad, add, NULL, NULL, 4) == -EACCES);
	bad.addr = UINT64_MAX - 8;
	CHECK(atomically(&s, &bad, add, NULL, NULL, 4) == -EACCES);
	bad = other;
	bad.key ^= 0x10;
	CHECK(atomically(&s, &bad, add, NULL, before, 4) == -EACCES);
	CHECK(start_atomic(&s, &a, &other, big, NULL, NULL, 2000) == -EMSGSIZE);
	meet(&s);
	CHECK(mine[0] == 9 && mine[1] == 2 * N && mine[3] == 9);
	meet(&s);
	msg_dereg(mem);
	side_close(&s);
}

static void test_written(void **state)
{
	struct place own, other;
	struct msg_mem *mem;
	struct side s;
	struct op op;

	(void)state;
	side_open(&s, &plain);
	CHECK(!msg_reg(s.dev, s.rx, LONGEST, true, &mem, &own.key));
	own.addr = (uintptr_t)s.rx;
	swap(&s, &own, &other, sizeof(own));
	for (uint64_t i = 0; i < 20; i++) {
		size_t len = i % 2 ? LONGEST : 10;

		fill(s.tx, len, i);
		op = (struct op){.msg = {.kind = MSG_OP_WRITE,
					 .flags = MSG_OP_DATA,
					 .peer = s.peer,
					 .data = 1000 + i,
					 .iov = {{s.tx, len}},
					 .n_iov = 1,
					 .remote = {{other.addr, len, other.key}},
					 .n_remote = 1}};
		CHECK(!msg_rma(s.ep, &op.msg));
		finish(&s, &op);
		CHECK(!op.msg.err);
		until(&s, &s.written, i + 1);
		CHECK(s.written_data == 1000 + i && s.written_len == len);
		check_filled(s.rx, len, i);
		meet(&s);
	}
	msg_dereg(mem);
	side_close(&s);
}

/* Whatever waits for one that was killed ends, with an error, in bounded time. */
static void test_death(void **state)
{
	struct op send[3], recv[2], late;
	struct side s;
	int err;

	side_open(&s, *state);
	warm_up(&s);
	if (s.me) {
		meet(&s);
		pause();
	}
	start_recv(&s, &recv[0], s.rx, s.peer, 1, 0, 100);
	start_recv(&s, &recv[1], s.rx, s.peer, 2, 0, 100000);
	meet(&s);
	CHECK(!kill(s.child, SIGKILL));
	CHECK(waitpid(s.child, NULL, 0) == s.child);
	alarm(60);
	try_send(&s, &send[0], s.tx, 3, 100000, MSG_OP_TAGGED);
	try_send(&s, &send[1], s.tx, 4, 100, MSG_OP_TAGGED | MSG_OP_DELIVER);
	try_send(&s, &send[2], s.tx, 4, 5000, MSG_OP_TAGGED);
	for (size_t i = 0; i < 3; i++)
		finish(&s, &send[i]);
	CHECK(send[0].msg.err == -EHOSTUNREACH && send[1].msg.err == -EHOSTUNREACH);
	CHECK(!send[2].msg.err || send[2].msg.err == -EHOSTUNREACH); /* it may have left */
	finish(&s, &recv[0]);
	finish(&s, &recv[1]);
	CHECK(recv[0].msg.err == -EHOSTUNREACH && recv[1].msg.err == -EHOSTUNREACH);
	late = send[1];
	err = msg_send(s.ep, &late.msg);
	CHECK(err == -EHOSTUNREACH);
	side_free(&s);
	alarm(0);
}

/* Limits that differ: who gets a message that is too long has an error, and who has sent it. */
static void test_other_limit(void **state)
{
	struct msg_ep_conf mode = {.eager_max = 1024};
	struct op recv, send;
	struct side s;

	(void)state;
	side_open(&s, &mode);
	warm_up(&s);
	start_recv(&s, &recv, s.rx, s.peer, 1, 0, 8000);
	meet(&s);
	if (!s.me) {
		start_send(&s, &send, s.tx, 1, 8000, MSG_OP_TAGGED);
		finish(&s, &send);
	}
	finish(&s, &recv);
	CHECK(recv.msg.err == -EHOSTUNREACH);
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_put),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test_prestate(test_storm, (void *)&speculating),
		cmocka_unit_test_prestate(test_storm, (void *)&writing),
		cmocka_unit_test(test_peek),
		cmocka_unit_test_prestate(test_multi, (void *)&plain),
		cmocka_unit_test_prestate(test_multi, (void *)&writing),
		cmocka_unit_test(test_atomic),
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_other_limit),
		cmocka_unit_test_prestate(test_death, (void *)&speculating),
		cmocka_unit_test_prestate(test_death, (void *)&writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
