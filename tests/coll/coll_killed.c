/* A rank is killed while the others wait for it in a collective: each of them gets an error before
 * long, and so it does in every call after that, and in collectives of other communicators.
 *
 *	coll_killed BYTES OPERATION...        the first one is the one in which it dies
 *	coll_killed -l SECONDS BYTES OPERATION...  it is only late, and nobody gets an error
 *
 * Each operation has a communicator of its own. As mpi_killed: the last rank dies, of SIGKILL, and
 * the launcher must let the others go on. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT = 40, OPS = 8 };

static int bytes;

static int call(const char *op, void *out, void *in, MPI_Comm comm)
{
	if (!strcmp(op, "allreduce"))
		return MPI_Allreduce(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
	if (!strcmp(op, "reduce_scatter"))
		return MPI_Reduce_scatter_block(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
	if (!strcmp(op, "allgather"))
		return MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
	if (!strcmp(op, "bcast")) { /* of the one that dies */
		int size;

		MPI_Comm_size(comm, &size);
		return MPI_Bcast(out, bytes, MPI_BYTE, size - 1, comm);
	}
	if (!strcmp(op, "barrier"))
		return MPI_Barrier(comm);
	return MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
}

static void test(const char *op, int rank, void *out, void *in, MPI_Comm comm)
{
	double start = MPI_Wtime(), took;
	int error = call(op, out, in, comm), again;

	took = MPI_Wtime() - start;
	again = call(op, out, in, comm);
	printf("rank %d, %s of %d bytes: %s after %.2f s, %s after that\n", rank, op, bytes,
	       error == MPI_SUCCESS ? "no error" : "an error", took,
	       again == MPI_SUCCESS ? "none" : "another");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int rank, size, n, late = 0;
	MPI_Comm comm[OPS];
	char *out, *in;

	if (argc > 3 && !strcmp(argv[1], "-l")) {
		late = atoi(argv[2]);
		argc -= 2;
		argv += 2;
	}
	bytes = argc > 1 ? atoi(argv[1]) : 4;
	n = argc > 2 ? argc - 2 : 0;
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (n < 1 || n > OPS)
		MPI_Abort(MPI_COMM_WORLD, 2);
	out = calloc((size_t)size, (size_t)bytes);
	in = calloc((size_t)size, (size_t)bytes);
	for (int i = 0; i < n; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_RETURN);
		for (int k = 0; k < 3; k++)
			call(argv[2 + i], out, in, comm[i]);
	}
	if (rank == size - 1 && !late) {
		usleep(200000);
		raise(SIGKILL);
	}
	alarm(LIMIT);
	if (rank == size - 1)
		sleep((unsigned int)late);
	for (int i = 0; i < n; i++)
		test(argv[2 + i], rank, out, in, comm[i]);
	if (!late)
		_exit(0);
	for (int i = 0; i < n; i++)
		MPI_Comm_free(&comm[i]);
	free(out);
	free(in);
	return MPI_Finalize();
}
