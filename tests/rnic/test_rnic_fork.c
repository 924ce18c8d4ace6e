/* Fork: the child has nothing of the parent's, and can have its own. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "rig.h"

extern bool rig_in_child;

/* A child that runs a function and must end well. Waits for it. */
static void in_child(void (*f)(void *), void *arg)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		rig_in_child = true;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		alarm(20);
		f(arg);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	CHECK_EQ(WEXITSTATUS(status), 0);
}

struct everything {
	struct pair p;
	struct end ud;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
};

static void make_all(struct everything *x)
{
	struct rig_opts o = rig_defaults();
	struct ibv_srq_init_attr sattr = {.attr = {.max_wr = 4, .max_sge = 1}};

	o.ex = true;
	pair_open(&x->p, &o);
	o.type = IBV_QPT_UD;
	end_make(&x->ud, &x->p.rig, &o);
	end_up(&x->ud, NULL);
	x->ch = rnic_create_comp_channel(x->p.rig.ctx);
	x->cq = rnic_create_cq(x->p.rig.ctx, 4, NULL, x->ch, 0);
	x->srq = rnic_create_srq(x->p.rig.pd, &sattr);
	x->ah = rnic_create_ah(x->p.rig.pd,
			       &(struct ibv_ah_attr){.grh = {.dgid = end_addr(&x->ud).gid},
						     .is_global = 1,
						     .port_num = 1});
	CHECK(x->ch && x->cq && x->srq && x->ah);
}

static void destroy_all(struct everything *x)
{
	CHECK_0(rnic_destroy_ah(x->ah));
	CHECK_0(rnic_destroy_srq(x->srq));
	CHECK_0(rnic_destroy_cq(x->cq));
	CHECK_0(rnic_destroy_comp_channel(x->ch));
	end_destroy(&x->ud);
	pair_close(&x->p);
}

#define FAILS(call, err)                                                                           \
	do {                                                                                       \
		errno = 0;                                                                         \
		CHECK(!(call));                                                                    \
		CHECK_EQ(errno, err);                                                              \
	} while (0)

/* Every call on an object of the parent: refused. */
static void use_all(void *arg)
{
	struct everything *x = arg;
	struct ibv_context *ctx = x->p.rig.ctx;
	struct ibv_pd *pd = x->p.rig.pd;
	struct end *e = &x->p.a;
	struct ibv_srq_init_attr sattr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq_attr sa = {.srq_limit = 1};
	struct ibv_qp_init_attr init, qattr = {.send_cq = e->scq,
					       .recv_cq = e->rcq,
					       .qp_type = IBV_QPT_RC,
					       .cap = {1, 1, 1, 1, 0}};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_async_event ev;
	union ibv_gid gid = {.raw = {0xff}};
	struct ibv_wc wc;
	struct ibv_cq *cq;
	struct work w;
	void *context;

	ah.grh.dgid.raw[10] = ah.grh.dgid.raw[11] = 0xff;
	for (int op = IBV_WR_RDMA_WRITE; op <= IBV_WR_SEND; op++) {
		work_init(&w, e, (enum ibv_wr_opcode)op, 1, 0, 8, 0);
		CHECK_EQ(post(e, &w), EIO);
	}
	CHECK_EQ(try_recv(e, 1, 0, 8), EIO);
	CHECK_EQ(try_srq_recv(x->srq, e, 1, 0, 8), EIO);
	CHECK(ibv_poll_cq(e->scq, 1, &wc) < 0);
	CHECK_EQ(ibv_req_notify_cq(e->scq, 0), EIO);
	ibv_wr_start(e->ex);
	ibv_wr_send(e->ex);
	ibv_wr_set_sge(e->ex, e->mr->lkey, (uintptr_t)e->buf, 8);
	CHECK_EQ(ibv_wr_complete(e->ex), EIO);
	ibv_wr_start(e->ex);
	ibv_wr_abort(e->ex);
	CHECK_EQ(rnic_modify_qp(e->qp, &attr, IBV_QP_STATE), EIO);
	CHECK_EQ(rnic_query_qp(e->qp, &attr, ~0, &init), EIO);
	CHECK_EQ(rnic_attach_mcast(x->ud.qp, &gid, 0), EIO);
	CHECK_EQ(rnic_resize_cq(e->scq, 10), EIO);
	CHECK_EQ(rnic_modify_srq(x->srq, &sa, IBV_SRQ_LIMIT), EIO);
	CHECK_EQ(rnic_query_srq(x->srq, &sa), EIO);
	CHECK_EQ(rnic_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), EIO);
	FAILS(rnic_reg_mr(pd, e->buf, 64, (uintptr_t)e->buf, 0), EIO);
	FAILS(rnic_alloc_pd(ctx), EIO);
	FAILS(rnic_create_cq(ctx, 4, NULL, NULL, 0), EIO);
	FAILS(rnic_create_comp_channel(ctx), EIO);
	FAILS(rnic_create_srq(pd, &sattr), EIO);
	FAILS(rnic_create_qp(pd, &qattr), EIO);
	FAILS(rnic_create_ah(pd, &ah), EIO);
	CHECK(rnic_get_async_event(ctx, &ev) == -1 && errno == EIO);
	CHECK(rnic_get_cq_event(x->ch, &cq, &context) == -1 && errno == EIO);
	destroy_all(x); /* frees memory, and touches nothing of the parent's */
}

static void ping(struct end *from, struct end *to, uint64_t n)
{
	end_recv(to, n, 1024, 64);
	end_send(from, n, 0, 64);
	EXPECT_OK(to->rcq, n);
	EXPECT_OK(from->scq, n);
}

static void test_parents_objects(void **state)
{
	struct everything x;

	(void)state;
	make_all(&x);
	for (uint64_t i = 0; i < 5; i++) {
		in_child(use_all, &x);
		ping(&x.p.a, &x.p.b, i); /* the child's end was not ours */
		ping(&x.p.b, &x.p.a, i);
	}
	destroy_all(&x);
}

/* Locks that other threads hold at that moment are held for ever in the child. */
struct load {
	struct everything x;
	atomic_bool stop;
};

static void *traffic(void *arg)
{
	struct load *l = arg;
	struct ibv_wc wc[16];
	uint64_t n = 0;

	while (!atomic_load(&l->stop)) {
		struct ibv_send_wr *bad;
		struct ibv_recv_wr *rbad;
		struct ibv_sge sge = end_sge(&l->x.p.b, 0, 64);
		struct ibv_recv_wr rwr = {.wr_id = n, .sg_list = &sge, .num_sge = 1};
		struct work w;

		work_init(&w, &l->x.p.a, IBV_WR_SEND, n++, 0, 64, 0);
		ibv_post_send(l->x.p.a.qp, &w.wr, &bad);
		ibv_post_recv(l->x.p.b.qp, &rwr, &rbad);
		ibv_poll_cq(l->x.p.a.scq, 16, wc);
		ibv_poll_cq(l->x.p.b.rcq, 16, wc);
	}
	return NULL;
}

static void use_and_exit(void *arg)
{
	struct load *l = arg;

	use_all(&l->x);
}

static void test_under_load(void **state)
{
	struct load l = {.stop = false};
	pthread_t t[2];

	(void)state;
	make_all(&l.x);
	for (int i = 0; i < 2; i++)
		CHECK_0(pthread_create(&t[i], NULL, traffic, &l));
	for (int i = 0; i < (RIG_TSAN ? 10 : 60); i++)
		in_child(use_and_exit, &l);
	atomic_store(&l.stop, true);
	for (int i = 0; i < 2; i++)
		CHECK_0(pthread_join(t[i], NULL));
	CHECK_EQ(end_query(&l.x.p.a), IBV_QPS_RTS);
	CHECK_EQ(end_query(&l.x.p.b), IBV_QPS_RTS);
	destroy_all(&l.x);
}

/* ---- a device of its own ---- */

static void own_device(void *arg)
{
	int sock = *(int *)arg;
	struct rig_opts o = rig_defaults();
	struct rig r;
	struct end e;

	if (RIG_TSAN) /* which takes a new thread for one of the parent's */
		setenv("WEFT_PROGRESS", "0", 1);
	rig_open(&r);
	end_make(&e, &r, &o);
	end_meet(&e, sock);
	for (uint64_t i = 0; i < 20; i++)
		end_recv(&e, i, 0, 64);
	rig_say(sock, 'R');
	for (uint64_t i = 0; i < 20; i++) {
		EXPECT_OK(e.rcq, i);
		end_send(&e, i, 0, 64);
		EXPECT_OK(e.scq, i);
	}
	end_destroy(&e);
	rig_close(&r);
}

static void test_child_with_device(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;
	struct end e;
	int fd[2], status;
	pid_t pid;

	(void)state;
	pair_open(&p, &o);
	ping(&p.a, &p.b, 1);
	end_make(&e, &p.rig, &o);
	CHECK_0(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		rig_in_child = true;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		own_device(&fd[1]);
		_exit(0);
	}
	end_meet(&e, fd[0]);
	for (uint64_t i = 0; i < 20; i++)
		end_recv(&e, i, 0, 64);
	rig_hear(fd[0], 'R');
	for (uint64_t i = 0; i < 20; i++) {
		end_send(&e, i, 0, 64);
		EXPECT_OK(e.scq, i);
		EXPECT_OK(e.rcq, i);
		ping(&p.a, &p.b, 100 + i);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(fd[0]);
	close(fd[1]);
	end_destroy(&e);
	pair_close(&p);
}

/* ---- who dies ---- */

/* A process that connects, forks a child, and waits to be killed; the child lives on. */
static void with_child(int sock, void *arg)
{
	struct rig_opts o = rig_defaults();
	struct rig r;
	struct end e;
	pid_t child;

	(void)arg;
	rig_open(&r);
	end_make(&e, &r, &o);
	end_meet(&e, sock);
	end_recv(&e, 1, 0, 64);
	child = fork();
	if (!child) {
		alarm(20);
		for (;;)
			pause();
	}
	rig_put(sock, &child, sizeof(child));
	for (;;)
		pause();
}

static void test_parent_dies(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_proc proc;
	struct rig r;
	struct end e;
	pid_t child;

	(void)state;
	o.timeout = 10;
	o.retry_cnt = 1;
	rig_spawn(&proc, with_child, NULL);
	rig_open(&r);
	end_make(&e, &r, &o);
	end_meet(&e, proc.sock);
	rig_get(proc.sock, &child, sizeof(child));
	end_send(&e, 1, 0, 64);
	EXPECT_OK(e.scq, 1);
	rig_kill(&proc);
	end_send(&e, 2, 0, 64);
	EXPECT(e.scq, 2, IBV_WC_RETRY_EXC_ERR);
	CHECK_0(kill(child, 0)); /* it is still there */
	CHECK_0(kill(child, SIGKILL));
	end_destroy(&e);
	rig_close(&r);
}

/* Children come and go while a large transfer is under way. */
static void nothing(void *arg)
{
	(void)arg;
}

static void test_children_come_and_go(void **state)
{
	struct rig_opts o = rig_defaults();
	struct pair p;

	(void)state;
	o.buf_len = 16 << 20;
	pair_open(&p, &o);
	for (uint64_t i = 0; i < 20; i++) {
		util_rand_bytes(rig_rand(), p.a.buf, 4096);
		end_write(&p.a, 2 * i, 0, 8 << 20, 0);
		end_read(&p.a, 2 * i + 1, 8 << 20, 8 << 20, 0);
		in_child(nothing, NULL);
		expect_run(p.a.scq, 2 * i, 2, IBV_WC_SUCCESS);
		CHECK_0(memcmp(p.a.buf, p.a.buf + (8 << 20), 4096));
	}
	pair_close(&p);
}

/* ---- copies of descriptors ---- */

/* Between fork and exec (posix_spawn, system) another process has copies of all sockets
 * for a while, and no handler of ours runs there. */
static int copy_sockets(int *copies, int max)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	int n = 0;

	CHECK(dir);
	while ((d = readdir(dir)) && n < max) {
		int fd = atoi(d->d_name);
		struct stat st;

		if (d->d_name[0] != '.' && fd != dirfd(dir) && !fstat(fd, &st) &&
		    S_ISSOCK(st.st_mode))
			copies[n++] = fcntl(fd, F_DUPFD_CLOEXEC, 500);
	}
	closedir(dir);
	return n;
}

static void test_copies(void **state)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr to_a, to_b, own;
	int copies[64], n;
	struct rig r;
	struct end a, b, other, ud;

	(void)state;
	rig_open(&r);
	end_make(&other, &r, &o); /* keeps the device busy */
	own = end_addr(&other);
	end_up(&other, &own);
	end_make(&a, &r, &o);
	end_make(&b, &r, &o);
	to_a = end_addr(&a);
	to_b = end_addr(&b);
	end_up(&a, &to_b);
	end_up(&b, &to_a);
	ping(&a, &b, 1);
	o.type = IBV_QPT_UD;
	end_make(&ud, &r, &o);
	end_up(&ud, NULL);
	n = copy_sockets(copies, 64);
	CHECK(n >= 4);
	end_destroy(&b);
	end_destroy(&a);
	end_destroy(&ud);
	rig_sleep_ms(20);
	/* now the copies make the sockets readable */
	for (int i = 0; i < n; i++)
		shutdown(copies[i], SHUT_RDWR);
	for (uint64_t i = 0; i < 20; i++) {
		CHECK_0(end_state(&other, IBV_QPS_RESET)); /* its own socket was shut, too */
		end_up(&other, &own);
		ping(&other, &other, i);
	}
	for (int i = 0; i < n; i++)
		close(copies[i]);
	end_destroy(&other);
	rig_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_parents_objects),      RIG_TEST(test_under_load),
		RIG_TEST(test_child_with_device),    RIG_TEST(test_parent_dies),
		RIG_TEST(test_children_come_and_go), RIG_TEST(test_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
