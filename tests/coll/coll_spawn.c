/* Ranks of two MPI_COMM_WORLDs in one communicator, of which some may have other settings, or
 * nothing of the library: the MPI has it. */
#include <stdio.h>
#include <string.h>

#include "mpi_test.h"

enum { CHILDREN = 2, CALLS = 20 };

/* Returns how many results are wrong. */
static int use(MPI_Comm comm)
{
	int n, rank, wrong = 0;

	MPI_Comm_size(comm, &n);
	MPI_Comm_rank(comm, &rank);
	for (int i = 0; i < CALLS; i++) {
		int mine = rank + i, sum = 0, root = rank;

		MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
		MPI_Bcast(&root, 1, MPI_INT, n - 1, comm);
		MPI_Barrier(comm);
		wrong += sum != n * (n - 1) / 2 + n * i || root != n - 1;
	}
	return wrong;
}

/* A child: of their number of wrong results the parents hear by the sum. */
static void together(MPI_Comm inter, int child)
{
	int wrong, all = 0;
	MPI_Comm both;

	MPI_Intercomm_merge(inter, child, &both);
	wrong = use(both) + use(MPI_COMM_WORLD);
	PMPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, both);
	if (!child)
		CHECK(all == 0, "%d results are wrong", all);
	MPI_Comm_free(&both);
	MPI_Comm_disconnect(&inter);
}

static const char *self;

static void spawn(const char *env)
{
	char command[4096], word[] = "child";
	char *args[] = {word, NULL};
	MPI_Comm inter;
	MPI_Info info;

	snprintf(command, sizeof(command), "%s", self);
	MPI_Info_create(&info);
	MPI_Info_set(info, "env", env);
	MPI_Comm_spawn(command, args, CHILDREN, info, 0, MPI_COMM_WORLD, &inter,
		       MPI_ERRCODES_IGNORE);
	MPI_Info_free(&info);
	together(inter, 0);
}

static void alike(void)
{
	spawn("WEFT_COLL_STATS=no");
}

static void other_count(void)
{
	spawn("WEFT_COLL_AFTER=7");
}

static void off(void)
{
	spawn("WEFT_COLL=off");
}

static void without(void)
{
	spawn("LD_PRELOAD=");
}

int main(int argc, char **argv)
{
	MPI_Comm parent;

	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "child")) {
		MPI_Init(NULL, NULL);
		MPI_Comm_get_parent(&parent);
		together(parent, 1);
		MPI_Finalize();
		return 0;
	}
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("alike", alike);
	mt_part("other settings", other_count);
	mt_part("off", off);
	mt_part("without the library", without);
	return mt_done();
}
