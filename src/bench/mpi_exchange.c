/* Programs that compute and exchange in turn: the two models of the thesis' figure 4.15.
 *
 * Each rank sends to the next one and receives from the one before it, in a ring; of two ranks each
 * is both to the other. Producing takes as long as consuming, together C; packing is a copy. An
 * iteration is timed with and without C, in turns. `ratio` is the thesis' axis (fig. 4.16): the
 * time of an iteration without computation, or what is given instead so that different stacks have
 * the same to compute, divided by C.
 */
#include "mpi_perf.h"

#include <string.h>

enum { BLOCK = 10, SETTLE = 2 };

static const double ratios[] = {0.25, 0.5, 0.8, 1, 2};
enum { RATIOS = sizeof(ratios) / sizeof(ratios[0]), MODELS = 2 };

struct exchange {
	size_t size;
	int model, to, from;
	long units; /* of producing, and of consuming */
};

/* The message is put together behind the buffer that it is sent from. */
static void pack(struct mp *mp, const struct exchange *e)
{
	memcpy(mp->out, mp->out + e->size, e->size);
}

static void work(struct mp *mp, const struct exchange *e, MPI_Request *r)
{
	if (e->units)
		mp_work(mp, e->units, r);
}

static void receive(struct mp *mp, const struct exchange *e, MPI_Request *r)
{
	MPI_Irecv(mp->in, (int)e->size, MPI_BYTE, e->from, MP_TAG, MPI_COMM_WORLD, r);
}

static void send_on(struct mp *mp, const struct exchange *e, MPI_Request *r)
{
	MPI_Isend(mp->out, (int)e->size, MPI_BYTE, e->to, MP_TAG, MPI_COMM_WORLD, r);
}

static void model_1(struct mp *mp, const struct exchange *e)
{
	MPI_Request sent, got;

	receive(mp, e, &got);
	pack(mp, e);
	send_on(mp, e, &sent);
	work(mp, e, &got); /* produces the next */
	MPI_Wait(&sent, MPI_STATUS_IGNORE);
	MPI_Wait(&got, MPI_STATUS_IGNORE);
	work(mp, e, &got); /* consumes this one */
}

static void model_2(struct mp *mp, const struct exchange *e)
{
	MPI_Request sent, got;

	pack(mp, e);
	send_on(mp, e, &sent);
	work(mp, e, &sent); /* consumes the one before */
	receive(mp, e, &got);
	work(mp, e, &got); /* produces the next */
	MPI_Wait(&sent, MPI_STATUS_IGNORE);
	MPI_Wait(&got, MPI_STATUS_IGNORE);
}

/* `n` iterations, each timed; a few more to get into step. */
static void block(struct mp *mp, const struct exchange *e, double *t, int n)
{
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = -SETTLE; i < n; i++) {
		double from = mp_now();

		if (e->model == 1)
			model_1(mp, e);
		else
			model_2(mp, e);
		if (i >= 0)
			t[i] = mp_now() - from;
	}
}

/* Computation alone, on all ranks at once, as in the loop. */
static void alone(struct mp *mp, const struct exchange *e, double *t, int n)
{
	MPI_Request none = MPI_REQUEST_NULL;

	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		double from = mp_now();

		work(mp, e, &none);
		work(mp, e, &none);
		t[i] = mp_now() - from;
	}
}

enum { COMM, C, ITERATION };

static void report(struct mp *mp, const struct exchange *e, double ratio, int n)
{
	double *v = mp->samples[ITERATION];
	double comm = mp_median(mp->samples[COMM], n), c = mp_median(mp->samples[C], n);
	double t = mp_median(v, n), hidden = 1 - (t - c) / comm;
	struct mp_cell cells[] = {
		MP_INT("size", e->size),
		MP_INT("model", e->model),
		MP_REAL("ratio", ratio, 2),
		MP_INT("n", n),
		MP_REAL("T_comm_us", comm * 1e6, 1),
		MP_REAL("C_us", c * 1e6, 1),
		MP_REAL("T_iter_us", t * 1e6, 1),
		MP_REAL("p10_us", bench_percentile(v, (size_t)n, 0.1) * 1e6, 1),
		MP_REAL("p90_us", bench_percentile(v, (size_t)n, 0.9) * 1e6, 1),
		MP_REAL("hidden_pct",
			100 * (hidden < 0   ? 0
			       : hidden > 1 ? 1
					    : hidden),
			1),
	};

	mp_row(mp, cells, sizeof(cells) / sizeof(cells[0]));
}

/* The median of rank 0, told to all. */
static double without_computation(struct mp *mp, struct exchange *e)
{
	double t[BLOCK], m;

	e->units = 0;
	for (int i = 0; i < mp_warmup(mp); i++)
		block(mp, e, t, 1);
	block(mp, e, t, BLOCK);
	m = mp_median(t, BLOCK);
	MPI_Bcast(&m, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	return m;
}

static bool measure(struct mp *mp, struct exchange *e, double ratio, int rows)
{
	double comm = without_computation(mp, e);
	double c = (mp_delay(mp) > 0 ? mp_delay(mp) : comm) / ratio;
	int n = mp_fit(mp, mp_iterations(mp), 2 * (comm + c) * (BLOCK + SETTLE) / BLOCK, rows);

	for (int i = 0; i < n; i += BLOCK) {
		int some = n - i < BLOCK ? n - i : BLOCK;

		e->units = 0;
		block(mp, e, mp->samples[COMM] + i, some);
		e->units = mp_units(mp, c / 2);
		alone(mp, e, mp->samples[C] + i, some);
		block(mp, e, mp->samples[ITERATION] + i, some);
	}
	if (n)
		report(mp, e, ratio, n);
	return n > 0;
}

int mp_exchange(struct mp *mp)
{
	size_t sizes[MP_SIZES];
	int models = mp->o.model ? 1 : MODELS, first = mp->o.model ? mp->o.model : 1;
	int count = mp_sizes(mp, sizes) * models * RATIOS;
	struct exchange e = {
		.to = (mp->rank + 1) % mp->ranks,
		.from = (mp->rank + mp->ranks - 1) % mp->ranks,
	};

	mp_calibrate(mp);
	for (int i = 0; i < count; i++) {
		e.size = sizes[i / (models * RATIOS)];
		e.model = first + i / RATIOS % models;
		if (!measure(mp, &e, ratios[i % RATIOS], count - i))
			break;
	}
	return 0;
}
