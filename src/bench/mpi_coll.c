/* Collectives in a loop.
 *
 * MPI_Alltoall and MPI_Allgather have nothing between the calls: what many ranks on few cores, or
 * on a tree that they share, do to each other. The percentiles are of rank 0's calls; the mean is
 * the time of the whole loop on the slowest rank, divided by the calls.
 *
 * MPI_Bcast and MPI_Scatter have a barrier behind each, which is not timed, so that a rank that is
 * ahead stays with the others (figure 5.9 of the thesis). The time of a call is its mean over all
 * ranks. */
#include "mpi_perf.h"

#include <string.h>

/* A message from `from` to `to` of MPI_Alltoall; one of MPI_Allgather goes to all alike. */
static unsigned int number(int from, int to)
{
	return (unsigned int)(from * 1000 + to);
}

/* ---- MPI_Alltoall ---- */

static void alltoall_stamp(struct mp *mp, size_t size)
{
	for (int r = 0; r < mp->ranks; r++)
		mp_stamp(mp->out + (size_t)r * size, size, number(mp->rank, r));
}

static void alltoall_call(struct mp *mp, size_t size)
{
	MPI_Alltoall(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall_check(struct mp *mp, size_t size)
{
	for (int r = 0; r < mp->ranks; r++)
		mp_check(mp, mp->in + (size_t)r * size, size, number(r, mp->rank));
}

/* ---- MPI_Allgather ---- */

static void allgather_stamp(struct mp *mp, size_t size)
{
	mp_stamp(mp->out, size, number(mp->rank, 0));
}

static void allgather_call(struct mp *mp, size_t size)
{
	MPI_Allgather(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgather_check(struct mp *mp, size_t size)
{
	for (int r = 0; r < mp->ranks; r++)
		mp_check(mp, mp->in + (size_t)r * size, size, number(r, 0));
}

/* ---- MPI_Bcast ---- */

static void bcast_stamp(struct mp *mp, size_t size)
{
	mp_fill(mp->out, size, number(mp->rank, 0));
}

static void bcast_call(struct mp *mp, size_t size)
{
	MPI_Bcast(mp->out, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void bcast_check(struct mp *mp, size_t size)
{
	mp_verify(mp, mp->out, size, number(0, 0));
}

/* ---- MPI_Scatter ---- */

static void scatter_stamp(struct mp *mp, size_t size)
{
	memset(mp->in, 0, size);
	for (int r = 0; r < mp->ranks; r++)
		mp_fill(mp->out + (size_t)r * size, size, number(0, r));
}

static void scatter_call(struct mp *mp, size_t size)
{
	MPI_Scatter(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter_check(struct mp *mp, size_t size)
{
	mp_verify(mp, mp->in, size, number(0, mp->rank));
}

/* ---- the loop ---- */

struct coll {
	bool barrier; /* behind each call */
	void (*stamp)(struct mp *mp, size_t size);
	void (*call)(struct mp *mp, size_t size);
	void (*check)(struct mp *mp, size_t size);
};

static double slowest(double seconds)
{
	double all = 0;

	MPI_Allreduce(&seconds, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

/* Seconds of a call. */
static double once(struct mp *mp, const struct coll *c, size_t size)
{
	double from = mp_now(), t;

	c->call(mp, size);
	t = mp_now() - from;
	if (c->barrier)
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

static bool measure(struct mp *mp, const struct coll *c, size_t size, int rows)
{
	struct mp_cell cells[1 + MP_SUMMARY];
	double from, *t = mp->samples[0];
	int n, warm = mp_warmup(mp);

	c->stamp(mp, size);
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < warm; i++)
		once(mp, c, size);
	c->check(mp, size);
	c->stamp(mp, size);
	n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, rows);
	if (!n)
		return false;
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < n; i++)
		t[i] = once(mp, c, size);
	from = slowest(mp_now() - from);
	c->check(mp, size);
	cells[0] = MP_INT("size", size);
	mp_summary_us(cells + 1, c->barrier ? mean_of_ranks(mp, n) : t, n);
	if (!c->barrier)
		cells[3] = MP_REAL("mean_us", from / n * 1e6, 2);
	mp_row(mp, cells, 1 + MP_SUMMARY);
	return true;
}

static int all_sizes(struct mp *mp, const struct coll *c)
{
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes);

	for (int i = 0; i < count; i++)
		if (!measure(mp, c, sizes[i], count - i))
			break;
	return 0;
}

int mp_alltoall(struct mp *mp)
{
	static const struct coll c = {false, alltoall_stamp, alltoall_call, alltoall_check};

	return all_sizes(mp, &c);
}

int mp_allgather(struct mp *mp)
{
	static const struct coll c = {false, allgather_stamp, allgather_call, allgather_check};

	return all_sizes(mp, &c);
}

int mp_bcast(struct mp *mp)
{
	static const struct coll c = {true, bcast_stamp, bcast_call, bcast_check};

	return all_sizes(mp, &c);
}

int mp_scatter(struct mp *mp)
{
	static const struct coll c = {true, scatter_stamp, scatter_call, scatter_check};

	return all_sizes(mp, &c);
}
