/* The payload of a Terminate message. */
#include <errno.h>

#include "fuzz.h"
#include "wire_rdmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *b = exact_copy(data, size), out[WIRE_TERM_MAX];
	struct wire_term t;
	int r = wire_term_decode(&t, b, size);

	HOLDS(r == 0 || r == -EPROTO);
	HOLDS(strlen(wire_term_str(&t)) > 0);
	if (size >= 4)
		HOLDS(t.layer == b[0] >> 4 && t.etype == (b[0] & 0xf) && t.ecode == b[1]);
	if (r == 0) {
		HOLDS(size <= sizeof(out));
		HOLDS(!t.has_ddp || t.hdr_len == WIRE_TAGGED_HDR || t.hdr_len == WIRE_UNTAGGED_HDR);
		HOLDS(wire_term_encode(&t, out) == size);
		/* The same bytes, but for reserved bits and a length that is invalid. */
		HOLDS(out[0] == b[0] && out[1] == b[1] && out[2] == (b[2] & 0xe0) && out[3] == 0);
		if (t.has_len)
			HOLDS(!memcmp(out + 4, b + 4, size - 4));
		else if (t.has_ddp)
			HOLDS(!memcmp(out + 6, b + 6, size - 6));
	}
	free(b);
	return 0;
}
