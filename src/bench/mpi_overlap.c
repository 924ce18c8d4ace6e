/* Overlap of communication and computation: thesis 3.6.1, in the two timings of 4.4.1.
 *
 * Rank 0 is the side under test, rank 1 its partner. The time of one transfer:
 *
 *	barrier
 *	delay D		  both, without a call of MPI: nobody is left in the barrier
 *	the early side posts
 *	delay D		  both, again without a call of MPI
 *	--- zero: on both ranks D + D after the barrier, each by its own clock ---
 *	the late side posts
 *	rank 0 computes   a fixed amount of work, no call of MPI
 *	rank 0 waits	  MPI_Wait; the time ends when it returns
 *
 * Rank 0 posts MPI_Irecv or MPI_Isend; the partner calls MPI_Send or MPI_Recv and stays in it. That
 * the time begins when the late side posts matters: the time that an early side waits for the
 * other is no communication, and to count it as hidden would flatter everybody.
 *
 * In each iteration four things are measured in turn: T_comm, a transfer without computation; C,
 * the computation alone; T_total, a transfer with it; and the same with 1.5 times the computation.
 * Of the medians (equation 3.4 of the thesis, where they are l0, cm and lm):
 *
 *	overlap = 1 - (T_total - C) / T_comm, not below 0 nor above 1
 *
 * Nothing hidden: T_total = C + T_comm, 0. All hidden: T_total = C, 1. C is made a tenth longer
 * than T_comm at the beginning: the thesis lets it grow until T_total is 1.1 T_comm, which is there
 * when all is hidden, and a computation shorter than the transfer could not hide all of it. As C is
 * that of the work when nothing disturbs it, processor time that a progress thread takes from it
 * counts against the overlap. `moved` leaves that out: the same with the time that the computation
 * really took beside the transfer, which says how much of the transfer was over when it ended.
 */
#include "mpi_perf.h"

#include <math.h>

/* Shorter than this, the message was there before the late side asked for it, and is only copied:
 * there is nothing to be hidden. */
#define LEAST 20e-6
/* The computation, in transfers. */
#define LENGTH 1.1

struct transfer {
	size_t size;
	enum mp_side side; /* rank 0's */
	enum mp_timing timing;
	unsigned int number;
};

static void post(struct mp *mp, const struct transfer *t, bool sends, MPI_Request *r)
{
	int size = (int)t->size;

	if (mp->rank == 0 && sends)
		MPI_Isend(mp->out, size, MPI_BYTE, 1, MP_TAG, MPI_COMM_WORLD, r);
	else if (mp->rank == 0)
		MPI_Irecv(mp->in, size, MPI_BYTE, 1, MP_TAG, MPI_COMM_WORLD, r);
	else if (sends)
		MPI_Send(mp->out, size, MPI_BYTE, 0, MP_TAG, MPI_COMM_WORLD);
	else
		MPI_Recv(mp->in, size, MPI_BYTE, 0, MP_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Seconds from zero to the end on rank 0; *computed: those of them that were computation. */
static double transfer(struct mp *mp, struct transfer *t, long units, double *computed)
{
	bool sends = (t->side == MP_SENDER) == (mp->rank == 0);
	bool early = (t->timing == MP_SENDER_EARLY) == sends;
	MPI_Request r = MPI_REQUEST_NULL;
	double zero, from;

	t->number++;
	zero = mp_meet(mp);
	if (sends)
		mp_stamp(mp->out, t->size, t->number);
	mp_wait_turn(mp, zero, early);
	post(mp, t, sends, &r);
	if (mp->rank == 0) {
		mp_wait_until(zero);
		from = mp_now();
		mp_work(mp, units, &r);
		*computed = mp_now() - from;
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
	from = mp_now();
	if (!sends)
		mp_check(mp, mp->in, t->size, t->number);
	return from - zero;
}

/* Computation alone; the partner waits in the next barrier. */
static double alone(struct mp *mp, long units)
{
	MPI_Request none = MPI_REQUEST_NULL;
	double from = mp_now();

	if (mp->rank == 0)
		mp_work(mp, units, &none);
	return mp_now() - from;
}

/* T_comm, roughly, after warming up; *whole: with all that comes before it. */
static double estimate(struct mp *mp, struct transfer *t, double *whole)
{
	enum { TIMES = 5 };
	double v[TIMES], ignored, from;

	for (int i = 0; i < mp_warmup(mp); i++)
		transfer(mp, t, 0, &ignored);
	from = mp_now();
	for (int i = 0; i < TIMES; i++)
		v[i] = transfer(mp, t, 0, &ignored);
	*whole = (mp_now() - from) / TIMES;
	return mp_median(v, TIMES);
}

enum { COMM, C, TOTAL, LONGER, TOOK, SAMPLES };

static double part(double total, double computed, double comm, int fair)
{
	double x = 1 - (total - computed) / comm;

	if (!fair || comm < LEAST)
		return NAN;
	return 100 * (x < 0 ? 0 : x > 1 ? 1 : x);
}

/* Without a fair comparison there is no result. */
static void report(struct mp *mp, const struct transfer *t, int n, int fair)
{
	double m[SAMPLES], p10, p90;
	int cells = 0;
	struct mp_cell c[16];

	for (int i = 0; i < SAMPLES; i++)
		m[i] = mp_median(mp->samples[i], n);
	p10 = bench_percentile(mp->samples[TOTAL], (size_t)n, 0.1);
	p90 = bench_percentile(mp->samples[TOTAL], (size_t)n, 0.9);
	c[cells++] = MP_INT("size", t->size);
	c[cells++] = MP_TEXT("scenario", mp_timings[t->timing]);
	c[cells++] = MP_TEXT("side", mp_sides[t->side]);
	c[cells++] = MP_INT("n", n);
	c[cells++] = MP_REAL("T_comm_us", m[COMM] * 1e6, 1);
	c[cells++] = MP_REAL("C_us", m[C] * 1e6, 1);
	c[cells++] = MP_REAL("T_total_us", m[TOTAL] * 1e6, 1);
	c[cells++] = MP_REAL("p10_us", p10 * 1e6, 1);
	c[cells++] = MP_REAL("p90_us", p90 * 1e6, 1);
	c[cells++] = MP_REAL("overlap_pct", part(m[TOTAL], m[C], m[COMM], fair), 1);
	c[cells++] = MP_REAL("moved_pct", part(m[TOTAL], m[TOOK], m[COMM], fair), 1);
	c[cells++] = MP_REAL("T_1.5_us", m[LONGER] * 1e6, 1);
	c[cells++] = MP_REAL("overlap_1.5_pct", part(m[LONGER], 1.5 * m[C], m[COMM], fair), 1);
	mp_row(mp, c, cells);
}

static int sample(struct mp *mp, struct transfer *t, int rows)
{
	double whole, comm = estimate(mp, t, &whole), ignored;
	long units = mp_units(mp, LENGTH * comm);
	int n = mp_fit(mp, mp_iterations(mp), 3 * whole + 3.5 * LENGTH * comm, rows);

	for (int i = 0; i < n; i++) {
		mp->samples[COMM][i] = transfer(mp, t, 0, &ignored);
		mp->samples[C][i] = alone(mp, units);
		mp->samples[TOTAL][i] = transfer(mp, t, units, &mp->samples[TOOK][i]);
		mp->samples[LONGER][i] = transfer(mp, t, units + units / 2, &ignored);
	}
	return n;
}

/* Whether the computation was as long as it should be: not shorter than the transfer, which would
 * then not fit behind it, nor so long that it would hide what comes late. */
static int is_fair(struct mp *mp, int n)
{
	double comm = mp_median(mp->samples[COMM], n), c = mp_median(mp->samples[C], n);
	int fair = comm < LEAST || (c > comm && c < 1.35 * comm);

	MPI_Bcast(&fair, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return fair;
}

/* False: the time is over. */
static bool measure(struct mp *mp, struct transfer *t, int rows)
{
	int n = 0, fair = 0;

	/* A machine that was disturbed during the estimate gets another chance. */
	for (int i = 0; i < 3 && !fair; i++) {
		n = sample(mp, t, rows);
		if (!n)
			return false;
		fair = is_fair(mp, n);
	}
	report(mp, t, n, fair);
	return true;
}

int mp_overlap(struct mp *mp)
{
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes), rows = count * MP_TIMINGS * MP_SIDES;
	struct transfer t = {.number = 0};

	mp_calibrate(mp);
	for (int i = 0; i < rows; i++) {
		t.size = sizes[i / (MP_TIMINGS * MP_SIDES)];
		t.timing = i / MP_SIDES % MP_TIMINGS;
		t.side = i % MP_SIDES;
		if (!measure(mp, &t, rows - i))
			break;
	}
	return 0;
}
