/* Checks, tests, devices and ends. */
#include <dirent.h>
#include <signal.h>
#include <time.h>
#include "rig.h"
#include "rnic_ctx.h"

bool rig_in_child; /* rig_proc.c */

/* ---- checks ---- */

void rig_check(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "%s:%d: %sfailed: %s (errno %d)\n", file, line,
		rig_in_child ? "child: " : "", what, errno);
	if (rig_in_child)
		_exit(3);
	_fail(file, line);
}

void rig_check_eq(long long got, long long want, const char *what, const char *file, int line)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s%s is %lld, expected %lld\n", file, line,
		rig_in_child ? "child: " : "", what, got, want);
	if (rig_in_child)
		_exit(3);
	_fail(file, line);
}

/* ---- tests ---- */

static void on_alarm(int sig)
{
	static const char msg[] = "rig: the test hangs\n";

	(void)sig;
	if (write(STDERR_FILENO, msg, sizeof(msg) - 1) < 0)
		_exit(97);
	_exit(98);
}

/* Children of a process with threads open devices of their own, which have threads. */
const char *__tsan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

/* Before main, and before the device looks. */
__attribute__((constructor)) static void rig_environment(void)
{
	setenv("WEFT_ADDR", "127.0.0.1", 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
}

int rig_setup(void **state)
{
	(void)state;
	signal(SIGALRM, on_alarm);
	alarm(60);
	return 0;
}

int rig_teardown(void **state)
{
	(void)state;
	alarm(0);
	return 0;
}

struct util_rand *rig_rand(void)
{
	static struct util_rand r;
	static bool seeded;

	if (!seeded) {
		const char *env = getenv("WEFT_TEST_SEED");
		uint64_t seed = env ? strtoull(env, NULL, 0) : util_now_ns() ^ (uint64_t)getpid();

		util_rand_seed(&r, seed);
		printf("WEFT_TEST_SEED=0x%llx\n", (unsigned long long)seed);
		seeded = true;
	}
	return &r;
}

uint64_t rig_now_ms(void)
{
	return util_now_ns() / UTIL_NS_PER_MS;
}

void rig_sleep_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

uint64_t rig_cpu_ns(void)
{
	return util_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int rig_open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* The race is the point: ThreadSanitizer shall not look. */
__attribute__((no_sanitize("thread"), noinline)) uint8_t rig_peek(const uint8_t *p)
{
	return *(const volatile uint8_t *)p;
}

void rig_wait_byte(const uint8_t *p, uint8_t want)
{
	uint64_t end = rig_now_ms() + RIG_WAIT;

	while (rig_peek(p) != want && rig_now_ms() < end)
		usleep(100);
	CHECK_EQ(rig_peek(p), want);
}

/* ---- a device ---- */

void rig_open(struct rig *r)
{
	const struct rnic_device *dev = rnic_device_get();

	CHECK(dev);
	r->ctx = rnic_open_device((struct ibv_device *)&dev->ibv);
	CHECK(r->ctx);
	r->pd = rnic_alloc_pd(r->ctx);
	CHECK(r->pd);
}

void rig_close(struct rig *r)
{
	CHECK_0(rnic_dealloc_pd(r->pd));
	CHECK_0(rnic_close_device(r->ctx));
}

struct rnic_engine *rig_engine(const struct rig *r)
{
	return rnic_ctx(r->ctx)->e;
}

struct rnic_stats rig_stats(const struct rig *r)
{
	struct rnic_engine *e = rig_engine(r);
	struct rnic_stats stats;

	rnic_lock(e);
	stats = e->stats;
	rnic_unlock(e);
	return stats;
}

/* ---- ends ---- */

struct rig_opts rig_defaults(void)
{
	return (struct rig_opts){
		.type = IBV_QPT_RC,
		.send_wr = 64,
		.recv_wr = 64,
		.sge = 4,
		.inl = 256,
		.cqe = 256,
		.buf_len = 64 * 1024,
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.qp_access =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.rd_atomic = 8,
		.dest_rd_atomic = 8,
		.rnr_retry = 7,
		.rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.qkey = 0x1234,
	};
}

static struct ibv_cq *make_cq(struct end *e)
{
	struct ibv_cq *cq = rnic_create_cq(e->rig->ctx, (int)e->o.cqe, e, e->o.channel, 0);

	CHECK(cq);
	return cq;
}

static void make_qp(struct end *e)
{
	const struct rig_opts *o = &e->o;
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	struct ibv_qp_init_attr_ex attr = {.qp_context = e,
					   .send_cq = e->scq,
					   .recv_cq = e->rcq,
					   .srq = o->srq,
					   .cap = {.max_send_wr = o->send_wr,
						   .max_recv_wr = o->srq ? 0 : o->recv_wr,
						   .max_send_sge = o->sge,
						   .max_recv_sge = o->srq ? 0 : o->sge,
						   .max_inline_data = o->inl},
					   .qp_type = o->type,
					   .sq_sig_all = o->sig_all,
					   .comp_mask = IBV_QP_INIT_ATTR_PD,
					   .pd = e->rig->pd};

	if (o->type != IBV_QPT_UD)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (o->type == IBV_QPT_RC || o->type == IBV_QPT_DRIVER)
		ops |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	if (o->ex) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.send_ops_flags = ops;
	}
	if (o->create_flags) {
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		attr.create_flags = o->create_flags;
	}
	e->qp = o->type == IBV_QPT_DRIVER
			? rnic_create_rd_qp(e->rig->ctx, &attr)
			: verbs_get_ctx(e->rig->ctx)->create_qp_ex(e->rig->ctx, &attr);
	CHECK(e->qp);
	e->ex = rnic_qp_to_qp_ex(e->qp);
	CHECK(!!e->ex == o->ex);
}

void end_make(struct end *e, struct rig *r, const struct rig_opts *o)
{
	static uint32_t psn = 0x1000;

	memset(e, 0, sizeof(*e));
	e->rig = r;
	e->o = *o;
	e->psn = __atomic_add_fetch(&psn, 0x111, __ATOMIC_RELAXED) & 0xffffff;
	e->scq = o->cq ? o->cq : make_cq(e);
	e->rcq = o->cq || o->one_cq ? e->scq : make_cq(e);
	if (o->buf_len) {
		CHECK_0(posix_memalign((void **)&e->buf, 4096, o->buf_len));
		memset(e->buf, 0, o->buf_len);
		e->mr = rnic_reg_mr(r->pd, e->buf, o->buf_len, (uintptr_t)e->buf, o->mr_access);
		CHECK(e->mr);
	}
	make_qp(e);
}

void end_destroy(struct end *e)
{
	CHECK_0(rnic_destroy_qp(e->qp));
	if (e->mr)
		CHECK_0(rnic_dereg_mr(e->mr));
	free(e->buf);
	if (!e->o.cq) {
		if (e->rcq != e->scq)
			CHECK_0(rnic_destroy_cq(e->rcq));
		CHECK_0(rnic_destroy_cq(e->scq));
	}
}

struct rig_addr end_addr(const struct end *e)
{
	struct rig_addr a = {.qpn = e->qp->qp_num,
			     .psn = e->psn,
			     .rkey = e->mr ? e->mr->rkey : 0,
			     .addr = (uintptr_t)e->buf};
	struct ibv_gid_entry entry;

	CHECK_0(rnic_query_gid_entry(e->rig->ctx, 1, 0, &entry));
	a.gid = entry.gid;
	return a;
}

static bool is_dgram(const struct end *e)
{
	return e->o.type == IBV_QPT_UD || e->o.type == IBV_QPT_DRIVER;
}

void end_init(struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = e->o.qp_access,
				   .qkey = e->o.qkey};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= is_dgram(e) ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	CHECK_0(rnic_modify_qp(e->qp, &attr, mask));
}

void end_rtr(struct end *e, const struct rig_addr *peer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	int mask = IBV_QP_STATE;

	if (e->o.type == IBV_QPT_DRIVER) {
		attr.min_rnr_timer = e->o.rnr_timer;
		mask |= IBV_QP_MIN_RNR_TIMER;
	}
	if (!is_dgram(e)) {
		e->peer = *peer;
		attr.path_mtu = IBV_MTU_4096;
		attr.dest_qp_num = peer->qpn;
		attr.rq_psn = peer->psn;
		attr.ah_attr = (struct ibv_ah_attr){
			.grh = {.dgid = peer->gid, .hop_limit = 64}, .is_global = 1, .port_num = 1};
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (e->o.type == IBV_QPT_RC) {
		attr.max_dest_rd_atomic = e->o.dest_rd_atomic;
		attr.min_rnr_timer = e->o.rnr_timer;
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	CHECK_0(rnic_modify_qp(e->qp, &attr, mask));
}

void end_rts(struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .sq_psn = e->psn,
				   .timeout = e->o.timeout,
				   .retry_cnt = e->o.retry_cnt,
				   .rnr_retry = e->o.rnr_retry,
				   .max_rd_atomic = e->o.rd_atomic};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (e->o.type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (e->o.type == IBV_QPT_DRIVER)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
	CHECK_0(rnic_modify_qp(e->qp, &attr, mask));
}

void end_up(struct end *e, const struct rig_addr *peer)
{
	end_init(e);
	end_rtr(e, peer);
	end_rts(e);
}

int end_state(struct end *e, enum ibv_qp_state to)
{
	struct ibv_qp_attr attr = {.qp_state = to};

	return rnic_modify_qp(e->qp, &attr, IBV_QP_STATE);
}

enum ibv_qp_state end_query(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK_0(rnic_query_qp(e->qp, &attr, IBV_QP_STATE, &init));
	return attr.qp_state;
}

void pair_connect(struct pair *p, const struct rig_opts *oa, const struct rig_opts *ob)
{
	struct rig_addr a, b;

	rig_open(&p->rig);
	end_make(&p->a, &p->rig, oa);
	end_make(&p->b, &p->rig, ob);
	a = end_addr(&p->a);
	b = end_addr(&p->b);
	end_up(&p->a, &b);
	end_up(&p->b, &a);
}

void pair_open(struct pair *p, const struct rig_opts *o)
{
	pair_connect(p, o, o);
}

void pair_close(struct pair *p)
{
	end_destroy(&p->a);
	end_destroy(&p->b);
	rig_close(&p->rig);
}
