#include "coll_clock.h"

#include <errno.h>

#include "util_clock.h"

enum { TURNS = 8, TAG = 0x6ef9 };

static int answer(const struct coll_comm *c, int to)
{
	int ret = 0;

	for (int i = 0; i < TURNS && !ret; i++) {
		double now;

		ret = PMPI_Recv(NULL, 0, MPI_BYTE, to, TAG, c->priv, MPI_STATUS_IGNORE);
		now = (double)util_now_ns();
		if (!ret)
			ret = PMPI_Send(&now, 1, MPI_DOUBLE, to, TAG, c->priv);
	}
	return ret;
}

/* The answer that came fastest was given halfway. */
static int ask(const struct coll_comm *c, int first, double *ns)
{
	double best = 1e18;
	int ret = 0;

	for (int i = 0; i < TURNS && !ret; i++) {
		double from = (double)util_now_ns(), theirs, took;

		ret = PMPI_Send(NULL, 0, MPI_BYTE, first, TAG, c->priv);
		if (!ret)
			ret = PMPI_Recv(&theirs, 1, MPI_DOUBLE, first, TAG, c->priv,
					MPI_STATUS_IGNORE);
		took = (double)util_now_ns() - from;
		if (ret || took >= best)
			continue;
		best = took;
		*ns = theirs - (from + took / 2);
	}
	return ret;
}

int coll_clock_offset(const struct coll_comm *c, double *ns)
{
	double own[COLL_CLOCK_HOSTS] = {0}, all[COLL_CLOCK_HOSTS] = {0};
	int first = (int)coll_master(c, 0), ret = 0;

	*ns = 0;
	if (c->hosts > COLL_CLOCK_HOSTS)
		return -E2BIG;
	for (uint32_t h = 1; h < c->hosts && coll_is_master(c) && !ret; h++) {
		if (c->host == 0)
			ret = answer(c, (int)coll_master(c, h));
		else if (c->host == h)
			ret = ask(c, first, &own[h]);
	}
	if (ret || PMPI_Allreduce(own, all, (int)c->hosts, MPI_DOUBLE, MPI_SUM, c->priv))
		return -EIO;
	*ns = all[c->host];
	return 0;
}
