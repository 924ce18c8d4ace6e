/* What reductions work on. */
#include "coll_check.h"

#include <string.h>

/* ---- values ---- */

static void fill_bytes(struct util_rand *r, void *buf, size_t len)
{
	mt_fill(buf, len, util_rand_next(r));
}

static void fill_int(struct util_rand *r, void *buf, int n)
{
	fill_bytes(r, buf, (size_t)n * sizeof(int));
}

static void fill_long(struct util_rand *r, void *buf, int n)
{
	fill_bytes(r, buf, (size_t)n * sizeof(uint64_t));
}

static void fill_char(struct util_rand *r, void *buf, int n)
{
	fill_bytes(r, buf, (size_t)n);
}

/* Whole numbers, whose sums are exact. */
static void fill_whole(struct util_rand *r, void *buf, int n)
{
	double *v = buf;

	for (int i = 0; i < n; i++)
		v[i] = (double)(util_rand_next(r) % 100000) - 50000;
}

static void fill_float(struct util_rand *r, void *buf, int n)
{
	float *v = buf;

	for (int i = 0; i < n; i++)
		v[i] = (float)(util_rand_next(r) % 1000);
}

static void fill_real(struct util_rand *r, void *buf, int n)
{
	double *v = buf;

	for (int i = 0; i < n; i++)
		v[i] = (double)(util_rand_next(r) >> 11) * 0x1p-53;
}

struct where {
	double value;
	int index;
};

/* Few values, so that several ranks have the same: the lowest index must win. */
static void fill_where(struct util_rand *r, void *buf, int n)
{
	struct where *v = buf;

	memset(v, 0, (size_t)n * sizeof(*v));
	for (int i = 0; i < n; i++)
		v[i] = (struct where){(double)(util_rand_next(r) % 3), mt.rank};
}

/* ---- matrices: not commutative, so that the order of ranks shows ---- */

enum { CELLS = 4 };

static void fill_matrix(struct util_rand *r, void *buf, int n)
{
	fill_bytes(r, buf, (size_t)n * CELLS * sizeof(uint32_t));
}

/* b = a times b, modulo 2^32. */
static void multiply(void *in, void *inout, int *len, MPI_Datatype *type)
{
	const uint32_t *a = in;
	uint32_t *b = inout;

	(void)type;
	for (int i = 0; i < *len; i++, a += CELLS, b += CELLS) {
		uint32_t m[CELLS] = {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
				     a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]};

		memcpy(b, m, sizeof(m));
	}
}

/* Commutative, and nobody's but ours. */
static void mixed(void *in, void *inout, int *len, MPI_Datatype *type)
{
	const uint32_t *a = in;
	uint32_t *b = inout;

	(void)type;
	for (int i = 0; i < *len; i++)
		b[i] += a[i] + 17;
}

/* ---- the list ---- */

static MPI_Datatype matrix;
static MPI_Op product, sum_17;
static struct cc_reduction list[16];
static int count;

static void add(const char *name, MPI_Datatype type, MPI_Op op, size_t bytes, int exact,
		void (*fill)(struct util_rand *, void *, int))
{
	list[count++] = (struct cc_reduction){name, type, op, bytes, exact, fill};
}

void cc_reductions_make(void)
{
	MPI_Type_contiguous(CELLS, MPI_UINT32_T, &matrix);
	MPI_Type_commit(&matrix);
	MPI_Op_create(multiply, 0, &product);
	MPI_Op_create(mixed, 1, &sum_17);
	add("sum of doubles", MPI_DOUBLE, MPI_SUM, sizeof(double), 1, fill_whole);
	add("sum of fractions", MPI_DOUBLE, MPI_SUM, sizeof(double), 0, fill_real);
	add("sum of floats", MPI_FLOAT, MPI_SUM, sizeof(float), 1, fill_float);
	add("sum of ints", MPI_UNSIGNED, MPI_SUM, sizeof(int), 1, fill_int);
	add("max of ints", MPI_INT, MPI_MAX, sizeof(int), 1, fill_int);
	add("min of doubles", MPI_DOUBLE, MPI_MIN, sizeof(double), 1, fill_whole);
	add("xor of longs", MPI_UINT64_T, MPI_BXOR, sizeof(uint64_t), 1, fill_long);
	add("product of longs", MPI_UINT64_T, MPI_PROD, sizeof(uint64_t), 1, fill_long);
	add("and of ints", MPI_INT, MPI_LAND, sizeof(int), 1, fill_int);
	add("or of bytes", MPI_BYTE, MPI_BOR, 1, 1, fill_char);
	add("max of signed chars", MPI_SIGNED_CHAR, MPI_MAX, 1, 1, fill_char);
	add("maxloc", MPI_DOUBLE_INT, MPI_MAXLOC, sizeof(struct where), 1, fill_where);
	add("product of matrices", matrix, product, CELLS * sizeof(uint32_t), 1, fill_matrix);
	add("own sum", MPI_UINT32_T, sum_17, sizeof(uint32_t), 1, fill_int);
}

void cc_reductions_free(void)
{
	MPI_Op_free(&product);
	MPI_Op_free(&sum_17);
	MPI_Type_free(&matrix);
}

const struct cc_reduction *cc_reduction(struct cc_case *c)
{
	const struct cc_reduction *r = &list[util_rand_below(&c->shared, (uint64_t)count)];

	cc_say(c, ", %s", r->name);
	return r;
}
