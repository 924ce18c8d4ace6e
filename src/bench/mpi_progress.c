/* Independent progress: thesis 3.6.2, in the two timings of 4.4.1 (fig. 3.15 and 4.14).
 *
 * Rank 1 sends, rank 0 receives and keeps the time. One of them, the side in question, posts and
 * then makes no call of MPI for an inserted delay, after which it waits; the other is in a blocking
 * call all the time. Who posts first, and when the time begins, is as in mpi_overlap.c; the
 * inserted delay begins with the time. If the latency grows with the delay, the message did not
 * move without the help of that side's calls.
 *
 * A receiver in its delay looks for the first and last bytes of the message in its buffer: it has
 * arrived when they are there, even if MPI_Wait, which says so officially, comes much later.
 */
#include "mpi_perf.h"

#include <math.h>
#include <string.h>

/* Inserted delays, in latencies without one. */
static const double factors[] = {0, 0.5, 1, 2, 4};
enum { FACTORS = sizeof(factors) / sizeof(factors[0]) };

struct message {
	size_t size;
	enum mp_side side; /* that is delayed */
	enum mp_timing timing;
	unsigned int number;
};

static bool has_arrived(const volatile unsigned char *in, size_t size, unsigned int number)
{
	unsigned char want[sizeof(number)];
	size_t n = size < sizeof(number) ? size : sizeof(number);

	memcpy(want, &number, sizeof(number));
	for (size_t i = 0; i < n; i++)
		if (in[i] != want[i] || in[size - n + i] != want[i])
			return false;
	return true;
}

/* When the message was seen in the buffer before `until`; NaN: it was not. */
static double watch(const struct mp *mp, const struct message *m, double until)
{
	double seen = NAN;

	while (mp_now() < until)
		if (isnan(seen) && has_arrived(mp->in, m->size, m->number))
			seen = mp_now();
	return seen;
}

static void send_message(struct mp *mp, const struct message *m, double zero, double delay)
{
	MPI_Request r;

	mp_wait_turn(mp, zero, m->timing == MP_SENDER_EARLY);
	if (m->side != MP_SENDER) {
		MPI_Send(mp->out, (int)m->size, MPI_BYTE, 0, MP_TAG, MPI_COMM_WORLD);
		return;
	}
	MPI_Isend(mp->out, (int)m->size, MPI_BYTE, 0, MP_TAG, MPI_COMM_WORLD, &r);
	mp_wait_until(zero + delay);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

/* Seconds from zero until the message was there. */
static double receive(struct mp *mp, const struct message *m, double zero, double delay)
{
	double seen = NAN;
	MPI_Request r;

	mp_wait_turn(mp, zero, m->timing == MP_RECEIVER_EARLY);
	MPI_Irecv(mp->in, (int)m->size, MPI_BYTE, 1, MP_TAG, MPI_COMM_WORLD, &r);
	if (m->side == MP_RECEIVER && delay > 0)
		seen = watch(mp, m, zero + delay);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	return (isnan(seen) ? mp_now() : seen) - zero;
}

static double once(struct mp *mp, struct message *m, double delay)
{
	double zero, t = 0;

	m->number++;
	zero = mp_meet(mp);
	if (mp->rank) {
		mp_stamp(mp->out, m->size, m->number);
		send_message(mp, m, zero, delay);
		return 0;
	}
	t = receive(mp, m, zero, delay);
	mp_check(mp, mp->in, m->size, m->number);
	return t;
}

static void report(struct mp *mp, const struct message *m, double factor, double base, int n)
{
	double delay = factor * base;
	double *v = mp->samples[0], t = mp_median(v, n);
	double left = (t - delay) / base * 100;
	struct mp_cell c[] = {
		MP_INT("size", m->size),
		MP_TEXT("scenario", mp_timings[m->timing]),
		MP_TEXT("side", mp_sides[m->side]),
		MP_INT("n", n),
		MP_REAL("delay_x", factor, 1),
		MP_REAL("delay_us", delay * 1e6, 1),
		MP_REAL("latency_us", t * 1e6, 1),
		MP_REAL("p10_us", bench_percentile(v, (size_t)n, 0.1) * 1e6, 1),
		MP_REAL("p90_us", bench_percentile(v, (size_t)n, 0.9) * 1e6, 1),
		MP_REAL("ratio", t / base, 3),
		/* A delay shorter than the latency leaves something in any case; of a latency that
		 * the clocks' error has made negative there are no percents. */
		MP_REAL("left_pct",
			factor < 1 || base <= 0 ? NAN
			: left < 0              ? 0
						: left,
			1),
	};

	mp_row(mp, c, sizeof(c) / sizeof(c[0]));
}

/* One message, one side, all delays; false: the time is over. */
static bool measure(struct mp *mp, struct message *m, int rows)
{
	double base = 0, from;

	for (int f = 0; f < FACTORS; f++) {
		double delay = factors[f] * base;
		int n;

		from = mp_now();
		for (int i = 0; i < mp_warmup(mp); i++)
			once(mp, m, delay);
		n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / mp_warmup(mp), rows - f);
		if (!n)
			return false;
		for (int i = 0; i < n; i++)
			mp->samples[0][i] = once(mp, m, delay);
		if (f == 0) {
			base = mp_median(mp->samples[0], n);
			MPI_Bcast(&base, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		}
		report(mp, m, factors[f], base, n);
	}
	return true;
}

int mp_progress(struct mp *mp)
{
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes) * MP_TIMINGS * MP_SIDES;
	struct message m = {.number = 0};

	for (int i = 0; i < count; i++) {
		m.size = sizes[i / (MP_TIMINGS * MP_SIDES)];
		m.timing = i / MP_SIDES % MP_TIMINGS;
		m.side = i % MP_SIDES;
		if (!measure(mp, &m, (count - i) * FACTORS))
			break;
	}
	return 0;
}
