/* A packet between endpoints (src/msg). */
#include <errno.h>

#include "fuzz.h"
#include "msg_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t out[MSG_WIRE_MAX];
	struct msg_pkt p, q;
	size_t body, again;
	int r = msg_wire_decode(&p, data, size, &body);

	HOLDS(r == 0 || r == -EPROTO);
	if (r)
		return 0;
	HOLDS(body <= size && body <= MSG_WIRE_MAX && p.n_seg <= MSG_SEGS);
	if (p.type == MSG_EAGER || p.type == MSG_ATOMIC_RSP || p.type == MSG_HERE)
		HOLDS(p.len == size - body);
	if (p.type == MSG_HERE)
		HOLDS(p.len && p.len <= 4 * MSG_ADDRS && p.len % 4 == 0);
	/* What is left out when it is written again has no meaning. */
	HOLDS(msg_wire_encode(&p, out) == body);
	if (body == size) {
		HOLDS(!msg_wire_decode(&q, out, body, &again) && again == body);
		/* One function has made both, and what lies between members too. */
		/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
		HOLDS(!memcmp(&p, &q, sizeof(p)));
	}
	return 0;
}
