/* Displaced ring communication: how well does a network carry every shift?
 *
 * With n ranks there are n - 1 steps. In step j every rank i sends to rank i + j and receives
 * from rank i - j (modulo n), all at once. Each step alone is a permutation, and a fat tree with
 * full bisection could carry it at full speed; whether it does depends on the routes. The
 * bandwidth per step shows where flows share a link.
 *
 * After: A. Vishnu, M. Koop, A. Moody, A. Mamidala, S. Narravula, D. K. Panda: Topology
 * agnostic hot-spot avoidance with InfiniBand, section 3.
 *
 *	mpicc -O2 -o drc drc.c && mpirun -n 4 ./drc
 */
#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: drc [-s BYTES] [-i ITERATIONS] [-w WARMUP] [--steps A-B] [--csv]\n"
	"\n"
	"  -s BYTES       size of a message; k, m and g mean 2^10, 2^20, 2^30 (1m)\n"
	"  -i ITERATIONS  messages per step that are timed (10)\n"
	"  -w WARMUP      messages per step before that (2)\n"
	"  --steps A-B    only these steps, or one: --steps 12 (all: 1 to ranks - 1)\n"
	"  --csv          numbers only, with commas\n"
	"\n"
	"Bandwidth is what a rank sends, in MB/s (10^6 bytes per second).\n";

struct options {
	int bytes, iterations, warmup, first, last, csv, help;
};

struct ring {
	struct options o;
	int rank, ranks;
	unsigned char *out, *in;
	long wrong; /* messages that were not what was sent */
};

/* ---- what is sent ---- */

/* Words of a message, so many bytes apart, are a function of who sent it, when, and where in
 * the message they are. Warm-up messages are checked as a whole; in those that are timed,
 * one word per page, so that looking does not cost what is measured. */
enum { ALL = sizeof(uint64_t), PAGE = 4096 };

static uint64_t word(int source, int step, int iteration, size_t at)
{
	uint64_t x = ((uint64_t)source << 40) ^ ((uint64_t)step << 20) ^ (uint64_t)iteration;

	x = (x + 1) * 0x9e3779b97f4a7c15u + at;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	return x ^ (x >> 32);
}

static size_t word_size(const struct ring *r, size_t at)
{
	size_t left = (size_t)r->o.bytes - at;

	return left < sizeof(uint64_t) ? left : sizeof(uint64_t);
}

static void write_message(const struct ring *r, int step, int iteration, size_t stride)
{
	for (size_t at = 0; at < (size_t)r->o.bytes; at += stride) {
		uint64_t w = word(r->rank, step, iteration, at);

		memcpy(r->out + at, &w, word_size(r, at));
	}
}

static int is_right(const struct ring *r, int source, int step, int iteration, size_t stride)
{
	for (size_t at = 0; at < (size_t)r->o.bytes; at += stride) {
		uint64_t w = word(source, step, iteration, at);

		if (memcmp(r->in + at, &w, word_size(r, at)) != 0)
			return 0;
	}
	return 1;
}

/* ---- a step ---- */

/* Iterations below 0 are warm-up. */
static void exchange(struct ring *r, int step, int iteration)
{
	int to = (r->rank + step) % r->ranks;
	int from = (r->rank - step + r->ranks) % r->ranks;
	size_t stride = iteration < 0 ? ALL : PAGE;
	MPI_Request request[2];
	MPI_Status status[2];
	int got;

	write_message(r, step, iteration, stride);
	MPI_Irecv(r->in, r->o.bytes, MPI_BYTE, from, step, MPI_COMM_WORLD, &request[0]);
	MPI_Isend(r->out, r->o.bytes, MPI_BYTE, to, step, MPI_COMM_WORLD, &request[1]);
	MPI_Waitall(2, request, status);
	MPI_Get_count(&status[0], MPI_BYTE, &got);
	if (got != r->o.bytes || !is_right(r, from, step, iteration, stride))
		r->wrong++;
}

/* Seconds that this rank took for the timed part. */
static double run_step(struct ring *r, int step)
{
	double start;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = -r->o.warmup; i < 0; i++)
		exchange(r, step, i);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (int i = 0; i < r->o.iterations; i++)
		exchange(r, step, i);
	return MPI_Wtime() - start;
}

/* ---- the table ---- */

struct at_rank {
	double value;
	int rank;
};

static void print_head(const struct ring *r)
{
	if (r->o.csv) {
		puts("step,rank0_MBps,worst_MBps,worst_rank,mean_MBps,seconds");
		return;
	}
	printf("# Displaced ring communication, %d ranks, %d bytes, %d times after %d\n", r->ranks,
	       r->o.bytes, r->o.iterations, r->o.warmup);
	printf("# %-6s%14s%14s%10s%14s%12s\n", "Step", "Rank 0 (MB/s)", "Worst (MB/s)", "at rank",
	       "Mean (MB/s)", "Time (s)");
}

static void print_step(const struct ring *r, int step, double mine, struct at_rank worst,
		       double mean, double longest)
{
	printf(r->o.csv ? "%d,%.3f,%.3f,%d,%.3f,%.6f\n" : "%-8d%14.2f%14.2f%10d%14.2f%12.3f\n",
	       step, mine, worst.value, worst.rank, mean, longest);
	fflush(stdout);
}

/* Returns the sum of all ranks' bandwidths, at rank 0. */
static double report_step(const struct ring *r, int step, double seconds)
{
	struct at_rank mine, worst = {0};
	double sum = 0, longest = 0;

	mine.value = (double)r->o.bytes * r->o.iterations / (seconds > 0 ? seconds : 1e-9) / 1e6;
	mine.rank = r->rank;
	MPI_Reduce(&mine, &worst, 1, MPI_DOUBLE_INT, MPI_MINLOC, 0, MPI_COMM_WORLD);
	MPI_Reduce(&mine.value, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (r->rank == 0)
		print_step(r, step, mine.value, worst, sum / r->ranks, longest);
	return sum;
}

/* The last line; returns the exit code. */
static int report_all(const struct ring *r, double sum, double seconds)
{
	int steps = r->o.last - r->o.first + 1;
	long wrong = 0;

	MPI_Allreduce(&r->wrong, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	if (r->rank == 0 && !r->o.csv)
		printf("# Total: %d steps in %.2f s, all ranks together %.2f MB/s on average%s\n",
		       steps, seconds, sum / steps, wrong ? "" : ", all data right");
	if (r->rank == 0 && wrong)
		fprintf(stderr, "drc: %ld messages were not what was sent\n", wrong);
	return wrong != 0;
}

static int run(struct ring *r)
{
	double start = MPI_Wtime(), sum = 0;

	if (r->rank == 0)
		print_head(r);
	for (int step = r->o.first; step <= r->o.last; step++)
		sum += report_step(r, step, run_step(r, step));
	return report_all(r, sum, MPI_Wtime() - start);
}

/* ---- options ---- */

/* A whole number from low on; 0 if that is what the text is. */
static int parse_int(const char *text, int low, int *value)
{
	char *end;
	long x = strtol(text, &end, 10);

	*value = (int)x;
	return end == text || *end || x < low || x > 1000000000;
}

static int parse_bytes(const char *text, int *bytes)
{
	static const char units[] = "kmg";
	char *end;
	long long x = strtoll(text, &end, 10);
	const char *unit = end > text && *end ? strchr(units, *end) : NULL;

	if (unit && x >= 0 && x <= INT_MAX) {
		x <<= 10 * (unit - units + 1);
		end++;
	}
	*bytes = (int)x;
	return end == text || *end || x < 1 || x > INT_MAX;
}

static int parse_steps(const char *text, struct options *o)
{
	char extra;

	switch (sscanf(text, "%d-%d%c", &o->first, &o->last, &extra)) {
	case 1:
		o->last = o->first;
		return strspn(text, "0123456789") != strlen(text);
	case 2:
		return o->first < 1 || o->last < o->first;
	}
	return 1;
}

/* Returns the argument that was not understood, or NULL. */
static const char *parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		int bad = 0;

		if (!strcmp(argv[i], "--csv") || !strcmp(argv[i], "--help")) {
			o->csv |= argv[i][2] == 'c';
			o->help |= argv[i][2] == 'h';
			continue;
		}
		if (!strcmp(argv[i], "-s"))
			bad = parse_bytes(value, &o->bytes);
		else if (!strcmp(argv[i], "-i"))
			bad = parse_int(value, 1, &o->iterations);
		else if (!strcmp(argv[i], "-w"))
			bad = parse_int(value, 0, &o->warmup);
		else if (!strcmp(argv[i], "--steps"))
			bad = parse_steps(value, o);
		else
			return argv[i];
		i++;
		if (bad)
			return i < argc ? argv[i] : argv[i - 1];
	}
	return NULL;
}

/* 0 to go on; every rank comes to the same conclusion, and rank 0 says it. */
static int prepare(struct ring *r, int argc, char **argv)
{
	const char *bad = parse(argc, argv, &r->o);
	FILE *to = r->o.help ? stdout : stderr;

	if (!r->o.last)
		r->o.last = r->ranks - 1;
	if (!bad && !r->o.help && r->ranks > 1 && r->o.first >= 1 && r->o.last < r->ranks)
		return 0;
	if (r->rank)
		return 2;
	if (bad)
		fprintf(to, "drc: '%s' is not understood\n\n%s", bad, usage);
	else if (r->o.help)
		fputs(usage, to);
	else if (r->ranks < 2)
		fprintf(to, "drc: one rank has nobody to talk to; start at least 2\n");
	else
		fprintf(to, "drc: with %d ranks there are steps 1 to %d, not %d-%d\n", r->ranks,
			r->ranks - 1, r->o.first, r->o.last);
	return 2;
}

int main(int argc, char **argv)
{
	struct ring r = {.o = {.bytes = 1 << 20, .iterations = 10, .warmup = 2, .first = 1}};
	int code;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
	code = prepare(&r, argc, argv);
	if (!code) {
		r.out = calloc(1, (size_t)r.o.bytes);
		r.in = calloc(1, (size_t)r.o.bytes);
		if (!r.out || !r.in) {
			fprintf(stderr, "drc: no memory for two messages of %d bytes\n", r.o.bytes);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
		code = run(&r);
		free(r.out);
		free(r.in);
	}
	MPI_Finalize();
	return r.o.help ? 0 : code;
}
