/* RD queue pairs and a peer whose packets are all right one by one, but not in their order: it
 * confirms, refuses and answers what it likes, when it likes. Whoever waits for it may wait, and
 * nobody else. */
#include "rd_stage.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 1);
}

#define BABBLE_MS 2000

/* A read is answered, and known to have arrived, before the Send in front of it; that is refused.
 * It must keep its place until the Send is through: others would use it. */
static void test_answered_early(void **state)
{
	static struct rd_got g;
	uint32_t handle = 0;
	struct stage s;

	(void)state;
	stage_open(&s, true);
	rd_post(&s.bh, IBV_WR_SEND, 1, 0, 100, 0);
	rd_post(&s.bh, IBV_WR_RDMA_READ, 2, 1 << 20, 100, 0);
	for (int i = 0; i < 20 && !handle; i++) {
		CHECK(rd_peer_listen(&s.h, &g, 2000));
		handle = stage_handle(&g);
	}
	CHECK(handle);
	CHECK_EQ(g.h.psn, 1);
	rd_peer_sack(&s.h, 0, &(uint64_t){1}, 1);
	rd_peer_nak(&s.h, 0, WIRE_RD_RNR);
	stage_response(&s.h, WIRE_OP_READ_RESP, handle, 0, 100);
	expect_none(s.p.b.scq, 20);
	for (int i = 0; i < 70; i++) { /* more than the send queue has places */
		stage_good(&s);
		rd_peer_drain(&s.h);
	}
	for (int i = 0; i < 30; i++) {
		rd_peer_nak(&s.h, 0, WIRE_RD_READY);
		if (rd_peer_get(&s.h, &g, 5) && g.h.type == WIRE_RD_DATA)
			CHECK_EQ(g.h.psn, 0); /* the other has arrived */
		rd_peer_nak(&s.h, 0, WIRE_RD_RNR);
		stage_good(&s);
	}
	s.h.ack[0] = 2;
	rd_peer_sack(&s.h, 0, NULL, 0);
	EXPECT_OK(s.p.b.scq, 1);
	EXPECT_OK(s.p.b.scq, 2);
	stage_good(&s);
	stage_close(&s);
}

/* A long message that its sender has given up, all packets but the first: there must still be a
 * place for that. */
static void test_skips(void **state)
{
	static struct rd_got g;
	uint8_t body[8];
	struct stage s;
	bool through = false;
	size_t len;

	(void)state;
	stage_open(&s, true);
	len = wire_rd_skip_encode(0, body);
	for (uint32_t psn = 1; psn < 3000; psn++)
		rd_peer_say(&s.h, WIRE_RD_DATA, WIRE_RD_SKIP, psn, body, len);
	rd_peer_say(&s.h, WIRE_RD_DATA, WIRE_RD_SKIP, 0, body, len);
	while (!through && rd_peer_get(&s.h, &g, 2000))
		through = g.h.ack[0] == 3000;
	CHECK(through);
	stage_good(&s);
	stage_close(&s);
}

/* ---- at random ---- */

struct babble {
	struct stage s;
	uint32_t handles[64];
	unsigned int n_handles;
	uint32_t top;  /* behind the last packet of the target's requests */
	uint32_t psn;  /* of our next request */
	uint64_t pair; /* the target's name for it */
	unsigned int posted, done, lives;
};

static uint32_t below(uint32_t n)
{
	return (uint32_t)util_rand_below(rig_rand(), n);
}

/* What the target wants of us. */
static void post_some(struct babble *b)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ};

	for (uint32_t i = below(4); i; i--)
		b->posted += !rd_try(&b->s.bh, ops[below(3)], below(1000), 1 << 20,
				     below(below(5) ? 3000 : 60000), 0);
}

/* Answers as rd_peer_listen does. When the target has given us up we are somebody else. */
static void greet(struct babble *b, const struct rd_got *g)
{
	struct rd_peer *h = &b->s.h;
	bool cookie = g->hello.cookie;

	if (g->hello.id != b->pair) {
		if (b->pair)
			rd_peer_new_life(h);
		b->pair = g->hello.id;
		b->top = b->psn = b->n_handles = 0;
		b->lives++;
	}
	if (cookie)
		h->id = g->hello.id;
	rd_peer_hello(h, cookie ? WIRE_RD_ACCEPT : WIRE_RD_CHALLENGE, g->hello.id, cookie ? 0 : 77);
}

static void hear(struct babble *b)
{
	static struct rd_got g;
	struct rd_peer *h = &b->s.h;
	uint32_t handle;

	for (int i = 0; i < 1000 && rd_peer_get(h, &g, 0); i++) {
		if (g.h.type == WIRE_RD_INIT) {
			greet(b, &g);
			continue;
		}
		handle = stage_handle(&g);
		if (handle)
			b->handles[b->n_handles++ % ARRAY_SIZE(b->handles)] = handle;
		if (g.h.type == WIRE_RD_DATA && !(g.h.flags & WIRE_RD_RESPONSE) &&
		    (int32_t)(g.h.psn - b->top) >= 0)
			b->top = g.h.psn + 1;
	}
}

static void say_sack(struct babble *b, uint32_t span)
{
	uint64_t words[WIRE_RD_SACK_MAX];
	unsigned int n = 1 + below(2);

	for (int i = 0; i < WIRE_RD_SACK_MAX; i++)
		words[i] = below(2) ? util_rand_next(rig_rand()) : 0;
	if (span <= 64) { /* only of what was sent */
		words[0] &= span > 1 ? (UINT64_C(1) << (span - 1)) - 1 : 0;
		n = span > 1;
	}
	rd_peer_sack(&b->s.h, below(20) ? 0 : WIRE_RD_RESPONSE, words, n);
}

static void say_response(struct babble *b)
{
	static const uint8_t ops[] = {WIRE_OP_READ_RESP, WIRE_OP_READ_RESP, WIRE_OP_READ_RESP,
				      WIRE_OP_ATOMIC_RESP, WIRE_OP_TERMINATE};
	uint32_t n = b->n_handles < ARRAY_SIZE(b->handles) ? b->n_handles : 64;

	if (n)
		stage_response(&b->s.h, ops[below(ARRAY_SIZE(ops))], b->handles[below(n)],
			       below(3) ? 0 : below(5000), below(1400));
}

static void say(struct babble *b)
{
	struct rd_peer *h = &b->s.h;
	uint32_t span = b->top - h->ack[0], some = h->ack[0] + below(span + 1);

	switch (below(9)) {
	case 0:
		if (span && below(3))
			h->ack[0] += below(span > 4 ? 4 : span + 1);
		rd_peer_sack(h, 0, NULL, 0);
		break;
	case 1:
		say_sack(b, span);
		break;
	case 2:
		rd_peer_nak(h, some, WIRE_RD_RNR);
		break;
	case 3:
		rd_peer_nak(h, some, (uint8_t)below(8));
		break;
	case 4:
		rd_peer_nak(h, some, WIRE_RD_READY);
		break;
	case 5:
		b->psn += below(2);
		rd_peer_send(h, b->psn, b->psn, below(2), below(3) ? 0 : below(4000), below(1000));
		break;
	case 6:
		rd_peer_read(h, b->psn++, below(10), below(1 << 30), 100, below(1 << 30));
		break;
	default:
		say_response(b);
		break;
	}
}

static void reap(struct babble *b)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(b->s.p.b.scq, 1, &wc) == 1) {
		CHECK(wc.wr_id < 1000);
		b->done++;
	}
}

static void test_babble(void **state)
{
	uint64_t end = rig_now_ms() + BABBLE_MS;
	struct babble b = {0};
	unsigned int rounds = 0, before = 0;
	struct ibv_wc wc;

	(void)state;
	stage_open(&b.s, false);
	for (; rig_now_ms() < end; rounds++) {
		post_some(&b);
		hear(&b);
		for (uint32_t i = below(6); i; i--)
			say(&b);
		reap(&b);
		if (rounds % 1000 == 999 && b.done == before) /* nothing moves: begin anew */
			rd_peer_say(&b.s.h, WIRE_RD_BYE, 0, 0, NULL, 0);
		if (rounds % 1000 == 999)
			before = b.done;
		if (rounds % 50)
			continue;
		try_recv(&b.s.p.b, 1, 0, 5000); /* may be the hostile one's */
		rd_post(&b.s.p.ab, IBV_WR_RDMA_WRITE, 77, 0, 100, 0);
		EXPECT_OK(b.s.p.a.scq, 77);
		while (ibv_poll_cq(b.s.p.b.rcq, 1, &wc) == 1)
			;
	}
	/* Silence. It is given up, and everything comes back, once. */
	for (end = rig_now_ms() + RIG_WAIT; b.done < b.posted && rig_now_ms() < end;)
		reap(&b);
	print_message("%u rounds, %u requests, %u lives\n", rounds, b.posted, b.lives);
	CHECK_EQ(b.done, b.posted);
	expect_none(b.s.p.b.scq, 10);
	for (uint64_t i = 0; i < b.s.p.b.o.send_wr; i++)
		rd_post(&b.s.p.ba, IBV_WR_RDMA_WRITE, i, 0, 8, 0);
	expect_run(b.s.p.b.scq, 0, b.s.p.b.o.send_wr, IBV_WC_SUCCESS);
	stage_close(&b.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_answered_early),
		RIG_TEST(test_skips),
		RIG_TEST(test_babble),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
