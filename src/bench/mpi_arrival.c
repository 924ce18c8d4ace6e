/* Collectives whose processes do not arrive together: section 3 of Qian and Afsahi, Process Arrival
 * Pattern and Shared Memory Aware Alltoall on InfiniBand.
 *
 * Each call begins at a time, zero, that all ranks have agreed on, on a common clock. A rank
 * computes, that is, it makes no call of MPI, for a random time below MIF (the maximum imbalance
 * factor) times the time of a message, and then calls. Or so many percent of them, drawn anew for
 * each call, come MIF times that time late, and the others at zero. Where ranks share cores, they
 * sleep instead of computing, or a rank would be late because another one is early.
 *
 * With a the arrival and d the end of a call on a rank, as means over all ranks:
 *
 *	completion = d - a		what the paper reports
 *	bound	   = last a - own a	nobody can have what the last one brings before it is there
 *	beyond	   = completion - bound
 *	total	   = last d - zero	of all of them together
 *
 * MPI_Bcast waits for nobody but the root: its bound is how much later than oneself the root came.
 *
 * With --own each call is made twice, one after the other, with the same delays: by its MPI_
 * name, which an interposer answers to, and by its PMPI_ name, which is the MPI's own. What is
 * beyond the bound is then compared pair by pair, with an interval (bench_compare). All that this
 * file needs for itself goes by PMPI_ names, and so is the same with and without interposer. Before
 * that, each size has some calls by its MPI_ name that are not counted: where the MPI's own
 * takes so long that there is time for few calls only, they would be all tries.
 */
#include "mpi_perf.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define TAILS  2  /* of how long the last rank usually takes, before the next call is begun */
#define SETTLE 40 /* calls in which an interposer may find out what is best for a size */

enum { BY_MPI, BY_OWN, BYS };
static const char *const names[] = {"mpi", "own"};
static const int paper[] = {1, 32, 128, 512, 0};

struct arrival {
	const struct mp_coll *op;
	int bys;          /* one, or both */
	bool sleeps;      /* instead of computing */
	double offset;    /* to rank 0's clock */
	double margin;    /* from when all are here to zero */
	double behind;    /* how late this rank heard of zero; below 0: in time */
	double through;   /* of the last call: how long after the last arrival it was left here */
	double tail[BYS]; /* the same, about, of the last rank to leave */
	double message;   /* the time of one, of the current size */
	double *a[BYS];   /* after zero; in the end the completion */
	double *d[BYS];   /* after zero */
	double *beyond[BYS];
	double bound[BYS]; /* median */
	double *scratch;
	unsigned int calls;
	int by; /* how the last one was made */
};

/* ---- waiting ---- */

static double now(const struct arrival *x)
{
	return mp_now() + x->offset;
}

static void sleep_until(double when)
{
	struct timespec t = {(time_t)when, (long)((when - (double)(time_t)when) * 1e9)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

static void compute_until(const struct arrival *x, double when)
{
	if (x->sleeps)
		sleep_until(when - x->offset);
	else
		mp_wait_until(when - x->offset);
}

/* Some MPIs spin in MPI_Wait, and ranks that are needed elsewhere would find no core. nap: between
 * two looks. */
static void wait_for(const struct arrival *x, MPI_Request *r, double nap)
{
	int done = 0;

	if (!x->sleeps) {
		PMPI_Wait(r, MPI_STATUS_IGNORE);
		return;
	}
	for (PMPI_Test(r, &done, MPI_STATUS_IGNORE); !done; PMPI_Test(r, &done, MPI_STATUS_IGNORE))
		sleep_until(mp_now() + nap);
}

/* Zero: some time after all are here. Who is not told before zero has come begins late, and says so
 * the next time; then there is more time. */
static double meet(struct arrival *x)
{
	double mine[3] = {now(x), x->behind, x->through}, all[3] = {0, 0, 0}, zero;
	MPI_Request r;

	PMPI_Iallreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &r);
	wait_for(x, &r, 20e-6);
	x->tail[x->by] += (all[2] - x->tail[x->by]) / 4;
	if (all[1] > 0 && x->margin < 0.05)
		x->margin *= 2;
	zero = all[0] + x->margin;
	x->behind = now(x) - zero;
	return zero;
}

/* ---- who comes when ---- */

/* From 0 to 1, always the same for a rank and a draw: splitmix64. */
static double chance(int rank, unsigned int draw)
{
	uint64_t z = ((uint64_t)draw << 24 | (uint64_t)rank) * 0x9E3779B97F4A7C15u;

	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

/* Of all ranks so many percent, rounded, those with the smallest numbers. */
static bool is_late(const struct mp *mp, int rank, unsigned int draw)
{
	double mine = chance(rank, draw);
	int before = 0;

	for (int r = 0; r < mp->ranks; r++)
		before += chance(r, draw) < mine;
	return before < (mp->ranks * mp->o.late + 50) / 100;
}

static double delay(const struct mp *mp, const struct arrival *x, int mif, int rank,
		    unsigned int draw)
{
	double most = mif * x->message;

	if (mp->o.late >= 0)
		return is_late(mp, rank, draw) ? most : 0;
	return most * chance(rank, draw);
}

/* ---- a call ---- */

/* late: how late this rank comes, and the last one. */
static void call(struct mp *mp, struct arrival *x, size_t size, const double late[2], int by, int i)
{
	double zero;

	x->op->stamp(mp, size, ++x->calls);
	zero = meet(x);
	compute_until(x, zero + late[0]);
	x->a[by][i] = now(x) - zero;
	if (by == BY_MPI)
		x->op->call(mp, size);
	else
		x->op->own(mp, size);
	x->d[by][i] = now(x) - zero;
	x->by = by;
	x->through = x->d[by][i] - late[1];
	/* What there is to do for the next call must not be in the way of those who are still in
	 * this one and need the same cores. */
	if (x->sleeps)
		sleep_until(zero + late[1] + TAILS * x->tail[by] - x->offset);
	x->op->check(mp, size, x->calls);
}

/* The delay of this rank, and of the last one, in late. */
static void draw_delays(const struct mp *mp, const struct arrival *x, int mif, unsigned int draw,
			double late[2])
{
	late[0] = delay(mp, x, mif, mp->rank, draw);
	late[1] = 0;
	for (int r = 0; r < mp->ranks; r++)
		late[1] = fmax(late[1], delay(mp, x, mif, r, draw));
}

/* The same are late for all; who goes first changes. */
static void calls(struct mp *mp, struct arrival *x, size_t size, int mif, int i)
{
	double late[2];

	draw_delays(mp, x, mif, (unsigned int)i, late);
	for (int k = 0; k < x->bys; k++)
		call(mp, x, size, late, (k + i) % x->bys, i);
}

/* ---- the time of a message ---- */

/* Half a round trip between the first rank and the last, which is on another host if there is
 * one; the others are not in the way meanwhile. Programs that were given it (-d) can be compared.
 */
static double message_time(struct mp *mp, const struct arrival *x, size_t size)
{
	enum { TIMES = 60, WARM = 10 };
	int last = mp->ranks - 1, other = mp->rank ? 0 : last, n = (int)size;
	double t[TIMES], result = 0;
	MPI_Request r;

	for (int i = -WARM; i < TIMES && (mp->rank == 0 || mp->rank == last); i++) {
		double from = mp_now();

		if (mp->rank == 0)
			PMPI_Send(mp->out, n, MPI_BYTE, other, MP_TAG, MPI_COMM_WORLD);
		PMPI_Recv(mp->in, n, MPI_BYTE, other, MP_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (mp->rank != 0)
			PMPI_Send(mp->out, n, MPI_BYTE, other, MP_TAG, MPI_COMM_WORLD);
		if (i >= 0)
			t[i] = (mp_now() - from) / 2;
	}
	if (mp->rank == 0)
		result = mp_median(t, TIMES);
	PMPI_Ibcast(&result, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD, &r);
	wait_for(x, &r, 2e-3);
	return result;
}

/* ---- a row ---- */

static void sum(double *v, int n)
{
	PMPI_Allreduce(MPI_IN_PLACE, v, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void largest(double *v, int n)
{
	PMPI_Allreduce(MPI_IN_PLACE, v, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

/* Of n calls on all ranks: a becomes the completion, d the end of the last rank. */
static void together(struct mp *mp, struct arrival *x, int by, int n)
{
	double *a = x->a[by], *d = x->d[by], *bound = x->scratch;

	memcpy(bound, a, (size_t)n * sizeof(*a));
	if (x->op->rooted)
		PMPI_Bcast(bound, n, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	else
		largest(bound, n);
	for (int i = 0; i < n; i++) {
		bound[i] = bound[i] > a[i] ? bound[i] - a[i] : 0;
		a[i] = d[i] - a[i];
	}
	sum(bound, n);
	sum(a, n);
	largest(d, n);
	for (int i = 0; i < n; i++) {
		bound[i] /= mp->ranks;
		a[i] /= mp->ranks;
		x->beyond[by][i] = a[i] - bound[i];
	}
	x->bound[by] = mp_median(bound, n);
}

static double mean(const double *v, int n)
{
	double s = 0;

	for (int i = 0; i < n; i++)
		s += v[i];
	return s / n;
}

/* What is beyond the bound, of what is in the MPI's own; no number from too few calls. */
static int of_own(const struct bench_comparison *of, struct mp_cell *c)
{
	c[0] = MP_REAL("of_own", of ? of->ratio : NAN, 3);
	c[1] = MP_REAL("of_own_lo", of && isfinite(of->ci.lo) ? of->ci.lo : NAN, 3);
	c[2] = MP_REAL("of_own_hi", of && isfinite(of->ci.hi) ? of->ci.hi : NAN, 3);
	return 3;
}

static void row(struct mp *mp, struct arrival *x, size_t size, int mif, int by, int n,
		const struct bench_comparison *of)
{
	double *beyond = x->beyond[by], *a = x->a[by];
	struct mp_cell c[20];
	int k = 0;

	c[k++] = MP_INT("size", x->op->sized ? size : 0);
	c[k++] = MP_TEXT("op", x->op->name);
	c[k++] = MP_INT("mif", mif);
	c[k++] = MP_REAL("late_pct", mp->o.late < 0 ? NAN : mp->o.late, 0);
	c[k++] = MP_TEXT("by", names[by]);
	c[k++] = MP_INT("n", n);
	c[k++] = MP_REAL("message_us", x->message * 1e6, 2);
	c[k++] = MP_REAL("mean_us", mean(a, n) * 1e6, 2);
	c[k++] = MP_REAL("p50_us", mp_median(a, n) * 1e6, 2);
	c[k++] = MP_REAL("bound_us", x->bound[by] * 1e6, 2);
	c[k++] = MP_REAL("beyond_us", mp_median(beyond, n) * 1e6, 2);
	c[k++] = MP_REAL("p10_us", bench_percentile(beyond, (size_t)n, 0.1) * 1e6, 2);
	c[k++] = MP_REAL("p90_us", bench_percentile(beyond, (size_t)n, 0.9) * 1e6, 2);
	c[k++] = MP_REAL("total_us", mp_median(x->d[by], n) * 1e6, 2);
	if (x->bys > 1)
		k += of_own(of, c + k);
	mp_row(mp, c, k);
}

static void report(struct mp *mp, struct arrival *x, size_t size, int mif, int n)
{
	static const struct bench_how how;
	struct bench_comparison of;

	for (int by = 0; by < x->bys; by++)
		together(mp, x, by, n);
	/* Before medians are taken, which sort. */
	if (x->bys > 1)
		bench_compare(x->beyond[BY_MPI], x->beyond[BY_OWN], (size_t)n, &how, x->scratch,
			      &of);
	for (int by = 0; by < x->bys; by++)
		row(mp, x, size, mif, by, n, x->bys > 1 && by == BY_MPI ? &of : NULL);
}

static void settle(struct mp *mp, struct arrival *x, size_t size, int mif)
{
	for (int i = 0; i < SETTLE; i++) {
		double late[2];

		draw_delays(mp, x, mif, (unsigned int)i, late);
		call(mp, x, size, late, BY_MPI, 0);
	}
}

static bool measure(struct mp *mp, struct arrival *x, size_t size, int mif, int rows)
{
	int n, warm = mp_warmup(mp), most = mp_iterations(mp);
	double from;

	warm = warm < most ? warm : most; /* there is no room for more */
	from = mp_now();
	for (int i = 0; i < warm; i++)
		calls(mp, x, size, mif, i);
	n = mp_fit(mp, most, (mp_now() - from) / warm, rows);
	for (int i = 0; i < n; i++)
		calls(mp, x, size, mif, i);
	if (n)
		report(mp, x, size, mif, n);
	return n;
}

/* ---- all rows ---- */

static bool has_cores(const struct mp *mp)
{
	int crowded = mp_neighbours(mp) > sysconf(_SC_NPROCESSORS_ONLN), any = 0;

	PMPI_Allreduce(&crowded, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	return !any;
}

static bool size_rows(struct mp *mp, struct arrival *x, size_t size, const int *mifs, int sizes)
{
	int count = 0;

	while (mifs[count])
		count++;
	x->message = mp_delay(mp) >= 0 ? mp_delay(mp) : message_time(mp, x, size ? size : 1);
	if (x->bys > 1)
		settle(mp, x, size, mifs[0]);
	for (int i = 0; i < count; i++)
		if (!measure(mp, x, size, mifs[i], sizes * count - i))
			return false;
	return true;
}

int mp_arrival(struct mp *mp)
{
	const int *mifs = mp->o.mif[0] ? mp->o.mif : paper;
	struct arrival x = {.op = mp_coll_find(mp->o.op ? mp->o.op : "alltoall"),
			    .bys = mp->o.own ? BYS : 1,
			    .margin = 300e-6};
	size_t sizes[MP_SIZES];
	int count = x.op->sized ? mp_sizes(mp, sizes) : 1;

	x.sleeps = mp->o.wait ? strcmp(mp->o.wait, "sleep") == 0 : !has_cores(mp);
	x.offset = mp_offset(mp, mp->o.sync);
	for (int by = 0; by < BYS; by++) {
		x.a[by] = mp->samples[(ptrdiff_t)3 * by];
		x.d[by] = mp->samples[3 * by + 1];
		x.beyond[by] = mp->samples[3 * by + 2];
	}
	x.scratch = mp->samples[6];
	/* Timers may otherwise come 50 us late, to save power. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	for (int i = 0; i < count; i++)
		if (!size_rows(mp, &x, x.op->sized ? sizes[i] : 0, mifs, count - i))
			break;
	return 0;
}
