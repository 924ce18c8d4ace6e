/* A stage for RD and a peer that means harm: two good ones, of which one is attacked, and the
 * attacker. */
#ifndef WEFT_RD_STAGE_H
#define WEFT_RD_STAGE_H

#include "rd_peer.h"

struct stage {
	struct rd_pair p; /* a is good, b is attacked */
	struct rd_peer h;
	struct way bh; /* from the attacked to the attacker */
	uint64_t n;
};

static inline void stage_open(struct stage *s, bool pair)
{
	struct rig_opts o = rd_defaults();
	struct rig_addr to;

	memset(s, 0, sizeof(*s));
	o.timeout = 15; /* a second */
	rd_pair_open(&s->p, NULL, &o);
	rd_peer_open(&s->h, &s->p.b);
	if (pair)
		CHECK(rd_peer_shake(&s->h));
	to = rd_peer_addr(&s->h);
	way_make(&s->bh, &s->p.b, &to, 0);
}

static inline void stage_close(struct stage *s)
{
	way_free(&s->bh);
	rd_peer_close(&s->h);
	rd_pair_close(&s->p);
}

/* Both ways between the good ones. Completions of requests to the hostile one are small. */
static inline void stage_good(struct stage *s)
{
	struct rd_pair *p = &s->p;
	uint64_t id = 1000000 + s->n++;
	struct ibv_wc wc;

	end_recv(&p->b, id, 0, 5000);
	rd_post(&p->ab, IBV_WR_SEND, id, 0, 5000, 0);
	EXPECT_OK(p->b.rcq, id);
	EXPECT_OK(p->a.scq, id);
	rd_post(&p->ba, IBV_WR_RDMA_READ, id, 8192, 5000, 0);
	do
		CHECK(wait_wc(p->b.scq, &wc, RIG_WAIT));
	while (wc.wr_id < 1000000);
	CHECK_EQ(wc.wr_id, id);
	CHECK_0(wc.status);
}

/* What the attacker answers to a read or an atomic, true or not. */
static inline void stage_response(struct rd_peer *h, uint8_t opcode, uint32_t handle, uint64_t to,
				  size_t len)
{
	static uint8_t data[2000];
	struct wire_seg seg = {.opcode = opcode, .last = true};
	struct wire_atomic_resp a = {handle, 5};
	struct wire_rd_error e = {handle, (uint8_t)(2 + len % 3)};

	if (opcode == WIRE_OP_READ_RESP) {
		seg.tagged = true;
		seg.stag = handle;
		seg.to = to;
	} else if (opcode == WIRE_OP_ATOMIC_RESP) {
		seg.qn = WIRE_QN_ATOMIC_RESP;
		len = wire_atomic_resp_encode(&a, data);
	} else {
		seg.qn = WIRE_QN_TERMINATE;
		len = wire_rd_error_encode(&e, data);
	}
	rd_peer_seg(h, WIRE_RD_RESPONSE, h->psn++, &seg, data, len);
}

/* The handle of a read that the target has sent; 0: that is none. */
static inline uint32_t stage_handle(const struct rd_got *g)
{
	struct wire_read_req rr;

	if (g->h.type != WIRE_RD_DATA || g->h.flags & WIRE_RD_SKIP ||
	    g->seg.opcode != WIRE_OP_READ_REQ)
		return 0;
	CHECK_0(wire_read_req_decode(&rr, g->body + WIRE_UNTAGGED_HDR, g->len - WIRE_UNTAGGED_HDR));
	return rr.sink_stag;
}

#endif
