/* weft-mpi-perf: latency, bandwidth, overlap and progress of any MPI. An ordinary program:
 *
 *	mpicc -O2 -D_GNU_SOURCE -o weft-mpi-perf mpi_*.c bench_sample.c bench_copy.c -lm
 */
#include "mpi_perf.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KB ((size_t)1024)
#define MB (1024 * KB)

const struct mp_kind mp_kinds[] = {
	{"latency", mp_latency, 2, 1, 4 * MB, 2, 1000, 20, 0, 0},
	{"put", mp_put, 2, 64, 8 * KB, 2, 1000, 50, 0, 0},
	{"get", mp_get, 2, 64, 8 * KB, 2, 1000, 50, 0, 0},
	{"spectrum", mp_spectrum, 2, 64, 8 * KB, 2, 500500, 50, 0, 0},
	{"reuse", mp_reuse, 2, 64, 8 * KB, 2, 2000, 50, 0, 0},
	{"bw", mp_bw, 2, 1, 4 * MB, 2, 100, 5, 0, 64},
	{"bibw", mp_bibw, 2, 1, 4 * MB, 2, 100, 5, 0, 64},
	{"bidir", mp_bidir, 2, 1, 4 * MB, 2, 100, 5, 0, 64},
	{"multi-lat", mp_multi_lat, 0, 1, 64 * KB, 8, 500, 20, 0, 0},
	{"multi-bw", mp_multi_bw, 0, 1, 256 * KB, 8, 100, 5, 0, 16},
	{"regcache", mp_regcache, 2, 16 * KB, MB, 8, 640, 1, 0, 0},
	{"usage", mp_usage_of_rtr, 2, MB, MB, 2, 100, 10, 1e-3, 0},
	{"trace", mp_trace, 2, MB, MB, 2, 100000, 1, 0, 0},
	{"pingpong-late", mp_pingpong_late, 2, 8, MB, 8, 500, 20, 1e-3, 0},
	{"overlap", mp_overlap, 2, 64 * KB, 8 * MB, 2, 10, 3, 1e-3, 0},
	{"progress", mp_progress, 2, 8 * KB, MB, 128, 15, 3, 1e-3, 0},
	{"exchange", mp_exchange, 0, 128 * KB, 128 * KB, 2, 50, 3, 0, 0},
	{"drc", mp_drc, 0, MB, MB, 2, 10, 2, 0, 4},
	{"alltoall", mp_coll_loop, 0, 8, 32 * KB, 8, 100, 5, 0, 0},
	{"allgather", mp_coll_loop, 0, 8, 32 * KB, 8, 100, 5, 0, 0},
	{"bcast", mp_coll_loop, 0, 64, 8 * KB, 2, 500, 50, 0, 0},
	{"scatter", mp_coll_loop, 0, 64, 8 * KB, 2, 500, 50, 0, 0},
	{"allreduce", mp_coll_loop, 0, 8, 32 * KB, 8, 100, 5, 0, 0},
	{"barrier", mp_coll_loop, 0, 1, 1, 2, 1000, 50, 0, 0},
	{"arrival", mp_arrival, 0, 4, 64 * KB, 2, 1000, 5, -1, 0},
	{"memory", mp_memory, 0, 8, 8, 2, 1, 1, 0, 0},
	{0},
};

static const struct mp_kind *kind_of(const struct mp *mp)
{
	const struct mp_kind *k = mp_kinds;

	while (k->name && strcmp(k->name, mp->o.kind) != 0)
		k++;
	if (k->name && (k->ranks ? mp->ranks == k->ranks : mp->ranks > 1) &&
	    mp->o.last_step < mp->ranks)
		return k;
	if (mp->rank == 0 && !k->name)
		fprintf(stderr, "weft-mpi-perf: there is no kind '%s'; try --help\n", mp->o.kind);
	else if (mp->rank == 0 && mp->o.last_step >= mp->ranks)
		fprintf(stderr, "weft-mpi-perf: %d ranks have no step %d\n", mp->ranks,
			mp->o.last_step);
	else if (mp->rank == 0)
		fprintf(stderr, "weft-mpi-perf: %s needs %s ranks, not %d\n", k->name,
			k->ranks ? "exactly 2" : "at least 2", mp->ranks);
	return NULL;
}

/* A partner that has gone, or a stack that hangs, must not keep the machine. */
static void over(int signal)
{
	static const char text[] =
		"weft-mpi-perf: no end in sight after the time of -T, giving up\n";
	ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)signal;
	(void)ignored;
	_exit(1);
}

void *mp_room(size_t bytes)
{
	void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (!p) {
		fprintf(stderr, "weft-mpi-perf: no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	memset(p, 0, bytes);
	return p;
}

/* How many messages there is room for. Collectives need one for each rank, an exchange one to pack
 * from; a ring has all of its window, so that each can be looked at. */
static size_t slots(const struct mp *mp)
{
	if (mp->kind->ranks)
		return 1;
	return (size_t)(mp->kind->window ? mp_window(mp) : mp->ranks);
}

static void buffers(struct mp *mp)
{
	size_t sizes[MP_SIZES];
	size_t bytes = sizes[mp_sizes(mp, sizes) - 1] * slots(mp);

	mp->out = mp_room(bytes);
	mp->in = mp_room(bytes);
	for (size_t i = 0; i < sizeof(mp->samples) / sizeof(mp->samples[0]); i++)
		mp->samples[i] = mp_room((size_t)mp_iterations(mp) * sizeof(double));
}

static void drop_buffers(struct mp *mp)
{
	free(mp->out);
	free(mp->in);
	for (size_t i = 0; i < sizeof(mp->samples) / sizeof(mp->samples[0]); i++)
		free(mp->samples[i]);
}

static int run(struct mp *mp)
{
	long mine;
	int code;

	buffers(mp);
	signal(SIGALRM, over);
	alarm((unsigned int)(2 * mp->o.bound) + 60);
	mp->start = mp_now();
	mp_begin(mp);
	code = mp->kind->run(mp);
	mine = mp->wrong;
	MPI_Allreduce(&mine, &mp->wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	mp_end(mp);
	if (mp->rank == 0 && mp->wrong)
		fprintf(stderr, "weft-mpi-perf: %ld messages were not what was sent\n", mp->wrong);
	drop_buffers(mp);
	return mp->wrong ? 1 : code;
}

int main(int argc, char **argv)
{
	struct mp mp = {.rss_before = mp_memory_rss()};
	int code;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &mp.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &mp.ranks);
	code = mp_opts_parse(&mp.o, argc, argv, mp.rank == 0);
	if (!code && mp.o.help && mp.rank == 0)
		fputs(mp_usage, stdout);
	if (!code && !mp.o.help) {
		mp.kind = kind_of(&mp);
		code = mp.kind ? run(&mp) : 2;
	}
	MPI_Finalize();
	return code;
}
