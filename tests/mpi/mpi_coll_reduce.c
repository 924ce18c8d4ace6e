/* Reductions and scans. All values are whole numbers small enough that every order of adding
 * them gives the same, also in floating point. */
#include "mpi_coll.h"

#include <stdlib.h>
#include <string.h>

static const int COUNTS[] = {1, 5, 1000, 20011};
enum { N_COUNTS = sizeof(COUNTS) / sizeof(*COUNTS) };

/* What rank gives as its number i. Products of it stay below 2^24 with 24 ranks. */
static int value(int rank, int i, MPI_Op op)
{
	if (op == MPI_PROD)
		return (rank + i) % 3 == 0 ? 2 : 1;
	if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR)
		return (rank * 5 + i) % 4 != 1;
	return (rank * 31 + i * 17) % 97 + 1;
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
	if (op == MPI_BOR)
		return a | b;
	if (op == MPI_BXOR)
		return a ^ b;
	if (op == MPI_LAND)
		return a && b;
	return op == MPI_LOR ? a || b : !a != !b;
}

/* Of ranks 0 to last. */
static long result(int last, int i, MPI_Op op)
{
	long r = value(0, i, op);

	for (int rank = 1; rank <= last; rank++)
		r = join(r, value(rank, i, op), op);
	return r;
}

/* ---- types ---- */

struct type {
	MPI_Datatype mpi;
	const char *name;
	size_t size;
	int whole; /* has bits */
	void (*put)(void *, int, long);
	long (*get)(const void *, int);
};

#define TYPE(name, ctype)                                                                          \
	static void put_##name(void *p, int i, long v)                                             \
	{                                                                                          \
		((ctype *)p)[i] = (ctype)v;                                                        \
	}                                                                                          \
	static long get_##name(const void *p, int i)                                               \
	{                                                                                          \
		return (long)((const ctype *)p)[i];                                                \
	}
TYPE(short, short)
TYPE(int, int)
TYPE(u32, uint32_t)
TYPE(i64, int64_t)
TYPE(float, float)
TYPE(double, double)

static struct type types[6];
enum { N_TYPES = sizeof(types) / sizeof(*types) };

/* MPI's handles need not be constants. */
static void fill_types(void)
{
	types[0] = (struct type){MPI_INT, "int", sizeof(int), 1, put_int, get_int};
	types[1] = (struct type){MPI_DOUBLE, "double", sizeof(double), 0, put_double, get_double};
	types[2] = (struct type){MPI_INT64_T, "int64", sizeof(int64_t), 1, put_i64, get_i64};
	types[3] = (struct type){MPI_FLOAT, "float", sizeof(float), 0, put_float, get_float};
	types[4] = (struct type){MPI_UINT32_T, "uint32", sizeof(uint32_t), 1, put_u32, get_u32};
	types[5] = (struct type){MPI_SHORT, "short", sizeof(short), 1, put_short, get_short};
}

/* ---- one reduction of each kind ---- */

struct job {
	const struct coll *c;
	const struct type *t;
	MPI_Op op;
	int n;
	void *out, *in;
};

static void expect(const struct job *j, const void *in, int n, int first, int last,
		   const char *what)
{
	int wrong = 0, at = -1;

	for (int i = 0; i < n; i++)
		if (j->t->get(in, i) != result(last, first + i, j->op)) {
			at = wrong++ ? at : i;
		}
	CHECK(wrong == 0, "%s of %d %s: %d wrong, number %d is %ld instead of %ld", what, j->n,
	      j->t->name, wrong, at, j->t->get(in, at < 0 ? 0 : at),
	      result(last, first + (at < 0 ? 0 : at), j->op));
}

static void give(const struct job *j, void *buf)
{
	for (int i = 0; i < j->n; i++)
		j->t->put(buf, i, value(j->c->rank, i, j->op));
}

static void reduce(struct job *j, int root, int in_place)
{
	const struct coll *c = j->c;

	/* MPICH 4.0.2 crashes on MPI_IN_PLACE (seen with 1000 ints, root 1). */
	if (root != 0 && mt_library("MPICH"))
		in_place = 0;
	give(j, c->rank == root && in_place ? j->in : j->out);
	COLL(c, Reduce, Ireduce, c->rank == root && in_place ? MPI_IN_PLACE : j->out, j->in, j->n,
	     j->t->mpi, j->op, root, c->comm);
	if (c->rank == root)
		expect(j, j->in, j->n, 0, c->size - 1, "reduce");
}

static void allreduce(struct job *j, int in_place)
{
	const struct coll *c = j->c;

	give(j, in_place ? j->in : j->out);
	COLL(c, Allreduce, Iallreduce, in_place ? MPI_IN_PLACE : j->out, j->in, j->n, j->t->mpi,
	     j->op, c->comm);
	expect(j, j->in, j->n, 0, c->size - 1, "allreduce");
}

static void scan(struct job *j, int in_place)
{
	const struct coll *c = j->c;

	give(j, in_place ? j->in : j->out);
	COLL(c, Scan, Iscan, in_place ? MPI_IN_PLACE : j->out, j->in, j->n, j->t->mpi, j->op,
	     c->comm);
	expect(j, j->in, j->n, 0, c->rank, "scan");
}

static void exscan(struct job *j, int in_place)
{
	const struct coll *c = j->c;

	give(j, in_place ? j->in : j->out);
	COLL(c, Exscan, Iexscan, in_place ? MPI_IN_PLACE : j->out, j->in, j->n, j->t->mpi, j->op,
	     c->comm);
	if (c->rank > 0)
		expect(j, j->in, j->n, 0, c->rank - 1, "exscan");
}

/* Shares of different sizes, some of them nothing. */
static void reduce_scatter(struct job *j, int in_place)
{
	const struct coll *c = j->c;
	int *share = mt_alloc((size_t)c->size * sizeof(int)), first = 0, left = j->n;

	for (int i = 0; i < c->size; i++) {
		share[i] = i == c->size - 1 ? left : i % 3 == 1 ? 0 : left / 2;
		left -= share[i];
		if (i < c->rank)
			first += share[i];
	}
	give(j, in_place ? j->in : j->out);
	COLL(c, Reduce_scatter, Ireduce_scatter, in_place ? MPI_IN_PLACE : j->out, j->in, share,
	     j->t->mpi, j->op, c->comm);
	expect(j, j->in, share[c->rank], first, c->size - 1, "reduce_scatter");
	mt_free(share);
}

static void reduce_scatter_block(struct job *j, int in_place)
{
	const struct coll *c = j->c;
	int share = j->n / c->size;

	give(j, in_place ? j->in : j->out);
	COLL(c, Reduce_scatter_block, Ireduce_scatter_block, in_place ? MPI_IN_PLACE : j->out,
	     j->in, share, j->t->mpi, j->op, c->comm);
	expect(j, j->in, share, share * c->rank, c->size - 1, "reduce_scatter_block");
}

static void all_kinds(struct job *j, int step)
{
	int in_place = step % 2;

	j->out = mt_alloc((size_t)j->n * j->t->size);
	j->in = mt_alloc((size_t)j->n * j->t->size);
	reduce(j, step % j->c->size, in_place);
	allreduce(j, in_place);
	scan(j, in_place);
	exscan(j, in_place);
	reduce_scatter(j, in_place);
	reduce_scatter_block(j, in_place);
	mt_free(j->out);
	mt_free(j->in);
}

static void all_types(const struct coll *c)
{
	const MPI_Op ops[] = {MPI_SUM, MPI_MIN,  MPI_MAX,  MPI_PROD, MPI_BAND,
			      MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR,  MPI_LXOR};
	int step = 0;

	for (int t = 0; t < N_TYPES; t++)
		for (int o = 0; o < 10; o++) {
			struct job j = {c,    &types[t], ops[o], COUNTS[step % (N_COUNTS - 1)],
					NULL, NULL};

			if (o >= 4 && !types[t].whole)
				continue;
			if (t == 5 && o == 3)
				continue; /* products do not fit into a short */
			if (o == 0)
				j.n = COUNTS[N_COUNTS - 1];
			all_kinds(&j, step++);
		}
}

/* ---- where, and operators of one's own ---- */

static void locations(const struct coll *c)
{
	struct {
		double v;
		int rank;
	} out[50], in[50];
	int wrong = 0;

	for (int max = 0; max < 2; max++) {
		for (int i = 0; i < 50; i++) {
			/* Ties: the lowest rank wins. */
			out[i].v = (c->rank + i) % 3;
			out[i].rank = c->rank;
		}
		COLL(c, Allreduce, Iallreduce, out, in, 50, MPI_DOUBLE_INT,
		     max ? MPI_MAXLOC : MPI_MINLOC, c->comm);
		for (int i = 0; i < 50; i++) {
			int best = 0;

			for (int r = 1; r < c->size; r++) {
				int v = (r + i) % 3, b = (best + i) % 3;

				if (max ? v > b : v < b)
					best = r;
			}
			wrong += in[i].rank != best || in[i].v != (best + i) % 3;
		}
	}
	CHECK(wrong == 0, "%d of minloc and maxloc wrong", wrong);
}

/* Products of matrices: the order of ranks matters, brackets do not. */
struct matrix {
	uint32_t a[4];
};

static struct matrix times(struct matrix x, struct matrix y)
{
	return (struct matrix){
		{x.a[0] * y.a[0] + x.a[1] * y.a[2], x.a[0] * y.a[1] + x.a[1] * y.a[3],
		 x.a[2] * y.a[0] + x.a[3] * y.a[2], x.a[2] * y.a[1] + x.a[3] * y.a[3]}};
}

static void multiply(void *in, void *inout, int *n, MPI_Datatype *type)
{
	struct matrix *x = in, *y = inout;

	(void)type;
	for (int i = 0; i < *n; i++)
		y[i] = times(x[i], y[i]);
}

static struct matrix matrix_of(int rank, int i)
{
	uint32_t s = (uint32_t)(rank * 7 + i);

	return (struct matrix){{s + 1, s + 3, 2 * s + 1, s ^ 5}};
}

static void expect_product(const struct matrix *m, int n, int last, const char *what)
{
	int wrong = 0;

	for (int i = 0; i < n; i++) {
		struct matrix p = matrix_of(0, i);

		for (int r = 1; r <= last; r++)
			p = times(p, matrix_of(r, i));
		wrong += memcmp(&p, &m[i], sizeof(p)) != 0;
	}
	CHECK(wrong == 0, "%s with an operator that does not commute: %d of %d wrong", what, wrong,
	      n);
}

static void own_operator(const struct coll *c)
{
	enum { MANY = 3000 };
	struct matrix *out = mt_alloc(MANY * sizeof(*out)), *in = mt_alloc(MANY * sizeof(*in));
	MPI_Datatype type;
	MPI_Op op;

	MPI_Type_contiguous(4, MPI_UINT32_T, &type);
	MPI_Type_commit(&type);
	MPI_Op_create(multiply, 0, &op);
	for (int n = 1; n <= MANY; n *= 3000) {
		for (int i = 0; i < n; i++)
			out[i] = matrix_of(c->rank, i);
		COLL(c, Allreduce, Iallreduce, out, in, n, type, op, c->comm);
		expect_product(in, n, c->size - 1, "allreduce");
		COLL(c, Reduce, Ireduce, out, in, n, type, op, c->size - 1, c->comm);
		if (c->rank == c->size - 1)
			expect_product(in, n, c->size - 1, "reduce");
		COLL(c, Scan, Iscan, out, in, n, type, op, c->comm);
		expect_product(in, n, c->rank, "scan");
	}
	MPI_Op_free(&op);
	MPI_Type_free(&type);
	mt_free(out);
	mt_free(in);
}

void coll_reduce(const struct coll *c)
{
	int in = c->comm != MPI_COMM_NULL;

	fill_types();
	if (mt_begin("reductions, %s", c->name)) {
		if (in)
			all_types(c);
		mt_end();
	}
	if (mt_begin("minloc and maxloc, %s", c->name)) {
		if (in)
			locations(c);
		mt_end();
	}
	if (mt_begin("own operator, %s", c->name)) {
		if (in)
			own_operator(c);
		mt_end();
	}
}
