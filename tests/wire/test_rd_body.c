/* What is in RD packets: hello, NAK, bitmap, and which segments a lane lets through. Their
 * bytes are in test_rd.c. */
#include "test_wire.h"

#include <errno.h>

#include "wire_rd.h"

static void hello_refused(void **state)
{
	struct fence fence = fence_new(128);
	struct wire_rd_hello h, good = {.life = 0x0102030405060708,
					.id = 0x1112131415161718,
					.src_qpn = 0x123401,
					.dst_qpn = 0x567802,
					.mtu = 8972};
	uint8_t b[128] = {0};

	(void)state;
	wire_rd_hello_encode(&good, b);
	for (size_t len = 0; len <= 100; len++)
		assert_int_equal(wire_rd_hello_decode(&h, fence_put(&fence, b, len), len),
				 len == 48 ? 0 : -EPROTO);
	fence_free(&fence);
	for (size_t at = 0; at < 48; at++) {
		bool reserved = at == 24 || at == 28 || at == 38 || at == 39 || at >= 44;

		for (unsigned int bit = 0; bit < 8; bit++) {
			b[at] ^= (uint8_t)(1U << bit);
			assert_int_equal(wire_rd_hello_decode(&h, b, 48), reserved ? -EPROTO : 0);
			b[at] ^= (uint8_t)(1U << bit);
		}
	}
	for (int i = 0; i < 5; i++) {
		struct wire_rd_hello x = good;

		x.life = i == 0 ? 0 : x.life;
		x.id = i == 1 ? 0 : x.id;
		x.mtu = i == 2 ? WIRE_RD_MTU_MIN - 1 : i == 3 ? WIRE_RD_MTU_MIN : 65535;
		wire_rd_hello_encode(&x, b);
		assert_int_equal(wire_rd_hello_decode(&h, b, 48), i < 3 ? -EPROTO : 0);
	}
}

static void error_refused(void **state)
{
	struct wire_rd_error e = {0x01020304, WIRE_RD_ACCESS}, got;
	uint8_t b[16] = {0};

	(void)state;
	assert_int_equal(wire_rd_error_encode(&e, b), 8);
	assert_memory_equal(b, "\x01\x02\x03\x04\x02\0\0\0", 8);
	for (size_t len = 0; len <= 16; len++)
		assert_int_equal(wire_rd_error_decode(&got, b, len), len == 8 ? 0 : -EPROTO);
	assert_int_equal(got.handle, e.handle);
	for (unsigned int reason = 0; reason < 256; reason++) {
		b[4] = (uint8_t)reason;
		assert_int_equal(wire_rd_error_decode(&got, b, 8),
				 reason >= 2 && reason <= 4 ? 0 : -EPROTO);
	}
	b[4] = WIRE_RD_ACCESS;
	for (int i = 5; i < 8; i++) {
		b[i] = 1;
		assert_int_equal(wire_rd_error_decode(&got, b, 8), -EPROTO);
		b[i] = 0;
	}
}

static void skip_number(void **state)
{
	uint8_t b[4];

	(void)state;
	assert_int_equal(wire_rd_skip_encode(0xfffefdfc, b), 4);
	assert_memory_equal(b, "\xff\xfe\xfd\xfc", 4);
	assert_int_equal(wire_rd_skip_decode(b), 0xfffefdfc);
}

static void nak_refused(void **state)
{
	struct fence fence = fence_new(64);
	uint8_t b[64] = {WIRE_RD_ACCESS};
	struct wire_rd_nak n;

	(void)state;
	for (size_t len = 0; len <= 16; len++)
		assert_int_equal(wire_rd_nak_decode(&n, fence_put(&fence, b, len), len),
				 len == 4 ? 0 : -EPROTO);
	fence_free(&fence);
	for (unsigned int reason = 0; reason < 256; reason++) {
		b[0] = (uint8_t)reason;
		assert_int_equal(wire_rd_nak_decode(&n, b, 4),
				 reason >= 1 && reason <= 5 ? 0 : -EPROTO);
	}
	for (unsigned int i = 0; i < 16; i++) {
		uint8_t x[4] = {WIRE_RD_RNR, 0, i < 8 ? (uint8_t)(1U << i) : 0,
				i < 8 ? 0 : (uint8_t)(1U << (i - 8))};

		assert_int_equal(wire_rd_nak_decode(&n, x, 4), -EPROTO);
	}
}

static void sack(void **state)
{
	struct fence fence = fence_new(WIRE_RD_SACK_MAX * 8);
	uint64_t words[WIRE_RD_SACK_MAX], got[WIRE_RD_SACK_MAX];

	(void)state;
	for (unsigned int n = 0; n <= WIRE_RD_SACK_MAX; n++) {
		uint8_t *p = fence_put(&fence, NULL, n * 8);

		rnd_fill(words, sizeof(words));
		assert_int_equal(wire_rd_sack_encode(words, n, p), n * 8);
		wire_rd_sack_decode(got, n, p);
		assert_memory_equal(got, words, n * 8);
	}
	/* A bit and its byte: bit 0 of a word is the lowest of the last of its eight bytes. */
	for (unsigned int bit = 0; bit < 8192; bit++) {
		uint8_t *p = fence_put(&fence, NULL, sizeof(words));

		memset(words, 0, sizeof(words));
		words[bit / 64] = UINT64_C(1) << bit % 64;
		wire_rd_sack_encode(words, WIRE_RD_SACK_MAX, p);
		assert_int_equal(p[bit / 64 * 8 + 7 - bit % 64 / 8], 1U << bit % 8);
	}
	fence_free(&fence);
}

/* What a segment of each opcode is; payload 0: as much as one likes. */
static const struct op {
	int lane; /* -1: in none */
	uint8_t qn;
	size_t payload;
} ops[16] = {
	[WIRE_OP_WRITE] = {.lane = 0},
	[WIRE_OP_READ_REQ] = {.lane = 0, .qn = 1, .payload = 28},
	[WIRE_OP_READ_RESP] = {.lane = 1},
	[WIRE_OP_SEND] = {.lane = 0},
	[WIRE_OP_SEND_INV] = {.lane = -1},
	[WIRE_OP_SEND_SE] = {.lane = 0},
	[WIRE_OP_SEND_SE_INV] = {.lane = -1},
	[WIRE_OP_TERMINATE] = {.lane = 1, .qn = 2, .payload = 8},
	[WIRE_OP_IMM] = {.lane = 0, .payload = 8},
	[WIRE_OP_IMM_SE] = {.lane = 0, .payload = 8},
	[WIRE_OP_ATOMIC_REQ] = {.lane = 0, .qn = 1, .payload = 52},
	[WIRE_OP_ATOMIC_RESP] = {.lane = 1, .qn = 3, .payload = 12},
	[WIRE_OP_SEND_IMM] = {.lane = 0},
	[WIRE_OP_SEND_IMM_SE] = {.lane = 0},
	[WIRE_OP_CONTROL] = {.lane = -1, .qn = 4},
	[15] = {.lane = -1},
};

static bool is_tagged(unsigned int op)
{
	return op == WIRE_OP_WRITE || op == WIRE_OP_READ_RESP;
}

static int segment(unsigned int op, int lane, bool last, uint32_t mo, size_t payload)
{
	struct wire_rd h = {.type = WIRE_RD_DATA, .flags = (uint8_t)lane};
	struct wire_seg seg = {.opcode = (uint8_t)op, .last = last}, got;
	uint8_t b[18 + 80] = {0};
	size_t n;
	int r;

	if (!is_tagged(op)) {
		seg.qn = ops[op].qn;
		seg.mo = mo;
	}
	n = wire_seg_encode(&seg, b);
	r = wire_rd_seg_decode(&got, &h, b, n + payload);
	assert_true(r == -EPROTO || r == (int)n);
	if (r > 0) {
		assert_int_equal(got.opcode, op);
		assert_int_equal(got.tagged, is_tagged(op));
		assert_int_equal(got.last, last);
	}
	return r;
}

static void lanes(void **state)
{
	(void)state;
	for (unsigned int op = 0; op < 16; op++) {
		for (int lane = 0; lane < 2; lane++) {
			bool good = ops[op].lane == lane, whole = ops[op].payload != 0;

			for (size_t n = 0; n <= 80; n++) {
				bool fits = good && (!whole || n == ops[op].payload);

				assert_int_equal(segment(op, lane, true, 0, n) > 0, fits);
				assert_int_equal(segment(op, lane, false, 0, n) > 0,
						 fits && !whole);
				assert_int_equal(segment(op, lane, true, 1, n) > 0, fits && !whole);
			}
		}
	}
}

/* The other flags are no lanes. */
static void lane_is_one_flag(void **state)
{
	struct wire_rd h = {.type = WIRE_RD_DATA, .flags = WIRE_RD_ASK};
	struct wire_seg seg = {.opcode = WIRE_OP_SEND}, got;
	uint8_t b[18];

	(void)state;
	wire_seg_encode(&seg, b);
	assert_int_equal(wire_rd_seg_decode(&got, &h, b, 18), 18);
	h.flags |= WIRE_RD_RESPONSE;
	assert_int_equal(wire_rd_seg_decode(&got, &h, b, 18), -EPROTO);
}

static void offsets_do_not_wrap(void **state)
{
	(void)state;
	for (int lane = 0; lane < 2; lane++) {
		for (uint64_t room = 0; room < 40; room++) {
			struct wire_rd h = {.type = WIRE_RD_DATA, .flags = (uint8_t)lane};
			struct wire_seg seg = {.opcode = lane ? WIRE_OP_READ_RESP : WIRE_OP_WRITE,
					       .to = UINT64_MAX - room},
					got;
			uint8_t b[14 + 80] = {0};

			wire_seg_encode(&seg, b);
			for (size_t n = 0; n <= 80; n++)
				assert_int_equal(wire_rd_seg_decode(&got, &h, b, 14 + n),
						 n <= room ? 14 : -EPROTO);
		}
	}
}

static void round_trips(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct wire_rd_hello hello = {.life = rnd64() | 1,
					      .id = rnd64() | 1,
					      .cookie = rnd64(),
					      .src_qpn = rnd64() & 0xffffff,
					      .dst_qpn = rnd64() & 0xffffff,
					      .qkey = (uint32_t)rnd64(),
					      .room = (uint32_t)rnd64(),
					      .mtu = (uint16_t)(256 + rnd_below(65280))};
		struct wire_rd_nak nak = {(uint8_t)(1 + rnd_below(4)), (uint8_t)rnd64()}, n;
		uint8_t b[WIRE_RD_HELLO], again[WIRE_RD_HELLO];
		struct wire_rd_hello h;

		assert_int_equal(wire_rd_hello_decode(&h, b, wire_rd_hello_encode(&hello, b)), 0);
		wire_rd_hello_encode(&h, again);
		assert_memory_equal(again, b, sizeof(b));
		assert_int_equal(wire_rd_nak_decode(&n, b, wire_rd_nak_encode(&nak, b)), 0);
		assert_int_equal(n.reason, nak.reason);
		assert_int_equal(n.arg, nak.arg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_refused),
		cmocka_unit_test(nak_refused),
		cmocka_unit_test(error_refused),
		cmocka_unit_test(skip_number),
		cmocka_unit_test(sack),
		cmocka_unit_test(lanes),
		cmocka_unit_test(lane_is_one_flag),
		cmocka_unit_test(offsets_do_not_wrap),
		cmocka_unit_test(round_trips),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.rd_body", tests, NULL, NULL);
}
