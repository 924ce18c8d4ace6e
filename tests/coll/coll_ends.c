/* Communicators that are freed, and those that are not, at the end: ranks of one have others in
 * different places of their tables, and must not wait for each other in these orders. And, with
 * coll_noshm.so, those for which there is no shared memory: the MPI has them. */
#include "mpi_test.h"

static void alltoall(MPI_Comm comm)
{
	int size, rank, *out, *in;

	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &rank);
	out = mt_alloc((size_t)size * sizeof(*out));
	in = mt_alloc((size_t)size * sizeof(*in));
	for (int i = 0; i < size; i++)
		out[i] = rank * 1000 + i;
	MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm);
	for (int i = 0; i < size; i++)
		CHECK(in[i] == i * 1000 + rank, "%d from %d", in[i], i);
	mt_free(out);
	mt_free(in);
}

/* Those in which rank 1 is not have taken a place with the others only. */
static void unlike(void)
{
	MPI_Comm part, first, second;

	alltoall(MPI_COMM_WORLD);
	MPI_Comm_split(MPI_COMM_WORLD, mt.rank == 1, mt.rank, &part);
	alltoall(part);
	MPI_Comm_dup(MPI_COMM_WORLD, &first);
	alltoall(first);
	MPI_Comm_free(&part);
	MPI_Comm_dup(MPI_COMM_WORLD, &second);
	alltoall(second);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("unlike", unlike);
	return mt_done();
}
