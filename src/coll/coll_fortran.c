/* The names that Fortran programs call, where they do not lead to the C ones by themselves.
 *
 * MPICH's Fortran calls MPI_..., which is ours, but once. Open MPI's calls PMPI_..., so its own
 * names are taken, too: those of mpif.h and of the module mpi as compilers spell them, and the one
 * that the module mpi_f08 calls. Addresses stand for MPI_IN_PLACE and MPI_BOTTOM there.
 */
#include <mpi.h>
#include <stddef.h>

#ifdef OPEN_MPI

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "counts are passed on as they are");

#define EXPORT __attribute__((visibility("default")))

/* Whatever linkage defines them: the program's common block, or the MPI's library. */
extern int mpi_fortran_in_place_ __attribute__((weak));
extern int mpi_fortran_bottom_ __attribute__((weak));

static void *address(void *p)
{
	if (&mpi_fortran_in_place_ && p == (void *)&mpi_fortran_in_place_)
		return MPI_IN_PLACE;
	if (&mpi_fortran_bottom_ && p == (void *)&mpi_fortran_bottom_)
		return MPI_BOTTOM;
	return p;
}

/* NAMES(f, arguments): one function under its names, as compilers on Linux spell them. Not the name
 * as such, which some can be told to use: a library may have a C function mpi_init of its own. */
#define NAMES(small, args)                                                                         \
	EXPORT void ompi_##small##_f args;                                                         \
	EXPORT void mpi_##small##_ args __attribute__((alias("ompi_" #small "_f")));               \
	EXPORT void mpi_##small##__ args __attribute__((alias("ompi_" #small "_f")));              \
	EXPORT void ompi_##small##_f args

NAMES(alltoall, (void *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, void *recvbuf,
		 MPI_Fint *recvcount, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *ierr))
{
	int ret = MPI_Alltoall(address(sendbuf), *sendcount, PMPI_Type_f2c(*sendtype),
			       address(recvbuf), *recvcount, PMPI_Type_f2c(*recvtype),
			       PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

NAMES(alltoallv,
      (void *sendbuf, MPI_Fint *sendcounts, MPI_Fint *sdispls, MPI_Fint *sendtype, void *recvbuf,
       MPI_Fint *recvcounts, MPI_Fint *rdispls, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *ierr))
{
	int ret = MPI_Alltoallv(address(sendbuf), sendcounts, sdispls, PMPI_Type_f2c(*sendtype),
				address(recvbuf), recvcounts, rdispls, PMPI_Type_f2c(*recvtype),
				PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

NAMES(barrier, (MPI_Fint * comm, MPI_Fint *ierr))
{
	int ret = MPI_Barrier(PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

NAMES(bcast,
      (void *buf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *root, MPI_Fint *comm, MPI_Fint *ierr))
{
	int ret =
		MPI_Bcast(address(buf), *count, PMPI_Type_f2c(*type), *root, PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

NAMES(allgather, (void *sendbuf, MPI_Fint *sendcount, MPI_Fint *sendtype, void *recvbuf,
		  MPI_Fint *recvcount, MPI_Fint *recvtype, MPI_Fint *comm, MPI_Fint *ierr))
{
	int ret = MPI_Allgather(address(sendbuf), *sendcount, PMPI_Type_f2c(*sendtype),
				address(recvbuf), *recvcount, PMPI_Type_f2c(*recvtype),
				PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

NAMES(allreduce, (void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *type, MPI_Fint *op,
		  MPI_Fint *comm, MPI_Fint *ierr))
{
	int ret = MPI_Allreduce(address(sendbuf), address(recvbuf), *count, PMPI_Type_f2c(*type),
				PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

NAMES(reduce_scatter, (void *sendbuf, void *recvbuf, MPI_Fint *counts, MPI_Fint *type, MPI_Fint *op,
		       MPI_Fint *comm, MPI_Fint *ierr))
{
	int ret = MPI_Reduce_scatter(address(sendbuf), address(recvbuf), counts,
				     PMPI_Type_f2c(*type), PMPI_Op_f2c(*op), PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

NAMES(reduce_scatter_block, (void *sendbuf, void *recvbuf, MPI_Fint *count, MPI_Fint *type,
			     MPI_Fint *op, MPI_Fint *comm, MPI_Fint *ierr))
{
	int ret = MPI_Reduce_scatter_block(address(sendbuf), address(recvbuf), *count,
					   PMPI_Type_f2c(*type), PMPI_Op_f2c(*op),
					   PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

NAMES(init, (MPI_Fint * ierr))
{
	int ret = MPI_Init(NULL, NULL);

	if (ierr)
		*ierr = ret;
}

NAMES(init_thread, (MPI_Fint * required, MPI_Fint *provided, MPI_Fint *ierr))
{
	int ret = MPI_Init_thread(NULL, NULL, *required, provided);

	if (ierr)
		*ierr = ret;
}

NAMES(finalize, (MPI_Fint * ierr))
{
	int ret = MPI_Finalize();

	if (ierr)
		*ierr = ret;
}

#else

/* Its module mpi_f08 calls PMPI_ where there are no buffers. A communicator is its number
 * there. */
#define F08(name, args)                                                                            \
	__attribute__((visibility("default"))) void mpi_##name##_f08_ args;                        \
	void mpi_##name##_f08_ args

F08(barrier, (const MPI_Fint *comm, MPI_Fint *ierr))
{
	int ret = MPI_Barrier(PMPI_Comm_f2c(*comm));

	if (ierr)
		*ierr = ret;
}

F08(init, (MPI_Fint * ierr))
{
	int ret = MPI_Init(NULL, NULL);

	if (ierr)
		*ierr = ret;
}

F08(init_thread, (const MPI_Fint *required, MPI_Fint *provided, MPI_Fint *ierr))
{
	int ret = MPI_Init_thread(NULL, NULL, *required, provided);

	if (ierr)
		*ierr = ret;
}

F08(finalize, (MPI_Fint * ierr))
{
	int ret = MPI_Finalize();

	if (ierr)
		*ierr = ret;
}

#endif
