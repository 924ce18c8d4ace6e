/* A node's resources, and how the two sides of an end find each other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "fan.h"

#define SWAP_BATCH  32
#define INLINE_WANT 220 /* perftest's default for latency */
#define QKEY        0x77656674

static enum ibv_qp_type qp_type(const struct fan_type *type)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, BENCH_QPT_RD};

	return types[type->service];
}

size_t fan_type_limit(const struct bench_env *env, const struct fan_type *type)
{
	if (type->func == FAN_ATOMIC)
		return sizeof(uint64_t);
	/* enum ibv_mtu: 1 is 256 bytes, and each step doubles it. */
	if (type->service == FAN_UD)
		return 128u << env->dev->port.active_mtu;
	return env->dev->port.max_msg_sz < FAN_MAX_SIZE ? env->dev->port.max_msg_sz : FAN_MAX_SIZE;
}

/* A socket or more for each: the soft limit is often 1024. */
static void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int make_buffer(struct fan_node *node)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

	node->slot = FAN_HEAD + (node->room + FAN_HEAD - 1) / FAN_HEAD * FAN_HEAD;
	node->slots = 1 + node->n + FAN_SPARE;
	node->len = (node->slot * node->slots + 4095) / 4096 * 4096;
	if (node->len > FAN_MAX_BYTES)
		return -E2BIG;
	node->buf = aligned_alloc(4096, node->len);
	if (!node->buf)
		return -ENOMEM;
	memset(node->buf, 0, node->len);
	if (node->env->dev->attr.atomic_cap != IBV_ATOMIC_NONE)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	else if (node->type->func == FAN_ATOMIC)
		return -EOPNOTSUPP;
	node->mr = ibv_reg_mr(node->env->dev->pd, node->buf, node->len, access);
	return node->mr ? 0 : -errno;
}

static struct ibv_qp *make_qp(struct fan_node *node, unsigned int sends, unsigned int recvs)
{
	enum ibv_qp_type type = qp_type(node->type);
	struct bench_dev *dev = node->env->dev;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp = bench_qp_create(dev, node->cq, type, sends, recvs, INLINE_WANT);

	if (!qp) /* without inline data, then */
		qp = bench_qp_create(dev, node->cq, type, sends, recvs, 0);
	if (qp && !ibv_query_qp(qp, &attr, IBV_QP_CAP, &init))
		node->inline_max = init.cap.max_inline_data;
	return qp;
}

/* The root's one queue pair of a datagram service: its receives are slots of their own, since who
 * has sent what is in there is not known before. */
static int make_shared(struct fan_node *node)
{
	struct bench_addr nobody = {0};
	int ret;

	node->shared = make_qp(node, 2 * node->n + 64, node->n + FAN_SPARE);
	if (!node->shared)
		return -errno;
	ret = bench_qp_init(node->env, node->shared, QKEY);
	for (unsigned int s = 1; s < node->slots && !ret; s++)
		ret = fan_refill(node, s);
	return ret ? ret : bench_qp_connect(node->env, node->shared, 1, &nobody);
}

int fan_node_make(struct fan_node *node, struct bench_env *env, const struct fan_type *type,
		  unsigned int n, size_t room)
{
	unsigned int cqe;
	int ret = bench_dev_get(env);

	node->env = env;
	node->type = type;
	node->n = n;
	node->room = room;
	node->recvs = 1024 / n < 4 ? 4 : 1024 / n > 32 ? 32 : 1024 / n;
	node->end = calloc(n, sizeof(*node->end));
	cqe = n * (64 + node->recvs) + 256;
	if (!ret && cqe > (unsigned int)env->dev->attr.max_cqe)
		cqe = (unsigned int)env->dev->attr.max_cqe;
	node->wc_room = cqe + FAN_BATCH;
	node->wc = calloc(node->wc_room, sizeof(*node->wc));
	if (ret || !node->end || !node->wc)
		return ret ? ret : -ENOMEM;
	allow_descriptors();
	ret = make_buffer(node);
	if (ret)
		return ret;
	if (node->sleepy) {
		node->channel = ibv_create_comp_channel(env->dev->ctx);
		if (!node->channel)
			return -errno;
	}
	node->cq = ibv_create_cq(env->dev->ctx, (int)cqe, NULL, node->channel, 0);
	if (!node->cq)
		return -errno;
	return node->root && fan_is_datagram(type) ? make_shared(node) : 0;
}

void fan_node_free(struct fan_node *node)
{
	for (unsigned int i = 0; node->end && i < node->n; i++) {
		if (node->end[i].member)
			ibv_detach_mcast(node->end[i].qp, &node->mgid, 0);
		if (node->end[i].qp && node->end[i].qp != node->shared)
			ibv_destroy_qp(node->end[i].qp);
		if (node->end[i].ah)
			ibv_destroy_ah(node->end[i].ah);
	}
	if (node->shared)
		ibv_destroy_qp(node->shared);
	if (node->group)
		ibv_destroy_ah(node->group);
	if (node->cq)
		ibv_destroy_cq(node->cq);
	if (node->channel)
		ibv_destroy_comp_channel(node->channel);
	if (node->mr)
		ibv_dereg_mr(node->mr);
	free(node->buf);
	free(node->end);
	free(node->wc);
	*node = (struct fan_node){0};
}

/* Queue pair and receives of an end; *addr is what the other side needs to know. */
static int make_end(struct fan_node *node, unsigned int i, struct bench_addr *addr)
{
	struct bench_dev *dev = node->env->dev;
	struct fan_end *end = &node->end[i];
	int ret = 0;

	end->qp = node->shared ? node->shared : make_qp(node, 64, node->recvs);
	if (!end->qp)
		return -errno;
	*addr = (struct bench_addr){.lid = dev->port.lid,
				    .qpn = end->qp->qp_num,
				    .psn = 1,
				    .qkey = QKEY,
				    .rkey = node->mr->rkey,
				    .vaddr = (uintptr_t)fan_msg(node, 1 + i),
				    .gid = dev->gid};
	bench_addr_swab(addr);
	if (node->shared)
		return 0;
	ret = bench_qp_init(node->env, end->qp, QKEY);
	for (unsigned int k = 0; k < node->recvs && !ret; k++)
		ret = fan_refill(node, 1 + i);
	return ret;
}

static int reach(struct fan_node *node, struct fan_end *end)
{
	int ret = 0;

	bench_addr_swab(&end->addr);
	if (!end->addr.qpn)
		return -ENODEV;
	if (!node->shared)
		ret = bench_qp_connect(node->env, end->qp, 1, &end->addr);
	if (ret || !fan_is_datagram(node->type))
		return ret;
	end->ah = bench_ah_create(node->env, &end->addr);
	return end->ah ? 0 : -errno;
}

static int join_batch(struct fan_node *node, struct bench_ctl *ctl, unsigned int first,
		      unsigned int stride, unsigned int n)
{
	struct bench_addr mine[SWAP_BATCH], theirs[SWAP_BATCH];
	int ret = 0, err;

	memset(mine, 0, sizeof(mine));
	for (unsigned int i = 0; i < n && !ret; i++)
		ret = make_end(node, first + i * stride, &mine[i]);
	/* A side that failed says so with QPN 0, or the other would wait in vain. */
	if (ret)
		memset(mine, 0, sizeof(mine));
	err = bench_ctl_swap(ctl, mine, theirs, sizeof(mine));
	for (unsigned int i = 0; i < n && !ret && !err; i++) {
		node->end[first + i * stride].addr = theirs[i];
		ret = reach(node, &node->end[first + i * stride]);
	}
	return ret ? ret : err;
}

int fan_node_join(struct fan_node *node, struct bench_ctl *ctl, unsigned int first,
		  unsigned int stride, unsigned int n)
{
	while (n) {
		unsigned int now = n < SWAP_BATCH ? n : SWAP_BATCH;
		uint32_t mine = htobe32((uint32_t)join_batch(node, ctl, first, stride, now)),
			 theirs;
		int ret = bench_ctl_swap(ctl, &mine, &theirs, sizeof(mine));

		if (ret || mine || theirs)
			return ret ? ret : mine ? (int)be32toh(mine) : -ECONNABORTED;
		first += now * stride;
		n -= now;
	}
	return 0;
}

/* How an answer is noticed: in stage 2 it is a write, whatever the type's own messages are. */
static enum fan_notice notice(const struct fan_node *node)
{
	if (node->mode == FAN_STAGE2)
		return node->type->service == FAN_RD ? FAN_BY_RECV : FAN_BY_MEMORY;
	return node->type->notice;
}

/* A multicast reaches all of its group: those who have no part in the step must not be in it, or
 * n = 1 would be measured with the work of all. The first stays, so that a switch which listens for
 * members need not learn of this host again and again. */
static int join_group(struct fan_node *node, unsigned int active)
{
	int ret = 0;

	if (node->root || node->type->func != FAN_MCAST)
		return 0;
	for (unsigned int k = 0; k < node->n && !ret; k++) {
		struct fan_end *end = &node->end[k];
		bool wanted = k < active || !k;

		if (end->member == wanted)
			continue;
		ret = wanted ? -ibv_attach_mcast(end->qp, &node->mgid, 0)
			     : -ibv_detach_mcast(end->qp, &node->mgid, 0);
		end->member = wanted;
	}
	return ret;
}

int fan_node_prepare(struct fan_node *node, enum fan_mode mode, size_t size, unsigned int active)
{
	struct ibv_wc wc;
	int ret;

	node->mode = mode;
	node->size = size;
	node->active = active;
	node->notice = notice(node);
	ret = join_group(node, active);
	if (ret)
		return ret;
	/* Leaves nothing of an earlier step behind. */
	while ((ret = fan_take(node, &wc)) > 0) {
		if (!(wc.wr_id & FAN_RECV))
			continue;
		ret = fan_refill(node, FAN_OF(wc.wr_id));
		if (ret)
			return ret;
	}
	if (ret)
		return ret;
	for (unsigned int i = 0; i < node->n; i++) {
		struct fan_end *end = &node->end[i];

		*fan_mark(node, fan_msg(node, 1 + i)) = 0; /* which is nobody's */
		end->mark = 0;
		end->seq = UINT32_MAX;
		end->done = 0;
		end->outstanding = 0;
	}
	return fan_refill_all(node);
}
