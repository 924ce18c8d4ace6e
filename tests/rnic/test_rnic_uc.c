/* UC: as RC where both have it, and loses what RC would wait for. */
#include <arpa/inet.h>
#include "rig.h"

static struct rig_opts uc(void)
{
	struct rig_opts o = rig_defaults();

	o.type = IBV_QPT_UC;
	return o;
}

static void test_operations(void **state)
{
	static const uint32_t sizes[] = {0, 1, 100, 32768, 32769, 200000};
	struct rig_opts o = uc();
	struct ibv_wc wc;
	struct pair p;
	struct work w;

	(void)state;
	o.buf_len = 1 << 20;
	pair_open(&p, &o);
	util_rand_bytes(rig_rand(), p.a.buf, o.buf_len);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		end_recv(&p.b, 1, 0, 400000);
		end_send(&p.a, 1, i, sizes[i]);
		CHECK_EQ(EXPECT_OK(p.b.rcq, 1).byte_len, sizes[i]);
		CHECK_EQ(EXPECT_OK(p.a.scq, 1).opcode, IBV_WC_SEND);
		CHECK_0(memcmp(p.b.buf, p.a.buf + i, sizes[i]));

		end_recv(&p.b, 2, 0, 400000);
		work_init(&w, &p.a, IBV_WR_SEND_WITH_IMM, 2, i, sizes[i], 0);
		w.wr.imm_data = htonl(7);
		CHECK_0(post(&p.a, &w));
		wc = EXPECT_OK(p.b.rcq, 2);
		CHECK(wc.wc_flags == IBV_WC_WITH_IMM && ntohl(wc.imm_data) == 7);
		EXPECT_OK(p.a.scq, 2);

		end_recv(&p.b, 3, 0, 0);
		end_write(&p.a, 3, i, sizes[i], 500000);
		work_init(&w, &p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 4, i, sizes[i], 750000);
		w.wr.imm_data = htonl(8);
		CHECK_0(post(&p.a, &w));
		wc = EXPECT_OK(p.b.rcq, 3);
		CHECK_EQ(wc.byte_len, sizes[i]);
		CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		EXPECT_OK(p.a.scq, 3);
		EXPECT_OK(p.a.scq, 4);
		CHECK_0(memcmp(p.b.buf + 500000, p.a.buf + i, sizes[i]));
		CHECK_0(memcmp(p.b.buf + 750000, p.a.buf + i, sizes[i]));
	}
	work_init(&w, &p.a, IBV_WR_RDMA_READ, 9, 0, 8, 0);
	CHECK_EQ(post(&p.a, &w), EINVAL);
	w.wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	w.wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	CHECK_EQ(post(&p.a, &w), EINVAL);
	pair_close(&p);
}

/* No receive: lost, whole messages only, and the next one finds its receive. */
static void test_lost_without_receive(void **state)
{
	struct rig_opts o = uc();
	struct pair p;
	struct work w;

	(void)state;
	o.buf_len = 512 * 1024;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 10; i++)
		end_send(&p.a, i, 0, i % 2 ? 64 : 200000);
	work_init(&w, &p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 10, 0, 16, 1000);
	memset(p.a.buf, 0x33, 16);
	CHECK_0(post(&p.a, &w));
	expect_run(p.a.scq, 0, 11, IBV_WC_SUCCESS);
	rig_wait_byte(p.b.buf + 1000, 0x33); /* the write itself needs no receive */
	rig_sleep_ms(20);
	expect_none(p.b.rcq, 5);
	memset(p.a.buf, 0x44, 64);
	end_recv(&p.b, 20, 4096, 64);
	end_send(&p.a, 20, 0, 64);
	EXPECT_OK(p.b.rcq, 20);
	CHECK_EQ(p.b.buf[4096], 0x44);
	expect_none(p.b.rcq, 5);
	CHECK_EQ(end_query(&p.a), IBV_QPS_RTS);
	CHECK_EQ(end_query(&p.b), IBV_QPS_RTS);
	pair_close(&p);
}

/* A write that is not allowed is lost, and so is the immediate value that would have
 * said that it is there. */
static void test_refused_write(void **state)
{
	struct rig_opts oa = uc(), ob = uc();
	struct pair p;
	struct work w;

	(void)state;
	for (int i = 0; i < 4; i++) {
		ob.qp_access = i ? oa.qp_access : 0;
		pair_connect(&p, &oa, &ob);
		end_recv(&p.b, 1, 0, 64);
		end_recv(&p.b, 2, 0, 64);
		work_init(&w, &p.a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, i == 3 ? 65536 : 64, 0);
		if (i == 1)
			w.wr.wr.rdma.rkey++;
		if (i == 2)
			w.wr.wr.rdma.remote_addr = p.a.peer.addr + 65536 - 63;
		if (i == 3) /* its first frame is good, its last is not */
			w.wr.wr.rdma.remote_addr = p.a.peer.addr + 64;
		CHECK_0(post(&p.a, &w));
		if (i < 2)
			end_write(&p.a, 2, 0, 64, i ? 0 : 70000);
		end_send(&p.a, 3, 0, 8);
		EXPECT_OK(p.a.scq, 1);
		if (i < 2)
			EXPECT_OK(p.a.scq, 2);
		EXPECT_OK(p.a.scq, 3);
		CHECK_EQ(EXPECT_OK(p.b.rcq, 1).opcode, IBV_WC_RECV);
		expect_none(p.b.rcq, 5);
		CHECK_EQ(end_query(&p.b), IBV_QPS_RTS);
		pair_close(&p);
	}
}

/* A local error stops the send queue only; it can be started again, and the peer,
 * which may have seen half a message, follows. */
static void test_sqe(void **state)
{
	struct rig_opts o = uc();
	struct ibv_sge list[2];
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	for (int round = 0; round < 4; round++) {
		bool half = round % 2; /* fails in its second frame */

		for (uint64_t i = 0; i < 4; i++)
			end_recv(&p.b, 100 + i, 0, 65536);
		end_send(&p.a, 1, 0, 64);
		list[0] = end_sge(&p.a, 0, half ? 50000 : 10);
		list[1] = end_sge(&p.a, 60000, 10);
		list[1].lkey ^= 1;
		work_init(&w, &p.a, round < 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, 0,
			  0);
		w.wr.sg_list = list;
		w.wr.num_sge = 2;
		CHECK_0(post(&p.a, &w));
		end_send(&p.a, 3, 0, 64);
		EXPECT_OK(p.a.scq, 1);
		EXPECT(p.a.scq, 2, IBV_WC_LOC_PROT_ERR);
		EXPECT(p.a.scq, 3, IBV_WC_WR_FLUSH_ERR);
		CHECK_EQ(end_query(&p.a), IBV_QPS_SQE);
		/* its receive queue works */
		end_recv(&p.a, 50, 0, 64);
		end_send(&p.b, 51, 0, 64);
		EXPECT_OK(p.a.rcq, 50);
		EXPECT_OK(p.b.scq, 51);
		CHECK_0(end_state(&p.a, IBV_QPS_RTS));
		for (uint64_t i = 0; i < 3; i++) {
			memset(p.a.buf, (int)(0x60 + i), 40000);
			end_send(&p.a, 10 + i, 0, 40000);
			EXPECT_OK(p.a.scq, 10 + i);
			if (!i) /* of before the error */
				CHECK_EQ(EXPECT_OK(p.b.rcq, 100).byte_len, 64);
			CHECK_EQ(EXPECT_OK(p.b.rcq, 101 + i).byte_len, 40000);
			CHECK_EQ(p.b.buf[39999], 0x60 + i);
		}
		expect_none(p.b.rcq, 2);
		CHECK_EQ(end_query(&p.b), IBV_QPS_RTS);
	}
	pair_close(&p);
}

/* Nothing ever comes back on a UC stream, and that is no reason to give up on it. */
static void test_long_stream(void **state)
{
	struct rig_opts o = uc();
	uint64_t end = rig_now_ms() + 5500, sent = 0, done = 0, got = 0, posted = 0;
	const uint32_t len = 40000;
	struct ibv_wc wc;
	struct pair p;

	(void)state;
	o.buf_len = 1 << 20;
	pair_open(&p, &o);
	memset(p.a.buf, 0x5a, len);
	while (rig_now_ms() < end || done < sent) {
		while (posted < got + 60)
			end_recv(&p.b, posted++, 65536, len);
		/* slowly, but without ever emptying the queue */
		while (sent < done + 20 && sent < got + 40 && rig_now_ms() < end)
			end_send(&p.a, sent++, 0, len);
		if (ibv_poll_cq(p.a.scq, 1, &wc) == 1) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, done);
			done++;
		}
		if (ibv_poll_cq(p.b.rcq, 1, &wc) == 1) {
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			CHECK_EQ(wc.wr_id, got);
			CHECK_EQ(wc.byte_len, len);
			got++;
		}
		usleep(200);
	}
	/* None was lost: there always was a receive. */
	while (got < sent)
		EXPECT_OK(p.b.rcq, got++);
	CHECK(sent > 100);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_operations),    RIG_TEST(test_lost_without_receive),
		RIG_TEST(test_refused_write), RIG_TEST(test_sqe),
		RIG_TEST(test_long_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
