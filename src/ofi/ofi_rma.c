/* Reads and writes of a peer's memory. */
#include "ofi.h"

#define WRITE_FLAGS (OFI_TX_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE)
#define READ_FLAGS  (OFI_TX_FLAGS | FI_MORE)

struct where {
	const struct fi_rma_iov *iov;
	size_t n;
};

static ssize_t fill_remote(struct msg_op *op, const struct where *to, uint64_t local)
{
	uint64_t remote = 0;

	if (to->n > MSG_IOV || (to->n && !to->iov))
		return -FI_EINVAL;
	for (size_t i = 0; i < to->n; i++) {
		if (to->iov[i].key > UINT32_MAX)
			return -FI_EINVAL;
		op->remote[i] = (struct msg_remote){.addr = to->iov[i].addr,
						    .len = to->iov[i].len,
						    .key = (uint32_t)to->iov[i].key};
		remote += to->iov[i].len;
	}
	op->n_remote = (unsigned int)to->n;
	return remote == local ? 0 : -FI_EINVAL;
}

static ssize_t start(struct ofi_ep *ep, enum msg_op_kind kind, const struct ofi_call *c,
		     const struct where *to)
{
	ssize_t ret;
	struct ofi_op *op = ofi_op_new(ep, kind, c, &ret);
	uint64_t len = 0;
	int err;

	if (!op)
		return ret;
	for (size_t i = 0; i < c->n_iov; i++)
		len += c->iov[i].iov_len;
	ret = fill_remote(&op->op, to, len);
	if (!ret && c->flags & FI_INJECT)
		ret = ofi_op_bounce(op);
	if (ret)
		return ofi_op_refused(op, (int)ret);
	op->flags = FI_RMA | (kind == MSG_OP_READ ? FI_READ : FI_WRITE);
	op->cq = ep->tx_cq;
	op->cntr = ep->cntr[kind == MSG_OP_READ ? OFI_READ : OFI_WRITE];
	err = msg_rma(ep->msg, &op->op);
	return err ? ofi_op_refused(op, err) : 0;
}

/* One piece on the other side, as long as those on this. */
static ssize_t start_v(struct ofi_ep *ep, enum msg_op_kind kind, const struct ofi_call *c,
		       uint64_t addr, uint64_t key)
{
	struct fi_rma_iov one = {.addr = addr, .key = key};
	struct where to = {&one, 1};

	for (size_t i = 0; i < c->n_iov && c->n_iov <= MSG_IOV && c->iov; i++)
		one.len += c->iov[i].iov_len;
	return start(ep, kind, c, &to);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src, uint64_t addr, uint64_t key, void *context)
{
	struct ofi_ep *ep = ofi_ep_of(fid);
	struct ofi_call c = {.iov = iov,
			     .n_iov = count,
			     .addr = src,
			     .context = context,
			     .flags = ofi_tx_flags(ep) & ~FI_INJECT};

	(void)desc;
	return start_v(ep, MSG_OP_READ, &c, addr, key);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			uint64_t addr, uint64_t key, void *context)
{
	struct iovec iov = {buf, len};

	return rma_readv(fid, &iov, &desc, 1, src, addr, key, context);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ofi_ep *ep = ofi_ep_of(fid);
	struct where to = {msg->rma_iov, msg->rma_iov_count};

	if (flags & ~READ_FLAGS)
		return -FI_EBADFLAGS;
	return start(ep, MSG_OP_READ,
		     &(struct ofi_call){.iov = msg->msg_iov,
					.n_iov = msg->iov_count,
					.addr = msg->addr,
					.context = msg->context,
					.flags = ofi_tx_msg_flags(ep, flags) & ~FI_INJECT},
		     &to);
}

static ssize_t write_one(struct ofi_ep *ep, const void *buf, size_t len, uint64_t data,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context, uint64_t flags)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};
	struct ofi_call c = {.iov = &iov,
			     .n_iov = 1,
			     .addr = dest,
			     .data = data,
			     .context = context,
			     .flags = flags};

	return start_v(ep, MSG_OP_WRITE, &c, addr, key);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	(void)desc;
	return write_one(ofi_ep_of(fid), buf, len, 0, dest, addr, key, context,
			 ofi_tx_flags(ofi_ep_of(fid)));
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest, uint64_t addr, uint64_t key, void *context)
{
	struct ofi_ep *ep = ofi_ep_of(fid);
	struct ofi_call c = {.iov = iov,
			     .n_iov = count,
			     .addr = dest,
			     .context = context,
			     .flags = ofi_tx_flags(ep)};

	(void)desc;
	return start_v(ep, MSG_OP_WRITE, &c, addr, key);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ofi_ep *ep = ofi_ep_of(fid);
	struct where to = {msg->rma_iov, msg->rma_iov_count};

	if (flags & ~WRITE_FLAGS)
		return -FI_EBADFLAGS;
	return start(ep, MSG_OP_WRITE,
		     &(struct ofi_call){.iov = msg->msg_iov,
					.n_iov = msg->iov_count,
					.addr = msg->addr,
					.data = msg->data,
					.context = msg->context,
					.flags = ofi_tx_msg_flags(ep, flags)},
		     &to);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
			  uint64_t addr, uint64_t key)
{
	return write_one(ofi_ep_of(fid), buf, len, 0, dest, addr, key, NULL, FI_INJECT);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest, uint64_t addr, uint64_t key,
			     void *context)
{
	(void)desc;
	return write_one(ofi_ep_of(fid), buf, len, data, dest, addr, key, context,
			 ofi_tx_flags(ofi_ep_of(fid)) | FI_REMOTE_CQ_DATA);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest, uint64_t addr, uint64_t key)
{
	return write_one(ofi_ep_of(fid), buf, len, data, dest, addr, key, NULL,
			 FI_INJECT | FI_REMOTE_CQ_DATA);
}

struct fi_ops_rma ofi_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
