/* Messages without tags. */
#include "ofi.h"

#define SEND_FLAGS (OFI_TX_FLAGS | FI_REMOTE_CQ_DATA | FI_MORE)
#define RECV_FLAGS (OFI_RX_FLAGS | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MORE)

static ssize_t recv_one(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src,
			void *context)
{
	struct ofi_ep *ep = ofi_ep_of(fid);
	struct iovec iov = {buf, len};

	(void)desc;
	return ofi_recv(ep, &(struct ofi_call){.iov = &iov,
					       .n_iov = 1,
					       .addr = src,
					       .context = context,
					       .flags = ofi_rx_flags(ep)});
}

static ssize_t recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		     fi_addr_t src, void *context)
{
	struct ofi_ep *ep = ofi_ep_of(fid);

	(void)desc;
	return ofi_recv(ep, &(struct ofi_call){.iov = iov,
					       .n_iov = count,
					       .addr = src,
					       .context = context,
					       .flags = ofi_rx_flags(ep)});
}

static ssize_t recvmsg_flags(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ofi_ep *ep = ofi_ep_of(fid);

	if (flags & ~RECV_FLAGS || (flags & FI_DISCARD && !(flags & (FI_PEEK | FI_CLAIM))))
		return -FI_EBADFLAGS;
	if (flags & FI_MULTI_RECV && msg->iov_count != 1)
		return -FI_EINVAL;
	return ofi_recv(ep, &(struct ofi_call){.iov = msg->msg_iov,
					       .n_iov = msg->iov_count,
					       .addr = msg->addr,
					       .context = msg->context,
					       .flags = ofi_rx_msg_flags(ep, flags)});
}

static ssize_t send_one(struct ofi_ep *ep, const void *buf, size_t len, uint64_t data,
			fi_addr_t dest, void *context, uint64_t flags)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return ofi_send(ep, &(struct ofi_call){.iov = &iov,
					       .n_iov = 1,
					       .addr = dest,
					       .data = data,
					       .context = context,
					       .flags = flags});
}

static ssize_t send_plain(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			  fi_addr_t dest, void *context)
{
	(void)desc;
	return send_one(ofi_ep_of(fid), buf, len, 0, dest, context, ofi_tx_flags(ofi_ep_of(fid)));
}

static ssize_t sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
		     fi_addr_t dest, void *context)
{
	struct ofi_ep *ep = ofi_ep_of(fid);

	(void)desc;
	return ofi_send(ep, &(struct ofi_call){.iov = iov,
					       .n_iov = count,
					       .addr = dest,
					       .context = context,
					       .flags = ofi_tx_flags(ep)});
}

static ssize_t sendmsg_flags(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ofi_ep *ep = ofi_ep_of(fid);

	if (flags & ~SEND_FLAGS)
		return -FI_EBADFLAGS;
	return ofi_send(ep, &(struct ofi_call){.iov = msg->msg_iov,
					       .n_iov = msg->iov_count,
					       .addr = msg->addr,
					       .data = msg->data,
					       .context = msg->context,
					       .flags = ofi_tx_msg_flags(ep, flags)});
}

static ssize_t inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest)
{
	return send_one(ofi_ep_of(fid), buf, len, 0, dest, NULL, FI_INJECT);
}

static ssize_t senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc, uint64_t data,
			fi_addr_t dest, void *context)
{
	(void)desc;
	return send_one(ofi_ep_of(fid), buf, len, data, dest, context,
			ofi_tx_flags(ofi_ep_of(fid)) | FI_REMOTE_CQ_DATA);
}

static ssize_t injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			  fi_addr_t dest)
{
	return send_one(ofi_ep_of(fid), buf, len, data, dest, NULL, FI_INJECT | FI_REMOTE_CQ_DATA);
}

struct fi_ops_msg ofi_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = recv_one,
	.recvv = recvv,
	.recvmsg = recvmsg_flags,
	.send = send_plain,
	.sendv = sendv,
	.sendmsg = sendmsg_flags,
	.inject = inject,
	.senddata = senddata,
	.injectdata = injectdata,
};
