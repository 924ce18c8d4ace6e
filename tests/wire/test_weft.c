/* Hello, control messages and datagrams. */
#include "test_wire.h"

#include <errno.h>

#include "wire_crc32c.h"
#include "wire_weft.h"

static const uint8_t hello[24] = {
	'W',  'E',  'F',  'T',  0x01, 0x01, 0x00, 0x00, /* magic, version, RC */
	0x00, 0x01, 0x02, 0x03, 0x00, 0xff, 0xff, 0xff, /* src, dst QPN */
	0x00, 0xaa, 0xbb, 0xcc, 0x0a, 0x00, 0x00, 0x02, /* PSN, 10.0.0.2 */
};

static void hello_golden(void **state)
{
	struct wire_hello h = {.version = 1,
			       .type = WIRE_HELLO_RC,
			       .src_qpn = 0x010203,
			       .dst_qpn = 0xffffff,
			       .rq_psn = 0xaabbcc,
			       .dst_addr = 0x0a000002};
	struct wire_hello got;
	uint8_t buf[WIRE_HELLO_LEN];

	(void)state;
	assert_int_equal(wire_hello_encode(&h, buf), 24);
	assert_memory_equal(buf, hello, 24);
	assert_int_equal(wire_hello_decode(&got, hello, 24), 0);
	assert_int_equal(got.version, 1);
	assert_int_equal(got.type, WIRE_HELLO_RC);
	assert_int_equal(got.src_qpn, 0x010203);
	assert_int_equal(got.dst_qpn, 0xffffff);
	assert_int_equal(got.rq_psn, 0xaabbcc);
	assert_int_equal(got.dst_addr, 0x0a000002);
}

static void hello_refused(void **state)
{
	struct fence fence = fence_new(64);
	struct wire_hello h;
	uint8_t b[64] = {0};

	(void)state;
	memcpy(b, hello, sizeof(hello));
	for (size_t len = 0; len <= 40; len++)
		assert_int_equal(wire_hello_decode(&h, fence_put(&fence, b, len), len),
				 len == 24 ? 0 : -EPROTO);
	fence_free(&fence);
	/* Magic, version, type, reserved, and the top byte of each 24-bit number. */
	static const uint8_t wrong[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		memcpy(b, hello, sizeof(hello));
		b[wrong[i]] ^= 0x40;
		assert_int_equal(wire_hello_decode(&h, b, 24), -EPROTO);
	}
	for (int type = 0; type < 256; type++) {
		memcpy(b, hello, sizeof(hello));
		b[5] = (uint8_t)type;
		assert_int_equal(wire_hello_decode(&h, b, 24),
				 type == 1 || type == 2 ? 0 : -EPROTO);
	}
}

static void ctl(void **state)
{
	static const uint8_t rnr[8] = {0x02, 0x0e, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04};
	struct wire_ctl c = {.type = WIRE_CTL_RNR, .arg = 14, .seq = 0x01020304}, got;
	struct fence fence = fence_new(64);
	uint8_t b[64] = {0};

	(void)state;
	assert_int_equal(wire_ctl_encode(&c, b), 8);
	assert_memory_equal(b, rnr, 8);
	assert_int_equal(wire_ctl_decode(&got, rnr, 8), 0);
	assert_int_equal(got.type, c.type);
	assert_int_equal(got.arg, c.arg);
	assert_int_equal(got.seq, c.seq);
	for (size_t len = 0; len <= 16; len++)
		assert_int_equal(wire_ctl_decode(&got, fence_put(&fence, b, len), len),
				 len == 8 ? 0 : -EPROTO);
	fence_free(&fence);
	for (int type = 0; type < 256; type++) {
		b[0] = (uint8_t)type;
		assert_int_equal(wire_ctl_decode(&got, b, 8), type >= 1 && type <= 7 ? 0 : -EPROTO);
	}
	for (int i = 2; i < 4; i++) { /* reserved */
		memcpy(b, rnr, 8);
		b[i] = 1;
		assert_int_equal(wire_ctl_decode(&got, b, 8), -EPROTO);
	}
}

static void round_trips(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct wire_hello h = {.version = 1, .type = 1 + (rnd64() & 1)}, g;
		struct wire_ctl c = {.type = (uint8_t)(1 + rnd_below(7)), .arg = rnd64() & 0x1f}, d;
		uint8_t buf[32];

		h.src_qpn = rnd64() & 0xffffff;
		h.dst_qpn = rnd64() & 0xffffff;
		h.rq_psn = rnd64() & 0xffffff;
		h.dst_addr = (uint32_t)rnd64();
		assert_int_equal(wire_hello_decode(&g, buf, wire_hello_encode(&h, buf)), 0);
		assert_int_equal(g.type, h.type);
		assert_int_equal(g.src_qpn, h.src_qpn);
		assert_int_equal(g.dst_qpn, h.dst_qpn);
		assert_int_equal(g.rq_psn, h.rq_psn);
		assert_int_equal(g.dst_addr, h.dst_addr);
		c.seq = (uint32_t)rnd64();
		assert_int_equal(wire_ctl_decode(&d, buf, wire_ctl_encode(&c, buf)), 0);
		assert_int_equal(d.type, c.type);
		assert_int_equal(d.arg, c.arg);
		assert_int_equal(d.seq, c.seq);
	}
}

/* "abc" sent with Q_Key 0x11111111 as datagram 5, without immediate. The CRC was
 * calculated apart from this program. */
static const uint8_t dgram[27] = {
	0xbd, 0xc5, 0x29, 0x6a, 'W',  0x01, 0x41, 0x43, 0x11, 0x11, 0x11, 0x11, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 'a',  'b',  'c',
};

static void dgram_golden(void **state)
{
	struct wire_seg seg = {.opcode = WIRE_OP_SEND, .last = true, .ulp = 0x11111111, .msn = 5};
	struct wire_seg got;
	uint8_t buf[27];

	(void)state;
	assert_int_equal(wire_dgram_encode(&seg, buf), 24);
	memcpy(buf + 24, (uint8_t[]){'a', 'b', 'c'}, 3);
	wire_dgram_seal(buf, sizeof(buf));
	assert_memory_equal(buf, dgram, sizeof(dgram));
	assert_int_equal(wire_dgram_decode(&got, dgram, sizeof(dgram)), 24);
	assert_int_equal(got.opcode, WIRE_OP_SEND);
	assert_true(got.last);
	assert_int_equal(got.ulp, 0x11111111);
	assert_int_equal(got.qn, 0);
	assert_int_equal(got.msn, 5);
	assert_int_equal(got.mo, 0);
}

/* A cut datagram is too short or has a wrong CRC; every flipped bit is noticed. */
static void dgram_damaged(void **state)
{
	struct fence fence = fence_new(64);
	struct wire_seg seg;
	uint8_t b[27];

	(void)state;
	for (size_t len = 0; len < sizeof(dgram); len++)
		assert_int_equal(wire_dgram_decode(&seg, fence_put(&fence, dgram, len), len),
				 len < 24 ? -EPROTO : -EBADMSG);
	fence_free(&fence);
	for (size_t bit = 0; bit < 8 * sizeof(dgram); bit++) {
		memcpy(b, dgram, sizeof(b));
		b[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(wire_dgram_decode(&seg, b, sizeof(b)),
				 bit / 8 == 4 || bit / 8 == 5 ? -EPROTO : -EBADMSG);
	}
}

/* Only whole Sends without invalidation come through, however well sealed. */
static void dgram_opcodes(void **state)
{
	(void)state;
	for (uint8_t op = 0; op < 16; op++) {
		for (int last = 0; last < 2; last++) {
			for (uint32_t qn = 0; qn < 3; qn++) {
				struct wire_seg seg = {.opcode = op, .last = last}, got;
				uint8_t buf[64] = {0};
				bool good = op == WIRE_OP_SEND || op == WIRE_OP_SEND_SE ||
					    op == WIRE_OP_SEND_IMM || op == WIRE_OP_SEND_IMM_SE;

				seg.qn = qn;
				wire_dgram_encode(&seg, buf);
				wire_dgram_seal(buf, sizeof(buf));
				assert_int_equal(wire_dgram_decode(&got, buf, sizeof(buf)),
						 good && last && qn == 0 ? 24 : -EPROTO);
			}
		}
	}
}

static void dgram_sizes(void **state)
{
	uint8_t *b = calloc(1, WIRE_DGRAM_MAX + 1);
	struct wire_seg seg = {.opcode = WIRE_OP_SEND_IMM_SE, .last = true, .mo = 0xcafebabe}, got;

	(void)state;
	assert_non_null(b);
	assert_int_equal(WIRE_DGRAM_PAYLOAD_MAX, 65483);
	for (int i = 0; i < 200; i++) {
		size_t len = 24 + (i == 0 ? WIRE_DGRAM_PAYLOAD_MAX
					  : rnd_below(WIRE_DGRAM_PAYLOAD_MAX + 1));

		wire_dgram_encode(&seg, b);
		rnd_fill(b + 24, len - 24);
		wire_dgram_seal(b, len);
		assert_int_equal(wire_dgram_decode(&got, b, len), 24);
		assert_int_equal(got.mo, 0xcafebabe);
	}
	wire_dgram_seal(b, WIRE_DGRAM_MAX + 1);
	assert_int_equal(wire_dgram_decode(&got, b, WIRE_DGRAM_MAX + 1), -EPROTO);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_golden),  cmocka_unit_test(hello_refused),
		cmocka_unit_test(ctl),           cmocka_unit_test(round_trips),
		cmocka_unit_test(dgram_golden),  cmocka_unit_test(dgram_damaged),
		cmocka_unit_test(dgram_opcodes), cmocka_unit_test(dgram_sizes),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.weft", tests, NULL, NULL);
}
