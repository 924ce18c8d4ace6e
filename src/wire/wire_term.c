/* The Terminate message: RFC 5040 section 4.8.
 *
 *   | layer (4 bits) | error type (4) | error code (8) | M D R, reserved (13) |
 *   | DDP segment length (2) | terminated DDP header (14 or 18) |
 *   | terminated RDMAP header, that of a Read Request (28) |
 *
 * M says that the length is valid; the field is present when D is set, too, since
 * the header stands behind it. The third line is present when R is set.
 */
#include "wire_rdmap.h"

#include <errno.h>

#include "wire_bytes.h"

#define HDRCT_M 0x80
#define HDRCT_D 0x40
#define HDRCT_R 0x20

#define CTRL_LEN 4
#define SEGLEN   2

#define DDP_TAGGED    0x80
#define RDMAP_OP_MASK 0x0f

size_t wire_term_encode(const struct wire_term *t, void *buf)
{
	uint8_t *p = buf;

	p = put_u8(p, (uint8_t)(t->layer << 4 | (t->etype & 0xf)));
	p = put_u8(p, t->ecode);
	p = put_u8(p, (uint8_t)((t->has_len ? HDRCT_M : 0) | (t->has_ddp ? HDRCT_D : 0) |
				(t->has_rdmap ? HDRCT_R : 0)));
	p = put_u8(p, 0);
	if (t->has_len || t->has_ddp)
		p = put_be16(p, t->has_len ? t->ddp_len : 0);
	if (t->has_ddp) {
		memcpy(p, t->hdr, t->hdr_len);
		p += t->hdr_len;
	}
	if (t->has_rdmap) {
		memcpy(p, t->rreq, sizeof(t->rreq));
		p += sizeof(t->rreq);
	}
	return (size_t)(p - (uint8_t *)buf);
}

/* A cursor that refuses to leave the message. */
struct in {
	const uint8_t *b;
	size_t left;
};

static const uint8_t *take(struct in *in, size_t n)
{
	const uint8_t *p = in->b;

	if (in->left < n)
		return NULL;
	in->b += n;
	in->left -= n;
	return p;
}

static int take_ddp(struct wire_term *t, struct in *in)
{
	const uint8_t *p;

	/* The header says by itself which of the two kinds it is. */
	if (in->left == 0)
		return -EPROTO;
	t->hdr_len = in->b[0] & DDP_TAGGED ? WIRE_TAGGED_HDR : WIRE_UNTAGGED_HDR;
	p = take(in, t->hdr_len);
	if (!p)
		return -EPROTO;
	memcpy(t->hdr, p, t->hdr_len);
	return 0;
}

int wire_term_decode(struct wire_term *t, const void *buf, size_t len)
{
	struct in in = {buf, len};
	const uint8_t *p = take(&in, CTRL_LEN);

	memset(t, 0, sizeof(*t));
	if (!p)
		return -EPROTO;
	t->layer = p[0] >> 4;
	t->etype = p[0] & 0xf;
	t->ecode = p[1];
	t->has_len = p[2] & HDRCT_M;
	t->has_ddp = p[2] & HDRCT_D;
	t->has_rdmap = p[2] & HDRCT_R;
	if (t->has_len || t->has_ddp) {
		p = take(&in, SEGLEN);
		if (!p)
			return -EPROTO;
		t->ddp_len = t->has_len ? get_be16(p) : 0;
	}
	if (t->has_ddp && take_ddp(t, &in))
		return -EPROTO;
	if (t->has_rdmap) {
		p = take(&in, sizeof(t->rreq));
		if (!p)
			return -EPROTO;
		memcpy(t->rreq, p, sizeof(t->rreq));
	}
	return in.left == 0 ? 0 : -EPROTO;
}

/* Catastrophic and LLP errors are about no segment in particular. */
static bool concerns_segment(const struct wire_term *t)
{
	if (t->layer == WIRE_LAYER_RDMAP)
		return t->etype != WIRE_ETYPE_RDMAP_CATASTROPHIC;
	return t->layer == WIRE_LAYER_DDP && t->etype != WIRE_ETYPE_DDP_CATASTROPHIC;
}

void wire_term_cite(struct wire_term *t, const void *ulpdu, size_t len)
{
	const uint8_t *b = ulpdu;
	size_t hdr;

	t->has_len = t->has_ddp = t->has_rdmap = false;
	t->hdr_len = 0;
	if (len == 0 || !concerns_segment(t))
		return;
	t->has_len = true;
	t->ddp_len = (uint16_t)len;
	hdr = b[0] & DDP_TAGGED ? WIRE_TAGGED_HDR : WIRE_UNTAGGED_HDR;
	if (len < hdr)
		return;
	t->has_ddp = true;
	t->hdr_len = (uint8_t)hdr;
	memcpy(t->hdr, b, hdr);
	/* The only RDMAP header there is room for is that of a Read Request. */
	if (hdr == WIRE_UNTAGGED_HDR && (b[1] & RDMAP_OP_MASK) == WIRE_OP_READ_REQ &&
	    len >= hdr + WIRE_READ_REQ_LEN) {
		t->has_rdmap = true;
		memcpy(t->rreq, b + hdr, WIRE_READ_REQ_LEN);
	}
}

#define RDMAP_PROT "RDMAP: remote protection error: "
#define RDMAP_OPER "RDMAP: remote operation error: "
#define DDP_TAG    "DDP: tagged buffer error: "
#define DDP_UNTAG  "DDP: untagged buffer error: "
#define MPA        "MPA: "

#define ANY 0x100 /* whatever the code */

static const struct {
	uint8_t layer, etype;
	uint16_t ecode;
	const char *str;
} words[] = {
	{0, 0, ANY, "RDMAP: local catastrophic error"},
	{0, 1, WIRE_RDMAP_INVALID_STAG, RDMAP_PROT "invalid STag"},
	{0, 1, WIRE_RDMAP_BASE_BOUNDS, RDMAP_PROT "base or bounds violation"},
	{0, 1, WIRE_RDMAP_ACCESS, RDMAP_PROT "access rights violation"},
	{0, 1, WIRE_RDMAP_STAG_STREAM, RDMAP_PROT "STag not associated with this stream"},
	{0, 1, WIRE_RDMAP_TO_WRAP, RDMAP_PROT "tagged offset wrap"},
	{0, 1, WIRE_RDMAP_STAG_NOT_INVALIDATABLE, RDMAP_PROT "STag cannot be invalidated"},
	{0, 1, WIRE_RDMAP_UNSPECIFIED, RDMAP_PROT "unspecified"},
	{0, 1, ANY, RDMAP_PROT "unknown code"},
	{0, 2, WIRE_RDMAP_VERSION, RDMAP_OPER "invalid RDMAP version"},
	{0, 2, WIRE_RDMAP_OPCODE, RDMAP_OPER "unexpected opcode"},
	{0, 2, WIRE_RDMAP_CATASTROPHIC_STREAM, RDMAP_OPER "catastrophic, this stream only"},
	{0, 2, WIRE_RDMAP_CATASTROPHIC_GLOBAL, RDMAP_OPER "catastrophic, global"},
	{0, 2, WIRE_RDMAP_STAG_NOT_INVALIDATABLE, RDMAP_OPER "STag cannot be invalidated"},
	{0, 2, WIRE_RDMAP_UNSPECIFIED, RDMAP_OPER "unspecified"},
	{0, 2, ANY, RDMAP_OPER "unknown code"},
	{1, 0, ANY, "DDP: local catastrophic error"},
	{1, 1, WIRE_DDP_T_INVALID_STAG, DDP_TAG "invalid STag"},
	{1, 1, WIRE_DDP_T_BASE_BOUNDS, DDP_TAG "base or bounds violation"},
	{1, 1, WIRE_DDP_T_STAG_STREAM, DDP_TAG "STag not associated with this stream"},
	{1, 1, WIRE_DDP_T_TO_WRAP, DDP_TAG "tagged offset wrap"},
	{1, 1, WIRE_DDP_T_VERSION, DDP_TAG "invalid DDP version"},
	{1, 1, ANY, DDP_TAG "unknown code"},
	{1, 2, WIRE_DDP_U_INVALID_QN, DDP_UNTAG "invalid queue number"},
	{1, 2, WIRE_DDP_U_NO_BUFFER, DDP_UNTAG "invalid MSN, no buffer available"},
	{1, 2, WIRE_DDP_U_MSN_RANGE, DDP_UNTAG "invalid MSN, out of range"},
	{1, 2, WIRE_DDP_U_INVALID_MO, DDP_UNTAG "invalid message offset"},
	{1, 2, WIRE_DDP_U_TOO_LONG, DDP_UNTAG "message too long for the buffer"},
	{1, 2, WIRE_DDP_U_VERSION, DDP_UNTAG "invalid DDP version"},
	{1, 2, ANY, DDP_UNTAG "unknown code"},
	{1, 3, ANY, "DDP: error reported by the LLP"},
	{2, 0, WIRE_MPA_CLOSED, MPA "TCP connection closed, terminated or lost"},
	{2, 0, WIRE_MPA_CRC, MPA "CRC error"},
	{2, 0, WIRE_MPA_MARKER, MPA "marker and ULPDU length disagree"},
	{2, 0, WIRE_MPA_INVALID_REQ_REP, MPA "invalid request or reply frame"},
	{2, 0, WIRE_MPA_LOCAL_CATASTROPHIC, MPA "local catastrophic error"},
	{2, 0, WIRE_MPA_INSUFFICIENT_IRD, MPA "insufficient IRD resources"},
	{2, 0, WIRE_MPA_NO_MATCHING_RTR, MPA "no matching RTR option"},
	{2, 0, ANY, MPA "unknown code"},
};

const char *wire_term_str(const struct wire_term *t)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i].layer == t->layer && words[i].etype == t->etype &&
		    (words[i].ecode == t->ecode || words[i].ecode == ANY))
			return words[i].str;
	}
	return "unknown layer or error type";
}
