/* A datagram. With bit 1 of the first byte its CRC is made right beforehand. */
#include <errno.h>

#include "fuzz.h"
#include "wire_weft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_seg seg, again;
	uint8_t *b;
	bool fix;
	int r;

	if (size == 0)
		return 0;
	fix = data[0] & 1;
	size--;
	b = exact_copy(data + 1, size);
	if (fix && size >= 4)
		wire_dgram_seal(b, size);
	r = wire_dgram_decode(&seg, b, size);
	HOLDS(r == -EPROTO || r == -EBADMSG || r == WIRE_DGRAM_HDR);
	HOLDS(r != -EBADMSG || !fix);
	if (r > 0) {
		uint8_t *out = exact_copy(b, size);

		HOLDS(size >= WIRE_DGRAM_HDR && size <= WIRE_DGRAM_MAX);
		HOLDS(!seg.tagged && seg.last && seg.qn == WIRE_QN_SEND);
		HOLDS(wire_dgram_encode(&seg, out) == WIRE_DGRAM_HDR);
		/* The same bytes, but for the reserved bits. */
		HOLDS(out[6] == (b[6] & 0xc3) && out[7] == (b[7] & 0xcf));
		HOLDS(!memcmp(out + 4, b + 4, 2) && !memcmp(out + 8, b + 8, 16));
		wire_dgram_seal(out, size);
		HOLDS(wire_dgram_decode(&again, out, size) == WIRE_DGRAM_HDR);
		HOLDS(again.opcode == seg.opcode && again.ulp == seg.ulp && again.msn == seg.msn &&
		      again.mo == seg.mo);
		/* Any one changed byte is noticed. */
		out[size - 1 - seg.msn % size] ^= 0x10;
		HOLDS(wire_dgram_decode(&again, out, size) < 0);
		free(out);
	}
	free(b);
	return 0;
}
