/* Time, computation, and how much of both there is. */
#include "mpi_perf.h"

#include <string.h>
#include <time.h>

double mp_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void mp_wait_until(double when)
{
	while (mp_now() < when)
		;
}

/* ---- computation ---- */

enum { STEPS = 100 }; /* of a unit: some tenths of a microsecond, each needs the one before */

static volatile unsigned long sink; /* so that the work has to be done */

static void units_of_work(long units)
{
	unsigned long x = sink | 1;

	for (long i = 0; i < units * STEPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	sink = x;
}

void mp_work(const struct mp *mp, long units, MPI_Request *request)
{
	long piece = mp->o.test > 0 ? mp_units(mp, mp->o.test) : units;
	int done;

	while (units > 0) {
		units_of_work(units < piece ? units : piece);
		units -= piece;
		if (mp->o.test > 0 && request)
			MPI_Test(request, &done, MPI_STATUS_IGNORE);
	}
}

long mp_units(const struct mp *mp, double seconds)
{
	long n = (long)(seconds / mp->unit + 0.5);

	return n > 1 ? n : 1;
}

void mp_calibrate(struct mp *mp)
{
	enum { TIMES = 15, UNITS = 5000 };
	double t[TIMES];

	/* The others are in the barrier at the end meanwhile, as they are in a measurement. */
	MPI_Barrier(MPI_COMM_WORLD);
	if (mp->rank == 0) {
		for (int i = 0; i < TIMES; i++) {
			double from = mp_now();

			units_of_work(UNITS);
			t[i] = mp_now() - from;
		}
		mp->unit = mp_median(t, TIMES) / UNITS;
	}
	MPI_Bcast(&mp->unit, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- how much ---- */

int mp_iterations(const struct mp *mp)
{
	return mp->o.iterations > 0 ? mp->o.iterations : mp->kind->iterations;
}

int mp_warmup(const struct mp *mp)
{
	return mp->o.warmup > 0 ? mp->o.warmup : mp->kind->warmup;
}

int mp_window(const struct mp *mp)
{
	return mp->o.window ? mp->o.window : mp->kind->window;
}

double mp_delay(const struct mp *mp)
{
	return mp->o.delay >= 0 ? mp->o.delay : mp->kind->delay;
}

int mp_sizes(const struct mp *mp, size_t sizes[MP_SIZES])
{
	size_t lo = mp->o.max ? mp->o.min : mp->kind->min;
	size_t hi = mp->o.max ? mp->o.max : mp->kind->max;
	size_t factor = mp->o.factor ? mp->o.factor : mp->kind->factor;
	int n = 0;

	if (mp->o.list[0]) {
		while (mp->o.list[n]) {
			sizes[n] = mp->o.list[n];
			n++;
		}
		return n;
	}
	for (size_t s = lo; s <= hi && n < MP_SIZES; s = s ? s * factor : 1)
		sizes[n++] = s;
	return n;
}

int mp_fit(const struct mp *mp, int wanted, double seconds, int rows)
{
	double left = mp->start + mp->o.bound - mp_now();
	double most = left / rows / (seconds > 1e-7 ? seconds : 1e-7);
	int n = 0;

	if (left > 0)
		n = most >= wanted ? wanted : most < 1 ? 1 : (int)most;
	MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return n;
}

/* ---- who comes first ---- */

const char *const mp_timings[] = {"receiver-early", "sender-early"};
const char *const mp_sides[] = {"receiver", "sender"};

double mp_meet(const struct mp *mp)
{
	MPI_Barrier(MPI_COMM_WORLD);
	return mp_now() + 2 * mp_delay(mp);
}

void mp_wait_turn(const struct mp *mp, double zero, bool early)
{
	mp_wait_until(zero - (early ? mp_delay(mp) : 0));
}

/* ---- messages ---- */

static size_t stamp_size(size_t size)
{
	return size < sizeof(unsigned int) ? size : sizeof(unsigned int);
}

void mp_stamp(unsigned char *buf, size_t size, unsigned int n)
{
	memcpy(buf, &n, stamp_size(size));
	memcpy(buf + size - stamp_size(size), &n, stamp_size(size));
}

void mp_check(struct mp *mp, const unsigned char *buf, size_t size, unsigned int n)
{
	size_t s = stamp_size(size);

	if (memcmp(buf, &n, s) != 0 || memcmp(buf + size - s, &n, s) != 0)
		mp->wrong++;
}

/* A period of 251 bytes: what is off by a page, or by a cache line, is wrong, too. */
static unsigned char byte_of(size_t at, unsigned int n)
{
	return (unsigned char)((at + 89 * (size_t)n) % 251);
}

void mp_fill(unsigned char *buf, size_t size, unsigned int n)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = byte_of(i, n);
}

void mp_verify(struct mp *mp, const unsigned char *buf, size_t size, unsigned int n)
{
	for (size_t i = 0; i < size; i++) {
		if (buf[i] != byte_of(i, n)) {
			mp->wrong++;
			return;
		}
	}
}
