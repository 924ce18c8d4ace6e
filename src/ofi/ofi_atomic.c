/* Atomic operations: checked, and sent to the peer, whose processor does them. */
#include "ofi_atomic.h"
#include "ofi.h"

#define FLAGS (OFI_TX_FLAGS | FI_MORE | FI_REMOTE_CQ_DATA)

struct vec {
	const struct fi_ioc *ioc;
	size_t n;
};

struct call {
	enum ofi_atomic_class class;
	struct vec operand, compare, result;
	fi_addr_t dest;
	const struct fi_rma_ioc *remote;
	size_t n_remote;
	enum fi_datatype type;
	enum fi_op op;
	void *context;
	uint64_t flags;
};

/* How many elements; 0: that is no list. */
static uint64_t elements(const struct fi_ioc *ioc, size_t n)
{
	uint64_t count = 0;

	for (size_t i = 0; i < n && n <= MSG_IOV && ioc; i++)
		count += ioc[i].count;
	return count;
}

/* Elements in bytes. Returns how many elements; UINT64_MAX: too many, or too many pieces. */
static uint64_t to_iov(const struct vec *v, size_t size, struct iovec *iov)
{
	uint64_t count = 0;

	if (v->n > MSG_IOV || (v->n && !v->ioc))
		return UINT64_MAX;
	for (size_t i = 0; i < v->n; i++) {
		if (v->ioc[i].count > OFI_ATOMIC_MAX)
			return UINT64_MAX;
		iov[i] = (struct iovec){v->ioc[i].addr, v->ioc[i].count * size};
		count += v->ioc[i].count;
	}
	return count;
}

static size_t count_max(enum ofi_atomic_class class, size_t size)
{
	/* operand and compare travel together, in one packet */
	size_t most = ofi_conf.eager_max / (class == OFI_ATOMIC_COMPARE ? 2 : 1);

	return (most < OFI_ATOMIC_MAX ? most : OFI_ATOMIC_MAX) / size;
}

static ssize_t check(const struct call *a)
{
	if (!ofi_atomic_valid(a->class, a->type, a->op))
		return -FI_EOPNOTSUPP;
	if (a->n_remote != 1 || !a->remote || !a->remote->count || a->remote->key > UINT32_MAX)
		return -FI_EINVAL;
	if (a->remote->count > count_max(a->class, ofi_atomic_size(a->type)))
		return -FI_EMSGSIZE;
	return 0;
}

static ssize_t fill(struct msg_atomic *m, const struct call *a, size_t size)
{
	uint64_t count = a->remote->count;

	m->code = (uint8_t)a->op;
	m->type = (uint8_t)a->type;
	m->count = (uint32_t)count;
	m->n_compare = (unsigned int)a->compare.n;
	m->n_result = (unsigned int)a->result.n;
	m->op.remote[0] = (struct msg_remote){
		.addr = a->remote->addr, .len = count * size, .key = (uint32_t)a->remote->key};
	m->op.n_remote = 1;
	if ((a->compare.n && to_iov(&a->compare, size, m->compare) != count) ||
	    (a->result.n && to_iov(&a->result, size, m->result) != count))
		return -FI_EINVAL;
	return 0;
}

static ssize_t start(struct fid_ep *fid, const struct call *a)
{
	struct ofi_ep *ep = ofi_ep_of(fid);
	size_t size = ofi_atomic_size(a->type);
	struct iovec iov[MSG_IOV];
	struct ofi_call c = {.iov = iov,
			     .addr = a->dest,
			     .context = a->context,
			     /* the engine copies what it sends */
			     .flags = a->flags & ~(FI_INJECT | FI_REMOTE_CQ_DATA)};
	ssize_t ret = check(a);
	struct ofi_op *op;
	int err;

	if (ret)
		return ret;
	if (a->op != FI_ATOMIC_READ) {
		if (to_iov(&a->operand, size, iov) != a->remote->count)
			return -FI_EINVAL;
		c.n_iov = a->operand.n;
	}
	op = ofi_op_new(ep, MSG_OP_ATOMIC, &c, &ret);
	if (!op)
		return ret;
	ret = fill(&op->atomic, a, size);
	if (ret)
		return ofi_op_refused(op, (int)ret);
	op->flags = FI_ATOMIC | (a->class == OFI_ATOMIC_WRITE ? FI_WRITE : FI_READ);
	op->cq = ep->tx_cq;
	op->cntr = ep->cntr[a->class == OFI_ATOMIC_WRITE ? OFI_WRITE : OFI_READ];
	err = msg_atomic(ep->msg, &op->atomic);
	return err ? ofi_op_refused(op, err) : 0;
}

/* ---- without a result ------------------------------------------------------------------------ */

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
			     fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
			     enum fi_op op, void *context)
{
	struct fi_rma_ioc remote = {.addr = addr, .key = key};

	(void)desc;
	remote.count = elements(iov, count);
	return start(ep, &(struct call){.class = OFI_ATOMIC_WRITE,
					.operand = {iov, count},
					.dest = dest,
					.remote = &remote,
					.n_remote = 1,
					.type = type,
					.op = op,
					.context = context,
					.flags = ofi_tx_flags(ofi_ep_of(ep))});
}

static ssize_t atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
			    enum fi_op op, void *context)
{
	struct fi_ioc one = {(void *)(uintptr_t)buf, count};

	return atomic_writev(ep, &one, &desc, 1, dest, addr, key, type, op, context);
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *m, uint64_t flags)
{
	if (flags & ~FLAGS)
		return -FI_EBADFLAGS;
	return start(ep, &(struct call){.class = OFI_ATOMIC_WRITE,
					.operand = {m->msg_iov, m->iov_count},
					.dest = m->addr,
					.remote = m->rma_iov,
					.n_remote = m->rma_iov_count,
					.type = m->datatype,
					.op = m->op,
					.context = m->context,
					.flags = ofi_tx_msg_flags(ofi_ep_of(ep), flags)});
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest,
			     uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op)
{
	struct fi_rma_ioc remote = {.addr = addr, .count = count, .key = key};
	struct fi_ioc one = {(void *)(uintptr_t)buf, count};

	return start(ep, &(struct call){.class = OFI_ATOMIC_WRITE,
					.operand = {&one, 1},
					.dest = dest,
					.remote = &remote,
					.n_remote = 1,
					.type = type,
					.op = op,
					.flags = FI_INJECT});
}

/* ---- with what was there before -------------------------------------------------------------- */

static ssize_t atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_rma_ioc remote = {.addr = addr, .key = key};

	(void)desc;
	(void)result_desc;
	remote.count = elements(resultv, result_count);
	return start(ep, &(struct call){.class = OFI_ATOMIC_FETCH,
					.operand = {iov, count},
					.result = {resultv, result_count},
					.dest = dest,
					.remote = &remote,
					.n_remote = 1,
					.type = type,
					.op = op,
					.context = context,
					.flags = ofi_tx_flags(ofi_ep_of(ep))});
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
				uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc one = {(void *)(uintptr_t)buf, count}, before = {result, count};

	return atomic_readwritev(ep, &one, &desc, 1, &before, &result_desc, 1, dest, addr, key,
				 type, op, context);
}

static ssize_t atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *m,
				   struct fi_ioc *resultv, void **result_desc, size_t result_count,
				   uint64_t flags)
{
	(void)result_desc;
	if (flags & ~FLAGS)
		return -FI_EBADFLAGS;
	return start(ep, &(struct call){.class = OFI_ATOMIC_FETCH,
					.operand = {m->msg_iov, m->iov_count},
					.result = {resultv, result_count},
					.dest = m->addr,
					.remote = m->rma_iov,
					.n_remote = m->rma_iov_count,
					.type = m->datatype,
					.op = m->op,
					.context = m->context,
					.flags = ofi_tx_msg_flags(ofi_ep_of(ep), flags)});
}

/* ---- under a condition ----------------------------------------------------------------------- */

static ssize_t atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
				 enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_rma_ioc remote = {.addr = addr, .key = key};

	(void)desc;
	(void)compare_desc;
	(void)result_desc;
	remote.count = elements(iov, count);
	return start(ep, &(struct call){.class = OFI_ATOMIC_COMPARE,
					.operand = {iov, count},
					.compare = {comparev, compare_count},
					.result = {resultv, result_count},
					.dest = dest,
					.remote = &remote,
					.n_remote = 1,
					.type = type,
					.op = op,
					.context = context,
					.flags = ofi_tx_flags(ofi_ep_of(ep))});
}

static ssize_t atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
				enum fi_datatype type, enum fi_op op, void *context)
{
	struct fi_ioc one = {(void *)(uintptr_t)buf, count}, before = {result, count};
	struct fi_ioc other = {(void *)(uintptr_t)compare, count};

	return atomic_compwritev(ep, &one, &desc, 1, &other, &compare_desc, 1, &before,
				 &result_desc, 1, dest, addr, key, type, op, context);
}

static ssize_t atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *m,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	(void)compare_desc;
	(void)result_desc;
	if (flags & ~FLAGS)
		return -FI_EBADFLAGS;
	return start(ep, &(struct call){.class = OFI_ATOMIC_COMPARE,
					.operand = {m->msg_iov, m->iov_count},
					.compare = {comparev, compare_count},
					.result = {resultv, result_count},
					.dest = m->addr,
					.remote = m->rma_iov,
					.n_remote = m->rma_iov_count,
					.type = m->datatype,
					.op = m->op,
					.context = m->context,
					.flags = ofi_tx_msg_flags(ofi_ep_of(ep), flags)});
}

/* ---- what is there --------------------------------------------------------------------------- */

static int valid(enum ofi_atomic_class class, enum fi_datatype type, enum fi_op op, size_t *count)
{
	if (!count)
		return -FI_EINVAL;
	*count = 0;
	if (!ofi_atomic_valid(class, type, op))
		return -FI_EOPNOTSUPP;
	*count = count_max(class, ofi_atomic_size(type));
	return 0;
}

static int write_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)ep;
	return valid(OFI_ATOMIC_WRITE, type, op, count);
}

static int fetch_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)ep;
	return valid(OFI_ATOMIC_FETCH, type, op, count);
}

static int compare_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
	(void)ep;
	return valid(OFI_ATOMIC_COMPARE, type, op, count);
}

int ofi_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags)
{
	enum ofi_atomic_class class = flags & FI_COMPARE_ATOMIC ? OFI_ATOMIC_COMPARE
				      : flags & FI_FETCH_ATOMIC ? OFI_ATOMIC_FETCH
								: OFI_ATOMIC_WRITE;

	(void)domain;
	if (flags & ~(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC))
		return -FI_EBADFLAGS;
	if (!ofi_atomic_valid(class, type, op))
		return -FI_EOPNOTSUPP;
	attr->size = ofi_atomic_size(type);
	attr->count = count_max(class, attr->size);
	return 0;
}

struct fi_ops_atomic ofi_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = write_valid,
	.readwritevalid = fetch_valid,
	.compwritevalid = compare_valid,
};
