/* Finding each other: early and late, again and again, many, and alone. */
#include "rig.h"
#include "rnic_ctx.h"

static void ping(struct end *from, struct end *to, uint64_t n)
{
	uint64_t got;

	memcpy(from->buf, &n, sizeof(n));
	end_recv(to, n, 1024, 64);
	end_send(from, n, 0, sizeof(n));
	EXPECT_OK(to->rcq, n);
	EXPECT_OK(from->scq, n);
	memcpy(&got, to->buf + 1024, sizeof(got));
	CHECK(got == n);
}

static void test_self(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr own;
	struct rig r;
	struct end e;

	(void)state;
	for (int uc = 0; uc < 2; uc++) {
		o.type = uc ? IBV_QPT_UC : IBV_QPT_RC;
		o.buf_len = 16 << 20;
		rig_open(&r);
		end_make(&e, &r, &o);
		own = end_addr(&e);
		end_up(&e, &own);
		for (uint64_t i = 0; i < 50; i++)
			ping(&e, &e, i);
		util_rand_bytes(rig_rand(), e.buf, 4 << 20);
		end_write(&e, 1, 0, 4 << 20, 4 << 20);
		EXPECT_OK(e.scq, 1);
		if (!uc) {
			end_read(&e, 2, 8 << 20, 4 << 20, 4 << 20);
			end_add(&e, 3, 12 << 20, 13 << 20, 5);
			EXPECT_OK(e.scq, 2);
			EXPECT_OK(e.scq, 3);
			CHECK_0(memcmp(e.buf, e.buf + (8 << 20), 4 << 20));
			/* without a receive: waits for its own */
			end_send(&e, 4, 0, 64);
			expect_none(e.scq, 10);
			end_recv(&e, 4, 0, 64);
			EXPECT_OK(e.rcq, 4);
			EXPECT_OK(e.scq, 4);
			/* and errors end it, without a word about which half found them */
			end_read(&e, 5, 0, 64, 1 << 30);
			end_send(&e, 6, 0, 64);
			CHECK(wait_wc(e.scq, &(struct ibv_wc){0}, RIG_WAIT));
			EXPECT(e.scq, 6, IBV_WC_WR_FLUSH_ERR);
			CHECK_EQ(end_query(&e), IBV_QPS_ERR);
		}
		/* again */
		CHECK_0(end_state(&e, IBV_QPS_RESET));
		end_up(&e, &own);
		ping(&e, &e, 77);
		end_destroy(&e);
		rig_close(&r);
	}
}

/* One side is ready long before the other. Sends wait, whoever it is that connects. */
static void test_late(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr a, b;
	struct pair p;

	(void)state;
	o.timeout = 19; /* 2 s x 8 */
	for (int late = 0; late < 2; late++) {
		struct end *first, *second;
		struct rig_addr *to_first, *to_second;

		rig_open(&p.rig);
		end_make(&p.a, &p.rig, &o);
		end_make(&p.b, &p.rig, &o);
		a = end_addr(&p.a);
		b = end_addr(&p.b);
		first = late ? &p.a : &p.b;
		second = late ? &p.b : &p.a;
		to_first = late ? &a : &b;
		to_second = late ? &b : &a;
		end_up(first, to_second);
		end_send(first, 1, 0, 64);
		expect_none(first->scq, 500);
		end_init(second);
		end_recv(second, 1, 0, 64);
		expect_none(first->scq, 500);
		end_rtr(second, to_first);
		EXPECT_OK(first->scq, 1); /* receiving needs no RTS */
		EXPECT_OK(second->rcq, 1);
		expect_event(&p.rig, IBV_EVENT_COMM_EST, second->qp);
		end_rts(second);
		for (uint64_t i = 10; i < 20; i++) {
			ping(first, second, i);
			ping(second, first, i);
		}
		pair_close(&p);
	}
}

/* Longer than a handshake may take: the connection is given up and made again. */
static void test_very_late(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr a, b;
	struct pair p;
	uint64_t cpu;

	(void)state;
	o.timeout = 20;
	rig_open(&p.rig);
	end_make(&p.a, &p.rig, &o);
	end_make(&p.b, &p.rig, &o);
	a = end_addr(&p.a);
	b = end_addr(&p.b);
	CHECK(a.qpn < b.qpn); /* a connects, b is late */
	end_up(&p.a, &b);
	end_send(&p.a, 1, 0, 64);
	cpu = rig_cpu_ns();
	rig_sleep_ms(5600);
	CHECK(rig_cpu_ns() - cpu < 500 * RIG_MS); /* waiting is not spinning */
	end_up(&p.b, &a);
	end_recv(&p.b, 1, 0, 64);
	EXPECT_OK(p.b.rcq, 1);
	EXPECT_OK(p.a.scq, 1);
	pair_close(&p);
}

/* Both to RESET, or one by one with the other still holding on to the old connection. */
static void test_reconnect(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr a, b;
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	a = end_addr(&p.a);
	b = end_addr(&p.b);
	for (uint64_t i = 0; i < 30; i++) {
		struct end *first = i % 2 ? &p.a : &p.b, *second = i % 2 ? &p.b : &p.a;
		bool err = i % 3 == 0;

		ping(&p.a, &p.b, 2 * i);
		ping(&p.b, &p.a, 2 * i + 1);
		if (i % 4 == 3) { /* with work under way */
			end_read(&p.a, 1000, 0, 65536, 0);
			end_send(&p.b, 1001, 0, 64);
		}
		if (err)
			CHECK_0(end_state(first, IBV_QPS_ERR));
		CHECK_0(end_state(first, IBV_QPS_RESET));
		p.a.psn = a.psn = (a.psn + 1) & 0xffffff;
		p.b.psn = b.psn = (b.psn + 1) & 0xffffff;
		end_up(first, first == &p.a ? &b : &a);
		if (i % 5 == 4)
			rig_sleep_ms(5);
		CHECK_0(end_state(second, IBV_QPS_RESET));
		end_up(second, second == &p.a ? &b : &a);
	}
	ping(&p.a, &p.b, 5000);
	pair_close(&p);
}

/* A queue pair that was started towards one peer and then towards another: what is
 * left of the first attempt is no obstacle. */
static void test_change_of_mind(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr a, b;
	struct pair p;

	(void)state;
	rig_open(&p.rig);
	end_make(&p.a, &p.rig, &o);
	end_make(&p.b, &p.rig, &o);
	a = end_addr(&p.a);
	b = end_addr(&p.b);
	for (int i = 0; i < 5; i++) {
		/* a connects and is held, several times */
		end_up(&p.a, &b);
		rig_sleep_ms(10);
		CHECK_0(end_state(&p.a, IBV_QPS_RESET));
	}
	end_up(&p.a, &b);
	rig_sleep_ms(10);
	end_up(&p.b, &a);
	ping(&p.a, &p.b, 1);
	ping(&p.b, &p.a, 2);
	pair_close(&p);
}

/* More than the 255 queue pairs that fit behind one listener. */
static void test_many(void **state)
{
	enum { N = 150 };
	struct rig_opts o = rig_defaults();
	struct end *a = calloc(N, sizeof(*a)), *b = calloc(N, sizeof(*b));
	struct rig_addr addr;
	struct rig r;
	int fds = rig_open_fds();

	(void)state;
	o.send_wr = o.recv_wr = 4;
	o.cqe = 8;
	o.buf_len = 4096;
	rig_open(&r);
	for (int i = 0; i < N; i++) {
		end_make(&a[i], &r, &o);
		end_make(&b[i], &r, &o);
	}
	for (int i = 0; i < N; i++) {
		addr = end_addr(&b[i]);
		end_up(&a[i], &addr);
		addr = end_addr(&a[i]);
		end_up(&b[i], &addr);
	}
	for (int i = 0; i < N; i++)
		for (int k = 0; k < i; k++)
			CHECK(a[i].qp->qp_num != a[k].qp->qp_num &&
			      a[i].qp->qp_num != b[k].qp->qp_num);
	for (int i = 0; i < N; i++) {
		end_recv(&b[i], 1, 1024, 64);
		end_send(&a[i], 1, 0, 64);
	}
	for (int i = 0; i < N; i++) {
		EXPECT_OK(b[i].rcq, 1);
		EXPECT_OK(a[i].scq, 1);
	}
	/* in no particular order; and numbers can be had again */
	for (int i = 0; i < N; i++)
		end_destroy(i % 2 ? &a[i] : &b[i]);
	for (int i = 0; i < N; i++)
		end_destroy(i % 2 ? &b[i] : &a[i]);
	for (int i = 0; i < 600; i++) {
		end_make(&a[0], &r, &o);
		end_destroy(&a[0]);
	}
	rig_close(&r);
	CHECK_EQ(rig_open_fds(), fds);
	free(a);
	free(b);
}

static void test_two_contexts(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr a, b;
	struct rig r1, r2;
	struct end e1, e2;

	(void)state;
	rig_open(&r1);
	rig_open(&r2);
	end_make(&e1, &r1, &o);
	end_make(&e2, &r2, &o);
	CHECK(e1.qp->qp_num >> 8 != e2.qp->qp_num >> 8);
	a = end_addr(&e1);
	b = end_addr(&e2);
	end_up(&e1, &b);
	end_up(&e2, &a);
	ping(&e1, &e2, 1);
	end_destroy(&e1);
	rig_close(&r1);
	end_make(&e1, &r2, &o); /* the other one is not harmed */
	end_destroy(&e1);
	end_destroy(&e2);
	rig_close(&r2);
}

/* The sequence numbers are the password: with another one there is no connection. */
static void test_wrong_psn(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr a, b;
	struct pair p;

	(void)state;
	for (int side = 0; side < 2; side++) {
		rig_open(&p.rig);
		end_make(&p.a, &p.rig, &o);
		end_make(&p.b, &p.rig, &o);
		a = end_addr(&p.a);
		b = end_addr(&p.b);
		if (side)
			a.psn ^= 1;
		else
			b.psn ^= 1;
		end_up(&p.a, &b);
		end_up(&p.b, &a);
		end_recv(&p.b, 1, 0, 64);
		end_send(&p.a, 1, 0, 64);
		EXPECT(p.a.scq, 1, IBV_WC_RETRY_EXC_ERR);
		expect_none(p.b.rcq, 5);
		CHECK(rig_stats(&p.rig).foreign_streams >= 1);
		pair_close(&p);
	}
}

/* Closing the device early is allowed; its objects go on until they are destroyed. */
static void test_closed_early(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	pair_open(&p, &o);
	CHECK_0(rnic_close_device(p.rig.ctx));
	ping(&p.a, &p.b, 1);
	end_destroy(&p.a);
	end_destroy(&p.b);
	CHECK_0(rnic_dealloc_pd(p.rig.pd));
}

static void test_busy(void **state)
{
	struct rig_opts o = rig_defaults();
	struct ibv_srq_init_attr sattr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_comp_channel *ch;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct rig r;
	struct end e;

	(void)state;
	rig_open(&r);
	ch = rnic_create_comp_channel(r.ctx);
	CHECK(ch);
	srq = rnic_create_srq(r.pd, &sattr);
	CHECK(srq);
	o.srq = srq;
	o.channel = ch;
	end_make(&e, &r, &o);
	CHECK_EQ(rnic_destroy_cq(e.scq), EBUSY);
	CHECK_EQ(rnic_destroy_cq(e.rcq), EBUSY);
	CHECK_EQ(rnic_destroy_srq(srq), EBUSY);
	CHECK_EQ(rnic_destroy_comp_channel(ch), EBUSY);
	CHECK_EQ(rnic_dealloc_pd(r.pd), EBUSY);
	ah = rnic_create_ah(r.pd, &(struct ibv_ah_attr){.grh = {.dgid = end_addr(&e).gid},
							.is_global = 1,
							.port_num = 1});
	CHECK(ah);
	end_destroy(&e);
	CHECK_0(rnic_destroy_comp_channel(ch));
	CHECK_EQ(rnic_dealloc_pd(r.pd), EBUSY); /* the SRQ and the handle */
	CHECK_0(rnic_destroy_srq(srq));
	CHECK_EQ(rnic_dealloc_pd(r.pd), EBUSY);
	CHECK_0(rnic_destroy_ah(ah));
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_self),           RIG_TEST(test_late),
		RIG_TEST(test_very_late),      RIG_TEST(test_reconnect),
		RIG_TEST(test_change_of_mind), RIG_TEST(test_many),
		RIG_TEST(test_two_contexts),   RIG_TEST(test_wrong_psn),
		RIG_TEST(test_closed_early),   RIG_TEST(test_busy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
