/* What is not there, names for what goes wrong, and when it is too late. */
#include <stdio.h>
#include "util_clock.h"
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

const char *ofi_strerror(int prov_errno, char *buf, size_t len)
{
	if (buf && len)
		snprintf(buf, len, "%s", fi_strerror(prov_errno));
	return fi_strerror(prov_errno);
}

uint64_t ofi_deadline(int timeout)
{
	return timeout < 0 ? UINT64_MAX : util_now_ns() + (uint64_t)timeout * UTIL_NS_PER_MS;
}
