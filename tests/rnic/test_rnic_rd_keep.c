/* RD queue pairs: sends after which the memory is the poster's again at once. */
#include "rig_rd.h"

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 0);
}

/* Memory that is the poster's again at once, whether there is a receive or not, and however long it
 * is: also what a peer on the same host would fetch. */
static void test_keep(void **state)
{
	static const uint32_t len[] = {1, 300, 1500, 8192, 16384, 60000, 100000};
	struct rig_opts o = rd_defaults();
	struct rd_pair p;

	(void)state;
	o.buf_len = 1 << 20;
	rd_pair_open(&p, &o, &o);
	for (int early = 0; early < 2; early++)
		for (size_t i = 0; i < ARRAY_SIZE(len); i++) {
			if (early)
				end_recv(&p.b, 1, 0, len[i]);
			for (uint32_t k = 0; k < len[i]; k++)
				p.a.buf[k] = (uint8_t)(k * 7 + i);
			rd_send_keep(&p.ab, 2, 0, len[i], 1 << 19);
			memset(p.a.buf, 0xee, len[i]);
			if (!early) {
				rig_sleep_ms(5);
				end_recv(&p.b, 1, 0, len[i]);
			}
			EXPECT_OK(p.b.rcq, 1);
			EXPECT_OK(p.a.scq, 2);
			for (uint32_t k = 0; k < len[i]; k++)
				CHECK_EQ(p.b.buf[k], (uint8_t)(k * 7 + i));
		}
	rd_pair_close(&p);
}

/* Only one send, with a list. */
static void test_keep_refused(void **state)
{
	struct rd_pair p;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	ibv_wr_start(p.a.ex);
	CHECK_EQ(rnic_wr_complete_keep(p.a.ex, p.a.buf, p.a.mr->lkey), EINVAL);
	for (int i = 0; i < 2; i++) {
		ibv_wr_start(p.a.ex);
		for (int k = 0; k < 2 - i; k++) {
			if (i)
				ibv_wr_rdma_write(p.a.ex, p.ab.to.rkey, p.ab.to.addr);
			else
				ibv_wr_send(p.a.ex);
			ibv_wr_set_ud_addr(p.a.ex, p.ab.ah, p.ab.to.qpn, p.ab.qkey);
			ibv_wr_set_sge(p.a.ex, p.a.mr->lkey, (uintptr_t)p.a.buf, 8);
		}
		CHECK_EQ(rnic_wr_complete_keep(p.a.ex, p.a.buf + 64, p.a.mr->lkey), EINVAL);
	}
	expect_none(p.a.scq, 10);
	/* The queue is as before. */
	end_recv(&p.b, 1, 0, 64);
	rd_post(&p.ab, IBV_WR_SEND, 2, 0, 8, 0);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 2);
	rd_pair_close(&p);
}

#define SLOTS    48
#define SLOT_LEN 16384
#define LEN      8000

static void fill(uint8_t *p, uint32_t what)
{
	for (uint32_t k = 0; k < LEN; k++)
		p[k] = (uint8_t)(k * 7 + what * 13);
}

/* Many at a time, more than a ring of shared memory has room for, to somebody who is always late:
 * each has to be sent again, from wherever it is by then. */
static void test_keep_many(void **state)
{
	struct rig_opts o = rd_defaults();
	uint32_t sent = 0, got = 0, done = 0;
	static uint8_t want[LEN];
	struct rd_pair p;

	(void)state;
	o.send_wr = o.recv_wr = o.cqe = SLOTS;
	o.buf_len = (SLOTS + 1) * SLOT_LEN;
	rd_pair_open(&p, &o, &o);
	while (got < 960) {
		while (sent - done < SLOTS && sent < 960) {
			fill(p.a.buf, sent);
			rd_send_keep(&p.ab, sent, 0, LEN, SLOT_LEN * (1 + (size_t)sent % SLOTS));
			memset(p.a.buf, 0xee, LEN);
			sent++;
		}
		for (uint32_t n = 1 + got % 31; n && got < sent; n--, got++, done++) {
			end_recv(&p.b, got, 0, LEN);
			EXPECT_OK(p.b.rcq, got);
			EXPECT_OK(p.a.scq, got);
			fill(want, got);
			CHECK(!memcmp(p.b.buf, want, LEN));
		}
	}
	rd_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_keep),
		RIG_TEST(test_keep_many),
		RIG_TEST(test_keep_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
