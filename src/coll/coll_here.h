/* Ranks of one host meet in shared memory.
 *
 * They arrive in any order. Their vectors are joined two and two, along a fixed tree, by whoever of
 * the two comes later: so whoever is early has done its part, the last one has only log2 of them
 * left to do, and the order in which things are added never depends on who came when. The last one
 * is told so; nobody is woken just to do something that another could do.
 *
 * What they join is in an area of the shared memory, in two banks, in which each rank of the
 * communicator has a vector, and each host one that its master receives into.
 */
#ifndef WEFT_COLL_HERE_H
#define WEFT_COLL_HERE_H

#include "coll_comm.h"

/* Words of a local rank (coll_shm.h), each and the next: one per bank. */
enum {
	COLL_WORD_MET = 2,    /* how many of two have come; of the right one of the two */
	COLL_WORD_HERE = 4,   /* of the first: all of the host have come */
	COLL_WORD_DONE = 6,   /* of the first: the result is there */
	COLL_WORD_WHERE = 8,  /* of the first: in which vector */
	COLL_WORD_CAME = 10,  /* when, in units of 16 ns */
	COLL_WORD_LENT = 12,  /* how many still have to copy from its own memory */
	COLL_WORD_PARTS = 14, /* one for both: how many parts of broadcasts it has left */
};

/* The vector of a rank is that of its number on the host, so there is room for other uses; that of
 * host h is size + h. */
uint64_t coll_vector_offset(const struct coll_comm *c, uint32_t host, uint32_t call,
			    uint32_t index);

static inline uint8_t *coll_vector(const struct coll_comm *c, uint32_t call, uint32_t index)
{
	return c->shm.data + coll_vector_offset(c, c->host, call, index);
}

/* Bytes of shared memory that vectors of a communicator with so many ranks on so many hosts need,
 * and of one of them. */
size_t coll_vector_room(uint32_t ranks, uint32_t hosts);
size_t coll_vector_slot(uint32_t ranks, uint32_t hosts);

/* Arrives. join, which may be NULL, adds the vector of local rank `right` to that of `left`, after
 * all that either did before. Returns whether this was the last rank of the host; then the vector
 * of local rank 0 is that of the host. */
typedef void coll_join(void *arg, uint32_t left, uint32_t right);
bool coll_here_arrive(struct coll_comm *c, uint32_t call, coll_join *join, void *arg);

/* When ranks of the host came to an operation that nobody leaves before all have come, whoever does
 * it. `number` counts such operations; two are kept. */
void coll_here_came(struct coll_comm *c, uint32_t number, uint64_t now);
struct coll_arrivals {
	double since;  /* from the last arrival until now, ns */
	double spread; /* mean of last minus own */
};
struct coll_arrivals coll_here_arrivals(const struct coll_comm *c, uint32_t number, uint64_t now);

/* A word of the first rank of the host: sets it to this call, waits until it is. */
void coll_here_set(struct coll_comm *c, uint32_t call, uint32_t word);
int coll_here_wait(struct coll_comm *c, uint32_t call, uint32_t word);

/* A flag for each host: that its part of an operation is here. Nobody is woken before all of them
 * are: to take what there is earlier is for those who are awake. */
void coll_host_set(struct coll_comm *c, uint32_t call, uint32_t host);

static inline bool coll_host_is_set(const struct coll_comm *c, uint32_t call, uint32_t host)
{
	return coll_shm_is(coll_shm_done(&c->shm, coll_bank(call), host), call);
}

/* Whether something of this kind has come from any rank of another host; takes note of it. */
bool coll_there_came(struct coll_comm *c, uint32_t call, uint32_t kind, uint32_t host);

/* Waits for something from the master of another host, and takes note of it. */
int coll_there_wait(struct coll_comm *c, uint32_t call, uint32_t kind, uint32_t host);

#endif
