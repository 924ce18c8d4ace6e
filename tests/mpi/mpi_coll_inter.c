/* Collectives between two groups: what one side gives, the other gets. */
#include "mpi_coll.h"

#include <stdlib.h>

static const int LENS[] = {0, 3, 1000, 8193, 70001};
enum { N_LENS = sizeof(LENS) / sizeof(*LENS) };

/* Ranks of side s as patterns name them, so that both groups' rank 0 differ. */
static int named(int side, int rank)
{
	return side * 100 + rank;
}

/* The argument `root` when the root is rank 0 of side `from`. */
static int root_arg(const struct coll *c, int from)
{
	if (c->side != from)
		return 0;
	return c->rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
}

static void bcast(const struct coll *c, int len, int from)
{
	uint8_t *buf = mt_alloc((size_t)len);

	mt_poison(buf, (size_t)len);
	if (c->side == from && c->rank == 0)
		mt_fill(buf, (size_t)len, mt_key(named(from, 0), -1, len));
	COLL(c, Bcast, Ibcast, buf, len, MPI_BYTE, root_arg(c, from), c->comm);
	if (c->side != from)
		mt_expect(buf, (size_t)len, mt_key(named(from, 0), -1, len), "bcast");
	mt_free(buf);
}

/* Rank 0 of side `to` gathers from, or scatters to, the other side. */
static void gather(const struct coll *c, int len, int to)
{
	size_t size = (size_t)len;
	uint8_t *all = mt_alloc(size * (size_t)c->remote), *own = mt_alloc(size);

	mt_fill(own, size, mt_key(named(c->side, c->rank), 0, len));
	mt_poison(all, size * (size_t)c->remote);
	COLL(c, Gather, Igather, own, len, MPI_BYTE, all, len, MPI_BYTE, root_arg(c, to), c->comm);
	for (int i = 0; i < c->remote && c->side == to && c->rank == 0; i++)
		mt_expect(all + size * (size_t)i, size, mt_key(named(!to, i), 0, len), "gather %d",
			  i);
	for (int i = 0; i < c->remote; i++)
		mt_fill(all + size * (size_t)i, size, mt_key(named(c->side, 0), i, len));
	mt_poison(own, size);
	COLL(c, Scatter, Iscatter, all, len, MPI_BYTE, own, len, MPI_BYTE, root_arg(c, to),
	     c->comm);
	if (c->side != to)
		mt_expect(own, size, mt_key(named(to, 0), c->rank, len), "scatter");
	mt_free(all);
	mt_free(own);
}

static void allgather(const struct coll *c, int len)
{
	size_t size = (size_t)len;
	uint8_t *all = mt_alloc(size * (size_t)c->remote), *own = mt_alloc(size);

	mt_fill(own, size, mt_key(named(c->side, c->rank), 1, len));
	mt_poison(all, size * (size_t)c->remote);
	COLL(c, Allgather, Iallgather, own, len, MPI_BYTE, all, len, MPI_BYTE, c->comm);
	for (int i = 0; i < c->remote; i++)
		mt_expect(all + size * (size_t)i, size, mt_key(named(!c->side, i), 1, len),
			  "allgather %d", i);
	mt_free(all);
	mt_free(own);
}

static void alltoall(const struct coll *c, int len)
{
	size_t size = (size_t)len;
	uint8_t *in = mt_alloc(size * (size_t)c->remote), *out = mt_alloc(size * (size_t)c->remote);

	for (int i = 0; i < c->remote; i++)
		mt_fill(out + size * (size_t)i, size, mt_key(named(c->side, c->rank), i, len));
	mt_poison(in, size * (size_t)c->remote);
	COLL(c, Alltoall, Ialltoall, out, len, MPI_BYTE, in, len, MPI_BYTE, c->comm);
	for (int i = 0; i < c->remote; i++)
		mt_expect(in + size * (size_t)i, size, mt_key(named(!c->side, i), c->rank, len),
			  "alltoall %d", i);
	mt_free(in);
	mt_free(out);
}

/* The sum over a side of (1 + side) * (rank + 1) * (i + 1). */
static long sum_of(int side, int size, int i)
{
	return (1L + side) * (long)size * (size + 1) / 2 * (i + 1);
}

static int wrong_sums(const struct coll *c, const long *in, int n, int first)
{
	int wrong = 0;

	for (int i = 0; i < n; i++)
		wrong += in[i] != sum_of(!c->side, c->remote, first + i);
	return wrong;
}

static void reduce(const struct coll *c, int to)
{
	/* The same on both sides, and a whole share for every rank of each. */
	int n = c->size * c->remote * 40, share = c->remote * 40, wrong;
	long *out = mt_alloc((size_t)n * sizeof(*out)), *in = mt_alloc((size_t)n * sizeof(*in));

	for (int i = 0; i < n; i++)
		out[i] = (1L + c->side) * (c->rank + 1) * (i + 1);
	COLL(c, Reduce, Ireduce, out, in, n, MPI_LONG, MPI_SUM, root_arg(c, to), c->comm);
	if (c->side == to && c->rank == 0) {
		wrong = wrong_sums(c, in, n, 0);
		CHECK(wrong == 0, "reduce: %d of %d wrong", wrong, n);
	}
	COLL(c, Allreduce, Iallreduce, out, in, n, MPI_LONG, MPI_SUM, c->comm);
	wrong = wrong_sums(c, in, n, 0);
	CHECK(wrong == 0, "allreduce: %d of %d wrong", wrong, n);
	COLL(c, Reduce_scatter_block, Ireduce_scatter_block, out, in, share, MPI_LONG, MPI_SUM,
	     c->comm);
	wrong = wrong_sums(c, in, share, share * c->rank);
	CHECK(wrong == 0, "reduce_scatter_block: %d of %d wrong", wrong, share);
	mt_free(out);
	mt_free(in);
}

void coll_inter(const struct coll *c)
{
	if (!mt_begin("all, %s", c->name))
		return;
	for (int k = 0; k < N_LENS && c->comm != MPI_COMM_NULL; k++) {
		for (int side = 0; side < 2; side++) {
			bcast(c, LENS[k], side);
			gather(c, LENS[k], side);
			reduce(c, side);
		}
		allgather(c, LENS[k]);
		alltoall(c, LENS[k]);
		COLL(c, Barrier, Ibarrier, c->comm);
	}
	mt_end();
}
