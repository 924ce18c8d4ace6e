#include "fft_grid.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *room(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p) {
		fprintf(stderr, "fft: no memory for %zu times %zu bytes\n", n, size);
		MPI_Abort(MPI_COMM_WORLD, 1);
		abort();
	}
	return p;
}

/* ---- one line ---- */

static void line_make(struct line *l, int n)
{
	int bits = 0;

	while (1 << bits < n)
		bits++;
	l->n = n;
	l->root = room((size_t)n, sizeof(*l->root));
	l->reversed = room((size_t)n, sizeof(*l->reversed));
	for (int i = 0; i < n / 2; i++)
		l->root[i] = (struct complex){cos(2 * PI * i / n), -sin(2 * PI * i / n)};
	for (int i = 0; i < n; i++)
		for (int b = 0; b < bits; b++)
			l->reversed[i] |= (i >> b & 1) << (bits - 1 - b);
}

static void line_free(struct line *l)
{
	free(l->root);
	free(l->reversed);
}

static void butterfly(struct complex *a, struct complex *b, struct complex w)
{
	struct complex t = {b->re * w.re - b->im * w.im, b->re * w.im + b->im * w.re};

	b->re = a->re - t.re;
	b->im = a->im - t.im;
	a->re += t.re;
	a->im += t.im;
}

static void reverse(const struct line *l, struct complex *v)
{
	for (int i = 0; i < l->n; i++) {
		struct complex t = v[i];

		if (l->reversed[i] <= i)
			continue;
		v[i] = v[l->reversed[i]];
		v[l->reversed[i]] = t;
	}
}

/* In place. sign 1: to frequencies, -1: back. */
static void line_transform(const struct line *l, struct complex *v, int sign)
{
	reverse(l, v);
	for (int half = 1; half < l->n; half *= 2) {
		for (int from = 0; from < l->n; from += 2 * half) {
			for (int k = 0; k < half; k++) {
				struct complex w = l->root[k * (l->n / 2 / half)];

				w.im *= sign;
				butterfly(&v[from + k], &v[from + k + half], w);
			}
		}
	}
}

/* ---- planes ---- */

/* Along y, one line after the other, each copied to where its numbers are next to each other. */
static void transform_columns(struct grid *g, struct complex *plane, int sign)
{
	size_t nx = (size_t)g->nx, ny = (size_t)g->ny;

	for (size_t x = 0; x < nx; x++) {
		for (size_t y = 0; y < ny; y++)
			g->work[y] = plane[y * nx + x];
		line_transform(&g->y, g->work, sign);
		for (size_t y = 0; y < ny; y++)
			plane[y * nx + x] = g->work[y];
	}
}

static void transform_planes(struct grid *g, int sign)
{
	size_t nx = (size_t)g->nx, ny = (size_t)g->ny;

	for (size_t z = 0; z < (size_t)g->lz; z++) {
		struct complex *plane = g->data + z * ny * nx;

		for (size_t y = 0; y < ny; y++)
			line_transform(&g->x, plane + y * nx, sign);
		transform_columns(g, plane, sign);
	}
}

static void transform_across(struct grid *g, int sign)
{
	size_t lines = (size_t)g->lx * (size_t)g->ny;

	for (size_t i = 0; i < lines; i++)
		line_transform(&g->z, g->freq + i * (size_t)g->nz, sign);
}

/* ---- the exchange ---- */

/* A block is [lx][ny][lz]. */
size_t grid_block(const struct grid *g)
{
	return g->points / (size_t)g->ranks;
}

/* Between planes and blocks: one block for each rank that has a part of x. */
static void blocks_and_planes(struct grid *g, struct complex *blocks, int to_blocks)
{
	size_t nx = (size_t)g->nx, ny = (size_t)g->ny, lz = (size_t)g->lz;

	for (size_t x = 0; x < nx; x++) {
		for (size_t y = 0; y < ny; y++) {
			for (size_t z = 0; z < lz; z++) {
				struct complex *a = &blocks[(x * ny + y) * lz + z];
				struct complex *b = &g->data[(z * ny + y) * nx + x];

				if (to_blocks)
					*a = *b;
				else
					*b = *a;
			}
		}
	}
}

/* Between blocks of ranks, each of which has a part of z, and what lies across. */
static void blocks_and_across(struct grid *g, struct complex *blocks, int to_blocks)
{
	size_t lines = (size_t)g->lx * (size_t)g->ny, lz = (size_t)g->lz, nz = (size_t)g->nz;

	for (size_t r = 0; r < (size_t)g->ranks; r++) {
		for (size_t i = 0; i < lines; i++) {
			struct complex *a = &blocks[r * grid_block(g) + i * lz];
			struct complex *b = &g->freq[i * nz + r * lz];

			if (to_blocks)
				memcpy(a, b, lz * sizeof(*a));
			else
				memcpy(b, a, lz * sizeof(*a));
		}
	}
}

static void exchange(struct grid *g)
{
	int n = (int)(2 * grid_block(g));
	double from = MPI_Wtime();

	if (g->own)
		PMPI_Alltoall(g->out, n, MPI_DOUBLE, g->in, n, MPI_DOUBLE, MPI_COMM_WORLD);
	else
		MPI_Alltoall(g->out, n, MPI_DOUBLE, g->in, n, MPI_DOUBLE, MPI_COMM_WORLD);
	g->exchange += MPI_Wtime() - from;
}

void grid_there(struct grid *g)
{
	transform_planes(g, 1);
	blocks_and_planes(g, g->out, 1);
	exchange(g);
	blocks_and_across(g, g->in, 0);
	transform_across(g, 1);
}

void grid_back(struct grid *g)
{
	transform_across(g, -1);
	blocks_and_across(g, g->out, 1);
	exchange(g);
	blocks_and_planes(g, g->in, 0);
	transform_planes(g, -1);
}

/* ---- life ---- */

void grid_make(struct grid *g)
{
	g->lx = g->nx / g->ranks;
	g->lz = g->nz / g->ranks;
	g->points = (size_t)g->nx * (size_t)g->ny * (size_t)g->lz;
	line_make(&g->x, g->nx);
	line_make(&g->y, g->ny);
	line_make(&g->z, g->nz);
	g->data = room(g->points, sizeof(*g->data));
	g->freq = room(g->points, sizeof(*g->freq));
	g->out = room(g->points, sizeof(*g->out));
	g->in = room(g->points, sizeof(*g->in));
	g->work = room((size_t)g->ny, sizeof(*g->work));
}

void grid_free(struct grid *g)
{
	line_free(&g->x);
	line_free(&g->y);
	line_free(&g->z);
	free(g->data);
	free(g->freq);
	free(g->out);
	free(g->in);
	free(g->work);
}
