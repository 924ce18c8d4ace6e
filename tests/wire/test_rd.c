/* RD packets: the format, byte by byte, and everything that must be refused. */
#include "test_wire.h"

#include <errno.h>

#include "wire_crc32c.h"
#include "wire_rd.h"
#include "wire_weft.h"

/* Two queue pairs, 0x123401 and 0x567802, and what they have told each other. */
#define A_LIFE 0xa1a2a3a4a5a6a7a8
#define A_ID   0x0a0a0a0a01020304
#define B_LIFE 0xb1b2b3b4b5b6b7b8
#define B_ID   0x0b0b0b0b05060708
#define COOKIE 0xc0c1c2c3c4c5c6c7

#define HELLO_A                                                                                    \
	.life = A_LIFE, .id = A_ID, .src_qpn = 0x123401, .dst_qpn = 0x567802, .qkey = 0x11111111,  \
	.mtu = 8972, .room = 212992
#define HELLO_B                                                                                    \
	.life = B_LIFE, .id = B_ID, .src_qpn = 0x567802, .dst_qpn = 0x123401, .qkey = 0x11111111,  \
	.mtu = 8972, .room = 212992

/* A packet, and what it has to be on the wire. The hex was written by hand, the CRCs were
 * calculated apart from this program. */
static const struct packet {
	const char *name;
	struct wire_rd h;
	struct wire_rd_hello hello; /* present if its life is not 0 */
	struct wire_rd_nak nak;     /* present if its reason is not 0 */
	uint64_t words[2];          /* as many as h.count says */
	struct wire_seg seg;        /* present if the packet is DATA without SKIP */
	const char *payload;
	const char *wire;
} packets[] = {
	{"INIT", .h = {.type = WIRE_RD_INIT}, .hello = {HELLO_A},
	 .wire = "f7fed22e 57 21 00 00 0000000000000000 00000000 00000000 00000000"
		 "a1a2a3a4a5a6a7a8 0a0a0a0a01020304 0000000000000000 00123401 00567802"
		 "11111111 230c 0000 00034000 00000000"},
	{"CHALLENGE", .h = {.type = WIRE_RD_CHALLENGE, .id = A_ID},
	 .hello = {HELLO_B, .cookie = COOKIE},
	 .wire = "5300ac90 57 22 00 00 0a0a0a0a01020304 00000000 00000000 00000000"
		 "b1b2b3b4b5b6b7b8 0b0b0b0b05060708 c0c1c2c3c4c5c6c7 00567802 00123401"
		 "11111111 230c 0000 00034000 00000000"},
	{"INIT with cookie", .h = {.type = WIRE_RD_INIT}, .hello = {HELLO_A, .cookie = COOKIE},
	 .wire = "bef4937c 57 21 00 00 0000000000000000 00000000 00000000 00000000"
		 "a1a2a3a4a5a6a7a8 0a0a0a0a01020304 c0c1c2c3c4c5c6c7 00123401 00567802"
		 "11111111 230c 0000 00034000 00000000"},
	{"ACCEPT", .h = {.type = WIRE_RD_ACCEPT, .id = A_ID}, .hello = {HELLO_B},
	 .wire = "53ec99d8 57 23 00 00 0a0a0a0a01020304 00000000 00000000 00000000"
		 "b1b2b3b4b5b6b7b8 0b0b0b0b05060708 0000000000000000 00567802 00123401"
		 "11111111 230c 0000 00034000 00000000"},
	{"REFUSE", .h = {.type = WIRE_RD_REFUSE, .id = A_ID},
	 .hello = {.life = B_LIFE,
		   .id = B_ID,
		   .cookie = WIRE_RD_QKEY,
		   .src_qpn = 0x567802,
		   .dst_qpn = 0x123401,
		   .qkey = 0x11111111,
		   .mtu = WIRE_RD_MTU_MIN,
		   .room = 0xffffffff},
	 .wire = "3ce4f9ac 57 24 00 00 0a0a0a0a01020304 00000000 00000000 00000000"
		 "b1b2b3b4b5b6b7b8 0b0b0b0b05060708 0000000000000002 00567802 00123401"
		 "11111111 0100 0000 ffffffff 00000000"},
	{"DATA, a Send",
	 .h = {.type = WIRE_RD_DATA, .flags = WIRE_RD_ASK, .id = B_ID, .psn = 7, .ack = {3, 0}},
	 .seg = {.opcode = WIRE_OP_SEND, .last = true, .msn = 5}, .payload = "hello",
	 .wire = "ce502dc2 57 25 04 00 0b0b0b0b05060708 00000007 00000003 00000000"
		 "41 43 00000000 00000000 00000005 00000000 68 65 6c 6c 6f"},
	{"DATA, a Read Response",
	 .h = {.type = WIRE_RD_DATA,
	       .flags = WIRE_RD_RESPONSE,
	       .id = B_ID,
	       .psn = 0xfffffffe,
	       .ack = {3, 0xffffffff}},
	 .seg = {.opcode = WIRE_OP_READ_RESP,
		 .last = true,
		 .stag = 0x01020304,
		 .to = 0x1112131415161718},
	 .payload = "\xaa\xbb\xcc",
	 .wire = "ad27213c 57 25 01 00 0b0b0b0b05060708 fffffffe 00000003 ffffffff"
		 "c1 42 01020304 1112131415161718 aa bb cc"},
	{"DATA, skipped",
	 .h = {.type = WIRE_RD_DATA,
	       .flags = WIRE_RD_RESPONSE | WIRE_RD_SKIP,
	       .id = B_ID,
	       .psn = 9,
	       .ack = {3, 0}},
	 .wire = "9fd3cd3c 57 25 03 00 0b0b0b0b05060708 00000009 00000003 00000000"},
	{"ACK", .h = {.type = WIRE_RD_ACK, .id = A_ID, .ack = {8, 0}},
	 .wire = "25537c11 57 26 00 00 0a0a0a0a01020304 00000000 00000008 00000000"},
	{"ACK with gaps",
	 .h = {.type = WIRE_RD_ACK,
	       .flags = WIRE_RD_RESPONSE,
	       .count = 2,
	       .id = A_ID,
	       .ack = {8, 16}},
	 .words = {5, 0x8000000000000001},
	 .wire = "96e014cf 57 26 01 02 0a0a0a0a01020304 00000000 00000008 00000010"
		 "0000000000000005 8000000000000001"},
	{"NAK", .h = {.type = WIRE_RD_NAK, .id = A_ID, .psn = 7, .ack = {7, 0}},
	 .nak = {.reason = WIRE_RD_RNR, .arg = 14},
	 .wire = "d4ae886d 57 27 00 00 0a0a0a0a01020304 00000007 00000007 00000000 01 0e 0000"},
	{"RESET", .h = {.type = WIRE_RD_RESET, .id = B_ID},
	 .wire = "922856db 57 28 00 00 0b0b0b0b05060708 00000000 00000000 00000000"},
	{"PROBE", .h = {.type = WIRE_RD_PROBE, .id = B_ID, .ack = {3, 0}},
	 .wire = "5e68b6e6 57 29 00 00 0b0b0b0b05060708 00000000 00000003 00000000"},
	{"BYE", .h = {.type = WIRE_RD_BYE, .id = B_ID, .ack = {3, 0}},
	 .wire = "1678c278 57 2a 00 00 0b0b0b0b05060708 00000000 00000003 00000000"},
};

#define PACKET_MAX 128

static size_t unhex(const char *hex, uint8_t *buf)
{
	size_t n = 0;
	int used;

	while (sscanf(hex, " %2hhx%n", &buf[n], &used) == 1) {
		hex += used;
		assert_true(++n < PACKET_MAX);
	}
	assert_int_equal(*hex, 0);
	return n;
}

static bool has_segment(const struct wire_rd *h)
{
	return h->type == WIRE_RD_DATA && !(h->flags & WIRE_RD_SKIP);
}

static size_t build(const struct packet *p, uint8_t *b)
{
	size_t n = wire_rd_encode(&p->h, b);

	assert_int_equal(n, 28);
	if (p->hello.life)
		n += wire_rd_hello_encode(&p->hello, b + n);
	if (p->nak.reason)
		n += wire_rd_nak_encode(&p->nak, b + n);
	n += wire_rd_sack_encode(p->words, p->h.count, b + n);
	if (has_segment(&p->h)) {
		n += wire_seg_encode(&p->seg, b + n);
		memcpy(b + n, p->payload, strlen(p->payload));
		n += strlen(p->payload);
	}
	wire_rd_seal(b, n);
	return n;
}

static void assert_header(const struct wire_rd *got, const struct wire_rd *want)
{
	assert_int_equal(got->type, want->type);
	assert_int_equal(got->flags, want->flags);
	assert_int_equal(got->count, want->count);
	assert_int_equal(got->id, want->id);
	assert_int_equal(got->psn, want->psn);
	assert_int_equal(got->ack[0], want->ack[0]);
	assert_int_equal(got->ack[1], want->ack[1]);
}

static void assert_hello(const struct wire_rd_hello *got, const struct wire_rd_hello *want)
{
	assert_int_equal(got->life, want->life);
	assert_int_equal(got->id, want->id);
	assert_int_equal(got->cookie, want->cookie);
	assert_int_equal(got->src_qpn, want->src_qpn);
	assert_int_equal(got->dst_qpn, want->dst_qpn);
	assert_int_equal(got->qkey, want->qkey);
	assert_int_equal(got->mtu, want->mtu);
	assert_int_equal(got->room, want->room);
}

static void assert_body(const struct packet *p, const uint8_t *body, size_t len)
{
	struct wire_rd_hello hello;
	struct wire_rd_nak nak;
	struct wire_seg seg;
	uint64_t words[2];

	if (p->hello.life) {
		assert_int_equal(wire_rd_hello_decode(&hello, body, len), 0);
		assert_hello(&hello, &p->hello);
	}
	if (p->nak.reason) {
		assert_int_equal(wire_rd_nak_decode(&nak, body, len), 0);
		assert_int_equal(nak.reason, p->nak.reason);
		assert_int_equal(nak.arg, p->nak.arg);
	}
	wire_rd_sack_decode(words, p->h.count, body);
	assert_memory_equal(words, p->words, p->h.count * sizeof(words[0]));
	if (has_segment(&p->h)) {
		int hdr = wire_rd_seg_decode(&seg, &p->h, body, len);

		assert_int_equal(hdr, len - strlen(p->payload));
		assert_memory_equal(body + hdr, p->payload, strlen(p->payload));
		assert_int_equal(seg.opcode, p->seg.opcode);
		assert_true(seg.last);
	}
}

static void golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		const struct packet *p = &packets[i];
		uint8_t want[PACKET_MAX], got[PACKET_MAX];
		size_t len = unhex(p->wire, want);
		struct wire_rd h;

		assert_int_equal(build(p, got), len);
		assert_memory_equal(got, want, len);
		assert_int_equal(wire_rd_decode(&h, want, len), 28);
		assert_header(&h, &p->h);
		assert_body(p, want + 28, len - 28);
	}
}

/* docs/rd.md shows some of these packets; it has to show what is sent. */
static void documented(void **state)
{
	static const char *const shown[] = {"INIT", "DATA, a Send", "ACK", "ACK with gaps"};
	static char doc[1 << 17];
	FILE *f = fopen(WIRE_RD_DOC, "r");

	(void)state;
	assert_non_null(f);
	assert_true(fread(doc, 1, sizeof(doc) - 1, f) < sizeof(doc) - 1);
	fclose(f);
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		char dump[PACKET_MAX * 4] = "";
		uint8_t b[PACKET_MAX];
		size_t len = build(&packets[i], b), n = 0;
		bool is_shown = false;

		for (size_t j = 0; j < ARRAY_SIZE(shown); j++)
			is_shown |= !strcmp(shown[j], packets[i].name);
		if (!is_shown)
			continue;
		for (size_t j = 0; j < len; j++)
			n += (size_t)(j % 16 ? snprintf(dump + n, sizeof(dump) - n, " %02x", b[j])
					     : snprintf(dump + n, sizeof(dump) - n, "%s%04zx  %02x",
							j ? "\n" : "", j, b[j]));
		printf("%s, %zu bytes\n%s\n", packets[i].name, len, dump);
		if (!strstr(doc, dump))
			fail_msg("%s does not show these bytes", WIRE_RD_DOC);
	}
}

/* Every change of one byte, to every other value, is noticed. */
static void damaged(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		uint8_t b[PACKET_MAX];
		size_t len = build(&packets[i], b);

		for (size_t at = 0; at < len; at++) {
			/* What is between the CRC and the acknowledgements may be refused
			 * before the CRC is looked at. */
			bool plain = at < 4 || at >= 20;
			uint8_t old = b[at];

			for (unsigned int x = 1; x < 256; x++) {
				struct wire_rd h;
				int r;

				b[at] = old ^ (uint8_t)x;
				r = wire_rd_decode(&h, b, len);
				assert_true(r == -EBADMSG || (!plain && r == -EPROTO));
			}
			b[at] = old;
		}
	}
}

/* Cut anywhere, with the CRC as it was or made right for the rest: only payload of DATA may
 * be missing then, and the header of its segment by halves. */
static void cut(void **state)
{
	struct fence fence = fence_new(PACKET_MAX);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(packets); i++) {
		uint8_t b[PACKET_MAX];
		size_t full = build(&packets[i], b);

		for (size_t len = 0; len < full; len++) {
			bool good = has_segment(&packets[i].h) && len >= 28 + 14;
			uint8_t *p = fence_put(&fence, b, len);
			struct wire_seg seg;
			struct wire_rd h;

			assert_int_equal(wire_rd_is(p, len), len >= 28);
			assert_int_equal(wire_rd_decode(&h, p, len), good ? -EBADMSG : -EPROTO);
			if (len < 4)
				continue;
			wire_rd_seal(p, len);
			assert_int_equal(wire_rd_decode(&h, p, len), good ? 28 : -EPROTO);
			if (good)
				assert_int_equal(wire_rd_seg_decode(&seg, &h, p + 28, len - 28),
						 packets[i].seg.opcode == WIRE_OP_READ_RESP ? 14
						 : len < 28 + 18 ? -EPROTO
								 : 18);
		}
	}
	fence_free(&fence);
}

/* What the format says of a type, written down a second time. */
static bool flags_right(unsigned int type, unsigned int flags)
{
	return type == 5 ? flags <= 7 : type == 6 ? flags <= 1 : flags == 0;
}

static bool length_right(unsigned int type, bool skip, unsigned int count, size_t body)
{
	if (type >= 1 && type <= 4)
		return body == 48;
	if (type == 5)
		return skip ? body == 0 || body == 4 : body >= 14;
	return body == (type == 6 ? 8 * count : type == 7 ? 4 : 0);
}

static int sealed(const struct wire_rd *h, uint8_t *b, size_t body)
{
	struct wire_rd got;
	int r;

	wire_rd_encode(h, b);
	wire_rd_seal(b, 28 + body);
	r = wire_rd_decode(&got, b, 28 + body);
	if (r > 0)
		assert_header(&got, h);
	return r;
}

static void fields(void **state)
{
	uint8_t b[28 + 255 * 8] = {0};

	(void)state;
	for (unsigned int type = 0; type < 16; type++) {
		size_t body = type == 5 ? 14 : type == 7 ? 4 : type >= 1 && type <= 4 ? 48 : 0;
		bool known = type >= 1 && type <= 10;
		struct wire_rd h = {.type = (uint8_t)type, .id = type == 1 ? 0 : B_ID};

		for (unsigned int flags = 0; flags < 256; flags++) {
			h.flags = (uint8_t)flags;
			assert_int_equal(sealed(&h, b, type == 5 && flags & 2 ? 0 : body),
					 known && flags_right(type, flags) ? 28 : -EPROTO);
		}
		h.flags = 0;
		for (unsigned int n = 0; n < 256; n++) {
			h.count = (uint8_t)n;
			assert_int_equal(sealed(&h, b, type == 6 ? 8 * n : body),
					 known && (n == 0 || (type == 6 && n <= 128)) ? 28
										      : -EPROTO);
		}
		h.count = 0;
		h.psn = 1;
		assert_int_equal(sealed(&h, b, body), type == 5 || type == 7 ? 28 : -EPROTO);
		h.psn = 0;
		h.id = type == 1 ? B_ID : 0;
		assert_int_equal(sealed(&h, b, body), -EPROTO);
	}
}

static void lengths(void **state)
{
	uint8_t b[28 + 1100] = {0};

	(void)state;
	for (unsigned int type = 1; type <= 10; type++) {
		for (unsigned int variant = 0; variant < 3; variant++) {
			/* DATA with and without SKIP, ACK with some words and the most. */
			bool skip = type == 5 && variant;
			unsigned int count = type == 6 ? variant * 64 : 0;
			struct wire_rd h = {.type = (uint8_t)type,
					    .flags = skip ? WIRE_RD_SKIP : 0,
					    .count = (uint8_t)count,
					    .id = type == 1 ? 0 : B_ID};

			for (size_t body = 0; body <= 1100; body++)
				assert_int_equal(sealed(&h, b, body),
						 length_right(type, skip, count, body) ? 28
										       : -EPROTO);
		}
	}
}

static void largest(void **state)
{
	struct wire_rd h = {.type = WIRE_RD_DATA, .id = B_ID};
	uint8_t *b = calloc(1, WIRE_DGRAM_MAX + 1);

	(void)state;
	assert_non_null(b);
	assert_int_equal(sealed(&h, b, WIRE_DGRAM_MAX - 28), 28);
	assert_int_equal(sealed(&h, b, WIRE_DGRAM_MAX - 27), -EPROTO);
	free(b);
}

/* Magic and version; UD and RD can share a socket. */
static void told_apart(void **state)
{
	struct wire_seg seg = {.opcode = WIRE_OP_SEND, .last = true}, got;
	uint8_t b[PACKET_MAX], ud[64] = {0};
	struct wire_rd h;
	size_t len;

	(void)state;
	len = build(&packets[5], b);
	assert_true(wire_rd_is(b, len));
	assert_int_equal(wire_dgram_decode(&got, b, len), -EPROTO);
	wire_dgram_encode(&seg, ud);
	wire_dgram_seal(ud, sizeof(ud));
	assert_int_equal(wire_dgram_decode(&got, ud, sizeof(ud)), WIRE_DGRAM_HDR);
	assert_false(wire_rd_is(ud, sizeof(ud)));
	assert_int_equal(wire_rd_decode(&h, ud, sizeof(ud)), -EPROTO);
	for (unsigned int i = 0; i < 512; i++) {
		uint8_t x[PACKET_MAX];
		bool good = i < 256 ? i == 'W' : i >> 4 == 0x12;

		memcpy(x, b, len);
		x[4 + i / 256] = (uint8_t)i;
		wire_rd_seal(x, len);
		assert_int_equal(wire_rd_is(x, len), good);
		if (!good)
			assert_int_equal(wire_rd_decode(&h, x, len), -EPROTO);
	}
}

/* A sender that copies payload piece by piece has its CRC already. */
static void crc_in_pieces(void **state)
{
	uint8_t a[PACKET_MAX], b[PACKET_MAX];
	size_t len = build(&packets[5], a);
	uint32_t crc;

	(void)state;
	memcpy(b, a, len);
	memset(b, 0xee, 4);
	crc = wire_crc32c(0, b + 4, 42);
	wire_rd_put_crc(b, wire_crc32c(crc, b + 46, len - 46));
	assert_memory_equal(a, b, len);
}

static void round_trips(void **state)
{
	(void)state;
	for (int i = 0; i < 100000; i++) {
		struct wire_rd h = {.type = WIRE_RD_DATA,
				    .flags = (uint8_t)(rnd64() & 5),
				    .id = rnd64() | 1,
				    .psn = (uint32_t)rnd64(),
				    .ack = {(uint32_t)rnd64(), (uint32_t)rnd64()}};
		uint8_t b[28 + 80];

		rnd_fill(b, sizeof(b));
		assert_int_equal(sealed(&h, b, 14 + rnd_below(67)), 28);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),        cmocka_unit_test(documented),
		cmocka_unit_test(damaged),       cmocka_unit_test(cut),
		cmocka_unit_test(fields),        cmocka_unit_test(lengths),
		cmocka_unit_test(largest),       cmocka_unit_test(told_apart),
		cmocka_unit_test(crc_in_pieces), cmocka_unit_test(round_trips),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.rd", tests, NULL, NULL);
}
