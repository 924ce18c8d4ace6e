/* Results that must not depend on how they came about: data at absolute addresses (MPI_BOTTOM) and
 * of types that begin before or behind their address; and sums of fractions, which are to have the
 * same bits in every call. */
#include "mpi_test.h"

#include <string.h>

enum { INTS = 6, AROUND = 16, CALLS = 60, NUMBERS = 300 };

static int sent[INTS + 2 * AROUND], received[INTS + 2 * AROUND];
static int *const out = sent + AROUND, *const in = received + AROUND;

static void fill(int call)
{
	for (int i = 0; i < INTS; i++) {
		out[i] = mt.rank * 1000 + call + i;
		in[i] = -1;
	}
}

/* ---- types ---- */

/* Of every second int from at: a type that has it there, or that begins there. */
static MPI_Datatype every_second(MPI_Aint at)
{
	int lengths[INTS / 2];
	MPI_Aint places[INTS / 2];
	MPI_Datatype t;

	for (int i = 0; i < INTS / 2; i++) {
		lengths[i] = 1;
		places[i] = at + (MPI_Aint)sizeof(int) * 2 * i;
	}
	MPI_Type_create_hindexed(INTS / 2, lengths, places, MPI_INT, &t);
	MPI_Type_commit(&t);
	return t;
}

static void check(const char *what, int call, int from)
{
	for (int i = 0; i < INTS / 2; i++)
		CHECK(in[2 * i] == from * 1000 + call + 2 * i && in[2 * i + 1] == -1,
		      "%s, call %d, number %d: %d and %d", what, call, i, in[2 * i], in[2 * i + 1]);
}

/* To everybody the same, from everybody by itself. */
static void exchange(void *from, MPI_Datatype st, void *to, MPI_Datatype rt, int call, int with)
{
	int *send = mt_alloc(4 * (size_t)mt.size * sizeof(int));
	int *sd = send + mt.size, *recv = sd + mt.size, *rd = recv + mt.size;

	for (int r = 0; r < mt.size; r++) {
		send[r] = (r + mt.rank) % mt.size == with;
		recv[r] = send[r];
		sd[r] = rd[r] = 0;
	}
	fill(call);
	MPI_Alltoallv(from, send, sd, st, to, recv, rd, rt, MPI_COMM_WORLD);
	check("alltoallv", call, (with - mt.rank + mt.size) % mt.size);
	mt_free(send);
}

static void gather(void *from, MPI_Datatype t, int call)
{
	int *all = mt_alloc((size_t)mt.size * INTS / 2 * sizeof(int));

	fill(call);
	MPI_Allgather(from, 1, t, all, INTS / 2, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < mt.size; r++)
		for (int i = 0; i < INTS / 2; i++)
			CHECK(all[r * (INTS / 2) + i] == r * 1000 + call + 2 * i,
			      "allgather, call %d, number %d of %d", call, i, r);
	mt_free(all);
}

static void tell(void *buf, MPI_Datatype t, int call)
{
	int root = call % mt.size;

	fill(call);
	if (mt.rank == root)
		for (int i = 0; i < INTS; i += 2)
			in[i] = out[i];
	MPI_Bcast(buf, 1, t, root, MPI_COMM_WORLD);
	check("bcast", call, root);
}

/* What is sent is that far behind the address that is given, and so for what is received. */
static void with(void *from, MPI_Aint send_at, void *to, MPI_Aint recv_at)
{
	MPI_Datatype st = every_second(send_at), rt = every_second(recv_at);

	for (int call = 0; call < CALLS; call++) {
		exchange(from, st, to, rt, call, call % mt.size);
		gather(from, st, call);
		tell(to, rt, call);
	}
	MPI_Type_free(&st);
	MPI_Type_free(&rt);
}

static void bottom(void)
{
	MPI_Aint a, b;

	MPI_Get_address(out, &a);
	MPI_Get_address(in, &b);
	with(MPI_BOTTOM, a, MPI_BOTTOM, b);
	with(out, 0, MPI_BOTTOM, b);
}

static void shifted(void)
{
	MPI_Aint by = AROUND * sizeof(int);

	with(out + AROUND, -by, in - AROUND, by);
}

/* ---- sums ---- */

static double mine[NUMBERS], sum[NUMBERS], first[NUMBERS];

static void sums_of(int count)
{
	for (int call = 0; call < CALLS; call++) {
		int same;

		MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (!call)
			memcpy(first, sum, sizeof(sum));
		same = !memcmp(first, sum, (size_t)count * sizeof(double));
		CHECK(same, "call %d: a sum of %d numbers has other bits", call, count);
	}
}

static void sums(void)
{
	struct util_rand r = mt_rand_own(0);

	for (int i = 0; i < NUMBERS; i++)
		mine[i] = (double)(util_rand_next(&r) >> 11) * (i % 2 ? 0x1p-53 : 0x1p-20);
	sums_of(1);
	sums_of(NUMBERS);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 2, MPI_THREAD_SINGLE);
	mt_part("addresses from MPI_BOTTOM", bottom);
	mt_part("types that begin elsewhere", shifted);
	mt_part("sums", sums);
	return mt_done();
}
