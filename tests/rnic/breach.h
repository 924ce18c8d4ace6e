/* A peer that has been let in and then breaks the protocol, one way at a time.
 *
 * Whatever it sends: nobody crashes, nothing is written where it may not, the honest
 * pair beside it goes on, and the victim's queue pair ends in the state that it should. */
#ifndef WEFT_BREACH_H
#define WEFT_BREACH_H

#include "peer.h"

static struct court court;
static struct peer peer;

enum outcome {
	ALIVE,   /* nothing happened, or only what was asked for */
	BROKEN,  /* answered with a Terminate, the queue pair is in error */
	WHATEVER /* either */
};

/* Waits until the victim has dealt with everything so far: a read of ours comes back, or
 * the connection has ended. */
static inline bool settled(uint32_t read_msn)
{
	static uint8_t payload[WIRE_MPA_ULPDU_MAX];
	struct wire_read_req r = {.sink_stag = 0x5e771e,
				  .len = 4,
				  .src_stag = court.open_mr->rkey,
				  .src_to = (uintptr_t)court_memory(&court)};
	struct wire_seg seg = {
		.opcode = WIRE_OP_READ_REQ, .last = true, .qn = WIRE_QN_READ_REQ, .msn = read_msn};
	uint8_t req[WIRE_READ_REQ_LEN];
	size_t len;

	wire_read_req_encode(&r, req);
	peer_frame(&peer, &seg, req, sizeof(req));
	while (peer_next(&peer, &seg, payload, &len, RIG_WAIT)) {
		if (seg.opcode == WIRE_OP_READ_RESP && seg.stag == 0x5e771e)
			return true;
		if (seg.opcode == WIRE_OP_TERMINATE)
			return false;
	}
	return false;
}

static inline void begin(void)
{
	court_victim(&court);
	peer_meet(&peer, &court.victim);
}

static inline void end(enum outcome want, uint32_t next_read_msn)
{
	bool alive = settled(next_read_msn);
	enum ibv_qp_state state;

	if (!alive) {
		uint64_t until = rig_now_ms() + RIG_WAIT;

		while (end_query(&court.victim) != IBV_QPS_ERR && rig_now_ms() < until)
			usleep(100);
	}
	state = end_query(&court.victim);
	if (want != WHATEVER)
		CHECK_EQ(state, want == ALIVE ? IBV_QPS_RTS : IBV_QPS_ERR);
	peer_hang_up(&peer);
	court_check(&court);
	court_dismiss(&court);
}

static inline struct wire_seg send_seg(uint32_t msn, uint32_t mo, bool last)
{
	return (struct wire_seg){.opcode = WIRE_OP_SEND, .last = last, .msn = msn, .mo = mo};
}

static inline int setup(void **state)
{
	(void)state;
	alarm(60);
	court_open(&court);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	alarm(60);
	court_close(&court);
	return 0;
}

#endif
