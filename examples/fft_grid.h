/* A grid of complex numbers that is divided among the ranks of MPI_COMM_WORLD, and its Fourier
 * transform.
 *
 * A rank has lz = nz / ranks planes. It transforms along x and y, all exchange blocks so that each
 * has lx = nx / ranks planes across, and transform along z; back the same way.
 */
#ifndef FFT_GRID_H
#define FFT_GRID_H

#include <stddef.h>

#define PI 3.14159265358979323846

struct complex {
	double re, im;
};

struct line { /* of one length */
	int n;
	struct complex *root; /* n / 2 of them */
	int *reversed;
};

struct grid {
	int nx, ny, nz; /* powers of two */
	int rank, ranks;
	int own;       /* by PMPI_Alltoall, whatever stands before the MPI */
	int lx, lz;    /* planes of a rank: across, and as they are */
	size_t points; /* of a rank */
	struct line x, y, z;
	struct complex *data; /* [lz][ny][nx] */
	struct complex *freq; /* [lx][ny][nz] */
	struct complex *out, *in, *work;
	double exchange; /* seconds in MPI_Alltoall */
};

/* Wants rank, ranks, nx, ny and nz; ranks must divide nx and nz. */
void grid_make(struct grid *g);
void grid_free(struct grid *g);

/* From data to freq; data is used up. */
void grid_there(struct grid *g);
/* From freq to data, without the division by the number of points; freq is used up. */
void grid_back(struct grid *g);

/* Numbers that go from one rank to another. */
size_t grid_block(const struct grid *g);

#endif
