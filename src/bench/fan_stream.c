/* Both ways at once over many connections: messages on one after the other, as many under way as a
 * window allows. */
#include <errno.h>

#include "bench_time.h"
#include "fan.h"

#define WINDOW  64 /* requests under way, on all ends together */
#define PER_END 8

struct stream {
	struct fan_node *node;
	unsigned int next, outstanding;
	uint64_t bytes, msgs;
};

static int post_next(struct stream *s)
{
	struct fan_node *node = s->node;
	struct fan_req req = {.opcode = IBV_WR_SEND, .len = node->size, .signal = true};
	unsigned int i = 0;

	/* The next one whose own window is open. */
	for (unsigned int k = 0; k < node->active; k++) {
		i = (s->next + k) % node->active;
		if (node->end[i].outstanding < PER_END)
			break;
	}
	if (node->end[i].outstanding >= PER_END)
		return 0;
	s->next = i + 1;
	req.local = fan_msg(node, node->root ? 0 : 1 + i);
	req.id = i;
	if (node->type->func == FAN_WRITE) {
		req.opcode = IBV_WR_RDMA_WRITE;
		req.remote = node->end[i].addr.vaddr;
	}
	node->end[i].outstanding++;
	s->outstanding++;
	return fan_post(node, i, &req);
}

static int complete(struct stream *s, const struct ibv_wc *wc)
{
	if (wc->wr_id & FAN_RECV)
		return fan_refill(s->node, FAN_OF(wc->wr_id));
	s->node->end[FAN_OF(wc->wr_id)].outstanding--;
	s->outstanding--;
	s->bytes += s->node->size;
	s->msgs++;
	return 0;
}

/* Takes what there is: 1 when something came. */
static int pump(struct stream *s)
{
	struct ibv_wc wc;
	int did = 0, ret;

	while ((ret = fan_take(s->node, &wc)) > 0) {
		ret = complete(s, &wc);
		if (ret)
			return ret;
		did = 1;
	}
	return ret < 0 ? ret : did;
}

int fan_stream(struct fan_node *node, uint64_t ns, uint64_t *bytes, uint64_t *msgs)
{
	struct stream s = {.node = node};
	uint64_t end = bench_now() + ns;
	uint32_t spins = 0;
	int ret = 0;

	while (node->active && ret >= 0 && bench_now() < end) {
		unsigned int before;

		do {
			before = s.outstanding;
			if (before < WINDOW)
				ret = post_next(&s);
		} while (ret >= 0 && s.outstanding != before);
		if (ret >= 0)
			ret = pump(&s);
	}
	/* What completes later was not sent in this time. */
	*bytes = s.bytes;
	*msgs = s.msgs;
	while (ret >= 0 && s.outstanding) {
		ret = pump(&s);
		if (!ret && bench_expired(&spins, node->deadline))
			ret = -ETIMEDOUT;
	}
	return ret < 0 ? ret : 0;
}
