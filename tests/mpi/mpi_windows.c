/* Kinds of windows: dynamic, shared, with units, with datatypes, many of them; and nobody's. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static int prev(void)
{
	return (mt.rank + mt.size - 1) % mt.size;
}

/* ---- dynamic ---- */

enum { PIECES = 3, PIECE = 30000 };

/* Each rank attaches some memory and tells where; the neighbour writes and reads there. */
static void dynamic_round(MPI_Win win, int step)
{
	uint8_t *piece[PIECES], *buf = mt_alloc(PIECE);
	MPI_Aint mine[PIECES], theirs[PIECES];

	for (int i = 0; i < PIECES; i++) {
		piece[i] = mt_alloc(PIECE);
		mt_poison(piece[i], PIECE);
		MPI_Win_attach(win, piece[i], PIECE);
		MPI_Get_address(piece[i], &mine[i]);
	}
	MPI_Sendrecv(mine, PIECES, MPI_AINT, prev(), 1, theirs, PIECES, MPI_AINT, next(), 1,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < PIECES; i++) {
		mt_fill(buf, PIECE / 2, mt_key(mt.rank, next(), step + i));
		MPI_Put(buf, PIECE / 2, MPI_BYTE, next(), MPI_Aint_add(theirs[i], PIECE / 4),
			PIECE / 2, MPI_BYTE, win);
		MPI_Win_flush(next(), win);
		mt_poison(buf, PIECE);
		MPI_Get(buf, PIECE / 2, MPI_BYTE, next(), MPI_Aint_add(theirs[i], PIECE / 4),
			PIECE / 2, MPI_BYTE, win);
		MPI_Win_flush(next(), win);
		mt_expect(buf, PIECE / 2, mt_key(mt.rank, next(), step + i), "read back, piece %d",
			  i);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	for (int i = 0; i < PIECES; i++) {
		mt_expect(piece[i] + PIECE / 4, PIECE / 2, mt_key(prev(), mt.rank, step + i),
			  "piece %d", i);
		CHECK(mt_poisoned(piece[i], PIECE / 4) == PIECE / 4, "written before piece %d", i);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < PIECES; i++) {
		MPI_Win_detach(win, piece[i]);
		mt_free(piece[i]);
	}
	mt_free(buf);
}

static void dynamic(void)
{
	MPI_Win win;

	MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	for (int i = 0; i < 5; i++)
		dynamic_round(win, i * 10);
	MPI_Win_free(&win);
}

/* ---- shared ---- */

/* Ranks of one host store and load in each other's part, and also put and add. */
static void shared(void)
{
	enum { N = 1000 };
	int rank, size, unit;
	int64_t *mine, *theirs, one = 1;
	MPI_Aint bytes;
	MPI_Comm host;
	MPI_Win win;

	MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	MPI_Comm_rank(host, &rank);
	MPI_Comm_size(host, &size);
	MPI_Win_allocate_shared(N * sizeof(int64_t), sizeof(int64_t), MPI_INFO_NULL, host, &mine,
				&win);
	for (int i = 0; i < N; i++)
		mine[i] = rank * N + i;
	MPI_Win_fence(0, win);
	for (int r = 0; r < size; r++) {
		int wrong = 0;

		MPI_Win_shared_query(win, r, &bytes, &unit, &theirs);
		for (int i = 0; i < N; i++)
			wrong += theirs[i] != (int64_t)r * N + i;
		CHECK(wrong == 0 && unit == sizeof(int64_t) && bytes >= N * 8,
		      "%d of %d numbers of rank %d wrong", wrong, N, r);
	}
	MPI_Win_fence(0, win);
	MPI_Win_shared_query(win, (rank + 1) % size, &bytes, &unit, &theirs);
	theirs[1] = 7 + rank;
	mine[2] = 0;
	MPI_Win_fence(0, win);
	for (int i = 0; i < 10; i++)
		MPI_Accumulate(&one, 1, MPI_INT64_T, i % size, 2, 1, MPI_INT64_T, MPI_SUM, win);
	MPI_Win_fence(0, win);
	CHECK(mine[1] == 7 + (rank + size - 1) % size, "a neighbour's store: %lld",
	      (long long)mine[1]);
	CHECK(mine[2] == (int64_t)size * (10 / size + (rank < 10 % size)), "sum is %lld",
	      (long long)mine[2]);
	MPI_Win_free(&win);
	MPI_Comm_free(&host);
}

/* ---- units and sizes that differ ---- */

/* Even ranks count in ints, odd ones in bytes, rank 0 exposes nothing. */
static void units(void)
{
	enum { N = 100 };
	int unit = mt.rank % 2 ? 1 : (int)sizeof(int);
	int from = prev() ? prev() : mt.size - 1; /* who writes to us; rank 0 gets nothing */
	int to = next() ? next() : 1;
	int out[N], *in = mt_alloc(N * sizeof(int)), wrong = 0;
	MPI_Win win;

	for (int i = 0; i < N; i++) {
		out[i] = mt.rank * N + i;
		in[i] = -1;
	}
	MPI_Win_create(in, mt.rank == 0 ? 0 : N * sizeof(int), unit, MPI_INFO_NULL, MPI_COMM_WORLD,
		       &win);
	MPI_Win_fence(0, win);
	if (mt.rank != 0)
		for (int i = 0; i < N; i++)
			MPI_Put(&out[i], 1, MPI_INT, to, to % 2 ? i * (int)sizeof(int) : i, 1,
				MPI_INT, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < N; i++)
		wrong += in[i] != (mt.rank == 0 ? -1 : from * N + i);
	CHECK(wrong == 0, "%d of %d wrong", wrong, N);
	MPI_Win_free(&win);
	mt_free(in);
}

/* ---- datatypes ---- */

/* A column of the neighbour's matrix from a row of ours, and back into another column. */
static void datatypes(void)
{
	enum { N = 64 };
	int *m = mt_alloc(N * N * sizeof(int)), row[N], *back = mt_alloc(N * N * sizeof(int));
	int wrong = 0;
	MPI_Datatype column;
	MPI_Win win;

	MPI_Type_vector(N, 1, N, MPI_INT, &column);
	MPI_Type_commit(&column);
	for (int i = 0; i < N; i++)
		row[i] = mt.rank * 1000 + i;
	for (int i = 0; i < N * N; i++)
		m[i] = back[i] = -1;
	MPI_Win_create(m, N * N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(row, N, MPI_INT, next(), 5, 1, column, win);
	MPI_Win_fence(0, win);
	MPI_Get(back + 9, 1, column, next(), 5, 1, column, win);
	MPI_Win_fence(0, win);
	for (int i = 0; i < N * N; i++) {
		wrong += m[i] != (i % N == 5 ? prev() * 1000 + i / N : -1);
		wrong += back[i] != (i % N == 9 ? mt.rank * 1000 + i / N : -1);
	}
	CHECK(wrong == 0, "%d numbers wrong", wrong);
	MPI_Win_free(&win);
	MPI_Type_free(&column);
	mt_free(m);
	mt_free(back);
}

/* ---- nobody, and many ---- */

static void nobody(void)
{
	int x = 5, y = 6, base = 7;
	MPI_Win win;

	MPI_Win_create(&base, sizeof(base), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	MPI_Win_fence(0, win);
	MPI_Put(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win);
	MPI_Get(&y, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win);
	MPI_Accumulate(&x, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win);
	MPI_Win_fence(0, win);
	CHECK(y == 6 && base == 7, "got %d, base is %d", y, base);
	MPI_Win_free(&win);
}

/* Windows that come and go, with memory that is new each time: nothing stale is used. */
static void many_windows(void)
{
	for (int i = 0; i < 20; i++) {
		size_t len = 50000 + (size_t)i * 4096;
		uint8_t *base = malloc(len), *out = mt_alloc(1000);
		MPI_Win win;

		mt_poison(base, len);
		mt_fill(out, 1000, mt_key(mt.rank, next(), i));
		MPI_Win_create(base, (MPI_Aint)len, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
		MPI_Win_fence(0, win);
		MPI_Put(out, 1000, MPI_BYTE, next(), (MPI_Aint)len - 1000, 1000, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		mt_expect(base + len - 1000, 1000, mt_key(prev(), mt.rank, i), "window %d", i);
		MPI_Win_free(&win);
		free(base);
		mt_free(out);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("dynamic", dynamic);
	mt_part("shared", shared);
	mt_part("units", units);
	mt_part("datatypes", datatypes);
	mt_part("nobody", nobody);
	mt_part("many windows", many_windows);
	return mt_done();
}
