/* Many communicators on a host that has little shared memory: the MPI can have some of it after
 * them.
 *
 *	-n COUNT   communicators
 */
#include "mpi_test.h"

#define MINE (1 << 20) /* bytes of a rank */

static void use(MPI_Comm comm, int n)
{
	int sum = 0, mine = n + mt.rank;

	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
	CHECK(sum == n * mt.size + mt.size * (mt.size - 1) / 2, "communicator %d: %d", n, sum);
}

static void share(void)
{
	int next = (mt.rank + 1) % mt.size, unit;
	unsigned char *mine, *theirs;
	MPI_Aint bytes;
	MPI_Win win;

	MPI_Win_allocate_shared(MINE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
	MPI_Win_fence(0, win);
	mt_fill(mine, MINE, mt_key(mt.rank, 0, 0));
	MPI_Win_fence(0, win);
	MPI_Win_shared_query(win, next, &bytes, &unit, &theirs);
	CHECK(bytes == MINE, "%ld bytes of rank %d", (long)bytes, next);
	mt_expect(theirs, MINE, mt_key(next, 0, 0), "memory of rank %d", next);
	MPI_Win_fence(0, win);
	MPI_Win_free(&win);
}

static void many(void)
{
	MPI_Comm *comm = mt_alloc((size_t)mt.count * sizeof(*comm));

	for (int i = 0; i < mt.count; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &comm[i]);
		use(comm[i], i);
	}
	share();
	for (int i = 0; i < mt.count; i++)
		MPI_Comm_free(&comm[i]);
	mt_free(comm);
}

int main(int argc, char **argv)
{
	mt.count = 40;
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("many", many);
	return mt_done();
}
