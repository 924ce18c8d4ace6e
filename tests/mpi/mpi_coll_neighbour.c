/* Collectives between neighbours: of a grid, and of a graph. */
#include "mpi_coll.h"

#include <stdlib.h>

enum { MOST = 8 };
static const int LENS[] = {0, 5, 2000, 8193, 100001};
enum { N_LENS = sizeof(LENS) / sizeof(*LENS) };

/* Edge k of `from` and `to`: where the message through it comes from, and what it is there. */
struct around {
	struct coll c;
	int n_in, n_out;
	int in[MOST], out[MOST];
	int in_edge[MOST], out_edge[MOST];
};

static size_t spot(int k, int len)
{
	return (size_t)k * (size_t)(len + 9);
}

struct buffers {
	uint8_t *out, *in;
	int len[MOST], at[MOST];
	MPI_Aint byte_at[MOST];
	MPI_Datatype types[MOST];
};

static void prepare(struct buffers *b, int len)
{
	b->out = mt_alloc(spot(MOST, len));
	b->in = mt_alloc(spot(MOST, len));
	mt_poison(b->in, spot(MOST, len));
	for (int k = 0; k < MOST; k++) {
		b->len[k] = len;
		b->at[k] = (int)spot(k, len);
		b->byte_at[k] = (MPI_Aint)spot(k, len);
		b->types[k] = MPI_BYTE;
	}
}

/* stride: of the blocks in memory. */
static void check(const struct around *a, const struct buffers *b, int len, size_t stride,
		  int all_the_same, const char *what)
{
	for (int k = 0; k < a->n_in; k++) {
		const uint8_t *p = b->in + (size_t)k * stride;
		int edge = all_the_same ? -1 : a->in_edge[k];

		if (a->in[k] == MPI_PROC_NULL)
			CHECK(mt_poisoned(p, (size_t)len) == (size_t)len, "%s: written for nobody",
			      what);
		else
			mt_expect(p, (size_t)len, mt_key(a->in[k], edge, len), "%s, edge %d", what,
				  k);
	}
}

static void gathers(const struct around *a, int len)
{
	const struct coll *c = &a->c;
	struct buffers b;

	prepare(&b, len);
	mt_fill(b.out, (size_t)len, mt_key(c->rank, -1, len));
	COLL(c, Neighbor_allgather, Ineighbor_allgather, b.out, len, MPI_BYTE, b.in, len, MPI_BYTE,
	     c->comm);
	check(a, &b, len, (size_t)len, 1, "neighbor_allgather");
	mt_poison(b.in, spot(MOST, len));
	COLL(c, Neighbor_allgatherv, Ineighbor_allgatherv, b.out, len, MPI_BYTE, b.in, b.len, b.at,
	     MPI_BYTE, c->comm);
	check(a, &b, len, spot(1, len), 1, "neighbor_allgatherv");
	mt_free(b.out);
	mt_free(b.in);
}

static void fill_out(const struct around *a, struct buffers *b, int len, size_t stride)
{
	for (int k = 0; k < a->n_out; k++)
		mt_fill(b->out + (size_t)k * stride, (size_t)len,
			mt_key(a->c.rank, a->out_edge[k], len));
}

static void alltoalls(const struct around *a, int len)
{
	const struct coll *c = &a->c;
	struct buffers b;

	prepare(&b, len);
	fill_out(a, &b, len, (size_t)len);
	COLL(c, Neighbor_alltoall, Ineighbor_alltoall, b.out, len, MPI_BYTE, b.in, len, MPI_BYTE,
	     c->comm);
	check(a, &b, len, (size_t)len, 0, "neighbor_alltoall");
	fill_out(a, &b, len, spot(1, len));
	mt_poison(b.in, spot(MOST, len));
	COLL(c, Neighbor_alltoallv, Ineighbor_alltoallv, b.out, b.len, b.at, MPI_BYTE, b.in, b.len,
	     b.at, MPI_BYTE, c->comm);
	check(a, &b, len, spot(1, len), 0, "neighbor_alltoallv");
	mt_poison(b.in, spot(MOST, len));
	COLL(c, Neighbor_alltoallw, Ineighbor_alltoallw, b.out, b.len, b.byte_at, b.types, b.in,
	     b.len, b.byte_at, b.types, c->comm);
	check(a, &b, len, spot(1, len), 0, "neighbor_alltoallw");
	mt_free(b.out);
	mt_free(b.in);
}

static void run(struct around *a)
{
	MPI_Comm_rank(a->c.comm, &a->c.rank);
	MPI_Comm_size(a->c.comm, &a->c.size);
	for (int k = 0; k < N_LENS; k++) {
		gathers(a, LENS[k]);
		alltoalls(a, LENS[k]);
	}
	MPI_Comm_free(&a->c.comm);
}

/* Closed only where three or more are in a row: with two, both neighbours are the same rank, and
 * which of its messages is which was left open until MPI 4. */
static void grid(int nonblocking)
{
	struct around a = {.c.nonblocking = nonblocking, .n_in = 4, .n_out = 4};
	int dims[2] = {0, 0}, closed[2];

	MPI_Dims_create(mt.size, 2, dims);
	closed[0] = dims[0] > 2;
	closed[1] = dims[1] > 2;
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, closed, 1, &a.c.comm);
	for (int d = 0; d < 2; d++)
		MPI_Cart_shift(a.c.comm, d, 1, &a.in[2 * d], &a.in[2 * d + 1]);
	for (int k = 0; k < 4; k++) {
		a.out[k] = a.in[k];
		a.out_edge[k] = k;
		a.in_edge[k] = k ^ 1; /* what goes left comes from the right */
	}
	run(&a);
}

/* To the rank one, two and half of all further, as far as these differ: directed, and with as
 * many edges in as out. */
static void graph(int nonblocking)
{
	struct around a = {.c.nonblocking = nonblocking};
	int steps[3] = {1, 2, mt.size / 2 + 1}, ones[MOST] = {1, 1, 1, 1, 1, 1, 1, 1};
	int n = mt.size <= 2 ? 1 : mt.size <= 4 ? 2 : 3;

	for (int k = 0; k < n; k++) {
		a.out[k] = (mt.rank + steps[k]) % mt.size;
		a.in[n - 1 - k] = (mt.rank - steps[k] + 2 * mt.size) % mt.size;
		a.out_edge[k] = k;
		a.in_edge[n - 1 - k] = k;
	}
	a.n_in = a.n_out = n;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, n, a.in, ones, n, a.out, ones, MPI_INFO_NULL,
				       0, &a.c.comm);
	run(&a);
}

void coll_neighbour(int nonblocking)
{
	if (mt_begin("neighbours of a grid")) {
		grid(nonblocking);
		mt_end();
	}
	if (mt_begin("neighbours of a graph")) {
		graph(nonblocking);
		mt_end();
	}
}
