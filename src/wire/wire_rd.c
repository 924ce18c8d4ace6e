/* RD packets. Spoken only between Weft devices, so whatever the layouts leave unused has to
 * be zero: what a later version puts there is then never half understood. */
#include "wire_rd.h"

#include <errno.h>
#include <string.h>

#include "wire_bytes.h"
#include "wire_crc32c.h"
#include "wire_weft.h"

#define RD_MAGIC  'W'
#define CRC_LEN   4
#define OFF_MAGIC 4
#define OFF_TYPE  5 /* and version */
#define OFF_FLAGS 6
#define OFF_COUNT 7
#define OFF_ID    8
#define OFF_PSN   16
#define OFF_ACK   20

#define TYPE_MASK     0x0f
#define VERSION_SHIFT 4
#define MAX_24        0xffffffU

/* ---- the header ---- */

size_t wire_rd_encode(const struct wire_rd *h, void *buf)
{
	uint8_t *p = (uint8_t *)buf + CRC_LEN;

	p = put_u8(p, RD_MAGIC);
	p = put_u8(p, (uint8_t)(WIRE_RD_VERSION << VERSION_SHIFT | (h->type & TYPE_MASK)));
	p = put_u8(p, h->flags);
	p = put_u8(p, h->count);
	p = put_be64(p, h->id);
	p = put_be32(p, h->psn);
	for (int lane = 0; lane < WIRE_RD_LANES; lane++)
		p = put_be32(p, h->ack[lane]);
	return WIRE_RD_HDR;
}

void wire_rd_put_crc(void *packet, uint32_t crc)
{
	put_le32(packet, crc);
}

static uint32_t crc_of(const uint8_t *packet, size_t len)
{
	return wire_crc32c(0, packet + CRC_LEN, len - CRC_LEN);
}

void wire_rd_seal(void *packet, size_t len)
{
	wire_rd_put_crc(packet, crc_of(packet, len));
}

/* UD has its version, 1, in the whole of the byte that is ours. */
bool wire_rd_is(const void *packet, size_t len)
{
	const uint8_t *b = packet;

	return len >= WIRE_RD_HDR && b[OFF_MAGIC] == RD_MAGIC &&
	       b[OFF_TYPE] >> VERSION_SHIFT == WIRE_RD_VERSION;
}

static uint8_t flags_of(uint8_t type)
{
	switch (type) {
	case WIRE_RD_DATA:
		return WIRE_RD_RESPONSE | WIRE_RD_SKIP | WIRE_RD_ASK;
	case WIRE_RD_ACK:
		return WIRE_RD_RESPONSE;
	default:
		return 0;
	}
}

static bool fields_fit(const struct wire_rd *h)
{
	if (h->type < WIRE_RD_INIT || h->type > WIRE_RD_BYE || h->flags & ~flags_of(h->type))
		return false;
	if (h->count > (h->type == WIRE_RD_ACK ? WIRE_RD_SACK_MAX : 0))
		return false;
	/* Only who asks for a pair has not been told an id yet, and none is ever 0. */
	if ((h->id == 0) != (h->type == WIRE_RD_INIT))
		return false;
	return h->psn == 0 || h->type == WIRE_RD_DATA || h->type == WIRE_RD_NAK;
}

static bool body_fits(const struct wire_rd *h, size_t len)
{
	switch (h->type) {
	case WIRE_RD_INIT:
	case WIRE_RD_CHALLENGE:
	case WIRE_RD_ACCEPT:
	case WIRE_RD_REFUSE:
		return len == WIRE_RD_HELLO;
	case WIRE_RD_DATA:
		if (h->flags & WIRE_RD_SKIP)
			return len == 0 || len == WIRE_RD_SKIP_LEN;
		return len >= WIRE_TAGGED_HDR;
	case WIRE_RD_ACK:
		return len == (size_t)h->count * sizeof(uint64_t);
	case WIRE_RD_NAK:
		return len == WIRE_RD_NAK_LEN;
	default:
		return len == 0;
	}
}

/* The CRC comes last: it is the only check whose cost grows with the packet. */
int wire_rd_decode(struct wire_rd *h, const void *packet, size_t len)
{
	const uint8_t *b = packet;

	if (len > WIRE_DGRAM_MAX || !wire_rd_is(b, len))
		return -EPROTO;
	h->type = b[OFF_TYPE] & TYPE_MASK;
	h->flags = b[OFF_FLAGS];
	h->count = b[OFF_COUNT];
	h->id = get_be64(b + OFF_ID);
	h->psn = get_be32(b + OFF_PSN);
	for (int lane = 0; lane < WIRE_RD_LANES; lane++)
		h->ack[lane] = get_be32(b + OFF_ACK + 4 * lane);
	if (!fields_fit(h) || !body_fits(h, len - WIRE_RD_HDR))
		return -EPROTO;
	return get_le32(b) == crc_of(b, len) ? WIRE_RD_HDR : -EBADMSG;
}

/* ---- bodies ---- */

size_t wire_rd_hello_encode(const struct wire_rd_hello *h, void *buf)
{
	uint8_t *p = buf;

	p = put_be64(p, h->life);
	p = put_be64(p, h->id);
	p = put_be64(p, h->cookie);
	p = put_be32(p, h->src_qpn);
	p = put_be32(p, h->dst_qpn);
	p = put_be32(p, h->qkey);
	p = put_be16(p, h->mtu);
	p = put_be16(p, 0);
	p = put_be32(p, h->room);
	put_be32(p, 0);
	return WIRE_RD_HELLO;
}

int wire_rd_hello_decode(struct wire_rd_hello *h, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	if (len != WIRE_RD_HELLO || get_be16(b + 38) != 0 || get_be32(b + 44) != 0)
		return -EPROTO;
	h->life = get_be64(b);
	h->id = get_be64(b + 8);
	h->cookie = get_be64(b + 16);
	h->src_qpn = get_be32(b + 24);
	h->dst_qpn = get_be32(b + 28);
	h->qkey = get_be32(b + 32);
	h->mtu = get_be16(b + 36);
	h->room = get_be32(b + 40);
	if (h->life == 0 || h->id == 0 || h->mtu < WIRE_RD_MTU_MIN)
		return -EPROTO;
	return h->src_qpn > MAX_24 || h->dst_qpn > MAX_24 ? -EPROTO : 0;
}

size_t wire_rd_nak_encode(const struct wire_rd_nak *n, void *buf)
{
	uint8_t *p = buf;

	p = put_u8(p, n->reason);
	p = put_u8(p, n->arg);
	put_be16(p, 0);
	return WIRE_RD_NAK_LEN;
}

int wire_rd_nak_decode(struct wire_rd_nak *n, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	if (len != WIRE_RD_NAK_LEN || get_be16(b + 2) != 0)
		return -EPROTO;
	n->reason = b[0];
	n->arg = b[1];
	return n->reason >= WIRE_RD_RNR && n->reason <= WIRE_RD_READY ? 0 : -EPROTO;
}

size_t wire_rd_skip_encode(uint32_t ssn, void *buf)
{
	put_be32(buf, ssn);
	return WIRE_RD_SKIP_LEN;
}

uint32_t wire_rd_skip_decode(const void *buf)
{
	return get_be32(buf);
}

size_t wire_rd_error_encode(const struct wire_rd_error *e, void *buf)
{
	uint8_t *p = put_be32(buf, e->handle);

	p = put_u8(p, e->reason);
	memset(p, 0, 3);
	return WIRE_RD_ERROR_LEN;
}

int wire_rd_error_decode(struct wire_rd_error *e, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	if (len != WIRE_RD_ERROR_LEN || b[5] || b[6] || b[7])
		return -EPROTO;
	e->handle = get_be32(b);
	e->reason = b[4];
	return e->reason >= WIRE_RD_ACCESS && e->reason <= WIRE_RD_OPERATION ? 0 : -EPROTO;
}

size_t wire_rd_sack_encode(const uint64_t *words, unsigned int n, void *buf)
{
	uint8_t *p = buf;

	for (unsigned int i = 0; i < n; i++)
		p = put_be64(p, words[i]);
	return n * sizeof(uint64_t);
}

void wire_rd_sack_decode(uint64_t *words, unsigned int n, const void *buf)
{
	const uint8_t *b = buf;

	for (unsigned int i = 0; i < n; i++)
		words[i] = get_be64(b + i * sizeof(uint64_t));
}

/* ---- the segment of DATA ---- */

static bool is_response(const struct wire_rd *h)
{
	return h->flags & WIRE_RD_RESPONSE;
}

/* Invalidation and Control are of streams: a pair has packets of its own for what they would
 * say. */
static bool lane_fits(uint8_t opcode, bool response)
{
	switch (opcode) {
	case WIRE_OP_WRITE:
	case WIRE_OP_READ_REQ:
	case WIRE_OP_SEND:
	case WIRE_OP_SEND_SE:
	case WIRE_OP_SEND_IMM:
	case WIRE_OP_SEND_IMM_SE:
	case WIRE_OP_IMM:
	case WIRE_OP_IMM_SE:
	case WIRE_OP_ATOMIC_REQ:
		return !response;
	case WIRE_OP_READ_RESP:
	case WIRE_OP_ATOMIC_RESP:
	case WIRE_OP_TERMINATE:
		return response;
	default:
		return false;
	}
}

static bool is_whole(const struct wire_seg *seg)
{
	return seg->last && seg->mo == 0;
}

static bool payload_fits(const struct wire_seg *seg, size_t len)
{
	uint64_t end;

	if (seg->tagged)
		return !__builtin_add_overflow(seg->to, len, &end);
	switch (seg->opcode) {
	case WIRE_OP_READ_REQ:
		return is_whole(seg) && len == WIRE_READ_REQ_LEN;
	case WIRE_OP_ATOMIC_REQ:
		return is_whole(seg) && len == WIRE_ATOMIC_REQ_LEN;
	case WIRE_OP_IMM:
	case WIRE_OP_IMM_SE:
		return is_whole(seg) && len == WIRE_IMM_LEN;
	case WIRE_OP_ATOMIC_RESP:
		return is_whole(seg) && len == WIRE_ATOMIC_RESP_LEN;
	case WIRE_OP_TERMINATE:
		return is_whole(seg) && len == WIRE_RD_ERROR_LEN;
	default:
		return true;
	}
}

int wire_rd_seg_decode(struct wire_seg *seg, const struct wire_rd *h, const void *body, size_t len)
{
	struct wire_term why; /* of no use: RD answers with NAK */
	int hdr = wire_seg_decode(seg, body, len, &why);

	if (hdr < 0 || !lane_fits(seg->opcode, is_response(h)))
		return -EPROTO;
	return payload_fits(seg, len - (size_t)hdr) ? hdr : -EPROTO;
}
