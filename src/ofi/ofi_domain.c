#include <stdlib.h>
#include <string.h>
#include "ofi.h"

static int domain_close(struct fid *fid)
{
	struct ofi_domain *d = container_of(fid, struct ofi_domain, fid.fid);

	if (atomic_load(&d->users))
		return -FI_EBUSY;
	msg_dev_close(d->dev);
	atomic_fetch_sub(&d->fabric->users, 1);
	free(d);
	return 0;
}

/* An event queue may be bound, and will get nothing: registrations are over when they return. */
static int domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	if (bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return flags & ~FI_REG_MR ? -FI_EINVAL : 0;
}

static struct fi_ops domain_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = domain_close,
	.bind = domain_bind,
	.control = ofi_no_control,
	.ops_open = ofi_no_ops_open,
};

static int no_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			  void *context)
{
	(void)domain;
	(void)info;
	(void)sep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
			struct fid_poll **pollset)
{
	(void)domain;
	(void)attr;
	(void)pollset;
	return -FI_ENOSYS;
}

static int no_stx(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		  void *context)
{
	(void)domain;
	(void)attr;
	(void)stx;
	(void)context;
	return -FI_ENOSYS;
}

static int no_srx(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **rx,
		  void *context)
{
	(void)domain;
	(void)attr;
	(void)rx;
	(void)context;
	return -FI_ENOSYS;
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = ofi_av_open,
	.cq_open = ofi_cq_open,
	.endpoint = ofi_ep_open,
	.scalable_ep = no_scalable_ep,
	.cntr_open = ofi_cntr_open,
	.poll_open = no_poll_open,
	.stx_ctx = no_stx,
	.srx_ctx = no_srx,
	.query_atomic = ofi_query_atomic,
};

int ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		    void *context)
{
	struct ofi_fabric *f = container_of(fabric, struct ofi_fabric, fid);
	struct msg_dev_conf conf = ofi_conf.dev;
	struct ofi_domain *d;
	int err;

	if (!info || !info->domain_attr || ofi_check_info(fabric->api_version, info))
		return -FI_EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -FI_ENOMEM;
	if (info->domain_attr->name)
		conf.name = info->domain_attr->name;
	err = msg_dev_open_conf(&conf, &d->dev);
	if (err) {
		OFI_WARN(DOMAIN, "device %s can not be opened: %s\n",
			 conf.name ? conf.name : "(any)", fi_strerror(-err));
		free(d);
		return err;
	}
	d->fid.fid = (struct fid){FI_CLASS_DOMAIN, context, &domain_fid_ops};
	d->fid.ops = &domain_ops;
	d->fid.mr = &ofi_mr_ops;
	d->fabric = f;
	atomic_fetch_add(&f->users, 1);
	*domain = &d->fid;
	return 0;
}
