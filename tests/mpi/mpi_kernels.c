/* What the NAS kernels do with a network, small and exact: a parallel sort (IS), transposes (FT),
 * and a product of a matrix and a vector with dot products (CG), on whole numbers. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

/* ---- IS: keys go to the rank that owns their range ---- */

enum { KEYS = 40000, RANGE = 1 << 16 };

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static int owner(uint32_t key)
{
	return (int)((uint64_t)key * (uint64_t)mt.size / RANGE);
}

/* Sorted within the rank, above all of the rank before, and nothing lost: the number and the sum
 * of all keys, and of their squares, are those of before. */
static void check_sorted(const uint32_t *keys, int n, const uint64_t before[3])
{
	uint64_t mine[3] = {(uint64_t)n, 0, 0}, after[3];
	uint32_t last = n ? keys[n - 1] : 0, below = 0;
	int wrong = 0;

	for (int i = 0; i < n; i++) {
		wrong += owner(keys[i]) != mt.rank || (i > 0 && keys[i] < keys[i - 1]);
		mine[1] += keys[i];
		mine[2] += (uint64_t)keys[i] * keys[i];
	}
	MPI_Exscan(&last, &below, 1, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
	CHECK(wrong == 0, "%d of %d keys not in order", wrong, n);
	CHECK(mt.rank == 0 || n == 0 || keys[0] >= below, "%u below %u", keys[0], below);
	MPI_Allreduce(mine, after, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	CHECK(memcmp(before, after, sizeof(after)) == 0, "keys were lost or changed");
}

static void sort_once(struct util_rand *r)
{
	size_t ranks = (size_t)mt.size * sizeof(int);
	int *out = mt_alloc(ranks), *in = mt_alloc(ranks), *out_at = mt_alloc(ranks);
	int *in_at = mt_alloc(ranks), n = 0;
	uint32_t *keys = mt_alloc(KEYS * sizeof(*keys)), *got;
	uint64_t mine[3] = {KEYS, 0, 0}, before[3];

	memset(out, 0, ranks);
	for (int i = 0; i < KEYS; i++) {
		/* Nearly Gaussian, as in IS: ranks in the middle get more. */
		keys[i] = 0;
		for (int k = 0; k < 4; k++)
			keys[i] += (uint32_t)util_rand_below(r, RANGE / 4);
		out[owner(keys[i])]++;
		mine[1] += keys[i];
		mine[2] += (uint64_t)keys[i] * keys[i];
	}
	MPI_Allreduce(mine, before, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
	qsort(keys, KEYS, sizeof(*keys), compare);
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0, at = 0; i < mt.size; i++) {
		out_at[i] = at;
		in_at[i] = n;
		at += out[i];
		n += in[i];
	}
	got = mt_alloc((size_t)n * sizeof(*got));
	MPI_Alltoallv(keys, out, out_at, MPI_UINT32_T, got, in, in_at, MPI_UINT32_T,
		      MPI_COMM_WORLD);
	qsort(got, (size_t)n, sizeof(*got), compare);
	check_sorted(got, n, before);
	mt_free(got);
	mt_free(keys);
	mt_free(out);
	mt_free(in);
	mt_free(out_at);
	mt_free(in_at);
}

static void sort(void)
{
	struct util_rand r = mt_rand_own(1);

	for (int i = 0; i < 4; i++)
		sort_once(&r);
}

/* ---- FT: rows become columns, by all-to-all with datatypes ---- */

static uint64_t entry(int row, int col)
{
	return mt_key(row, col, 7);
}

/* All blocks in order, of one type; alltoallw wants them one by one. */
static void exchange_blocks(const uint64_t *a, MPI_Datatype out, uint64_t *t, MPI_Datatype in,
			    int b)
{
	size_t n = (size_t)mt.size;
	int *ones = mt_alloc(n * sizeof(int)), *at = mt_alloc(n * sizeof(int));
	MPI_Datatype *outs = mt_alloc(n * sizeof(out)), *ins = mt_alloc(n * sizeof(in));

	for (int i = 0; i < mt.size; i++) {
		ones[i] = 1;
		at[i] = i * b * 8;
		outs[i] = out;
		ins[i] = in;
	}
	MPI_Alltoallw(a, ones, at, outs, t, ones, at, ins, MPI_COMM_WORLD);
	mt_free(ones);
	mt_free(at);
	mt_free(outs);
	mt_free(ins);
}

/* Each rank has b rows of a matrix of size * b squared. Blocks of b x b go out as they lie in the
 * rows, and come in turned over: a column of the block is a row of it there. Not by MPI_Alltoall:
 * with small blocks and 24 ranks that of Open MPI 4.1.4 does not turn them over. */
static void transpose_once(int b)
{
	int width = b * mt.size, wrong = 0;
	size_t size = (size_t)b * (size_t)width;
	uint64_t *a = mt_alloc(size * 8), *t = mt_alloc(size * 8);
	MPI_Datatype block, row, turned;

	for (int r = 0; r < b; r++)
		for (int c = 0; c < width; c++)
			a[r * width + c] = entry(mt.rank * b + r, c);
	MPI_Type_vector(b, b, width, MPI_UINT64_T, &block);
	MPI_Type_commit(&block);
	MPI_Type_vector(b, 1, width, MPI_UINT64_T, &row);
	MPI_Type_create_hvector(b, 1, 8, row, &turned);
	MPI_Type_commit(&turned);
	exchange_blocks(a, block, t, turned, b);
	for (int r = 0; r < b; r++)
		for (int c = 0; c < width; c++)
			wrong += t[r * width + c] != entry(c, mt.rank * b + r);
	CHECK(wrong == 0, "%d of %zu wrong, blocks of %d", wrong, size, b);
	MPI_Type_free(&block);
	MPI_Type_free(&row);
	MPI_Type_free(&turned);
	mt_free(a);
	mt_free(t);
}

static void transpose(void)
{
	transpose_once(1);
	transpose_once(7);
	transpose_once(40);
	transpose_once(100);
}

/* ---- CG: v becomes A v, with dot products in between ---- */

enum { ROWS = 300 };

/* A few entries in each row, far from the diagonal. */
static uint64_t times_row(int row, const uint64_t *v, int n)
{
	uint64_t sum = 2 * v[row];

	for (int k = 1; k <= 6; k++)
		sum += (uint64_t)k * v[(row + k * k * 37) % n];
	return sum;
}

static uint64_t dot(const uint64_t *a, const uint64_t *b, int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Everything is computed twice: in parts with allgather and allreduce, and all on one's own. */
static void products(void)
{
	int n = ROWS * mt.size, first = ROWS * mt.rank;
	uint64_t *v = mt_alloc((size_t)n * 8), *alone = mt_alloc((size_t)n * 8);
	uint64_t *next = mt_alloc((size_t)n * 8), part[ROWS], mine, all;

	for (int i = 0; i < n; i++)
		v[i] = alone[i] = (uint64_t)i + 1;
	for (int step = 0; step < 40; step++) {
		for (int i = 0; i < ROWS; i++)
			part[i] = times_row(first + i, v, n);
		for (int i = 0; i < n; i++)
			next[i] = times_row(i, alone, n);
		mine = dot(part, v + first, ROWS);
		MPI_Allreduce(&mine, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		CHECK(all == dot(next, alone, n), "dot product of step %d", step);
		MPI_Allgather(part, ROWS, MPI_UINT64_T, v, ROWS, MPI_UINT64_T, MPI_COMM_WORLD);
		memcpy(alone, next, (size_t)n * 8);
		CHECK(memcmp(v, alone, (size_t)n * 8) == 0, "vector of step %d", step);
	}
	mt_free(v);
	mt_free(alone);
	mt_free(next);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("sort", sort);
	mt_part("transpose", transpose);
	mt_part("products", products);
	return mt_done();
}
