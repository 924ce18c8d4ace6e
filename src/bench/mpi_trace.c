/* Messages one after another, each with its time: what happens to them when the network changes.
 * A message is over when the answer to it is there. Times are of the machine's clock, too, so that
 * they can be laid beside what others have done meanwhile. */
#include "mpi_perf.h"

#include <time.h>

enum { LAST = 3 /* the tag of a message after which there is none */ };

static double clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void row(struct mp *mp, size_t size, double begin, double clock, double seconds)
{
	struct mp_cell cells[] = {
		MP_INT("size", size),
		MP_INT("message", mp->rows),
		MP_REAL("at_s", begin - mp->start, 4),
		MP_REAL("seconds_since_1970", clock, 4),
		MP_REAL("us", seconds * 1e6, 1),
		MP_REAL("MBps", (double)size / seconds / 1e6, 3),
	};

	mp_row(mp, cells, sizeof(cells) / sizeof(cells[0]));
}

/* False: there is time for no more. */
static bool send_one(struct mp *mp, size_t size, unsigned int n)
{
	double clock = clock_now(), begin = mp_now();
	bool more = begin - mp->start < mp->o.bound && n + 1 < (unsigned int)mp_iterations(mp);
	int answer;

	mp_stamp(mp->out, size, n);
	MPI_Send(mp->out, (int)size, MPI_BYTE, 1, more ? MP_TAG : LAST, MPI_COMM_WORLD);
	MPI_Recv(&answer, 1, MPI_INT, 1, MP_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	row(mp, size, begin, clock, mp_now() - begin);
	return more;
}

static bool receive_one(struct mp *mp, size_t size, unsigned int n)
{
	MPI_Status status;
	int answer = (int)n;

	MPI_Recv(mp->in, (int)size, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
	MPI_Send(&answer, 1, MPI_INT, 0, MP_ACK, MPI_COMM_WORLD);
	mp_check(mp, mp->in, size, n);
	return status.MPI_TAG != LAST;
}

int mp_trace(struct mp *mp)
{
	size_t sizes[MP_SIZES];
	unsigned int n = 0, count = (unsigned int)mp_sizes(mp, sizes);
	bool more = true;

	for (; more; n++) /* sizes in turn */
		more = mp->rank ? receive_one(mp, sizes[n % count], n)
				: send_one(mp, sizes[n % count], n);
	return 0;
}
