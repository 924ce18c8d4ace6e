/* Out of memory, out of descriptors, robbed of descriptors: calls fail and say why,
 * nothing crashes or hangs, and when there is enough again, everything works.
 *
 * The n-th allocation fails, for every n up to the last one that a scenario makes. */
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include "rig.h"

/* Linked with --wrap: every allocation of the library comes by here. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static atomic_long countdown = -1; /* the allocation that fails; negative: none */
static atomic_bool failed;

static bool fails(void)
{
	if (atomic_load(&countdown) < 0 || atomic_fetch_sub(&countdown, 1) != 0)
		return false;
	atomic_store(&failed, true);
	return true;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? (errno = ENOMEM, NULL) : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? (errno = ENOMEM, NULL) : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? (errno = ENOMEM, NULL) : __real_realloc(p, n);
}

/* ---- a scenario that expects nothing ---- */

struct objects {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	struct ibv_qp *qp[3]; /* RC, RC with the SRQ, UD */
};

static uint8_t memory[256 * 1024];

static struct ibv_qp *make_qp(struct objects *x, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {.send_cq = x->cq,
					.recv_cq = x->cq,
					.srq = srq,
					.qp_type = type,
					.sq_sig_all = 1,
					.cap = {16, 16, 2, 2, 64}};

	return rnic_create_qp(x->pd, &attr);
}

static bool make(struct objects *x)
{
	struct ibv_srq_init_attr sattr = {.attr = {.max_wr = 8, .max_sge = 1}};
	const struct rnic_device *dev = rnic_device_get();
	union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 9}};
	struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1};
	struct ibv_gid_entry gid;

	memset(x, 0, sizeof(*x));
	if (!dev || !(x->ctx = rnic_open_device((struct ibv_device *)&dev->ibv)))
		return false;
	CHECK_0(rnic_query_gid_entry(x->ctx, 1, 0, &gid));
	ah.grh.dgid = gid.gid;
	if (!(x->pd = rnic_alloc_pd(x->ctx)) || !(x->ch = rnic_create_comp_channel(x->ctx)) ||
	    !(x->cq = rnic_create_cq(x->ctx, 256, NULL, x->ch, 0)) ||
	    !(x->srq = rnic_create_srq(x->pd, &sattr)) ||
	    !(x->mr = rnic_reg_mr(x->pd, memory, sizeof(memory), (uintptr_t)memory,
				  rig_defaults().mr_access)) ||
	    !(x->ah = rnic_create_ah(x->pd, &ah)) || !(x->qp[0] = make_qp(x, IBV_QPT_RC, NULL)) ||
	    !(x->qp[1] = make_qp(x, IBV_QPT_RC, x->srq)) ||
	    !(x->qp[2] = make_qp(x, IBV_QPT_UD, NULL)))
		return false;
	if (!rnic_attach_mcast(x->qp[2], &group, 0))
		CHECK_0(rnic_detach_mcast(x->qp[2], &group, 0));
	return true;
}

static void unmake(struct objects *x)
{
	for (int i = 0; i < 3; i++)
		if (x->qp[i])
			CHECK_0(rnic_destroy_qp(x->qp[i]));
	if (x->ah)
		CHECK_0(rnic_destroy_ah(x->ah));
	if (x->mr)
		CHECK_0(rnic_dereg_mr(x->mr));
	if (x->srq)
		CHECK_0(rnic_destroy_srq(x->srq));
	if (x->cq)
		CHECK_0(rnic_destroy_cq(x->cq));
	if (x->ch)
		CHECK_0(rnic_destroy_comp_channel(x->ch));
	if (x->pd)
		CHECK_0(rnic_dealloc_pd(x->pd));
	if (x->ctx)
		CHECK_0(rnic_close_device(x->ctx));
}

static void connect_to(struct objects *x, struct ibv_qp *qp, uint32_t qpn)
{
	struct ibv_gid_entry gid;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = rig_defaults().qp_access,
				   .path_mtu = IBV_MTU_4096,
				   .dest_qp_num = qpn,
				   .max_rd_atomic = 4,
				   .max_dest_rd_atomic = 4,
				   .timeout = 10,
				   .retry_cnt = 1,
				   .rnr_retry = 7,
				   .ah_attr = {.is_global = 1, .port_num = 1}};

	CHECK_0(rnic_query_gid_entry(x->ctx, 1, 0, &gid));
	attr.ah_attr.grh.dgid = gid.gid;
	CHECK_0(rnic_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK_0(rnic_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK_0(rnic_modify_qp(qp, &attr,
			       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

/* Some traffic; every request completes, well or not. */
static bool traffic(struct objects *x)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						 IBV_WR_SEND,       IBV_WR_ATOMIC_FETCH_AND_ADD,
						 IBV_WR_RDMA_READ,  IBV_WR_RDMA_WRITE};
	struct ibv_sge sge = {(uintptr_t)memory, 100000, x->mr->lkey};
	struct ibv_recv_wr rwr = {.wr_id = 100, .sg_list = &sge, .num_sge = 1}, *rbad;
	struct ibv_send_wr *bad;
	unsigned int done = 0;
	bool ok = true;

	connect_to(x, x->qp[0], x->qp[1]->qp_num);
	connect_to(x, x->qp[1], x->qp[0]->qp_num);
	CHECK_0(ibv_post_srq_recv(x->srq, &rwr, &rbad));
	for (unsigned int i = 0; i < ARRAY_SIZE(ops); i++) {
		struct ibv_send_wr wr = {
			.wr_id = i, .sg_list = &sge, .num_sge = 1, .opcode = ops[i]};

		wr.wr.rdma.remote_addr = (uintptr_t)memory + 128 * 1024;
		wr.wr.rdma.rkey = x->mr->rkey;
		if (ops[i] == IBV_WR_ATOMIC_FETCH_AND_ADD) {
			wr.wr.atomic.remote_addr = (uintptr_t)memory + 128 * 1024;
			wr.wr.atomic.rkey = x->mr->rkey;
		}
		CHECK_0(ibv_post_send(x->qp[0], &wr, &bad));
	}
	while (done < ARRAY_SIZE(ops)) {
		struct ibv_wc wc = {0};

		CHECK(wait_wc(x->cq, &wc, RIG_WAIT));
		if (wc.qp_num != x->qp[0]->qp_num)
			continue;
		CHECK_EQ(wc.wr_id, done);
		ok &= wc.status == IBV_WC_SUCCESS;
		done++;
	}
	return ok;
}

/* ---- memory ---- */

static void test_memory(void **state)
{
	struct objects x;
	long n = 0, survived = 0;

	(void)state;
	/* while objects are made */
	for (;; n++) {
		atomic_store(&failed, false);
		atomic_store(&countdown, n);
		if (make(&x))
			survived++;
		else
			CHECK(errno == ENOMEM || errno == EAGAIN);
		atomic_store(&countdown, -1);
		unmake(&x);
		if (!atomic_load(&failed))
			break;
	}
	CHECK(n > 20);
	/* while they are used: a connection may be lost, but not more than that */
	for (n = 0; n < 40; n++) {
		CHECK(make(&x));
		atomic_store(&failed, false);
		atomic_store(&countdown, n);
		(void)!traffic(&x);
		atomic_store(&countdown, -1);
		unmake(&x);
		if (!atomic_load(&failed))
			break;
	}
	CHECK(n > 1);
	CHECK(make(&x));
	CHECK(traffic(&x));
	unmake(&x);
}

/* ---- descriptors ---- */

static void limit_fds(rlim_t n)
{
	struct rlimit lim;

	CHECK_0(getrlimit(RLIMIT_NOFILE, &lim));
	lim.rlim_cur = n;
	CHECK_0(setrlimit(RLIMIT_NOFILE, &lim));
}

static void few_descriptors(int sock, void *arg)
{
	struct objects x;
	int lowest = dup(sock);

	(void)arg;
	close(lowest);
	CHECK(rnic_device_get()); /* has looked before they are gone */
	for (rlim_t extra = 0; extra < 20; extra++) {
		bool made;

		limit_fds((rlim_t)lowest + extra);
		made = make(&x);
		if (!made)
			CHECK(errno == EMFILE || errno == ENOMEM);
		else
			(void)!traffic(&x); /* without descriptors for connections, perhaps */
		unmake(&x);
	}
	limit_fds((rlim_t)lowest + 100);
	CHECK(make(&x));
	CHECK(traffic(&x));
	unmake(&x);
}

static void test_descriptors(void **state)
{
	struct rig_proc proc;

	(void)state;
	rig_spawn(&proc, few_descriptors, NULL);
	rig_join(&proc);
}

/* What has been written to standard error since it was made this file. */
static bool said(int file, const char *what)
{
	char text[4096] = "";

	return pread(file, text, sizeof(text) - 1, 0) > 0 && strstr(text, what);
}

/* There is a limit of time to it, and somebody says what is wrong. */
static void no_descriptor(int sock, void *arg)
{
	int own = dup(STDERR_FILENO), file = memfd_create("stderr", MFD_CLOEXEC), lowest;
	struct objects x;
	uint64_t begin;

	(void)arg;
	CHECK(own >= 0 && file >= 0);
	CHECK(make(&x));
	lowest = dup(sock);
	close(lowest);
	CHECK(dup2(file, STDERR_FILENO) >= 0);
	limit_fds((rlim_t)lowest);
	begin = rig_now_ms();
	CHECK(!traffic(&x));
	limit_fds(100);
	CHECK(dup2(own, STDERR_FILENO) >= 0);
	CHECK(rig_now_ms() - begin < 5000);
	CHECK(said(file, "'ulimit -n'"));
	unmake(&x);
}

static void test_no_descriptor(void **state)
{
	struct rig_proc proc;

	(void)state;
	rig_spawn(&proc, no_descriptor, NULL);
	rig_join(&proc);
}

/* A program that closes everything it does not know (a daemon's start). */
static void robbed(int sock, void *arg)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct objects x;
	uint64_t cpu;
	struct ibv_wc wc;

	(void)arg;
	CHECK(make(&x));
	CHECK(traffic(&x));
	for (int fd = 3; fd < 200; fd++)
		if (fd != sock)
			close(fd);
	/* the progress thread notices, and does not spin on it */
	rig_sleep_ms(100);
	cpu = rig_cpu_ns();
	rig_sleep_ms(300);
	CHECK(rig_cpu_ns() - cpu < 150 * RIG_MS);
	(void)!rnic_modify_qp(x.qp[0], &attr, IBV_QP_STATE);
	(void)!ibv_poll_cq(x.cq, 1, &wc);
	unmake(&x);
}

static void test_robbed(void **state)
{
	struct rig_proc proc;

	(void)state;
	if (RIG_TSAN) /* which is right: it is a race */
		skip();
	rig_spawn(&proc, robbed, NULL);
	rig_join(&proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_memory),
		RIG_TEST(test_descriptors),
		RIG_TEST(test_no_descriptor),
		RIG_TEST(test_robbed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
