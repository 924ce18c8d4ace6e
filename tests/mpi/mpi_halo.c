/* Halo exchange on a grid, as solvers do it, with an exact result: cells are numbers modulo 2^64,
 * and each becomes a weighted sum of itself and its neighbours. Rank by rank the grid is compared
 * with one that was computed without any communication; and the sum of all cells, by an
 * allreduce, is multiplied by the sum of the weights in each step. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

enum { CENTRE = 3, UP = 5, DOWN = 7, LEFT = 11, RIGHT = 13, ALL = 39 };
enum variant { SENDRECV, NONBLOCKING, PERSISTENT, ONE_SIDED, VARIANTS };
static const char *const names[] = {"sendrecv", "non-blocking", "persistent", "put and fence"};

/* A block of rows x cols cells with a border around it. */
struct grid {
	MPI_Comm comm;
	int dims[2], at[2];
	int rows, cols, width; /* width: of a row in memory */
	int up, down, left, right;
	uint64_t *now, *then;
	MPI_Datatype column;
	MPI_Request req[2][8]; /* persistent, one set for each of the two arrays */
	MPI_Win win[2];
};

static uint64_t first_value(int row, int col)
{
	return mt_key(row, col, 0);
}

static uint64_t *cell(const struct grid *g, uint64_t *a, int row, int col)
{
	return a + (size_t)(row + 1) * (size_t)g->width + (size_t)(col + 1);
}

static void grid_fill(struct grid *g)
{
	for (int r = 0; r < g->rows; r++)
		for (int c = 0; c < g->cols; c++)
			*cell(g, g->now, r, c) =
				first_value(g->at[0] * g->rows + r, g->at[1] * g->cols + c);
}

static void grid_new(struct grid *g, int rows, int cols, int one_row)
{
	int closed[2] = {1, 1}, rank;
	size_t size;

	memset(g, 0, sizeof(*g));
	g->dims[1] = one_row ? 1 : 0;
	MPI_Dims_create(mt.size, 2, g->dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, g->dims, closed, 1, &g->comm);
	MPI_Comm_rank(g->comm, &rank);
	MPI_Cart_coords(g->comm, rank, 2, g->at);
	MPI_Cart_shift(g->comm, 0, 1, &g->up, &g->down);
	MPI_Cart_shift(g->comm, 1, 1, &g->left, &g->right);
	g->rows = rows;
	g->cols = cols;
	g->width = cols + 2;
	size = (size_t)(rows + 2) * (size_t)g->width * sizeof(uint64_t);
	g->now = mt_alloc(size);
	g->then = mt_alloc(size);
	mt_poison(g->now, size);
	mt_poison(g->then, size);
	MPI_Type_vector(rows, 1, g->width, MPI_UINT64_T, &g->column);
	MPI_Type_commit(&g->column);
	grid_fill(g);
}

static void grid_free(struct grid *g)
{
	MPI_Type_free(&g->column);
	MPI_Comm_free(&g->comm);
	mt_free(g->now);
	mt_free(g->then);
}

/* ---- exchange ---- */

/* The four messages of a step: what goes out in direction d, and where that of the neighbour on
 * the other side comes in. */
struct edge {
	uint64_t *out, *in;
	int n, to, from;
	MPI_Datatype type;
};

static void edges(const struct grid *g, uint64_t *a, struct edge e[4])
{
	int rows = g->rows, cols = g->cols;

	e[0] = (struct edge){cell(g, a, 0, 0), cell(g, a, rows, 0), cols, g->up,
			     g->down,          MPI_UINT64_T};
	e[1] = (struct edge){
		cell(g, a, rows - 1, 0), cell(g, a, -1, 0), cols, g->down, g->up, MPI_UINT64_T};
	e[2] = (struct edge){cell(g, a, 0, 0), cell(g, a, 0, cols), 1, g->left, g->right,
			     g->column};
	e[3] = (struct edge){
		cell(g, a, 0, cols - 1), cell(g, a, 0, -1), 1, g->right, g->left, g->column};
}

static void persistent_new(struct grid *g, uint64_t *a, MPI_Request *req)
{
	struct edge e[4];

	edges(g, a, e);
	for (int d = 0; d < 4; d++) {
		MPI_Recv_init(e[d].in, e[d].n, e[d].type, e[d].from, d, g->comm, &req[d]);
		MPI_Send_init(e[d].out, e[d].n, e[d].type, e[d].to, d, g->comm, &req[4 + d]);
	}
}

static void prepare(struct grid *g, enum variant v)
{
	MPI_Aint size = (MPI_Aint)(g->rows + 2) * g->width * (MPI_Aint)sizeof(uint64_t);

	if (v == PERSISTENT) {
		persistent_new(g, g->now, g->req[0]);
		persistent_new(g, g->then, g->req[1]);
	}
	if (v == ONE_SIDED) {
		MPI_Win_create(g->now, size, sizeof(uint64_t), MPI_INFO_NULL, g->comm, &g->win[0]);
		MPI_Win_create(g->then, size, sizeof(uint64_t), MPI_INFO_NULL, g->comm, &g->win[1]);
	}
}

static void unprepare(struct grid *g, enum variant v)
{
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 8 && v == PERSISTENT; i++)
			MPI_Request_free(&g->req[k][i]);
		if (v == ONE_SIDED)
			MPI_Win_free(&g->win[k]);
	}
}

static void exchange(struct grid *g, enum variant v, int step)
{
	MPI_Request req[8];
	struct edge e[4];

	edges(g, g->now, e);
	switch (v) {
	case SENDRECV:
		for (int d = 0; d < 4; d++)
			MPI_Sendrecv(e[d].out, e[d].n, e[d].type, e[d].to, d, e[d].in, e[d].n,
				     e[d].type, e[d].from, d, g->comm, MPI_STATUS_IGNORE);
		break;
	case NONBLOCKING:
		for (int d = 0; d < 4; d++)
			MPI_Irecv(e[d].in, e[d].n, e[d].type, e[d].from, d, g->comm, &req[d]);
		for (int d = 0; d < 4; d++)
			MPI_Isend(e[d].out, e[d].n, e[d].type, e[d].to, d, g->comm, &req[4 + d]);
		MPI_Waitall(8, req, MPI_STATUSES_IGNORE);
		break;
	case PERSISTENT:
		MPI_Startall(8, g->req[step % 2]);
		MPI_Waitall(8, g->req[step % 2], MPI_STATUSES_IGNORE);
		break;
	default:
		/* All blocks are alike, so the place there is the place here. */
		MPI_Win_fence(0, g->win[step % 2]);
		for (int d = 0; d < 4; d++)
			MPI_Put(e[d].out, e[d].n, e[d].type, e[d].to, e[d].in - g->now, e[d].n,
				e[d].type, g->win[step % 2]);
		MPI_Win_fence(0, g->win[step % 2]);
	}
}

static void compute(struct grid *g)
{
	uint64_t *t = g->now;

	for (int r = 0; r < g->rows; r++)
		for (int c = 0; c < g->cols; c++)
			*cell(g, g->then, r, c) =
				CENTRE * *cell(g, t, r, c) + UP * *cell(g, t, r - 1, c) +
				DOWN * *cell(g, t, r + 1, c) + LEFT * *cell(g, t, r, c - 1) +
				RIGHT * *cell(g, t, r, c + 1);
	g->now = g->then;
	g->then = t;
}

/* ---- what it must be ---- */

static uint64_t total(const struct grid *g)
{
	uint64_t sum = 0, all = 0;

	for (int r = 0; r < g->rows; r++)
		for (int c = 0; c < g->cols; c++)
			sum += *cell(g, g->now, r, c);
	MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, g->comm);
	return all;
}

/* The whole grid after so many steps, on one's own. */
static uint64_t *alone(const struct grid *g, int steps)
{
	int rows = g->rows * g->dims[0], cols = g->cols * g->dims[1];
	size_t size = (size_t)rows * (size_t)cols;
	uint64_t *a = mt_alloc(size * sizeof(*a)), *b = mt_alloc(size * sizeof(*b));

	for (int r = 0; r < rows; r++)
		for (int c = 0; c < cols; c++)
			a[r * cols + c] = first_value(r, c);
	for (int s = 0; s < steps; s++) {
		uint64_t *t = a;

		for (int r = 0; r < rows; r++) {
			const uint64_t *mid = a + r * cols, *up = a + (r + rows - 1) % rows * cols;
			const uint64_t *down = a + (r + 1) % rows * cols;

			for (int c = 0; c < cols; c++)
				b[r * cols + c] = CENTRE * mid[c] + UP * up[c] + DOWN * down[c] +
						  LEFT * mid[c ? c - 1 : cols - 1] +
						  RIGHT * mid[c + 1 < cols ? c + 1 : 0];
		}
		a = b;
		b = t;
	}
	mt_free(b);
	return a;
}

static void compare(struct grid *g, const uint64_t *want)
{
	int cols = g->cols * g->dims[1], wrong = 0;

	for (int r = 0; r < g->rows; r++)
		for (int c = 0; c < g->cols; c++)
			wrong += *cell(g, g->now, r, c) !=
				 want[(g->at[0] * g->rows + r) * cols + g->at[1] * g->cols + c];
	CHECK(wrong == 0, "%d of %d cells wrong", wrong, g->rows * g->cols);
}

static void run(enum variant v, int rows, int cols, int one_row, int steps)
{
	uint64_t before, *want;
	struct grid g;

	grid_new(&g, rows, cols, one_row);
	prepare(&g, v);
	before = total(&g);
	for (int step = 0; step < steps; step++) {
		exchange(&g, v, step);
		compute(&g);
		before *= ALL;
		if (step % 5 == 4)
			CHECK(total(&g) == before, "the sum is wrong after step %d", step);
	}
	unprepare(&g, v);
	want = alone(&g, steps);
	compare(&g, want);
	mt_free(want);
	grid_free(&g);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	for (int v = 0; v < VARIANTS; v++) {
		if (mt_begin("small blocks, %s", names[v])) {
			run((enum variant)v, 20, 15, 0, 100);
			mt_end();
		}
		/* Rows of 320 KB are exchanged. */
		if (mt_begin("long rows, %s", names[v])) {
			run((enum variant)v, 2, 40000, 1, 10);
			mt_end();
		}
	}
	return mt_done();
}
