/* Verbs device: opening, and the steps that take a queue pair to RTS. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_verbs.h"

static struct ibv_context *open_by_name(const char *name)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	struct ibv_context *ctx = NULL;

	if (!list || !n) {
		fprintf(stderr,
			"%s: no verbs device here; `weft verbs %s ...` runs on the software "
			"RNIC\n",
			program_invocation_short_name, program_invocation_short_name);
		if (list)
			ibv_free_device_list(list);
		return NULL;
	}
	for (int i = 0; i < n && !ctx; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		fprintf(stderr, "%s: cannot open verbs device %s: %s\n",
			program_invocation_short_name, name ? name : "(first)",
			errno ? strerror(errno) : "not found");
	ibv_free_device_list(list);
	return ctx;
}

struct bench_dev *bench_dev_open(struct bench_env *env)
{
	struct bench_dev *dev = calloc(1, sizeof(*dev));
	uint8_t port = (uint8_t)env->ib_port;

	if (!dev)
		return NULL;
	dev->ctx = open_by_name(env->dev_name);
	if (!dev->ctx) {
		free(dev);
		return NULL;
	}
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd || ibv_query_device(dev->ctx, &dev->attr) ||
	    ibv_query_port(dev->ctx, port, &dev->port) ||
	    ibv_query_gid(dev->ctx, port, env->gid_index, &dev->gid)) {
		fprintf(stderr, "%s: %s: port %u or GID index %d cannot be used: %s\n",
			program_invocation_short_name, ibv_get_device_name(dev->ctx->device), port,
			env->gid_index, strerror(errno));
		bench_dev_close(dev);
		return NULL;
	}
	return dev;
}

void bench_dev_close(struct bench_dev *dev)
{
	if (!dev)
		return;
	if (dev->pd)
		ibv_dealloc_pd(dev->pd);
	ibv_close_device(dev->ctx);
	free(dev);
}

int bench_dev_get(struct bench_env *env)
{
	if (!env->dev && !env->no_dev)
		env->dev = bench_dev_open(env);
	env->no_dev = !env->dev;
	return env->dev ? 0 : -ENODEV;
}

struct ibv_qp *bench_qp_create(struct bench_dev *dev, struct ibv_cq *cq, enum ibv_qp_type type,
			       unsigned int sends, unsigned int recvs, unsigned int inline_max)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = {.max_send_wr = sends,
			.max_recv_wr = recvs,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = inline_max},
	};

	if (type == BENCH_QPT_RD)
		return bench_rd_create(dev, cq, &attr.cap);
	return ibv_create_qp(dev->pd, &attr);
}

int bench_qp_init(struct bench_env *env, struct ibv_qp *qp, uint32_t qkey)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = (uint8_t)env->ib_port};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	switch (qp->qp_type) {
	case IBV_QPT_UD:
	case BENCH_QPT_RD:
		attr.qkey = qkey;
		mask |= IBV_QP_QKEY;
		break;
	case IBV_QPT_UC:
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		mask |= IBV_QP_ACCESS_FLAGS;
		break;
	default:
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		if (env->dev->attr.atomic_cap != IBV_ATOMIC_NONE)
			attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
		mask |= IBV_QP_ACCESS_FLAGS;
	}
	return -ibv_modify_qp(qp, &attr, mask);
}

struct ibv_ah_attr bench_ah_attr(const struct bench_env *env, const struct bench_addr *peer)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.dlid = (uint16_t)peer->lid,
		.port_num = (uint8_t)env->ib_port,
		.grh = {.dgid = peer->gid, .sgid_index = (uint8_t)env->gid_index, .hop_limit = 64},
	};
}

struct ibv_ah *bench_ah_create(const struct bench_env *env, const struct bench_addr *peer)
{
	struct ibv_ah_attr attr = bench_ah_attr(env, peer);

	return ibv_create_ah(env->dev->pd, &attr);
}

/* max_rd_atomic is what the device can do, up to 16. */
static uint8_t reads(const struct bench_dev *dev)
{
	return (uint8_t)(dev->attr.max_qp_rd_atom < 16 ? dev->attr.max_qp_rd_atom : 16);
}

static int to_rtr(struct bench_env *env, struct ibv_qp *qp, const struct bench_addr *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = env->dev->port.active_mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = reads(env->dev),
		.min_rnr_timer = 12,
		.ah_attr = bench_ah_attr(env, peer),
	};
	int mask = IBV_QP_STATE;

	if (!bench_is_datagram(qp))
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return -ibv_modify_qp(qp, &attr, mask);
}

int bench_qp_connect(struct bench_env *env, struct ibv_qp *qp, uint32_t psn,
		     const struct bench_addr *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = reads(env->dev),
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN, ret = to_rtr(env, qp, peer);

	if (ret)
		return ret;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return -ibv_modify_qp(qp, &attr, mask);
}

void bench_addr_swab(struct bench_addr *addr)
{
	addr->lid = htobe32(addr->lid);
	addr->qpn = htobe32(addr->qpn);
	addr->psn = htobe32(addr->psn);
	addr->qkey = htobe32(addr->qkey);
	addr->rkey = htobe32(addr->rkey);
	addr->vaddr = htobe64(addr->vaddr);
}
