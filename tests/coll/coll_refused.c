/* Calls that are wrong: the MPI complains, by an error that is returned, and the communicator is as
 * good as before. Which of them it notices is its own affair; but what it
 * refuses by its own name it refuses by ours. */
#include "mpi_test.h"

static int one[64], two[64];
static MPI_Datatype raw; /* never committed */

static void still_good(const char *after)
{
	int sum = 0, mine = mt.rank + 1, error;

	error = MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(!error && sum == mt.size * (mt.size + 1) / 2, "after %s: %d, error %d", after, sum,
	      error);
	for (int i = 0; i < mt.size; i++)
		one[i] = mt.rank * 100 + i;
	error = MPI_Alltoall(one, 1, MPI_INT, two, 1, MPI_INT, MPI_COMM_WORLD);
	for (int i = 0; i < mt.size; i++)
		CHECK(!error && two[i] == i * 100 + mt.rank, "after %s: %d from %d, error %d",
		      after, two[i], i, error);
}

/* A class, and not a code: that may say more. */
static int class_of(int error)
{
	int class = -1;

	MPI_Error_class(error, &class);
	return class;
}

#define REFUSED(name, args)                                                                        \
	do {                                                                                       \
		int ours = class_of(MPI_##name args), own = class_of(PMPI_##name args);            \
                                                                                                   \
		CHECK(own != MPI_SUCCESS && ours == own, #name #args ": %d, by the MPI %d", ours,  \
		      own);                                                                        \
		still_good(#name #args);                                                           \
	} while (0)

static void places(void)
{
	REFUSED(Allreduce, (one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	REFUSED(Alltoall, (one, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, MPI_COMM_WORLD));
}

static void types(void)
{
	REFUSED(Alltoall, (one, 1, raw, two, 1, raw, MPI_COMM_WORLD));
	REFUSED(Bcast, (one, 1, raw, 0, MPI_COMM_WORLD));
	REFUSED(Allgather, (one, 1, raw, two, 1, raw, MPI_COMM_WORLD));
}

/* The same buffer twice. Open MPI takes it as MPI_IN_PLACE. */
static void same(void)
{
	int ours, own, a = 1, b = 1;

	ours = class_of(MPI_Allreduce(&a, &a, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	own = class_of(PMPI_Allreduce(&b, &b, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	CHECK(ours == own && a == b, "one buffer: %d, by the MPI %d; %d, %d", ours, own, a, b);
	still_good("one buffer");
}

/* Fortran has a type for logical values; some MPIs take integers for them all the same. */
static void operations(void)
{
	int ours, own, mine = mt.rank + 1, a = 0, b = 0;

	ours = MPI_Allreduce(&mine, &a, 1, MPI_INTEGER, MPI_LXOR, MPI_COMM_WORLD);
	own = PMPI_Allreduce(&mine, &b, 1, MPI_INTEGER, MPI_LXOR, MPI_COMM_WORLD);
	CHECK(class_of(ours) == class_of(own) && (own || a == b), "MPI_LXOR: error %d, %d; %d, %d",
	      ours, own, a, b);
	still_good("MPI_LXOR");
}

/* By one rank only, in a communicator that nobody has used: the MPI says so without the others.
 * (MPICH 4.0 crashes by itself in MPI_Allreduce of -1.) */
#define ALONE(name, args)                                                                          \
	do {                                                                                       \
		MPI_Comm fresh;                                                                    \
                                                                                                   \
		MPI_Comm_dup(MPI_COMM_WORLD, &fresh);                                              \
		MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN);                                 \
		CHECK(mt.rank || MPI_##name args != MPI_SUCCESS, #name #args);                     \
		PMPI_Barrier(MPI_COMM_WORLD);                                                      \
		MPI_Comm_free(&fresh);                                                             \
	} while (0)

static void alone(void)
{
	int wrong[64] = {-1}, none[64] = {0};

	ALONE(Alltoall, (one, -1, MPI_INT, two, 1, MPI_INT, fresh));
	ALONE(Alltoallv, (one, wrong, none, MPI_INT, two, none, none, MPI_INT, fresh));
	ALONE(Bcast, (one, -1, MPI_INT, 0, fresh));
	ALONE(Bcast, (one, 1, MPI_INT, mt.size, fresh));
	ALONE(Allgather, (one, -1, MPI_INT, two, 1, MPI_INT, fresh));
	ALONE(Allreduce, (one, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, fresh));
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Type_vector(2, 1, 2, MPI_INT, &raw);
	mt_part("buffers that are nowhere", places);
	mt_part("types that are not committed", types);
	mt_part("one buffer for both", same);
	mt_part("operations that a type does not have", operations);
	mt_part("calls of one rank", alone);
	return mt_done();
}
