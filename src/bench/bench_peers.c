#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_peers.h"
#include "bench_proc.h"
#include "bench_time.h"
#include "bench_verbs.h"

#define SLOT       64 /* bytes to send from and as many to receive into, per QP */
#define SWAP_BATCH 32 /* addresses in one exchange */
#define LIMIT_NS   (30 * BENCH_S)
#define IS_RECV    (1ull << 32)

struct bench_peers {
	struct bench_env *env;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp **qp;
	char *buf;
	unsigned int n, max;
};

struct bench_peers *bench_peers_make(struct bench_env *env, unsigned int max)
{
	struct bench_peers *p = calloc(1, sizeof(*p));
	size_t len = ((size_t)max * 2 * SLOT + 4095) / 4096 * 4096;

	if (!p)
		return NULL;
	p->env = env;
	p->max = max;
	if (bench_dev_get(env))
		goto fail;
	p->qp = malloc(max * sizeof(struct ibv_qp *));
	p->buf = aligned_alloc(4096, len);
	if (!p->qp || !p->buf)
		goto fail;
	/* Touched now, so that the first row of the table has all of it. */
	memset(p->qp, 0xff, max * sizeof(struct ibv_qp *));
	memset(p->buf, 0x5a, len);
	p->mr = ibv_reg_mr(env->dev->pd, p->buf, len, IBV_ACCESS_LOCAL_WRITE);
	p->cq = ibv_create_cq(env->dev->ctx, (int)(2 * max + 16), NULL, NULL, 0);
	if (!p->mr || !p->cq)
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
	for (unsigned int i = 0; i < p->n; i++)
		ibv_destroy_qp(p->qp[i]);
	if (p->cq)
		ibv_destroy_cq(p->cq);
	if (p->mr)
		ibv_dereg_mr(p->mr);
	free(p->qp);
	free(p->buf);
	free(p);
}

static int post_recv(struct bench_peers *p, unsigned int i)
{
	struct ibv_sge sge = {.addr = (uintptr_t)(p->buf + (2ul * i + 1) * SLOT),
			      .length = SLOT,
			      .lkey = p->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i | IS_RECV, .sg_list = &sge, .num_sge = 1}, *bad;

	return -ibv_post_recv(p->qp[i], &wr, &bad);
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

	return -ibv_post_send(p->qp[i], &wr, &bad);
}

/* Queue pair number p->n, with a receive posted. */
static int add_qp(struct bench_peers *p, struct bench_addr *addr)
{
	struct bench_dev *dev = p->env->dev;
	struct ibv_qp *qp = bench_qp_create(dev, p->cq, IBV_QPT_RC, 1, 1, 0);
	int ret;

	if (!qp)
		return -errno;
	p->qp[p->n++] = qp;
	*addr = (struct bench_addr){
		.lid = dev->port.lid, .qpn = qp->qp_num, .psn = 1, .gid = dev->gid};
	bench_addr_swab(addr);
	ret = bench_qp_init(p->env, qp, 0);
	return ret ? ret : post_recv(p, p->n - 1);
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
		ret = theirs[i].qpn ? bench_qp_connect(p->env, p->qp[first + i], 1, &theirs[i])
				    : -ENODEV;
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
 * again by both. */
static int handle(struct bench_peers *p, const struct ibv_wc *wc, unsigned int *left)
{
	unsigned int i = (unsigned int)(wc->wr_id & ~IS_RECV);
	int ret;

	if (wc->status != IBV_WC_SUCCESS) {
		fprintf(stderr, "weft-perf: peers: connection %u: %s\n", i,
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
		*peers = bench_peers_make(env, (unsigned int)msg->arg[1]);
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
