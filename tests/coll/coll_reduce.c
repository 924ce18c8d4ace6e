/* Cases of operations that reduce data, and of MPI_Barrier. */
#include "coll_check.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct call {
	const struct cc_reduction *r;
	int n;       /* elements that each rank gives */
	int mine;    /* that this rank gets */
	int *counts; /* of all ranks */
	void *send, *before, *got, *want;
};

typedef void call_fn(const struct cc_case *c, const struct call *k, void *recv, int own);

static const void *sent(const struct cc_case *c, const struct call *k)
{
	return c->in_place ? MPI_IN_PLACE : k->send;
}

/* All ranks have the same, to the last bit: programs decide by such sums whether to go on. */
static void agreed(struct cc_case *c, const struct call *k)
{
	size_t len = (size_t)k->n * k->r->bytes;
	void *first = cc_copy(k->got, len);

	PMPI_Bcast(first, (int)len, MPI_BYTE, 0, c->comm);
	cc_same(c, k->got, first, len, "not the same as on rank 0");
	mt_free(first);
}

/* In place the receive buffer has what is given, and only its beginning is a result. */
static void both(struct cc_case *c, struct call *k, call_fn *fn)
{
	size_t given = (size_t)k->n * k->r->bytes, result = (size_t)k->mine * k->r->bytes;
	size_t len = c->in_place ? given : result;
	int first = (int)util_rand_below(&c->shared, 2);

	k->send = mt_alloc(given);
	k->r->fill(&c->own, k->send, k->n);
	k->before = cc_copy(k->send, given);
	k->got = mt_alloc(len);
	if (c->in_place)
		memcpy(k->got, k->send, given);
	else
		mt_poison(k->got, len);
	k->want = cc_copy(k->got, len);
	for (int i = 0; i < 2; i++) {
		int own = i ^ first;

		cc_arrive(c);
		fn(c, k, own ? k->want : k->got, own);
	}
	if (k->r->exact)
		cc_same(c, k->got, k->want, result, "received");
	else
		cc_near(c, k->got, k->want, k->mine);
	cc_same(c, k->send, k->before, given, "what was sent has changed");
}

static void drop(struct call *k)
{
	mt_free(k->send);
	mt_free(k->before);
	mt_free(k->got);
	mt_free(k->want);
	free(k->counts);
}

/* ---- MPI_Allreduce ---- */

static void call_allreduce(const struct cc_case *c, const struct call *k, void *recv, int own)
{
	CC_CALL(c, own, Allreduce, sent(c, k), recv, k->n, k->r->type, k->r->op, c->comm);
}

void cc_allreduce(struct cc_case *c)
{
	struct call k = {.r = cc_reduction(c)};

	k.n = k.mine = (int)(cc_bytes(c, 4 << 20) / k.r->bytes);
	cc_say(c, ", %d elements", k.n);
	both(c, &k, call_allreduce);
	agreed(c, &k);
	drop(&k);
}

/* ---- MPI_Reduce_scatter, MPI_Reduce_scatter_block ---- */

static void call_reduce_scatter(const struct cc_case *c, const struct call *k, void *recv, int own)
{
#if MPI_VERSION >= 4
	if (c->large) {
		MPI_Count *counts = calloc((size_t)c->size, sizeof(*counts));

		for (int i = 0; i < c->size; i++)
			counts[i] = k->counts[i];
		CC_LARGE(own, Reduce_scatter, sent(c, k), recv, counts, k->r->type, k->r->op,
			 c->comm);
		free(counts);
		return;
	}
#endif
	CC_SMALL(own, Reduce_scatter, sent(c, k), recv, k->counts, k->r->type, k->r->op, c->comm);
}

static void call_block(const struct cc_case *c, const struct call *k, void *recv, int own)
{
	CC_CALL(c, own, Reduce_scatter_block, sent(c, k), recv, k->mine, k->r->type, k->r->op,
		c->comm);
}

/* MPICH 4.0.2 ends the program when its own MPI_Reduce_scatter in place copies a result to where it
 * is. */
static void not_in_place(struct cc_case *c)
{
	if (mt_library("MPICH") && c->in_place) {
		c->in_place = 0;
		cc_say(c, " (not)");
	}
}

void cc_reduce_scatter(struct cc_case *c)
{
	struct call k = {.r = cc_reduction(c), .counts = calloc((size_t)c->size, sizeof(int))};
	size_t most = cc_bytes(c, (4 << 20) / (size_t)c->size) / k.r->bytes;

	not_in_place(c);
	for (int i = 0; i < c->size; i++) {
		uint64_t x = cc_pair(c, i, -1);

		k.counts[i] = x % 4 == 0 ? 0 : (int)(x / 4 % (most + 1));
		k.n += k.counts[i];
	}
	k.mine = k.counts[c->rank];
	cc_say(c, ", up to %zu elements, %d in all", most, k.n);
	both(c, &k, call_reduce_scatter);
	drop(&k);
}

void cc_reduce_scatter_block(struct cc_case *c)
{
	struct call k = {.r = cc_reduction(c)};

	not_in_place(c);
	k.mine = (int)(cc_bytes(c, (4 << 20) / (size_t)c->size) / k.r->bytes);
	k.n = k.mine * c->size;
	cc_say(c, ", %d elements", k.mine);
	both(c, &k, call_block);
	drop(&k);
}

/* ---- MPI_Barrier ---- */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Nobody leaves before the last one has come, by the one clock that all ranks of a machine have. */
void cc_barrier(struct cc_case *c)
{
	double came, left, last = 0, first = 0;
	int times = 1 + (int)util_rand_below(&c->shared, 3);

	for (int i = 0; i < times; i++) {
		cc_arrive(c);
		came = now();
		MPI_Barrier(c->comm);
		left = now();
	}
	PMPI_Allreduce(&came, &last, 1, MPI_DOUBLE, MPI_MAX, c->comm);
	PMPI_Allreduce(&left, &first, 1, MPI_DOUBLE, MPI_MIN, c->comm);
	CHECK(last <= first, "case %d: %s: a rank left %.1f us before the last one came", c->number,
	      c->text, (last - first) * 1e6);
}
