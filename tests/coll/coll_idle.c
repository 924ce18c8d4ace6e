/* Rank 0 is late. The others are in the operation, and need no core meanwhile. */
#include <stdio.h>

#include "mpi_test.h"
#include "util_clock.h"

enum { LATE_MS = 1000, USED_MS = 400, MOST = 100000 };

static char *out, *in;

static void alltoall(int bytes)
{
	MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgather(int bytes)
{
	MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void bcast(int bytes)
{
	MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
	MPI_Allreduce(out, in, bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
}

static void barrier(int bytes)
{
	(void)bytes;
	MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
	const char *name;
	void (*call)(int bytes);
	int bytes;
} ops[] = {
	{"alltoall", alltoall, 4}, {"alltoall", alltoall, MOST}, {"allgather", allgather, 4000},
	{"bcast", bcast, MOST},    {"allreduce", allreduce, 8},  {"allreduce", allreduce, 100000},
	{"barrier", barrier, 0},
};
enum { OPS = sizeof(ops) / sizeof(*ops) };

/* All threads of the process count. */
static void late(void)
{
	for (int i = 0; i < OPS; i++) {
		uint64_t used;

		for (int n = 0; n < 5; n++)
			ops[i].call(ops[i].bytes);
		used = util_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
		if (!mt.rank)
			mt_nap(LATE_MS * 1000);
		ops[i].call(ops[i].bytes);
		used = util_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - used;
		CHECK(used < USED_MS * UTIL_NS_PER_MS,
		      "%s of %d bytes: %.0f ms of a core in %d ms of waiting", ops[i].name,
		      ops[i].bytes, (double)used / 1e6, LATE_MS);
		if (mt.rank == 1)
			printf("%s of %d bytes: %.0f ms of a core in %d ms of waiting\n",
			       ops[i].name, ops[i].bytes, (double)used / 1e6, LATE_MS);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	out = mt_alloc((size_t)mt.size * MOST);
	in = mt_alloc((size_t)mt.size * MOST);
	mt_part("late", late);
	mt_free(in);
	mt_free(out);
	return mt_done();
}
