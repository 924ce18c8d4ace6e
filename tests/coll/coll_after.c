/* A communicator after the other, each used once more often than the one before: as many of the
 * calls as WEFT_COLL_AFTER says are the MPI's, of whatever operation, and the rest ours. */
#include "mpi_test.h"

enum { COMMS = 8 };

static void call(MPI_Comm comm, int number)
{
	int mine = mt.rank + number, sum = 0;

	switch (number % 3) {
	case 0:
		MPI_Barrier(comm);
		break;
	case 1:
		MPI_Bcast(&mine, 1, MPI_INT, 0, comm);
		CHECK(mine == number, "call %d: %d", number, mine);
		break;
	default:
		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
		CHECK(sum == mt.size * (mt.size - 1) / 2 + mt.size * number, "call %d: %d", number,
		      sum);
	}
}

static void all(void)
{
	for (int n = 0; n < COMMS; n++) {
		MPI_Comm comm;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		for (int i = 0; i < n; i++)
			call(comm, i);
		MPI_Comm_free(&comm);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("one call more each time", all);
	return mt_done();
}
