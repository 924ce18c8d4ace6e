/* Streams with markers: RFC 5044 section 4.3.
 *
 * The implementation walks from marker to marker. The reference here instead uses
 * the closed form: without markers, byte c of the stream would stand at c; with
 * one marker before each 508 bytes of content it stands at c + 4 * (c / 508 + 1),
 * and the marker at 512 k precedes content byte 508 k. */
#include "test_wire.h"

#include <errno.h>

#include "wire_crc32c.h"
#include "wire_mpa.h"

/* RFC 5044, the annotated dumps of section 4: the first FPDU of a stream, behind
 * the first marker; and one in which a marker falls 20 bytes after its start. */
static const uint8_t rfc_first[52] = {
	0x00, 0x00, 0x00, 0x00, 0x00, 0x2a, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x52, 0x23, 0x99, 0x83,
};
static const uint8_t rfc_inside[52] = {
	0x00, 0x2a, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x84, 0x92, 0x58, 0x98,
};

static void check_golden(const uint8_t *want, uint32_t pos, uint32_t pos_after, uint8_t msn)
{
	uint8_t ulpdu[42] = {0x41, 0x43}, buf[64], got[WIRE_MPA_ULPDU_MAX];
	struct wire_mpa_mark tx = {pos}, rx = {pos};
	size_t n, need;

	ulpdu[13] = msn;
	assert_int_equal(wire_mpa_mark_fpdu(&tx, buf, ulpdu, sizeof(ulpdu), true), 52);
	assert_memory_equal(buf, want, 52);
	assert_int_equal(tx.pos, pos_after);
	assert_int_equal(wire_mpa_mark_open(&rx, want, 52, true, got, &n, &need), 52);
	assert_int_equal(rx.pos, pos_after);
	assert_int_equal(n, 42);
	assert_memory_equal(got, ulpdu, 42);
}

static void golden(void **state)
{
	(void)state;
	check_golden(rfc_first, 0, 52, 1);
	check_golden(rfc_inside, 512 - 20, 32, 2);
}

/* The reference. Builds a stream of FPDUs from `pieces` ULPDUs. */
struct ref {
	uint8_t *content; /* without markers */
	uint8_t *stream;
	size_t len;       /* of the content */
	size_t ends[256]; /* stream offset after each FPDU */
};

static size_t stream_at(size_t c)
{
	return c + 4 * (c / 508 + 1);
}

static void ref_append(struct ref *r, const uint8_t *ulpdu, size_t n, bool crc, size_t index)
{
	size_t h = r->len, body = 2 + n, crc_at, begin;
	uint32_t sum = 0;

	body += (4 - body % 4) % 4;
	memset(r->content + h, 0, body + 4);
	r->content[h] = (uint8_t)(n >> 8);
	r->content[h + 1] = (uint8_t)n;
	if (n)
		memcpy(r->content + h + 2, ulpdu, n);
	r->len += body + 4;
	/* The markers of this FPDU: those that precede one of its bytes. */
	for (size_t k = (h + 507) / 508; 508 * k < r->len; k++) {
		size_t back = 508 * k == h ? 0 : 512 * k - stream_at(h);

		r->stream[512 * k] = r->stream[512 * k + 1] = 0;
		r->stream[512 * k + 2] = (uint8_t)(back >> 8);
		r->stream[512 * k + 3] = (uint8_t)back;
	}
	for (size_t c = h; c < h + body; c++)
		r->stream[stream_at(c)] = r->content[c];
	crc_at = stream_at(h + body);
	begin = stream_at(h) - (h % 508 ? 0 : 4);
	if (crc)
		sum = wire_crc32c_portable(0, r->stream + begin, crc_at - begin);
	for (int i = 0; i < 4; i++)
		r->stream[crc_at + (size_t)i] = (uint8_t)(sum >> 8 * i);
	r->ends[index] = crc_at + 4;
}

#define STREAM_MAX (2 << 20)

static struct ref ref_new(void)
{
	struct ref r = {.content = malloc(STREAM_MAX), .stream = malloc(STREAM_MAX)};

	assert_non_null(r.content);
	assert_non_null(r.stream);
	return r;
}

static void ref_free(struct ref *r)
{
	free(r->content);
	free(r->stream);
}

static size_t random_size(void)
{
	switch (rnd_below(8)) {
	case 0:
		return rnd_below(WIRE_MPA_ULPDU_MARKED_MAX + 1);
	case 1:
		return 480 + rnd_below(64); /* about one interval */
	case 2:
		return rnd_below(4);
	default:
		return rnd_below(2000);
	}
}

/* Takes FPDUs from a stream that arrives in random chunks, as a socket would. */
static void receive(const struct ref *r, uint8_t *const *ulpdus, const size_t *lens, size_t count,
		    bool crc)
{
	struct fence fence = fence_new(WIRE_MPA_FPDU_MARKED_MAX), out = fence_new(65536);
	struct wire_mpa_mark rx = {0};
	size_t taken = 0, here = 0, end = r->ends[count - 1];

	for (size_t i = 0; i < count;) {
		size_t avail = here - taken, n = 99, need = 99;
		size_t whole = r->ends[i] - taken;
		uint32_t before = rx.pos;
		uint8_t *ulpdu = fence_put(&out, NULL, lens[i]);
		int got;

		/* More than the FPDU only if that fits the fence; exactly at its end
		 * in any case. */
		if (avail > WIRE_MPA_FPDU_MARKED_MAX)
			avail = WIRE_MPA_FPDU_MARKED_MAX;
		got = wire_mpa_mark_open(&rx, fence_put(&fence, r->stream + taken, avail), avail,
					 crc, ulpdu, &n, &need);
		if (avail < whole) {
			assert_int_equal(got, -EAGAIN);
			assert_true(need == 0 || need == whole);
			assert_true(need != 0 || avail < 6);
			assert_int_equal(rx.pos, before);
			here += 1 + rnd_below(rnd_below(2) ? 8 : 4096);
			if (here > end)
				here = end;
			continue;
		}
		assert_int_equal(got, (int)whole);
		assert_int_equal(n, lens[i]);
		assert_memory_equal(ulpdu, ulpdus[i], n);
		taken += whole;
		assert_int_equal(rx.pos, taken % 512);
		i++;
	}
	fence_free(&fence);
	fence_free(&out);
}

static void random_streams(void **state)
{
	struct fence fence = fence_new(WIRE_MPA_FPDU_MARKED_MAX);

	(void)state;
	for (int round = 0; round < 150; round++) {
		struct ref r = ref_new();
		struct wire_mpa_mark tx = {0};
		uint8_t *ulpdus[256];
		size_t lens[256], count = 0, at = 0;
		bool crc = round % 4;

		while (count < 256 && r.len + 70000 < STREAM_MAX / 2) {
			size_t n = round % 3 ? random_size() : rnd_below(600), want, got;
			uint8_t *dst;

			lens[count] = n;
			ulpdus[count] = malloc(n + 1);
			assert_non_null(ulpdus[count]);
			rnd_fill(ulpdus[count], n);
			ref_append(&r, ulpdus[count], n, crc, count);
			want = r.ends[count] - at;
			dst = fence_put(&fence, NULL, want);
			got = wire_mpa_mark_fpdu(&tx, dst, ulpdus[count], n, crc);
			assert_int_equal(got, want);
			assert_memory_equal(dst, r.stream + at, want);
			at += want;
			assert_int_equal(tx.pos, at % 512);
			count++;
		}
		receive(&r, ulpdus, lens, count, crc);
		while (count--)
			free(ulpdus[count]);
		ref_free(&r);
	}
	fence_free(&fence);
}

/* From every position of the stream, FPDUs of many sizes, at every truncation. */
static void every_position_and_truncation(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 3, 18, 42, 470, 494, 498, 502, 506, 510, 1100};
	struct fence fence = fence_new(2048);
	uint8_t ulpdu[1100], buf[2048], out[1100];

	(void)state;
	rnd_fill(ulpdu, sizeof(ulpdu));
	for (uint32_t pos = 0; pos < 512; pos += 4) {
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct wire_mpa_mark tx = {pos}, rx = {pos};
			size_t total = wire_mpa_mark_fpdu(&tx, buf, ulpdu, sizes[i], true), n, need;
			size_t step = total > 100 ? 7 : 1;

			for (size_t len = 0; len < total; len += step) {
				uint8_t *p = fence_put(&fence, buf, len);

				assert_int_equal(
					wire_mpa_mark_open(&rx, p, len, true, out, &n, &need),
					-EAGAIN);
				assert_int_equal(need, len < (pos ? 2 : 6) ? 0 : total);
				assert_int_equal(rx.pos, pos);
			}
			assert_int_equal(wire_mpa_mark_open(&rx, fence_put(&fence, buf, total),
							    total, true, out, &n, &need),
					 (int)total);
			assert_int_equal(n, sizes[i]);
			assert_memory_equal(out, ulpdu, n);
			assert_int_equal(rx.pos, tx.pos);
			assert_int_equal(rx.pos, (pos + total) % 512);
		}
	}
	fence_free(&fence);
}

/* The CRC covers markers: damage is -EBADMSG; a marker that was wrong from the
 * start is -EPROTO, and so is any wrong marker without CRCs. */
static void wrong_markers(void **state)
{
	uint8_t ulpdu[1500], buf[2048], out[1500];
	size_t total, n, need;

	(void)state;
	rnd_fill(ulpdu, sizeof(ulpdu));
	for (uint32_t pos = 0; pos < 512; pos += 4) {
		struct wire_mpa_mark tx = {pos};
		size_t start = pos ? 512 - pos : 0;

		total = wire_mpa_mark_fpdu(&tx, buf, ulpdu, sizeof(ulpdu), true);
		for (size_t at = start; at < total; at += 512) {
			struct wire_mpa_mark rx = {pos};
			uint32_t crc;
			uint8_t good[4];

			buf[at + 3] ^= 4;
			assert_int_equal(wire_mpa_mark_open(&rx, buf, total, true, out, &n, &need),
					 -EBADMSG);
			assert_int_equal(wire_mpa_mark_open(&rx, buf, total, false, out, &n, &need),
					 -EPROTO);
			memcpy(good, buf + total - 4, 4);
			crc = wire_crc32c(0, buf, total - 4);
			for (int i = 0; i < 4; i++)
				buf[total - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
			assert_int_equal(wire_mpa_mark_open(&rx, buf, total, true, out, &n, &need),
					 -EPROTO);
			assert_int_equal(rx.pos, pos);
			memcpy(buf + total - 4, good, 4);
			buf[at + 3] ^= 4;
			/* Reserved bits and the low two of FPDUPTR are not looked at. */
			buf[at] ^= 0xff;
			buf[at + 1] ^= 0xff;
			buf[at + 3] |= 3;
			assert_int_equal(wire_mpa_mark_open(&rx, buf, total, false, out, &n, &need),
					 (int)total);
			buf[at] ^= 0xff;
			buf[at + 1] ^= 0xff;
			buf[at + 3] &= (uint8_t)~3;
		}
	}
}

/* FPDUPTR has 16 bits: longer ULPDUs are refused by the sender, and a receiver
 * cannot be pointed back that far either. */
static void longest(void **state)
{
	uint8_t *ulpdu = calloc(1, WIRE_MPA_ULPDU_MAX), *out = malloc(WIRE_MPA_ULPDU_MAX);
	uint8_t *buf = calloc(1, WIRE_MPA_FPDU_MARKED_MAX);

	(void)state;
	assert_non_null(ulpdu);
	assert_non_null(out);
	assert_non_null(buf);
	for (uint32_t pos = 0; pos < 512; pos += 4) {
		struct wire_mpa_mark tx = {pos}, rx = {pos};
		size_t n, need, total;

		assert_int_equal(
			wire_mpa_mark_fpdu(&tx, buf, ulpdu, WIRE_MPA_ULPDU_MARKED_MAX + 1, true),
			0);
		assert_int_equal(tx.pos, pos);
		total = wire_mpa_mark_fpdu(&tx, buf, ulpdu, WIRE_MPA_ULPDU_MARKED_MAX, true);
		assert_in_range(total, WIRE_MPA_ULPDU_MARKED_MAX, 65535);
		assert_int_equal(wire_mpa_mark_open(&rx, buf, total, true, out, &n, &need),
				 (int)total);
		memset(buf, 0, WIRE_MPA_FPDU_MARKED_MAX);
		rx.pos = pos;
		buf[pos ? 0 : 4] = buf[pos ? 1 : 5] = 0xff;
		assert_int_equal(wire_mpa_mark_open(&rx, buf, WIRE_MPA_FPDU_MARKED_MAX, false, out,
						    &n, &need),
				 -EPROTO);
		assert_true(need <= WIRE_MPA_FPDU_MARKED_MAX);
		memset(buf, 0, WIRE_MPA_FPDU_MARKED_MAX);
	}
	free(ulpdu);
	free(out);
	free(buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(random_streams),
		cmocka_unit_test(every_position_and_truncation),
		cmocka_unit_test(wrong_markers),
		cmocka_unit_test(longest),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.mark", tests, NULL, NULL);
}
