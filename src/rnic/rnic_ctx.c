/* Opening the device, and asking it what it is. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "rnic_conn.h"

/* Not an assigned vendor: programs that have tables of known adapters must not find us
 * there and take us for one. */
#define VENDOR_ID      0x57656674 /* "Weft" */
#define VENDOR_PART_ID 1

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	(void)pd;
	(void)type;
	errno = EOPNOTSUPP;
	return NULL;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	(void)qp;
	(void)mw;
	(void)bind;
	return EOPNOTSUPP;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	(void)mw;
	return EOPNOTSUPP;
}

static int query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex full = {0};
	int err;

	if (input && input->comp_mask)
		return EINVAL;
	if (size < sizeof(full.orig_attr))
		return EINVAL;
	err = rnic_query_device(ctx, &full.orig_attr);
	if (err)
		return err;
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = 1000000; /* kHz: stamps are nanoseconds */
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	full.phys_port_cnt_ex = 1;
	memset(attr, 0, size);
	memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	return 0;
}

static int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	int err = 0;

	(void)ctx;
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		err = EOPNOTSUPP;
	else if (clock_gettime(CLOCK_MONOTONIC, &values->raw_clock))
		err = errno;
	values->comp_mask = err ? 0 : IBV_VALUES_MASK_RAW_CLOCK;
	return err;
}

static int query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr,
		      size_t size)
{
	struct ibv_port_attr full = {0};
	int err = rnic_query_port(ctx, port, &full);

	if (!err) {
		memset(attr, 0, size);
		memcpy(attr, &full, size < sizeof(full) ? size : sizeof(full));
	}
	return err;
}

static struct ibv_srq *create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq_init_attr basic = {.srq_context = attr->srq_context, .attr = attr->attr};
	struct ibv_srq *srq;

	(void)ctx;
	if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_BASIC) ||
	    attr->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD) ||
	    !(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	srq = rnic_create_srq(attr->pd, &basic);
	if (srq)
		attr->attr = basic.attr;
	return srq;
}

static void set_ops(struct verbs_context *v)
{
	v->sz = sizeof(*v);
	v->query_port = query_port;
	v->query_device_ex = query_device_ex;
	v->query_rt_values = query_rt_values;
	v->create_qp_ex = rnic_create_qp_ex;
	v->create_cq_ex = rnic_create_cq_ex;
	v->create_srq_ex = create_srq_ex;
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.poll_cq = rnic_poll_cq;
	v->context.ops.req_notify_cq = rnic_req_notify_cq;
	v->context.ops.post_send = rnic_post_send;
	v->context.ops.post_recv = rnic_post_recv;
	v->context.ops.post_srq_recv = rnic_post_srq_recv;
	v->context.ops.alloc_mw = alloc_mw;
	v->context.ops.bind_mw = bind_mw;
	v->context.ops.dealloc_mw = dealloc_mw;
}

struct ibv_context *rnic_open_device(struct ibv_device *dev)
{
	struct rnic_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->vctx.context.async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ctx->vctx.context.async_fd < 0)
		goto fail;
	ctx->e = rnic_engine_get();
	if (!ctx->e) {
		close(ctx->vctx.context.async_fd);
		goto fail;
	}
	rnic_guard_init();
	atomic_store(&ctx->refs, 1);
	ctx->dev = (const struct rnic_device *)dev;
	ctx->vctx.context.device = dev;
	ctx->vctx.context.cmd_fd = -1;
	ctx->vctx.context.num_comp_vectors = 1;
	pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
	pthread_mutex_init(&ctx->ev_lock, NULL);
	list_init(&ctx->events);
	set_ops(&ctx->vctx);
	rnic_lock(ctx->e);
	list_add_tail(&ctx->link, &ctx->e->contexts);
	rnic_unlock(ctx->e);
	return &ctx->vctx.context;
fail:
	free(ctx);
	return NULL;
}

void rnic_ctx_hold(struct ibv_context *ibctx)
{
	atomic_fetch_add(&rnic_ctx(ibctx)->refs, 1);
}

void rnic_ctx_put(struct ibv_context *ibctx)
{
	struct rnic_ctx *ctx = rnic_ctx(ibctx);

	if (atomic_fetch_sub(&ctx->refs, 1) > 1)
		return;
	rnic_lock(ctx->e);
	list_del(&ctx->link);
	rnic_unlock(ctx->e);
	rnic_event_drop_all(ctx);
	if (ibctx->async_fd >= 0)
		close(ibctx->async_fd);
	rnic_engine_put(ctx->e);
	pthread_mutex_destroy(&ctx->ev_lock);
	pthread_mutex_destroy(&ibctx->mutex);
	free(ctx);
}

int rnic_close_device(struct ibv_context *ctx)
{
	rnic_ctx_put(ctx);
	return 0;
}

int rnic_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){
		.fw_ver = "weft",
		.node_guid = rnic_device_guid(ctx->device),
		.sys_image_guid = rnic_device_guid(ctx->device),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = (uint64_t)sysconf(_SC_PAGESIZE),
		.vendor_id = VENDOR_ID,
		.vendor_part_id = VENDOR_PART_ID,
		.max_qp = RNIC_MAX_QP,
		.max_qp_wr = RNIC_MAX_WR,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SYS_IMAGE_GUID,
		.max_sge = RNIC_MAX_SGE,
		.max_sge_rd = RNIC_MAX_SGE,
		.max_cq = 65536,
		.max_cqe = RNIC_MAX_CQE,
		.max_mr = 1 << 24,
		.max_pd = 1 << 20,
		.max_qp_rd_atom = RNIC_MAX_RD_ATOMIC,
		.max_res_rd_atom = RNIC_MAX_RD_ATOMIC * RNIC_MAX_QP,
		.max_qp_init_rd_atom = RNIC_MAX_RD_ATOMIC,
		.atomic_cap = IBV_ATOMIC_HCA, /* in truth GLOB, which UCX 1.13 takes for none */
		.max_mcast_grp = 4096,
		.max_mcast_qp_attach = 4096,
		.max_total_mcast_qp_attach = 65536,
		.max_ah = 1 << 20,
		.max_srq = 65536,
		.max_srq_wr = RNIC_MAX_WR,
		.max_srq_sge = RNIC_MAX_SGE,
		.max_pkeys = 1,
		.phys_port_cnt = 1,
	};
	return 0;
}

int rnic_query_port(struct ibv_context *ibctx, uint8_t port, struct ibv_port_attr *attr)
{
	const struct rnic_device *dev = rnic_ctx(ibctx)->dev;

	if (port != 1)
		return EINVAL;
	*attr = (struct ibv_port_attr){
		.state = IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = IBV_MTU_4096,
		.gid_tbl_len = dev->n_addr,
		.max_msg_sz = RNIC_MAX_MSG,
		.pkey_tbl_len = 1,
		.lid = (uint16_t)ntohl(dev->addr[0].addr.s_addr),
		.max_vl_num = 1,
		.active_width = 2,  /* 4x */
		.active_speed = 32, /* EDR, for programs that compute a rate */
		.phys_state = 5,    /* LinkUp */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	return 0;
}

int rnic_query_gid_entry(struct ibv_context *ibctx, uint32_t port, uint32_t index,
			 struct ibv_gid_entry *entry)
{
	const struct rnic_device *dev = rnic_ctx(ibctx)->dev;

	if (port != 1)
		return EINVAL;
	if (index >= (uint32_t)dev->n_addr)
		return EINVAL;
	memset(entry, 0, sizeof(*entry));
	entry->gid.raw[10] = entry->gid.raw[11] = 0xff;
	memcpy(entry->gid.raw + 12, &dev->addr[index].addr, 4);
	entry->gid_index = index;
	entry->port_num = 1;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	entry->ndev_ifindex = dev->addr[index].ifindex;
	return 0;
}

int rnic_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx;
	if (port != 1 || index)
		return EINVAL;
	*pkey = htons(0xffff);
	return 0;
}
