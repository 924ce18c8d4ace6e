/* A three-dimensional Fourier transform that is divided among ranks: the pattern of FT of the NAS
 * parallel benchmarks, in which all data goes through MPI_Alltoall again and again.
 *
 * As FT does, the program transforms random data once, then, in each iteration, lets it diffuse for
 * a time step, which is a multiplication in the space of frequencies, transforms it back and adds
 * up 1,024 of the numbers. fft_grid.c has the transform itself.
 *
 * It checks itself: a plane wave must have one frequency, and the right one; and data that was
 * transformed there and back must be what it was.
 *
 *	mpicc -O2 -o fft fft.c fft_grid.c -lm && mpirun -n 4 ./fft -c S
 */
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fft_grid.h"

static const char usage[] =
	"Usage: fft [-c S|W|A|B] [-s NX,NY,NZ] [-i ITERATIONS] [-r ROUNDS] [--own] [--csv]\n"
	"\n"
	"  -c CLASS       size and iterations of FT's classes (S):\n"
	"                 S 64 x 64 x 64, 6       W 128 x 128 x 32, 6\n"
	"                 A 256 x 256 x 128, 6    B 512 x 256 x 256, 20\n"
	"  -s NX,NY,NZ    another size: powers of two, 4 to 4096; ranks must divide NX and NZ\n"
	"  -i ITERATIONS  instead of the class's\n"
	"  -r ROUNDS      all of it so many times; the median counts (1)\n"
	"  --own          in each round also by PMPI_Alltoall: with an interposer, and without\n"
	"  --csv          numbers only, with commas\n";

struct options {
	int nx, ny, nz, iterations, rounds, own, csv, help;
};

/* ---- what is transformed ---- */

static double total(const struct grid *g)
{
	return (double)g->nx * g->ny * g->nz;
}

/* From 0 to 1, of a point of the whole grid: the same for any number of ranks. */
static double chance(uint64_t i)
{
	uint64_t z = (i + 1) * 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static struct complex random_point(const struct grid *g, size_t i)
{
	uint64_t at = (uint64_t)g->rank * g->points + i;

	return (struct complex){chance(2 * at), chance(2 * at + 1)};
}

static void random_data(struct grid *g)
{
	for (size_t i = 0; i < g->points; i++)
		g->data[i] = random_point(g, i);
}

/* Which frequency the i-th number of freq has, in each direction. */
static void frequency(const struct grid *g, size_t i, int *x, int *y, int *z)
{
	*z = (int)(i % (size_t)g->nz);
	*y = (int)(i / (size_t)g->nz % (size_t)g->ny);
	*x = (int)(i / (size_t)g->nz / (size_t)g->ny) + g->rank * g->lx;
}

/* Frequencies above half are negative ones. */
static double square(int k, int n)
{
	double f = k > n / 2 ? k - n : k;

	return f * f;
}

/* What is left of `from` after so many time steps. */
static void diffuse(struct grid *g, const struct complex *from, int steps)
{
	int x, y, z;

	for (size_t i = 0; i < g->points; i++) {
		double k2, f;

		frequency(g, i, &x, &y, &z);
		k2 = square(x, g->nx) + square(y, g->ny) + square(z, g->nz);
		f = exp(-4e-6 * PI * PI * steps * k2) / total(g);
		g->freq[i] = (struct complex){from[i].re * f, from[i].im * f};
	}
}

static struct complex checksum(const struct grid *g)
{
	struct complex mine = {0, 0}, sum = {0, 0};

	for (int j = 1; j <= 1024; j++) {
		int x = j % g->nx, y = 3 * j % g->ny, z = 5 * j % g->nz - g->rank * g->lz;
		size_t at;

		if (z < 0 || z >= g->lz)
			continue;
		at = ((size_t)z * (size_t)g->ny + (size_t)y) * (size_t)g->nx + (size_t)x;
		mine.re += g->data[at].re;
		mine.im += g->data[at].im;
	}
	MPI_Allreduce(&mine, &sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return sum;
}

/* ---- checks ---- */

static double worst(double mine)
{
	double all = 0;

	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return all;
}

static double distance(struct complex a, struct complex b)
{
	return hypot(a.re - b.re, a.im - b.im);
}

/* How far a wave of the frequency (1, 2, 3) is from having that one and no other. */
static double wave_error(struct grid *g)
{
	double error = 0;
	int x, y, z;

	for (size_t i = 0; i < g->points; i++) {
		double a;

		x = (int)(i % (size_t)g->nx);
		y = (int)(i / (size_t)g->nx % (size_t)g->ny);
		z = (int)(i / (size_t)g->nx / (size_t)g->ny) + g->rank * g->lz;
		a = 2 * PI * ((double)x / g->nx + 2.0 * y / g->ny + 3.0 * z / g->nz);
		g->data[i] = (struct complex){cos(a), sin(a)};
	}
	grid_there(g);
	for (size_t i = 0; i < g->points; i++) {
		struct complex want = {0, 0};

		frequency(g, i, &x, &y, &z);
		if (x == 1 && y == 2 && z == 3)
			want.re = total(g);
		error = fmax(error, distance(g->freq[i], want) / total(g));
	}
	return worst(error);
}

/* How far random data is from itself when it was there and is back. */
static double return_error(struct grid *g)
{
	double error = 0;

	random_data(g);
	grid_there(g);
	grid_back(g);
	for (size_t i = 0; i < g->points; i++) {
		struct complex c = {g->data[i].re / total(g), g->data[i].im / total(g)};

		error = fmax(error, distance(c, random_point(g, i)));
	}
	return worst(error);
}

/* ---- the benchmark ---- */

struct result {
	double seconds, exchange; /* in all on the slowest rank, in MPI_Alltoall on average */
	struct complex sum;
};

static struct result run(struct grid *g, int iterations, struct complex *spectrum, int own)
{
	struct result r = {0};
	double from;

	g->own = own;
	random_data(g);
	g->exchange = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	from = MPI_Wtime();
	grid_there(g);
	memcpy(spectrum, g->freq, g->points * sizeof(*spectrum));
	for (int i = 1; i <= iterations; i++) {
		diffuse(g, spectrum, i);
		grid_back(g);
		r.sum = checksum(g);
	}
	r.seconds = worst(MPI_Wtime() - from);
	MPI_Allreduce(&g->exchange, &r.exchange, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	r.exchange /= g->ranks;
	return r;
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct result *)a)->seconds, y = ((const struct result *)b)->seconds;

	return (x > y) - (x < y);
}

static void print(const struct options *o, const char *by, struct result *all)
{
	struct result r;

	qsort(all, (size_t)o->rounds, sizeof(*all), by_time);
	r = all[o->rounds / 2];
	printf(o->csv ? "%s,%.6f,%.6f,%.12g,%.12g\n" : "%-16s%12.4f%16.4f    %.12g %+.12gi\n", by,
	       r.seconds, r.exchange, r.sum.re, r.sum.im);
}

static int report(const struct options *o, struct result *mpi, struct result *own, double wave,
		  double same)
{
	double differ = o->own ? distance(mpi[0].sum, own[0].sum) : 0;
	int right = wave < 1e-12 && same < 1e-12 && differ < 1e-9;

	puts(o->csv ? "by,seconds,alltoall_seconds,sum_re,sum_im"
		    : "# By                Time (s)  in Alltoall (s)    Sum");
	print(o, "MPI_Alltoall", mpi);
	if (o->own)
		print(o, "PMPI_Alltoall", own);
	if (!o->csv || !right)
		fprintf(right ? stdout : stderr,
			"%s a plane wave is off by %.1e, data there and back by %.1e, sums by "
			"%.1e: %s\n",
			right ? "#" : "fft:", wave, same, differ, right ? "right" : "WRONG");
	return !right;
}

/* Returns the exit code, the same on all ranks. */
static int benchmark(struct grid *g, const struct options *o)
{
	struct complex *spectrum = malloc(g->points * sizeof(*spectrum));
	struct result *mpi = calloc((size_t)o->rounds, sizeof(*mpi));
	struct result *own = calloc((size_t)o->rounds, sizeof(*own));
	double wave = wave_error(g), same = return_error(g);
	int code = 0;

	for (int i = 0; spectrum && mpi && own && i < o->rounds; i++) {
		/* Who goes first changes. */
		if (o->own && i % 2)
			own[i] = run(g, o->iterations, spectrum, 1);
		mpi[i] = run(g, o->iterations, spectrum, 0);
		if (o->own && i % 2 == 0)
			own[i] = run(g, o->iterations, spectrum, 1);
	}
	if (g->rank == 0)
		code = report(o, mpi, own, wave, same);
	MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
	free(spectrum);
	free(mpi);
	free(own);
	return code;
}

/* ---- start ---- */

static int set_class(struct options *o, const char *name)
{
	static const struct {
		char name;
		int nx, ny, nz, iterations;
	} classes[] = {{'S', 64, 64, 64, 6},
		       {'W', 128, 128, 32, 6},
		       {'A', 256, 256, 128, 6},
		       {'B', 512, 256, 256, 20}};

	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		if (name[0] != classes[i].name || name[1])
			continue;
		o->nx = classes[i].nx;
		o->ny = classes[i].ny;
		o->nz = classes[i].nz;
		o->iterations = classes[i].iterations;
		return 1;
	}
	return 0;
}

static int is_number(const char *text, int most, int *out)
{
	char *end;
	long v = strtol(text, &end, 10);

	*out = (int)v;
	return end != text && !*end && v >= 1 && v <= most;
}

static int is_power(int n)
{
	return n >= 4 && n <= 4096 && (n & (n - 1)) == 0;
}

static int parse_one(struct options *o, int c, int *iterations)
{
	char rest;

	switch (c) {
	case 'c':
		return set_class(o, optarg);
	case 's':
		return sscanf(optarg, "%d,%d,%d%c", &o->nx, &o->ny, &o->nz, &rest) == 3;
	case 'i':
		return is_number(optarg, 100000, iterations);
	case 'r':
		return is_number(optarg, 1000, &o->rounds);
	case 'o':
		return o->own = 1;
	case 'v':
		return o->csv = 1;
	case 'h':
		return o->help = 1;
	}
	return 0;
}

static int parse(struct options *o, int argc, char **argv)
{
	static const struct option words[] = {{"own", no_argument, NULL, 'o'},
					      {"csv", no_argument, NULL, 'v'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	int c, ok = 1, iterations = 0;

	*o = (struct options){.rounds = 1};
	set_class(o, "S");
	opterr = 0;
	while (ok && (c = getopt_long(argc, argv, "c:s:i:r:h", words, NULL)) != -1)
		ok = parse_one(o, c, &iterations);
	if (iterations)
		o->iterations = iterations;
	return ok && optind == argc && is_power(o->nx) && is_power(o->ny) && is_power(o->nz);
}

/* 0 to go on; every rank comes to the same conclusion, and rank 0 says it. */
static int prepare(const struct grid *g, struct options *o, int argc, char **argv)
{
	int ok = parse(o, argc, argv);

	if (ok && !o->help && o->nx % g->ranks == 0 && o->nz % g->ranks == 0)
		return 0;
	if (g->rank == 0 && (!ok || o->help))
		fputs(usage, ok ? stdout : stderr);
	else if (g->rank == 0)
		fprintf(stderr, "fft: %d ranks do not divide %d and %d planes\n", g->ranks, o->nx,
			o->nz);
	return 2;
}

int main(int argc, char **argv)
{
	struct options o;
	struct grid g = {0};
	int code;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &g.ranks);
	code = prepare(&g, &o, argc, argv);
	if (!code) {
		g.nx = o.nx;
		g.ny = o.ny;
		g.nz = o.nz;
		grid_make(&g);
		if (g.rank == 0 && !o.csv)
			printf("# Fourier transform, %d x %d x %d, %d iterations, %d ranks, "
			       "%zu bytes from one to another\n",
			       g.nx, g.ny, g.nz, o.iterations, g.ranks,
			       grid_block(&g) * sizeof(struct complex));
		code = benchmark(&g, &o);
		grid_free(&g);
	}
	MPI_Finalize();
	return o.help ? 0 : code;
}
