/* Tagged messages. */
#include "ofi.h"

#define SEND_FLAGS (OFI_TX_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE)
#define RECV_FLAGS (FI_COMPLETION | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MORE)

static ssize_t trecv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
		     uint64_t tag, uint64_t ignore, void *context)
{
	struct ofi_ep *ep = ofi_ep_of(fid);
	struct iovec iov = {buf, len};

	(void)desc;
	return ofi_recv(ep, &(struct ofi_call){.iov = &iov,
					       .n_iov = 1,
					       .addr = src,
					       .tag = tag,
					       .ignore = ignore,
					       .context = context,
					       .flags = ofi_rx_flags(ep) | FI_TAGGED});
}

static ssize_t trecvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	struct ofi_ep *ep = ofi_ep_of(fid);

	(void)desc;
	return ofi_recv(ep, &(struct ofi_call){.iov = iov,
					       .n_iov = count,
					       .addr = src,
					       .tag = tag,
					       .ignore = ignore,
					       .context = context,
					       .flags = ofi_rx_flags(ep) | FI_TAGGED});
}

static ssize_t trecvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ofi_ep *ep = ofi_ep_of(fid);

	if (flags & ~RECV_FLAGS || (flags & FI_DISCARD && !(flags & (FI_PEEK | FI_CLAIM))))
		return -FI_EBADFLAGS;
	return ofi_recv(ep, &(struct ofi_call){.iov = msg->msg_iov,
					       .n_iov = msg->iov_count,
					       .addr = msg->addr,
					       .tag = msg->tag,
					       .ignore = msg->ignore,
					       .context = msg->context,
					       .flags = ofi_rx_msg_flags(ep, flags) | FI_TAGGED});
}

static ssize_t send_one(struct ofi_ep *ep, const void *buf, size_t len, uint64_t data,
			fi_addr_t dest, uint64_t tag, void *context, uint64_t flags)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return ofi_send(ep, &(struct ofi_call){.iov = &iov,
					       .n_iov = 1,
					       .addr = dest,
					       .tag = tag,
					       .data = data,
					       .context = context,
					       .flags = flags | FI_TAGGED});
}

static ssize_t tsend(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t dest,
		     uint64_t tag, void *context)
{
	(void)desc;
	return send_one(ofi_ep_of(fid), buf, len, 0, dest, tag, context,
			ofi_tx_flags(ofi_ep_of(fid)));
}

static ssize_t tsendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		      fi_addr_t dest, uint64_t tag, void *context)
{
	struct ofi_ep *ep = ofi_ep_of(fid);

	(void)desc;
	return ofi_send(ep, &(struct ofi_call){.iov = iov,
					       .n_iov = count,
					       .addr = dest,
					       .tag = tag,
					       .context = context,
					       .flags = ofi_tx_flags(ep) | FI_TAGGED});
}

static ssize_t tsendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ofi_ep *ep = ofi_ep_of(fid);

	if (flags & ~SEND_FLAGS)
		return -FI_EBADFLAGS;
	return ofi_send(ep, &(struct ofi_call){.iov = msg->msg_iov,
					       .n_iov = msg->iov_count,
					       .addr = msg->addr,
					       .tag = msg->tag,
					       .data = msg->data,
					       .context = msg->context,
					       .flags = ofi_tx_msg_flags(ep, flags) | FI_TAGGED});
}

static ssize_t tinject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest,
		       uint64_t tag)
{
	return send_one(ofi_ep_of(fid), buf, len, 0, dest, tag, NULL, FI_INJECT);
}

static ssize_t tsenddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			 fi_addr_t dest, uint64_t tag, void *context)
{
	(void)desc;
	return send_one(ofi_ep_of(fid), buf, len, data, dest, tag, context,
			ofi_tx_flags(ofi_ep_of(fid)) | FI_REMOTE_CQ_DATA);
}

static ssize_t tinjectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			   fi_addr_t dest, uint64_t tag)
{
	return send_one(ofi_ep_of(fid), buf, len, data, dest, tag, NULL,
			FI_INJECT | FI_REMOTE_CQ_DATA);
}

struct fi_ops_tagged ofi_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = trecv,
	.recvv = trecvv,
	.recvmsg = trecvmsg,
	.send = tsend,
	.sendv = tsendv,
	.sendmsg = tsendmsg,
	.inject = tinject,
	.senddata = tsenddata,
	.injectdata = tinjectdata,
};
