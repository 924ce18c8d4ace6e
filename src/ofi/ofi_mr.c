/* Registered memory. Addresses of peers are virtual ones, and keys are the device's own; without
 * remote access a registration is only a promise, since the engine reaches all of the process'
 * memory for its own transfers. */
#include <stdlib.h>
#include "ofi.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define ACCESS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_COLLECTIVE | REMOTE)

static int mr_close(struct fid *fid)
{
	struct ofi_mr *m = container_of(fid, struct ofi_mr, fid.fid);

	if (m->mem)
		msg_dereg(m->mem);
	atomic_fetch_sub(&m->domain->users, 1);
	free(m);
	return 0;
}

/* Remote writes are not counted per region (FI_RMA_EVENT). */
static int mr_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = ofi_no_bind,
	.control = mr_control,
	.ops_open = ofi_no_ops_open,
};

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr)
{
	struct ofi_domain *d = container_of(fid, struct ofi_domain, fid.fid);
	struct ofi_mr *m;
	uint32_t key = 0;
	bool remote;
	int err = 0;

	if (fid->fclass != FI_CLASS_DOMAIN || !attr || attr->iov_count != 1 || !attr->mr_iov ||
	    attr->access & ~ACCESS || attr->offset || attr->iface != FI_HMEM_SYSTEM)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -FI_ENOMEM;
	m->domain = d;
	remote = attr->access & REMOTE && attr->mr_iov->iov_len;
	if (remote)
		err = msg_reg(d->dev, attr->mr_iov->iov_base, attr->mr_iov->iov_len,
			      attr->access & FI_REMOTE_WRITE, &m->mem, &key);
	if (err) {
		free(m);
		return ofi_errno(err);
	}
	m->fid.fid = (struct fid){FI_CLASS_MR, attr->context, &mr_fid_ops};
	m->fid.mem_desc = m;
	m->fid.key = remote ? key : FI_KEY_NOTAVAIL;
	atomic_fetch_add(&d->users, 1);
	*mr = &m->fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
		   uint64_t offset, uint64_t requested_key, uint64_t flags, struct fid_mr **mr,
		   void *context)
{
	struct fi_mr_attr attr = {.mr_iov = iov,
				  .iov_count = count,
				  .access = access,
				  .offset = offset,
				  .requested_key = requested_key,
				  .context = context};

	return mr_regattr(fid, &attr, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		  uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

struct fi_ops_mr ofi_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
