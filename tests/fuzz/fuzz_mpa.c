/* MPA handshake frames. */
#include <errno.h>

#include "fuzz.h"
#include "wire_mpa.h"

/* Bits of the flags byte that mean something in this frame. */
static uint8_t known_flags(const struct wire_mpa_hs *hs)
{
	return (uint8_t)(0xc0 | (hs->reply ? 0x20 : 0) | (hs->revision == 2 ? 0x10 : 0));
}

static void check_accepted(const struct wire_mpa_hs *hs, const uint8_t *in, size_t len)
{
	uint8_t out[WIRE_MPA_HS_MAX];

	HOLDS(len >= WIRE_MPA_HS_HDR && len <= WIRE_MPA_HS_MAX);
	HOLDS(hs->revision == 1 || hs->revision == 2);
	HOLDS(hs->pd_len <= WIRE_MPA_PD_MAX);
	HOLDS(wire_mpa_hs_encode(hs, out, len - 1) == -ENOSPC);
	HOLDS(wire_mpa_hs_encode(hs, out, len) == (int)len);
	/* The same bytes, but for the reserved bits. */
	HOLDS(out[16] == (in[16] & known_flags(hs)));
	out[16] = in[16];
	HOLDS(!memcmp(out, in, len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *b = exact_copy(data, size);
	struct wire_mpa_hs hs;
	int r = wire_mpa_hs_decode(&hs, b, size);

	HOLDS(r == -EAGAIN || r == -EPROTO || (r > 0 && (size_t)r <= size));
	if (r > 0)
		check_accepted(&hs, b, (size_t)r);
	free(b);

	/* A prefix is never judged otherwise than "wait", unless all are refused. */
	if (size) {
		size_t cut = (r > 0 ? (size_t)r : size) * data[size - 1] / 256;
		uint8_t *p = exact_copy(data, cut);
		int early = wire_mpa_hs_decode(&hs, p, cut);

		HOLDS(early == -EAGAIN || (early == -EPROTO && r == -EPROTO));
		free(p);
	}
	return 0;
}
