/* A peer that has been let in and then breaks the protocol, one way at a time.
 *
 * Whatever it sends: nobody crashes, nothing is written where it may not, the honest
 * pair beside it goes on, and the victim's queue pair ends in the state that it should. */
#include "peer.h"

static struct court court;
static struct peer peer;

enum outcome {
	ALIVE,   /* nothing happened, or only what was asked for */
	BROKEN,  /* answered with a Terminate, the queue pair is in error */
	WHATEVER /* either */
};

/* Waits until the victim has dealt with everything so far: a read of ours comes back, or
 * the connection has ended. */
static bool settled(uint32_t read_msn)
{
	static uint8_t payload[WIRE_MPA_ULPDU_MAX];
	struct wire_read_req r = {.sink_stag = 0x5e771e,
				  .len = 4,
				  .src_stag = court.open_mr->rkey,
				  .src_to = (uintptr_t)court_memory(&court)};
	struct wire_seg seg = {
		.opcode = WIRE_OP_READ_REQ, .last = true, .qn = WIRE_QN_READ_REQ, .msn = read_msn};
	uint8_t req[WIRE_READ_REQ_LEN];
	size_t len;

	wire_read_req_encode(&r, req);
	peer_frame(&peer, &seg, req, sizeof(req));
	while (peer_next(&peer, &seg, payload, &len, RIG_WAIT)) {
		if (seg.opcode == WIRE_OP_READ_RESP && seg.stag == 0x5e771e)
			return true;
		if (seg.opcode == WIRE_OP_TERMINATE)
			return false;
	}
	return false;
}

static void begin(void)
{
	court_victim(&court);
	peer_meet(&peer, &court.victim);
}

static void end(enum outcome want, uint32_t next_read_msn)
{
	bool alive = settled(next_read_msn);
	enum ibv_qp_state state;

	if (!alive) {
		uint64_t until = rig_now_ms() + RIG_WAIT;

		while (end_query(&court.victim) != IBV_QPS_ERR && rig_now_ms() < until)
			usleep(100);
	}
	state = end_query(&court.victim);
	if (want != WHATEVER)
		CHECK_EQ(state, want == ALIVE ? IBV_QPS_RTS : IBV_QPS_ERR);
	peer_hang_up(&peer);
	court_check(&court);
	court_dismiss(&court);
}

/* ---- sends ---- */

static struct wire_seg send_seg(uint32_t msn, uint32_t mo, bool last)
{
	return (struct wire_seg){.opcode = WIRE_OP_SEND, .last = last, .msn = msn, .mo = mo};
}

static void test_send_numbers(void **state)
{
	static const uint32_t msn[] = {0, 2, 3, 0x7fffffff, 0x80000001, 0xffffffff};
	struct wire_seg seg;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(msn); i++) {
		begin();
		end_recv(&court.victim, 1, 0, 64);
		seg = send_seg(msn[i], 0, true);
		peer_frame(&peer, &seg, "x", 1);
		end(BROKEN, 1);
	}
	/* the same number twice */
	begin();
	end_recv(&court.victim, 1, 0, 64);
	end_recv(&court.victim, 2, 0, 64);
	seg = send_seg(1, 0, true);
	peer_frame(&peer, &seg, "x", 1);
	EXPECT_OK(court.victim.rcq, 1);
	peer_frame(&peer, &seg, "y", 1);
	end(BROKEN, 1);
}

static void test_send_offsets(void **state)
{
	static const uint32_t mo[] = {1, 3, 5, 0x80000000, 0xffffffff};
	struct wire_seg seg;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mo); i++) {
		/* the first segment does not start at 0 */
		begin();
		end_recv(&court.victim, 1, 0, 64);
		seg = send_seg(1, mo[i], true);
		peer_frame(&peer, &seg, "x", 1);
		end(BROKEN, 1);
		/* the second leaves a gap, or repeats: four bytes are there */
		begin();
		end_recv(&court.victim, 1, 0, 64);
		seg = send_seg(1, 0, false);
		peer_frame(&peer, &seg, "abcd", 4);
		seg = send_seg(1, mo[i], true);
		peer_frame(&peer, &seg, "x", 1);
		end(BROKEN, 1);
	}
	/* one that never ends: the receive is flushed with the queue pair */
	begin();
	end_recv(&court.victim, 1, 0, 64);
	end_recv(&court.victim, 2, 0, 64);
	seg = send_seg(1, 0, false);
	for (uint32_t i = 0; i < 20; i++) {
		seg.mo = i;
		peer_frame(&peer, &seg, "z", 1);
	}
	CHECK(settled(1));
	CHECK_0(end_state(&court.victim, IBV_QPS_ERR));
	EXPECT(court.victim.rcq, 1, IBV_WC_WR_FLUSH_ERR);
	EXPECT(court.victim.rcq, 2, IBV_WC_WR_FLUSH_ERR);
	peer_hang_up(&peer);
	court_check(&court);
	court_dismiss(&court);
	/* longer than the receive, after many small steps */
	begin();
	end_recv(&court.victim, 1, 0, 16);
	for (uint32_t i = 0; i <= 16; i++) {
		seg = send_seg(1, i, false);
		peer_frame(&peer, &seg, "w", 1);
	}
	EXPECT(court.victim.rcq, 1, IBV_WC_LOC_LEN_ERR);
	end(BROKEN, 1);
	/* a receive whose memory ends where the canary begins */
	begin();
	end_recv(&court.victim, 1, COURT_OPEN - 8, 16);
	seg = send_seg(1, 0, true);
	peer_frame(&peer, &seg, "0123456789abcdef", 16);
	EXPECT(court.victim.rcq, 1, IBV_WC_LOC_PROT_ERR);
	end(BROKEN, 1);
}

/* Two messages woven into each other. */
static void test_interleaved(void **state)
{
	struct wire_seg write = {.opcode = WIRE_OP_WRITE,
				 .stag = court.open_mr->rkey,
				 .to = (uintptr_t)court_memory(&court) + 4096};
	struct wire_seg imm = {.opcode = WIRE_OP_IMM, .last = true, .msn = 1};
	uint8_t payload[WIRE_IMM_LEN];
	struct wire_seg seg;

	(void)state;
	wire_imm_encode(7, payload);
	begin();
	end_recv(&court.victim, 1, 0, 64);
	seg = send_seg(1, 0, false);
	peer_frame(&peer, &seg, "ab", 2);
	peer_frame(&peer, &write, "cd", 2); /* does no harm */
	write.last = true;
	write.to += 2;
	peer_frame(&peer, &write, "ef", 2);
	seg = send_seg(1, 2, true);
	peer_frame(&peer, &seg, "gh", 2);
	CHECK_EQ(EXPECT_OK(court.victim.rcq, 1).byte_len, 4);
	CHECK_0(memcmp(court_memory(&court), "abgh", 4));
	end(ALIVE, 1);
	begin();
	end_recv(&court.victim, 1, 0, 64);
	seg = send_seg(1, 0, false);
	peer_frame(&peer, &seg, "ab", 2);
	peer_frame(&peer, &imm, payload, sizeof(payload));
	end(BROKEN, 1);
	/* immediate data of the wrong size, without end, twice */
	for (int i = 0; i < 4; i++) {
		begin();
		end_recv(&court.victim, 1, 0, 64);
		end_recv(&court.victim, 2, 0, 64);
		imm.last = i != 0;
		if (i == 3)
			payload[7] = 1; /* the half that verbs do not have */
		peer_frame(&peer, &imm, payload, i == 1 ? 7 : sizeof(payload));
		if (i == 2)
			peer_frame(&peer, &imm, payload, sizeof(payload));
		end(BROKEN, 1);
	}
}

/* ---- headers ---- */

static void test_headers(void **state)
{
	uint8_t ulpdu[64] = {0};

	(void)state;
	/* every pair of control bytes, with everything else zero: 65,536 would take too
	 * long, so all of either byte against a good other one */
	for (int i = 0; i < 256; i++) {
		for (int which = 0; which < 2; which++) {
			ulpdu[0] = which ? 0x41 : (uint8_t)i;
			ulpdu[1] = which ? (uint8_t)i : 0x43;
			begin();
			peer_ulpdu(&peer, ulpdu, 40);
			end(WHATEVER, 1);
		}
	}
}

static void test_short_segments(void **state)
{
	uint8_t ulpdu[64] = {0x41, 0x43};

	(void)state;
	for (size_t len = 0; len < WIRE_UNTAGGED_HDR; len++) {
		begin();
		peer_ulpdu(&peer, ulpdu, len);
		end(BROKEN, 1);
	}
	ulpdu[0] = 0xc1;
	ulpdu[1] = 0x40;
	for (size_t len = 0; len < WIRE_TAGGED_HDR; len++) {
		begin();
		peer_ulpdu(&peer, ulpdu, len);
		end(BROKEN, 1);
	}
}

static void test_queues(void **state)
{
	(void)state;
	/* every opcode on every queue */
	for (uint8_t op = 0; op < 16; op++) {
		for (uint32_t qn = 0; qn < 6; qn++) {
			struct wire_seg seg = {
				.opcode = op, .last = true, .qn = qn, .msn = 1, .mo = 0};

			if (op == WIRE_OP_WRITE || op == WIRE_OP_READ_RESP)
				continue;
			begin();
			end_recv(&court.victim, 1, 0, 64);
			peer_frame(&peer, &seg, "12345678", 8);
			end(WHATEVER, 1);
		}
	}
}

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

/* ---- control messages ---- */

static void test_control(void **state)
{
	static const uint32_t seqs[] = {0, 1, 2, 3, 1000, 0x7fffffff, 0x80000000, 0xffffffff};
	struct ibv_wc wc;

	(void)state;
	for (int busy = 0; busy < 2; busy++) {
		for (int type = 0; type < 10; type++) {
			for (size_t i = 0; i < ARRAY_SIZE(seqs); i++) {
				begin();
				if (busy) {
					court.victim.peer.rkey = 1;
					end_send(&court.victim, 1, 0, 64);
					end_read(&court.victim, 2, 0, 64, 0);
					end_write(&court.victim, 3, 0, 64, 0);
					rig_sleep_ms(1);
				}
				peer_control(&peer, (uint8_t)type, 31, seqs[i]);
				peer_control(&peer, (uint8_t)type, 255, seqs[i]);
				if (type == WIRE_CTL_RNR)
					peer_control(&peer, WIRE_CTL_READY, 0, seqs[i]);
				if (type == 0 || type > WIRE_CTL_PROBE) {
					end(BROKEN, 1);
					continue;
				}
				/* what it claims about requests that do not exist has no
				 * consequence; what exists it may answer as it likes */
				while (busy && wait_wc(court.victim.scq, &wc, 1))
					CHECK(wc.wr_id >= 1 && wc.wr_id <= 3);
				end(busy ? WHATEVER : ALIVE, 1);
			}
		}
	}
}

static void test_control_lengths(void **state)
{
	struct wire_seg seg = {
		.opcode = WIRE_OP_CONTROL, .last = true, .qn = WIRE_QN_CONTROL, .msn = 1};
	uint8_t payload[16] = {WIRE_CTL_PROBE};

	(void)state;
	for (size_t len = 0; len <= 16; len++) {
		begin();
		peer_frame(&peer, &seg, payload, len);
		end(len == WIRE_CTL_LEN ? ALIVE : BROKEN, 1);
	}
}

/* Acknowledged again and again, and before it was sent. */
static void test_acks(void **state)
{
	(void)state;
	begin();
	court.victim.peer.rkey = 1;
	for (uint32_t i = 0; i < 5; i++)
		peer_control(&peer, WIRE_CTL_ACK, 0, i);
	CHECK(settled(1));
	for (uint64_t i = 1; i <= 5; i++)
		end_write(&court.victim, i, 0, 64, 0);
	expect_none(court.victim.scq, 20); /* not by what was said before */
	peer_control(&peer, WIRE_CTL_ACK, 0, 3);
	expect_run(court.victim.scq, 1, 3, IBV_WC_SUCCESS);
	peer_control(&peer, WIRE_CTL_ACK, 0, 2);
	peer_control(&peer, WIRE_CTL_ACK, 0, 3);
	peer_control(&peer, WIRE_CTL_ACK, 0, 6);
	peer_control(&peer, WIRE_CTL_ACK, 0, 0x80000005);
	expect_none(court.victim.scq, 20);
	peer_control(&peer, WIRE_CTL_ACK, 0, 5);
	expect_run(court.victim.scq, 4, 2, IBV_WC_SUCCESS);
	end(ALIVE, 2);
}

/* ---- Terminate ---- */

static void test_terminate(void **state)
{
	struct wire_seg seg = {
		.opcode = WIRE_OP_TERMINATE, .last = true, .qn = WIRE_QN_TERMINATE, .msn = 1};
	uint8_t payload[64];
	struct ibv_wc wc;

	(void)state;
	for (int i = 0; i < 300; i++) {
		size_t len = util_rand_below(rig_rand(), sizeof(payload));
		bool busy = i % 2;

		util_rand_bytes(rig_rand(), payload, sizeof(payload));
		if (i < 200)
			payload[0] &= 0x23; /* mostly layers that exist */
		begin();
		if (busy) {
			court.victim.peer.rkey = 1;
			end_write(&court.victim, 1, 0, 64, 0);
			end_write(&court.victim, 2, 0, 64, 0);
		}
		peer_frame(&peer, &seg, payload, len);
		if (busy) {
			CHECK(wait_wc(court.victim.scq, &wc, RIG_WAIT));
			CHECK_EQ(wc.wr_id, 1);
			CHECK(wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR);
			EXPECT(court.victim.scq, 2, IBV_WC_WR_FLUSH_ERR);
		} else {
			expect_event(&court.rig, IBV_EVENT_QP_FATAL, court.victim.qp);
		}
		end(BROKEN, 1);
	}
}

/* ---- framing ---- */

static void test_bad_crc(void **state)
{
	static uint8_t fpdu[WIRE_MPA_FPDU_MAX];
	struct wire_seg seg = send_seg(1, 0, true);
	uint8_t ulpdu[64];
	struct wire_ctl ctl;
	size_t hdr, len;
	uint64_t before;

	(void)state;
	/* A request may be asked for again, but not for ever. */
	begin();
	before = rig_stats(&court.rig).bad_crc;
	end_recv(&court.victim, 1, 0, 64);
	hdr = wire_seg_encode(&seg, ulpdu);
	memset(ulpdu + hdr, 0x64, 4);
	len = peer_seal(fpdu, ulpdu, hdr + 4);
	fpdu[len - 1] ^= 1;
	peer_write(&peer, fpdu, len);
	CHECK(peer_next_control(&peer, WIRE_CTL_DAMAGED, &ctl));
	CHECK_EQ(ctl.seq, 1);
	peer_control(&peer, WIRE_CTL_RETRY, 0, 1);
	fpdu[len - 1] ^= 1;
	peer_write(&peer, fpdu, len);
	CHECK_EQ(EXPECT_OK(court.victim.rcq, 1).byte_len, 4);
	CHECK_EQ(rig_stats(&court.rig).bad_crc, before + 1);
	for (int i = 0; i < 20; i++) {
		fpdu[len - 1] ^= 1;
		seg.msn = 2;
		peer_write(&peer, fpdu, len);
		peer_control(&peer, WIRE_CTL_RETRY, 0, 2);
		fpdu[len - 1] ^= 1;
	}
	end(BROKEN, 1);
	/* Anything else that is damaged ends the connection. */
	for (int i = 0; i < 3; i++) {
		begin();
		seg = (struct wire_seg){.opcode = i == 0   ? WIRE_OP_READ_REQ
						  : i == 1 ? WIRE_OP_CONTROL
							   : WIRE_OP_READ_RESP,
					.last = true};
		if (i < 2)
			seg.qn = i ? WIRE_QN_CONTROL : WIRE_QN_READ_REQ;
		hdr = wire_seg_encode(&seg, ulpdu);
		len = peer_seal(fpdu, ulpdu, hdr);
		fpdu[len - 1] ^= 1;
		peer_write(&peer, fpdu, len);
		end(BROKEN, 1);
	}
}

/* A length that the bytes do not keep. */
static void test_cut_off(void **state)
{
	static uint8_t fpdu[WIRE_MPA_FPDU_MAX], ulpdu[60000];
	struct wire_seg seg = {.opcode = WIRE_OP_WRITE,
			       .last = true,
			       .stag = court.open_mr->rkey,
			       .to = (uintptr_t)court_memory(&court)};
	size_t hdr, len;

	(void)state;
	hdr = wire_seg_encode(&seg, ulpdu);
	len = peer_seal(fpdu, ulpdu, hdr + 50000);
	for (int i = 0; i < 40; i++) {
		size_t cut = i < 20 ? (size_t)i : util_rand_below(rig_rand(), len);

		begin();
		peer_write(&peer, fpdu, cut);
		rig_sleep_ms(1);
		peer_hang_up(&peer);
		rig_sleep_ms(1);
		CHECK_EQ(end_query(&court.victim), IBV_QPS_RTS); /* a lost peer, no more */
		court_check(&court);
		court_dismiss(&court);
	}
	/* in pieces of all sizes, many frames: every boundary inside of a frame */
	begin();
	for (int i = 0; i < 30; i++) {
		for (size_t at = 0; at < len;) {
			size_t n = 1 + util_rand_below(rig_rand(), i < 10 ? 9000 : len);

			if (n > len - at)
				n = len - at;
			peer_write(&peer, fpdu + at, n);
			at += n;
		}
	}
	end(ALIVE, 1);
}

static int setup(void **state)
{
	(void)state;
	alarm(60);
	court_open(&court);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	alarm(60);
	court_close(&court);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_send_numbers),
		RIG_TEST(test_send_offsets),
		RIG_TEST(test_interleaved),
		RIG_TEST(test_headers),
		RIG_TEST(test_short_segments),
		RIG_TEST(test_queues),
		RIG_TEST(test_writes),
		RIG_TEST(test_reads),
		RIG_TEST(test_atomics),
		RIG_TEST(test_answers_unasked),
		RIG_TEST(test_wrong_read_answers),
		RIG_TEST(test_control),
		RIG_TEST(test_control_lengths),
		RIG_TEST(test_acks),
		RIG_TEST(test_terminate),
		RIG_TEST(test_bad_crc),
		RIG_TEST(test_cut_off),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
