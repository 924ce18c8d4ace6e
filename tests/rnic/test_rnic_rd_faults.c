/* RD on a bad network: every operation mixed, in both directions, while datagrams vanish, come
 * twice, late, in another order, or damaged. Every byte must be right, every message come once
 * and in order, every atomic be executed once.
 *
 * WEFT_TEST_OPS operations instead of some thousands; WEFT_TEST_FAULT another specification. */
#include "rig_rd.h"
#include "rnic_cq.h"

#define SLOTS    32
#define SLOT_LEN 32768
/* The buffer of an end: what it sends from, what it receives into, what the peer writes,
 * what the peer reads, copies of what is sent, a counter. */
#define TX_AT    0
#define RX_AT    (SLOTS * SLOT_LEN)
#define WRITE_AT (2 * SLOTS * SLOT_LEN)
#define READ_AT  (3 * SLOTS * SLOT_LEN)
#define KEEP_AT  (4 * SLOTS * SLOT_LEN)
#define COUNT_AT (5 * SLOTS * SLOT_LEN)
#define BUF_LEN  (COUNT_AT + 4096)

enum op { SEND, SEND_IMM, WRITE, WRITE_IMM, READ, ADD, N_OPS };

struct request {
	bool busy;
	enum op op;
	uint32_t len;
	uint64_t seed;
};

/* One direction. */
struct flow {
	struct end *from, *to;
	struct way way[3];
	struct util_rand rand;
	struct request req[SLOTS];
	uint32_t posted, done, want;
	uint32_t sent, adds; /* messages that take a receive; atomics */
	uint32_t received, posted_recv;
	uint64_t add_seen; /* sum of the old values */
	struct {
		enum op op;
		uint32_t len;
		uint64_t seed;
	} expect[256]; /* of the messages that take a receive, by number */
};

static uint32_t ops(void)
{
	const char *s = getenv("WEFT_TEST_OPS");
	uint32_t n = s ? (uint32_t)atol(s) : RIG_ASAN || RIG_TSAN ? 3000 : 20000;

	alarm(60 + n / 500); /* the rig's is for tests of some seconds */
	return n;
}

static void pattern(uint8_t *buf, size_t len, uint64_t seed)
{
	struct util_rand r;

	util_rand_seed(&r, seed);
	util_rand_bytes(&r, buf, len);
}

static bool is_pattern(const uint8_t *buf, size_t len, uint64_t seed)
{
	static uint8_t want[SLOT_LEN];

	pattern(want, len, seed);
	return !memcmp(buf, want, len);
}

static uint32_t some_length(struct util_rand *r)
{
	switch (util_rand_below(r, 8)) {
	case 0:
		return 0;
	case 1:
		return (uint32_t)util_rand_below(r, SLOT_LEN);
	case 2:
		return (uint32_t)util_rand_below(r, 4000);
	default:
		return (uint32_t)util_rand_below(r, 200);
	}
}

static void post_one(struct flow *f, uint32_t slot)
{
	struct request *q = &f->req[slot];
	struct way *w = &f->way[util_rand_below(&f->rand, ARRAY_SIZE(f->way))];
	size_t tx = TX_AT + (size_t)slot * SLOT_LEN;
	static const enum ibv_wr_opcode code[] = {
		[SEND] = IBV_WR_SEND,        [SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[WRITE] = IBV_WR_RDMA_WRITE, [WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[READ] = IBV_WR_RDMA_READ,
	};

	*q = (struct request){.busy = true,
			      .op = (enum op)util_rand_below(&f->rand, N_OPS),
			      .len = some_length(&f->rand),
			      .seed = util_rand_next(&f->rand)};
	f->posted++;
	if (q->op == ADD) {
		f->adds++;
		rd_add(w, slot, tx, COUNT_AT, 1);
		return;
	}
	if (q->op == READ) {
		memset(f->from->buf + tx, 0, q->len);
		rd_post(w, IBV_WR_RDMA_READ, slot, tx, q->len, READ_AT + (size_t)slot * SLOT_LEN);
		return;
	}
	pattern(f->from->buf + tx, q->len, q->seed);
	if (q->op != WRITE) {
		f->expect[f->sent % 256].op = q->op;
		f->expect[f->sent % 256].len = q->len;
		f->expect[f->sent++ % 256].seed = q->seed;
	}
	if (q->op == SEND && util_rand_below(&f->rand, 2)) {
		rd_send_keep(w, slot, tx, q->len, KEEP_AT + (size_t)slot * SLOT_LEN);
		memset(f->from->buf + tx, 0xee, q->len);
		return;
	}
	rd_post(w, code[q->op], slot, tx, q->len, WRITE_AT + (size_t)slot * SLOT_LEN);
}

static void completed(struct flow *f, const struct ibv_wc *wc)
{
	struct request *q = &f->req[wc->wr_id];
	const uint8_t *tx = f->from->buf + TX_AT + wc->wr_id * SLOT_LEN;
	const uint8_t *there = f->to->buf + wc->wr_id * SLOT_LEN;
	uint64_t old;

	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	CHECK(q->busy);
	q->busy = false;
	f->done++;
	switch (q->op) {
	case WRITE:
	case WRITE_IMM:
		CHECK(is_pattern(there + WRITE_AT, q->len, q->seed));
		break;
	case READ:
		CHECK(!memcmp(tx, there + READ_AT, q->len));
		break;
	case ADD:
		memcpy(&old, tx, sizeof(old));
		f->add_seen += old;
		break;
	default:
		break;
	}
}

static void post_receives(struct flow *f)
{
	for (; f->posted_recv < f->received + SLOTS; f->posted_recv++)
		end_recv(f->to, f->posted_recv, RX_AT + (f->posted_recv % SLOTS) * SLOT_LEN,
			 SLOT_LEN);
}

static void got(struct flow *f, const struct ibv_wc *wc)
{
	uint32_t n = f->received;
	enum op op = f->expect[n % 256].op;

	CHECK_EQ(wc->status, IBV_WC_SUCCESS);
	CHECK(n < f->sent);
	CHECK_EQ(wc->byte_len, f->expect[n % 256].len);
	CHECK_EQ(wc->opcode, op == WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	CHECK_EQ(!!(wc->wc_flags & IBV_WC_WITH_IMM), op != SEND);
	/* What a Send filled is still there: it is this receive's. */
	if (op != WRITE_IMM)
		CHECK(is_pattern(f->to->buf + RX_AT + (wc->wr_id % SLOTS) * SLOT_LEN, wc->byte_len,
				 f->expect[n % 256].seed));
	CHECK_EQ(wc->wr_id, n);
	f->received++;
	post_receives(f);
}

static bool step(struct flow *f)
{
	struct ibv_wc wc;

	for (uint32_t s = 0; s < SLOTS && f->posted < f->want; s++)
		if (!f->req[s].busy && f->sent < f->received + 200)
			post_one(f, s);
	while (rnic_poll_cq(f->from->scq, 1, &wc) == 1)
		completed(f, &wc);
	while (rnic_poll_cq(f->to->rcq, 1, &wc) == 1)
		got(f, &wc);
	return f->done < f->want || f->received < f->sent;
}

static bool step_both(struct flow *a, struct flow *b)
{
	bool more = step(a);

	return step(b) || more;
}

static void flow_make(struct flow *f, struct end *from, struct end *to, uint64_t seed)
{
	struct rig_addr a = end_addr(to);

	memset(f, 0, sizeof(*f));
	f->from = from;
	f->to = to;
	f->want = ops() / 2;
	util_rand_seed(&f->rand, seed);
	pattern(to->buf + READ_AT, SLOTS * SLOT_LEN, seed);
	for (size_t i = 0; i < ARRAY_SIZE(f->way); i++)
		way_make(&f->way[i], from, &a, (uint32_t)i);
	post_receives(f);
}

static void flow_check(struct flow *f)
{
	uint64_t count;

	memcpy(&count, f->to->buf + COUNT_AT, sizeof(count));
	CHECK_EQ(count, f->adds);
	/* Each old value was seen once: 0 + 1 + … */
	CHECK_EQ(f->add_seen, (uint64_t)f->adds * (f->adds - 1) / 2);
	for (size_t i = 0; i < ARRAY_SIZE(f->way); i++)
		way_free(&f->way[i]);
}

static void mixed(const char *spec, const char *mtu)
{
	struct rig_opts o = rd_defaults();
	static struct flow ab, ba;
	struct rd_pair p;
	struct weftdv_rd_stats s;
	uint64_t end = rig_now_ms() + 100000 + ops();
	char full[160];

	snprintf(full, sizeof(full), "%s,seed=%llu", spec,
		 (unsigned long long)util_rand_below(rig_rand(), 1000000));
	printf("%s, mtu %s\n", full, mtu);
	setenv("WEFT_FAULT", full, 1);
	setenv("WEFT_RD_MTU", mtu, 1);
	o.buf_len = BUF_LEN;
	o.timeout = 21; /* 8.6 s, times eight */
	rd_pair_open(&p, &o, &o);
	flow_make(&ab, &p.a, &p.b, util_rand_next(rig_rand()));
	flow_make(&ba, &p.b, &p.a, util_rand_next(rig_rand()));
	while (step_both(&ab, &ba))
		CHECK(rig_now_ms() < end);
	flow_check(&ab);
	flow_check(&ba);
	s = rd_stats(&p.a);
	printf("sent %llu, again %llu, duplicates %llu, out of order %llu, damaged %llu\n",
	       (unsigned long long)s.sent, (unsigned long long)s.resent,
	       (unsigned long long)s.duplicates, (unsigned long long)s.out_of_order,
	       (unsigned long long)s.damaged);
	CHECK_EQ(s.peers, 1);
	CHECK_EQ(s.deaths, 0);
	rd_pair_close(&p);
	unsetenv("WEFT_FAULT");
	unsetenv("WEFT_RD_MTU");
}

static void test_clean(void **state)
{
	(void)state;
	mixed("loss=0", "1472");
}

static void test_all(void **state)
{
	const char *spec = getenv("WEFT_TEST_FAULT");

	(void)state;
	mixed(spec ? spec : "loss=0.05,dup=0.02,reorder=0.05,corrupt=0.02", "1472");
}

static void test_large_packets(void **state)
{
	(void)state;
	mixed("loss=0.05,dup=0.02,reorder=0.05,corrupt=0.02", "0");
}

static void test_delay(void **state)
{
	(void)state;
	mixed("loss=0.01,delay=2ms", "4000");
}

/* A short write behind a long one that loses packets: its data is there, and it says so. One
 * without data, and a message, come behind all of that. */
static void test_overtaking(void **state)
{
	struct rig_opts o = rd_defaults();
	uint64_t end = rig_now_ms() + 60000;
	uint32_t overtook = 0;
	struct rd_pair p;

	(void)state;
	setenv("WEFT_FAULT", "loss=0.2,seed=7", 1);
	setenv("WEFT_RD_MTU", "1472", 1);
	o.buf_len = BUF_LEN;
	o.timeout = 21;
	rd_pair_open(&p, &o, &o);
	/* Where one acknowledgement tells of both there is no overtaking: it may take some rounds.
	 */
	for (int round = 0; round < 200 && overtook < 3; round++) {
		struct ibv_wc wc[4];

		pattern(p.a.buf, 1 << 19, (uint64_t)round);
		end_recv(&p.b, 0, RX_AT, 64);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, 0, 0, 1 << 19, WRITE_AT);
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, 1, 0, 64, WRITE_AT + (1 << 19));
		rd_post(&p.ab, IBV_WR_RDMA_WRITE, 2, 0, 0, WRITE_AT);
		rd_post(&p.ab, IBV_WR_SEND, 3, 0, 64, 0);
		for (int i = 0; i < 4; i++) {
			CHECK(wait_wc(p.a.scq, &wc[i], RIG_WAIT));
			CHECK_0(wc[i].status);
		}
		CHECK_EQ(wc[2].wr_id, 2);
		CHECK_EQ(wc[3].wr_id, 3);
		overtook += wc[0].wr_id == 1;
		CHECK(wait_wc(p.b.rcq, &wc[0], RIG_WAIT));
		CHECK_0(memcmp(p.b.buf + WRITE_AT, p.a.buf, 1 << 19));
		CHECK_0(memcmp(p.b.buf + WRITE_AT + (1 << 19), p.a.buf, 64));
		CHECK(rig_now_ms() < end);
	}
	CHECK(overtook > 0);
	rd_pair_close(&p);
	unsetenv("WEFT_FAULT");
	unsetenv("WEFT_RD_MTU");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_overtaking),    RIG_TEST(test_clean), RIG_TEST(test_all),
		RIG_TEST(test_large_packets), RIG_TEST(test_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
