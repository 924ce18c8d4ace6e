/* MPI_Alltoall in a loop, without anything between the calls: what many ranks on few cores do to
 * each other. The percentiles are of rank 0's calls; the mean is the time of the whole loop on the
 * slowest rank, divided by the calls. */
#include "mpi_perf.h"

static void call(struct mp *mp, size_t size)
{
	MPI_Alltoall(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static double slowest(double seconds)
{
	double all = 0;

	MPI_Allreduce(&seconds, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

static void check(struct mp *mp, size_t size)
{
	for (int r = 0; r < mp->ranks; r++)
		mp_check(mp, mp->in + (size_t)r * size, size, (unsigned int)(r * 1000 + mp->rank));
}

static void prepare(struct mp *mp, size_t size)
{
	for (int r = 0; r < mp->ranks; r++)
		mp_stamp(mp->out + (size_t)r * size, size, (unsigned int)(mp->rank * 1000 + r));
}

static bool measure(struct mp *mp, size_t size, int rows)
{
	struct mp_cell cells[1 + MP_SUMMARY];
	double from = mp_now(), *t = mp->samples[0];
	int n, warm = mp_warmup(mp);

	prepare(mp, size);
	for (int i = 0; i < warm; i++)
		call(mp, size);
	n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, rows);
	if (!n)
		return false;
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < n; i++) {
		double begin = mp_now();

		call(mp, size);
		t[i] = mp_now() - begin;
	}
	from = slowest(mp_now() - from);
	check(mp, size);
	cells[0] = MP_INT("size", size);
	mp_summary_us(cells + 1, t, n);
	cells[3] = MP_REAL("mean_us", from / n * 1e6, 2);
	mp_row(mp, cells, 1 + MP_SUMMARY);
	return true;
}

int mp_alltoall(struct mp *mp)
{
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes);

	for (int i = 0; i < count; i++)
		if (!measure(mp, sizes[i], count - i))
			break;
	return 0;
}
