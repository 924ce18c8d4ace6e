/* Everybody gives to everybody, pair by pair (section 4.2 of the paper, docs/collectives.md).
 *
 * Pairs of different hosts go by the network, pairs of one host by its shared memory; the ranks of
 * a call are in one of the two. Both begin with what needs nobody else, and then have turns, in
 * which they do what can be done, until they are finished.
 *
 *	coll_alltoall_direct.c   the call: begin, turns, waiting
 *	coll_direct_net.c        pairs of different hosts
 *	coll_direct_here.c       pairs of one host
 */
#ifndef WEFT_COLL_DIRECT_H
#define WEFT_COLL_DIRECT_H

#include "coll_alltoall.h"

struct coll_direct_net {
	uint32_t *to, n_to;         /* who is still to be sent to, in order */
	uint32_t *from, n_from;     /* who is still to be heard of */
	struct coll_mem mem;        /* of the program's, for long blocks */
	char *span;                 /* where that begins */
	MPI_Request *req;           /* what the MPI carries */
	int n_req, n_in;            /* so many of the first of them receive */
	struct coll_scratch *stage; /* where short blocks are sent from; NULL: where they are */
	bool flush;                 /* what was sent from will not be left alone */
};

struct coll_direct_here {
	struct coll_mail mail;
	struct coll_direct_in {
		struct coll_mail_in in;
		uint32_t src;
	} * in;                    /* what is still to be taken, in order */
	struct coll_mail_out *out; /* what goes in parts and is not all sent */
	uint32_t n_in, n_out;
	bool lent; /* others copy from our memory: it stays as it is until they are done */
	bool tell; /* that parts were put or taken */
};

struct coll_direct {
	struct coll_alltoall *a;
	struct coll_comm *c;
	uint32_t call;
	bool aware;
	/* Of received blocks that are to be unpacked: where they are put before; NULL: nowhere. */
	struct coll_scratch *landing;
	uint64_t *landing_at; /* of each block */
	struct coll_direct_net net;
	struct coll_direct_here here;
};

static inline bool coll_direct_is_here(const struct coll_direct *d, uint32_t rank)
{
	return d->c->peer[rank].host == d->c->host;
}

/* Between hosts: one that is not received into memory of the library's. */
static inline bool coll_direct_is_long(const struct coll_direct *d, size_t len)
{
	return len > d->c->copy_far;
}

/* Where the bytes of a block are received, to be unpacked or to stay. */
static inline uint8_t *coll_direct_landing(const struct coll_direct *d, uint32_t src)
{
	return d->landing ? d->landing->at + d->landing_at[src]
			  : (uint8_t *)coll_block_at(&d->a->recv, src);
}

/* begin and end return 0, turn how much was done; all of them -errno. free comes in any case, with
 * what the call has come to. */
int coll_direct_net_begin(struct coll_direct *d);
int coll_direct_net_turn(struct coll_direct *d);
bool coll_direct_net_finished(const struct coll_direct *d);
/* Whether this rank has not yet been sent to, or not been heard of. */
bool coll_direct_net_waits_for(const struct coll_direct *d, uint32_t rank);
/* What the MPI carries, and that our own memory is free. */
int coll_direct_net_end(struct coll_direct *d);
void coll_direct_net_free(struct coll_direct *d);

int coll_direct_here_begin(struct coll_direct *d);
int coll_direct_here_turn(struct coll_direct *d);
bool coll_direct_here_finished(const struct coll_direct *d);
/* Whether there are blocks that go in parts: for these all have to be there together. */
bool coll_direct_here_parts(const struct coll_direct *d);
void coll_direct_here_free(struct coll_direct *d, int ret);

#endif
