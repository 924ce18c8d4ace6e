#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench_peers.h"
#include "bench_proc.h"
#include "bench_time.h"
#include "bench_verbs.h"

#define SLOT       64 /* bytes to send from and as many to receive into, per QP */
#define SWAP_BATCH 32 /* addresses in one exchange */
#define LIMIT_NS   (30 * BENCH_S)
#define IS_RECV    (1ull << 32)
#define QKEY       0x77656674

struct peer {
	struct ibv_qp *qp; /* to reach it; RD client: the same for all */
	struct ibv_ah *ah; /* RD */
	struct bench_addr addr;
};

struct bench_peers {
	struct bench_env *env;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *shared; /* RD client */
	struct peer *peer;
	char *buf;
	unsigned int n, max;
	bool rd;
};

/* A socket or more for each: the soft limit is often 1024. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The one queue pair of the client, ready to send. */
static int make_shared(struct bench_peers *p)
{
	struct bench_addr nobody = {0};
	int ret;

	p->shared = bench_qp_create(p->env->dev, p->cq, BENCH_QPT_RD, p->max, p->max, 0);
	ret = p->shared ? bench_qp_init(p->env, p->shared, QKEY) : -errno;
	if (!ret)
		ret = bench_qp_connect(p->env, p->shared, 1, &nobody);
	if (ret)
		fprintf(stderr, "weft-perf: peers: no RD queue pair: %s\n", strerror(-ret));
	return ret;
}

struct bench_peers *bench_peers_make(struct bench_env *env, unsigned int max, bool rd)
{
	struct bench_peers *p = calloc(1, sizeof(*p));
	size_t len = ((size_t)max * 2 * SLOT + 4095) / 4096 * 4096;

	if (!p)
		return NULL;
	p->env = env;
	p->max = max;
	p->rd = rd;
	allow_descriptors();
	if (bench_dev_get(env))
		goto fail;
	p->peer = malloc(max * sizeof(*p->peer));
	p->buf = aligned_alloc(4096, len);
	if (!p->peer || !p->buf)
		goto fail;
	/* Touched now, so that the first row of the table has all of it. */
	memset(p->peer, 0xff, max * sizeof(*p->peer));
	memset(p->buf, 0x5a, len);
	p->mr = ibv_reg_mr(env->dev->pd, p->buf, len, IBV_ACCESS_LOCAL_WRITE);
	p->cq = ibv_create_cq(env->dev->ctx, (int)(2 * max + 16), NULL, NULL, 0);
	if (!p->mr || !p->cq || (rd && env->role == BENCH_CLIENT && make_shared(p)))
		goto fail;
	return p;
fail:
	bench_peers_free(p);
	return NULL;
}

void bench_peers_free(struct bench_peers *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->n; i++) {
		if (p->peer[i].qp != p->shared)
			ibv_destroy_qp(p->peer[i].qp);
		if (p->peer[i].ah)
			ibv_destroy_ah(p->peer[i].ah);
	}
	if (p->shared)
		ibv_destroy_qp(p->shared);
	if (p->cq)
		ibv_destroy_cq(p->cq);
	if (p->mr)
		ibv_dereg_mr(p->mr);
	free(p->peer);
	free(p->buf);
	free(p);
}

static int post_recv(struct bench_peers *p, unsigned int i)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(p->buf + (2ul * i + 1) * SLOT),
			      .length = SLOT,
			      .lkey = p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i | IS_RECV, .sg_list = &sge, .num_sge = 1}, *bad;

	return -ibv_post_recv(p->peer[i].qp, &wr, &bad);
}

static int post_send(struct bench_peers *p, unsigned int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)(p->buf + 2ul * i * SLOT), .length = 8, .lkey = p->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	const struct peer *to = &p->peer[i];

	if (p->rd)
		return -bench_rd_post(to->qp, &wr, to->ah, &to->addr);
	return -ibv_post_send(to->qp, &wr, &bad);
}

/* The queue pair for peer number p->n, with one more receive posted. */
static int add_qp(struct bench_peers *p, struct bench_addr *addr)
{
	struct bench_dev *dev = p->env->dev;
	struct ibv_qp *qp = p->shared;
	int ret = 0;

	if (!qp)
		qp = bench_qp_create(dev, p->cq, p->rd ? BENCH_QPT_RD : IBV_QPT_RC, 1, 1, 0);
	if (!qp)
		return -errno;
	p->peer[p->n++] = (struct peer){.qp = qp};
	*addr = (struct bench_addr){
		.lid = dev->port.lid, .qpn = qp->qp_num, .psn = 1, .qkey = QKEY, .gid = dev->gid};
	bench_addr_swab(addr);
	if (!p->shared)
		ret = bench_qp_init(p->env, qp, QKEY);
	return ret ? ret : post_recv(p, p->n - 1);
}

/* Now that its address is known. */
static int reach(struct bench_peers *p, struct peer *peer, const struct bench_addr *addr)
{
	int ret;

	if (!addr->qpn)
		return -ENODEV;
	peer->addr = *addr;
	ret = p->shared ? 0 : bench_qp_connect(p->env, peer->qp, 1, addr);
	if (ret || !p->rd)
		return ret;
	peer->ah = bench_ah_create(p->env, addr);
	return peer->ah ? 0 : -errno;
}

static int add_batch(struct bench_peers *p, unsigned int n)
{
	struct bench_addr mine[SWAP_BATCH], theirs[SWAP_BATCH];
	unsigned int first = p->n;
	int ret = 0, err;

	memset(mine, 0, sizeof(mine));
	for (unsigned int i = 0; i < n && !ret; i++)
		ret = add_qp(p, &mine[i]);
	err = bench_ctl_swap(&p->env->ctl, mine, theirs, sizeof(mine));
	if (ret || err)
		return ret ? ret : err;
	for (unsigned int i = 0; i < n && !ret; i++) {
		bench_addr_swab(&theirs[i]);
		ret = reach(p, &p->peer[first + i], &theirs[i]);
	}
	return ret;
}

int bench_peers_grow(struct bench_peers *p, unsigned int n)
{
	int32_t mine, theirs;
	int ret;

	while (p->n < n) {
		unsigned int more = n - p->n < SWAP_BATCH ? n - p->n : SWAP_BATCH;

		mine = add_batch(p, more);
		ret = bench_ctl_swap(&p->env->ctl, &mine, &theirs, sizeof(mine));
		if (ret || mine || theirs)
			return ret ? ret : mine ? mine : theirs;
	}
	return 0;
}

/* One completion. A message that came is answered by the server, and its receive posted
 * again by both. (Whose it was, the client of RD can not tell by the receive; it need not.) */
static int handle(struct bench_peers *p, const struct ibv_wc *wc, unsigned int *left)
{
	unsigned int i = (unsigned int)(wc->wr_id & ~IS_RECV);
	int ret;

	if (wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "weft-perf: peers: number %u: %s\n", i,
			ibv_wc_status_str(wc->status));
		return -EIO;
	}
	--*left;
	if (!(wc->wr_id & IS_RECV))
		return 0;
	ret = post_recv(p, i);
	if (ret || p->env->role == BENCH_CLIENT)
		return ret;
	return post_send(p, i);
}

int bench_peers_touch(struct bench_peers *p)
{
	uint64_t deadline = bench_now() + LIMIT_NS;
	unsigned int left = 2 * p->n; /* completions: a send and a receive on each */
	struct ibv_wc wc[16];
	uint32_t spins = 0;
	int ret = 0;

	for (unsigned int i = 0; p->env->role == BENCH_CLIENT && i < p->n && !ret; i++)
		ret = post_send(p, i);
	while (left && !ret) {
		int n = ibv_poll_cq(p->cq, 16, wc);

		if (n < 0)
			return -EIO;
		for (int i = 0; i < n && !ret; i++)
			ret = handle(p, &wc[i], &left);
		if (!n && bench_expired(&spins, deadline))
			ret = -ETIMEDOUT;
	}
	return ret;
}

static int send_holding(struct bench_env *env)
{
	struct bench_msg result = {.op = BENCH_OP_RESULT};
	struct bench_holding h;
	int ret;

	bench_holding_take(&h);
	ret = bench_ctl_send(&env->ctl, &result);
	return ret ? ret : bench_ctl_write(&env->ctl, &h, sizeof(h));
}

int bench_peers_serve(struct bench_env *env, struct bench_peers **peers,
		      const struct bench_msg *msg)
{
	struct bench_msg result = {.op = BENCH_OP_RESULT};
	unsigned int n = (unsigned int)msg->arg[0];

	if (msg->op == BENCH_OP_SNAP)
		return send_holding(env);
	if (msg->op == BENCH_OP_PEERS && !*peers)
		*peers = bench_peers_make(env, (unsigned int)msg->arg[1], msg->arg[2]);
	if (!*peers || n > (*peers)->max)
		result.status = -ENODEV;
	if (msg->op == BENCH_OP_PEERS) {
		int ret = bench_ctl_send(&env->ctl, &result);

		if (ret || result.status)
			return ret;
		result.status = bench_peers_grow(*peers, n);
	} else if (!result.status) {
		result.status = bench_peers_touch(*peers);
	}
	return bench_ctl_send(&env->ctl, &result);
}
