/* How often a rendezvous that the receiver starts can be used (thesis, section 4.3.6): of so many
 * percent of all messages the receive is posted before the send, of the others after it. A stack
 * that speculates gains from the former; one that adapts does not lose by the latter. The time is
 * that of the late side, from its call to its end.
 *
 * Which of the two a message is comes from random numbers that are the same in every run. Weft's
 * own count of what it used: FI_WEFT_STATS=yes.
 */
#include "mpi_perf.h"

#include <stdint.h>

static bool is_early(unsigned int *state, int percent)
{
	*state = *state * 1664525u + 1013904223u;
	return (int)((*state >> 8) % 100) < percent;
}

/* Rank 0 receives. Who is late keeps the time, and rank 0 gets it. */
static double once(struct mp *mp, size_t size, bool receiver_early, unsigned int n)
{
	bool receives = mp->rank == 0, late = receives != receiver_early;
	double zero, t;

	if (!receives)
		mp_stamp(mp->out, size, n);
	zero = mp_meet(mp);
	mp_wait_turn(mp, zero, !late);
	if (receives)
		MPI_Recv(mp->in, (int)size, MPI_BYTE, 1, MP_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(mp->out, (int)size, MPI_BYTE, 0, MP_TAG, MPI_COMM_WORLD);
	t = mp_now() - zero;
	if (receives)
		mp_check(mp, mp->in, size, n);
	/* Not while time is taken, and of no use to whoever predicts. */
	if (!receives)
		MPI_Send(&t, 1, MPI_DOUBLE, 0, MP_ACK, MPI_COMM_WORLD);
	else if (receiver_early)
		MPI_Recv(&t, 1, MPI_DOUBLE, 1, MP_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Recv(&zero, 1, MPI_DOUBLE, 1, MP_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return t;
}

static bool row(struct mp *mp, size_t size, int percent, int rows)
{
	unsigned int state = 1, number = 0;
	int n, early = 0, warm = mp_warmup(mp);
	double from;

	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < warm; i++)
		once(mp, size, is_early(&state, percent), number++);
	n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, rows);
	if (!n)
		return false;
	for (int i = 0; i < n; i++) {
		bool e = is_early(&state, percent);

		early += e;
		mp->samples[0][i] = once(mp, size, e, number++);
	}
	struct mp_cell cells[3 + MP_SUMMARY] = {
		MP_INT("size", size),
		MP_INT("early_pct", percent),
		MP_INT("early", early),
	};

	mp_summary_us(cells + 3, mp->samples[0], n);
	mp_row(mp, cells, 3 + MP_SUMMARY);
	return true;
}

int mp_usage_of_rtr(struct mp *mp)
{
	static const int percents[] = {0, 25, 50, 75, 100};
	int each = mp->o.percent < 0 ? (int)(sizeof(percents) / sizeof(percents[0])) : 1;
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes) * each;

	for (int i = 0; i < count; i++)
		if (!row(mp, sizes[i / each],
			 mp->o.percent < 0 ? percents[i % each] : mp->o.percent, count - i))
			break;
	return 0;
}
