/* Short messages, reads and writes straight from the application's memory, where that has to be
 * registered: bytes are right whatever is done to the memory between them, and everything that is
 * held is let go, once. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_rand.h"
#include "ep_rig.h"
#include "msg_ep.h"

static const struct msg_ep_conf automatic, always = {.reuse = MSG_REUSE_YES},
					   never = {.reuse = MSG_REUSE_NO};

/* From which use on, whatever the size, and whatever it costs on this machine. */
static void set_least(struct side *s, uint32_t least)
{
	uint32_t all[MSG_COSTS_CLASSES];

	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++)
		all[i] = least;
	msg_reuse_init(&s->ep->reuse, all, true);
}

static struct msg_stats stats(struct side *s)
{
	struct msg_stats st;

	msg_ep_stats(s->ep, &st);
	return st;
}

/* Each sends one to the other; the buffer is somebody else's as soon as the send is done. */
static void pass(struct side *s, uint8_t *tx, size_t len, uint64_t seed, uint8_t flags)
{
	struct op send, recv;

	start_recv(s, &recv, s->rx, s->peer, 1, 0, len);
	meet(s);
	fill(tx, len, seed + (uint64_t)s->me);
	start_send(s, &send, tx, 1, len, MSG_OP_TAGGED | flags);
	if (!(flags & MSG_OP_INJECT))
		finish(s, &send);
	memset(tx, 0xdd, len);
	finish(s, &recv);
	finish(s, &send);
	CHECK(!recv.msg.err && !send.msg.err && recv.msg.len == len);
	CHECK(send.msg.len == len && !send.msg.id && !send.msg.hold[0].mr);
	check_filled(s->rx, len, seed + !s->me);
}

/* A buffer is used directly from its fifth use on, one that is not used so often never; nor is what
 * is injected. */
static void test_often(void **state)
{
	enum { TIMES = 25, LEAST = 5, LEN = 4096 };
	struct msg_stats before, after;
	struct side s;

	side_open(&s, *state);
	set_least(&s, LEAST);
	before = stats(&s);
	for (unsigned int i = 0; i < TIMES; i++)
		pass(&s, s.tx, LEN, i, 0);
	after = stats(&s);
	CHECK(after.eager - before.eager == TIMES);
	if (s.dev->all || !s.dev->cached) {
		CHECK(after.direct == 0);
	} else {
		/* Not each time: who watches may not be able to say that nothing has changed. */
		CHECK(after.direct > TIMES / 3 && after.direct <= TIMES - LEAST + 1);
		CHECK(after.direct_bytes == LEN * after.direct);
		CHECK(after.reuse_buffers == 1 && after.reuse_frequent == 1 && after.reuse_bytes);
		CHECK(after.reuse == MSG_REUSE_GROWS);
	}
	before = after;
	for (unsigned int i = 0; i < 2 * LEAST; i++)
		pass(&s, s.tx + (i % 3 + 1) * (size_t)10000, LEN, i, 0);
	for (unsigned int i = 0; i < 2 * LEAST; i++)
		pass(&s, s.tx, LEN, i, MSG_OP_INJECT);
	for (unsigned int i = 0; i < 2 * LEAST; i++)
		pass(&s, s.tx, 100, i, 0); /* that goes inline */
	after = stats(&s);
	CHECK(after.direct == before.direct);
	meet(&s);
	side_close(&s);
}

/* What may be used without being registered, or what the user does not want, is not counted. */
static void test_off(void **state)
{
	struct msg_stats st;
	struct side s;

	side_open(&s, *state);
	for (unsigned int i = 0; i < 20; i++)
		pass(&s, s.tx, EAGER_MAX, i, 0);
	st = stats(&s);
	CHECK(!st.direct && st.reuse == MSG_REUSE_OFF && !st.reuse_bytes);
	side_close(&s);
}

static void test_sizes(void **state)
{
	struct msg_stats st;
	struct side s;

	side_open(&s, *state);
	for (size_t len = 64; len <= EAGER_MAX; len *= 2)
		for (unsigned int i = 0; i < 6; i++) {
			pass(&s, s.tx + i * 7, len, i + len, 0);
			pass(&s, s.tx + i * 7, len - 1, i, i % 2 ? MSG_OP_DELIVER : 0);
		}
	st = stats(&s);
	CHECK(!s.dev->all == (st.direct > 0));
	meet(&s);
	side_close(&s);
}

/* ---- memory that changes between messages ---- */

enum { AREA = 64 * 4096, CHANGES = 7 };

static uint8_t *map_at(void *at)
{
	uint8_t *p = mmap(at, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* A child writes to what it has got of it, and goes. */
static void fork_and_write(uint8_t *p)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		memset(p, 0x5a, AREA);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
}

static uint8_t *move_away(uint8_t *p)
{
	uint8_t *q = map_at(NULL);

	/* What is watched in part can not be moved as a whole. */
	if (mremap(p, AREA, AREA, MREMAP_MAYMOVE | MREMAP_FIXED, q) == MAP_FAILED)
		CHECK(!munmap(p, AREA));
	else
		memset(q, 0xee, AREA);
	CHECK(!munmap(q, AREA));
	return map_at(p);
}

/* The same addresses, unless somebody else has taken them, and other pages behind them. */
static uint8_t *change(uint8_t *p, unsigned int how)
{
	switch (how) {
	case 1:
		CHECK(!munmap(p, AREA));
		return map_at(p);
	case 2:
		CHECK(!madvise(p, AREA, MADV_DONTNEED));
		return p;
	case 3:
		return move_away(p);
	case 4:
		fork_and_write(p);
		return p;
	case 5: /* of which only a part goes */
		CHECK(!munmap(p + 4096, 8 * 4096));
		CHECK(mmap(p + 4096, 8 * 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
		return p;
	case 6: /* over it, at once */
		CHECK(mmap(p, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			   -1, 0) == p);
		return p;
	default:
		return p;
	}
}

/* Copied; registered; used as registered. Weft's own device finds the new pages, whatever they were
 * registered as; another one would send the old: so there has to be a new registration, before
 * there is another use. */
static void use_again(struct side *s, uint8_t *tx, unsigned int i, bool other_pages)
{
	uint64_t made = stats(s).cache_misses;

	for (unsigned int end = i + 4; i < end; i++) {
		uint64_t before = stats(s).direct;

		pass(s, tx + (size_t)4000, 512u << i % 5, i, 0);
		if (s->dev->cached && other_pages && stats(s).direct > before)
			CHECK(stats(s).cache_misses > made);
	}
}

static void test_changes(void **state)
{
	uint8_t *tx = map_at(NULL);
	struct msg_stats st;
	struct side s;

	side_open(&s, *state);
	for (unsigned int i = 0; i < 2 * CHANGES * CHANGES; i++) {
		unsigned int how = i % 2 ? i / 2 % CHANGES : i / 2 / CHANGES;

		tx = change(tx, how);
		use_again(&s, tx, i, how && how != 4);
	}
	st = stats(&s);
	CHECK(!s.dev->all == (st.direct > 0));
	meet(&s);
	side_close(&s);
	munmap(tx, AREA);
}

/* What is allocated, sent from a few times, and freed, each time. */
static void test_allocated(void **state)
{
	struct side s;

	side_open(&s, *state);
	for (unsigned int i = 0; i < 40; i++) {
		size_t len = i % 2 ? 200000 : 8192 + 64 * i;
		uint8_t *p = malloc(len);

		CHECK(p);
		for (unsigned int k = 0; k < 3; k++)
			pass(&s, p, 6000, i + k, 0);
		free(p);
	}
	meet(&s);
	side_close(&s);
}

/* ---- many ---- */

/* From one buffer, all at once. */
static void test_at_once(void **state)
{
	enum { N = 48, LEN = 3000 };
	struct op send[N], recv[N];
	struct side s;

	side_open(&s, *state);
	for (uint64_t round = 0; round < 5; round++) {
		for (unsigned int i = 0; i < N; i++)
			start_recv(&s, &recv[i], s.rx + i * (size_t)LEN, s.peer, i, 0, LEN);
		meet(&s);
		fill(s.tx, LEN, round + (uint64_t)s.me);
		for (unsigned int i = 0; i < N; i++)
			start_send(&s, &send[i], s.tx, i, LEN, MSG_OP_TAGGED);
		for (unsigned int i = 0; i < N; i++)
			finish(&s, &send[i]);
		memset(s.tx, 0xdd, LEN);
		for (unsigned int i = 0; i < N; i++) {
			finish(&s, &recv[i]);
			CHECK(!send[i].msg.err && !recv[i].msg.err);
			check_filled(s.rx + i * (size_t)LEN, LEN, round + !s.me);
		}
		meet(&s);
	}
	CHECK(!s.dev->cached || !s.dev->cache.in_use);
	side_close(&s);
}

/* A program that uses no buffer twice is left alone after a while. */
static void test_no_reuse(void **state)
{
	enum { N = 32, LEN = 400, ALL = MSG_REUSE_FIRST + MSG_REUSE_WINDOW + 2 * N };
	struct op send[N], recv[N];
	struct msg_stats st;
	struct side s;

	side_open(&s, *state);
	set_least(&s, 5);
	for (unsigned int i = 0; i < ALL; i += N) {
		for (unsigned int k = 0; k < N; k++)
			start_recv(&s, &recv[k], s.rx + k * (size_t)LEN, s.peer, 1, 0, LEN);
		meet(&s);
		for (unsigned int k = 0; k < N; k++)
			start_send(&s, &send[k], s.tx + (i + k) * (size_t)LEN, 1, LEN,
				   MSG_OP_TAGGED);
		for (unsigned int k = 0; k < N; k++) {
			finish(&s, &send[k]);
			finish(&s, &recv[k]);
		}
	}
	st = stats(&s);
	CHECK(!st.direct);
	if (!s.dev->all && s.dev->cached) {
		CHECK(st.reuse == MSG_REUSE_RESTS && st.reuse_stops == 1 && st.reuse_rests == 1);
		CHECK(!st.reuse_bytes && !st.reuse_buffers);
	}
	meet(&s);
	side_close(&s);
}

/* ---- remote memory ---- */

struct window {
	uint64_t addr;
	uint32_t key;
};

static struct op rma(struct side *s, enum msg_op_kind kind, const struct window *w, size_t off,
		     uint8_t *buf, size_t len)
{
	return (struct op){.msg = {.kind = (uint8_t)kind,
				   .peer = s->peer,
				   .iov = {{buf, len}},
				   .n_iov = 1,
				   .remote = {{w->addr + off, len, w->key}},
				   .n_remote = 1}};
}

static void do_rma(struct side *s, struct op *op)
{
	CHECK(!msg_rma(s->ep, &op->msg));
	finish(s, op);
	CHECK(!op->msg.err && !op->msg.id && !op->msg.bounce && !op->msg.hold[0].mr);
}

/* Written, and read back into the same buffer. */
static void there_and_back(struct side *s, const struct window *w, uint8_t *buf, size_t len,
			   uint64_t seed)
{
	struct op op = rma(s, MSG_OP_WRITE, w, 0, buf, len);

	fill(buf, len, seed);
	do_rma(s, &op);
	CHECK(op.msg.len == len);
	memset(buf, 0xdd, len);
	op = rma(s, MSG_OP_READ, w, 0, buf, len);
	do_rma(s, &op);
	check_filled(buf, len, seed);
}

/* Several pieces on both sides, unlike each other. */
static void in_pieces(struct side *s, const struct window *w, uint8_t *buf)
{
	struct op op = rma(s, MSG_OP_WRITE, w, 0, buf, 1000);

	op.msg.iov[1] = (struct iovec){buf + 1000, 0};
	op.msg.iov[2] = (struct iovec){buf + 1000, 500};
	op.msg.n_iov = 3;
	op.msg.remote[0].len = 700;
	op.msg.remote[1] = (struct msg_remote){w->addr + 700, 800, w->key};
	op.msg.n_remote = 2;
	fill(buf, 1500, 9);
	do_rma(s, &op);
	memset(buf, 0, 1500);
	op.done = false;
	op.msg.kind = MSG_OP_READ;
	do_rma(s, &op);
	check_filled(buf, 1500, 9);
}

static void test_rma(void **state)
{
	struct window own, other;
	struct msg_stats st;
	struct msg_mem *mem;
	struct side s;
	unsigned int n = 0;

	side_open(&s, *state);
	if (s.ep->conf.reuse == MSG_REUSE_AUTO)
		set_least(&s, 4);
	CHECK(!msg_reg(s.dev, s.rx, LONGEST, true, &mem, &own.key));
	own.addr = (uintptr_t)s.rx;
	swap(&s, &own, &other, sizeof(own));
	for (size_t len = 1; len <= 4 * EAGER_MAX; len *= 2)
		for (unsigned int i = 0; i < 4; i++, n++)
			there_and_back(&s, &other, s.tx + (i % 2) * 100000, len, i + len);
	in_pieces(&s, &other, s.tx);
	st = stats(&s);
	CHECK(st.reads == n + 1 && st.writes == n + 1);
	if (s.dev->all || s.ep->conf.reuse == MSG_REUSE_NO)
		CHECK(!st.direct);
	else if (s.dev->cached)
		CHECK(st.direct > n / 4 && st.direct <= n);
	else
		CHECK((st.direct > 0) == (s.ep->conf.reuse == MSG_REUSE_YES));
	meet(&s);
	msg_dereg(mem);
	side_close(&s);
}

/* More than there are buffers for, each with bytes of its own. */
static void test_rma_many(void **state)
{
	enum { N = 300, LEN = 700 };
	static struct op op[N];
	struct window own, other;
	struct msg_mem *mem;
	struct side s;

	side_open(&s, *state);
	CHECK(!msg_reg(s.dev, s.rx, LONGEST, true, &mem, &own.key));
	own.addr = (uintptr_t)s.rx;
	swap(&s, &own, &other, sizeof(own));
	for (unsigned int kind = 0; kind < 2; kind++) {
		for (unsigned int i = 0; i < N; i++) {
			uint8_t *buf = s.tx + i * (size_t)LEN;

			if (!kind)
				fill(buf, LEN, i);
			else
				memset(buf, 0, LEN);
			op[i] = rma(&s, kind ? MSG_OP_READ : MSG_OP_WRITE, &other, i * (size_t)LEN,
				    buf, LEN);
			CHECK(!msg_rma(s.ep, &op[i].msg));
		}
		for (unsigned int i = 0; i < N; i++) {
			finish(&s, &op[i]);
			CHECK(!op[i].msg.err);
			check_filled(s.tx + i * (size_t)LEN, LEN, i);
		}
	}
	meet(&s);
	msg_dereg(mem);
	side_close(&s);
}

/* ---- the other one goes ---- */

enum { UNDER_WAY = 40 };

/* Two that have talked, of which the second does not move any more; these are for it. */
static void start_to_nobody(struct side *s, const struct msg_ep_conf *mode, struct op *op)
{
	side_open(s, mode);
	warm_up(s);
	if (s->me) {
		meet(s);
		pause();
	}
	meet(s);
	CHECK(!kill(s->child, SIGSTOP));
	for (unsigned int i = 0; i < UNDER_WAY; i++)
		try_send(s, &op[i], s->tx + i % 3 * 4096, 1, 3000, MSG_OP_TAGGED);
	/* What is in shared memory has arrived; what is in the network has not. */
	if (s->dev->cached && getenv("WEFT_RD_SHM"))
		CHECK(!op[UNDER_WAY - 1].done && s->dev->cache.in_use);
}

static void check_let_go(const struct side *s)
{
	CHECK(!s->dev->cached || !s->dev->cache.in_use);
}

static void test_death(void **state)
{
	static struct op op[UNDER_WAY], put[8];
	struct window nowhere = {(uintptr_t)&nowhere, 1};
	struct side s;

	start_to_nobody(&s, *state, op);
	for (unsigned int i = 0; i < 8; i++) {
		put[i] = rma(&s, i % 2 ? MSG_OP_READ : MSG_OP_WRITE, &nowhere, 0, s.tx, 500 * i);
		if (msg_rma(s.ep, &put[i].msg))
			put[i].done = true;
	}
	CHECK(!kill(s.child, SIGKILL));
	CHECK(waitpid(s.child, NULL, 0) == s.child);
	for (unsigned int i = 0; i < UNDER_WAY; i++) {
		finish(&s, &op[i]); /* `done` sees that it is only once */
		CHECK(!op[i].msg.err || op[i].msg.err == -EHOSTUNREACH);
	}
	for (unsigned int i = 0; i < 8; i++)
		finish(&s, &put[i]);
	check_let_go(&s);
	side_free(&s);
	alarm(0);
}

static void test_close(void **state)
{
	static struct op op[UNDER_WAY];
	struct side s;

	start_to_nobody(&s, *state, op);
	msg_ep_close(s.ep);
	check_let_go(&s);
	msg_dev_close(s.dev);
	CHECK(!kill(s.child, SIGKILL));
	CHECK(waitpid(s.child, NULL, 0) == s.child);
	free(s.tx);
	free(s.rx);
	close(s.sock);
	alarm(0);
}

/* ---- everything ---- */

/* Both run the same program, as chance will have it, for two seconds. */
static void test_storm(void **state)
{
	enum { ROUNDS = 2000, N = 8, ROOM = 8192 };
	const uint64_t seed = 4711;
	uint64_t end = util_now_ns() + 2 * UTIL_NS_PER_S;
	struct op send[N], recv[N];
	uint8_t *tx = map_at(NULL);
	struct util_rand r;
	struct side s;

	side_open(&s, *state);
	if (s.ep->conf.reuse == MSG_REUSE_AUTO)
		set_least(&s, 3);
	util_rand_seed(&r, seed);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t n = 1 + (uint32_t)util_rand_below(&r, N);
		bool own = util_now_ns() < end, other;
		size_t len[N];

		swap_served(&s, &own, &other, sizeof(own));
		if (!own || !other)
			break;
		if (util_rand_below(&r, 4) == 0)
			tx = change(tx, (unsigned int)util_rand_below(&r, CHANGES));
		for (uint32_t i = 0; i < n; i++) {
			len[i] = 1 + util_rand_below(&r, 1u << (6 + util_rand_below(&r, 8)));
			start_recv(&s, &recv[i], s.rx + i * (size_t)ROOM, s.peer, i, 0, ROOM);
		}
		meet(&s);
		for (uint32_t i = 0; i < n; i++) {
			uint8_t *from =
				tx + util_rand_below(&r, 3) * (size_t)4096 + i * (size_t)(3 * ROOM);
			uint8_t flags = (uint8_t)(util_rand_below(&r, 6) ? 0 : MSG_OP_INJECT);

			fill(from, len[i], round + i + (uint64_t)s.me);
			start_send(&s, &send[i], from, i, len[i], MSG_OP_TAGGED | flags);
			if (flags)
				memset(from, 0xcc, len[i]);
		}
		for (uint32_t i = 0; i < n; i++) {
			finish(&s, &send[i]);
			memset(send[i].msg.iov[0].iov_base, 0xdd, len[i]);
		}
		for (uint32_t i = 0; i < n; i++) {
			finish(&s, &recv[i]);
			CHECK(!recv[i].msg.err && recv[i].msg.len == len[i]);
			check_filled(s.rx + i * (size_t)ROOM, len[i], round + i + !s.me);
		}
	}
	meet(&s);
	check_let_go(&s);
	side_close(&s);
	munmap(tx, AREA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_often, (void *)&automatic),
		cmocka_unit_test_prestate(test_off, (void *)&never),
		cmocka_unit_test_prestate(test_sizes, (void *)&always),
		cmocka_unit_test_prestate(test_changes, (void *)&always),
		cmocka_unit_test_prestate(test_allocated, (void *)&always),
		cmocka_unit_test_prestate(test_at_once, (void *)&always),
		cmocka_unit_test_prestate(test_no_reuse, (void *)&automatic),
		cmocka_unit_test_prestate(test_rma, (void *)&automatic),
		cmocka_unit_test_prestate(test_rma, (void *)&always),
		cmocka_unit_test_prestate(test_rma, (void *)&never),
		cmocka_unit_test_prestate(test_rma_many, (void *)&automatic),
		cmocka_unit_test_prestate(test_rma_many, (void *)&always),
		cmocka_unit_test_prestate(test_death, (void *)&always),
		cmocka_unit_test_prestate(test_close, (void *)&always),
		cmocka_unit_test_prestate(test_storm, (void *)&automatic),
		cmocka_unit_test_prestate(test_storm, (void *)&always),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
