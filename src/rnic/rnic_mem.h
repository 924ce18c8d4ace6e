/* Protection domains and memory regions, and the only code that touches registered
 * memory. Everything here needs the engine's lock, except where noted.
 *
 * Keys are random and found through a table, so that they can neither be guessed nor
 * computed from one another. A region is looked up again for every segment: nothing
 * keeps a pointer into a region that may be deregistered meanwhile.
 */
#ifndef WEFT_RNIC_MEM_H
#define WEFT_RNIC_MEM_H

#include <stdatomic.h>
#include <sys/uio.h>
#include <infiniband/verbs.h>
#include "rnic_engine.h"

struct rnic_pd {
	struct ibv_pd ibv; /* first */
	atomic_int refs;   /* objects that live in it */
};

struct rnic_mr {
	struct ibv_mr ibv; /* first */
	uint64_t iova;
	unsigned int access;
	bool written; /* something was, or may have been, by its key; see rnic_move_mr */
};

static inline struct rnic_pd *rnic_pd(struct ibv_pd *pd)
{
	return (struct rnic_pd *)pd;
}

/* Why an access is refused. */
enum rnic_mem_error {
	RNIC_MEM_OK,
	RNIC_MEM_KEY,    /* no such key */
	RNIC_MEM_DOMAIN, /* a region of another protection domain */
	RNIC_MEM_BOUNDS,
	RNIC_MEM_ACCESS, /* the region does not allow it */
	RNIC_MEM_FAULT,  /* registered, but not mapped any more */
};

/* Checks an access by a remote peer; *ptr is where iova lies in this process. `need`
 * is one of IBV_ACCESS_REMOTE_*. */
enum rnic_mem_error rnic_mem_remote(struct rnic_engine *e, const struct ibv_pd *pd, uint32_t rkey,
				    uint64_t iova, uint64_t len, unsigned int need, void **ptr);

/* Copies len bytes at offset off of a scatter/gather list to dst, extending *crc when
 * it is not NULL. The list must be long enough. */
enum rnic_mem_error rnic_mem_gather(struct rnic_engine *e, const struct ibv_pd *pd,
				    const struct ibv_sge *sge, int n, uint64_t off, void *dst,
				    uint32_t len, uint32_t *crc);
/* Where len bytes at offset off of the list lie, if they lie in one piece; else NULL. */
const void *rnic_mem_piece(struct rnic_engine *e, const struct ibv_pd *pd,
			   const struct ibv_sge *sge, int n, uint64_t off, uint32_t len);
/* Where the len bytes at offset off of the list lie: up to n pieces (as many as the list has
 * elements). `need` as in the access flags of a region. */
enum rnic_mem_error rnic_mem_iov(struct rnic_engine *e, const struct ibv_pd *pd,
				 const struct ibv_sge *sge, int n, uint64_t off, uint32_t len,
				 unsigned int need, struct iovec *iov, int *n_iov);
/* The reverse: len bytes of src to offset off of the list. */
enum rnic_mem_error rnic_mem_scatter(struct rnic_engine *e, const struct ibv_pd *pd,
				     const struct ibv_sge *sge, int n, uint64_t off,
				     const void *src, uint32_t len);
/* Plain copies that turn a fault into RNIC_MEM_FAULT (rnic_guard.c). No lock needed. */
enum rnic_mem_error rnic_guard_copy(void *dst, const void *src, size_t len);
enum rnic_mem_error rnic_guard_copy_crc(void *dst, const void *src, size_t len, uint32_t *crc);
enum rnic_mem_error rnic_guard_crc(const void *data, size_t len, uint32_t *crc);
/* Returns the old value; *old is in host order. The word is aligned. */
enum rnic_mem_error rnic_guard_fetch_add(uint64_t *word, uint64_t add, uint64_t *old);
enum rnic_mem_error rnic_guard_cmp_swap(uint64_t *word, uint64_t compare, uint64_t swap,
					uint64_t *old);
void rnic_guard_init(void);

static inline uint64_t rnic_sge_len(const struct ibv_sge *sge, int n)
{
	uint64_t len = 0;

	for (int i = 0; i < n; i++)
		len += sge[i].length;
	return len;
}

#endif
