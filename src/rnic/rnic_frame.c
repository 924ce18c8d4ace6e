/* Building one FPDU: header, payload and checksum in a single pass over the bytes. */
#include <string.h>
#include "wire_crc32c.h"
#include "rnic_conn.h"

void rnic_frame_begin(struct rnic_frame *f, uint8_t *buf, const struct wire_seg *seg,
		      size_t payload_len, bool crc)
{
	size_t hdr = wire_seg_encode(seg, buf + WIRE_MPA_LEN_HDR), total = hdr + payload_len;

	buf[0] = (uint8_t)(total >> 8);
	buf[1] = (uint8_t)total;
	f->fpdu = buf;
	f->ulpdu_len = hdr;
	f->direct = 0;
	f->crc = crc ? wire_crc32c(0, buf, WIRE_MPA_LEN_HDR + hdr) : 0;
}

void rnic_frame_add(struct rnic_frame *f, const void *data, size_t len, bool crc)
{
	if (crc)
		f->crc = wire_crc32c_copy(f->crc, rnic_frame_payload(f), data, len);
	else
		memcpy(rnic_frame_payload(f), data, len);
	f->ulpdu_len += len;
}

size_t rnic_frame_end(struct rnic_frame *f, bool crc)
{
	uint8_t *end = rnic_frame_payload(f);
	size_t pad = wire_mpa_pad(f->ulpdu_len + f->direct);

	memset(end, 0, pad + WIRE_MPA_CRC_LEN);
	if (crc) {
		if (pad)
			f->crc = wire_crc32c(f->crc, end, pad);
		for (int i = 0; i < WIRE_MPA_CRC_LEN; i++)
			end[pad + (size_t)i] = (uint8_t)(f->crc >> (8 * i));
	}
	return WIRE_MPA_LEN_HDR + f->ulpdu_len + pad + WIRE_MPA_CRC_LEN;
}

size_t rnic_frame_control(struct rnic_conn *c, uint8_t *buf, uint8_t type, uint8_t arg,
			  uint32_t seq)
{
	struct wire_ctl ctl = {.type = type, .arg = arg, .seq = seq};
	struct wire_seg seg = {.opcode = WIRE_OP_CONTROL,
			       .last = true,
			       .qn = WIRE_QN_CONTROL,
			       .msn = ++c->ctl_msn};
	uint8_t payload[WIRE_CTL_LEN];
	struct rnic_frame f;

	wire_ctl_encode(&ctl, payload);
	rnic_frame_begin(&f, buf, &seg, sizeof(payload), c->crc);
	rnic_frame_add(&f, payload, sizeof(payload), c->crc);
	return rnic_frame_end(&f, c->crc);
}
