/* Endpoints of two processes: messages of all lengths arrive whole, once, and where they belong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "ep_rig.h"

static const size_t sizes[] = {0,     1,     200,     5000,   EAGER_MAX, EAGER_MAX + 1,
			       40000, 65536, 1 << 20, LONGEST};

/* The receive is there first, or the message. */
static void test_sizes(void **state)
{
	struct side s;

	side_open(&s, *state);
	for (int early = 0; early < 2; early++)
		for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
			struct op send, recv;
			size_t len = sizes[k];

			fill(s.tx, len, k + (uint64_t)s.me);
			if (early)
				start_recv(&s, &recv, s.rx, s.peer, k, 0, LONGEST);
			meet(&s);
			start_send(&s, &send, s.tx, k, len, MSG_OP_TAGGED | MSG_OP_DATA);
			if (!early) {
				usleep(1000);
				start_recv(&s, &recv, s.rx, s.peer, k, 0, LONGEST);
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

	side_open(&s, *state);
	for (size_t i = 0; i < 6; i++) {
		fill(s.tx, 20000, i);
		start_send(&s, &send[i], s.tx, 100 + i % 2, i % 3 ? 20000 : 100, MSG_OP_TAGGED);
		if (i % 3 == 0)
			finish(&s, &send[i]);
		else
			meet(&s); /* the other one receives in step: the buffer is used again */
		if (i % 3 == 0)
			continue;
		start_recv(&s, &recv[i], s.rx, i % 2 ? MSG_ANY_SRC : s.peer, 100, 1, 20000);
		finish(&s, &recv[i]);
		CHECK(!recv[i].msg.err);
		if (recv[i].msg.len == 100) { /* the short one came first */
			start_recv(&s, &recv[i], s.rx, s.peer, 100, 1, 20000);
			finish(&s, &recv[i]);
		}
		CHECK(recv[i].msg.len == 20000 && recv[i].msg.tag == 100 + i % 2);
		check_filled(s.rx, 20000, i);
		finish(&s, &send[i]);
		meet(&s);
	}
	/* too long for its receive */
	for (size_t k = 2; k < 9; k += 3) {
		start_recv(&s, &recv[0], s.rx, s.peer, 7, 0, sizes[k] / 2);
		meet(&s);
		fill(s.tx, sizes[k], 3);
		start_send(&s, &send[0], s.tx, 7, sizes[k], MSG_OP_TAGGED);
		finish(&s, &recv[0]);
		finish(&s, &send[0]);
		CHECK(recv[0].msg.err == -EMSGSIZE && recv[0].msg.len == sizes[k] / 2);
		CHECK(recv[0].msg.over == sizes[k] - sizes[k] / 2);
		check_filled(s.rx, sizes[k] / 2, 3);
		meet(&s);
	}
	start_recv(&s, &recv[0], s.rx, s.peer, 9, 0, 10);
	CHECK(!msg_cancel(s.ep, &recv[0].msg));
	finish(&s, &recv[0]);
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
	struct msg_mem *mr;

	side_open(&s, *state);
	fill(s.tx, LONGEST, 10 + (uint64_t)s.me);
	memset(s.rx, 0, LONGEST);
	CHECK(!msg_reg(s.dev, s.tx, LONGEST, true, &mr, &own.key));
	own.addr = (uintptr_t)s.tx;
	swap(&s, &own, &other, sizeof(own));
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
	/* without a key, which ends a connection */
	op.done = false;
	op.msg.remote[0].key ^= 0x5a5a;
	if (!s.me) {
		CHECK(!msg_rma(s.ep, &op.msg));
		finish(&s, &op);
		CHECK(op.msg.err == -EACCES);
	}
	meet(&s);
	msg_dereg(mr);
	side_close(&s);
}

/* ---- memory that changes between messages ---- */

enum { AREA = 300000 };

/* If possible, there. */
static uint8_t *map_at(void *at)
{
	uint8_t *p = mmap(at, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

/* The same addresses, unless somebody else has taken them, and other pages behind them. */
static uint8_t *change(uint8_t *p, unsigned int how)
{
	uint8_t *q;

	if (how == 1) {
		CHECK(!munmap(p, AREA));
		p = map_at(p);
	} else if (how == 2) {
		CHECK(!madvise(p, AREA, MADV_DONTNEED));
	} else if (how == 3) {
		q = map_at(NULL);
		CHECK(mremap(p, AREA, AREA, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
		p = map_at(p);
		memset(q, 0xee, AREA);
		CHECK(!munmap(q, AREA));
	}
	return p;
}

static void pass(struct side *s, const uint8_t *tx, uint8_t *rx, size_t len, uint64_t seed)
{
	struct op send, recv;

	start_recv(s, &recv, rx, s->peer, 1, 0, len);
	meet(s);
	start_send(s, &send, tx, 1, len, MSG_OP_TAGGED);
	finish(s, &recv);
	finish(s, &send);
	CHECK(!recv.msg.err && !send.msg.err && recv.msg.len == len);
	check_filled(rx, len, seed + !s->me);
	meet(s);
}

static void test_memory(void **state)
{
	const char *cache = getenv("TEST_MSG_CACHE");
	struct msg_stats before, after;
	uint8_t *tx = map_at(NULL), *rx = map_at(NULL);
	struct side s;

	side_open(&s, *state);
	for (unsigned int i = 0; i < 40; i++) {
		/* All its pages: what is watched in part can not be moved as a whole. */
		size_t len = AREA - i;

		tx = change(tx, i % 4);
		rx = change(rx, i % 4);
		fill(tx, len, i + (unsigned int)s.me);
		msg_ep_stats(s.ep, &before);
		pass(&s, tx, rx, len, i);
		msg_ep_stats(s.ep, &after);
		if (!cache)
			continue; /* as the machine's speed has it */
		if (strcmp(cache, "on") != 0)
			CHECK(!after.cache_hits && !after.cache_misses);
		else if (i % 4)
			CHECK(after.cache_misses > before.cache_misses);
	}
	/* Not each time: who watches may not be able to say in time that nothing has changed. */
	CHECK(!cache || strcmp(cache, "on") != 0 || after.cache_hits);
	/* From memory that nobody may write to; it can not be kept with all rights everywhere. */
	fill(tx, AREA, 50 + (unsigned int)s.me);
	CHECK(!mprotect(tx, AREA, PROT_READ));
	pass(&s, tx, rx, AREA, 50);
	side_close(&s);
	munmap(tx, AREA);
	munmap(rx, AREA);
}

int main(void)
{
	static struct msg_ep_conf modes[] = {{.write = false},
					     {.write = true},
					     {.speculate = true},
					     {.speculate = true, .usage = 80}};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_sizes, &modes[0]),
		cmocka_unit_test_prestate(test_rules, &modes[0]),
		cmocka_unit_test_prestate(test_rma, &modes[0]),
		cmocka_unit_test_prestate(test_memory, &modes[0]),
		cmocka_unit_test_prestate(test_memory, &modes[1]),
		cmocka_unit_test_prestate(test_memory, &modes[2]),
		cmocka_unit_test_prestate(test_sizes, &modes[1]),
		cmocka_unit_test_prestate(test_rules, &modes[1]),
		cmocka_unit_test_prestate(test_sizes, &modes[2]),
		cmocka_unit_test_prestate(test_rules, &modes[2]),
		cmocka_unit_test_prestate(test_sizes, &modes[3]),
		cmocka_unit_test_prestate(test_rules, &modes[3]),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
