/* RC: every operation, and the order between them. */
#include <arpa/inet.h>
#include <sys/mman.h>
#include "rig.h"

static void fill(uint8_t *p, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t)(i * 7 + seed + (i >> 8));
}

static void test_send(void **state)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 255, 4096, 32767, 32768, 32769, 65536};
	struct rig_opts o = rig_defaults();
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	o.buf_len = 128 * 1024;
	pair_open(&p, &o);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		fill(p.a.buf, sizes[i], (unsigned int)i);
		memset(p.b.buf, 0xee, o.buf_len);
		end_recv(&p.b, 100 + i, 16, 65536);
		end_send(&p.a, i, 0, sizes[i]);
		wc = EXPECT_OK(p.b.rcq, 100 + i);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.byte_len, sizes[i]);
		CHECK_EQ(wc.wc_flags, 0);
		CHECK_EQ(wc.qp_num, p.b.qp->qp_num);
		wc = EXPECT_OK(p.a.scq, i);
		CHECK_EQ(wc.opcode, IBV_WC_SEND);
		CHECK_EQ(wc.qp_num, p.a.qp->qp_num);
		CHECK_0(memcmp(p.b.buf + 16, p.a.buf, sizes[i]));
		CHECK(p.b.buf[15] == 0xee && p.b.buf[16 + sizes[i]] == 0xee);
	}
	pair_close(&p);
}

static void test_send_imm(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_wc wc;
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	for (uint32_t i = 0; i < 3; i++) {
		end_recv(&p.b, i, 0, 65536);
		work_init(&w, &p.a, IBV_WR_SEND_WITH_IMM, i, 0, i * 20000, 0);
		w.wr.imm_data = htonl(0x80000000 + i);
		CHECK_0(post(&p.a, &w));
		wc = EXPECT_OK(p.b.rcq, i);
		CHECK_EQ(wc.opcode, IBV_WC_RECV);
		CHECK_EQ(wc.wc_flags, IBV_WC_WITH_IMM);
		CHECK_EQ(ntohl(wc.imm_data), 0x80000000 + i);
		CHECK_EQ(wc.byte_len, i * 20000);
		EXPECT_OK(p.a.scq, i);
	}
	pair_close(&p);
}

/* The buffer may be reused as soon as the call returns. */
static void test_inline(void **state)
{
	struct rig_opts o = rig_defaults();
	uint32_t sizes[] = {0, 1, 255, 256};
	uint8_t local[257];
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		fill(local, sizes[i], 5);
		end_recv(&p.b, i, 0, 512);
		work_init(&w, &p.a, IBV_WR_SEND, i, 0, sizes[i], 0);
		w.sge.addr = (uintptr_t)local;
		w.sge.lkey = 0; /* not looked at */
		w.wr.send_flags |= IBV_SEND_INLINE;
		CHECK_0(post(&p.a, &w));
		memset(local, 0xaa, sizeof(local));
		CHECK_EQ(EXPECT_OK(p.b.rcq, i).byte_len, sizes[i]);
		EXPECT_OK(p.a.scq, i);
		fill(local, sizes[i], 5);
		CHECK_0(memcmp(p.b.buf, local, sizes[i]));
	}
	work_init(&w, &p.a, IBV_WR_SEND, 9, 0, 257, 0);
	w.wr.send_flags |= IBV_SEND_INLINE;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	work_init(&w, &p.a, IBV_WR_RDMA_READ, 9, 0, 8, 0);
	w.wr.send_flags |= IBV_SEND_INLINE;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	/* inline writes, from a list */
	struct ibv_sge list[2] = {{.addr = (uintptr_t)local, .length = 3},
				  {.addr = (uintptr_t)local + 100, .length = 5}};
	work_init(&w, &p.a, IBV_WR_RDMA_WRITE, 10, 0, 0, 1000);
	w.wr.sg_list = list;
	w.wr.num_sge = 2;
	w.wr.send_flags |= IBV_SEND_INLINE;
	fill(local, sizeof(local), 9);
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 10);
	CHECK_0(memcmp(p.b.buf + 1000, local, 3));
	CHECK_0(memcmp(p.b.buf + 1003, local + 100, 5));
	pair_close(&p);
}

static void test_sge_lists(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_sge list[5], rlist[4];
	struct ibv_recv_wr rwr = {.sg_list = rlist}, *rbad;
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	fill(p.a.buf, 4096, 1);
	for (int n = 0; n <= 4; n++) {
		uint32_t total = 0;

		memset(p.b.buf, 0, 4096);
		for (int i = 0; i < n; i++) {
			/* every second one has no length at all */
			list[i] = end_sge(&p.a, (size_t)i * 512, i % 2 ? 0 : 100 + (uint32_t)i);
			total += list[i].length;
		}
		for (int i = 0; i < 4; i++)
			rlist[i] = end_sge(&p.b, 1000 + (size_t)i * 200, i == 1 ? 0 : 70);
		rwr.wr_id = (uint64_t)n;
		rwr.num_sge = 4;
		CHECK_0(ibv_post_recv(p.b.qp, &rwr, &rbad));
		work_init(&w, &p.a, IBV_WR_SEND, (uint64_t)n, 0, 0, 0);
		w.wr.sg_list = n ? list : NULL;
		w.wr.num_sge = n;
		CHECK_0(post(&p.a, &w));
		CHECK_EQ(EXPECT_OK(p.b.rcq, (uint64_t)n).byte_len, total);
		EXPECT_OK(p.a.scq, (uint64_t)n);
		for (uint32_t i = 0; i < total; i++) {
			uint8_t want = i < 100 ? p.a.buf[i] : p.a.buf[1024 + i - 100];
			size_t at = i < 70 ? 1000 + i : i < 140 ? 1400 + i - 70 : 1600 + i - 140;

			CHECK_EQ(p.b.buf[at], want);
		}
	}
	work_init(&w, &p.a, IBV_WR_SEND, 9, 0, 0, 0);
	w.wr.sg_list = list;
	w.wr.num_sge = 5;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	w.wr.num_sge = -1;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	rwr.num_sge = 5;
	CHECK_EQ(ibv_post_recv(p.b.qp, &rwr, &rbad), EINVAL);
	pair_close(&p);
}

static void test_write(void **state)
{
	static const uint32_t sizes[] = {0, 1, 4095, 32768, 100000};
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.buf_len = 256 * 1024;
	pair_open(&p, &o);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		fill(p.a.buf, sizes[i], (unsigned int)i);
		memset(p.b.buf, 0xcc, o.buf_len);
		end_write(&p.a, i, 0, sizes[i], 1000);
		CHECK_EQ(EXPECT_OK(p.a.scq, i).opcode, IBV_WC_RDMA_WRITE);
		CHECK_0(memcmp(p.b.buf + 1000, p.a.buf, sizes[i]));
		CHECK(p.b.buf[999] == 0xcc && p.b.buf[1000 + sizes[i]] == 0xcc);
	}
	expect_none(p.b.rcq, 5);
	pair_close(&p);
}

static void test_write_imm(void **state)
{
	static const uint32_t sizes[] = {0, 1, 4095, 32768, 100000};
	struct rig_opts o = rig_defaults();
	struct ibv_wc wc;
	struct pair p;
	struct work w;

	(void)state;
	o.buf_len = 256 * 1024;
	pair_open(&p, &o);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		/* the receive's buffer is not touched and need not exist */
		struct ibv_recv_wr rwr = {.wr_id = i}, *rbad;

		CHECK_0(ibv_post_recv(p.b.qp, &rwr, &rbad));
		fill(p.a.buf, sizes[i], (unsigned int)i);
		end_write(&p.a, 50, 0, 77, 200000); /* must not count */
		work_init(&w, &p.a, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, sizes[i], 1000);
		w.wr.imm_data = htonl((uint32_t)i + 5);
		CHECK_0(post(&p.a, &w));
		wc = EXPECT_OK(p.b.rcq, i);
		CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		CHECK_EQ(wc.byte_len, sizes[i]);
		CHECK_EQ(wc.wc_flags, IBV_WC_WITH_IMM);
		CHECK_EQ(ntohl(wc.imm_data), i + 5);
		CHECK_0(memcmp(p.b.buf + 1000, p.a.buf, sizes[i]));
		EXPECT_OK(p.a.scq, 50);
		CHECK_EQ(EXPECT_OK(p.a.scq, i).opcode, IBV_WC_RDMA_WRITE);
	}
	pair_close(&p);
}

static void test_read(void **state)
{
	static const uint32_t sizes[] = {0, 1, 7, 4096, 32768, 32769, 3 << 20};
	struct rig_opts o = rig_defaults();
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	o.buf_len = 4 << 20;
	pair_open(&p, &o);
	fill(p.b.buf, o.buf_len, 3);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(p.a.buf, 0xdd, o.buf_len);
		end_read(&p.a, i, 64, sizes[i], 1000);
		wc = EXPECT_OK(p.a.scq, i);
		CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
		CHECK_EQ(wc.byte_len, sizes[i]);
		CHECK_0(memcmp(p.a.buf + 64, p.b.buf + 1000, sizes[i]));
		CHECK(p.a.buf[63] == 0xdd && p.a.buf[64 + sizes[i]] == 0xdd);
	}
	pair_close(&p);
}

static void test_read_scatter(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_sge list[4];
	struct pair p;
	struct work w;
	size_t at = 5000;

	(void)state;
	o.buf_len = 512 * 1024;
	pair_open(&p, &o);
	fill(p.b.buf, o.buf_len, 8);
	for (int i = 0; i < 4; i++)
		list[i] = end_sge(&p.a, 300000 - (size_t)i * 90000, i == 2 ? 0 : 33333);
	work_init(&w, &p.a, IBV_WR_RDMA_READ, 1, 0, 0, at);
	w.wr.sg_list = list;
	w.wr.num_sge = 4;
	CHECK_0(post(&p.a, &w));
	CHECK_EQ(EXPECT_OK(p.a.scq, 1).byte_len, 99999);
	for (int i = 0; i < 4; i++) {
		CHECK_0(memcmp((void *)(uintptr_t)list[i].addr, p.b.buf + at, list[i].length));
		at += list[i].length;
	}
	pair_close(&p);
}

static void test_atomics(void **state)
{
	struct rig_opts o = rig_defaults();
	uint64_t *word, *old;
	struct ibv_wc wc;
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	word = (uint64_t *)(p.b.buf + 512);
	old = (uint64_t *)(p.a.buf + 256);
	*word = UINT64_C(0xfffffffffffffffe);
	end_add(&p.a, 1, 256, 512, 3);
	wc = EXPECT_OK(p.a.scq, 1);
	CHECK_EQ(wc.opcode, IBV_WC_FETCH_ADD);
	CHECK_EQ(wc.byte_len, 8);
	CHECK(*old == UINT64_C(0xfffffffffffffffe) && *word == 1);
	work_init(&w, &p.a, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 256, 8, 512);
	w.wr.wr.atomic.compare_add = 1;
	w.wr.wr.atomic.swap = UINT64_C(0x0123456789abcdef);
	CHECK_0(post(&p.a, &w));
	wc = EXPECT_OK(p.a.scq, 2);
	CHECK_EQ(wc.opcode, IBV_WC_COMP_SWAP);
	CHECK(*old == 1 && *word == UINT64_C(0x0123456789abcdef));
	w.wr.wr_id = 3; /* does not compare any more */
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 3);
	CHECK(*old == UINT64_C(0x0123456789abcdef) && *word == UINT64_C(0x0123456789abcdef));
	/* The answer has eight bytes: a list of less is refused, of more not filled. */
	w.sge.length = 7;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	w.sge.length = 64;
	memset(p.a.buf + 264, 0x11, 56);
	w.wr.wr_id = 4;
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 4);
	CHECK_EQ(p.a.buf[264], 0x11);
	pair_close(&p);
}

static void test_many_atomics(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;
	uint64_t sum = 0;

	(void)state;
	o.send_wr = 256;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 200; i++) {
		end_add(&p.a, i, 0, 0, i);
		sum += i;
	}
	expect_run(p.a.scq, 0, 200, IBV_WC_SUCCESS);
	CHECK(*(uint64_t *)p.b.buf == sum);
	pair_close(&p);
}

static void test_signalling(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 10; i++) {
		work_init(&w, &p.a, IBV_WR_RDMA_WRITE, i, 0, 64, 0);
		w.wr.send_flags = i % 5 == 4 ? IBV_SEND_SIGNALED : 0;
		CHECK_0(post(&p.a, &w));
	}
	EXPECT_OK(p.a.scq, 4);
	EXPECT_OK(p.a.scq, 9);
	expect_none(p.a.scq, 5);
	/* a queue of unsignalled requests frees its slots all the same */
	for (uint64_t i = 0; i < 500; i++) {
		work_init(&w, &p.a, IBV_WR_RDMA_WRITE, i, 0, 64, 0);
		w.wr.send_flags = 0;
		while (post(&p.a, &w) == ENOMEM)
			expect_none(p.a.scq, 0);
	}
	pair_close(&p);
	o.sig_all = true;
	pair_open(&p, &o);
	work_init(&w, &p.a, IBV_WR_RDMA_WRITE, 1, 0, 64, 0);
	w.wr.send_flags = 0;
	CHECK_0(post(&p.a, &w));
	EXPECT_OK(p.a.scq, 1);
	pair_close(&p);
}

/* Completions of one send queue come in the order of posting, whatever is answered
 * first. */
static void test_order(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.buf_len = 4 << 20;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 8; i++)
		end_recv(&p.b, i, 64, 64);
	for (uint64_t i = 0; i < 8; i++) {
		end_read(&p.a, 10 * i, 1 << 20, i % 2 ? 64 : 1 << 20, 0);
		end_send(&p.a, 10 * i + 1, 0, 64);
		end_write(&p.a, 10 * i + 2, 0, 100000, 1 << 20);
		end_add(&p.a, 10 * i + 3, 0, 0, 1);
	}
	for (uint64_t i = 0; i < 8; i++)
		for (uint64_t k = 0; k < 4; k++)
			EXPECT_OK(p.a.scq, 10 * i + k);
	expect_run(p.b.rcq, 0, 8, IBV_WC_SUCCESS);
	CHECK(*(uint64_t *)p.b.buf == 8);
	pair_close(&p);
}

/* With a fence, a send does not overtake the read before it: the data it carries may
 * depend on what was read. */
static void test_fence(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;
	struct work w;

	(void)state;
	o.buf_len = 4 << 20;
	pair_open(&p, &o);
	for (int round = 0; round < 5; round++) {
		memset(p.a.buf, 0, o.buf_len);
		fill(p.b.buf, o.buf_len, (unsigned int)round + 1);
		end_recv(&p.b, 1, 3 << 20, 64);
		end_read(&p.a, 2, 0, 2 << 20, 0);
		/* sends the last bytes that the read brings */
		work_init(&w, &p.a, IBV_WR_SEND, 3, (2 << 20) - 64, 64, 0);
		w.wr.send_flags |= IBV_SEND_FENCE;
		CHECK_0(post(&p.a, &w));
		EXPECT_OK(p.b.rcq, 1);
		CHECK_0(memcmp(p.b.buf + (3 << 20), p.b.buf + (2 << 20) - 64, 64));
		EXPECT_OK(p.a.scq, 2);
		EXPECT_OK(p.a.scq, 3);
	}
	pair_close(&p);
}

static void test_rd_atomic_limits(void **state)
{
	struct rig_opts o = rig_defaults(), ob;
	struct pair p;

	(void)state;
	/* The requester keeps to its own limit, however many are posted. */
	for (uint8_t limit = 1; limit <= 16; limit *= 4) {
		o.rd_atomic = o.dest_rd_atomic = limit;
		pair_open(&p, &o);
		for (uint64_t i = 0; i < 60; i++)
			end_read(&p.a, i, 0, 4096, 4096);
		expect_run(p.a.scq, 0, 60, IBV_WC_SUCCESS);
		pair_close(&p);
	}
	/* None allowed here: the request can not be executed at all. */
	ob = o;
	o.rd_atomic = 0;
	pair_connect(&p, &o, &ob);
	end_write(&p.a, 1, 0, 16, 0);
	end_read(&p.a, 2, 0, 16, 0);
	end_write(&p.a, 3, 0, 16, 0);
	EXPECT_OK(p.a.scq, 1);
	EXPECT(p.a.scq, 2, IBV_WC_LOC_QP_OP_ERR);
	EXPECT(p.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
	/* None allowed there: the responder refuses. */
	o = ob;
	ob.dest_rd_atomic = 0;
	pair_connect(&p, &o, &ob);
	end_read(&p.a, 2, 0, 16, 0);
	EXPECT(p.a.scq, 2, IBV_WC_REM_INV_REQ_ERR);
	pair_close(&p);
	/* More than the responder was told to expect. */
	o.rd_atomic = 16;
	ob.dest_rd_atomic = 1;
	o.buf_len = ob.buf_len = 8 << 20;
	pair_connect(&p, &o, &ob);
	for (uint64_t i = 0; i < 4; i++)
		end_read(&p.a, i, 0, 8 << 20, 0);
	EXPECT_OK(p.a.scq, 0);
	EXPECT(p.a.scq, 1, IBV_WC_REM_INV_REQ_ERR);
	EXPECT(p.a.scq, 2, IBV_WC_WR_FLUSH_ERR);
	pair_close(&p);
}

static void test_many_outstanding(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.send_wr = o.recv_wr = 4096;
	o.cqe = 8192;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 4096; i++)
		end_recv(&p.b, i, 0, 512);
	for (uint64_t i = 0; i < 4096; i++)
		end_send(&p.a, i, 0, (uint32_t)(i % 512));
	expect_run(p.a.scq, 0, 4096, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < 4096; i++)
		CHECK_EQ(EXPECT_OK(p.b.rcq, i).byte_len, i % 512);
	pair_close(&p);
}

/* Large messages of every kind in both directions at once: neither side may stop
 * reading because it can not write. */
static void test_both_directions(void **state)
{
	struct rig_opts o = rig_defaults();
	struct end *ends[2];
	const uint32_t big = 4 << 20;
	struct pair p;

	(void)state;
	o.buf_len = 24 << 20;
	pair_open(&p, &o);
	ends[0] = &p.a;
	ends[1] = &p.b;
	for (int i = 0; i < 2; i++) {
		fill(ends[i]->buf, 2 * big, (unsigned int)i + 1);
		end_recv(ends[i], 1, 4 * big, big);
	}
	for (int i = 0; i < 2; i++) {
		end_write(ends[i], 10, 0, big, 2 * big);
		end_read(ends[i], 11, 3 * big, big, 0);
		end_send(ends[i], 12, big, big);
		end_read(ends[i], 13, 5 * big, big, big);
	}
	for (int i = 0; i < 2; i++) {
		expect_run(ends[i]->scq, 10, 4, IBV_WC_SUCCESS);
		EXPECT_OK(ends[i]->rcq, 1);
	}
	for (int i = 0; i < 2; i++) {
		struct end *me = ends[i], *it = ends[!i];

		CHECK_0(memcmp(me->buf + 2 * big, it->buf, big));
		CHECK_0(memcmp(me->buf + 3 * big, it->buf, big));
		CHECK_0(memcmp(me->buf + 4 * big, it->buf + big, big));
		CHECK_0(memcmp(me->buf + 5 * big, it->buf + big, big));
	}
	pair_close(&p);
}

/* ---- the largest message ---- */

#define LARGEST (UINT64_C(1) << 31)
#define WINDOW  (1 << 20)

/* Two gigabytes of addresses, one megabyte of memory, seen again and again. */
static uint8_t *endless(void)
{
	uint8_t *base = mmap(NULL, LARGEST, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("endless", MFD_CLOEXEC);

	CHECK(base != MAP_FAILED && fd >= 0);
	CHECK_0(ftruncate(fd, WINDOW));
	for (uint64_t at = 0; at < LARGEST; at += WINDOW)
		CHECK(mmap(base + at, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
			   0) == base + at);
	close(fd);
	return base;
}

static void test_largest(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_mr *from_mr, *to_mr;
	uint8_t *from, *to;
	struct ibv_sge sge;
	struct ibv_recv_wr rwr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;
	struct pair p;
	struct work w;

	(void)state;
	if (RIG_TSAN || RIG_ASAN) /* shadows of so much memory take their time */
		skip();
	pair_open(&p, &o);
	from = endless();
	to = endless();
	from_mr = rnic_reg_mr(p.rig.pd, from, LARGEST, (uintptr_t)from, o.mr_access);
	to_mr = rnic_reg_mr(p.rig.pd, to, LARGEST, (uintptr_t)to, o.mr_access);
	CHECK(from_mr && to_mr);
	fill(from, WINDOW, 1);
	sge = (struct ibv_sge){(uintptr_t)to, (uint32_t)LARGEST, to_mr->lkey};
	CHECK_0(ibv_post_recv(p.b.qp, &rwr, &bad));
	work_init(&w, &p.a, IBV_WR_SEND, 1, 0, 0, 0);
	w.sge = (struct ibv_sge){(uintptr_t)from, (uint32_t)LARGEST, from_mr->lkey};
	CHECK_0(post(&p.a, &w));
	CHECK_EQ(EXPECT_OK(p.b.rcq, 1).byte_len, LARGEST);
	EXPECT_OK(p.a.scq, 1);
	CHECK_0(memcmp(from, to, WINDOW));
	/* one byte more is refused */
	struct ibv_sge list[2] = {w.sge, end_sge(&p.a, 0, 1)};

	w.wr.sg_list = list;
	w.wr.num_sge = 2;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	CHECK_0(rnic_dereg_mr(from_mr));
	CHECK_0(rnic_dereg_mr(to_mr));
	munmap(from, LARGEST);
	munmap(to, LARGEST);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_send),
		RIG_TEST(test_send_imm),
		RIG_TEST(test_inline),
		RIG_TEST(test_sge_lists),
		RIG_TEST(test_write),
		RIG_TEST(test_write_imm),
		RIG_TEST(test_read),
		RIG_TEST(test_read_scatter),
		RIG_TEST(test_atomics),
		RIG_TEST(test_many_atomics),
		RIG_TEST(test_signalling),
		RIG_TEST(test_order),
		RIG_TEST(test_fence),
		RIG_TEST(test_rd_atomic_limits),
		RIG_TEST(test_many_outstanding),
		RIG_TEST(test_both_directions),
		RIG_TEST(test_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
