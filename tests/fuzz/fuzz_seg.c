/* A ULPDU: DDP and RDMAP header, and the payload that its opcode asks for. */
#include <errno.h>

#include "fuzz.h"
#include "wire_weft.h"

/* What is refused must be refused with a Terminate that can be sent. */
static void check_refused(struct wire_term *why, const uint8_t *b, size_t size)
{
	uint8_t out[WIRE_TERM_MAX];
	struct wire_term got;
	size_t n;

	HOLDS(!strstr(wire_term_str(why), "unknown"));
	wire_term_cite(why, b, size);
	n = wire_term_encode(why, out);
	HOLDS(n >= 4 && n <= sizeof(out));
	HOLDS(!wire_term_decode(&got, out, n));
	HOLDS(got.layer == why->layer && got.etype == why->etype && got.ecode == why->ecode);
	HOLDS(!got.has_len || got.ddp_len == (uint16_t)size);
	HOLDS(!got.has_ddp || !memcmp(got.hdr, b, got.hdr_len));
}

static void check_header(const struct wire_seg *seg, const uint8_t *b, size_t n)
{
	uint8_t out[WIRE_HDR_MAX];

	HOLDS(wire_seg_encode(seg, out) == n);
	/* The same bytes, but for the reserved bits. */
	HOLDS(out[0] == (b[0] & 0xc3) && out[1] == (b[1] & 0xcf));
	HOLDS(!memcmp(out + 2, b + 2, n - 2));
	HOLDS(strcmp(wire_opcode_str(seg->opcode), "unknown opcode"));
}

static void check_payload(uint8_t opcode, const uint8_t *p, size_t len)
{
	uint8_t out[64];
	struct wire_read_req r;
	struct wire_atomic_req a;
	struct wire_atomic_resp s;
	struct wire_ctl c;
	uint32_t imm;

	switch (opcode) {
	case WIRE_OP_READ_REQ:
		HOLDS(!wire_read_req_decode(&r, p, len) == (len == WIRE_READ_REQ_LEN));
		if (len == WIRE_READ_REQ_LEN)
			HOLDS(wire_read_req_encode(&r, out) == len && !memcmp(out, p, len));
		break;
	case WIRE_OP_ATOMIC_REQ:
		if (wire_atomic_req_decode(&a, p, len))
			break;
		HOLDS(wire_atomic_req_encode(&a, out) == len);
		HOLDS(!memcmp(out + 4, p + 4, len - 4) && out[3] == (p[3] & 0xf));
		break;
	case WIRE_OP_ATOMIC_RESP:
		HOLDS(!wire_atomic_resp_decode(&s, p, len) == (len == WIRE_ATOMIC_RESP_LEN));
		if (len == WIRE_ATOMIC_RESP_LEN)
			HOLDS(wire_atomic_resp_encode(&s, out) == len && !memcmp(out, p, len));
		break;
	case WIRE_OP_IMM:
	case WIRE_OP_IMM_SE:
		if (!wire_imm_decode(&imm, p, len))
			HOLDS(wire_imm_encode(imm, out) == len && !memcmp(out, p, len));
		break;
	case WIRE_OP_CONTROL:
		if (!wire_ctl_decode(&c, p, len))
			HOLDS(wire_ctl_encode(&c, out) == len && !memcmp(out, p, len));
		break;
	default:
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *b = exact_copy(data, size);
	struct wire_term why;
	struct wire_seg seg;
	int n = wire_seg_decode(&seg, b, size, &why);

	if (n < 0) {
		HOLDS(n == -EPROTO);
		check_refused(&why, b, size);
	} else {
		HOLDS(n == (seg.tagged ? WIRE_TAGGED_HDR : WIRE_UNTAGGED_HDR));
		HOLDS((size_t)n <= size);
		check_header(&seg, b, (size_t)n);
		check_payload(seg.opcode, b + n, size - (size_t)n);
		/* Whatever the device may find wrong with it later can be cited. */
		why = (struct wire_term){.layer = WIRE_LAYER_RDMAP,
					 .etype = WIRE_ETYPE_RDMAP_PROTECTION};
		check_refused(&why, b, size);
	}
	free(b);
	return 0;
}
