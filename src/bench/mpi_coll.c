/* Collectives in a loop.
 *
 * MPI_Alltoall, MPI_Allgather, MPI_Allreduce and MPI_Barrier have nothing between the calls: what
 * many ranks on few cores, or on a tree that they share, do to each other. The percentiles are of
 * rank 0's calls; the mean is the time of the whole loop on the slowest rank, divided by the calls.
 *
 * MPI_Bcast and MPI_Scatter have a barrier behind each, which is not timed, so that a rank that is
 * ahead stays with the others (figure 5.9 of the thesis). The time of a call is its mean over all
 * ranks. */
#include "mpi_perf.h"

static double slowest(double seconds)
{
	double all = 0;

	MPI_Allreduce(&seconds, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

/* Seconds of a call. */
static double once(struct mp *mp, const struct mp_coll *c, size_t size)
{
	double from = mp_now(), t;

	c->call(mp, size);
	t = mp_now() - from;
	if (c->separate)
		MPI_Barrier(MPI_COMM_WORLD);
	return t;
}

/* What all ranks have had in each call comes together when all is measured. */
static double *mean_of_ranks(struct mp *mp, int n)
{
	double *sum = mp->samples[1];

	MPI_Allreduce(mp->samples[0], sum, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		sum[i] /= mp->ranks;
	return sum;
}

static bool measure(struct mp *mp, const struct mp_coll *c, size_t size, int rows)
{
	struct mp_cell cells[1 + MP_SUMMARY];
	double from, *t = mp->samples[0];
	int n, warm = mp_warmup(mp);

	c->stamp(mp, size, 0);
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < warm; i++)
		once(mp, c, size);
	c->check(mp, size, 0);
	c->stamp(mp, size, 1);
	n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, rows);
	if (!n)
		return false;
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < n; i++)
		t[i] = once(mp, c, size);
	from = slowest(mp_now() - from);
	c->check(mp, size, 1);
	cells[0] = MP_INT("size", c->sized ? size : 0);
	mp_summary_us(cells + 1, c->separate ? mean_of_ranks(mp, n) : t, n);
	if (!c->separate)
		cells[3] = MP_REAL("mean_us", from / n * 1e6, 2);
	mp_row(mp, cells, 1 + MP_SUMMARY);
	return true;
}

int mp_coll_loop(struct mp *mp)
{
	const struct mp_coll *c = mp_coll_find(mp->kind->name);
	size_t sizes[MP_SIZES];
	int count = c->sized ? mp_sizes(mp, sizes) : 1;

	for (int i = 0; i < count; i++)
		if (!measure(mp, c, c->sized ? sizes[i] : 0, count - i))
			break;
	return 0;
}
