/* The displaced ring: in step k every rank sends a window of messages to rank + k and receives one
 * from rank - k, all ranks at once. Each step is a permutation, which a fat tree could carry at the
 * speed of its links; where flows meet on a link, it shows.
 *
 * After Vishnu and others, Topology agnostic hot-spot avoidance with InfiniBand, section 3. They
 * say a rank's bandwidth is its bytes by its own time; MBps is the mean of that over all ranks, and
 * worst_MBps that of the slowest, which decides where a program has barriers.
 */
#include "mpi_perf.h"

enum { TIME, RATE, SUM, LEAST };

struct ring {
	size_t size;
	int step, to, from;
	unsigned int iteration;
};

/* Which message of which iteration; the sender is known by the rank that it was received from. */
static unsigned int number(const struct mp *mp, const struct ring *r, int sender, int message)
{
	unsigned int n = r->iteration * (unsigned int)mp_window(mp) + (unsigned int)message;

	return n * (unsigned int)mp->ranks + (unsigned int)sender;
}

/* Seconds of this rank. Stamps are put and looked at outside of them. */
static double once(struct mp *mp, struct ring *r)
{
	MPI_Request q[2 * MP_WINDOW_MOST];
	MPI_Status status[2 * MP_WINDOW_MOST];
	int w = mp_window(mp), size = (int)r->size;
	double from;

	r->iteration++;
	for (int i = 0; i < w; i++)
		mp_stamp(mp->out + (size_t)i * r->size, r->size, number(mp, r, mp->rank, i));
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < w; i++)
		MPI_Irecv(mp->in + (size_t)i * r->size, size, MPI_BYTE, r->from, MP_TAG,
			  MPI_COMM_WORLD, &q[i]);
	for (int i = 0; i < w; i++)
		MPI_Isend(mp->out + (size_t)i * r->size, size, MPI_BYTE, r->to, MP_TAG,
			  MPI_COMM_WORLD, &q[w + i]);
	MPI_Waitall(2 * w, q, status);
	from = mp_now() - from;
	for (int i = 0; i < w; i++)
		mp_check(mp, mp->in + (size_t)i * r->size, r->size, number(mp, r, r->from, i));
	return from;
}

/* What all ranks have had in each iteration comes together when all is measured. */
static void report(struct mp *mp, const struct ring *r, int n)
{
	double *rate = mp->samples[RATE], *sum = mp->samples[SUM], *least = mp->samples[LEAST];
	double bytes = (double)r->size * mp_window(mp);

	for (int i = 0; i < n; i++)
		rate[i] = bytes / mp->samples[TIME][i] / 1e6;
	MPI_Reduce(rate, sum, n, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(rate, least, n, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
	if (mp->rank)
		return;
	for (int i = 0; i < n; i++)
		sum[i] /= mp->ranks;
	double mean = mp_median(sum, n); /* sorts, which percentiles need */
	struct mp_cell cells[] = {
		MP_INT("step", r->step),
		MP_INT("size", r->size),
		MP_INT("window", mp_window(mp)),
		MP_INT("n", n),
		MP_REAL("MBps", mean, 3),
		MP_REAL("p10_MBps", bench_percentile(sum, (size_t)n, 0.1), 3),
		MP_REAL("p90_MBps", bench_percentile(sum, (size_t)n, 0.9), 3),
		MP_REAL("worst_MBps", mp_median(least, n), 3),
	};

	mp_row(mp, cells, sizeof(cells) / sizeof(cells[0]));
}

static bool measure(struct mp *mp, struct ring *r, int rows)
{
	double from = mp_now();
	int n, warm = mp_warmup(mp);

	for (int i = 0; i < warm; i++)
		once(mp, r);
	n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, rows);
	for (int i = 0; i < n; i++)
		mp->samples[TIME][i] = once(mp, r);
	if (n)
		report(mp, r, n);
	return n > 0;
}

int mp_drc(struct mp *mp)
{
	size_t sizes[MP_SIZES];
	int first = mp->o.first_step ? mp->o.first_step : 1;
	int last = mp->o.last_step ? mp->o.last_step : mp->ranks - 1;
	int steps = last - first + 1, count = mp_sizes(mp, sizes) * steps;

	for (int i = 0; i < count; i++) {
		int step = first + i % steps;
		struct ring r = {
			.size = sizes[i / steps],
			.step = step,
			.to = (mp->rank + step) % mp->ranks,
			.from = (mp->rank + mp->ranks - step) % mp->ranks,
		};

		if (!measure(mp, &r, count - i))
			break;
	}
	return 0;
}
