/* Clocks of several ranks, and who shares a machine. */
#include "mpi_perf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A machine that has been started has a random name until it is started again; hosts of a lab have
 * that of the machine they are on. */
static uint64_t machine(void)
{
	char text[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	uint64_t h = 14695981039346656037u; /* FNV-1a */

	if (!f || !fgets(text, sizeof(text), f))
		gethostname(text, sizeof(text) - 1);
	if (f)
		fclose(f);
	for (const char *p = text; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211u;
	return h;
}

int mp_neighbours(const struct mp *mp)
{
	uint64_t mine = machine(), *all = mp_room((size_t)mp->ranks * sizeof(*all));
	int n = 0;

	PMPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
	for (int r = 0; r < mp->ranks; r++)
		n += all[r] == mine;
	free(all);
	return n;
}

/* Rank 0 is asked what time it is, many times; the answer that came fastest is the best one, and
 * was given halfway. */
static double ask(void)
{
	enum { TIMES = 40 };
	double best = 1e9, offset = 0, theirs = 0;

	for (int i = 0; i < TIMES; i++) {
		double from = mp_now(), took;

		PMPI_Send(NULL, 0, MPI_BYTE, 0, MP_TAG, MPI_COMM_WORLD);
		PMPI_Recv(&theirs, 1, MPI_DOUBLE, 0, MP_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		took = mp_now() - from;
		if (took < best) {
			best = took;
			offset = theirs - (from + took / 2);
		}
	}
	PMPI_Send(&offset, 1, MPI_DOUBLE, 0, MP_ACK, MPI_COMM_WORLD);
	return offset;
}

/* Answers until it is told the offset. */
static void answer(int rank)
{
	MPI_Status st;
	double now;

	do {
		PMPI_Recv(&now, 1, MPI_DOUBLE, rank, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
		if (st.MPI_TAG == MP_ACK)
			break;
		now = mp_now();
		PMPI_Send(&now, 1, MPI_DOUBLE, rank, MP_ACK, MPI_COMM_WORLD);
	} while (true);
}

double mp_offset(const struct mp *mp, bool measure)
{
	int far = mp_neighbours(mp) < mp->ranks, any = 0;
	double offset = 0;

	PMPI_Allreduce(&far, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	if (!any && !measure)
		return 0;
	for (int r = 1; r < mp->ranks; r++) {
		if (mp->rank == 0)
			answer(r);
		else if (mp->rank == r)
			offset = ask();
		PMPI_Barrier(MPI_COMM_WORLD);
	}
	return offset;
}
