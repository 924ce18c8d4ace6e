/* Endpoints: what is asked of them besides moving data. */
#include <string.h>
#include "ofi.h"

/* ---- names ----------------------------------------------------------------------------------- */

static int cm_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	struct msg_addr own;
	size_t room = *addrlen;

	*addrlen = sizeof(own);
	if (!ep->msg)
		return -FI_EOPBADSTATE;
	own = msg_ep_addr(ep->msg);
	if (addr && room)
		memcpy(addr, &own, room < sizeof(own) ? room : sizeof(own));
	return addr && room >= sizeof(own) ? 0 : -FI_ETOOSMALL;
}

static int no_setname(fid_t fid, void *addr, size_t addrlen)
{
	(void)fid;
	(void)addr;
	(void)addrlen;
	return -FI_ENOSYS;
}

static int no_getpeer(struct fid_ep *ep, void *addr, size_t *addrlen)
{
	(void)ep;
	(void)addr;
	(void)addrlen;
	return -FI_ENOSYS;
}

static int no_connect(struct fid_ep *ep, const void *addr, const void *param, size_t len)
{
	(void)ep;
	(void)addr;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_listen(struct fid_pep *pep)
{
	(void)pep;
	return -FI_ENOSYS;
}

static int no_accept(struct fid_ep *ep, const void *param, size_t len)
{
	(void)ep;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_reject(struct fid_pep *pep, fid_t handle, const void *param, size_t len)
{
	(void)pep;
	(void)handle;
	(void)param;
	(void)len;
	return -FI_ENOSYS;
}

static int no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	(void)ep;
	(void)flags;
	return -FI_ENOSYS;
}

static int no_join(struct fid_ep *ep, const void *addr, uint64_t flags, struct fid_mc **mc,
		   void *context)
{
	(void)ep;
	(void)addr;
	(void)flags;
	(void)mc;
	(void)context;
	return -FI_ENOSYS;
}

struct fi_ops_cm ofi_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = no_setname,
	.getname = cm_getname,
	.getpeer = no_getpeer,
	.connect = no_connect,
	.listen = no_listen,
	.accept = no_accept,
	.reject = no_reject,
	.shutdown = no_shutdown,
	.join = no_join,
};

/* ---- cancelling ------------------------------------------------------------------------------ */

static struct ofi_op *find_recv(struct ofi_pool *p, const void *context)
{
	for (uint32_t i = 0; i < p->n_chunks; i++)
		for (unsigned int k = 0; k < OFI_POOL_CHUNK; k++) {
			struct ofi_op *op = &p->chunk[i][k];

			/* relaxed: if it is done at this moment, the engine says so */
			if (atomic_load_explicit(&op->busy, memory_order_relaxed) &&
			    op->context == context)
				return op;
		}
	return NULL;
}

/* Looks at all operations: this is rare, and posting a receive is not. */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);
	struct ofi_op *op;
	int err = -FI_ENOENT;

	if (!ep->msg)
		return -FI_EOPBADSTATE;
	util_lock(&ep->ops.lock);
	op = find_recv(&ep->ops, context);
	if (op)
		err = msg_cancel(ep->msg, &op->op);
	util_unlock(&ep->ops.lock);
	return err;
}

/* ---- options --------------------------------------------------------------------------------- */

static int ep_getopt(fid_t fid, int level, int name, void *val, size_t *len)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (*len < sizeof(size_t))
		return -FI_ETOOSMALL;
	*(size_t *)val = ep->min_multi_recv;
	*len = sizeof(size_t);
	return 0;
}

static int ep_setopt(fid_t fid, int level, int name, const void *val, size_t len)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV)
		return -FI_ENOPROTOOPT;
	if (len < sizeof(size_t))
		return -FI_EINVAL;
	ep->min_multi_recv = *(const size_t *)val;
	return 0;
}

static int no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr, struct fid_ep **ep,
		     void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)ep;
	(void)context;
	return -FI_ENOSYS;
}

static int no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr, struct fid_ep **ep,
		     void *context)
{
	(void)sep;
	(void)index;
	(void)attr;
	(void)ep;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t no_size_left(struct fid_ep *ep)
{
	(void)ep;
	return -FI_ENOSYS;
}

struct fi_ops_ep ofi_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = ep_cancel,
	.getopt = ep_getopt,
	.setopt = ep_setopt,
	.tx_ctx = no_tx_ctx,
	.rx_ctx = no_rx_ctx,
	.rx_size_left = no_size_left,
	.tx_size_left = no_size_left,
};
