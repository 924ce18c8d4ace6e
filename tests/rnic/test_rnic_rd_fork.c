/* RD queue pairs and fork: the child has nothing of the parent's, and can have its own. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "rig_rd.h"

extern bool rig_in_child;

__attribute__((constructor)) static void environment(void)
{
	setenv("WEFT_RD_MTU", "1472", 0);
	setenv("WEFT_RD_SHM", "0", 0);
}

static void check_pair(struct rd_pair *p)
{
	static uint64_t id = 5000;

	id++;
	memset(p->a.buf, (int)id, 10000);
	end_recv(&p->b, id, 0, 10000);
	rd_post(&p->ab, IBV_WR_SEND, id, 0, 10000, 0);
	EXPECT_OK(p->b.rcq, id);
	EXPECT_OK(p->a.scq, id);
	CHECK(!memcmp(p->a.buf, p->b.buf, 10000));
}

/* One of each kind. */
static void post_all(struct way *w, uint64_t first, uint32_t len)
{
	rd_post(w, IBV_WR_SEND, first, 0, len, 0);
	rd_post(w, IBV_WR_RDMA_WRITE, first + 1, 0, len, 0);
	rd_post(w, IBV_WR_RDMA_READ, first + 2, 0, len, 0);
	rd_post(w, IBV_WR_RDMA_WRITE_WITH_IMM, first + 3, 0, len, 0);
	rd_add(w, first + 4, 0, 0, 1);
	rd_cas(w, first + 5, 0, 0, 1, 2);
}

int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void in_child(struct rd_pair *p)
{
	struct weftdv_rd_stats stats;
	struct weftdv_path path;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_wc wc;

	CHECK_EQ(rd_try(&p->ab, IBV_WR_SEND, 1, 0, 10, 0), EIO);
	CHECK_EQ(rd_try(&p->ab, IBV_WR_RDMA_READ, 1, 0, 10, 0), EIO);
	CHECK_EQ(try_recv(&p->a, 1, 0, 10), EIO);
	CHECK(ibv_poll_cq(p->a.scq, 1, &wc) < 0);
	CHECK_EQ(rnic_modify_qp(p->a.qp, &attr, IBV_QP_STATE), EIO);
	CHECK_EQ(rnic_query_rd(p->a.qp, &stats), EIO);
	CHECK_EQ(rnic_query_path(p->a.qp, p->ab.ah, p->ab.to.qpn, &path), EIO);
	rd_pair_close(p);
	if (__lsan_do_recoverable_leak_check)
		CHECK_0(__lsan_do_recoverable_leak_check());
	if (RIG_TSAN)
		return;              /* it does not know threads of children */
	rd_pair_open(p, NULL, NULL); /* and has its own */
	check_pair(p);
	rd_pair_close(p);
}

static void test_fork(void **state)
{
	struct rd_pair p;
	int status;
	pid_t pid;

	(void)state;
	rd_pair_open(&p, NULL, NULL);
	check_pair(&p);
	post_all(&p.ab, 1, 300000); /* in the middle of everything */
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		rig_in_child = true;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20);
		in_child(&p);
		_exit(0);
	}
	end_recv(&p.b, 1, 0, 300000);
	EXPECT_OK(p.b.rcq, 1);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
	end_recv(&p.b, 2, 0, 300000);
	EXPECT_OK(p.b.rcq, 2);
	for (int i = 0; i < 6; i++) {
		struct ibv_wc wc;

		CHECK(wait_wc(p.a.scq, &wc, RIG_WAIT));
		CHECK_0(wc.status);
	}
	check_pair(&p);
	rd_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {RIG_TEST(test_fork)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
