/* RD queue pairs and a peer that means harm: what it answers, and how it introduces itself. */
#include <malloc.h>
#include "rd_stage.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 1);
	setenv("WEFT_RD_PEERS", "200", 1);
}

static size_t in_use(void)
{
	return RIG_ASAN || RIG_TSAN ? 0 : mallinfo2().uordblks;
}

static void bounded(size_t before, size_t more)
{
	size_t now = in_use();

	if (now > before + more)
		print_error("memory grew by %zu, more than %zu\n", now - before, more);
	CHECK(now <= before + more);
}

/* ---- answers ---- */

static void test_acks(void **state)
{
	static const uint32_t acks[] = {1,        2,          63,         64,        8192,
					1u << 30, 0x7fffffff, 0x80000000, 0xffffffff};
	static struct rd_got g;
	uint64_t ones[WIRE_RD_SACK_MAX];
	struct stage s;
	struct ibv_wc wc;

	(void)state;
	memset(ones, 0xff, sizeof(ones));
	for (int pair = 0; pair < 2; pair++) {
		stage_open(&s, pair);
		/* Nothing was sent yet. */
		for (size_t i = 0; pair && i < ARRAY_SIZE(acks); i++) {
			s.h.ack[0] = s.h.ack[1] = acks[i];
			rd_peer_sack(&s.h, i % 2, ones, WIRE_RD_SACK_MAX);
			rd_peer_say(&s.h, WIRE_RD_PROBE, 0, 0, NULL, 0);
		}
		s.h.ack[0] = s.h.ack[1] = 0;
		rd_post(&s.bh, IBV_WR_SEND, 1, 0, 100000, 0);
		CHECK(rd_peer_listen(&s.h, &g, 2000));
		/* Now a window's worth was. */
		for (size_t i = 3; i < ARRAY_SIZE(acks); i++) {
			s.h.ack[0] = s.h.ack[1] = acks[i];
			rd_peer_sack(&s.h, i % 2, ones, WIRE_RD_SACK_MAX);
			rd_peer_sack(&s.h, i % 2, ones, 0);
		}
		s.h.ack[0] = s.h.ack[1] = 0;
		rd_peer_sack(&s.h, 0, ones, WIRE_RD_SACK_MAX);
		rd_peer_sack(&s.h, WIRE_RD_RESPONSE, ones, 1);
		expect_none(s.p.b.scq, 20);
		stage_good(&s);
		/* True ones, one by one: it ends well. */
		for (uint32_t n = 0; n < 3000 && ibv_poll_cq(s.p.b.scq, 1, &wc) == 0; n++) {
			if (rd_peer_get(&s.h, &g, 1) && g.h.type == WIRE_RD_DATA &&
			    g.h.psn == s.h.ack[0])
				s.h.ack[0]++;
			rd_peer_sack(&s.h, 0, NULL, 0);
		}
		CHECK_EQ(wc.wr_id, 1);
		CHECK_0(wc.status);
		stage_good(&s);
		stage_close(&s);
	}
}

static void test_naks(void **state)
{
	static struct rd_got g;
	struct stage s;
	unsigned int done = 0;

	(void)state;
	stage_open(&s, true);
	for (uint64_t i = 0; i < 30; i++)
		rd_post(&s.bh,
			i % 3 == 0   ? IBV_WR_SEND
			: i % 3 == 1 ? IBV_WR_RDMA_WRITE
				     : IBV_WR_RDMA_READ,
			i, 0, 5000, 0);
	CHECK(rd_peer_listen(&s.h, &g, 2000));
	/* Of everything, for every reason; acknowledged are only empty packets, and reads, which
	 * can not be refused this way. */
	for (uint32_t i = 0; i < 5000 && done < 20; i++) {
		struct ibv_wc wc;

		if (g.h.type == WIRE_RD_DATA && g.h.psn == s.h.ack[0] &&
		    (g.h.flags & WIRE_RD_SKIP || g.seg.opcode == WIRE_OP_READ_REQ))
			s.h.ack[0]++;
		rd_peer_nak(&s.h, g.h.psn, (uint8_t)(1 + i % 5));
		rd_peer_nak(&s.h, g.h.psn + i, (uint8_t)(1 + i % 5));
		rd_peer_nak(&s.h, i * 12345, (uint8_t)(1 + i % 5));
		if (ibv_poll_cq(s.p.b.scq, 1, &wc) == 1) {
			CHECK(wc.status && wc.wr_id < 30 && wc.wr_id % 3 != 2);
			done++;
		}
		rd_peer_get(&s.h, &g, 1);
		if (i == 0)
			stage_good(&s);
	}
	CHECK_EQ(done, 20);
	stage_good(&s);
	stage_close(&s);
}

static void test_responses(void **state)
{
	static const uint8_t ops[] = {WIRE_OP_READ_RESP, WIRE_OP_ATOMIC_RESP, WIRE_OP_TERMINATE};
	static struct rd_got g;
	struct stage s;
	struct ibv_wc wc;
	uint32_t handle;

	(void)state;
	stage_open(&s, true);
	for (uint32_t i = 0; i < 300; i++)
		stage_response(&s.h, ops[i % 3], i % 64, i * 1000, i);
	stage_good(&s);
	for (int kind = 0; kind < 6; kind++) {
		memset(s.p.b.buf + (1 << 20), 0, 4096);
		rd_post(&s.bh, IBV_WR_RDMA_READ, 3, 1 << 20, 1000, 0);
		CHECK(rd_peer_listen(&s.h, &g, 2000));
		handle = stage_handle(&g);
		if (kind == 1)
			s.h.ack[0]++; /* else answered before it is acknowledged */
		stage_response(&s.h, WIRE_OP_ATOMIC_RESP, handle, 0, 0); /* not what was asked */
		if (kind == 2)
			stage_response(&s.h, WIRE_OP_READ_RESP, handle, 990, 100);
		else if (kind == 3)
			stage_response(&s.h, WIRE_OP_READ_RESP, handle, UINT64_MAX - 200, 100);
		else if (kind == 4)
			stage_response(&s.h, WIRE_OP_TERMINATE, handle, 0, 0);
		else
			for (int i = 0; i < 40; i++) /* the same part again and again */
				stage_response(&s.h, WIRE_OP_READ_RESP, handle, 0,
					       kind == 5 ? 0 : 100);
		if (kind == 5)
			stage_response(&s.h, WIRE_OP_READ_RESP, handle, 0, 1000);
		if (kind != 1)
			s.h.ack[0]++;
		stage_response(&s.h, WIRE_OP_READ_RESP, handle, 0, 1000);
		CHECK(wait_wc(s.p.b.scq, &wc, RIG_WAIT));
		CHECK_EQ(wc.wr_id, 3);
		CHECK_EQ(wc.status, kind == 2 || kind == 3 ? IBV_WC_BAD_RESP_ERR
				    : kind == 4            ? IBV_WC_REM_ACCESS_ERR
							   : IBV_WC_SUCCESS);
		for (size_t i = 1000; i < 4096; i++)
			CHECK_EQ(s.p.b.buf[(1 << 20) + i], 0);
		stage_good(&s);
	}
	stage_close(&s);
}

/* ---- endings ---- */

static void test_wrong_ids(void **state)
{
	struct stage s;
	uint64_t deaths;

	(void)state;
	stage_open(&s, true);
	stage_good(&s);
	deaths = rd_stats(&s.p.b).deaths;
	for (uint64_t i = 0; i < 2000; i++) {
		struct wire_rd h = {.type = i % 2 ? WIRE_RD_RESET : WIRE_RD_BYE};

		/* Ours with a bit flipped, the one for the other direction, random ones. */
		h.id = i % 5 == 0            ? s.h.id ^ (UINT64_C(1) << i % 64)
		       : i % 5 == 1          ? s.h.hello.id ^ (UINT64_C(1) << i % 64)
		       : i % 5 == 2 && i % 2 ? s.h.id
					     : util_rand_next(rig_rand()) | 1;
		if (h.type == WIRE_RD_BYE && h.id == s.h.id)
			continue;
		rd_peer_put(&s.h, &h, NULL, 0);
	}
	stage_good(&s);
	CHECK_EQ(rd_stats(&s.p.b).deaths, deaths);
	CHECK(rd_stats(&s.p.b).stale > 1000);
	CHECK_EQ(rd_stats(&s.p.b).peers, 2);
	stage_close(&s);
}

/* ---- introductions ---- */

static void test_small_hello(void **state)
{
	static struct rd_got g;
	struct stage s;
	struct ibv_wc wc;

	(void)state;
	stage_open(&s, false);
	s.h.hello.mtu = 256;
	s.h.hello.room = 0;
	CHECK(rd_peer_shake(&s.h));
	rd_post(&s.bh, IBV_WR_SEND, 1, 0, 5000, 0);
	CHECK(rd_peer_listen(&s.h, &g, 2000));
	for (int i = 0; i < 1000 && ibv_poll_cq(s.p.b.scq, 1, &wc) == 0; i++) {
		if (g.h.type == WIRE_RD_DATA) {
			CHECK(g.len + WIRE_RD_HDR <= 256);
			if (g.h.psn == s.h.ack[0])
				s.h.ack[0]++;
			rd_peer_sack(&s.h, 0, NULL, 0);
		}
		rd_peer_get(&s.h, &g, 20);
	}
	CHECK_EQ(wc.wr_id, 1);
	CHECK_0(wc.status);
	stage_good(&s);
	stage_close(&s);
}

static void test_flood(void **state)
{
	struct stage s;
	size_t before;

	(void)state;
	stage_open(&s, false);
	stage_good(&s);
	before = in_use();
	for (int i = 0; i < 100000; i++) {
		s.h.hello.life = util_rand_next(rig_rand()) | 1;
		rd_peer_hello(&s.h, WIRE_RD_INIT, 0, i % 2 ? 0 : util_rand_next(rig_rand()));
		if (i % 1000 == 0)
			rd_peer_drain(&s.h);
		if (i % 10000 == 0)
			stage_good(&s);
	}
	stage_good(&s);
	bounded(before, 64 << 10);
	CHECK_EQ(rd_stats(&s.p.b).peers, 1);
	stage_close(&s);
}

/* As many lives as it likes, each with a valid cookie. */
static void test_lives(void **state)
{
	struct stage s;
	unsigned int in = 0;
	size_t before;

	(void)state;
	stage_open(&s, false);
	stage_good(&s);
	before = in_use();
	for (uint32_t i = 0; i < 1000; i++) {
		rd_peer_new_life(&s.h);
		s.h.hello.src_qpn = (i << 8 | 0xfe) & 0xffffff; /* others, not its own successor */
		in += rd_peer_shake(&s.h);
		if (i % 100 == 0)
			stage_good(&s);
	}
	CHECK(in >= 50 && in <= 200);
	CHECK(rd_stats(&s.p.b).peers <= 200);
	stage_good(&s);
	bounded(before, 200 * 4096);
	stage_close(&s);
}

/* Its own successor again and again: only the last one stays. */
static void test_successors(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, false);
	for (uint32_t i = 0; i < 500; i++) {
		rd_peer_new_life(&s.h);
		CHECK(rd_peer_shake(&s.h));
		rd_peer_send(&s.h, 0, 0, i % 2, 0, 100);
	}
	rig_sleep_ms(20); /* its last message finds no receive */
	stage_good(&s);
	CHECK_EQ(rd_stats(&s.p.b).peers, 2);
	stage_close(&s);
}

/* The life of the good one, which everybody can ask for, under another address. It must
 * neither end the good pair nor keep it from being made. */
static void test_borrowed_life(void **state)
{
	static struct rd_got g;
	struct stage s;
	struct rd_peer spy;
	uint64_t deaths;

	(void)state;
	stage_open(&s, false);
	stage_good(&s);
	rd_peer_open(&spy, &s.p.a);
	rd_peer_hello(&spy, WIRE_RD_INIT, 0, 0);
	CHECK(rd_peer_get(&spy, &g, 2000));
	CHECK_EQ(g.h.type, WIRE_RD_CHALLENGE);
	deaths = rd_stats(&s.p.b).deaths;
	s.h.hello.life = g.hello.life;
	s.h.hello.src_qpn = s.p.a.qp->qp_num;
	rd_peer_shake(&s.h);
	stage_good(&s);
	CHECK_EQ(rd_stats(&s.p.b).deaths, deaths);
	rd_peer_close(&spy);
	stage_close(&s);
}

/* Answers with a CHALLENGE, each time of another life, and never with more. */
static void test_half_contacts(void **state)
{
	static struct rd_got g;
	struct stage s;

	(void)state;
	stage_open(&s, false);
	for (int i = 0; i < 3; i++) {
		uint64_t end = rig_now_ms() + 3000;
		struct ibv_wc wc = {0};

		rd_post(&s.bh, IBV_WR_SEND, 1, 0, 10, 0);
		while (!ibv_poll_cq(s.p.b.scq, 1, &wc) && rig_now_ms() < end)
			if (rd_peer_get(&s.h, &g, 10) && g.h.type == WIRE_RD_INIT) {
				rd_peer_new_life(&s.h);
				rd_peer_hello(&s.h, WIRE_RD_CHALLENGE, g.hello.id, 5);
			}
		CHECK_EQ(wc.wr_id, 1);
		CHECK_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
	}
	stage_good(&s);
	CHECK_EQ(rd_stats(&s.p.b).peers, 1);
	stage_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_acks),          RIG_TEST(test_naks),
		RIG_TEST(test_responses),     RIG_TEST(test_wrong_ids),
		RIG_TEST(test_small_hello),   RIG_TEST(test_flood),
		RIG_TEST(test_lives),         RIG_TEST(test_successors),
		RIG_TEST(test_borrowed_life), RIG_TEST(test_half_contacts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
