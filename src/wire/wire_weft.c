/* What Weft adds: hello, control messages, datagrams. Spoken only between Weft
 * devices, so whatever the layouts leave reserved has to be zero. */
#include "wire_weft.h"

#include <errno.h>

#include "wire_bytes.h"
#include "wire_crc32c.h"

static const uint8_t hello_magic[4] = {'W', 'E', 'F', 'T'};

#define MAX_24 0xffffffU

size_t wire_hello_encode(const struct wire_hello *h, void *buf)
{
	uint8_t *p = buf;

	memcpy(p, hello_magic, sizeof(hello_magic));
	p = put_u8(p + sizeof(hello_magic), h->version);
	p = put_u8(p, h->type);
	p = put_be16(p, 0);
	p = put_be32(p, h->src_qpn);
	p = put_be32(p, h->dst_qpn);
	p = put_be32(p, h->rq_psn);
	put_be32(p, h->dst_addr);
	return WIRE_HELLO_LEN;
}

int wire_hello_decode(struct wire_hello *h, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	if (len != WIRE_HELLO_LEN || memcmp(b, hello_magic, sizeof(hello_magic)) != 0)
		return -EPROTO;
	h->version = b[4];
	h->type = b[5];
	if (h->version != WIRE_HELLO_VERSION || get_be16(b + 6) != 0)
		return -EPROTO;
	if (h->type != WIRE_HELLO_RC && h->type != WIRE_HELLO_UC)
		return -EPROTO;
	h->src_qpn = get_be32(b + 8);
	h->dst_qpn = get_be32(b + 12);
	h->rq_psn = get_be32(b + 16);
	h->dst_addr = get_be32(b + 20);
	if (h->src_qpn > MAX_24 || h->dst_qpn > MAX_24 || h->rq_psn > MAX_24)
		return -EPROTO;
	return 0;
}

size_t wire_ctl_encode(const struct wire_ctl *c, void *buf)
{
	uint8_t *p = buf;

	p = put_u8(p, c->type);
	p = put_u8(p, c->arg);
	p = put_be16(p, 0);
	put_be32(p, c->seq);
	return WIRE_CTL_LEN;
}

int wire_ctl_decode(struct wire_ctl *c, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	if (len != WIRE_CTL_LEN || get_be16(b + 2) != 0)
		return -EPROTO;
	c->type = b[0];
	c->arg = b[1];
	c->seq = get_be32(b + 4);
	return c->type >= WIRE_CTL_ACK && c->type <= WIRE_CTL_PROBE ? 0 : -EPROTO;
}

#define OFF_MAGIC   4
#define OFF_VERSION 5
#define DGRAM_MAGIC 'W'

size_t wire_dgram_encode(const struct wire_seg *seg, void *buf)
{
	uint8_t *p = buf;

	p = put_u8(p + OFF_MAGIC, DGRAM_MAGIC);
	p = put_u8(p, WIRE_DGRAM_VERSION);
	return WIRE_DGRAM_PREFIX + wire_seg_encode(seg, p);
}

void wire_dgram_seal(void *dgram, size_t len)
{
	uint8_t *b = dgram;

	put_le32(b, wire_crc32c(0, b + OFF_MAGIC, len - OFF_MAGIC));
}

/* A datagram has no connection to invalidate a region on, and no stream to
 * terminate: what is left is the four plain kinds of Send. */
static bool fit_for_dgram(const struct wire_seg *seg)
{
	switch (seg->opcode) {
	case WIRE_OP_SEND:
	case WIRE_OP_SEND_SE:
	case WIRE_OP_SEND_IMM:
	case WIRE_OP_SEND_IMM_SE:
		return seg->last;
	default:
		return false;
	}
}

int wire_dgram_decode(struct wire_seg *seg, const void *dgram, size_t len)
{
	const uint8_t *b = dgram;
	struct wire_term why;

	if (len < WIRE_DGRAM_HDR || len > WIRE_DGRAM_MAX)
		return -EPROTO;
	if (b[OFF_MAGIC] != DGRAM_MAGIC || b[OFF_VERSION] != WIRE_DGRAM_VERSION)
		return -EPROTO;
	if (get_le32(b) != wire_crc32c(0, b + OFF_MAGIC, len - OFF_MAGIC))
		return -EBADMSG;
	if (wire_seg_decode(seg, b + WIRE_DGRAM_PREFIX, len - WIRE_DGRAM_PREFIX, &why) < 0)
		return -EPROTO;
	return fit_for_dgram(seg) ? WIRE_DGRAM_HDR : -EPROTO;
}
