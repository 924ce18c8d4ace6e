/* A send queue full of short messages, and a long one that has to wait for room in it. */
#include "mpi_test.h"

#include <string.h>

#define LONG  (1 << 20)
#define MOST  320
#define TURNS 40

static int small[MOST];
static unsigned char large[LONG];
static MPI_Request req[MOST];

static void many(int n, int turn)
{
	MPI_Status st;
	int there;

	/* The long message has announced itself before the queue is full. */
	mt_nap(2000);
	MPI_Iprobe(1, 2, MPI_COMM_WORLD, &there, &st);
	for (int i = 0; i < n; i++) {
		small[i] = i;
		MPI_Isend(&small[i], 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Recv(large, LONG, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &st);
	CHECK(large[0] == (unsigned char)turn && large[LONG - 1] == (unsigned char)turn,
	      "turn %d: %d ... %d", turn, large[0], large[LONG - 1]);
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
}

static void one(int n, int turn)
{
	MPI_Request r;

	memset(large, turn, LONG);
	for (int i = 0; i < n; i++)
		MPI_Irecv(&small[i], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &req[i]);
	MPI_Isend(large, LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &r);
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		CHECK(small[i] == i, "turn %d: %d instead of %d", turn, small[i], i);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void part(void)
{
	for (int turn = 0; turn < TURNS; turn++) {
		MPI_Barrier(MPI_COMM_WORLD);
		if (mt.rank == 0)
			many(256 + turn, turn);
		else if (mt.rank == 1)
			one(256 + turn, turn);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("full queue", part);
	return mt_done();
}
