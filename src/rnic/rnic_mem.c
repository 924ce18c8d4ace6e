#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "util_log.h"
#include "util_rand.h"
#include "rnic_ctx.h"
#include "rnic_mem.h"
#include "rnic_table.h"

#define ACCESS_KNOWN                                                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |                   \
	 IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING | IBV_ACCESS_ON_DEMAND)

#define ACCESS_WRITES (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct ibv_pd *rnic_alloc_pd(struct ibv_context *ctx)
{
	struct rnic_pd *pd;

	if (rnic_ctx(ctx)->e->dead) {
		errno = EIO;
		return NULL;
	}
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	pd->ibv.context = ctx;
	rnic_ctx_hold(ctx);
	return &pd->ibv;
}

int rnic_dealloc_pd(struct ibv_pd *ibpd)
{
	if (atomic_load(&rnic_pd(ibpd)->refs))
		return EBUSY;
	rnic_ctx_put(ibpd->context);
	free(ibpd);
	return 0;
}

/* Registration on hardware fails for memory that is not there; so does ours, where
 * the kernel can tell (Linux 5.14). Pages that are never touched stay untouched:
 * populating a large region would cost memory that the application may not have. */
static int check_mapped(const char *addr, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)addr & ~(page - 1);
	uintptr_t last = ((uintptr_t)addr + len - 1) & ~(page - 1);

	if (!len)
		return 0;
	/* MADV_NORMAL-like advice on unmapped ranges is ENOMEM; MS_ASYNC does nothing
	 * but walk the mappings. */
	if (msync((void *)first, last - first + page, MS_ASYNC) && errno == ENOMEM)
		return EFAULT;
	return 0;
}

static int check_access(unsigned int access)
{
	if (access & ~(unsigned int)ACCESS_KNOWN)
		return EOPNOTSUPP;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return EINVAL;
	return 0;
}

/* All memory of the process, whatever will be mapped there: as adapters with paging on demand offer
 * it. For local use only: a peer that has a key for it could read everything. */
static bool is_implicit(const void *addr, size_t len, unsigned int access)
{
	return access == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND) && !addr &&
	       len == SIZE_MAX;
}

struct ibv_mr *rnic_reg_mr(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
			   unsigned int access)
{
	struct rnic_engine *e = rnic_ctx(pd->context)->e;
	struct rnic_mr *mr;
	int err = check_access(access);

	if (!err && e->dead)
		err = EIO;
	if (!err && ((uintptr_t)addr + len < (uintptr_t)addr || iova + len < iova))
		err = EINVAL;
	if (!err && !is_implicit(addr, len, access))
		err = check_mapped(addr, len);
	if (err) {
		errno = err;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	mr->ibv = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = len};
	mr->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
	mr->access = access;
	rnic_lock(e);
	do {
		err = util_random_key(&mr->ibv.lkey, sizeof(mr->ibv.lkey));
		if (!err)
			err = mr->ibv.lkey ? rnic_table_add(e->mrs, mr->ibv.lkey, mr) : -EEXIST;
	} while (err == -EEXIST);
	rnic_unlock(e);
	if (err) {
		free(mr);
		errno = -err;
		return NULL;
	}
	mr->ibv.rkey = mr->ibv.lkey;
	atomic_fetch_add(&rnic_pd(pd)->refs, 1);
	return &mr->ibv;
}

/* Other processes of this host may be copying from it. */
static void take_back(struct rnic_engine *e, uint32_t key)
{
	struct rnic_ring *r;

	if (e->dead)
		return; /* in the child of a fork: what is shared is the parent's */
	list_for_each (r, &e->rings, link)
		r->revoke(r, key);
}

int rnic_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr, size_t len,
		  int access)
{
	struct rnic_engine *e = rnic_ctx(ibmr->context)->e;
	struct rnic_mr *mr = (struct rnic_mr *)ibmr;
	int err = 0;

	if (e->dead)
		return EIO;
	if (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED)
		return EOPNOTSUPP;
	if (flags & IBV_REREG_MR_CHANGE_PD && !pd)
		return EINVAL;
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		err = check_access((unsigned int)access);
	if (!err && flags & IBV_REREG_MR_CHANGE_TRANSLATION)
		err = (uintptr_t)addr + len < (uintptr_t)addr ? EINVAL : check_mapped(addr, len);
	if (err)
		return err;
	rnic_lock(e);
	/* What stays as it was may be read on. */
	if (flags & (IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION) ||
	    (flags & IBV_REREG_MR_CHANGE_ACCESS && mr->access & ~(unsigned int)access))
		take_back(e, mr->ibv.lkey);
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		atomic_fetch_sub(&rnic_pd(mr->ibv.pd)->refs, 1);
		atomic_fetch_add(&rnic_pd(pd)->refs, 1);
		mr->ibv.pd = pd;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		mr->access = (unsigned int)access;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->ibv.addr = addr;
		mr->ibv.length = len;
		mr->written = false;
		mr->iova = mr->access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)addr;
	}
	rnic_unlock(e);
	return 0;
}

/* All data is placed with the lock held, by an address that was looked up since it was taken: that
 * of peers in other processes, too, from whose memory we fetch it. */
int rnic_move_mr(struct ibv_mr *ibmr, void *addr)
{
	struct rnic_engine *e = rnic_ctx(ibmr->context)->e;
	struct rnic_mr *mr = (struct rnic_mr *)ibmr;
	size_t len = ibmr->length;
	int err;

	if (e->dead)
		return EIO;
	err = (uintptr_t)addr + len < (uintptr_t)addr ? EINVAL : check_mapped(addr, len);
	if (err)
		return err;
	rnic_lock(e);
	if (mr->written) {
		err = EBUSY;
	} else {
		take_back(e, ibmr->lkey);
		ibmr->addr = addr;
	}
	rnic_unlock(e);
	return err;
}

int rnic_dereg_mr(struct ibv_mr *mr)
{
	struct rnic_engine *e = rnic_ctx(mr->context)->e;

	rnic_lock(e);
	rnic_table_del(e->mrs, mr->lkey);
	take_back(e, mr->lkey);
	rnic_unlock(e);
	atomic_fetch_sub(&rnic_pd(mr->pd)->refs, 1);
	free(mr);
	return 0;
}

static enum rnic_mem_error resolve(struct rnic_engine *e, const struct ibv_pd *pd, uint32_t key,
				   uint64_t iova, uint64_t len, unsigned int need, void **ptr)
{
	struct rnic_mr *mr = rnic_table_get(e->mrs, key);
	uint64_t off;

	if (!mr)
		return RNIC_MEM_KEY;
	if (mr->ibv.pd != pd)
		return RNIC_MEM_DOMAIN;
	off = iova - mr->iova;
	if (iova < mr->iova || off > mr->ibv.length || len > mr->ibv.length - off)
		return RNIC_MEM_BOUNDS;
	if ((mr->access & need) != need)
		return RNIC_MEM_ACCESS;
	mr->written |= (need & ACCESS_WRITES) != 0;
	*ptr = (char *)mr->ibv.addr + off;
	return RNIC_MEM_OK;
}

enum rnic_mem_error rnic_mem_remote(struct rnic_engine *e, const struct ibv_pd *pd, uint32_t rkey,
				    uint64_t iova, uint64_t len, unsigned int need, void **ptr)
{
	return resolve(e, pd, rkey, iova, len, need, ptr);
}

/* What is left of a stretch of a list of elements. */
struct cursor {
	const struct ibv_sge *sge;
	int n;
	uint64_t off; /* into the first element */
	uint32_t len;
};

/* The next piece that is in one element; *part is 0 at the end. */
static enum rnic_mem_error next_piece(struct rnic_engine *e, const struct ibv_pd *pd,
				      struct cursor *c, unsigned int need, void **ptr,
				      uint32_t *part)
{
	enum rnic_mem_error err;

	for (; c->n && c->off >= c->sge->length; c->sge++, c->n--)
		c->off -= c->sge->length;
	*part = 0;
	if (!c->n || !c->len)
		return RNIC_MEM_OK;
	*part = c->sge->length - (uint32_t)c->off;
	if (*part > c->len)
		*part = c->len;
	err = resolve(e, pd, c->sge->lkey, c->sge->addr + c->off, *part, need, ptr);
	c->off += *part;
	c->len -= *part;
	return err;
}

enum rnic_mem_error rnic_mem_gather(struct rnic_engine *e, const struct ibv_pd *pd,
				    const struct ibv_sge *sge, int n, uint64_t off, void *dst,
				    uint32_t len, uint32_t *crc)
{
	struct cursor c = {sge, n, off, len};
	enum rnic_mem_error err;
	uint8_t *to = dst;
	uint32_t part;
	void *from;

	while (!(err = next_piece(e, pd, &c, 0, &from, &part)) && part) {
		err = crc ? rnic_guard_copy_crc(to, from, part, crc)
			  : rnic_guard_copy(to, from, part);
		if (err)
			return err;
		to += part;
	}
	return err;
}

const void *rnic_mem_piece(struct rnic_engine *e, const struct ibv_pd *pd,
			   const struct ibv_sge *sge, int n, uint64_t off, uint32_t len)
{
	void *ptr;

	for (int i = 0; i < n; i++) {
		if (off < sge[i].length)
			return len <= sge[i].length - off &&
					       !resolve(e, pd, sge[i].lkey, sge[i].addr + off, len,
							0, &ptr)
				       ? ptr
				       : NULL;
		off -= sge[i].length;
	}
	return NULL;
}

enum rnic_mem_error rnic_mem_scatter(struct rnic_engine *e, const struct ibv_pd *pd,
				     const struct ibv_sge *sge, int n, uint64_t off,
				     const void *src, uint32_t len)
{
	struct cursor c = {sge, n, off, len};
	const uint8_t *from = src;
	enum rnic_mem_error err;
	uint32_t part;
	void *to;

	while (!(err = next_piece(e, pd, &c, IBV_ACCESS_LOCAL_WRITE, &to, &part)) && part) {
		err = rnic_guard_copy(to, from, part);
		if (err)
			return err;
		from += part;
	}
	return err;
}

enum rnic_mem_error rnic_mem_iov(struct rnic_engine *e, const struct ibv_pd *pd,
				 const struct ibv_sge *sge, int n, uint64_t off, uint32_t len,
				 unsigned int need, struct iovec *iov, int *n_iov)
{
	struct cursor c = {sge, n, off, len};
	enum rnic_mem_error err;
	uint32_t part;
	void *ptr;

	*n_iov = 0;
	while (!(err = next_piece(e, pd, &c, need, &ptr, &part)) && part)
		iov[(*n_iov)++] = (struct iovec){ptr, part};
	return err;
}
