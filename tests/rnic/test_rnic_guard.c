/* Memory that was registered and is not there any more.
 *
 * Each case runs in a process of its own: handlers of signals are the process's, and
 * cmocka has some, too. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "rig.h"

#define PAGE    4096
#define MAP_LEN (64 * PAGE)

enum how { UNMAP, UNMAP_LATER_PART, NO_ACCESS, READ_ONLY, TRUNCATE };

/* Maps, registers, and returns what will go. */
struct region {
	uint8_t *map;
	struct ibv_mr *mr;
	int fd;
};

static void region_make(struct region *g, struct rig *r, enum how how)
{
	g->fd = -1;
	if (how == TRUNCATE) {
		g->fd = memfd_create("guard", MFD_CLOEXEC);
		CHECK(g->fd >= 0);
		CHECK_0(ftruncate(g->fd, MAP_LEN));
	}
	g->map = mmap(NULL, MAP_LEN, PROT_READ | PROT_WRITE,
		      g->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, g->fd, 0);
	CHECK(g->map != MAP_FAILED);
	memset(g->map, 0x5a, MAP_LEN);
	g->mr = rnic_reg_mr(r->pd, g->map, MAP_LEN, (uintptr_t)g->map, rig_defaults().mr_access);
	CHECK(g->mr);
}

static void region_break(struct region *g, enum how how)
{
	switch (how) {
	case UNMAP:
		CHECK_0(munmap(g->map, MAP_LEN));
		break;
	case UNMAP_LATER_PART:
		CHECK_0(munmap(g->map + PAGE, MAP_LEN - PAGE));
		break;
	case NO_ACCESS:
		CHECK_0(mprotect(g->map, MAP_LEN, PROT_NONE));
		break;
	case READ_ONLY:
		CHECK_0(mprotect(g->map, MAP_LEN, PROT_READ));
		break;
	case TRUNCATE:
		CHECK_0(ftruncate(g->fd, 0));
		break;
	}
}

enum role { SEND_FROM, RECEIVE_TO, READ_FROM, READ_TO, WRITE_TO, WRITE_FROM, ADD_TO, SWAP_TO };

struct plan {
	enum how how;
	enum role role;
	uint32_t len;
	bool no_crc;
};

static void set_remote(struct work *w, const struct region *g)
{
	if (w->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    w->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		w->wr.wr.atomic.remote_addr = (uintptr_t)g->map;
		w->wr.wr.atomic.rkey = g->mr->rkey;
	} else {
		w->wr.wr.rdma.remote_addr = (uintptr_t)g->map;
		w->wr.wr.rdma.rkey = g->mr->rkey;
	}
}

static void set_local(struct work *w, const struct region *g)
{
	w->sge.addr = (uintptr_t)g->map;
	w->sge.lkey = g->mr->lkey;
}

/* The requester's and, for a receive, the receiver's completion. */
static void expect_failure(struct pair *p, const struct plan *plan)
{
	struct ibv_wc wc = {0};

	EXPECT_OK(p->a.scq, 1);
	CHECK(wait_wc(p->a.scq, &wc, RIG_WAIT));
	CHECK_EQ(wc.wr_id, 2);
	switch (plan->role) {
	case SEND_FROM:
	case WRITE_FROM:
	case READ_TO:
		CHECK_EQ(wc.status, IBV_WC_LOC_PROT_ERR);
		break;
	case RECEIVE_TO:
		CHECK_EQ(wc.status, IBV_WC_REM_OP_ERR);
		EXPECT_OK(p->b.rcq, 1);
		EXPECT(p->b.rcq, 2, IBV_WC_LOC_PROT_ERR);
		break;
	default:
		CHECK_EQ(wc.status, IBV_WC_REM_OP_ERR);
	}
	EXPECT(p->a.scq, 3, IBV_WC_WR_FLUSH_ERR);
	CHECK_EQ(end_query(&p->a), IBV_QPS_ERR);
}

static void run_plan(int sock, void *arg)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND,
						 IBV_WR_SEND,
						 IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_READ,
						 IBV_WR_RDMA_WRITE,
						 IBV_WR_RDMA_WRITE,
						 IBV_WR_ATOMIC_FETCH_AND_ADD,
						 IBV_WR_ATOMIC_CMP_AND_SWP};
	const struct plan *plan = arg;
	struct rig_opts o = rig_defaults();
	struct ibv_recv_wr rwr = {.wr_id = 2, .num_sge = 1}, *bad;
	struct region g;
	struct ibv_sge sge;
	struct pair p, other;
	struct work w;

	(void)sock;
	if (plan->no_crc)
		setenv("WEFT_CRC", "0", 1);
	o.buf_len = MAP_LEN;
	pair_open(&p, &o);
	pair_open(&other, &o);
	region_make(&g, &p.rig, plan->how);
	end_recv(&p.b, 1, 0, MAP_LEN);
	end_send(&p.a, 1, 0, 64);
	sge = (struct ibv_sge){(uintptr_t)g.map, MAP_LEN, g.mr->lkey};
	rwr.sg_list = &sge;
	if (plan->role == RECEIVE_TO)
		CHECK_0(ibv_post_recv(p.b.qp, &rwr, &bad));
	else
		end_recv(&p.b, 2, 0, MAP_LEN);
	work_init(&w, &p.a, ops[plan->role], 2, 0, plan->len, 0);
	region_break(&g, plan->how);
	if (plan->role == SEND_FROM || plan->role == WRITE_FROM || plan->role == READ_TO)
		set_local(&w, &g);
	else if (plan->role != RECEIVE_TO)
		set_remote(&w, &g);
	CHECK_0(post(&p.a, &w));
	end_write(&p.a, 3, 0, 8, 0);
	expect_failure(&p, plan);
	/* nobody else has noticed */
	end_write(&other.a, 9, 0, MAP_LEN, 0);
	EXPECT_OK(other.a.scq, 9);
	CHECK_0(rnic_dereg_mr(g.mr));
	pair_close(&other);
	pair_close(&p);
}

static void survives(struct plan plan)
{
	struct rig_proc proc;

	rig_spawn(&proc, run_plan, &plan);
	rig_join(&proc);
}

static void test_unmapped(void **state)
{
	(void)state;
	for (enum role role = SEND_FROM; role <= SWAP_TO; role++) {
		bool atomic = role >= ADD_TO;

		survives((struct plan){UNMAP, role, 8, false});
		survives((struct plan){NO_ACCESS, role, atomic ? 8 : 100000, false});
		if (!atomic)
			survives((struct plan){UNMAP_LATER_PART, role, 60000, false});
		if (role != SEND_FROM && role != READ_FROM && role != WRITE_FROM)
			survives((struct plan){READ_ONLY, role, 8, false});
	}
}

static void test_truncated(void **state)
{
	(void)state;
	for (enum role role = SEND_FROM; role <= SWAP_TO; role++)
		survives((struct plan){TRUNCATE, role, 8, false});
}

static void test_without_crc(void **state)
{
	(void)state;
	for (enum role role = SEND_FROM; role <= WRITE_FROM; role++) {
		survives((struct plan){UNMAP, role, 64, true});
		survives((struct plan){UNMAP, role, 100000, true});
		survives((struct plan){UNMAP_LATER_PART, role, 60000, true});
	}
}

static void ud_case(int sock, void *arg)
{
	struct rig_opts o = rig_defaults();
	struct region g;
	struct ibv_recv_wr rwr = {.wr_id = 1, .num_sge = 1}, *bad;
	struct ibv_sge sge;
	struct ibv_ah *ah;
	struct work w;
	struct rig r;
	struct end e;

	(void)sock;
	(void)arg;
	o.type = IBV_QPT_UD;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_up(&e, NULL);
	region_make(&g, &r, UNMAP);
	ah = rnic_create_ah(r.pd, &(struct ibv_ah_attr){.grh = {.dgid = end_addr(&e).gid},
							.is_global = 1,
							.port_num = 1});
	CHECK(ah);
	sge = (struct ibv_sge){(uintptr_t)g.map, 4096, g.mr->lkey};
	rwr.sg_list = &sge;
	CHECK_0(ibv_post_recv(e.qp, &rwr, &bad));
	region_break(&g, UNMAP);
	work_init(&w, &e, IBV_WR_SEND, 2, 0, 64, 0);
	w.wr.wr.ud.ah = ah;
	w.wr.wr.ud.remote_qpn = e.qp->qp_num;
	w.wr.wr.ud.remote_qkey = o.qkey;
	CHECK_0(post(&e, &w));
	EXPECT_OK(e.scq, 2);
	EXPECT(e.rcq, 1, IBV_WC_LOC_PROT_ERR);
	w.wr.wr_id = 3;
	set_local(&w, &g);
	CHECK_0(post(&e, &w));
	EXPECT(e.scq, 3, IBV_WC_LOC_PROT_ERR);
	CHECK_0(rnic_destroy_ah(ah));
	CHECK_0(rnic_dereg_mr(g.mr));
	end_destroy(&e);
	rig_close(&r);
}

static void test_ud(void **state)
{
	struct rig_proc proc;

	(void)state;
	rig_spawn(&proc, ud_case, NULL);
	rig_join(&proc);
}

/* ---- other people's faults ---- */

static sigjmp_buf back;
static volatile sig_atomic_t caught;
static volatile uintptr_t caught_at;

static void on_segv_info(int sig, siginfo_t *info, void *uc)
{
	(void)uc;
	caught = sig;
	caught_at = (uintptr_t)info->si_addr;
	siglongjmp(back, 1);
}

static void on_segv_plain(int sig)
{
	caught = sig;
	siglongjmp(back, 1);
}

static void fault(uint8_t *at)
{
	caught = 0;
	if (!sigsetjmp(back, 1))
		*(volatile uint8_t *)at = 1;
}

enum when { BEFORE_INFO, BEFORE_PLAIN, AFTER };

static void own_handler(int sock, void *arg)
{
	enum when when = *(enum when *)arg;
	struct rig_opts o = rig_defaults();
	struct sigaction sa = {.sa_flags = SA_SIGINFO | SA_NODEFER};
	struct sigaction plain = {.sa_handler = on_segv_plain, .sa_flags = SA_NODEFER};
	uint8_t *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pair p;

	(void)sock;
	sa.sa_sigaction = on_segv_info;
	CHECK(page != MAP_FAILED);
	if (when != AFTER)
		CHECK_0(sigaction(SIGSEGV, when == BEFORE_PLAIN ? &plain : &sa, NULL));
	pair_open(&p, &o);
	if (when == AFTER)
		CHECK_0(sigaction(SIGSEGV, &sa, NULL));
	for (uint64_t i = 0; i < 5; i++) {
		fault(page + 7);
		CHECK_EQ(caught, SIGSEGV);
		if (when != BEFORE_PLAIN)
			CHECK(caught_at == (uintptr_t)page + 7);
		end_write(&p.a, i, 0, 64, 0);
		EXPECT_OK(p.a.scq, i);
	}
	pair_close(&p);
}

static void test_own_handlers(void **state)
{
	(void)state;
	for (enum when when = BEFORE_INFO; when <= AFTER; when++) {
		struct rig_proc proc;

		rig_spawn(&proc, own_handler, &when);
		rig_join(&proc);
	}
}

static void fault_for_good(uint8_t *buf)
{
	uint8_t *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*(volatile uint8_t *)page = *buf;
}

static void dies_of(int sock, void *arg)
{
	int how = *(int *)arg;
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)sock;
	pair_open(&p, &o);
	if (how == 0)
		fault_for_good(p.a.buf);
	else if (how == 1)
		kill(getpid(), SIGSEGV);
	else
		raise(SIGBUS);
	pause();
}

/* A fault that is nobody's ends the process, as it would without us. */
static void test_default(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rig_proc proc;
		int status;

		rig_spawn(&proc, dies_of, &how);
		CHECK(waitpid(proc.pid, &status, 0) == proc.pid);
		close(proc.sock);
		CHECK(WIFSIGNALED(status));
		CHECK_EQ(WTERMSIG(status), how == 2 ? SIGBUS : SIGSEGV);
	}
}

static void switched_off(int sock, void *arg)
{
	struct sigaction before, after;
	struct rig r;

	(void)sock;
	(void)arg;
	CHECK_0(sigaction(SIGSEGV, NULL, &before));
	setenv("WEFT_GUARD", "0", 1);
	rig_open(&r);
	CHECK_0(sigaction(SIGSEGV, NULL, &after));
	CHECK(before.sa_handler == after.sa_handler);
	rig_close(&r);
}

static void test_switched_off(void **state)
{
	struct rig_proc proc;

	(void)state;
	rig_spawn(&proc, switched_off, NULL);
	rig_join(&proc);
}

/* ---- registration ---- */

static void test_registration(void **state)
{
	uint8_t *page =
		mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int all = rig_defaults().mr_access;
	struct ibv_mr *mr, *again;
	struct rig r;

	(void)state;
	CHECK(page != MAP_FAILED);
	CHECK_0(munmap(page + PAGE, PAGE));
	rig_open(&r);
	CHECK(!rnic_reg_mr(r.pd, page, 3 * PAGE, (uintptr_t)page, all) && errno == EFAULT);
	CHECK(!rnic_reg_mr(r.pd, NULL, PAGE, 0, all) && errno == EFAULT);
	CHECK(!rnic_reg_mr(r.pd, page, PAGE, (uintptr_t)page, IBV_ACCESS_REMOTE_WRITE) &&
	      errno == EINVAL);
	CHECK(!rnic_reg_mr(r.pd, page, PAGE, (uintptr_t)page, 1u << 18) && errno == EOPNOTSUPP);
	CHECK(!rnic_reg_mr(r.pd, page, SIZE_MAX, (uintptr_t)page, all) && errno == EINVAL);
	CHECK(!rnic_reg_mr(r.pd, page, PAGE, UINT64_MAX - 5, all) && errno == EINVAL);
	mr = rnic_reg_mr(r.pd, page, 0, (uintptr_t)page, all);
	CHECK(mr);
	CHECK_0(rnic_dereg_mr(mr));
	/* keys do not follow from one another */
	mr = rnic_reg_mr(r.pd, page, PAGE, (uintptr_t)page, all);
	again = rnic_reg_mr(r.pd, page, PAGE, (uintptr_t)page, all);
	CHECK(mr && again && mr->rkey != again->rkey && mr->lkey == mr->rkey);
	CHECK(mr->rkey + 1 != again->rkey);
	CHECK_0(rnic_dereg_mr(mr));
	CHECK_0(rnic_dereg_mr(again));
	rig_close(&r);
	/* not the hole, where somebody else may live by now */
	munmap(page, PAGE);
	munmap(page + 2 * (size_t)PAGE, PAGE);
}

/* An address space of its own: zero-based, or any other. */
static void test_iova(void **state)
{
	static const uint64_t bases[] = {0, 0x1000, UINT64_C(0xffffffff00000000)};
	struct rig_opts o = rig_defaults();
	struct ibv_mr *mr;
	struct pair p;
	struct work w;

	(void)state;
	pair_open(&p, &o);
	for (size_t i = 0; i < 4; i++) {
		uint64_t base = i < 3 ? bases[i] : 0;

		mr = rnic_reg_mr(p.rig.pd, p.b.buf + 4096, 4096, i < 3 ? base : 12345,
				 o.mr_access | (i < 3 ? 0 : IBV_ACCESS_ZERO_BASED));
		CHECK(mr);
		memset(p.a.buf, (int)(0x30 + i), 64);
		work_init(&w, &p.a, IBV_WR_RDMA_WRITE, 1, 0, 64, 0);
		w.wr.wr.rdma.remote_addr = base + 4096 - 64;
		w.wr.wr.rdma.rkey = mr->rkey;
		CHECK_0(post(&p.a, &w));
		EXPECT_OK(p.a.scq, 1);
		CHECK_EQ(p.b.buf[8191], 0x30 + i);
		CHECK_EQ(p.b.buf[8192], 0);
		CHECK_0(rnic_dereg_mr(mr));
	}
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_unmapped),     RIG_TEST(test_truncated),
		RIG_TEST(test_without_crc),  RIG_TEST(test_ud),
		RIG_TEST(test_own_handlers), RIG_TEST(test_default),
		RIG_TEST(test_switched_off), RIG_TEST(test_registration),
		RIG_TEST(test_iova),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
