/* A rank is killed while the others wait for it in a collective: each of them gets an error before
 * long, and so it does in every call after that.
 *
 *	coll_killed BYTES [alltoall|allreduce|reduce_scatter|allgather|barrier|bcast]
 *
 * As mpi_killed: the last rank dies, of SIGKILL, and the launcher must let the others go on. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT = 40 };

static const char *op = "alltoall";

static int call(void *out, void *in, int bytes)
{
	if (!strcmp(op, "allreduce"))
		return MPI_Allreduce(out, in, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
	if (!strcmp(op, "reduce_scatter"))
		return MPI_Reduce_scatter_block(out, in, bytes, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
	if (!strcmp(op, "allgather"))
		return MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
	if (!strcmp(op, "bcast")) { /* of the one that dies */
		int size;

		MPI_Comm_size(MPI_COMM_WORLD, &size);
		return MPI_Bcast(out, bytes, MPI_BYTE, size - 1, MPI_COMM_WORLD);
	}
	if (!strcmp(op, "barrier"))
		return MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, size, error, again, bytes = argc > 1 ? atoi(argv[1]) : 4;
	char *out, *in;
	double start, took;

	if (argc > 2)
		op = argv[2];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	out = calloc((size_t)size, (size_t)bytes);
	in = calloc((size_t)size, (size_t)bytes);
	for (int i = 0; i < 3; i++)
		call(out, in, bytes);
	if (rank == size - 1) {
		usleep(200000);
		raise(SIGKILL);
	}
	alarm(LIMIT);
	start = MPI_Wtime();
	error = call(out, in, bytes);
	took = MPI_Wtime() - start;
	again = call(out, in, bytes);
	printf("rank %d, %d bytes: %s after %.2f s, %s after that\n", rank, bytes,
	       error == MPI_SUCCESS ? "no error" : "an error", took,
	       again == MPI_SUCCESS ? "none" : "another");
	fflush(stdout);
	_exit(0);
}
