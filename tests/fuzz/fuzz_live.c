/* What an endpoint shows of its paths (src/msg/msg_live.h): a head and peers, as they lie in a
 * file. What is accepted can be printed and counted with. */
#include <errno.h>
#include <math.h>

#include "fuzz.h"
#include "msg_live.h"

static void check_text(const char *text, size_t size)
{
	HOLDS(memchr(text, '\0', size));
	for (; *text; text++)
		HOLDS(*text >= ' ' && *text <= '~');
}

static void check_peer(struct msg_live_peer *p)
{
	struct msg_live_peer was = *p;
	int r = msg_live_check_peer(p);

	HOLDS(r == 0 || r == -EPROTO);
	if (r)
		return;
	HOLDS(p->paths >= 1 && p->paths <= STRIPE_PATHS_MAX && p->seq % 2 == 0);
	HOLDS(!(p->down >> p->paths));
	check_text(p->policy, sizeof(p->policy));
	for (uint32_t i = 0; i < p->paths; i++)
		HOLDS(isfinite(p->path[i].weight) && p->path[i].weight >= 0 &&
		      p->path[i].bytes == was.path[i].bytes);
	/* Once is enough. Every byte is meant: it is what lies in a file. */
	was = *p;
	/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
	HOLDS(!msg_live_check_peer(p) && !memcmp(p, &was, sizeof(was)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct msg_live_head h;
	struct msg_live_peer p;
	int r;

	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	r = msg_live_check_head(&h);
	HOLDS(r == 0 || r == -EPROTO);
	if (!r) {
		HOLDS(h.pid && h.peers <= MSG_LIVE_PEERS);
		check_text(h.host, sizeof(h.host));
		check_text(h.program, sizeof(h.program));
	}
	for (uint32_t i = 0; msg_live_at(i + 1) <= size; i++) {
		memcpy(&p, data + msg_live_at(i), sizeof(p));
		check_peer(&p);
	}
	return 0;
}
