/* The sender's half of the sequence space: case by case. test_rd_board_model.c has the rest. */
#include <errno.h>
#include <string.h>

#include "test_rd.h"
#include "rd_board.h"
#include "rd_rx.h"

#define MSS   1500u
#define FIRST (UINT32_MAX - 4) /* so that every test wraps around */

struct rig {
	struct rd_pool pool;
	struct rd_path p, q;
	struct rd_board a, b;
	uint64_t now;
};

static void rig_init(struct rig *r)
{
	rd_pool_init(&r->pool, 4);
	rd_path_init(&r->p, MSS, 1 << 20);
	rd_path_init(&r->q, MSS, 1 << 20);
	r->p.order = UINT32_MAX - 7;
	rd_board_init(&r->a, &r->pool, FIRST);
	rd_board_init(&r->b, &r->pool, 1000);
	r->now = SEC;
}

static void rig_free(struct rig *r)
{
	rd_board_free(&r->a);
	rd_board_free(&r->b);
	assert_int_equal(r->pool.n_used, 0);
	assert_int_equal(r->p.cc.flight, 0);
	assert_int_equal(r->q.cc.flight, 0);
	assert_true(rd_path_deadline(&r->p) == UINT64_MAX);
	rd_pool_free(&r->pool);
}

static void send_n(struct rig *r, uint32_t from, uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++)
		assert_int_equal(rd_board_send(&r->a, &r->p, FIRST + i, MSS, r->now), 0);
}

/* Everything before FIRST + next, and the numbers FIRST + next + 1 + i of the bits. */
static int ack(struct rig *r, uint32_t next, uint64_t bits)
{
	return rd_board_ack(&r->a, FIRST + next, &bits, 1, r->now, NULL, NULL);
}

static uint32_t first_lost(const struct rd_path *p)
{
	assert_non_null(rd_path_lost(p));
	return rd_path_lost(p)->psn;
}

static void test_size(void **state)
{
	(void)state;
	printf("path %zu, board %zu, rx %zu, record %zu bytes\n", sizeof(struct rd_path),
	       sizeof(struct rd_board), sizeof(struct rd_rx), sizeof(struct rd_sent));
	assert_true(sizeof(struct rd_path) + 2 * sizeof(struct rd_board) +
			    2 * sizeof(struct rd_rx) <
		    640);
}

/* Small flights need no ring of their own; a large one is freed when all is acknowledged. */
static void test_memory(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, RD_BOARD_FEW);
	assert_null(r.a.ring);
	send_n(&r, RD_BOARD_FEW, 992);
	assert_non_null(r.a.ring);
	assert_int_equal(r.a.cap, 1024);
	assert_int_equal(ack(&r, 999, 0), 999);
	assert_false(rd_board_empty(&r.a));
	assert_int_equal(ack(&r, 1000, 0), 1);
	assert_null(r.a.ring);
	assert_true(rd_board_empty(&r.a));
	assert_int_equal(r.pool.n_used, 0);
	assert_int_equal(r.pool.n_free, 4);
	rd_path_settle(&r.p, r.now);
	assert_int_equal(r.p.cc.flight, 0);
	rig_free(&r);
}

static void test_window(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	assert_true(rd_board_fits(&r.a, FIRST + RD_WINDOW - 1));
	assert_false(rd_board_fits(&r.a, FIRST + RD_WINDOW));
	assert_false(rd_board_fits(&r.a, FIRST - 1));
	send_n(&r, 0, RD_WINDOW);
	assert_int_equal(rd_board_send(&r.a, &r.p, FIRST + RD_WINDOW, MSS, r.now), -ENOSPC);
	assert_int_equal(ack(&r, 0, 2), 1);
	assert_int_equal(rd_board_send(&r.a, &r.p, FIRST + RD_WINDOW, MSS, r.now), -ENOSPC);
	assert_int_equal(rd_board_send(&r.a, &r.p, FIRST + 2, MSS, r.now), -EALREADY);
	assert_int_equal(ack(&r, 1, 1), 1);
	assert_true(r.a.una == FIRST + 1);
	assert_int_equal(ack(&r, 2, 0), 1);
	assert_true(r.a.una == FIRST + 3);
	assert_int_equal(rd_board_send(&r.a, &r.p, FIRST + 1, MSS, r.now), -EALREADY);
	assert_int_equal(rd_board_send(&r.a, &r.p, FIRST + RD_WINDOW + 2, MSS, r.now), 0);
	assert_int_equal(rd_board_send(&r.a, &r.p, FIRST + RD_WINDOW + 3, MSS, r.now), -ENOSPC);
	rd_path_settle(&r.p, r.now);
	rig_free(&r);
}

static void test_three_overtake(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 5);
	r.now += MS;
	assert_int_equal(ack(&r, 0, 1 << 1), 1); /* 2: overtook 0 and 1 by less than three */
	assert_int_equal(rd_path_settle(&r.p, r.now), 0);
	assert_int_equal(ack(&r, 0, 1 << 2), 1); /* 3 */
	assert_int_equal(rd_path_settle(&r.p, r.now), 1);
	assert_int_equal(first_lost(&r.p), FIRST);
	assert_int_equal(ack(&r, 0, 1 << 3), 1); /* 4 */
	assert_int_equal(rd_path_settle(&r.p, r.now), 1);
	assert_int_equal(r.p.cc.flight, 0);
	/* One reduction for both. */
	assert_int_equal(r.p.cc.window, 14600 * 7 / 10);
	assert_int_equal(rd_path_settle(&r.p, r.now), 0);
	rig_free(&r);
}

/* One that was overtaken by less than three is lost a quarter of a round trip later. */
static void test_time_tells(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 2);
	r.now += 10 * MS;
	assert_int_equal(ack(&r, 0, 1), 1);
	assert_int_equal(rd_path_settle(&r.p, r.now), 0);
	assert_true(rd_path_deadline(&r.p) == r.now + 10 * MS / 4);
	assert_int_equal(rd_path_expire(&r.p, r.now + 2 * MS), 0);
	assert_int_equal(rd_path_expire(&r.p, r.now + 10 * MS / 4), 1);
	assert_int_equal(r.p.timeouts, 0);
	assert_int_equal(first_lost(&r.p), FIRST);
	assert_true(rd_path_deadline(&r.p) == UINT64_MAX);
	rig_free(&r);
}

/* A loss that was none: the acknowledgement takes it off the list of the lost. */
static void test_spurious(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 5);
	r.now += MS;
	assert_int_equal(ack(&r, 0, 0xe), 3);
	assert_int_equal(rd_path_settle(&r.p, r.now), 2);
	assert_int_equal(ack(&r, 5, 0), 2);
	assert_null(rd_path_lost(&r.p));
	assert_int_equal(rd_path_settle(&r.p, r.now), 0);
	assert_int_equal(r.p.spurious, 2);
	assert_int_equal(r.p.cc.flight, 0);
	assert_true(rd_board_empty(&r.a));
	rig_free(&r);
}

/* A retransmission gives no sample, and when its acknowledgement comes too soon it is one of
 * the first transmission and overtakes nothing. */
static void test_karn(void **state)
{
	struct rig r;
	uint64_t rtt;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 5);
	r.now += 10 * MS;
	assert_int_equal(ack(&r, 0, 0xf), 4);
	assert_int_equal(rd_path_settle(&r.p, r.now), 1);
	rtt = r.p.rtt.latest;
	assert_true(rtt == 10 * MS);
	r.p.rtt.samples = RD_RTT_MANY;
	send_n(&r, 5, 10);
	send_n(&r, 0, 1);
	r.now += 3 * MS;
	assert_int_equal(ack(&r, 5, 0), 1);
	assert_int_equal(rd_path_settle(&r.p, r.now), 0);
	assert_true(r.p.rtt.latest == rtt);
	assert_int_equal(r.p.cc.flight, 10 * MSS);
	/* The same, a round trip after it was sent: everything before it is lost. But as the
	 * first time was a mistake, only after half a round trip more. */
	assert_int_equal(r.p.reorder, 1);
	send_n(&r, 5, 1);
	r.now += 10 * MS;
	assert_int_equal(ack(&r, 6, 0), 1);
	assert_int_equal(rd_path_settle(&r.p, r.now), 0);
	assert_int_equal(rd_path_expire(&r.p, r.now + 2 * MS), 9);
	assert_true(r.p.rtt.latest == rtt);
	assert_int_equal(r.p.cc.flight, 0);
	rig_free(&r);
}

/* But where the least round trip is not known yet, it is taken for what it says: else a path whose
 * every packet was sent twice, after one slow sample, would find no loss but by timeouts. */
static void test_karn_cold(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 5);
	r.now += 10 * MS;
	assert_int_equal(ack(&r, 0, 0xf), 4);
	assert_int_equal(rd_path_settle(&r.p, r.now), 1);
	assert_int_equal(r.p.rtt.samples, 1);
	send_n(&r, 5, 10);
	send_n(&r, 0, 1);
	r.now += 3 * MS;
	assert_int_equal(ack(&r, 5, 0), 1);
	assert_true(rd_path_settle(&r.p, r.now) > 0);
	rig_free(&r);
}

/* The patience that a mistake has taught goes with the losses that were none. */
static void test_patience(void **state)
{
	struct rig r;
	uint32_t at = 0;

	(void)state;
	rig_init(&r);
	for (int i = 0; i < 8; i++) {
		send_n(&r, at, 5);
		r.now += 10 * MS;
		assert_int_equal(ack(&r, at, 0xf), 4);
		rd_path_settle(&r.p, r.now);
		rd_path_expire(&r.p, r.now + 15 * MS);
		assert_int_equal(ack(&r, at + 5, 0), 1);
		rd_path_settle(&r.p, r.now);
		r.now += 20 * MS;
		at += 5;
	}
	assert_int_equal(r.p.reorder, 3);
	for (int i = 0; i < 3 * 64; i++) {
		assert_int_not_equal(r.p.reorder, 0);
		send_n(&r, at, 5);
		r.now += 10 * MS;
		assert_int_equal(ack(&r, at, 0xf), 4);
		rd_path_settle(&r.p, r.now);
		r.now += 11 * MS;
		assert_int_equal(rd_path_expire(&r.p, r.now), 1);
		send_n(&r, at, 1);
		r.now += 10 * MS;
		assert_int_equal(ack(&r, at + 5, 0), 1);
		rd_path_settle(&r.p, r.now);
		at += 5;
	}
	assert_int_equal(r.p.reorder, 0);
	rig_free(&r);
}

/* Everything is sent again before the answer can come: the timeout grows until it does not. */
static void test_karn_held(void **state)
{
	struct rig r;
	uint32_t at = 0, probes = 0;

	(void)state;
	rig_init(&r);
	for (int i = 0; i < 20; i++) {
		send_n(&r, at, 1);
		r.now += 100 * US;
		assert_int_equal(ack(&r, ++at, 0), 1);
		rd_path_settle(&r.p, r.now);
	}
	/* From now on an answer takes 30 ms. */
	for (int i = 0; i < 20; i++) {
		uint64_t answer = r.now + 30 * MS;

		send_n(&r, at, 1);
		while (rd_path_deadline(&r.p) < answer) {
			r.now = rd_path_deadline(&r.p);
			assert_int_equal(rd_path_expire(&r.p, r.now), 1);
			send_n(&r, at, 1);
			probes++;
		}
		r.now = answer;
		assert_int_equal(ack(&r, ++at, 0), 1);
		rd_path_settle(&r.p, r.now);
	}
	assert_in_range(probes, 1, 10);
	assert_int_equal(r.p.held, 0);
	assert_in_range(r.p.rtt.smoothed, 20 * MS, 30 * MS);
	rig_free(&r);
}

/* A tail that is lost: a probe first; its acknowledgement tells of the others. */
static void test_tail(void **state)
{
	struct rig r;
	uint32_t window;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 4);
	window = r.p.cc.window;
	assert_true(rd_path_deadline(&r.p) == r.now + RD_RTT_INITIAL);
	r.now += RD_RTT_INITIAL;
	assert_int_equal(rd_path_expire(&r.p, r.now - 1), 0);
	assert_int_equal(rd_path_expire(&r.p, r.now), 1);
	assert_int_equal(r.p.cc.window, window);
	assert_int_equal(r.p.backoff, 1);
	assert_int_equal(first_lost(&r.p), FIRST);
	send_n(&r, 0, 1);
	assert_null(rd_path_lost(&r.p));
	r.now += MS;
	assert_int_equal(ack(&r, 1, 0), 1);
	assert_int_equal(rd_path_settle(&r.p, r.now), 3); /* one by number, two by time */
	assert_int_equal(r.p.backoff, 0);
	assert_false(rd_path_silent(&r.p));
	rig_free(&r);
}

static void test_silence(void **state)
{
	struct rig r;
	uint64_t wait = RD_RTT_INITIAL;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 6);
	r.now += wait;
	assert_int_equal(rd_path_expire(&r.p, r.now), 1);
	send_n(&r, 0, 1);
	r.now += 2 * wait;
	assert_int_equal(rd_path_expire(&r.p, r.now), 6);
	assert_true(rd_path_silent(&r.p));
	assert_int_equal(r.p.cc.flight, 0);
	assert_int_equal(r.p.cc.window, 2 * MSS);
	/* Lowest number first, although 0 was sent last. */
	for (uint32_t i = 0; i < 6; i++) {
		assert_true(first_lost(&r.p) == FIRST + i);
		send_n(&r, i, 1);
	}
	for (int i = 0; i < 300; i++) {
		uint64_t at = rd_path_deadline(&r.p);

		assert_true(at - r.now <= RD_RTO_MAX);
		r.now = at;
		assert_int_equal(rd_path_expire(&r.p, r.now), 6);
		send_n(&r, 0, 6);
	}
	assert_int_equal(r.p.backoff, UINT8_MAX);
	assert_int_equal(ack(&r, 6, 0), 6);
	rd_path_settle(&r.p, r.now);
	assert_false(rd_path_silent(&r.p));
	rig_free(&r);
}

/* A probe goes out even if the window has become too small for what is on the way. */
static void test_probe_room(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 20);
	assert_int_equal(rd_cc_room(&r.p.cc), 0);
	assert_int_equal(rd_path_expire(&r.p, r.now + RD_RTT_INITIAL), 1);
	assert_true(rd_cc_room(&r.p.cc) >= MSS);
	send_n(&r, 0, 1);
	assert_int_equal(rd_cc_room(&r.p.cc), 0);
	rig_free(&r);
}

/* Numbers that were skipped are not there, whatever the peer claims. */
static void test_holes(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 2);
	send_n(&r, 5, 2);
	assert_int_equal(r.a.holes, 3);
	assert_int_equal(ack(&r, 3, 0), -EPROTO);
	assert_int_equal(ack(&r, 7, 0), -EPROTO);
	assert_int_equal(ack(&r, 0, 1 << 1), -EPROTO);
	assert_int_equal(ack(&r, 0, 1 << 6), -EPROTO);
	assert_int_equal(ack(&r, 8, 0), -EPROTO);
	assert_int_equal(ack(&r, UINT32_C(0x7fffffff), 0), -EPROTO);
	assert_int_equal(ack(&r, UINT32_C(0x80000000), 0), 0); /* looks old */
	assert_true(r.a.una == FIRST);
	assert_int_equal(ack(&r, 2, 3 << 2), 4);
	assert_int_equal(ack(&r, 2, 3 << 2), 0);
	assert_true(rd_board_empty(&r.a));
	assert_int_equal(ack(&r, 3, 0), -EPROTO);
	send_n(&r, 2, 3);
	assert_int_equal(r.a.holes, 0);
	assert_int_equal(ack(&r, 7, 0), 3);
	assert_true(r.a.una == r.a.high);
	rd_path_settle(&r.p, r.now);
	rig_free(&r);
}

static void test_recall(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 10);
	assert_int_equal(ack(&r, 1, 1 << 2), 2); /* 0 and 4 */
	rd_path_settle(&r.p, r.now);
	rd_board_recall(&r.a, FIRST - 5, 9); /* 1, 2, 3 */
	assert_int_equal(r.p.cc.flight, 5 * MSS);
	rd_board_recall(&r.a, FIRST + 4, 1);
	assert_true(rd_board_acked(&r.a, FIRST + 4));
	rd_board_recall(&r.a, FIRST + 8, 1000);
	assert_int_equal(r.p.cc.flight, 3 * MSS);
	assert_int_equal(r.a.n_out, 3);
	/* One of them had arrived after all. */
	assert_int_equal(ack(&r, 2, 0), 1);
	assert_int_equal(rd_board_send(&r.a, &r.p, FIRST + 1, MSS, r.now), -EALREADY);
	send_n(&r, 2, 2);
	send_n(&r, 8, 2);
	r.now += 5 * MS;
	assert_int_equal(ack(&r, 10, 0), 7);
	rd_path_settle(&r.p, r.now);
	assert_true(rd_board_empty(&r.a));
	rig_free(&r);
}

static void test_move(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r);
	send_n(&r, 0, 9);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(rd_board_send(&r.b, &r.p, 1000 + i, MSS, r.now), 0);
	r.now += MS;
	assert_int_equal(ack(&r, 1, 1 << 3), 2); /* 0 and 5: 1 and 2 are lost */
	assert_int_equal(rd_path_settle(&r.p, r.now), 2);
	send_n(&r, 1, 1); /* 1 is behind all others on the flight */
	rd_path_move(&r.p, &r.q);
	assert_int_equal(r.p.cc.flight, 0);
	assert_null(rd_path_lost(&r.p));
	assert_true(rd_path_deadline(&r.p) == UINT64_MAX);
	for (uint32_t i = 0, expect = 1; i < 10; i++) {
		struct rd_sent *s = rd_path_lost(&r.q);

		assert_non_null(s);
		if (s->board == &r.a) {
			assert_true(s->psn == FIRST + expect);
			expect += expect == 4 ? 2 : 1;
		}
		assert_int_equal(rd_board_send(s->board, &r.q, s->psn, MSS, r.now), 0);
	}
	assert_null(rd_path_lost(&r.q));
	assert_int_equal(r.q.cc.flight, 10 * MSS);
	assert_int_equal(ack(&r, 9, 0), 7);
	rd_path_settle(&r.q, r.now);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),       cmocka_unit_test(test_memory),
		cmocka_unit_test(test_window),     cmocka_unit_test(test_three_overtake),
		cmocka_unit_test(test_time_tells), cmocka_unit_test(test_spurious),
		cmocka_unit_test(test_karn),       cmocka_unit_test(test_karn_cold),
		cmocka_unit_test(test_tail),       cmocka_unit_test(test_silence),
		cmocka_unit_test(test_probe_room), cmocka_unit_test(test_holes),
		cmocka_unit_test(test_recall),     cmocka_unit_test(test_move),
		cmocka_unit_test(test_patience),   cmocka_unit_test(test_karn_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
