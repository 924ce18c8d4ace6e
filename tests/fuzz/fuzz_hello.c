/* Hello and control messages. The first byte chooses which. */
#include <errno.h>

#include "fuzz.h"
#include "wire_weft.h"

static void hello(const uint8_t *b, size_t size)
{
	uint8_t out[WIRE_HELLO_LEN];
	struct wire_hello h;
	int r = wire_hello_decode(&h, b, size);

	HOLDS(r == 0 || r == -EPROTO);
	if (r)
		return;
	HOLDS((h.src_qpn | h.dst_qpn | h.rq_psn) <= 0xffffff);
	HOLDS(wire_hello_encode(&h, out) == size && !memcmp(out, b, size));
}

static void ctl(const uint8_t *b, size_t size)
{
	uint8_t out[WIRE_CTL_LEN];
	struct wire_ctl c;
	int r = wire_ctl_decode(&c, b, size);

	HOLDS(r == 0 || r == -EPROTO);
	if (r)
		return;
	HOLDS(c.type >= WIRE_CTL_ACK && c.type <= WIRE_CTL_PROBE);
	HOLDS(wire_ctl_encode(&c, out) == size && !memcmp(out, b, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *b;

	if (size == 0)
		return 0;
	b = exact_copy(data + 1, size - 1);
	if (data[0] & 1)
		ctl(b, size - 1);
	else
		hello(b, size - 1);
	free(b);
	return 0;
}
