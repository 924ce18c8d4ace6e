/* MPI_Alltoall and MPI_Alltoallv: what their variants share.
 *
 * Both sides of a call are blocks, one per rank. Whatever the datatypes, what goes over the network
 * or through shared memory is the bytes of a block; if they do not lie in memory like that, they
 * are packed before, or unpacked when they are here. What is sent from where it is received
 * (MPI_IN_PLACE) is copied first.
 *
 *	coll_alltoall.c         blocks, choice, statistics
 *	coll_alltoall_direct.c  direct and pap_direct, for both operations (coll_direct.h)
 *	coll_alltoall_shm.c     shm_direct and pap_shm_direct, for MPI_Alltoall
 */
#ifndef WEFT_COLL_ALLTOALL_H
#define WEFT_COLL_ALLTOALL_H

#include "coll_comm.h"
#include "coll_mail.h"
#include "coll_type.h"

struct coll_blocks {
	char *buf;
	struct coll_type type;
	int count;                  /* of each block, if counts is NULL */
	const int *counts, *displs; /* of MPI_Alltoallv */
};

struct coll_alltoall {
	struct coll_comm *c;
	struct coll_blocks send, recv;
	bool in_place;
	const uint8_t *bytes; /* what is sent, from here, packed if need be */
	void *desc;           /* its registration, if it has one */
	uint64_t *offset;     /* of MPI_Alltoallv's packed blocks; or NULL */
};

static inline int coll_block_count(const struct coll_blocks *b, uint32_t i)
{
	return b->counts ? b->counts[i] : b->count;
}

static inline size_t coll_block_len(const struct coll_blocks *b, uint32_t i)
{
	return (size_t)coll_block_count(b, i) * b->type.size;
}

static inline char *coll_block_at(const struct coll_blocks *b, uint32_t i)
{
	return b->buf +
	       (b->counts ? (MPI_Aint)b->displs[i] : (MPI_Aint)i * b->count) * b->type.extent;
}

/* What is to be sent to rank i. */
const uint8_t *coll_send_at(const struct coll_alltoall *a, uint32_t i);
/* Puts the bytes that have come from rank i where the program wants them; len must be the block's.
 */
int coll_deliver(const struct coll_alltoall *a, uint32_t i, const uint8_t *bytes);

/* Where in a host's shared memory, of two banks, is what its ranks send. */
static inline uint64_t coll_gather_base(const struct coll_comm *c, uint32_t host, uint32_t bank)
{
	return (uint64_t)bank * c->shm_slot * c->size * coll_host_size(c, host);
}

/* How blocks go between ranks of this host, pair by pair. */
static inline struct coll_mail coll_mail_of(const struct coll_comm *c)
{
	return (struct coll_mail){.ranks = c->shm.ranks,
				  .slot = c->shm_slot * c->size / c->shm.ranks,
				  .copy_max = c->copy_max,
				  .fetch = c->fetch};
}

/* All return 0 or -errno. */
int coll_alltoall_direct(struct coll_alltoall *a, bool aware);
int coll_alltoall_shm(struct coll_alltoall *a, bool aware);

/* The operations. Either they are done, with *ret for the program, or false: the MPI shall do it,
 * which is the same on every rank. */
struct coll_alltoall_args {
	const void *sendbuf;
	int sendcount;
	const int *sendcounts, *sdispls;
	MPI_Datatype sendtype;
	void *recvbuf;
	int recvcount;
	const int *recvcounts, *rdispls;
	MPI_Datatype recvtype;
	MPI_Comm comm;
};

bool coll_alltoall(enum coll_op op, const struct coll_alltoall_args *args, int *ret);

#endif
