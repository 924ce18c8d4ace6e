/* A peer that breaks the protocol: writes, reads, atomics, and answers to what was not asked. */
#include "breach.h"

/* ---- writes ---- */

static void test_writes(void **state)
{
	const uint64_t base = (uintptr_t)court_memory(&court);
	const struct {
		uint32_t stag;
		uint64_t to;
		size_t len;
		enum outcome want;
	} cases[] = {
		{court.open_mr->rkey, base, 8, ALIVE},
		{court.open_mr->rkey, base + COURT_OPEN - 8, 8, ALIVE},
		{court.open_mr->rkey, base, 0, ALIVE},
		{0xdeadbeef, 0, 0, ALIVE}, /* touches nothing */
		{court.open_mr->rkey, base - 1, 8, BROKEN},
		{court.open_mr->rkey, base + COURT_OPEN - 7, 8, BROKEN},
		{court.open_mr->rkey, base + COURT_OPEN, 1, BROKEN},
		{court.open_mr->rkey, base - 8, 8, BROKEN},
		{court.open_mr->rkey, 0, 8, BROKEN},
		{court.open_mr->rkey, UINT64_MAX, 8, BROKEN},
		{court.open_mr->rkey, UINT64_MAX - 3, 8, BROKEN},
		{court.open_mr->rkey, base + (UINT64_C(1) << 63), 8, BROKEN},
		{court.open_mr->rkey ^ 1, base, 8, BROKEN},
		{0, base, 8, BROKEN},
		{UINT32_MAX, base, 8, BROKEN},
		{court.closed_mr->rkey, (uintptr_t)court.closed_mr->addr, 8, BROKEN},
		{court.foreign_mr->rkey, (uintptr_t)court.foreign_mr->addr, 8, BROKEN},
		{court.honest.a.mr->rkey, (uintptr_t)court.honest.a.buf, 0, ALIVE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct wire_seg seg = {.opcode = WIRE_OP_WRITE,
				       .last = true,
				       .stag = cases[i].stag,
				       .to = cases[i].to};

		begin();
		peer_frame(&peer, &seg, "wxyzwxyz", cases[i].len);
		end(cases[i].want, 1);
	}
	/* 60,000 bytes that begin inside */
	begin();
	struct wire_seg seg = {.opcode = WIRE_OP_WRITE,
			       .last = true,
			       .stag = court.open_mr->rkey,
			       .to = base + COURT_OPEN - 30000};
	static uint8_t big[60000];

	peer_frame(&peer, &seg, big, sizeof(big));
	end(BROKEN, 1);
}

/* ---- reads and atomics ---- */

static void read_request(const struct wire_read_req *r, uint32_t msn, bool last, uint32_t mo,
			 size_t len)
{
	struct wire_seg seg = {.opcode = WIRE_OP_READ_REQ,
			       .last = last,
			       .qn = WIRE_QN_READ_REQ,
			       .msn = msn,
			       .mo = mo};
	uint8_t req[WIRE_READ_REQ_LEN + 8] = {0};

	wire_read_req_encode(r, req);
	peer_frame(&peer, &seg, req, len);
}

static void test_reads(void **state)
{
	const struct wire_read_req good = {.sink_stag = 1,
					   .len = 8,
					   .src_stag = court.open_mr->rkey,
					   .src_to = (uintptr_t)court_memory(&court)};
	struct wire_read_req r;

	(void)state;
#define READ(what, msn, last, mo, bytes)                                                           \
	do {                                                                                       \
		r = good;                                                                          \
		what;                                                                              \
		begin();                                                                           \
		read_request(&r, msn, last, mo, bytes);                                            \
		end(BROKEN, 1);                                                                    \
	} while (0)
	READ((void)0, 2, true, 0, WIRE_READ_REQ_LEN);
	READ((void)0, 0, true, 0, WIRE_READ_REQ_LEN);
	READ((void)0, 1, false, 0, WIRE_READ_REQ_LEN);
	READ((void)0, 1, true, 4, WIRE_READ_REQ_LEN);
	READ((void)0, 1, true, 0, WIRE_READ_REQ_LEN - 1);
	READ((void)0, 1, true, 0, WIRE_READ_REQ_LEN + 1);
	READ((void)0, 1, true, 0, 0);
	READ(r.src_stag ^= 1, 1, true, 0, WIRE_READ_REQ_LEN);
	READ(r.src_stag = court.closed_mr->rkey, 1, true, 0, WIRE_READ_REQ_LEN);
	READ(r.src_stag = court.foreign_mr->rkey, 1, true, 0, WIRE_READ_REQ_LEN);
	READ(r.src_to--, 1, true, 0, WIRE_READ_REQ_LEN);
	READ(r.len = COURT_OPEN + 1, 1, true, 0, WIRE_READ_REQ_LEN);
	READ(r.len = UINT32_MAX, 1, true, 0, WIRE_READ_REQ_LEN);
	READ(r.src_to = UINT64_MAX - 3, 1, true, 0, WIRE_READ_REQ_LEN);
	/* a sink that wraps: its own problem */
	r = good;
	r.sink_to = UINT64_MAX;
	begin();
	read_request(&r, 1, true, 0, WIRE_READ_REQ_LEN);
	end(ALIVE, 2);
	/* more at a time than was agreed on; it does not read the answers either */
	begin();
	r = good;
	r.len = COURT_OPEN;
	for (uint32_t i = 1; i < 2000; i++)
		read_request(&r, i, true, 0, WIRE_READ_REQ_LEN);
	end(WHATEVER, 2000);
	/* the memory goes before the answer does */
	begin();
	for (uint32_t i = 1; i <= 8; i++)
		read_request(&r, i, true, 0, WIRE_READ_REQ_LEN);
	CHECK_0(rnic_rereg_mr(court.open_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      IBV_ACCESS_LOCAL_WRITE));
	end(BROKEN, 9);
	CHECK_0(rnic_rereg_mr(court.open_mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			      (int)rig_defaults().mr_access));
}

static void test_atomics(void **state)
{
	const struct wire_atomic_req good = {.op = WIRE_ATOMIC_FETCH_ADD,
					     .id = 1,
					     .stag = court.open_mr->rkey,
					     .to = (uintptr_t)court_memory(&court)};
	struct wire_seg seg = {
		.opcode = WIRE_OP_ATOMIC_REQ, .last = true, .qn = WIRE_QN_READ_REQ, .msn = 1};
	struct wire_atomic_req a;
	uint8_t req[WIRE_ATOMIC_REQ_LEN + 1] = {0};

	(void)state;
#define ATOMIC(what, bytes, want)                                                                  \
	do {                                                                                       \
		a = good;                                                                          \
		what;                                                                              \
		wire_atomic_req_encode(&a, req);                                                   \
		begin();                                                                           \
		peer_frame(&peer, &seg, req, bytes);                                               \
		end(want, (want) == ALIVE ? 2 : 1);                                                \
	} while (0)
	ATOMIC((void)0, WIRE_ATOMIC_REQ_LEN, ALIVE);
	ATOMIC((void)0, WIRE_ATOMIC_REQ_LEN - 1, BROKEN);
	ATOMIC((void)0, WIRE_ATOMIC_REQ_LEN + 1, BROKEN);
	ATOMIC(a.op = 1, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.op = 3, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.add_swap_mask = 1, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.op = WIRE_ATOMIC_CMP_SWAP, WIRE_ATOMIC_REQ_LEN, BROKEN); /* masks of 0 */
	ATOMIC(a.to++, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.to += 4, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.to -= 8, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.to += COURT_OPEN, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.to = UINT64_MAX - 7, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.stag ^= 1, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.stag = court.closed_mr->rkey, WIRE_ATOMIC_REQ_LEN, BROKEN);
	ATOMIC(a.stag = court.foreign_mr->rkey, WIRE_ATOMIC_REQ_LEN, BROKEN);
}

/* ---- answers to questions that were not asked ---- */

static void test_answers_unasked(void **state)
{
	struct wire_atomic_resp a = {.id = 1, .value = 42};
	struct wire_seg seg;
	uint8_t resp[WIRE_ATOMIC_RESP_LEN];

	(void)state;
	begin();
	seg = (struct wire_seg){.opcode = WIRE_OP_READ_RESP,
				.last = true,
				.stag = court.open_mr->rkey,
				.to = (uintptr_t)court_memory(&court) - 8};
	peer_frame(&peer, &seg, "12345678", 8);
	end(BROKEN, 1);
	begin();
	seg = (struct wire_seg){
		.opcode = WIRE_OP_ATOMIC_RESP, .last = true, .qn = WIRE_QN_ATOMIC_RESP, .msn = 1};
	wire_atomic_resp_encode(&a, resp);
	peer_frame(&peer, &seg, resp, sizeof(resp));
	end(BROKEN, 1);
}

/* The victim has asked; the answer is wrong. */
static void wrong_read_answer(uint32_t stag_xor, uint64_t to, size_t len, bool last)
{
	static uint8_t payload[WIRE_MPA_ULPDU_MAX], data[1024];
	struct wire_read_req r;
	struct wire_seg seg;
	size_t n;

	begin();
	court.victim.peer.rkey = 1;
	end_read(&court.victim, 7, COURT_OPEN - 64, 64, 0); /* up to the canary */
	CHECK(peer_next_data(&peer, &seg, payload, &n));
	CHECK_EQ(seg.opcode, WIRE_OP_READ_REQ);
	CHECK_0(wire_read_req_decode(&r, payload, n));
	seg = (struct wire_seg){.opcode = WIRE_OP_READ_RESP,
				.last = last,
				.stag = r.sink_stag ^ stag_xor,
				.to = r.sink_to + to};
	peer_frame(&peer, &seg, data, len);
	CHECK(wait_wc(court.victim.scq, &(struct ibv_wc){0}, RIG_WAIT));
	end(BROKEN, 1);
}

static void test_wrong_read_answers(void **state)
{
	static uint8_t payload[WIRE_MPA_ULPDU_MAX];
	struct wire_atomic_resp a = {.value = 5};
	struct wire_seg seg;
	struct ibv_wc wc;
	uint8_t resp[WIRE_ATOMIC_RESP_LEN];
	size_t n;

	(void)state;
	wrong_read_answer(1, 0, 64, true);
	wrong_read_answer(0, 8, 56, true);
	wrong_read_answer(0, 0, 65, true);
	wrong_read_answer(0, 0, 1000, true);
	wrong_read_answer(0, 0, 63, true);
	wrong_read_answer(0, 0, 64, false);
	wrong_read_answer(0, UINT64_MAX - 3, 64, true);
	/* an answer of the other kind */
	begin();
	end_read(&court.victim, 7, 0, 64, 0);
	CHECK(peer_next_data(&peer, &seg, payload, &n));
	wire_atomic_resp_encode(&a, resp);
	seg = (struct wire_seg){
		.opcode = WIRE_OP_ATOMIC_RESP, .last = true, .qn = WIRE_QN_ATOMIC_RESP, .msn = 1};
	peer_frame(&peer, &seg, resp, sizeof(resp));
	EXPECT(court.victim.scq, 7, IBV_WC_BAD_RESP_ERR);
	end(BROKEN, 1);
	for (int i = 0; i < 3; i++) {
		begin();
		end_add(&court.victim, 8, 0, 0, 1);
		CHECK(peer_next_data(&peer, &seg, payload, &n));
		seg = (struct wire_seg){.opcode = WIRE_OP_ATOMIC_RESP,
					.last = i != 1,
					.qn = WIRE_QN_ATOMIC_RESP,
					.msn = 1};
		a.id = i ? 1 : 99;
		wire_atomic_resp_encode(&a, resp);
		peer_frame(&peer, &seg, resp, i == 2 ? 11 : sizeof(resp));
		CHECK(wait_wc(court.victim.scq, &wc, RIG_WAIT));
		CHECK_EQ(wc.status, IBV_WC_BAD_RESP_ERR);
		end(BROKEN, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_writes),
		RIG_TEST(test_reads),
		RIG_TEST(test_atomics),
		RIG_TEST(test_answers_unasked),
		RIG_TEST(test_wrong_read_answers),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
