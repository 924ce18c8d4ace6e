/* The communicators that collectives are tried on. */
#include "mpi_coll.h"

static struct coll coll_on(MPI_Comm comm, const char *name, int nonblocking)
{
	struct coll c = {.comm = comm, .name = name, .nonblocking = nonblocking};

	if (comm != MPI_COMM_NULL) {
		MPI_Comm_rank(comm, &c.rank);
		MPI_Comm_size(comm, &c.size);
	}
	return c;
}

static void everything(MPI_Comm comm, const char *name, int nonblocking)
{
	struct coll c = coll_on(comm, name, nonblocking);

	coll_move(&c);
	coll_reduce(&c);
}

/* All but the first rank, last rank first; only its members call MPI_Comm_create_group. */
static MPI_Comm group_of_others(void)
{
	int range[1][3] = {{mt.size - 1, 1, -1}};
	MPI_Group world, group;
	MPI_Comm comm = MPI_COMM_NULL;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, range, &group);
	if (mt.rank != 0)
		MPI_Comm_create_group(MPI_COMM_WORLD, group, 5, &comm);
	MPI_Group_free(&world);
	MPI_Group_free(&group);
	return comm;
}

/* The first third with the rest. */
static void between_groups(int nonblocking)
{
	int first = (mt.size + 2) / 3, side = mt.rank >= first;
	struct coll c;
	MPI_Comm local, inter;

	MPI_Comm_split(MPI_COMM_WORLD, side, mt.rank, &local);
	MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, side ? 0 : first, 6, &inter);
	c = coll_on(inter, "between two groups", nonblocking);
	MPI_Comm_remote_size(inter, &c.remote);
	c.side = side;
	coll_inter(&c);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&local);
}

void coll_everywhere(int nonblocking)
{
	MPI_Comm comm;

	everything(MPI_COMM_WORLD, "world", nonblocking);
	MPI_Comm_split(MPI_COMM_WORLD, mt.rank % 2, -mt.rank, &comm);
	everything(comm, "odd and even ranks apart, backwards", nonblocking);
	MPI_Comm_free(&comm);
	comm = group_of_others();
	everything(comm, "all but one", nonblocking);
	if (comm != MPI_COMM_NULL)
		MPI_Comm_free(&comm);
	between_groups(nonblocking);
	coll_neighbour(nonblocking);
}
