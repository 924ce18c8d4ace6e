/* A rank is killed while the others wait for it in a collective: each of them gets an error before
 * long, and so it does in every call after that, of the same operation and of another, and in
 * collectives of other communicators.
 *
 *	coll_killed [OPTIONS] BYTES OPERATION...   the first one is the one in which it dies
 *
 *	-l SECONDS       it is only late, and nobody gets an error
 *	-s SECONDS       the same, but stopped, and nothing of it runs
 *	-i MILLISECONDS  it dies in the midst of calls that follow each other, after so long
 *	-w CALLS         before that, if not 3: ways that are tried have their turns
 *	-w 0             MPI_COMM_WORLD is set up, but not the communicator in which it dies
 *	-r ROOT          of MPI_Bcast, if not the one that dies
 *
 * Whoever has not got all of a message that is longer than 1 MB hears of it, too.
 *
 * Each operation has a communicator of its own. As mpi_killed: the last rank dies, of SIGKILL, and
 * the launcher must let the others go on. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { LIMIT = 40, OPS = 8 };

static int bytes, root = -1, late, stopped, inside, warm = 3;

static int call(const char *op, void *out, void *in, MPI_Comm comm)
{
	if (!strcmp(op, "allreduce"))
		return MPI_Allreduce(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
	if (!strcmp(op, "reduce_scatter"))
		return MPI_Reduce_scatter_block(out, in, bytes, MPI_BYTE, MPI_BOR, comm);
	if (!strcmp(op, "allgather"))
		return MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
	if (!strcmp(op, "bcast"))
		return MPI_Bcast(out, bytes, MPI_BYTE, root, comm);
	if (!strcmp(op, "barrier"))
		return MPI_Barrier(comm);
	return MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm);
}

/* One that the communicator has not done yet, so that it is not known how. */
static int other(const char *op, char *out, MPI_Comm comm)
{
	int sum;

	if (strcmp(op, "barrier") != 0)
		return MPI_Barrier(comm);
	sum = out[0];
	return MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm);
}

/* One of ours says whose it is, and what has happened. */
static const char *in_words(int error)
{
	static char text[MPI_MAX_ERROR_STRING + 32];
	int len;

	MPI_Error_string(error, text, &len);
	if (strstr(text, "weft-coll: a rank of this communicator has died"))
		return "an error";
	memmove(text + 12, text, strlen(text) + 1);
	memcpy(text, "an error by ", 12);
	return text;
}

/* many: until there is an error; LIMIT ends it, too. */
static void test(const char *op, int many, int rank, char *out, void *in, MPI_Comm comm)
{
	double start = MPI_Wtime(), took;
	int error, again;

	do
		error = call(op, out, in, comm);
	while (many && error == MPI_SUCCESS);
	took = MPI_Wtime() - start;
	again = call(op, out, in, comm);
	if (again != MPI_SUCCESS)
		again = other(op, out, comm);
	printf("rank %d, %s of %d bytes: %s after %.2f s, %s after that\n", rank, op, bytes,
	       error == MPI_SUCCESS ? "no error" : in_words(error), took,
	       again == MPI_SUCCESS ? "none" : "another");
	fflush(stdout);
}

static void die(int sig)
{
	(void)sig;
	raise(SIGKILL);
}

/* Until a child wakes it. */
static void be_stopped(void)
{
	pid_t us = getpid();

	if (!fork()) {
		sleep((unsigned int)stopped);
		kill(us, SIGCONT);
		_exit(0);
	}
	raise(SIGSTOP);
}

/* What becomes of the last rank. */
static void last(void)
{
	struct itimerval when = {.it_value = {inside / 1000, inside % 1000 * 1000}};

	if (late) {
		sleep((unsigned int)late);
	} else if (stopped) {
		be_stopped();
	} else if (inside) {
		signal(SIGALRM, die);
		setitimer(ITIMER_REAL, &when, NULL);
	} else {
		usleep(200000);
		raise(SIGKILL);
	}
}

/* Returns where the arguments begin. */
static int options(int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "l:s:i:r:w:")) != -1) {
		if (c == 'l')
			late = atoi(optarg);
		else if (c == 's')
			stopped = atoi(optarg);
		else if (c == 'i')
			inside = atoi(optarg);
		else if (c == 'r')
			root = atoi(optarg);
		else if (c == 'w')
			warm = atoi(optarg);
	}
	return optind;
}

int main(int argc, char **argv)
{
	int rank, size, at = options(argc, argv), n = argc - at - 1;
	MPI_Comm comm[OPS];
	char *out, *in;

	bytes = at < argc ? atoi(argv[at]) : 4;
	argv += at + 1;
	MPI_Init(NULL, NULL);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (n < 1 || n > OPS || root >= size)
		MPI_Abort(MPI_COMM_WORLD, 2);
	root = root < 0 ? size - 1 : root;
	out = calloc((size_t)size, (size_t)bytes);
	in = calloc((size_t)size, (size_t)bytes);
	if (!warm)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_RETURN);
		for (int k = 0; k < warm; k++)
			call(argv[i], out, in, comm[i]);
	}
	alarm((unsigned int)(LIMIT + late + stopped));
	if (rank == size - 1)
		last();
	for (int i = 0; i < n; i++)
		test(argv[i], inside && !i, rank, out, in, comm[i]);
	if (!late && !stopped)
		_exit(0);
	for (int i = 0; i < n; i++)
		MPI_Comm_free(&comm[i]);
	free(out);
	free(in);
	return MPI_Finalize();
}
