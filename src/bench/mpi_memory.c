/* Memory of the processes: before MPI_Init, after it, and when everyone has talked to everyone.
 *
 * Rss counts a page that several processes share in each of them, Pss gives each its part: of ranks
 * on one host, Pss can be added up. */
#include "mpi_perf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MiB of "Name:   123 kB" in a file of /proc; NaN when it is not there. */
static double mib_of(const char *path, const char *name)
{
	FILE *f = fopen(path, "re");
	double kb = NAN;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			kb = strtod(line + strlen(name), NULL);
	if (f)
		fclose(f);
	return kb / 1024;
}

double mp_memory_rss(void)
{
	return mib_of("/proc/self/status", "VmRSS:");
}

static void row(struct mp *mp, const char *when, const char *what, double mine)
{
	double lo, sum, hi;

	MPI_Allreduce(&mine, &lo, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&mine, &hi, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	struct mp_cell c[] = {
		MP_TEXT("when", when),
		MP_TEXT("what", what),
		MP_INT("ranks", mp->ranks),
		MP_REAL("min_MiB", lo, 2),
		MP_REAL("mean_MiB", sum / mp->ranks, 2),
		MP_REAL("max_MiB", hi, 2),
	};

	mp_row(mp, c, sizeof(c) / sizeof(c[0]));
}

/* One message from everyone to everyone, of all sizes asked for. */
static void talk(struct mp *mp, size_t size)
{
	MPI_Request *r = calloc(2 * (size_t)mp->ranks, sizeof(*r));

	if (!r)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (int i = 0; i < mp->ranks; i++) {
		MPI_Irecv(mp->in + (size_t)i * size, (int)size, MPI_BYTE, i, MP_TAG, MPI_COMM_WORLD,
			  &r[2 * i]);
		MPI_Isend(mp->out, (int)size, MPI_BYTE, i, MP_TAG, MPI_COMM_WORLD, &r[2 * i + 1]);
	}
	for (int i = 0; i < 2 * mp->ranks; i++)
		MPI_Wait(&r[i], MPI_STATUS_IGNORE);
	free(r);
}

int mp_memory(struct mp *mp)
{
	static const char smaps[] = "/proc/self/smaps_rollup";
	double rss = mp_memory_rss(), pss = mib_of(smaps, "Pss:"), rss_all, pss_all;
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes);

	/* Nobody ends before all have looked: a page of two would be one's. */
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < count; i++)
		talk(mp, sizes[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	rss_all = mp_memory_rss();
	pss_all = mib_of(smaps, "Pss:");
	row(mp, "before", "Rss", mp->rss_before);
	row(mp, "init", "Rss", rss);
	row(mp, "init", "Pss", pss);
	row(mp, "all", "Rss", rss_all);
	row(mp, "all", "Pss", pss_all);
	row(mp, "growth", "Rss", rss_all - rss);
	return 0;
}
