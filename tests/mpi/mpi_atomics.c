/* Accumulate, get_accumulate, fetch_and_op and compare_and_swap: all operations and types, all
 * ranks at once on the same numbers. */
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

/* ---- types ---- */

struct type {
	MPI_Datatype mpi;
	const char *name;
	int size, whole;
	long most; /* that it holds exactly */
};
static struct type types[10];
enum { N_TYPES = sizeof(types) / sizeof(*types), WIDEST = 8 };

static void fill_types(void)
{
	types[0] = (struct type){MPI_INT8_T, "int8", 1, 1, 127};
	types[1] = (struct type){MPI_UINT8_T, "uint8", 1, 1, 255};
	types[2] = (struct type){MPI_INT16_T, "int16", 2, 1, 32767};
	types[3] = (struct type){MPI_UINT16_T, "uint16", 2, 1, 65535};
	types[4] = (struct type){MPI_INT32_T, "int32", 4, 1, 1 << 30};
	types[5] = (struct type){MPI_UINT32_T, "uint32", 4, 1, 1 << 30};
	types[6] = (struct type){MPI_INT64_T, "int64", 8, 1, 1L << 60};
	types[7] = (struct type){MPI_UINT64_T, "uint64", 8, 1, 1L << 60};
	types[8] = (struct type){MPI_FLOAT, "float", 4, 0, 1 << 24};
	types[9] = (struct type){MPI_DOUBLE, "double", 8, 0, 1L << 53};
}

static void put(const struct type *t, void *p, int i, long v)
{
	uint8_t *at = (uint8_t *)p + (size_t)i * (size_t)t->size;
	float f = (float)v;
	double d = (double)v;

	if (t->whole)
		memcpy(at, &v, (size_t)t->size); /* little-endian */
	else if (t->size == 4)
		memcpy(at, &f, sizeof(f));
	else
		memcpy(at, &d, sizeof(d));
}

static long get(const struct type *t, const void *p, int i)
{
	const uint8_t *at = (const uint8_t *)p + (size_t)i * (size_t)t->size;
	long v = 0;
	float f;
	double d;

	if (t->whole) {
		memcpy(&v, at, (size_t)t->size);
		return v; /* none is negative here */
	}
	if (t->size == 4) {
		memcpy(&f, at, sizeof(f));
		return (long)f;
	}
	memcpy(&d, at, sizeof(d));
	return (long)d;
}

/* ---- the window ---- */

enum { MANY = 30000 };

/* One for all: windows are slow to make where ranks outnumber cores. Its unit is the byte. */
struct numbers {
	MPI_Win win;
	void *base;
	const struct type *t;
	int n;
};
static struct numbers window;

/* n numbers of a type, all the same. No epoch is open afterwards: each user has its own kind. */
static struct numbers numbers_new(const struct type *t, int n, long first)
{
	struct numbers w = {window.win, window.base, t, n};

	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt.rank, 0, w.win);
	for (int i = 0; i < n; i++)
		put(t, w.base, i, first);
	MPI_Win_unlock(mt.rank, w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	return w;
}

static int wrong_numbers(const struct numbers *w, long want)
{
	int wrong = 0;

	for (int i = 0; i < w->n; i++)
		wrong += get(w->t, w->base, i) != want;
	return wrong;
}

/* ---- accumulate ---- */

static long give(MPI_Op op)
{
	if (op == MPI_SUM)
		return mt.rank % 3 + 1;
	if (op == MPI_PROD)
		return mt.rank < 4 ? 2 : 1;
	if (op == MPI_BAND)
		return 127 ^ (1 << mt.rank % 3);
	if (op == MPI_BOR || op == MPI_BXOR)
		return 1 << mt.rank % 7;
	return (mt.rank * 5 + 3) % 101;
}

static long join(long a, long b, MPI_Op op)
{
	if (op == MPI_SUM)
		return a + b;
	if (op == MPI_PROD)
		return a * b;
	if (op == MPI_MIN)
		return a < b ? a : b;
	if (op == MPI_MAX)
		return a > b ? a : b;
	if (op == MPI_BAND)
		return a & b;
	return op == MPI_BOR ? a | b : a ^ b;
}

/* What is there when all have given theirs to `first`. */
static long together(long first, MPI_Op op)
{
	int self = mt.rank;

	for (mt.rank = 0; mt.rank < mt.size; mt.rank++)
		first = join(first, give(op), op);
	mt.rank = self;
	return first;
}

static void accumulate(const struct type *t, MPI_Op op, int n)
{
	struct numbers w = numbers_new(t, n, 1);
	uint8_t *out = mt_alloc((size_t)n * WIDEST);
	long want = together(1, op);
	int wrong;

	for (int i = 0; i < n; i++)
		put(t, out, i, give(op));
	MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win);
	for (int r = 0; r < mt.size; r++)
		MPI_Accumulate(out, n, t->mpi, r, 0, n, t->mpi, op, w.win);
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
	wrong = wrong_numbers(&w, want);
	CHECK(wrong == 0, "%d of %d %s wrong, the first is %ld instead of %ld", wrong, n, t->name,
	      get(t, w.base, 0), want);
	mt_free(out);
}

static void accumulates(void)
{
	const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR};

	for (int t = 0; t < N_TYPES; t++)
		for (int o = 0; o < (types[t].whole ? 7 : 4); o++)
			accumulate(&types[t], ops[o], (t + o) % 2 ? 3 : 500);
	accumulate(&types[6], MPI_SUM, MANY);
	accumulate(&types[9], MPI_SUM, MANY);
}

/* The same target and the same origin: in the order in which they were called. */
static void in_order(void)
{
	enum { N = 50 };
	struct numbers w = numbers_new(&types[6], mt.size, 0);
	int64_t v[N];

	MPI_Win_fence(MPI_MODE_NOPRECEDE, w.win);
	for (int i = 0; i < N; i++) {
		v[i] = mt.rank * 1000 + i;
		MPI_Accumulate(&v[i], 1, MPI_INT64_T, next(), mt.rank * 8, 1, MPI_INT64_T,
			       MPI_REPLACE, w.win);
	}
	MPI_Win_fence(MPI_MODE_NOSUCCEED, w.win);
	CHECK(get(w.t, w.base, prev()) == prev() * 1000 + N - 1, "the last value is %ld",
	      get(w.t, w.base, prev()));
}

/* ---- fetching ---- */

/* All tickets are different, and none is missing. */
static void check_tickets(const long *mine, int n, const char *what)
{
	size_t all = (size_t)n * (size_t)mt.size;
	long *tickets = mt_alloc(all * sizeof(long));
	char *seen = calloc(all, 1);
	int wrong = 0;

	MPI_Gather(mine, n, MPI_LONG, tickets, n, MPI_LONG, 0, MPI_COMM_WORLD);
	for (size_t i = 0; i < all && mt.rank == 0; i++) {
		if (tickets[i] < 0 || tickets[i] >= (long)all || seen[tickets[i]])
			wrong++;
		else
			seen[tickets[i]] = 1;
	}
	CHECK(wrong == 0, "%s: %d tickets twice or out of range", what, wrong);
	free(seen);
	mt_free(tickets);
}

/* Everybody draws tickets from rank `at` by adding 1. */
static void tickets(const struct type *t, int by_accumulate, int at)
{
	enum { MOST = 40 };
	/* As many as fit, a multiple of nothing in particular. */
	int n = t->most / mt.size < MOST ? (int)(t->most / mt.size) : MOST;
	struct numbers w = numbers_new(t, 1, 0);
	long mine[MOST];
	uint8_t one[WIDEST], old[WIDEST];

	put(t, one, 0, 1);
	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < n; i++) {
		memset(old, 0xff, sizeof(old));
		if (by_accumulate)
			MPI_Get_accumulate(one, 1, t->mpi, old, 1, t->mpi, at, 0, 1, t->mpi,
					   MPI_SUM, w.win);
		else
			MPI_Fetch_and_op(one, old, t->mpi, at, 0, MPI_SUM, w.win);
		MPI_Win_flush(at, w.win);
		mine[i] = get(t, old, 0);
	}
	MPI_Win_unlock_all(w.win);
	check_tickets(mine, n, t->name);
}

static void fetch_and_op(void)
{
	for (int t = 0; t < N_TYPES; t++)
		tickets(&types[t], 0, t % mt.size);
}

static void get_accumulate(void)
{
	for (int t = 0; t < N_TYPES; t++)
		tickets(&types[t], 1, (t + 1) % mt.size);
}

/* Reading with MPI_NO_OP and writing with MPI_REPLACE, whole arrays. */
static void read_and_replace(void)
{
	enum { N = 1000 };
	struct numbers w = numbers_new(&types[6], N, mt.rank);
	int64_t *out = mt_alloc(N * 8), *old = mt_alloc(N * 8), *now = mt_alloc(N * 8);
	int wrong = 0;

	for (int i = 0; i < N; i++)
		out[i] = mt.rank * 10000 + i;
	MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, w.win);
	MPI_Get_accumulate(out, N, MPI_INT64_T, old, N, MPI_INT64_T, next(), 0, N, MPI_INT64_T,
			   MPI_REPLACE, w.win);
	MPI_Win_flush(next(), w.win);
	MPI_Get_accumulate(NULL, 0, MPI_INT64_T, now, N, MPI_INT64_T, next(), 0, N, MPI_INT64_T,
			   MPI_NO_OP, w.win);
	MPI_Win_unlock(next(), w.win);
	for (int i = 0; i < N; i++)
		wrong += old[i] != next() || now[i] != out[i];
	CHECK(wrong == 0, "%d of %d wrong", wrong, N);
	mt_free(out);
	mt_free(old);
	mt_free(now);
}

/* ---- compare and swap ---- */

/* A counter that is raised by compare and swap; attempts that fail see what made them fail. */
static void raise(const struct type *t, int at)
{
	enum { N = 5 };
	struct numbers w = numbers_new(t, 1, 0);
	uint8_t seen[WIDEST], old[WIDEST], new[WIDEST];
	long mine[N], sum = 0;

	MPI_Win_lock_all(0, w.win);
	put(t, seen, 0, 0);
	for (int i = 0; i < N;) {
		put(t, new, 0, get(t, seen, 0) + 1);
		MPI_Compare_and_swap(new, seen, old, t->mpi, at, 0, w.win);
		MPI_Win_flush(at, w.win);
		CHECK(get(t, old, 0) >= get(t, seen, 0), "the counter goes back");
		if (memcmp(old, seen, (size_t)t->size) == 0) {
			mine[i++] = get(t, old, 0);
			memcpy(seen, new, sizeof(seen));
		} else {
			memcpy(seen, old, sizeof(seen));
		}
		mt_relax();
	}
	MPI_Win_unlock_all(w.win);
	check_tickets(mine, N, "compare_and_swap");
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt.rank, 0, w.win);
	if (mt.rank == at)
		sum = get(t, w.base, 0);
	MPI_Win_unlock(mt.rank, w.win);
	CHECK(mt.rank != at || sum == (long)N * mt.size, "%s: %ld at the end", t->name, sum);
}

static void compare_and_swap(void)
{
	for (int t = 0; t < N_TYPES; t++)
		if (types[t].whole)
			raise(&types[t], (t + 2) % mt.size);
}

/* ---- strided, and with requests ---- */

static void strided(void)
{
	enum { N = 40 };
	struct numbers w = numbers_new(&types[6], 2 * N, 0);
	int64_t out[N];
	int wrong = 0;
	MPI_Datatype every_second;
	MPI_Request req;

	MPI_Type_vector(N, 1, 2, MPI_INT64_T, &every_second);
	MPI_Type_commit(&every_second);
	for (int i = 0; i < N; i++)
		out[i] = i + 1;
	MPI_Win_lock_all(0, w.win);
	for (int r = 0; r < mt.size; r++) {
		MPI_Raccumulate(out, N, MPI_INT64_T, r, 0, 1, every_second, MPI_SUM, w.win, &req);
		MPI_Wait(&req, MPI_STATUS_IGNORE);
	}
	MPI_Win_unlock_all(w.win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt.rank, 0, w.win);
	for (int i = 0; i < 2 * N; i++)
		wrong += get(w.t, w.base, i) != (i % 2 ? 0 : (i / 2 + 1L) * mt.size);
	MPI_Win_unlock(mt.rank, w.win);
	CHECK(wrong == 0, "%d of %d wrong", wrong, 2 * N);
	MPI_Type_free(&every_second);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	fill_types();
	MPI_Win_allocate(MANY * WIDEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window.base,
			 &window.win);
	mt_part("accumulate", accumulates);
	mt_part("accumulates in order", in_order);
	mt_part("fetch_and_op", fetch_and_op);
	mt_part("get_accumulate", get_accumulate);
	mt_part("no_op and replace", read_and_replace);
	mt_part("compare_and_swap", compare_and_swap);
	mt_part("strided accumulate", strided);
	MPI_Win_free(&window.win);
	return mt_done();
}
