/* The FPDU of a stream without markers: RFC 5044 sections 4.1 and 4.4. */
#include "wire_mpa.h"

#include <errno.h>

#include "wire_bytes.h"
#include "wire_crc32c.h"

size_t wire_mpa_fpdu_seal(void *fpdu, size_t ulpdu_len, bool crc)
{
	uint8_t *b = fpdu;
	size_t pad = wire_mpa_pad(ulpdu_len);
	size_t covered = WIRE_MPA_LEN_HDR + ulpdu_len + pad;

	put_be16(b, (uint16_t)ulpdu_len);
	memset(b + WIRE_MPA_LEN_HDR + ulpdu_len, 0, pad);
	put_le32(b + covered, crc ? wire_crc32c(0, b, covered) : 0);
	return covered + WIRE_MPA_CRC_LEN;
}

int wire_mpa_fpdu_open(const void *buf, size_t len, bool crc, const uint8_t **ulpdu,
		       size_t *ulpdu_len, size_t *need)
{
	const uint8_t *b = buf;
	size_t n, fpdu, covered;

	*need = 0;
	if (len < WIRE_MPA_LEN_HDR)
		return -EAGAIN;
	n = get_be16(b);
	fpdu = wire_mpa_fpdu_len(n);
	*need = fpdu;
	if (len < fpdu)
		return -EAGAIN;
	/* The field is there even when the CRC was negotiated away; it is then not
	 * looked at. Nor is the pad: only senders are bound to zero it. */
	covered = fpdu - WIRE_MPA_CRC_LEN;
	if (crc && get_le32(b + covered) != wire_crc32c(0, b, covered))
		return -EBADMSG;
	*ulpdu = b + WIRE_MPA_LEN_HDR;
	*ulpdu_len = n;
	return (int)fpdu;
}
