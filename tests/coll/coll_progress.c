/* MPI's messages move while a rank waits in a collective: a sender may have to finish a long one to
 * it before it can come. */
#include <stdlib.h>

#include "mpi_test.h"

enum { LONG = 4 << 20, TAG = 1 };

static void alltoall(void)
{
	int *out = mt_alloc((size_t)mt.size * sizeof(int)),
	    *in = mt_alloc((size_t)mt.size * sizeof(int));

	for (int i = 0; i < mt.size; i++)
		out[i] = mt.rank * 1000 + i;
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < mt.size; i++)
		CHECK(in[i] == i * 1000 + mt.rank, "%d from %d", in[i], i);
	mt_free(out);
	mt_free(in);
}

static void entangled(void)
{
	int to = (mt.rank + 1) % mt.size, from = (mt.rank + mt.size - 1) % mt.size;
	char *out = mt_alloc(LONG), *in = mt_alloc(LONG);
	MPI_Request r;

	mt_fill(out, LONG, mt_key(mt.rank, to, 0));
	MPI_Irecv(in, LONG, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &r);
	if (mt.rank % 2) { /* late, and not before this one is through */
		mt_nap(20000);
		MPI_Ssend(out, LONG, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
		alltoall();
	} else {
		alltoall();
		MPI_Ssend(out, LONG, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
	}
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	mt_expect(in, LONG, mt_key(from, mt.rank, 0), "what %d sent", from);
	mt_free(out);
	mt_free(in);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("entangled", entangled);
	return mt_done();
}
