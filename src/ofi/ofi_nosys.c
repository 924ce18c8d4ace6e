/* What is not there, and names for what goes wrong. */
#include "ofi.h"

int ofi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	(void)fid;
	(void)bfid;
	(void)flags;
	return -FI_ENOSYS;
}

int ofi_no_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)command;
	(void)arg;
	return -FI_ENOSYS;
}

int ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

int ofi_errno(int err)
{
	/* The engine says that a message was longer than its receive; libfabric's EMSGSIZE is about
	 * what a call asks for. */
	return err == -EMSGSIZE ? -FI_ETRUNC : err;
}
