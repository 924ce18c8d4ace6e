/* A peer gone mad: good frames, changed a little, with good checksums, while the victim
 * goes about its business. For some seconds, from a seed that is printed.
 *
 * WEFT_TEST_FUZZ_MS makes it longer. */
#include <sys/socket.h>
#include "peer.h"

static struct court court;
static struct peer peer;
static struct util_rand *rnd;
static uint8_t scrap[65536];
static unsigned long frames;

static uint32_t below(uint32_t n)
{
	return (uint32_t)util_rand_below(rnd, n);
}

static uint32_t strange32(void)
{
	static const uint32_t values[] = {0,          1,          2,          3,         4,
					  7,          8,          0x7fff,     0xffff,    0x10000,
					  0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};

	return below(4) ? values[below(ARRAY_SIZE(values))] : (uint32_t)util_rand_next(rnd);
}

static uint64_t strange_addr(void)
{
	uint64_t base = (uintptr_t)court_memory(&court);

	switch (below(80)) {
	case 0:
		return base - below(16);
	case 1:
		return base + COURT_OPEN - below(70);
	case 2:
		return UINT64_MAX - below(100);
	case 3:
		return util_rand_next(rnd);
	default:
		return base + below(COURT_OPEN - 5000);
	}
}

static uint32_t strange_key(void)
{
	switch (below(100)) {
	case 0:
		return court.closed_mr->rkey;
	case 1:
		return court.foreign_mr->rkey;
	case 2:
		return (uint32_t)util_rand_next(rnd);
	default:
		return court.open_mr->rkey;
	}
}

/* Where the conversation stands, if nothing was changed. */
struct state {
	uint32_t send_msn, read_msn;
	uint32_t mo; /* of the message under way */
	bool sending;
};

static size_t build(struct state *s, uint8_t *ulpdu)
{
	struct wire_seg seg = {.last = below(4) != 0};
	struct wire_read_req r;
	struct wire_atomic_req a;
	struct wire_atomic_resp resp;
	struct wire_ctl ctl;
	size_t len = below(3) ? below(64) : below(5000), hdr;
	uint8_t *payload;

	switch (below(10)) {
	case 0:
	case 1:
	case 2:
		seg.opcode = (uint8_t[]){WIRE_OP_SEND, WIRE_OP_SEND_SE, WIRE_OP_SEND_IMM,
					 WIRE_OP_SEND_IMM_SE}[below(4)];
		seg.msn = s->send_msn + 1;
		seg.mo = s->mo;
		s->mo = seg.last ? 0 : s->mo + (uint32_t)len;
		s->send_msn += seg.last;
		break;
	case 3:
	case 4:
		seg.opcode = WIRE_OP_WRITE;
		seg.stag = strange_key();
		seg.to = strange_addr();
		break;
	case 5:
		seg.opcode = WIRE_OP_IMM;
		seg.last = true;
		seg.msn = ++s->send_msn;
		break;
	case 6:
		seg.opcode = below(2) ? WIRE_OP_READ_REQ : WIRE_OP_ATOMIC_REQ;
		seg.last = true;
		seg.qn = WIRE_QN_READ_REQ;
		seg.msn = ++s->read_msn;
		break;
	case 7:
		if (below(10))
			return build(s, ulpdu); /* rarely asked for */
		seg.opcode = below(2) ? WIRE_OP_READ_RESP : WIRE_OP_ATOMIC_RESP;
		if (seg.opcode == WIRE_OP_READ_RESP) {
			seg.stag = below(4);
			seg.to = below(2) ? 0 : below(100);
		} else {
			seg.qn = WIRE_QN_ATOMIC_RESP;
			seg.msn = below(3);
		}
		break;
	case 8:
		seg.opcode = WIRE_OP_CONTROL;
		seg.last = true;
		seg.qn = WIRE_QN_CONTROL;
		break;
	default:
		if (below(8))
			return build(s, ulpdu);
		seg.opcode = WIRE_OP_TERMINATE;
		seg.last = true;
		seg.qn = WIRE_QN_TERMINATE;
		seg.msn = 1;
	}
	hdr = wire_seg_encode(&seg, ulpdu);
	payload = ulpdu + hdr;
	util_rand_bytes(rnd, payload, len);
	switch (seg.opcode) {
	case WIRE_OP_READ_REQ:
		r = (struct wire_read_req){.sink_stag = strange32(),
					   .sink_to = strange_addr(),
					   .len = below(40) ? below(1000) : strange32(),
					   .src_stag = strange_key(),
					   .src_to = strange_addr()};
		return hdr + wire_read_req_encode(&r, payload);
	case WIRE_OP_ATOMIC_REQ:
		a = (struct wire_atomic_req){.op = below(2) ? WIRE_ATOMIC_CMP_SWAP : 0,
					     .id = strange32(),
					     .stag = strange_key(),
					     .to = strange_addr() & ~UINT64_C(7)};
		if (a.op)
			a.add_swap_mask = a.compare_mask = UINT64_MAX;
		return hdr + wire_atomic_req_encode(&a, payload);
	case WIRE_OP_ATOMIC_RESP:
		resp = (struct wire_atomic_resp){.id = below(4), .value = 1};
		return hdr + wire_atomic_resp_encode(&resp, payload);
	case WIRE_OP_CONTROL:
		ctl = (struct wire_ctl){.type = (uint8_t)(1 + below(WIRE_CTL_PROBE)),
					.arg = (uint8_t)below(256),
					.seq = below(2) ? below(10) : strange32()};
		return hdr + wire_ctl_encode(&ctl, payload);
	case WIRE_OP_IMM:
		return hdr + wire_imm_encode(strange32(), payload);
	default:
		return hdr + len;
	}
}

/* Most frames stay as they are, or the conversation would be short. */
static size_t mutate(uint8_t *ulpdu, size_t len)
{
	switch (below(100)) {
	case 0:
		return below((uint32_t)len + 1);
	case 1:
		util_rand_bytes(rnd, ulpdu + len, 20);
		return len + below(20);
	case 2:
		ulpdu[below(20)] = (uint8_t)util_rand_next(rnd);
		return len;
	case 3:
		ulpdu[below((uint32_t)len + 1)] ^= (uint8_t)(1u << below(8));
		return len;
	default:
		return len;
	}
}

static void speak(struct state *s)
{
	static uint8_t ulpdu[8192], fpdu[WIRE_MPA_FPDU_MAX];
	size_t len = mutate(ulpdu, build(s, ulpdu));

	len = peer_seal(fpdu, ulpdu, len);
	if (!below(100))
		fpdu[below((uint32_t)len)] ^= 0x10; /* and now and then a bad checksum */
	if (!below(20)) {                           /* in two pieces */
		size_t cut = below((uint32_t)len);

		peer_write(&peer, fpdu, cut);
		if (below(2))
			usleep(50);
		peer_write(&peer, fpdu + cut, len - cut);
		return;
	}
	peer_write(&peer, fpdu, len);
}

/* The victim uses its queue pair as if nothing were wrong. */
static void act(struct end *v, uint64_t *id)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,       IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct work w;

	switch (below(8)) {
	case 0:
	case 1:
	case 2:
		try_recv(v, ++*id, below(COURT_OPEN - 20000), 20000);
		break;
	case 3:
		if (!below(20)) /* too small, or up to the canary and beyond */
			try_recv(v, ++*id, below(COURT_OPEN), below(2) ? 5000 : 50);
		break;
	case 4:
		work_init(&w, v, ops[below(ARRAY_SIZE(ops))], ++*id, below(COURT_OPEN - 100), 100,
			  0);
		(void)!post(v, &w);
		break;
	default:
		break;
	}
}

static void drain(struct end *v)
{
	struct ibv_wc wc[16];

	while (ibv_poll_cq(v->scq, 16, wc) > 0)
		;
	while (ibv_poll_cq(v->rcq, 16, wc) > 0)
		;
	while (recv(peer.fd, scrap, sizeof(scrap), MSG_DONTWAIT) > 0)
		;
}

static void conversation(void)
{
	struct state s = {0};
	uint64_t id = 0;

	court_victim(&court);
	peer_meet(&peer, &court.victim);
	for (int i = 0; i < 10; i++)
		try_recv(&court.victim, ++id, below(COURT_OPEN - 20000), 20000);
	for (int step = 0; step < 500; step++) {
		speak(&s);
		frames++;
		act(&court.victim, &id);
		drain(&court.victim);
		if (end_query(&court.victim) == IBV_QPS_ERR)
			break;
		if (!below(300)) {
			CHECK_0(end_state(&court.victim, below(2) ? IBV_QPS_ERR : IBV_QPS_RESET));
			break;
		}
	}
	peer_hang_up(&peer);
	court_dismiss(&court);
}

static void test_mutations(void **state)
{
	const char *env = getenv("WEFT_TEST_FUZZ_MS");
	uint64_t ms = env ? strtoull(env, NULL, 0) : 2500, end = rig_now_ms() + ms;
	unsigned int n = 0;

	(void)state;
	alarm(60 + (unsigned int)(ms / 1000));
	rnd = rig_rand();
	court_open(&court);
	for (; rig_now_ms() < end; n++) {
		conversation();
		court_check(&court);
	}
	court_close(&court);
	printf("  %u conversations, %lu frames\n", n, frames);
	CHECK(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {RIG_TEST(test_mutations)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
