#include <stdlib.h>
#include <string.h>
#include "ofi.h"

static int fabric_close(struct fid *fid)
{
	struct ofi_fabric *f = container_of(fid, struct ofi_fabric, fid.fid);

	if (atomic_load(&f->users))
		return -FI_EBUSY;
	free(f);
	return 0;
}

static struct fi_ops fabric_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = fabric_close,
	.bind = ofi_no_bind,
	.control = ofi_no_control,
	.ops_open = ofi_no_ops_open,
};

static int no_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			 void *context)
{
	(void)fabric;
	(void)info;
	(void)pep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **set)
{
	(void)fabric;
	(void)attr;
	(void)set;
	return -FI_ENOSYS;
}

static int fabric_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int err = 0;

	(void)fabric;
	for (int i = 0; i < count && !err; i++)
		switch (fids[i]->fclass) {
		case FI_CLASS_CQ:
			err = ofi_cq_trywait(container_of(fids[i], struct ofi_cq, fid.fid));
			break;
		case FI_CLASS_CNTR:
			err = ofi_cntr_trywait(container_of(fids[i], struct ofi_cntr, fid.fid));
			break;
		case FI_CLASS_EQ:
			if (!ofi_eq_empty(container_of(fids[i], struct ofi_eq, fid.fid)))
				err = -FI_EAGAIN;
			break;
		default:
			err = -FI_EINVAL;
		}
	return err;
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = ofi_domain_open,
	.passive_ep = no_passive_ep,
	.eq_open = ofi_eq_open,
	.wait_open = no_wait_open,
	.trywait = fabric_trywait,
};

int ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct ofi_fabric *f;

	if (attr->name && strcmp(attr->name, OFI_NAME) != 0) {
		OFI_INFO(FABRIC, "fabric %s is not ours\n", attr->name);
		return -FI_ENODATA;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -FI_ENOMEM;
	f->fid.fid = (struct fid){FI_CLASS_FABRIC, context, &fabric_fid_ops};
	f->fid.ops = &fabric_ops;
	f->fid.api_version = attr->api_version;
	*fabric = &f->fid;
	return 0;
}
