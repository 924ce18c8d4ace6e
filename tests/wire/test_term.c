/* The Terminate message: RFC 5040 section 4.8. */
#include "test_wire.h"

#include <errno.h>

#include "wire_rdmap.h"

/* By hand. A remote protection error, base or bounds, about a Read Request: layer
 * 0, type 1, code 1, M D R all set; segment length 46 = 18 + 28. */
static const uint8_t read_bounds[52] = {
	0x01, 0x01, 0xe0, 0x00,                         /* control */
	0x00, 0x2e,                                     /* DDP segment length */
	0x41, 0x41, 0x00, 0x00, 0x00, 0x00,             /* DDP header: control, ULP word */
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x07, /* QN, MSN */
	0x00, 0x00, 0x00, 0x00,                         /* MO */
	0x01, 0x02, 0x03, 0x04,                         /* data sink STag */
	0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* data sink TO */
	0x00, 0x10, 0x00, 0x00,                         /* size */
	0xa1, 0xa2, 0xa3, 0xa4,                         /* data source STag */
	0xb1, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, /* data source TO */
};

/* DDP, tagged buffer, invalid STag, about a Write of 14 + 100 bytes. */
static const uint8_t write_stag[20] = {
	0x11, 0x00, 0xc0, 0x00, 0x00, 0x72, 0xc1, 0x40, 0xde, 0xad,
	0xbe, 0xef, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00,
};

/* MPA, CRC error: no headers. */
static const uint8_t mpa_crc[4] = {0x20, 0x02, 0x00, 0x00};

static struct wire_term term_of(const uint8_t *b, size_t len)
{
	struct wire_term t;

	memset(&t, 0xff, sizeof(t));
	assert_int_equal(wire_term_decode(&t, b, len), 0);
	return t;
}

static void golden(void **state)
{
	uint8_t buf[WIRE_TERM_MAX];
	struct wire_term t;

	(void)state;
	t = term_of(read_bounds, sizeof(read_bounds));
	assert_int_equal(t.layer, WIRE_LAYER_RDMAP);
	assert_int_equal(t.etype, WIRE_ETYPE_RDMAP_PROTECTION);
	assert_int_equal(t.ecode, WIRE_RDMAP_BASE_BOUNDS);
	assert_true(t.has_len && t.has_ddp && t.has_rdmap);
	assert_int_equal(t.ddp_len, 46);
	assert_int_equal(t.hdr_len, 18);
	assert_memory_equal(t.hdr, read_bounds + 6, 18);
	assert_memory_equal(t.rreq, read_bounds + 24, 28);
	assert_int_equal(wire_term_encode(&t, buf), sizeof(read_bounds));
	assert_memory_equal(buf, read_bounds, sizeof(read_bounds));
	assert_int_equal(WIRE_TERM_MAX, sizeof(read_bounds));

	t = term_of(write_stag, sizeof(write_stag));
	assert_int_equal(t.layer, WIRE_LAYER_DDP);
	assert_int_equal(t.etype, WIRE_ETYPE_DDP_TAGGED);
	assert_int_equal(t.ecode, WIRE_DDP_T_INVALID_STAG);
	assert_true(t.has_len && t.has_ddp && !t.has_rdmap);
	assert_int_equal(t.ddp_len, 114);
	assert_int_equal(t.hdr_len, 14);
	assert_int_equal(wire_term_encode(&t, buf), sizeof(write_stag));
	assert_memory_equal(buf, write_stag, sizeof(write_stag));

	t = term_of(mpa_crc, sizeof(mpa_crc));
	assert_int_equal(t.layer, WIRE_LAYER_LLP);
	assert_int_equal(t.etype, WIRE_ETYPE_LLP_MPA);
	assert_int_equal(t.ecode, WIRE_MPA_CRC);
	assert_false(t.has_len || t.has_ddp || t.has_rdmap);
	assert_int_equal(wire_term_encode(&t, buf), sizeof(mpa_crc));
	assert_memory_equal(buf, mpa_crc, sizeof(mpa_crc));
}

/* Too short and too long; the codes are known as soon as four bytes are there. */
static void wrong_length(void **state)
{
	static const struct {
		const uint8_t *b;
		size_t len;
	} all[] = {{read_bounds, sizeof(read_bounds)},
		   {write_stag, sizeof(write_stag)},
		   {mpa_crc, sizeof(mpa_crc)}};
	struct fence fence = fence_new(64);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		for (size_t len = 0; len <= all[i].len + 2; len++) {
			uint8_t b[64] = {0};
			struct wire_term t;

			if (len == all[i].len)
				continue;
			memcpy(b, all[i].b, len < all[i].len ? len : all[i].len);
			assert_int_equal(wire_term_decode(&t, fence_put(&fence, b, len), len),
					 -EPROTO);
			if (len >= 4) {
				assert_int_equal(t.layer, b[0] >> 4);
				assert_int_equal(t.etype, b[0] & 0xf);
				assert_int_equal(t.ecode, b[1]);
			}
		}
	}
	fence_free(&fence);
}

static void reserved_bits_are_ignored(void **state)
{
	uint8_t b[sizeof(mpa_crc)];
	struct wire_term t;

	(void)state;
	memcpy(b, mpa_crc, sizeof(b));
	b[2] |= 0x1f;
	b[3] = 0xff;
	t = term_of(b, sizeof(b));
	assert_int_equal(t.ecode, WIRE_MPA_CRC);
	assert_false(t.has_len || t.has_ddp || t.has_rdmap);
}

/* With D but not M the length is there but says nothing. */
static void length_without_meaning(void **state)
{
	uint8_t b[sizeof(write_stag)], buf[WIRE_TERM_MAX];
	struct wire_term t;

	(void)state;
	memcpy(b, write_stag, sizeof(b));
	b[2] = 0x40;
	t = term_of(b, sizeof(b));
	assert_false(t.has_len);
	assert_true(t.has_ddp);
	assert_int_equal(t.ddp_len, 0);
	b[4] = b[5] = 0;
	assert_int_equal(wire_term_encode(&t, buf), sizeof(b));
	assert_memory_equal(buf, b, sizeof(b));
}

static void round_trips(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		uint8_t buf[WIRE_TERM_MAX], again[WIRE_TERM_MAX];
		struct wire_term t = {.layer = rnd64() & 0xf, .etype = rnd64() & 0xf}, got;
		size_t n;

		t.ecode = (uint8_t)rnd64();
		t.has_len = rnd64() & 1;
		t.has_ddp = rnd64() & 1;
		t.has_rdmap = rnd64() & 1;
		if (t.has_len)
			t.ddp_len = (uint16_t)rnd64();
		if (t.has_ddp) {
			t.hdr_len = rnd64() & 1 ? 14 : 18;
			rnd_fill(t.hdr, t.hdr_len);
			t.hdr[0] = (uint8_t)((t.hdr[0] & 0x7f) | (t.hdr_len == 14 ? 0x80 : 0));
		}
		if (t.has_rdmap)
			rnd_fill(t.rreq, sizeof(t.rreq));
		n = wire_term_encode(&t, buf);
		assert_in_range(n, 4, WIRE_TERM_MAX);
		assert_int_equal(wire_term_decode(&got, buf, n), 0);
		assert_int_equal(wire_term_encode(&got, again), n);
		assert_memory_equal(again, buf, n);
		assert_int_equal(got.layer, t.layer);
		assert_int_equal(got.etype, t.etype);
		assert_int_equal(got.ecode, t.ecode);
		assert_int_equal(got.ddp_len, t.ddp_len);
		assert_int_equal(got.hdr_len, t.hdr_len);
		assert_memory_equal(got.hdr, t.hdr, t.hdr_len);
		assert_memory_equal(got.rreq, t.rreq, t.has_rdmap ? 28 : 0);
	}
}

/* The golden messages again, made from the segments that they are about. */
static void cite_golden(void **state)
{
	uint8_t write[114], buf[WIRE_TERM_MAX];
	struct wire_term t;

	(void)state;
	t = (struct wire_term){.layer = WIRE_LAYER_RDMAP,
			       .etype = WIRE_ETYPE_RDMAP_PROTECTION,
			       .ecode = WIRE_RDMAP_BASE_BOUNDS};
	wire_term_cite(&t, read_bounds + 6, 46);
	assert_int_equal(wire_term_encode(&t, buf), sizeof(read_bounds));
	assert_memory_equal(buf, read_bounds, sizeof(read_bounds));

	memset(write, 0xaa, sizeof(write));
	memcpy(write, write_stag + 6, 14);
	t = (struct wire_term){.layer = WIRE_LAYER_DDP,
			       .etype = WIRE_ETYPE_DDP_TAGGED,
			       .ecode = WIRE_DDP_T_INVALID_STAG};
	wire_term_cite(&t, write, sizeof(write));
	assert_int_equal(wire_term_encode(&t, buf), sizeof(write_stag));
	assert_memory_equal(buf, write_stag, sizeof(write_stag));
}

/* Errors that are about no segment cite none, whatever is offered. */
static void cite_nothing(void **state)
{
	static const struct {
		uint8_t layer, etype;
	} no[] = {{WIRE_LAYER_RDMAP, 0}, {WIRE_LAYER_DDP, 0}, {WIRE_LAYER_LLP, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		struct wire_term t = {.layer = no[i].layer,
				      .etype = no[i].etype,
				      .has_len = true,
				      .has_ddp = true,
				      .has_rdmap = true,
				      .hdr_len = 18};

		wire_term_cite(&t, read_bounds + 6, 46);
		assert_false(t.has_len || t.has_ddp || t.has_rdmap);
		assert_int_equal(t.hdr_len, 0);
	}
}

/* Of a cut segment as much is cited as is whole. */
static void cite_truncated(void **state)
{
	static const uint8_t layers[] = {WIRE_LAYER_RDMAP, WIRE_LAYER_DDP};
	struct fence fence = fence_new(64);

	(void)state;
	for (size_t len = 0; len <= 46; len++) {
		for (size_t i = 0; i < ARRAY_SIZE(layers); i++) {
			struct wire_term t = {.layer = layers[i], .etype = 2};
			size_t tagged = len < 14 ? len : 14;

			wire_term_cite(&t, fence_put(&fence, read_bounds + 6, len), len);
			assert_int_equal(t.has_len, len >= 1);
			assert_int_equal(t.has_ddp, len >= 18);
			assert_int_equal(t.has_rdmap, len >= 46);
			wire_term_cite(&t, fence_put(&fence, write_stag + 6, tagged), tagged);
			assert_int_equal(t.has_len, len >= 1);
			assert_int_equal(t.has_ddp, len >= 14);
			assert_false(t.has_rdmap);
		}
	}
	fence_free(&fence);
}

static void words(void **state)
{
	struct wire_term t = {.layer = WIRE_LAYER_DDP,
			      .etype = WIRE_ETYPE_DDP_TAGGED,
			      .ecode = WIRE_DDP_T_BASE_BOUNDS};

	(void)state;
	assert_string_equal(wire_term_str(&t),
			    "DDP: tagged buffer error: base or bounds violation");
	t = (struct wire_term){.layer = WIRE_LAYER_LLP, .ecode = WIRE_MPA_CRC};
	assert_string_equal(wire_term_str(&t), "MPA: CRC error");
	for (int layer = 0; layer < 16; layer++) {
		for (int etype = 0; etype < 16; etype++) {
			for (int ecode = 0; ecode < 256; ecode++) {
				t.layer = (uint8_t)layer;
				t.etype = (uint8_t)etype;
				t.ecode = (uint8_t)ecode;
				assert_true(strlen(wire_term_str(&t)) > 0);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(wrong_length),
		cmocka_unit_test(reserved_bits_are_ignored),
		cmocka_unit_test(length_without_meaning),
		cmocka_unit_test(round_trips),
		cmocka_unit_test(cite_golden),
		cmocka_unit_test(cite_nothing),
		cmocka_unit_test(cite_truncated),
		cmocka_unit_test(words),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.term", tests, NULL, NULL);
}
