/* Nothing here blocks in the MPI: a rank may have died, or given up, since it was last heard of. */
#include "coll_clock.h"

#include <errno.h>

#include "util_clock.h"

enum { TURNS = 8, TAG = 0x6ef9 };

#define AGAIN_NS (500 * UTIL_NS_PER_MS)

static int give(struct coll_comm *c, struct coll_clock *k, int n, int peer)
{
	MPI_Request req;

	return PMPI_Isend(&k->time, n, MPI_DOUBLE, peer, TAG, c->priv, &req)
		       ? -EIO
		       : coll_wait_mpi(c, &req);
}

static int take(struct coll_comm *c, struct coll_clock *k, int n, int peer)
{
	MPI_Request req;

	return PMPI_Irecv(&k->time, n, MPI_DOUBLE, peer, TAG, c->priv, &req)
		       ? -EIO
		       : coll_wait_mpi(c, &req);
}

static int answer(struct coll_comm *c, struct coll_clock *k, int peer)
{
	int ret = 0;

	for (int i = 0; i < TURNS && !ret; i++) {
		ret = take(c, k, 0, peer);
		k->time = (double)util_now_ns();
		if (!ret)
			ret = give(c, k, 1, peer);
	}
	return ret;
}

/* The answer that came fastest was given halfway. */
static int ask(struct coll_comm *c, struct coll_clock *k, int first, double *ns)
{
	double best = 1e18;
	int ret = 0;

	for (int i = 0; i < TURNS && !ret; i++) {
		double from = (double)util_now_ns(), took;

		ret = give(c, k, 0, first);
		if (!ret)
			ret = take(c, k, 1, first);
		took = (double)util_now_ns() - from;
		if (ret || took >= best)
			continue;
		best = took;
		*ns = k->time - (from + took / 2);
	}
	return ret;
}

static int compare(struct coll_comm *c, struct coll_clock *k)
{
	MPI_Request req;
	int ret = 0;

	for (uint32_t h = 0; h < c->hosts; h++)
		k->own[h] = 0;
	for (uint32_t h = 1; h < c->hosts && coll_is_master(c) && !ret; h++) {
		if (c->host == 0)
			ret = answer(c, k, (int)coll_master(c, h));
		else if (c->host == h)
			ret = ask(c, k, (int)coll_master(c, 0), &k->own[h]);
	}
	if (!ret &&
	    PMPI_Iallreduce(k->own, k->all, (int)c->hosts, MPI_DOUBLE, MPI_SUM, c->priv, &req))
		ret = -EIO;
	if (!ret)
		ret = coll_wait_mpi(c, &req);
	if (!ret)
		k->offset = k->all[c->host];
	return ret;
}

/* One knows how long ago it was, and says whether it shall be done. */
int coll_clock_offset(struct coll_comm *c, struct coll_clock *k, double *ns)
{
	uint64_t now = util_now_ns();
	MPI_Request req;
	int ret;

	k->again = !k->compared || now - k->compared >= AGAIN_NS;
	if (PMPI_Ibcast(&k->again, 1, MPI_INT, (int)coll_master(c, 0), c->priv, &req))
		return -EIO;
	ret = coll_wait_mpi(c, &req);
	if (!ret && k->again) {
		ret = compare(c, k);
		k->compared = util_now_ns();
	}
	*ns = k->offset;
	return ret;
}
