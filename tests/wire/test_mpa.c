/* MPA handshake frames: RFC 5044 section 7.1, RFC 6581. */
#include "test_wire.h"

#include <errno.h>

#include "wire_mpa.h"

/* Written by hand from the RFCs. A request of revision 1: no markers, CRC, five
 * bytes of private data. */
static const uint8_t req1[] = {
	'M', 'P', 'A', ' ',  'I',  'D',  ' ',  'R', 'e', 'q', ' ', 'F', 'r',
	'a', 'm', 'e', 0x40, 0x01, 0x00, 0x05, 'h', 'e', 'l', 'l', 'o',
};

/* A reply of revision 2, enhanced: markers and CRC wanted, peer-to-peer with a
 * Send and a Read as RTR, IRD 0x0102, ORD 0x3fff, two bytes of private data. */
static const uint8_t rep2[] = {
	'M', 'P', 'A', ' ',  'I',  'D',  ' ',  'R',  'e',  'p',  ' ',  'F',  'r',
	'a', 'm', 'e', 0xd0, 0x02, 0x00, 0x06, 0xc1, 0x02, 0x7f, 0xff, 0xbe, 0xef,
};

/* What Linux's siw sends: revision 2, enhanced, IRD = ORD = 1, nothing else. */
static const uint8_t siw[] = {
	'M', 'P', 'A', ' ', 'I',  'D',  ' ',  'R',  'e',  'q',  ' ',  'F',
	'r', 'a', 'm', 'e', 0x10, 0x02, 0x00, 0x04, 0x00, 0x01, 0x00, 0x01,
};

/* A rejection, revision 1, without private data. */
static const uint8_t reject[] = {
	'M', 'P', 'A', ' ', 'I', 'D', ' ',  'R',  'e',  'p',
	' ', 'F', 'r', 'a', 'm', 'e', 0x20, 0x01, 0x00, 0x00,
};

static struct wire_mpa_hs hs_req1(void)
{
	return (struct wire_mpa_hs){.crc = true, .revision = 1, .pd_len = 5, .pd = "hello"};
}

static struct wire_mpa_hs hs_rep2(void)
{
	return (struct wire_mpa_hs){.reply = true,
				    .markers = true,
				    .crc = true,
				    .enhanced = true,
				    .p2p = true,
				    .rtr_send = true,
				    .rtr_read = true,
				    .revision = 2,
				    .ird = 0x102,
				    .ord = 0x3fff,
				    .pd_len = 2,
				    .pd = {0xbe, 0xef}};
}

static void assert_same(const struct wire_mpa_hs *a, const struct wire_mpa_hs *b)
{
	assert_int_equal(a->reply, b->reply);
	assert_int_equal(a->markers, b->markers);
	assert_int_equal(a->crc, b->crc);
	assert_int_equal(a->reject, b->reject);
	assert_int_equal(a->enhanced, b->enhanced);
	assert_int_equal(a->p2p, b->p2p);
	assert_int_equal(a->rtr_send, b->rtr_send);
	assert_int_equal(a->rtr_write, b->rtr_write);
	assert_int_equal(a->rtr_read, b->rtr_read);
	assert_int_equal(a->revision, b->revision);
	assert_int_equal(a->ird, b->ird);
	assert_int_equal(a->ord, b->ord);
	assert_int_equal(a->pd_len, b->pd_len);
	assert_memory_equal(a->pd, b->pd, a->pd_len);
}

static void check_golden(const struct wire_mpa_hs *hs, const uint8_t *want, size_t len)
{
	uint8_t buf[WIRE_MPA_HS_MAX];
	struct wire_mpa_hs got;

	assert_int_equal(wire_mpa_hs_encode(hs, buf, sizeof(buf)), (int)len);
	assert_memory_equal(buf, want, len);
	memset(&got, 0xff, sizeof(got));
	assert_int_equal(wire_mpa_hs_decode(&got, want, len), (int)len);
	assert_same(&got, hs);
}

static void golden(void **state)
{
	struct wire_mpa_hs hs;

	(void)state;
	hs = hs_req1();
	check_golden(&hs, req1, sizeof(req1));
	hs = hs_rep2();
	check_golden(&hs, rep2, sizeof(rep2));
	hs = (struct wire_mpa_hs){.enhanced = true, .revision = 2, .ird = 1, .ord = 1};
	check_golden(&hs, siw, sizeof(siw));
	hs = (struct wire_mpa_hs){.reply = true, .reject = true, .revision = 1};
	check_golden(&hs, reject, sizeof(reject));
	/* The four control bits one by one: A, B in the IRD word, C, D in the ORD word. */
	for (int bit = 0; bit < 4; bit++) {
		uint8_t f[sizeof(siw)];

		memcpy(f, siw, sizeof(f));
		f[20 + (bit / 2) * 2] |= bit % 2 ? 0x40 : 0x80;
		hs = (struct wire_mpa_hs){.enhanced = true, .revision = 2, .ird = 1, .ord = 1};
		*(bit == 0   ? &hs.p2p
		  : bit == 1 ? &hs.rtr_send
		  : bit == 2 ? &hs.rtr_write
			     : &hs.rtr_read) = true;
		check_golden(&hs, f, sizeof(f));
	}
}

static void truncated(void **state)
{
	static const struct {
		const uint8_t *f;
		size_t len;
	} frames[] = {{req1, sizeof(req1)},
		      {rep2, sizeof(rep2)},
		      {siw, sizeof(siw)},
		      {reject, sizeof(reject)}};
	struct fence fence = fence_new(WIRE_MPA_HS_MAX);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		for (size_t len = 0; len < frames[i].len; len++) {
			struct wire_mpa_hs hs;
			uint8_t *p = fence_put(&fence, frames[i].f, len);

			assert_int_equal(wire_mpa_hs_decode(&hs, p, len), -EAGAIN);
		}
	}
	fence_free(&fence);
}

/* What follows the frame belongs to the stream. */
static void trailing_bytes_are_left(void **state)
{
	uint8_t f[sizeof(req1) + 3];
	struct wire_mpa_hs hs;

	(void)state;
	memcpy(f, req1, sizeof(req1));
	memset(f + sizeof(req1), 0xee, 3);
	assert_int_equal(wire_mpa_hs_decode(&hs, f, sizeof(f)), (int)sizeof(req1));
	assert_int_equal(hs.pd_len, 5);
}

/* Each byte of the key, and then revision and length, refuses at once. */
static void wrong_from_the_first_byte(void **state)
{
	struct wire_mpa_hs hs;
	uint8_t f[sizeof(rep2)];

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		memcpy(f, rep2, sizeof(f));
		f[i] ^= 0x80;
		assert_int_equal(wire_mpa_hs_decode(&hs, f, i + 1), -EPROTO);
		assert_int_equal(wire_mpa_hs_decode(&hs, f, sizeof(f)), -EPROTO);
		assert_int_equal(wire_mpa_hs_decode(&hs, f, i), -EAGAIN);
	}
	assert_int_equal(wire_mpa_hs_decode(&hs, "GET / HTTP/1.1", 14), -EPROTO);
	for (int rev = 0; rev < 256; rev++) {
		memcpy(f, rep2, sizeof(f));
		f[17] = (uint8_t)rev;
		assert_int_equal(wire_mpa_hs_decode(&hs, f, 18),
				 rev == 1 || rev == 2 ? -EAGAIN : -EPROTO);
	}
	memcpy(f, rep2, sizeof(f));
	f[18] = 3; /* 768 and more */
	assert_int_equal(wire_mpa_hs_decode(&hs, f, 19), -EPROTO);
	f[18] = 2; /* 513 */
	f[19] = 1;
	assert_int_equal(wire_mpa_hs_decode(&hs, f, 19), -EAGAIN);
	assert_int_equal(wire_mpa_hs_decode(&hs, f, 20), -EPROTO);
	f[19] = 0; /* 512 */
	assert_int_equal(wire_mpa_hs_decode(&hs, f, 20), -EAGAIN);
	for (uint8_t n = 0; n < 4; n++) { /* no room for IRD and ORD */
		f[18] = 0;
		f[19] = n;
		assert_int_equal(wire_mpa_hs_decode(&hs, f, 20), -EPROTO);
	}
}

/* Reserved bits are not checked, and mean nothing. */
static void reserved_bits(void **state)
{
	struct wire_mpa_hs hs, want = hs_req1();
	uint8_t f[sizeof(req1)];

	(void)state;
	memcpy(f, req1, sizeof(f));
	f[16] |= 0x3f; /* R in a request, S in revision 1, and the four reserved */
	assert_int_equal(wire_mpa_hs_decode(&hs, f, sizeof(f)), (int)sizeof(f));
	assert_same(&hs, &want);
}

/* Revision 2 without S carries plain private data. */
static void revision_2_plain(void **state)
{
	struct wire_mpa_hs hs, want = hs_req1();
	uint8_t f[sizeof(req1)];

	(void)state;
	memcpy(f, req1, sizeof(f));
	f[17] = 2;
	want.revision = 2;
	check_golden(&want, f, sizeof(f));
	f[19] = 3; /* less than IRD and ORD would need */
	assert_int_equal(wire_mpa_hs_decode(&hs, f, sizeof(f)), 23);
}

static void not_expressible(void **state)
{
	uint8_t buf[WIRE_MPA_HS_MAX + 8];
	struct wire_mpa_hs hs;

#define REFUSED(change)                                                                            \
	do {                                                                                       \
		change;                                                                            \
		assert_int_equal(wire_mpa_hs_encode(&hs, buf, sizeof(buf)), -EINVAL);              \
	} while (0)

	(void)state;
	hs = hs_rep2();
	REFUSED(hs.revision = 1);
	REFUSED(hs.revision = 0);
	REFUSED(hs.revision = 3);
	hs = hs_rep2();
	REFUSED(hs.ird = 0x4000);
	hs = hs_rep2();
	REFUSED(hs.ord = 0x4000);
	hs = hs_rep2();
	REFUSED(hs.pd_len = 509);
	hs = hs_req1();
	REFUSED(hs.pd_len = 513);
	hs = hs_req1();
	REFUSED(hs.reject = true);
	hs = hs_req1();
	REFUSED(hs.p2p = true);
	hs = hs_req1();
	REFUSED(hs.rtr_send = true);
	hs = hs_req1();
	REFUSED(hs.rtr_write = true);
	hs = hs_req1();
	REFUSED(hs.rtr_read = true);
	hs = hs_req1();
	REFUSED(hs.ird = 1);
	hs = hs_req1();
	REFUSED(hs.ord = 1);
#undef REFUSED
}

static void room(void **state)
{
	struct fence fence = fence_new(WIRE_MPA_HS_MAX);
	struct wire_mpa_hs hs = hs_rep2();

	(void)state;
	for (size_t cap = 0; cap <= sizeof(rep2); cap++) {
		int want = cap < sizeof(rep2) ? -ENOSPC : (int)sizeof(rep2);

		assert_int_equal(wire_mpa_hs_encode(&hs, fence_put(&fence, NULL, cap), cap), want);
	}
	hs.pd_len = 508;
	assert_int_equal(
		wire_mpa_hs_encode(&hs, fence_put(&fence, NULL, WIRE_MPA_HS_MAX), WIRE_MPA_HS_MAX),
		WIRE_MPA_HS_MAX);
	fence_free(&fence);
}

static struct wire_mpa_hs random_hs(void)
{
	uint64_t r = rnd64();
	struct wire_mpa_hs hs = {.reply = r & 1,
				 .markers = r & 2,
				 .crc = r & 4,
				 .reject = (r & 1) && (r & 8),
				 .enhanced = r & 16,
				 .revision = (r & 16) || (r & 32) ? 2 : 1};

	if (hs.enhanced) {
		hs.p2p = r & 64;
		hs.rtr_send = r & 128;
		hs.rtr_write = r & 256;
		hs.rtr_read = r & 512;
		hs.ird = (r >> 16) & 0x3fff;
		hs.ord = (r >> 32) & 0x3fff;
	}
	hs.pd_len = (uint16_t)rnd_below(hs.enhanced ? 509 : 513);
	rnd_fill(hs.pd, hs.pd_len);
	return hs;
}

static void round_trips(void **state)
{
	struct fence fence = fence_new(WIRE_MPA_HS_MAX);

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct wire_mpa_hs hs = random_hs(), got;
		uint8_t buf[WIRE_MPA_HS_MAX];
		int n = wire_mpa_hs_encode(&hs, buf, sizeof(buf));

		assert_true(n >= WIRE_MPA_HS_HDR);
		assert_int_equal(
			wire_mpa_hs_decode(&got, fence_put(&fence, buf, (size_t)n), (size_t)n), n);
		assert_same(&got, &hs);
		assert_int_equal(wire_mpa_hs_decode(&got, buf, rnd_below((uint64_t)n)), -EAGAIN);
	}
	fence_free(&fence);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(truncated),
		cmocka_unit_test(trailing_bytes_are_left),
		cmocka_unit_test(wrong_from_the_first_byte),
		cmocka_unit_test(reserved_bits),
		cmocka_unit_test(revision_2_plain),
		cmocka_unit_test(not_expressible),
		cmocka_unit_test(room),
		cmocka_unit_test(round_trips),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.mpa", tests, NULL, NULL);
}
