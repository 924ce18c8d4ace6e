/* Many calls, one right behind the other, and many communicators. */
#include "coll_check.h"

#include <stdlib.h>

/* ---- short calls ---- */

struct turn {
	MPI_Comm comm;
	int which, n; /* of the sequence, of the call */
	int rank, size;
	uint64_t *out, *in; /* a word for each rank; the same memory in all calls */
};

/* What a says to b in this call. */
static uint64_t word(const struct turn *t, int a, int b)
{
	return mt_key(a, b, (int)((unsigned int)t->which * 1000003 + (unsigned int)t->n));
}

static void expect(const struct turn *t, const char *what, int from, uint64_t got, uint64_t want)
{
	CHECK(got == want,
	      "%s, call %d of sequence %d, rank %d of %d: %016llx from %d, not %016llx", what, t->n,
	      t->which, t->rank, t->size, (unsigned long long)got, from, (unsigned long long)want);
}

static void alltoall(struct turn *t)
{
	for (int r = 0; r < t->size; r++)
		t->out[r] = word(t, t->rank, r);
	MPI_Alltoall(t->out, 1, MPI_UINT64_T, t->in, 1, MPI_UINT64_T, t->comm);
	for (int r = 0; r < t->size; r++)
		expect(t, "alltoall", r, t->in[r], word(t, r, t->rank));
}

static void allgather(struct turn *t)
{
	t->out[0] = word(t, t->rank, 0);
	MPI_Allgather(t->out, 1, MPI_UINT64_T, t->in, 1, MPI_UINT64_T, t->comm);
	for (int r = 0; r < t->size; r++)
		expect(t, "allgather", r, t->in[r], word(t, r, 0));
}

/* The root goes on as soon as it can, and writes to the same memory again. */
static void bcast_from(struct turn *t, int root)
{
	t->out[0] = word(t, t->rank, 1);
	MPI_Bcast(t->out, 1, MPI_UINT64_T, root, t->comm);
	expect(t, "bcast", root, t->out[0], word(t, root, 1));
}

static void bcast(struct turn *t)
{
	bcast_from(t, (int)(word(t, 0, 0) % (uint64_t)t->size));
}

static void allreduce(struct turn *t)
{
	uint64_t sum = 0;

	t->out[0] = word(t, t->rank, 2);
	MPI_Allreduce(t->out, t->in, 1, MPI_UINT64_T, MPI_SUM, t->comm);
	for (int r = 0; r < t->size; r++)
		sum += word(t, r, 2);
	expect(t, "allreduce", -1, t->in[0], sum);
}

static void reduce_scatter(struct turn *t)
{
	uint64_t sum = 0;

	for (int r = 0; r < t->size; r++)
		t->out[r] = word(t, t->rank, r);
	MPI_Reduce_scatter_block(t->out, t->in, 1, MPI_UINT64_T, MPI_SUM, t->comm);
	for (int r = 0; r < t->size; r++)
		sum += word(t, r, t->rank);
	expect(t, "reduce_scatter", -1, t->in[0], sum);
}

static void barrier(struct turn *t)
{
	MPI_Barrier(t->comm);
}

/* ---- sequences ---- */

static void turn_begin(struct turn *t, MPI_Comm comm, int which)
{
	*t = (struct turn){.comm = comm, .which = which};
	MPI_Comm_rank(comm, &t->rank);
	MPI_Comm_size(comm, &t->size);
	t->out = mt_alloc((size_t)t->size * sizeof(*t->out));
	t->in = mt_alloc((size_t)t->size * sizeof(*t->in));
}

static void turn_end(struct turn *t)
{
	mt_free(t->out);
	mt_free(t->in);
}

/* The same operation several times in a row, mostly; with one of them above all. */
static void turn_call(struct turn *t)
{
	static void (*const calls[])(struct turn *) = {
		alltoall, alltoall, alltoall, allgather, allreduce, bcast, reduce_scatter, barrier};
	uint64_t draw = mt_key(-2, t->which, t->n / 7);

	calls[draw % (sizeof(calls) / sizeof(*calls))](t);
	t->n++;
}

void cc_sequence(MPI_Comm comm, int which, int n)
{
	struct turn t;

	turn_begin(&t, comm, which);
	while (t.n < n) {
		if (mt_key(t.rank, which, t.n) % 200 == 0)
			mt_nap((int)(mt_key(t.rank, -which, t.n) % 1500));
		turn_call(&t);
	}
	turn_end(&t);
}

/* ---- parts ---- */

enum { STRETCH = 250 };

void cc_many(void)
{
	double start = MPI_Wtime();

	for (int i = 0; i * STRETCH < 40 * mt.count && mt_go_on(start, mt.seconds); i++)
		cc_sequence(MPI_COMM_WORLD, i + (int)(mt.seed * 1000), STRETCH);
}

/* Communicators that come and go: what was known of one must not be taken for the next, which may
 * have the same handle. */
void cc_lives(void)
{
	double start = MPI_Wtime();

	for (int i = 0; i < mt.count && mt_go_on(start, mt.seconds); i++) {
		struct util_rand r = mt_rand_shared(1000 + i);
		int ways = 1 + (int)util_rand_below(&r, 3), back = (int)util_rand_below(&r, 2);
		MPI_Comm comm;

		MPI_Comm_split(MPI_COMM_WORLD, mt.rank % ways, back ? -mt.rank : mt.rank, &comm);
		cc_sequence(comm, i, (int)util_rand_below(&r, 12));
		MPI_Comm_free(&comm);
	}
	mt_good(); /* some have no calls */
}

/* A root that has done its part frees the communicator, and others come to it late: what was sent
 * to them is there all the same. */
void cc_gone(void)
{
	double start = MPI_Wtime();

	for (int i = 0; i < mt.count && mt_go_on(start, mt.seconds); i++) {
		struct util_rand r = mt_rand_shared(3000 + i);
		int calls = 2 + (int)util_rand_below(&r, 20);
		struct turn t;
		MPI_Comm comm;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm);
		turn_begin(&t, comm, 9000 + i);
		for (; t.n < calls; t.n++) {
			int root = (int)util_rand_below(&r, (uint64_t)t.size);

			if (t.n == calls - 1 && t.rank != root && mt_key(t.rank, i, 3) % 2)
				mt_nap((int)(mt_key(t.rank, i, 4) % 4000));
			bcast_from(&t, t.n == calls - 1 ? root : 0);
		}
		turn_end(&t);
		MPI_Comm_free(&comm);
	}
}

/* Many communicators at once, of the same ranks and of others, in turn. */
void cc_at_once(void)
{
	enum { COMMS = 24 };
	double start = MPI_Wtime();
	MPI_Comm comm[COMMS];
	struct turn t[COMMS];

	for (int i = 0; i < COMMS; i++) {
		MPI_Comm_split(MPI_COMM_WORLD, i % 3 ? mt.rank % (i % 3) : 0,
			       i % 2 ? -mt.rank : mt.rank, &comm[i]);
		turn_begin(&t[i], comm[i], 5000 + i);
	}
	for (int round = 0; round < mt.count && mt_go_on(start, mt.seconds); round++)
		for (int i = 0; i < COMMS; i++)
			turn_call(&t[(i * 7 + round) % COMMS]);
	for (int i = 0; i < COMMS; i++) {
		turn_end(&t[i]);
		MPI_Comm_free(&comm[i]);
	}
}
