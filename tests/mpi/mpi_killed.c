/* A rank is killed while the others wait for it: each of them gets an error before long.
 *
 *	mpi_killed recv|recv-long|send|send-long|barrier
 *
 * The last rank dies, of SIGKILL. Errors of MPI_COMM_WORLD are returned; each of the other ranks
 * says which one it has got, and when, and leaves without MPI_Finalize, which could not end. The
 * launcher must let them (Open MPI: --enable-recovery). */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHORT = 64, LONG = 1 << 20, TAG = 1, LIMIT = 40 };

static char buf[LONG];

/* All pairs have spoken: whatever is made on first use is there. */
static void meet(int rank, int size)
{
	for (int i = 0; i < size; i++) {
		int peer = (i - rank + size) % size;

		MPI_Sendrecv_replace(buf, SHORT, MPI_BYTE, peer, TAG, peer, TAG, MPI_COMM_WORLD,
				     MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A short message is sent before anybody knows whether it arrives; not so many of them. */
static int send_until_error(int victim, double start)
{
	int error = MPI_SUCCESS;

	while (error == MPI_SUCCESS && MPI_Wtime() - start < LIMIT) {
		error = MPI_Send(buf, SHORT, MPI_BYTE, victim, TAG, MPI_COMM_WORLD);
		usleep(1000);
	}
	return error;
}

static int wait_for(const char *how, int victim, double start)
{
	if (!strcmp(how, "recv"))
		return MPI_Recv(buf, SHORT, MPI_BYTE, victim, TAG, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE);
	if (!strcmp(how, "recv-long"))
		return MPI_Recv(buf, LONG, MPI_BYTE, victim, TAG, MPI_COMM_WORLD,
				MPI_STATUS_IGNORE);
	if (!strcmp(how, "send"))
		return send_until_error(victim, start);
	if (!strcmp(how, "send-long"))
		return MPI_Send(buf, LONG, MPI_BYTE, victim, TAG, MPI_COMM_WORLD);
	return MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int rank, size, error;
	double start;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 2 || size < 2)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	meet(rank, size);
	if (rank == size - 1) {
		usleep(200000);
		raise(SIGKILL);
	}
	alarm(LIMIT);
	start = MPI_Wtime();
	error = wait_for(argv[1], size - 1, start);
	printf("rank %d, %s: %s after %.2f s\n", rank, argv[1],
	       error == MPI_SUCCESS ? "no error" : "an error", MPI_Wtime() - start);
	fflush(stdout);
	_exit(0);
}
