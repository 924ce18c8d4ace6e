/* A peer that breaks the protocol: control messages, Terminate, and frames. */
#include "breach.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_control),   RIG_TEST(test_control_lengths), RIG_TEST(test_acks),
		RIG_TEST(test_terminate), RIG_TEST(test_bad_crc),         RIG_TEST(test_cut_off),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
