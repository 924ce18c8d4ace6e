/* The collectives that are measured: what goes in, the call by both of its names, and what must
 * come out. An interposer (libweft-coll, a profiler) answers to MPI_; PMPI_ is the MPI's own. */
#include "mpi_perf.h"

#include <stdint.h>
#include <string.h>

/* A message from `from` to `to` of call n; what goes to all alike goes to 0. */
static unsigned int number(int from, int to, unsigned int n)
{
	return (unsigned int)(from * 1000 + to) + n * 2654435761u;
}

/* ---- MPI_Alltoall ---- */

static void alltoall_stamp(struct mp *mp, size_t size, unsigned int n)
{
	for (int r = 0; r < mp->ranks; r++)
		mp_stamp(mp->out + (size_t)r * size, size, number(mp->rank, r, n));
}

static void alltoall_call(struct mp *mp, size_t size)
{
	MPI_Alltoall(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall_own(struct mp *mp, size_t size)
{
	PMPI_Alltoall(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall_check(struct mp *mp, size_t size, unsigned int n)
{
	for (int r = 0; r < mp->ranks; r++)
		mp_check(mp, mp->in + (size_t)r * size, size, number(r, mp->rank, n));
}

/* ---- MPI_Allgather ---- */

static void allgather_stamp(struct mp *mp, size_t size, unsigned int n)
{
	mp_stamp(mp->out, size, number(mp->rank, 0, n));
}

static void allgather_call(struct mp *mp, size_t size)
{
	MPI_Allgather(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgather_own(struct mp *mp, size_t size)
{
	PMPI_Allgather(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgather_check(struct mp *mp, size_t size, unsigned int n)
{
	for (int r = 0; r < mp->ranks; r++)
		mp_check(mp, mp->in + (size_t)r * size, size, number(r, 0, n));
}

/* ---- MPI_Bcast ---- */

static void bcast_stamp(struct mp *mp, size_t size, unsigned int n)
{
	mp_fill(mp->out, size, number(mp->rank, 0, n));
}

static void bcast_call(struct mp *mp, size_t size)
{
	MPI_Bcast(mp->out, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void bcast_own(struct mp *mp, size_t size)
{
	PMPI_Bcast(mp->out, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void bcast_check(struct mp *mp, size_t size, unsigned int n)
{
	mp_verify(mp, mp->out, size, number(0, 0, n));
}

/* ---- MPI_Scatter ---- */

static void scatter_stamp(struct mp *mp, size_t size, unsigned int n)
{
	memset(mp->in, 0, size);
	for (int r = 0; r < mp->ranks; r++)
		mp_fill(mp->out + (size_t)r * size, size, number(0, r, n));
}

static void scatter_call(struct mp *mp, size_t size)
{
	MPI_Scatter(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter_own(struct mp *mp, size_t size)
{
	PMPI_Scatter(mp->out, (int)size, MPI_BYTE, mp->in, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void scatter_check(struct mp *mp, size_t size, unsigned int n)
{
	mp_verify(mp, mp->in, size, number(0, mp->rank, n));
}

/* ---- MPI_Allreduce ---- */

/* Sums of doubles, as most programs have; of bytes where the size is not one of doubles. All of
 * them are whole numbers, so that the order of the additions does not show. */
static bool doubles(size_t size)
{
	return size % sizeof(double) == 0;
}

/* What rank r adds, summed up over those below `ranks` this is in[i]. */
static unsigned int addend(int r, size_t i, unsigned int n)
{
	return (unsigned int)r * 3 + (unsigned int)(i % 251) + n % 100;
}

static void allreduce_stamp(struct mp *mp, size_t size, unsigned int n)
{
	double v;

	for (size_t i = 0; doubles(size) && i < size / sizeof(v); i++) {
		v = addend(mp->rank, i, n);
		memcpy(mp->out + i * sizeof(v), &v, sizeof(v));
	}
	for (size_t i = 0; !doubles(size) && i < size; i++)
		mp->out[i] = (unsigned char)addend(mp->rank, i, n);
}

static void allreduce_call(struct mp *mp, size_t size)
{
	if (doubles(size))
		MPI_Allreduce(mp->out, mp->in, (int)(size / sizeof(double)), MPI_DOUBLE, MPI_SUM,
			      MPI_COMM_WORLD);
	else
		MPI_Allreduce(mp->out, mp->in, (int)size, MPI_UNSIGNED_CHAR, MPI_SUM,
			      MPI_COMM_WORLD);
}

static void allreduce_own(struct mp *mp, size_t size)
{
	if (doubles(size))
		PMPI_Allreduce(mp->out, mp->in, (int)(size / sizeof(double)), MPI_DOUBLE, MPI_SUM,
			       MPI_COMM_WORLD);
	else
		PMPI_Allreduce(mp->out, mp->in, (int)size, MPI_UNSIGNED_CHAR, MPI_SUM,
			       MPI_COMM_WORLD);
}

static unsigned int sum(const struct mp *mp, size_t i, unsigned int n)
{
	unsigned int all = (unsigned int)mp->ranks;

	return 3 * (all * (all - 1) / 2) + all * addend(0, i, n);
}

static void allreduce_check(struct mp *mp, size_t size, unsigned int n)
{
	bool wrong = false;
	double v;

	for (size_t i = 0; doubles(size) && i < size / sizeof(v); i++) {
		memcpy(&v, mp->in + i * sizeof(v), sizeof(v));
		wrong = wrong || v != sum(mp, i, n);
	}
	for (size_t i = 0; !doubles(size) && i < size; i++)
		wrong = wrong || mp->in[i] != (unsigned char)sum(mp, i, n);
	mp->wrong += wrong;
}

/* ---- MPI_Reduce_scatter ---- */

static int *equal_counts(const struct mp *mp, size_t count)
{
	static int *counts;

	if (!counts)
		counts = mp_room((size_t)mp->ranks * sizeof(*counts));
	for (int r = 0; r < mp->ranks; r++)
		counts[r] = (int)count;
	return counts;
}

/* A block of the size for each rank. */
static void reduce_scatter(struct mp *mp, size_t size, bool own)
{
	int *counts = equal_counts(mp, doubles(size) ? size / sizeof(double) : size);
	MPI_Datatype type = doubles(size) ? MPI_DOUBLE : MPI_UNSIGNED_CHAR;

	if (own)
		PMPI_Reduce_scatter(mp->out, mp->in, counts, type, MPI_SUM, MPI_COMM_WORLD);
	else
		MPI_Reduce_scatter(mp->out, mp->in, counts, type, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter_stamp(struct mp *mp, size_t size, unsigned int n)
{
	allreduce_stamp(mp, size, n);
	for (int r = 1; r < mp->ranks; r++)
		memcpy(mp->out + (size_t)r * size, mp->out, size);
}

static void reduce_scatter_call(struct mp *mp, size_t size)
{
	reduce_scatter(mp, size, false);
}

static void reduce_scatter_own(struct mp *mp, size_t size)
{
	reduce_scatter(mp, size, true);
}

/* ---- MPI_Barrier ---- */

static void barrier_stamp(struct mp *mp, size_t size, unsigned int n)
{
	(void)mp;
	(void)size;
	(void)n;
}

static void barrier_call(struct mp *mp, size_t size)
{
	(void)mp;
	(void)size;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void barrier_own(struct mp *mp, size_t size)
{
	(void)mp;
	(void)size;
	PMPI_Barrier(MPI_COMM_WORLD);
}

/* clang-format off */
const struct mp_coll mp_colls[] = {
	{"alltoall", alltoall_stamp, alltoall_call, alltoall_own, alltoall_check, false, false, true},
	{"allgather", allgather_stamp, allgather_call, allgather_own, allgather_check, false, false, true},
	{"allreduce", allreduce_stamp, allreduce_call, allreduce_own, allreduce_check, false, false, true},
	{"reduce_scatter", reduce_scatter_stamp, reduce_scatter_call, reduce_scatter_own, allreduce_check, false, false, true},
	{"bcast", bcast_stamp, bcast_call, bcast_own, bcast_check, true, true, true},
	{"scatter", scatter_stamp, scatter_call, scatter_own, scatter_check, true, true, true},
	{"barrier", barrier_stamp, barrier_call, barrier_own, barrier_stamp, false, false, false},
	{0},
};
/* clang-format on */

const struct mp_coll *mp_coll_find(const char *name)
{
	const struct mp_coll *c = mp_colls;

	while (c->name && strcmp(c->name, name) != 0)
		c++;
	return c->name ? c : NULL;
}
