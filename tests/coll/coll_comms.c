/* More communicators than the library takes: those of a program that has many at a time, and of one
 * that makes, uses and frees them without end.
 *
 *	-n COUNT   at a time, and as many one after the other
 */
#include "mpi_test.h"

#include <stdio.h>
#include <unistd.h>

static void use(MPI_Comm comm, int n)
{
	int size, rank, sum = 0, mine;

	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &rank);
	mine = n + rank;
	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK(sum == n * size + size * (size - 1) / 2, "communicator %d: %d", n, sum);
}

static void at_once(void)
{
	MPI_Comm *comm = mt_alloc((size_t)mt.count * sizeof(*comm));

	for (int i = 0; i < mt.count; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		use(comm[i], i);
	}
	/* Again, whoever has them. */
	for (int i = 0; i < mt.count; i += 7)
		use(comm[i], i + 1);
	for (int i = 0; i < mt.count; i++)
		MPI_Comm_free(&comm[i]);
	/* There is room again. */
	MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
	use(comm[0], 1);
	MPI_Comm_free(&comm[0]);
	mt_free(comm);
}

/* As many as the MPI has, before one is used: there is none left for the library. */
static void all_there_are(void)
{
	enum { MOST = 2100 }; /* MPICH has 2,048 */
	MPI_Comm *comm = mt_alloc(MOST * sizeof(*comm));
	int n = 0;

	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	while (n < MOST && !MPI_Comm_dup(MPI_COMM_WORLD, &comm[n]))
		n++;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
	for (int i = 0; i < n; i += 100) {
		MPI_Comm_set_errhandler(comm[i], MPI_ERRORS_ARE_FATAL);
		use(comm[i], i);
		use(comm[i], i + 1);
	}
	for (int i = 0; i < n; i++)
		MPI_Comm_free(&comm[i]);
	if (!mt.rank)
		printf("%d communicators at a time\n", n);
	mt_free(comm);
}

/* Of this process, in KB; without what is shared with others. */
static long resident(void)
{
	long pages = 0, all, shared = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%ld %ld %ld", &all, &pages, &shared) != 3)
		pages = shared = 0;
	if (f)
		fclose(f);
	return (pages - shared) * (sysconf(_SC_PAGESIZE) / 1024);
}

static void live(int from, int n)
{
	for (int i = from; i < from + n; i++) {
		MPI_Comm comm;

		MPI_Comm_split(MPI_COMM_WORLD, i % 3 ? 0 : mt.rank % 2, mt.rank, &comm);
		use(comm, i);
		MPI_Comm_free(&comm);
	}
}

/* What is used for good is used by the first ones. */
static void one_by_one(void)
{
	enum { LEAST = 512 };
	long first, then;

	live(0, mt.count / 3);
	first = resident();
	live(mt.count / 3, mt.count - mt.count / 3);
	then = resident();
	if (!mt.rank)
		printf("%ld KB after %d communicators, %ld KB after %d\n", first, mt.count / 3,
		       then, mt.count);
	CHECK(then - first < LEAST, "from %ld to %ld KB after %d communicators", first, then,
	      mt.count);
}

int main(int argc, char **argv)
{
	mt.count = 300;
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("all there are", all_there_are);
	mt_part("at once", at_once);
	mt_part("one by one", one_by_one);
	return mt_done();
}
