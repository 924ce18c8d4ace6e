/* The fast lane of UD: a connected socket beside the queue pair's own. Wherever the
 * traffic goes, and whenever the lane is moved or its peer is gone, every datagram comes
 * to the right queue pair, once, and from the right one. */
#include "rig.h"
#include "rnic_qp.h"

#define GRH 40
#define N   4 /* queue pairs */

struct party {
	struct rig rig;
	struct end e[N];
	struct ibv_ah *ah;
};

static void open_all(struct party *p)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr self;

	o.type = IBV_QPT_UD;
	rig_open(&p->rig);
	for (int i = 0; i < N; i++) {
		end_make(&p->e[i], &p->rig, &o);
		self = end_addr(&p->e[i]);
		end_up(&p->e[i], &self);
	}
	struct ibv_ah_attr attr = {.grh = {.dgid = self.gid}, .is_global = 1, .port_num = 1};

	p->ah = rnic_create_ah(p->rig.pd, &attr);
	CHECK(p->ah);
}

static void close_all(struct party *p)
{
	CHECK_0(rnic_destroy_ah(p->ah));
	for (int i = 0; i < N; i++)
		if (p->e[i].qp)
			end_destroy(&p->e[i]);
	rig_close(&p->rig);
}

static void post_to(struct party *p, int from, uint32_t qpn, uint32_t number)
{
	struct work w;

	memcpy(p->e[from].buf, &number, sizeof(number));
	work_init(&w, &p->e[from], IBV_WR_SEND, number, 0, sizeof(number), 0);
	w.wr.wr.ud.ah = p->ah;
	w.wr.wr.ud.remote_qpn = qpn;
	w.wr.wr.ud.remote_qkey = p->e[from].o.qkey;
	CHECK_0(post(&p->e[from], &w));
	EXPECT_OK(p->e[from].scq, number);
}

static void one(struct party *p, int from, int to, uint32_t number)
{
	struct ibv_wc wc;
	uint32_t got;

	end_recv(&p->e[to], number, 4096, GRH + sizeof(number));
	post_to(p, from, p->e[to].qp->qp_num, number);
	wc = EXPECT_OK(p->e[to].rcq, number);
	memcpy(&got, p->e[to].buf + 4096 + GRH, sizeof(got));
	CHECK_EQ(got, number);
	CHECK_EQ(wc.src_qp, p->e[from].qp->qp_num);
}

static void test_moves(void **state)
{
	struct party p;
	uint32_t number = 1;

	(void)state;
	open_all(&p);
	/* Long runs open a lane and move it; answers come back on it. */
	for (int round = 0; round < 3; round++)
		for (int to = 1; to < N; to++)
			for (int i = 0; i < 150; i++) {
				one(&p, 0, to, number++);
				one(&p, to, 0, number++);
			}
	CHECK(rnic_qp(p.e[0].qp)->ud_fast);
	/* Others are heard while there is a lane, and reached. */
	for (int i = 0; i < 300; i++) {
		one(&p, i % N, (i + 1) % N, number++);
		one(&p, i % N, i % N, number++);
	}
	close_all(&p);
}

/* With everything under way at once, lanes opening in both directions. */
static void test_crossing(void **state)
{
	struct party p;

	(void)state;
	open_all(&p);
	for (uint32_t burst = 0; burst < 40; burst++) {
		unsigned int left = 2 * 16;

		for (uint32_t i = 0; i < 16; i++) {
			end_recv(&p.e[0], i, 4096, GRH + 4);
			end_recv(&p.e[1], i, 4096, GRH + 4);
		}
		for (uint32_t i = 0; i < 16; i++) {
			post_to(&p, 0, p.e[1].qp->qp_num, i);
			post_to(&p, 1, p.e[0].qp->qp_num, i);
		}
		while (left) {
			struct ibv_wc wc;

			CHECK(wait_wc(left % 2 ? p.e[0].rcq : p.e[1].rcq, &wc, RIG_WAIT));
			CHECK_EQ(wc.status, IBV_WC_SUCCESS);
			left--;
		}
	}
	close_all(&p);
}

/* A connected socket hears that its peer's port is closed. UD must not care. */
static void test_peer_gone(void **state)
{
	struct party p;
	uint32_t number = 1, gone;

	(void)state;
	open_all(&p);
	for (int i = 0; i < 100; i++)
		one(&p, 0, 1, number++);
	gone = p.e[1].qp->qp_num;
	end_destroy(&p.e[1]);
	p.e[1].qp = NULL;
	for (int i = 0; i < 200; i++)
		post_to(&p, 0, gone, number++);
	for (int i = 0; i < 100; i++) {
		one(&p, 0, 2, number++);
		one(&p, 2, 0, number++);
	}
	close_all(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {RIG_TEST(test_moves), RIG_TEST(test_crossing),
					   RIG_TEST(test_peer_gone)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
