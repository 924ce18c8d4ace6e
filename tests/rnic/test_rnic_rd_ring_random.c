/* RD through shared memory, and a process that writes at random: records that are almost right, and
 * bytes anywhere in the memory that is shared. */
#include "rd_ring.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_SHM", "1", 1);
}

#define RANDOM_MS 1000

static uint32_t below(uint32_t n)
{
	return (uint32_t)util_rand_below(rig_rand(), n);
}

struct noise {
	struct rd_ring r;
	uint32_t top;         /* the last request of the target that was seen */
	uint32_t handles[16]; /* of its reads and atomics */
	unsigned int posted, done, lives, records;
	uint32_t tame; /* one record of so many is odd */
	bool sane;     /* this one is not */
};

/* ---- the target ---- */

static void post_some(struct noise *x)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_READ};

	if (!below(4))
		x->posted += !rd_try(&x->r.s.bh, ops[below(4)], below(1000), 1 << 20,
				     below(below(5) ? 3000 : 60000), 0);
	if (!below(10))
		try_recv(&x->r.s.p.b, 1, 2 << 20, below(30000));
}

static void reap(struct noise *x)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(x->r.s.p.b.scq, 1, &wc) == 1) {
		CHECK(wc.wr_id < 1000);
		x->done++;
	}
	while (ibv_poll_cq(x->r.s.p.b.rcq, 1, &wc) == 1)
		;
}

static void good_one(struct noise *x)
{
	rd_post(&x->r.s.p.ab, IBV_WR_RDMA_WRITE, 77, 0, 100, 0);
	EXPECT_OK(x->r.s.p.a.scq, 77);
	rd_post(&x->r.s.p.ab, IBV_WR_RDMA_READ, 78, 0, 20000, 0);
	EXPECT_OK(x->r.s.p.a.scq, 78);
	rd_ring_check_guard(&x->r);
}

/* After all of it everything has come back, once. */
static void settle(struct noise *x)
{
	uint64_t end = rig_now_ms() + RIG_WAIT;

	while (x->done < x->posted && rig_now_ms() < end)
		reap(x);
	print_message("%u lives, %u records, %u requests\n", x->lives, x->records, x->posted);
	CHECK_EQ(x->done, x->posted);
	good_one(x);
	expect_none(x->r.s.p.b.scq, 10);
	for (uint64_t i = 0; i < x->r.s.p.b.o.send_wr; i++)
		rd_post(&x->r.s.p.ba, IBV_WR_RDMA_WRITE, i, 0, 8, 0);
	expect_run(x->r.s.p.b.scq, 0, x->r.s.p.b.o.send_wr, IBV_WC_SUCCESS);
}

/* ---- the peer ---- */

static void begin(struct noise *x)
{
	rd_ring_meet(&x->r);
	x->top = 0;
	x->lives++;
	x->tame = UINT32_C(1) << below(8);
	if (below(4))
		rd_ring_introduce(&x->r);
}

static void hear(struct noise *x)
{
	struct rec_target t;

	rd_ring_greet(&x->r);
	while (rd_ring_get(&x->r, 0, 0)) {
		if (x->r.last.op <= REC_VOID)
			x->top = x->r.last.seq;
		if (x->r.last.op >= REC_READ && x->r.last.op <= REC_SWAP) {
			memcpy(&t, x->r.body, sizeof(t));
			x->handles[below(ARRAY_SIZE(x->handles))] = t.handle;
		}
	}
}

static uint32_t some_length(const struct noise *x)
{
	static const uint32_t few[] = {0,   1,   8,     64,    100,        127,       128,
				       129, 256, 16384, 20000, 0x7fffffff, UINT32_MAX};

	if (x->sane)
		return below(RING_LEN);
	return below(8) ? few[below(ARRAY_SIZE(few))] : (uint32_t)util_rand_next(rig_rand());
}

/* One time in n, if at all. */
static bool odd(const struct noise *x, uint32_t n)
{
	return !x->sane && !below(n);
}

static size_t put_target(const struct noise *x, uint8_t *to)
{
	static const int64_t near[] = {8, 64, 100, 120, 121, 128, -1, -8, -128, INT64_MAX};
	struct rec_target t = rd_ring_target(&x->r, 0);

	if (odd(x, 2))
		t.addr += (uint64_t)near[below(ARRAY_SIZE(near))];
	if (odd(x, 10))
		t.rkey = below(1000);
	t.handle = below(100);
	memcpy(to, &t, sizeof(t));
	return sizeof(t);
}

static size_t put_direct(const struct noise *x, struct rec *h, uint8_t *to)
{
	static uint8_t data[65536];
	struct rec_from from = {.grant = odd(x, 10) ? below(70) : 0};
	size_t at = sizeof(from);

	from.word = atomic_load(&x->r.link.grants[from.grant % SHM_GRANTS]) + odd(x, 10);
	memcpy(to, &from, sizeof(from));
	h->n = (uint16_t)(x->sane ? 1 : below(below(10) ? 3 : 40));
	for (int i = 0; i < h->n; i++, at += sizeof(struct iovec)) {
		struct iovec v = {odd(x, 10) ? NULL : data,
				  odd(x, 5) ? some_length(x) : h->len / h->n};

		memcpy(to + at, &v, sizeof(v));
	}
	return at;
}

static size_t put_body(const struct noise *x, struct rec *h, uint8_t *to)
{
	bool data = h->op <= REC_WRITE_IMM || h->op == REC_DATA;
	size_t n = h->op >= REC_WRITE && h->op <= REC_SWAP ? put_target(x, to) : 0;

	if (data && h->flags & REC_DIRECT && h->len && x->r.found)
		return n + put_direct(x, h, to + n);
	h->flags &= (uint8_t)(odd(x, 2) ? UINT8_MAX : ~REC_DIRECT);
	if (data)
		return n + (h->len < 3000 && !odd(x, 4) ? h->len : below(300));
	if (h->op == REC_ADD || h->op == REC_SWAP || h->op == REC_WORD)
		return n + 16;
	return n + (h->op == REC_VALUE || h->op == REC_ERROR ? 8 : 0);
}

/* Mostly what the target can do something with; how mostly changes from life to life. */
static void say(struct noise *x)
{
	static uint8_t body[8192];
	uint8_t op = (uint8_t)(1 + below(REC_COPIED));
	struct rec h;
	size_t n;

	x->sane = below(x->tame);
	if (op >= REC_WORD && below(x->sane ? UINT32_MAX : 20))
		op = REC_READ;
	h = (struct rec){.op = odd(x, 20) ? (uint8_t)below(256) : op,
			 .flags = (uint8_t)(below(16) | (odd(x, 4) ? 0 : REC_LAST)),
			 .seq = x->r.done + 1 + (odd(x, 10) ? below(5) : 0),
			 .ack = x->top - (below(3) ? 0 : below(3)),
			 .imm = below(4) ? x->handles[below(ARRAY_SIZE(x->handles))] : below(6),
			 .len = some_length(x),
			 .off = odd(x, 4) ? some_length(x) : 0};
	n = put_body(x, &h, body);
	x->records += rd_ring_put(&x->r, &h, body, odd(x, 50) ? below(200) : n, NULL, 0);
}

static void test_records(void **state)
{
	uint64_t end = rig_now_ms() + RANDOM_MS;
	static struct noise x;
	uint32_t word;

	(void)state;
	memset(&x, 0, sizeof(x));
	rd_ring_open(&x.r);
	for (unsigned int i = 0; rig_now_ms() < end; i++) {
		if (x.r.link.state == SHM_LINK_NONE || rd_ring_gone(&x.r, 0)) {
			if (x.lives)
				rd_ring_drop(&x.r);
			begin(&x);
			CHECK_EQ(shm_grant_give(&x.r.link, &word), 0);
		}
		post_some(&x);
		hear(&x);
		say(&x);
		reap(&x);
		if (i % 50 == 0)
			good_one(&x);
	}
	rd_ring_drop(&x.r);
	settle(&x);
	rd_ring_close(&x.r);
}

/* ---- bytes ---- */

/* Where records begin there is mostly something that could be a header. */
static void scribble(struct rd_ring *r)
{
	size_t lines = r->link.area.bytes / SHM_RING_ALIGN;
	uint8_t *to = r->link.area.map + below((uint32_t)lines) * SHM_RING_ALIGN;
	uint64_t words[SHM_RING_ALIGN / 8];

	if (!below(10)) /* heads, flags and grants are there */
		to = r->link.area.map + below(SHM_AREA_CONTROL / SHM_RING_ALIGN) * SHM_RING_ALIGN;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = below(3) ? util_rand_next(rig_rand()) >> 8 * below(8) : 0;
	words[0] = below(10) ? 1 + below(600) : below(2) ? UINT64_MAX : words[0];
	words[1] = words[1] << 16 | below(16) << 8 | below(REC_COPIED + 1);
	words[2] &= below(2) ? UINT32_MAX : UINT64_MAX;
	memcpy(to + 8, words + 1, SHM_RING_ALIGN - 8);
	atomic_store((shm_word *)(void *)to, words[0]);
}

static void test_bytes(void **state)
{
	uint64_t end = rig_now_ms() + RANDOM_MS;
	static struct noise x;

	(void)state;
	if (RIG_TSAN)
		skip(); /* the race is the point */
	memset(&x, 0, sizeof(x));
	rd_ring_open(&x.r);
	while (rig_now_ms() < end) {
		x.r.size = SHM_RING_MIN << below(7);
		begin(&x);
		for (uint32_t n = below(300); n && !rd_ring_gone(&x.r, 0); n--, x.records++) {
			post_some(&x);
			for (uint32_t k = 1 + below(below(4) ? 4 : 5000); k; k--)
				scribble(&x.r);
			shm_link_ring(&x.r.link);
			rd_ring_greet(&x.r);
			reap(&x);
		}
		rd_ring_drop(&x.r);
		good_one(&x);
	}
	settle(&x);
	rd_ring_close(&x.r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_records),
		RIG_TEST(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
