/* Communicators that are freed, and those that are not, at the end: ranks of one have others in
 * different places of their tables, and must not wait for each other in these orders. What a
 * program does in MPI_Finalize. Types that are seldom seen. And, with coll_noshm.so, those for
 * which there is no shared memory: the MPI has them. */
#include <stdio.h>

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

/* The others keep it until MPI_Finalize, which does not wait for who has not. (By the letter all
 * ranks have to free it; MPIs do not mind.) */
static void freed_by_one(void)
{
	MPI_Comm kept;

	MPI_Comm_dup(MPI_COMM_WORLD, &kept);
	alltoall(kept);
	if (mt.rank == 1)
		MPI_Comm_free(&kept);
}

static int handled;

static void free_it(MPI_Comm *comm, int *err, ...)
{
	MPI_Comm copy = *comm;

	(void)err;
	if (!handled++)
		MPI_Comm_free(&copy);
}

/* In the middle of a call, by the handler of its error. */
static void freed_by_handler(void)
{
	MPI_Errhandler handler;
	int one = 1, sum;
	MPI_Comm comm;

	handled = 0;
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; i < 6; i++)
		MPI_Barrier(comm);
	MPI_Comm_create_errhandler(free_it, &handler);
	MPI_Comm_set_errhandler(comm, handler);
	MPI_Errhandler_free(&handler);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_OP_NULL, comm);
	CHECK(handled == 1, "called %d times", handled);
	alltoall(MPI_COMM_WORLD);
}

/* A type of Fortran's kinds is predefined without being named: nobody may free it. */
static void by_precision(void)
{
	MPI_Datatype real, two;
	float out[128] = {0}, in[128];

	for (int i = 0; i < 128; i++)
		out[i] = (float)(mt.rank * 1000 + i);
	for (int k = 0; k < 3; k++) {
		MPI_Type_create_f90_real(6, MPI_UNDEFINED, &real);
		MPI_Type_contiguous(2, real, &two);
		MPI_Type_commit(&two);
		MPI_Alltoall(out, 1, two, in, 1, two, MPI_COMM_WORLD);
		for (int r = 0; r < mt.size && r < 64; r++)
			CHECK(in[2 * r] == (float)(r * 1000 + 2 * mt.rank), "%f from %d",
			      (double)in[2 * r], r);
		MPI_Bcast(in, 1, two, 0, MPI_COMM_WORLD);
		MPI_Type_free(&two);
	}
}

/* One rank has nothing to send, in a type of 3 GB with gaps; the others have nothing in bytes. */
static void nothing_of_much(void)
{
	int *none = mt_alloc((size_t)mt.size * sizeof(*none));
	MPI_Datatype much, mine;
	char x = 0, y = 0;

	for (int i = 0; i < mt.size; i++)
		none[i] = 0;
	MPI_Type_vector(3, 1 << 30, (1 << 30) + 1, MPI_BYTE, &much);
	MPI_Type_commit(&much);
	mine = mt.rank ? MPI_BYTE : much;
	for (int i = 0; i < 20; i++)
		MPI_Alltoallv(&x, none, none, mine, &y, none, none, mine, MPI_COMM_WORLD);
	CHECK(y == 0, "something came");
	MPI_Type_free(&much);
	mt_free(none);
}

/* In MPI_Finalize, which deletes what is attached to MPI_COMM_SELF, the last first. */
static int last_of_all(MPI_Comm comm, int key, void *value, void *extra)
{
	int mine = mt.rank + 1, sum = 0;

	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	if (sum != mt.size * (mt.size + 1) / 2) {
		fprintf(stderr, "rank %d has %d in MPI_Finalize\n", mt.rank, sum);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return MPI_SUCCESS;
}

/* Some attach it before their first collective, others after it: what the library has there must be
 * the last to go on all ranks. */
static void attached(void)
{
	int key;

	MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, last_of_all, &key, NULL);
	if (mt.rank % 2)
		MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
	alltoall(MPI_COMM_WORLD);
	if (mt.rank % 2 == 0)
		MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("attached", attached);
	mt_part("by precision", by_precision);
	mt_part("nothing of much", nothing_of_much);
	mt_part("unlike", unlike);
	mt_part("freed by a handler", freed_by_handler);
	mt_part("freed by one", freed_by_one);
	return mt_done();
}
