/* Packets between endpoints: what is encoded is decoded, and nothing else is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "util_rand.h"
#include "msg_wire.h"

static struct msg_pkt any(struct util_rand *r, uint8_t type)
{
	struct msg_pkt p = {.type = type,
			    .flags = (uint8_t)util_rand_below(r, 8),
			    .ip = (uint32_t)util_rand_next(r),
			    .qkey = (uint32_t)util_rand_next(r),
			    .data = (uint32_t)util_rand_next(r),
			    .tag = util_rand_next(r),
			    .id = (uint32_t)util_rand_next(r)};

	if (type == MSG_ATOMIC) {
		p.flags = (uint8_t)util_rand_below(r, 32);
		p.len = util_rand_below(r, 100);
		p.n_seg = 1;
		p.seg[0].addr = util_rand_next(r);
		p.seg[0].key = (uint32_t)util_rand_next(r);
		p.code = (uint8_t)util_rand_next(r);
		p.kind = (uint8_t)util_rand_next(r);
		p.count = (uint32_t)util_rand_next(r);
		return p;
	}
	if (type == MSG_RTR) {
		p.len = util_rand_next(r);
		p.n_seg = 1;
		p.seg[0].addr = util_rand_next(r);
		p.seg[0].key = (uint32_t)util_rand_next(r);
		p.ignore = util_rand_next(r);
		p.seen = (uint32_t)util_rand_next(r);
		p.ahead = (uint32_t)util_rand_next(r);
		return p;
	}
	p.id2 = (uint32_t)util_rand_next(r);
	if (type == MSG_EAGER || type == MSG_ATOMIC_RSP)
		p.len = util_rand_below(r, 200);
	if (type == MSG_HERE)
		p.len = 4 * (1 + util_rand_below(r, MSG_ADDRS));
	if (type != MSG_RTS && type != MSG_PUT && type != MSG_CTS)
		return p;
	p.n_seg = (unsigned int)util_rand_below(r, MSG_SEGS + 1);
	for (unsigned int i = 0; i < p.n_seg; i++) {
		p.seg[i] = (struct msg_seg){.addr = util_rand_next(r),
					    .key = (uint32_t)util_rand_next(r),
					    .len = (uint32_t)util_rand_next(r)};
		p.len += p.seg[i].len;
	}
	return p;
}

static void test_round(void **state)
{
	struct util_rand r;

	(void)state;
	util_rand_seed(&r, 1);
	for (int round = 0; round < 2000; round++)
		for (unsigned int type = MSG_EAGER; type <= MSG_TYPE_LAST; type++) {
			struct msg_pkt p = any(&r, (uint8_t)type), q;
			uint8_t buf[MSG_WIRE_MAX + 200] = {0};
			size_t body, len = msg_wire_encode(&p, buf);

			assert_in_range(len, MSG_HDR, MSG_WIRE_MAX);
			if (type == MSG_EAGER || type == MSG_ATOMIC_RSP || type == MSG_HERE)
				len += p.len;
			if (type == MSG_ATOMIC)
				len += p.len *
				       (!!(p.flags & MSG_F_OPERAND) + !!(p.flags & MSG_F_COMPARE));
			assert_int_equal(msg_wire_decode(&q, buf, len, &body), 0);
			assert_int_equal(msg_wire_seq(buf), p.seq);
			assert_memory_equal(&p, &q, sizeof(p));
			/* one byte less, or more, is not it */
			assert_int_not_equal(msg_wire_decode(&q, buf, len - 1, &body), 0);
			assert_int_not_equal(msg_wire_decode(&q, buf, len + 1, &body), 0);
		}
}

/* Any bytes: no more is read than there is (the sanitizers look), and what is accepted fits. */
static void test_any_bytes(void **state)
{
	struct util_rand r;

	(void)state;
	util_rand_seed(&r, 2);
	for (int round = 0; round < 200000; round++) {
		size_t len = util_rand_below(&r, MSG_WIRE_MAX + 40), body;
		uint8_t *buf = malloc(len ? len : 1);
		struct msg_pkt p;

		assert_non_null(buf);
		util_rand_bytes(&r, buf, len);
		if (len > 2) {
			buf[0] = (uint8_t)util_rand_below(&r, MSG_TYPE_LAST + 2);
			buf[2] = (uint8_t)util_rand_below(&r, MSG_SEGS + 2);
		}
		if (!msg_wire_decode(&p, buf, len, &body)) {
			assert_true(body <= len);
			assert_true(p.n_seg <= MSG_SEGS);
			assert_true(p.type != MSG_HERE || len - body <= 4 * MSG_ADDRS);
		}
		free(buf);
	}
}

/* Lists of addresses: whole ones, at least one and not too many, and as long as is said. */
static void test_lists(void **state)
{
	(void)state;
	for (uint64_t said = 0; said < 80; said++)
		for (size_t is = 0; is < 80; is++) {
			struct msg_pkt p = {.type = MSG_HERE, .id = 7, .len = said}, q;
			uint8_t buf[MSG_WIRE_MAX + 80] = {0};
			size_t body, len = msg_wire_encode(&p, buf) + is;
			bool right = said == is && said && said % 4 == 0 && said <= 64;

			assert_int_equal(!msg_wire_decode(&q, buf, len, &body), right);
			if (right)
				assert_int_equal(len - body, said);
		}
}

/* Datagrams of endpoints that want to be connected. */
static void test_hello(void **state)
{
	struct util_rand r;

	(void)state;
	util_rand_seed(&r, 3);
	for (int round = 0; round < 20000; round++) {
		struct msg_hello h = {.type = (uint8_t)(1 + util_rand_below(&r, 2)),
				      .mtu = (uint8_t)(1 + util_rand_below(&r, 5)),
				      .reads = (uint8_t)(1 + util_rand_below(&r, 255)),
				      .qpn = (uint32_t)(1 + util_rand_below(&r, 0xffffff)),
				      .psn = (uint32_t)util_rand_below(&r, 0x1000000),
				      .other = (uint32_t)util_rand_below(&r, 0x1000000),
				      .path = (uint8_t)util_rand_below(&r, STRIPE_PATHS_MAX),
				      .from = {.qpn = (uint32_t)util_rand_next(&r),
					       .qkey = (uint32_t)util_rand_next(&r),
					       .lid = (uint16_t)util_rand_next(&r)},
				      .token = (uint32_t)util_rand_next(&r),
				      .epoch = (uint16_t)util_rand_next(&r),
				      .at = {.lid = (uint16_t)util_rand_next(&r),
					     .lmc = (uint8_t)util_rand_below(&r, 8)}},
				 q;
		uint8_t buf[MSG_HELLO_LEN + 1] = {0}, again[MSG_HELLO_LEN];

		util_rand_bytes(&r, h.from.gid, sizeof(h.from.gid));
		util_rand_bytes(&r, h.at.gid, sizeof(h.at.gid));
		msg_hello_encode(&h, buf);
		assert_int_equal(msg_hello_decode(&q, buf, MSG_HELLO_LEN), 0);
		msg_hello_encode(&q, again);
		assert_memory_equal(buf, again, MSG_HELLO_LEN);
		assert_memory_equal(&h.from, &q.from, sizeof(h.from));
		assert_memory_equal(h.at.gid, q.at.gid, sizeof(h.at.gid));
		assert_true(h.path == q.path && h.token == q.token && h.epoch == q.epoch &&
			    h.at.lid == q.at.lid && h.at.lmc == q.at.lmc);
		assert_int_not_equal(msg_hello_decode(&q, buf, MSG_HELLO_LEN - 1), 0);
		assert_int_not_equal(msg_hello_decode(&q, buf, MSG_HELLO_LEN + 1), 0);
		/* Any bit: refused, or within bounds. */
		buf[util_rand_below(&r, MSG_HELLO_LEN)] ^= 1 << util_rand_below(&r, 8);
		if (!msg_hello_decode(&q, buf, MSG_HELLO_LEN))
			assert_true(q.qpn && q.qpn <= 0xffffff && q.psn <= 0xffffff && q.reads &&
				    q.mtu >= 1 && q.mtu <= 5 && q.other <= 0xffffff &&
				    !q.from.zero && q.path < STRIPE_PATHS_MAX && q.at.lmc <= 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_hello),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
