/* Several pairs of ranks at once: rank i with rank i + half of them, so that ranks that fill one
 * host after the other have their partner on another one (thesis, section 3.4: figures 3.8, 3.9).
 *
 * Each iteration begins with a barrier. A sample of multi-lat is the mean over all pairs of half a
 * round trip; one of multi-bw is what all pairs carry in the time of the slowest.
 */
#include "mpi_perf.h"

#include <stdio.h>

enum { OWN, ALL };

struct pairs {
	size_t size;
	int pairs, partner;
	bool first;
	unsigned int iteration;
};

static double trip(struct mp *mp, struct pairs *p)
{
	double from;

	mp_stamp(mp->out, p->size, p->iteration);
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	if (p->first)
		MPI_Send(mp->out, (int)p->size, MPI_BYTE, p->partner, MP_TAG, MPI_COMM_WORLD);
	MPI_Recv(mp->in, (int)p->size, MPI_BYTE, p->partner, MP_TAG, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
	if (!p->first)
		MPI_Send(mp->out, (int)p->size, MPI_BYTE, p->partner, MP_TAG, MPI_COMM_WORLD);
	from = mp_now() - from;
	mp_check(mp, mp->in, p->size, p->iteration++);
	return from / 2;
}

static double stream(struct mp *mp, struct pairs *p)
{
	MPI_Request q[MP_WINDOW_MOST];
	MPI_Status status[MP_WINDOW_MOST];
	int w = mp_window(mp), ack = 0;
	double from;

	for (int i = 0; i < w; i++)
		mp_stamp(mp->out + (size_t)i * p->size, p->size, p->iteration + (unsigned int)i);
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < w; i++) {
		size_t at = (size_t)i * p->size;

		if (p->first)
			MPI_Isend(mp->out + at, (int)p->size, MPI_BYTE, p->partner, MP_TAG,
				  MPI_COMM_WORLD, &q[i]);
		else
			MPI_Irecv(mp->in + at, (int)p->size, MPI_BYTE, p->partner, MP_TAG,
				  MPI_COMM_WORLD, &q[i]);
	}
	MPI_Waitall(w, q, status);
	if (p->first)
		MPI_Recv(&ack, 1, MPI_INT, p->partner, MP_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&ack, 1, MPI_INT, p->partner, MP_ACK, MPI_COMM_WORLD);
	from = mp_now() - from;
	for (int i = 0; !p->first && i < w; i++)
		mp_check(mp, mp->in + (size_t)i * p->size, p->size, p->iteration + (unsigned int)i);
	p->iteration++;
	return from;
}

static int together(struct mp *mp, struct pairs *p, double (*once)(struct mp *, struct pairs *),
		    MPI_Op op, int rows)
{
	int n, warm = mp_warmup(mp);
	double from;

	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < warm; i++)
		once(mp, p);
	n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, rows);
	for (int i = 0; i < n; i++)
		mp->samples[OWN][i] = once(mp, p);
	if (n)
		MPI_Reduce(mp->samples[OWN], mp->samples[ALL], n, MPI_DOUBLE, op, 0,
			   MPI_COMM_WORLD);
	return n;
}

static int prepare(const struct mp *mp, struct pairs *p)
{
	p->pairs = mp->ranks / 2;
	p->first = mp->rank < p->pairs;
	p->partner = p->first ? mp->rank + p->pairs : mp->rank - p->pairs;
	if (mp->ranks % 2 == 0)
		return 0;
	if (mp->rank == 0)
		fprintf(stderr, "weft-mpi-perf: %s needs an even number of ranks, not %d\n",
			mp->kind->name, mp->ranks);
	return 2;
}

int mp_multi_lat(struct mp *mp)
{
	struct mp_cell cells[2 + MP_SUMMARY];
	struct pairs p = {0};
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes), code = prepare(mp, &p);

	for (int i = 0; !code && i < count; i++) {
		int n;

		p.size = sizes[i];
		n = together(mp, &p, trip, MPI_SUM, count - i);
		if (!n)
			break;
		for (int k = 0; k < n; k++)
			mp->samples[ALL][k] /= mp->ranks;
		cells[0] = MP_INT("size", p.size);
		cells[1] = MP_INT("pairs", p.pairs);
		mp_summary_us(cells + 2, mp->samples[ALL], n);
		mp_row(mp, cells, 2 + MP_SUMMARY);
	}
	return code;
}

int mp_multi_bw(struct mp *mp)
{
	struct mp_cell cells[3 + MP_SUMMARY];
	struct pairs p = {0};
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes), code = prepare(mp, &p);

	for (int i = 0; !code && i < count; i++) {
		double bytes;
		int n;

		p.size = sizes[i];
		bytes = (double)p.size * mp_window(mp) * p.pairs;
		n = together(mp, &p, stream, MPI_MAX, count - i);
		if (!n)
			break;
		for (int k = 0; k < n; k++)
			mp->samples[ALL][k] = bytes / mp->samples[ALL][k] / 1e6;
		cells[0] = MP_INT("size", p.size);
		cells[1] = MP_INT("pairs", p.pairs);
		mp_summary_mbps(cells + 2, mp->samples[ALL], n);
		cells[2 + MP_SUMMARY] =
			MP_REAL("p50_per_s", cells[3].number * 1e6 / (double)p.size, 0);
		mp_row(mp, cells, 3 + MP_SUMMARY);
	}
	return code;
}
