/* FPDUs without markers: RFC 5044 section 4. */
#include "test_wire.h"

#include <errno.h>

#include "wire_crc32c.h"
#include "wire_mpa.h"

/* The Send of RFC 5044's annotated dump, without its marker. The CRC is that of a
 * bitwise calculation by hand. */
static const uint8_t send24[48] = {
	0x00, 0x2a, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xb7, 0x24, 0x3e, 0xc3,
};

static void golden(void **state)
{
	uint8_t buf[sizeof(send24)];
	const uint8_t *ulpdu;
	size_t len, need;

	(void)state;
	memset(buf, 0xee, sizeof(buf));
	memcpy(buf + 2, send24 + 2, 42);
	assert_int_equal(wire_mpa_fpdu_seal(buf, 42, true), sizeof(send24));
	assert_memory_equal(buf, send24, sizeof(send24));
	assert_int_equal(wire_mpa_fpdu_open(send24, sizeof(send24), true, &ulpdu, &len, &need),
			 (int)sizeof(send24));
	assert_ptr_equal(ulpdu, send24 + 2);
	assert_int_equal(len, 42);
}

static void pad_and_length(void **state)
{
	static const struct {
		size_t ulpdu, pad, fpdu;
	} want[] = {{0, 2, 8},  {1, 1, 8},   {2, 0, 8},        {3, 3, 12},
		    {4, 2, 12}, {42, 0, 48}, {65535, 3, 65544}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_int_equal(wire_mpa_pad(want[i].ulpdu), want[i].pad);
		assert_int_equal(wire_mpa_fpdu_len(want[i].ulpdu), want[i].fpdu);
	}
	assert_int_equal(WIRE_MPA_FPDU_MAX, 65544);
}

static void seal_writes_zero_pad_and_no_more(void **state)
{
	uint8_t buf[64];

	(void)state;
	for (size_t n = 0; n < 16; n++) {
		size_t total;

		memset(buf, 0xee, sizeof(buf));
		total = wire_mpa_fpdu_seal(buf, n, false);
		assert_int_equal(total, wire_mpa_fpdu_len(n));
		assert_int_equal(buf[0] << 8 | buf[1], n);
		for (size_t i = 2; i < 2 + n; i++)
			assert_int_equal(buf[i], 0xee);
		for (size_t i = 2 + n; i < total; i++) /* pad, and the CRC that is off */
			assert_int_equal(buf[i], 0);
		assert_int_equal(buf[total], 0xee);
	}
}

/* Every prefix of FPDUs of several sizes; the rest of the stream is not touched. */
static void truncated(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 3, 14, 18, 255, 256, 1442};
	struct fence fence = fence_new(2048);
	uint8_t buf[2048];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t total;

		rnd_fill(buf, sizeof(buf));
		total = wire_mpa_fpdu_seal(buf, sizes[i], true);
		for (size_t len = 0; len <= total; len++) {
			const uint8_t *ulpdu;
			size_t n, need = 12345;
			int r = wire_mpa_fpdu_open(fence_put(&fence, buf, len), len, true, &ulpdu,
						   &n, &need);

			assert_int_equal(r, len < total ? -EAGAIN : (int)total);
			assert_int_equal(need, len < 2 ? 0 : total);
		}
	}
	fence_free(&fence);
}

/* One flipped bit anywhere but in the length is a wrong CRC; with CRCs off it is
 * the payload that arrives. */
static void every_flipped_bit(void **state)
{
	uint8_t f[sizeof(send24)];

	(void)state;
	for (size_t bit = 16; bit < 8 * sizeof(send24); bit++) {
		const uint8_t *ulpdu;
		size_t n, need;

		memcpy(f, send24, sizeof(f));
		f[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(wire_mpa_fpdu_open(f, sizeof(f), true, &ulpdu, &n, &need),
				 -EBADMSG);
		assert_int_equal(wire_mpa_fpdu_open(f, sizeof(f), false, &ulpdu, &n, &need), 48);
	}
	/* A shorter length is caught too: the CRC then stands elsewhere. */
	memcpy(f, send24, sizeof(f));
	f[1] = 0x22;
	assert_int_equal(wire_mpa_fpdu_open(f, sizeof(f), true, &(const uint8_t *){0}, &(size_t){0},
					    &(size_t){0}),
			 -EBADMSG);
}

/* Only senders are bound to zero the pad. */
static void pad_is_not_checked(void **state)
{
	uint8_t f[8] = {0x00, 0x00, 0xab, 0xcd};
	uint32_t crc = wire_crc32c_portable(0, f, 4);
	const uint8_t *ulpdu;
	size_t n, need;

	(void)state;
	for (int i = 0; i < 4; i++)
		f[4 + i] = (uint8_t)(crc >> 8 * i); /* least significant byte first */
	assert_int_equal(wire_mpa_fpdu_open(f, sizeof(f), true, &ulpdu, &n, &need), 8);
	assert_int_equal(n, 0);
}

static void stream_round_trip(void **state)
{
	uint8_t *stream = malloc(1 << 20);
	struct fence fence = fence_new(WIRE_MPA_FPDU_MAX);

	(void)state;
	assert_non_null(stream);
	for (int round = 0; round < 20; round++) {
		size_t ends[64], lens[64], at = 0;
		int frames = 0;

		while (frames < 64 && at + WIRE_MPA_FPDU_MAX < 1 << 20) {
			size_t n = rnd_below(rnd_below(4) ? 2000 : WIRE_MPA_ULPDU_MAX + 1);

			rnd_fill(stream + at + 2, n);
			lens[frames] = n;
			at += wire_mpa_fpdu_seal(stream + at, n, true);
			ends[frames++] = at;
		}
		for (int i = 0, pos = 0; i < frames; i++) {
			const uint8_t *ulpdu;
			size_t n, need, len = ends[i] - (size_t)pos;
			uint8_t *p = fence_put(&fence, stream + pos, len);

			assert_int_equal(wire_mpa_fpdu_open(p, len, true, &ulpdu, &n, &need), len);
			assert_int_equal(n, lens[i]);
			assert_memory_equal(ulpdu, stream + pos + 2, n);
			pos = (int)ends[i];
		}
	}
	fence_free(&fence);
	free(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(pad_and_length),
		cmocka_unit_test(seal_writes_zero_pad_and_no_more),
		cmocka_unit_test(truncated),
		cmocka_unit_test(every_flipped_bit),
		cmocka_unit_test(pad_is_not_checked),
		cmocka_unit_test(stream_round_trip),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.fpdu", tests, NULL, NULL);
}
