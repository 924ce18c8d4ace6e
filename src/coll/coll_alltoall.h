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

/* Counts and places of MPI_Alltoallv's blocks, as wide as the program has them. A rank may have
 * called the large name of an operation and another the small one: nothing but this may depend on
 * it. */
struct coll_each {
	const int *counts, *displs;
	const MPI_Count *large; /* or these two */
	const MPI_Aint *far;
};

struct coll_blocks {
	char *buf;
	struct coll_type type;
	MPI_Count count; /* of each block of MPI_Alltoall */
	struct coll_each each;
};

static inline bool coll_each_counts(const struct coll_each *e)
{
	return e->counts || e->large;
}

static inline MPI_Count coll_each_count(const struct coll_each *e, uint32_t i)
{
	return e->large ? e->large[i] : e->counts[i];
}

static inline MPI_Aint coll_each_at(const struct coll_each *e, uint32_t i)
{
	return e->far ? e->far[i] : e->displs[i];
}

struct coll_alltoall {
	struct coll_comm *c;
	struct coll_blocks send, recv;
	bool in_place;
	const uint8_t *bytes; /* what is sent, from here, packed if need be */
	void *desc;           /* its registration, if it has one */
	uint64_t *offset;     /* of MPI_Alltoallv's packed blocks; or NULL */
};

static inline MPI_Count coll_block_count(const struct coll_blocks *b, uint32_t i)
{
	return coll_each_counts(&b->each) ? coll_each_count(&b->each, i) : b->count;
}

static inline size_t coll_block_len(const struct coll_blocks *b, uint32_t i)
{
	return (size_t)coll_block_count(b, i) * b->type.size;
}

static inline char *coll_block_at(const struct coll_blocks *b, uint32_t i)
{
	MPI_Aint at = coll_each_counts(&b->each) ? coll_each_at(&b->each, i)
						 : (MPI_Aint)i * (MPI_Aint)b->count;

	return b->buf + at * b->type.extent;
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
	MPI_Count sendcount;
	struct coll_each send;
	MPI_Datatype sendtype;
	void *recvbuf;
	MPI_Count recvcount;
	struct coll_each recv;
	MPI_Datatype recvtype;
	MPI_Comm comm;
	int (*mpi)(const struct coll_alltoall_args *args); /* the MPI's own */
};

bool coll_alltoall(enum coll_op op, const struct coll_alltoall_args *args, int *ret);

#endif
