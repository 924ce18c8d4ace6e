#include "coll_model.h"

#include <math.h>

/* Two processes of this project's own provider over UDP, and of one host. */
const struct coll_cost coll_cost_typical = {
	.o = 2000, .L = 10000, .G = 0.8, .flag = 200, .copy = 0.15, .add = 0.3, .cores = 2};

/* ---- predictions ---- */

/* One way, with what all formulas use. */
struct frame {
	const struct coll_cost *c;
	double P, H, p; /* ranks, hosts, ranks of a host */
	double busy;    /* how many processes share a core */
	double at_once; /* how many run at the same time on a host */
	double bytes, spread;
};

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

static double rounds_of(double n)
{
	return n > 1 ? ceil(log2(n)) : 0;
}

/* Everybody of a host sees what one has done. */
static double meet(const struct frame *f)
{
	return f->p > 1 ? f->c->flag * (1 + f->busy) : 0;
}

/* Early ones have done their part when the last one comes, and do not wait in turn. */
static double aware(const struct frame *f, double t)
{
	return t * (1 - 0.12 * smaller(1, t > 0 ? f->spread / t : 0));
}

static double message(const struct frame *f, double bytes)
{
	return 2 * f->c->o + f->c->L + bytes * f->c->G;
}

static double alltoall_direct(const struct frame *f)
{
	double out = f->p * (f->P - f->p), in = f->p * f->p;
	double t = 2 * out * f->c->o / f->at_once + out * f->bytes * f->c->G +
		   in * (f->c->flag + 2 * f->bytes * f->c->copy) / f->at_once;

	return t + (f->H > 1 ? f->c->L : 0) + meet(f);
}

/* Three phases: gathered in shared memory, one message per host, copied out. */
static double alltoall_shm(const struct frame *f)
{
	double copied = 2 * f->P * f->p * f->bytes * f->c->copy / f->at_once;
	double sent = (f->H - 1) * (2 * f->c->o + f->p * f->p * f->bytes * f->c->G);

	return copied + sent + (f->H > 1 ? f->c->L : 0) + 3 * meet(f);
}

/* What MPIs do: so many rounds, in each a message of so many blocks. */
static double rounds_mpi(const struct frame *f, double rounds, double blocks, bool waits)
{
	bool net = f->H > 1;
	double o = net ? 2 * f->c->o : 2 * f->c->flag, L = net ? f->c->L : meet(f);
	double G = net ? f->p * f->c->G : 2 * f->busy * f->c->copy;

	return rounds * (f->busy * o + blocks * f->bytes * G) + (waits ? rounds : 1) * L;
}

/* Each block by itself. */
static double pairs_mpi(const struct frame *f)
{
	return rounds_mpi(f, f->P - 1, 1, false);
}

/* Or blocks of many in few rounds, whatever is faster. */
static double alltoall_mpi(const struct frame *f)
{
	return smaller(rounds_mpi(f, rounds_of(f->P), f->P / 2, true), pairs_mpi(f));
}

/* Nobody knows the lengths of others, so nothing can be put together. */
static double predict_alltoallv(const struct frame *f, enum coll_variant v)
{
	switch (v) {
	case COLL_MPI:
		return pairs_mpi(f);
	case COLL_DIRECT:
		return alltoall_direct(f);
	case COLL_PAP_DIRECT:
		return aware(f, alltoall_direct(f));
	default:
		return INFINITY;
	}
}

static double predict_alltoall(const struct frame *f, enum coll_variant v)
{
	switch (v) {
	case COLL_MPI:
		return alltoall_mpi(f);
	case COLL_DIRECT:
		return alltoall_direct(f);
	case COLL_PAP_DIRECT:
		return aware(f, alltoall_direct(f));
	case COLL_SHM_DIRECT:
		return alltoall_shm(f);
	case COLL_PAP_SHM_DIRECT:
		return aware(f, alltoall_shm(f));
	default:
		return INFINITY;
	}
}

/* Within the host, a vector of each is added up, and the result copied by each. */
static double reduce_here(const struct frame *f)
{
	double copied = 2 * f->p * f->bytes * f->c->copy / f->at_once;

	return copied + f->p * f->bytes * f->c->add / f->at_once + 2 * meet(f);
}

static double predict_allreduce(const struct frame *f, enum coll_variant v)
{
	double r = rounds_of(f->H), R = rounds_of(f->P), part = 1 - 1 / f->H;

	switch (v) {
	case COLL_MPI:
		/* The same between hosts, and messages instead of shared memory within. */
		return r * message(f, f->bytes) +
		       (R - r) * (meet(f) + 2 * f->busy * f->c->flag +
				  f->busy * f->bytes * (2 * f->c->copy + f->c->add));
	case COLL_TREE:
		return reduce_here(f) + r * (message(f, f->bytes) + f->bytes * f->c->add);
	case COLL_HALVING:
		return reduce_here(f) + 2 * r * message(f, 0) +
		       part * f->bytes * (2 * f->c->G + f->c->add);
	default:
		return INFINITY;
	}
}

static double predict_bcast(const struct frame *f, enum coll_variant v)
{
	double r = rounds_of(f->H), R = rounds_of(f->P);

	switch (v) {
	case COLL_MPI:
		return r * message(f, f->bytes) +
		       (R - r) * (meet(f) + f->bytes * 2 * f->c->copy * f->busy);
	case COLL_TREE:
		return r * message(f, f->bytes) + 2 * meet(f) +
		       (1 + f->p / f->at_once) * f->bytes * f->c->copy;
	case COLL_DIRECT:
		return message(f, 0) + (f->H - 1) * (f->c->o + f->bytes * f->c->G) + 2 * meet(f) +
		       (1 + f->p / f->at_once) * f->bytes * f->c->copy;
	default:
		return INFINITY;
	}
}

static double predict_allgather(const struct frame *f, enum coll_variant v)
{
	double r = rounds_of(f->H), R = rounds_of(f->P), all = f->P * f->bytes;
	double between = (f->H - 1) * f->p * f->bytes * f->c->G;

	switch (v) {
	case COLL_MPI:
		return r * message(f, 0) + f->p * between + (R - r) * (meet(f) + f->c->flag) +
		       2 * all * f->c->copy * f->busy;
	case COLL_TREE:
		return r * message(f, 0) + between + 2 * meet(f) + all * f->c->copy * f->busy;
	default:
		return INFINITY;
	}
}

static double predict_barrier(const struct frame *f, enum coll_variant v)
{
	double r = rounds_of(f->H), R = rounds_of(f->P);

	switch (v) {
	case COLL_MPI:
		return r * message(f, 0) + (R - r) * (meet(f) + 2 * f->c->flag * f->busy);
	case COLL_DISSEM:
		return r * message(f, 0) + 2 * meet(f);
	default:
		return INFINITY;
	}
}

double coll_model_predict(const struct coll_cost *cost, const struct coll_shape *s, enum coll_op op,
			  enum coll_variant v, size_t bytes)
{
	uint32_t cores = cost->cores ? cost->cores : 1;
	struct frame f = {.c = cost,
			  .P = s->ranks,
			  .H = s->hosts,
			  .p = s->per_host,
			  .bytes = (double)bytes,
			  .spread = s->spread};

	f.at_once = smaller(f.p, cores);
	f.busy = f.p / f.at_once;
	switch (op) {
	case COLL_ALLTOALLV:
		return predict_alltoallv(&f, v);
	case COLL_ALLTOALL:
		return predict_alltoall(&f, v);
	case COLL_ALLREDUCE:
	case COLL_REDUCE_SCATTER:
		return predict_allreduce(&f, v);
	case COLL_BCAST:
		return predict_bcast(&f, v);
	case COLL_ALLGATHER:
		return predict_allgather(&f, v);
	case COLL_BARRIER:
		return predict_barrier(&f, v);
	default:
		return INFINITY;
	}
}

uint32_t coll_model_class(size_t bytes)
{
	uint32_t class = 0;

	while (class < COLL_CLASSES - 1 && bytes >= coll_model_class_end(class))
		class ++;
	return class;
}

uint64_t coll_model_class_end(uint32_t class)
{
	return UINT64_C(1) << 2 * class;
}
