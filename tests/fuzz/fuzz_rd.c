/* An RD packet and its body. With bit 1 of the first byte its CRC is made right beforehand. */
#include <errno.h>

#include "fuzz.h"
#include "wire_rd.h"
#include "wire_weft.h"

static void hello(const uint8_t *b, size_t size)
{
	uint8_t out[WIRE_RD_HELLO];
	struct wire_rd_hello h;
	int r = wire_rd_hello_decode(&h, b, size);

	HOLDS(size == WIRE_RD_HELLO && (r == 0 || r == -EPROTO));
	if (r)
		return;
	HOLDS(h.life && h.id && h.mtu >= WIRE_RD_MTU_MIN && (h.src_qpn | h.dst_qpn) <= 0xffffff);
	HOLDS(wire_rd_hello_encode(&h, out) == size && !memcmp(out, b, size));
}

static void nak(const uint8_t *b, size_t size)
{
	uint8_t out[WIRE_RD_NAK_LEN];
	struct wire_rd_nak n;
	int r = wire_rd_nak_decode(&n, b, size);

	HOLDS(size == WIRE_RD_NAK_LEN && (r == 0 || r == -EPROTO));
	if (r)
		return;
	HOLDS(n.reason >= WIRE_RD_RNR && n.reason <= WIRE_RD_OPERATION);
	HOLDS(wire_rd_nak_encode(&n, out) == size && !memcmp(out, b, size));
}

static void sack(const struct wire_rd *h, const uint8_t *b, size_t size)
{
	uint64_t words[WIRE_RD_SACK_MAX];
	uint8_t out[sizeof(words)];

	HOLDS(h->count <= WIRE_RD_SACK_MAX && size == h->count * sizeof(words[0]));
	wire_rd_sack_decode(words, h->count, b);
	HOLDS(wire_rd_sack_encode(words, h->count, out) == size && !memcmp(out, b, size));
}

static void data(const struct wire_rd *h, const uint8_t *b, size_t size)
{
	uint8_t out[WIRE_HDR_MAX];
	struct wire_seg seg;
	int r;

	if (h->flags & WIRE_RD_SKIP) {
		HOLDS(size == 0);
		return;
	}
	r = wire_rd_seg_decode(&seg, h, b, size);
	HOLDS(r == -EPROTO || (r == (seg.tagged ? WIRE_TAGGED_HDR : WIRE_UNTAGGED_HDR)));
	if (r < 0)
		return;
	HOLDS((seg.opcode == WIRE_OP_READ_RESP || seg.opcode == WIRE_OP_ATOMIC_RESP) ==
	      (h->flags & WIRE_RD_RESPONSE));
	HOLDS(!seg.tagged || seg.to + (size - (size_t)r) >= seg.to);
	/* The same bytes, but for the bits that DDP and RDMAP reserve. */
	HOLDS(wire_seg_encode(&seg, out) == (size_t)r);
	HOLDS(out[0] == (b[0] & 0xc3) && out[1] == (b[1] & 0xcf));
	HOLDS(!memcmp(out + 2, b + 2, (size_t)r - 2));
}

static void body(const struct wire_rd *h, const uint8_t *b, size_t size)
{
	switch (h->type) {
	case WIRE_RD_INIT:
	case WIRE_RD_CHALLENGE:
	case WIRE_RD_ACCEPT:
	case WIRE_RD_REFUSE:
		hello(b, size);
		break;
	case WIRE_RD_DATA:
		data(h, b, size);
		break;
	case WIRE_RD_ACK:
		sack(h, b, size);
		break;
	case WIRE_RD_NAK:
		nak(b, size);
		break;
	default:
		HOLDS(size == 0);
	}
}

static void packet(const struct wire_rd *h, const uint8_t *b, size_t size)
{
	uint8_t *out = exact_copy(b, size);
	struct wire_rd again;

	HOLDS(size >= WIRE_RD_HDR && size <= WIRE_DGRAM_MAX && wire_rd_is(b, size));
	memset(out, 0, WIRE_RD_HDR);
	HOLDS(wire_rd_encode(h, out) == WIRE_RD_HDR);
	wire_rd_seal(out, size);
	HOLDS(!memcmp(out, b, size));
	body(h, b + WIRE_RD_HDR, size - WIRE_RD_HDR);
	/* Any one changed byte is noticed. */
	out[size - 1 - h->ack[0] % size] ^= 0x10;
	HOLDS(wire_rd_decode(&again, out, size) < 0);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct wire_rd h;
	uint8_t *b;
	bool fix;
	int r;

	if (size == 0)
		return 0;
	fix = input[0] & 1;
	size--;
	b = exact_copy(input + 1, size);
	if (fix && size >= 4)
		wire_rd_seal(b, size);
	r = wire_rd_decode(&h, b, size);
	HOLDS(r == -EPROTO || r == -EBADMSG || r == WIRE_RD_HDR);
	HOLDS(r != -EBADMSG || !fix);
	if (r > 0)
		packet(&h, b, size);
	free(b);
	return 0;
}
