/* Receives that are cancelled while their sender computes: cancelling is local, so it takes no
 * longer than if that one were there. What it sends afterwards goes to the receives that are
 * left. */
#include "mpi_test.h"

enum { LEN = 1 << 20, TAG = 5, N = 3, BUSY = 2, SOON_MS = 500 };

static MPI_Comm tokens; /* where no receive looks for messages */

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static void barrier(void)
{
	MPI_Barrier(tokens);
}

/* No call of MPI for some seconds. */
static void compute(void)
{
	for (int i = 0; i < BUSY * 100; i++)
		mt_nap(10000);
}

static void sender(int n)
{
	uint8_t *out[N];
	MPI_Request req[N];

	compute();
	for (int i = 0; i < n; i++) {
		out[i] = mt_alloc(LEN);
		mt_fill(out[i], LEN, mt_key(mt.rank, next(), i));
		MPI_Isend(out[i], LEN, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Waitall(n, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		mt_free(out[i]);
}

/* Of N receives the first `gone` are cancelled, and as many posted anew. */
static void receiver(int from, int gone)
{
	uint8_t *in[2 * N];
	MPI_Request req[2 * N];
	MPI_Status st;
	double begin;
	int is = 0, n = N;

	for (int i = 0; i < N; i++) {
		in[i] = mt_alloc(LEN);
		mt_poison(in[i], LEN);
		MPI_Irecv(in[i], LEN, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &req[i]);
	}
	begin = MPI_Wtime();
	for (int i = 0; i < gone; i++) {
		MPI_Cancel(&req[i]);
		MPI_Wait(&req[i], &st);
		MPI_Test_cancelled(&st, &is);
		CHECK(is == 1, "receive %d is not cancelled", i);
	}
	begin = MPI_Wtime() - begin;
	CHECK(begin < SOON_MS / 1e3, "to cancel %d receives took %.3f s", gone, begin);
	for (; n < N + gone; n++) {
		in[n] = mt_alloc(LEN);
		MPI_Irecv(in[n], LEN, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &req[n]);
	}
	for (int i = gone; i < n; i++) {
		MPI_Wait(&req[i], &st);
		mt_expect_status(&st, from, TAG, LEN, "receive that was left");
		mt_expect(in[i], LEN, mt_key(from, mt.rank, i - gone), "receive %d", i);
	}
	for (int i = 0; i < n; i++) {
		CHECK(i >= gone || mt_poisoned(in[i], LEN) == LEN, "cancelled and written to");
		mt_free(in[i]);
	}
}

/* Even ranks compute, and odd ones cancel. */
static void busy_sender(int gone)
{
	barrier();
	if (mt.rank % 2)
		receiver(mt.rank - 1, gone);
	else if (mt.rank + 1 < mt.size)
		sender(N);
	barrier();
}

static void one(void)
{
	busy_sender(1);
}

static void some(void)
{
	busy_sender(N - 1);
}

static void all(void)
{
	busy_sender(N);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_WORLD, &tokens);
	mt_part("the first", one);
	mt_part("some", some);
	mt_part("all", all);
	MPI_Comm_free(&tokens);
	return mt_done();
}
