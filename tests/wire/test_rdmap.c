/* DDP and RDMAP headers and payloads: RFC 5041, 5040, 7306. */
#include "test_wire.h"

#include <errno.h>

#include "wire_rdmap.h"

/* Segment headers by hand. DDP control: T 0x80, L 0x40, version 1. RDMAP control:
 * version 1 in the top two bits, opcode in the low four. */
static const struct golden {
	struct wire_seg seg;
	size_t len;
	uint8_t bytes[WIRE_HDR_MAX];
} golden_segs[] = {
	{{.opcode = WIRE_OP_WRITE,
	  .tagged = true,
	  .last = true,
	  .stag = 0x01020304,
	  .to = 0x1112131415161718},
	 14,
	 {0xc1, 0x40, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}},
	{{.opcode = WIRE_OP_READ_RESP,
	  .tagged = true,
	  .stag = 0xfffefdfc,
	  .to = 0x8000000000000001},
	 14,
	 {0x81, 0x42, 0xff, 0xfe, 0xfd, 0xfc, 0x80, 0, 0, 0, 0, 0, 0, 1}},
	{{.opcode = WIRE_OP_READ_REQ, .last = true, .qn = 1, .msn = 7},
	 18,
	 {0x41, 0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_SEND, .msn = 0xaabbccdd, .mo = 0x00010002},
	 18,
	 {0x01, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd, 0, 1, 0, 2}},
	{{.opcode = WIRE_OP_SEND_INV, .last = true, .ulp = 0x51525354, .msn = 1},
	 18,
	 {0x41, 0x44, 0x51, 0x52, 0x53, 0x54, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_SEND_SE, .last = true, .msn = 2},
	 18,
	 {0x41, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_SEND_SE_INV, .last = true, .ulp = 9, .msn = 3},
	 18,
	 {0x41, 0x46, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_TERMINATE, .last = true, .qn = 2, .msn = 1},
	 18,
	 {0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_IMM, .last = true, .msn = 4},
	 18,
	 {0x41, 0x48, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_IMM_SE, .last = true, .msn = 5},
	 18,
	 {0x41, 0x49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_ATOMIC_REQ, .last = true, .qn = 1, .msn = 8},
	 18,
	 {0x41, 0x4a, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_ATOMIC_RESP, .last = true, .qn = 3, .msn = 1},
	 18,
	 {0x41, 0x4b, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_SEND_IMM, .last = true, .ulp = 0xdeadbeef, .msn = 6},
	 18,
	 {0x41, 0x4c, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_SEND_IMM_SE, .last = true, .ulp = 1, .msn = 7},
	 18,
	 {0x41, 0x4d, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0}},
	{{.opcode = WIRE_OP_CONTROL, .last = true, .qn = 4, .msn = 1},
	 18,
	 {0x41, 0x4e, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0}},
};

static void assert_same_seg(const struct wire_seg *a, const struct wire_seg *b)
{
	assert_int_equal(a->opcode, b->opcode);
	assert_int_equal(a->tagged, b->tagged);
	assert_int_equal(a->last, b->last);
	if (a->tagged) {
		assert_int_equal(a->stag, b->stag);
		assert_true(a->to == b->to);
		return;
	}
	assert_int_equal(a->ulp, b->ulp);
	assert_int_equal(a->qn, b->qn);
	assert_int_equal(a->msn, b->msn);
	assert_int_equal(a->mo, b->mo);
}

static void headers_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(golden_segs); i++) {
		const struct golden *g = &golden_segs[i];
		uint8_t buf[WIRE_HDR_MAX];
		struct wire_term why;
		struct wire_seg got;

		assert_int_equal(wire_seg_encode(&g->seg, buf), g->len);
		assert_memory_equal(buf, g->bytes, g->len);
		assert_int_equal(wire_seg_decode(&got, g->bytes, g->len, &why), (int)g->len);
		assert_same_seg(&got, &g->seg);
	}
}

static void assert_why(const struct wire_term *why, uint8_t layer, uint8_t etype, uint8_t ecode)
{
	assert_int_equal(why->layer, layer);
	assert_int_equal(why->etype, etype);
	assert_int_equal(why->ecode, ecode);
	assert_false(why->has_len || why->has_ddp || why->has_rdmap);
}

static void assert_refused(const uint8_t *b, size_t len, uint8_t layer, uint8_t etype,
			   uint8_t ecode)
{
	struct wire_term why;
	struct wire_seg seg;

	memset(&why, 0xff, sizeof(why));
	assert_int_equal(wire_seg_decode(&seg, b, len, &why), -EPROTO);
	assert_why(&why, layer, etype, ecode);
}

static void headers_truncated(void **state)
{
	struct fence fence = fence_new(64);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(golden_segs); i++) {
		for (size_t len = 0; len < golden_segs[i].len; len++)
			assert_refused(fence_put(&fence, golden_segs[i].bytes, len), len,
				       WIRE_LAYER_DDP, WIRE_ETYPE_DDP_CATASTROPHIC, 0);
	}
	fence_free(&fence);
}

static void versions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(golden_segs); i++) {
		const struct golden *g = &golden_segs[i];
		uint8_t b[WIRE_HDR_MAX];

		for (uint8_t v = 0; v < 4; v++) {
			if (v == 1)
				continue;
			memcpy(b, g->bytes, sizeof(b));
			b[0] = (uint8_t)((b[0] & ~3) | v);
			if (g->seg.tagged)
				assert_refused(b, g->len, WIRE_LAYER_DDP, 1, 0x04);
			else
				assert_refused(b, g->len, WIRE_LAYER_DDP, 2, 0x06);
			memcpy(b, g->bytes, sizeof(b));
			b[1] = (uint8_t)((b[1] & 0x3f) | v << 6);
			assert_refused(b, g->len, WIRE_LAYER_RDMAP, 2, 0x05);
		}
	}
}

static void reserved_bits_are_ignored(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(golden_segs); i++) {
		const struct golden *g = &golden_segs[i];
		uint8_t b[WIRE_HDR_MAX];
		struct wire_term why;
		struct wire_seg got;

		memcpy(b, g->bytes, sizeof(b));
		b[0] |= 0x3c;
		b[1] |= 0x30;
		assert_int_equal(wire_seg_decode(&got, b, g->len, &why), (int)g->len);
		assert_same_seg(&got, &g->seg);
	}
}

/* Opcode 0xf does not exist; every other is carried in one of the two ways only. */
static void opcodes(void **state)
{
	uint8_t b[WIRE_HDR_MAX] = {0x41, 0x4f};

	(void)state;
	assert_refused(b, 18, WIRE_LAYER_RDMAP, 2, 0x06);
	b[0] = 0xc1;
	assert_refused(b, 14, WIRE_LAYER_RDMAP, 2, 0x06);
	for (size_t i = 0; i < ARRAY_SIZE(golden_segs); i++) {
		memset(b, 0, sizeof(b));
		memcpy(b, golden_segs[i].bytes, golden_segs[i].len);
		b[0] ^= 0x80;
		assert_refused(b, 18, WIRE_LAYER_RDMAP, 2, 0x06);
	}
}

static void queue_numbers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(golden_segs); i++) {
		const struct golden *g = &golden_segs[i];
		uint8_t b[WIRE_HDR_MAX];

		if (g->seg.tagged)
			continue;
		for (uint8_t qn = 0; qn < 8; qn++) {
			memcpy(b, g->bytes, sizeof(b));
			b[9] = qn;
			if (qn > 4)
				assert_refused(b, 18, WIRE_LAYER_DDP, 2, 0x01);
			else if (qn != g->seg.qn)
				assert_refused(b, 18, WIRE_LAYER_RDMAP, 2, 0x06);
			memcpy(b, g->bytes, sizeof(b));
			b[6 + qn % 3] = 1; /* beyond 8 bits */
			assert_refused(b, 18, WIRE_LAYER_DDP, 2, 0x01);
		}
	}
}

static void headers_round_trip(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct wire_seg seg = golden_segs[rnd_below(ARRAY_SIZE(golden_segs))].seg, got;
		uint8_t buf[WIRE_HDR_MAX], again[WIRE_HDR_MAX];
		struct wire_term why;
		size_t n;

		seg.last = rnd64() & 1;
		if (seg.tagged) {
			seg.stag = (uint32_t)rnd64();
			seg.to = rnd64();
		} else {
			seg.ulp = (uint32_t)rnd64();
			seg.msn = (uint32_t)rnd64();
			seg.mo = (uint32_t)rnd64();
		}
		n = wire_seg_encode(&seg, buf);
		assert_int_equal(wire_seg_decode(&got, buf, n, &why), (int)n);
		assert_same_seg(&got, &seg);
		assert_int_equal(wire_seg_encode(&got, again), n);
		assert_memory_equal(again, buf, n);
	}
}

static const uint8_t read_req[28] = {
	0x01, 0x02, 0x03, 0x04,                         /* data sink STag */
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* data sink TO */
	0x00, 0x10, 0x00, 0x00,                         /* size */
	0xa1, 0xa2, 0xa3, 0xa4,                         /* data source STag */
	0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, /* data source TO */
};

static const uint8_t cmp_swap[52] = {
	0x00, 0x00, 0x00, 0x02,                         /* AOpCode */
	0x0a, 0x0b, 0x0c, 0x0d,                         /* request identifier */
	0x01, 0x02, 0x03, 0x04,                         /* remote STag */
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* remote TO */
	0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, /* swap data */
	0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, /* swap mask */
	0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, /* compare data */
	0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, /* compare mask */
};

static const uint8_t atomic_resp[12] = {
	0x0a, 0x0b, 0x0c, 0x0d,                         /* original request identifier */
	0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, /* original remote data */
};

static const uint8_t imm[8] = {0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0};

static void payloads_golden(void **state)
{
	struct wire_read_req r = {.sink_stag = 0x01020304,
				  .sink_to = 0x1112131415161718,
				  .len = 0x100000,
				  .src_stag = 0xa1a2a3a4,
				  .src_to = 0xb1b2b3b4b5b6b7b8};
	struct wire_atomic_req a = {.op = WIRE_ATOMIC_CMP_SWAP,
				    .id = 0x0a0b0c0d,
				    .stag = 0x01020304,
				    .to = 0x1112131415161718,
				    .add_swap = 0x2122232425262728,
				    .add_swap_mask = 0xffffffff00000000,
				    .compare = 0x3132333435363738,
				    .compare_mask = 0x00000000ffffffff};
	struct wire_atomic_resp s = {.id = 0x0a0b0c0d, .value = 0x4142434445464748};
	uint8_t buf[64];

	(void)state;
	assert_int_equal(wire_read_req_encode(&r, buf), 28);
	assert_memory_equal(buf, read_req, 28);
	assert_int_equal(wire_atomic_req_encode(&a, buf), 52);
	assert_memory_equal(buf, cmp_swap, 52);
	assert_int_equal(wire_atomic_resp_encode(&s, buf), 12);
	assert_memory_equal(buf, atomic_resp, 12);
	assert_int_equal(wire_imm_encode(0xdeadbeef, buf), 8);
	assert_memory_equal(buf, imm, 8);
}

static void payloads_decode(void **state)
{
	struct wire_atomic_resp s;
	struct wire_atomic_req a;
	struct wire_read_req r;
	uint32_t v;

	(void)state;
	assert_int_equal(wire_read_req_decode(&r, read_req, 28), 0);
	assert_int_equal(r.sink_stag, 0x01020304);
	assert_true(r.sink_to == 0x1112131415161718);
	assert_int_equal(r.len, 0x100000);
	assert_int_equal(r.src_stag, 0xa1a2a3a4);
	assert_true(r.src_to == 0xb1b2b3b4b5b6b7b8);
	assert_int_equal(wire_atomic_req_decode(&a, cmp_swap, 52), 0);
	assert_int_equal(a.op, WIRE_ATOMIC_CMP_SWAP);
	assert_int_equal(a.id, 0x0a0b0c0d);
	assert_int_equal(a.stag, 0x01020304);
	assert_true(a.to == 0x1112131415161718);
	assert_true(a.add_swap == 0x2122232425262728);
	assert_true(a.add_swap_mask == 0xffffffff00000000);
	assert_true(a.compare == 0x3132333435363738);
	assert_true(a.compare_mask == 0x00000000ffffffff);
	assert_int_equal(wire_atomic_resp_decode(&s, atomic_resp, 12), 0);
	assert_int_equal(s.id, 0x0a0b0c0d);
	assert_true(s.value == 0x4142434445464748);
	assert_int_equal(wire_imm_decode(&v, imm, 8), 0);
	assert_int_equal(v, 0xdeadbeef);
}

/* Each has one length only. */
static void payload_lengths(void **state)
{
	struct fence fence = fence_new(64);
	uint8_t zero[64] = {0};

	(void)state;
	for (size_t len = 0; len <= 64; len++) {
		uint8_t *p = fence_put(&fence, zero, len);
		struct wire_atomic_resp s;
		struct wire_atomic_req a;
		struct wire_read_req r;
		uint32_t v;

		assert_int_equal(wire_read_req_decode(&r, p, len), len == 28 ? 0 : -EPROTO);
		assert_int_equal(wire_atomic_req_decode(&a, p, len), len == 52 ? 0 : -EPROTO);
		assert_int_equal(wire_atomic_resp_decode(&s, p, len), len == 12 ? 0 : -EPROTO);
		assert_int_equal(wire_imm_decode(&v, p, len), len == 8 ? 0 : -EPROTO);
	}
	fence_free(&fence);
}

static void payload_contents(void **state)
{
	struct wire_atomic_req a;
	uint8_t b[52];
	uint32_t v;

	(void)state;
	for (uint8_t op = 0; op < 16; op++) {
		memcpy(b, cmp_swap, sizeof(b));
		b[0] = b[1] = b[2] = 0xff; /* 28 reserved bits, not checked */
		b[3] = 0xf0 | op;
		assert_int_equal(
			wire_atomic_req_decode(&a, b, 52),
			op == WIRE_ATOMIC_FETCH_ADD || op == WIRE_ATOMIC_CMP_SWAP ? 0 : -EPROTO);
	}
	for (size_t i = 4; i < 8; i++) { /* half a 64-bit immediate is none */
		memcpy(b, imm, 8);
		b[i] = 1;
		assert_int_equal(wire_imm_decode(&v, b, 8), -EPROTO);
	}
}

static void payloads_round_trip(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint8_t in[52], out[52];
		struct wire_atomic_resp s;
		struct wire_atomic_req a;
		struct wire_read_req r;
		uint32_t v = (uint32_t)rnd64(), w;

		rnd_fill(in, sizeof(in));
		assert_int_equal(wire_read_req_decode(&r, in, 28), 0);
		assert_int_equal(wire_read_req_encode(&r, out), 28);
		assert_memory_equal(in, out, 28);
		assert_int_equal(wire_atomic_resp_decode(&s, in, 12), 0);
		assert_int_equal(wire_atomic_resp_encode(&s, out), 12);
		assert_memory_equal(in, out, 12);
		in[0] = in[1] = in[2] = 0;
		in[3] = in[3] & 1 ? 2 : 0;
		assert_int_equal(wire_atomic_req_decode(&a, in, 52), 0);
		assert_int_equal(wire_atomic_req_encode(&a, out), 52);
		assert_memory_equal(in, out, 52);
		assert_int_equal(wire_imm_encode(v, out), 8);
		assert_int_equal(wire_imm_decode(&w, out, 8), 0);
		assert_int_equal(w, v);
	}
}

static void names(void **state)
{
	(void)state;
	assert_string_equal(wire_opcode_str(WIRE_OP_WRITE), "RDMA Write");
	assert_string_equal(wire_opcode_str(WIRE_OP_CONTROL), "Control");
	for (int i = 0; i < 256; i++) {
		assert_non_null(wire_opcode_str((uint8_t)i));
		assert_int_equal(strcmp(wire_opcode_str((uint8_t)i), "unknown opcode") == 0,
				 i >= 0xf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_golden),
		cmocka_unit_test(headers_truncated),
		cmocka_unit_test(versions),
		cmocka_unit_test(reserved_bits_are_ignored),
		cmocka_unit_test(opcodes),
		cmocka_unit_test(queue_numbers),
		cmocka_unit_test(headers_round_trip),
		cmocka_unit_test(payloads_golden),
		cmocka_unit_test(payloads_decode),
		cmocka_unit_test(payload_lengths),
		cmocka_unit_test(payload_contents),
		cmocka_unit_test(payloads_round_trip),
		cmocka_unit_test(names),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.rdmap", tests, NULL, NULL);
}
