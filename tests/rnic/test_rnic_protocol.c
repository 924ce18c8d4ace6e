/* A peer that breaks the protocol: sends, and headers of all kinds. */
#include "breach.h"

/* ---- sends ---- */

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_send_numbers),   RIG_TEST(test_send_offsets),
		RIG_TEST(test_interleaved),    RIG_TEST(test_headers),
		RIG_TEST(test_short_segments), RIG_TEST(test_queues),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
