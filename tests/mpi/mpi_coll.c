/* All collectives, blocking. */
#include "mpi_coll.h"

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	coll_everywhere(0);
	return mt_done();
}
