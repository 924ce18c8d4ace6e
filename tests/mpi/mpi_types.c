/* Derived datatypes: what is not contiguous on either side arrives in its place, and what lies
 * between stays as it was. */
#include "mpi_test.h"

#include <stddef.h>
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

/* Around the ring, in three ways. */
static void exchange(const void *out, int n_out, MPI_Datatype t_out, void *in, int n_in,
		     MPI_Datatype t_in, int how)
{
	MPI_Request req[2];

	if (how % 3 == 0) {
		MPI_Sendrecv(out, n_out, t_out, next(), how, in, n_in, t_in, prev(), how,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	if (how % 3 == 1)
		MPI_Irecv(in, n_in, t_in, prev(), how, MPI_COMM_WORLD, &req[0]);
	MPI_Isend(out, n_out, t_out, next(), how, MPI_COMM_WORLD, &req[1]);
	if (how % 3 == 2) {
		MPI_Probe(prev(), how, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Irecv(in, n_in, t_in, prev(), how, MPI_COMM_WORLD, &req[0]);
	}
	MPI_Waitall(2, req, MPI_STATUSES_IGNORE);
}

/* ---- one description, checked by its map ---- */

/* A layout as a list: block i is len[i] bytes at at[i]. The message is their concatenation. */
enum { MOST = 4096 };
struct map {
	MPI_Datatype type;
	int n;
	size_t at[MOST], len[MOST];
	size_t span, bytes;
};

static struct map *map_new(void)
{
	struct map *m = mt_alloc(sizeof(*m));

	memset(m, 0, sizeof(*m));
	return m;
}

static void map_add(struct map *m, size_t at, size_t len)
{
	m->at[m->n] = at;
	m->len[m->n++] = len;
	m->bytes += len;
	if (at + len > m->span)
		m->span = at + len;
}

static void map_free(struct map *m)
{
	MPI_Type_free(&m->type);
	mt_free(m);
}

static void scatter(const struct map *m, uint8_t *to, const uint8_t *message)
{
	for (int i = 0; i < m->n; i++) {
		memcpy(to + m->at[i], message, m->len[i]);
		message += m->len[i];
	}
}

/* From one layout to another of the same number of bytes; contiguous where a map is NULL. */
static void try(const struct map *out, const struct map *in, int how)
{
	size_t bytes = out ? out->bytes : in->bytes;
	size_t out_span = out ? out->span : bytes, in_span = in ? in->span : bytes;
	uint8_t *message = mt_alloc(bytes), *from = mt_alloc(out_span);
	uint8_t *to = mt_alloc(in_span), *want = mt_alloc(in_span);
	size_t wrong = 0;

	mt_fill(message, bytes, mt_key(mt.rank, next(), how));
	memset(from, 0x11, out_span);
	if (out)
		scatter(out, from, message);
	else
		memcpy(from, message, bytes);
	mt_poison(to, in_span);
	exchange(from, out ? 1 : (int)bytes, out ? out->type : MPI_BYTE, to, in ? 1 : (int)bytes,
		 in ? in->type : MPI_BYTE, how);
	mt_fill(message, bytes, mt_key(prev(), mt.rank, how));
	mt_poison(want, in_span);
	if (in)
		scatter(in, want, message);
	else
		memcpy(want, message, bytes);
	for (size_t i = 0; i < in_span; i++)
		wrong += to[i] != want[i];
	CHECK(wrong == 0, "%zu of %zu bytes wrong, of a message of %zu", wrong, in_span, bytes);
	mt_free(message);
	mt_free(from);
	mt_free(to);
	mt_free(want);
}

static void both_ways(const struct map *a, const struct map *b)
{
	for (int how = 0; how < 3; how++) {
		try(a, NULL, how);
		try(NULL, b, how + 3);
		try(a, b, how + 6);
		try(b, a, how + 9);
	}
}

/* ---- layouts ---- */

/* All of these have n blocks of `block` bytes in all, in different places. */

static struct map *vector(int n, int block, int stride)
{
	struct map *m = map_new();

	MPI_Type_vector(n, block, stride, MPI_BYTE, &m->type);
	MPI_Type_commit(&m->type);
	for (int i = 0; i < n; i++)
		map_add(m, (size_t)i * (size_t)stride, (size_t)block);
	return m;
}

/* Lengths of two neighbours add up to 2 * block; the first blocks lie behind the last. */
static struct map *indexed(int n, int block)
{
	struct map *m = map_new();
	int *len = mt_alloc((size_t)n * sizeof(int)), *at = mt_alloc((size_t)n * sizeof(int));
	struct util_rand r = mt_rand_shared(n);
	int place = 3;

	for (int i = n - 1; i >= 0; i--) {
		len[i] = n % 2 ? block : i % 2 ? block / 2 : 2 * block - block / 2;
		at[i] = place;
		place += len[i] + (int)util_rand_below(&r, 40);
	}
	MPI_Type_indexed(n, len, at, MPI_BYTE, &m->type);
	MPI_Type_commit(&m->type);
	for (int i = 0; i < n; i++)
		map_add(m, (size_t)at[i], (size_t)len[i]);
	mt_free(len);
	mt_free(at);
	return m;
}

static struct map *indexed_block(int n, int block)
{
	struct map *m = map_new();
	int *at = mt_alloc((size_t)n * sizeof(int));

	for (int i = 0; i < n; i++) {
		/* Odd ones in front, even ones behind. */
		at[i] = (i % 2 ? i / 2 : (n + 1) / 2 + i / 2) * (block + 7);
		map_add(m, (size_t)at[i], (size_t)block);
	}
	MPI_Type_create_indexed_block(n, block, at, MPI_BYTE, &m->type);
	MPI_Type_commit(&m->type);
	mt_free(at);
	return m;
}

/* rows x cols out of a larger matrix. */
static struct map *subarray(int rows, int cols)
{
	struct map *m = map_new();
	int sizes[2] = {rows + 5, cols + 13}, sub[2] = {rows, cols}, start[2] = {2, 6};

	MPI_Type_create_subarray(2, sizes, sub, start, MPI_ORDER_C, MPI_BYTE, &m->type);
	MPI_Type_commit(&m->type);
	for (int i = 0; i < rows; i++)
		map_add(m, (size_t)((i + 2) * sizes[1] + 6), (size_t)cols);
	m->span = (size_t)(sizes[0] * sizes[1]);
	return m;
}

static const int SHAPES[][2] = {{1, 1}, {5, 3}, {64, 16}, {100, 101}, {2000, 8}, {512, 700}};
enum { N_SHAPES = sizeof(SHAPES) / sizeof(*SHAPES) };

static void pairs(struct map *(*make)(int, int))
{
	for (int i = 0; i < N_SHAPES; i++) {
		int n = SHAPES[i][0], block = SHAPES[i][1];
		struct map *a = make(n, block), *b = vector(n, block, block + 1 + i);

		both_ways(a, b);
		map_free(a);
		map_free(b);
	}
}

static struct map *vector_of(int n, int block)
{
	return vector(n, block, 3 * block + 2);
}

static void vectors(void)
{
	pairs(vector_of);
}

static void indexes(void)
{
	pairs(indexed);
	pairs(indexed_block);
}

static void subarrays(void)
{
	pairs(subarray);
}

/* ---- structures, resized, and counts ---- */

struct particle {
	char kind;
	double x[3];
	int id;
	short charge;
};

static MPI_Datatype particle_type(void)
{
	int len[3] = {1, 3, 1};
	MPI_Aint at[3] = {offsetof(struct particle, kind), offsetof(struct particle, x),
			  offsetof(struct particle, id)};
	MPI_Datatype types[3] = {MPI_CHAR, MPI_DOUBLE, MPI_INT}, t, resized;

	MPI_Type_create_struct(3, len, at, types, &t);
	MPI_Type_create_resized(t, 0, sizeof(struct particle), &resized);
	MPI_Type_commit(&resized);
	MPI_Type_free(&t);
	return resized;
}

/* `charge` is not part of the type, and stays. */
static void structures(void)
{
	static const int counts[] = {0, 1, 10, 300, 5000};
	MPI_Datatype type = particle_type();

	for (int k = 0; k < 15; k++) {
		int n = counts[k % 5], wrong = 0;
		struct particle *out = mt_alloc((size_t)n * sizeof(*out));
		struct particle *in = mt_alloc((size_t)n * sizeof(*in));

		for (int i = 0; i < n; i++) {
			out[i] = (struct particle){(char)i, {i, i * 0.5, mt.rank}, i * 3, 99};
			in[i] = (struct particle){.charge = (short)-i};
		}
		exchange(out, n, type, in, n, type, k / 5);
		for (int i = 0; i < n; i++)
			wrong += in[i].kind != (char)i || in[i].x[0] != i ||
				 in[i].x[1] != i * 0.5 || in[i].x[2] != prev() ||
				 in[i].id != i * 3 || in[i].charge != (short)-i;
		CHECK(wrong == 0, "%d of %d structures wrong", wrong, n);
		mt_free(out);
		mt_free(in);
	}
	MPI_Type_free(&type);
}

/* Columns of a matrix one after the other, by a vector of small extent, become rows. */
static void transposed(void)
{
	enum { N = 96 };
	int *out = mt_alloc(N * N * sizeof(int)), *in = mt_alloc(N * N * sizeof(int)), wrong = 0;
	MPI_Datatype column, next_to_it;

	MPI_Type_vector(N, 1, N, MPI_INT, &column);
	MPI_Type_create_resized(column, 0, sizeof(int), &next_to_it);
	MPI_Type_commit(&next_to_it);
	for (int i = 0; i < N * N; i++)
		out[i] = mt.rank * N * N + i;
	exchange(out, N, next_to_it, in, N * N, MPI_INT, 0);
	for (int i = 0; i < N * N; i++)
		wrong += in[i] != prev() * N * N + i % N * N + i / N;
	CHECK(wrong == 0, "%d of %d numbers of a transposed matrix wrong", wrong, N * N);
	MPI_Type_free(&next_to_it);
	MPI_Type_free(&column);
	mt_free(out);
	mt_free(in);
}

/* Fewer elements than the receive has room for, and not a whole number of it. */
static void part_of_a_type(void)
{
	int out[7] = {1, 2, 3, 4, 5, 6, 7}, in[20], count = 0, elements = 0, wrong = 0;
	MPI_Datatype three;
	MPI_Status st;

	MPI_Type_vector(3, 1, 2, MPI_INT, &three);
	MPI_Type_commit(&three);
	memset(in, 0, sizeof(in));
	MPI_Sendrecv(out, 7, MPI_INT, next(), 1, in, 4, three, prev(), 1, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, three, &count);
	MPI_Get_elements(&st, three, &elements);
	CHECK(count == MPI_UNDEFINED && elements == 7, "count %d, %d elements", count, elements);
	/* 1 _ 2 _ 3 | 4 _ 5 _ 6 | 7: a vector of 3 has extent 5. */
	for (int i = 0; i < 7; i++)
		wrong += in[i / 3 * 5 + i % 3 * 2] != i + 1;
	CHECK(wrong == 0 && in[1] == 0 && in[12] == 0, "%d of 7 numbers wrong", wrong);
	MPI_Type_free(&three);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("vectors", vectors);
	mt_part("indexed", indexes);
	mt_part("subarrays", subarrays);
	mt_part("structures", structures);
	mt_part("transposed", transposed);
	mt_part("part of a type", part_of_a_type);
	return mt_done();
}
