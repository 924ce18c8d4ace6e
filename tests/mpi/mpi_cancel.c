/* Receives that are taken back: either they are gone, and the message goes to the next receive,
 * or they have a message, whole. Nothing in between, nothing twice, nothing lost. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

static const size_t SIZES[] = {0, 16, 4096, 8193, 65536, 65537, 400000};
enum { N_SIZES = sizeof(SIZES) / sizeof(*SIZES), TAG = 9 };
static MPI_Comm tokens; /* where no wildcard looks */

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static int prev(void)
{
	return (mt.rank + mt.size - 1) % mt.size;
}

/* Cancels and waits; whether it is cancelled. */
static int cancel(MPI_Request *req, MPI_Status *st)
{
	int gone = -1;

	MPI_Cancel(req);
	MPI_Wait(req, st);
	MPI_Test_cancelled(st, &gone);
	return gone;
}

static int source_of(int i)
{
	return i % 3 ? prev() : MPI_ANY_SOURCE;
}

static int tag_of(int i)
{
	return i % 2 ? TAG : MPI_ANY_TAG;
}

/* Nothing was ever sent. */
static void no_message(void)
{
	for (int i = 0; i < 4 * N_SIZES; i++) {
		size_t len = SIZES[i % N_SIZES];
		uint8_t *in = mt_alloc(len);
		MPI_Request req;
		MPI_Status st;
		int gone;

		mt_poison(in, len);
		MPI_Irecv(in, (int)len, MPI_BYTE, source_of(i), tag_of(i), MPI_COMM_WORLD, &req);
		if (i >= 2 * N_SIZES)
			mt_nap(300);
		gone = cancel(&req, &st);
		CHECK(gone == 1, "a receive of %zu bytes without a message is not cancelled", len);
		CHECK(mt_poisoned(in, len) == len, "a cancelled receive was written to");
		mt_free(in);
	}
}

/* A receive is cancelled, and the message that would have matched comes afterwards: it is the
 * next receive's, posted before or after the cancel. */
static void next_receive(void)
{
	for (int i = 0; i < 6 * N_SIZES; i++) {
		size_t len = SIZES[i % N_SIZES];
		uint8_t *gone = mt_alloc(len), *in = mt_alloc(len), *out = mt_alloc(len);
		int early = i % 4 < 2;
		MPI_Request req[2], send;
		MPI_Status st;

		mt_fill(out, len, mt_key(mt.rank, next(), i));
		mt_poison(gone, len);
		MPI_Irecv(gone, (int)len, MPI_BYTE, source_of(i), tag_of(i), MPI_COMM_WORLD,
			  &req[0]);
		if (early)
			MPI_Irecv(in, (int)len, MPI_BYTE, prev(), TAG, MPI_COMM_WORLD, &req[1]);
		if (i % 5 == 0)
			mt_nap(500);
		CHECK(cancel(&req[0], &st) == 1, "not cancelled, %zu bytes", len);
		MPI_Sendrecv(NULL, 0, MPI_BYTE, prev(), TAG, NULL, 0, MPI_BYTE, next(), TAG, tokens,
			     MPI_STATUS_IGNORE);
		MPI_Isend(out, (int)len, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &send);
		if (!early)
			MPI_Irecv(in, (int)len, MPI_BYTE, prev(), TAG, MPI_COMM_WORLD, &req[1]);
		MPI_Wait(&req[1], &st);
		mt_expect_status(&st, prev(), TAG, len, "next receive");
		mt_expect(in, len, mt_key(prev(), mt.rank, i), "next receive");
		CHECK(mt_poisoned(gone, len) == len, "a cancelled receive was written to");
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		mt_free(gone);
		mt_free(in);
		mt_free(out);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* Of six receives the second, third and fifth are cancelled; the others keep their order. */
static void some_of_many(void)
{
	enum { N = 6 };
	static const int gone[N] = {0, 1, 1, 0, 1, 0};

	for (int i = 0; i < 2 * N_SIZES; i++) {
		uint8_t *in[N], *out[N];
		MPI_Request recv[N], send[N];
		MPI_Status st;
		size_t room = SIZES[N_SIZES - 1];
		int m = 0;

		for (int k = 0; k < N; k++) {
			in[k] = mt_alloc(room);
			mt_poison(in[k], room);
			MPI_Irecv(in[k], (int)room, MPI_BYTE, source_of(i + k), tag_of(i),
				  MPI_COMM_WORLD, &recv[k]);
		}
		for (int k = N - 1; k >= 0; k--)
			if (gone[k])
				CHECK(cancel(&recv[k], &st) == 1, "receive %d is not cancelled", k);
		MPI_Barrier(MPI_COMM_WORLD);
		for (int k = 0; k < 3; k++) {
			size_t len = SIZES[(i + 3 * k) % N_SIZES];

			out[k] = mt_alloc(len);
			mt_fill(out[k], len, mt_key(mt.rank, next(), i * N + k));
			MPI_Isend(out[k], (int)len, MPI_BYTE, next(), TAG, MPI_COMM_WORLD,
				  &send[k]);
		}
		for (int k = 0; k < N; k++) {
			size_t len = SIZES[(i + 3 * m) % N_SIZES];

			if (gone[k]) {
				CHECK(mt_poisoned(in[k], room) == room,
				      "receive %d was cancelled "
				      "and written to",
				      k);
				mt_free(in[k]);
				continue;
			}
			MPI_Wait(&recv[k], &st);
			mt_expect_status(&st, prev(), TAG, len, "receive that was left");
			mt_expect(in[k], len, mt_key(prev(), mt.rank, i * N + m++),
				  "receive %d that was left", k);
			mt_free(in[k]);
		}
		MPI_Waitall(3, send, MPI_STATUSES_IGNORE);
		for (int k = 0; k < 3; k++)
			mt_free(out[k]);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* The sender of a synchronous message has seen it matched; then it is too late to cancel. */
static void too_late(void)
{
	for (int i = 0; i < N_SIZES; i++) {
		size_t len = SIZES[i];
		uint8_t *in = mt_alloc(len), *out = mt_alloc(len);
		MPI_Request recv, send;
		MPI_Status st;
		int gone;

		mt_fill(out, len, mt_key(mt.rank, next(), i));
		mt_poison(in, len);
		MPI_Irecv(in, (int)len, MPI_BYTE, prev(), TAG, MPI_COMM_WORLD, &recv);
		MPI_Issend(out, (int)len, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &send);
		MPI_Wait(&send, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
		gone = cancel(&recv, &st);
		CHECK(gone == 0, "a receive that has its message is cancelled, %zu bytes", len);
		if (!gone) {
			mt_expect_status(&st, prev(), TAG, len, "cancelled too late");
			mt_expect(in, len, mt_key(prev(), mt.rank, i), "cancelled too late");
		}
		mt_free(in);
		mt_free(out);
	}
}

/* The message is on its way while the receive is cancelled: both outcomes are right, half of
 * something is not. */
static void race_receive(const size_t *len, int n, struct util_rand *r)
{
	size_t room = SIZES[N_SIZES - 1];
	uint8_t *in = mt_alloc(room);
	int got = 0;

	for (int tries = 0; got < n; tries++) {
		MPI_Request req;
		MPI_Status st;
		int gone = 0;

		mt_poison(in, room);
		MPI_Irecv(in, (int)room, MPI_BYTE, source_of(tries), tag_of(tries), MPI_COMM_WORLD,
			  &req);
		if (util_rand_below(r, 2))
			mt_nap((int)util_rand_below(r, 200));
		/* From some point on no more, so that this ends. */
		if (tries < 3 * n && util_rand_below(r, 4))
			gone = cancel(&req, &st);
		else
			MPI_Wait(&req, &st);
		if (gone) {
			CHECK(mt_poisoned(in, room) == room, "cancelled and written to");
			continue;
		}
		mt_expect_status(&st, prev(), TAG, len[got], "race");
		mt_expect(in, len[got], mt_key(prev(), mt.rank, got), "message %d of the race",
			  got);
		got++;
	}
	mt_free(in);
}

static void race(void)
{
	enum { N = 100 };
	struct util_rand shared = mt_rand_shared(1), own = mt_rand_own(2);
	size_t len[N];
	MPI_Request send[N];
	uint8_t *out[N];

	for (int i = 0; i < N; i++)
		len[i] = SIZES[util_rand_below(&shared, N_SIZES)];
	/* Even ranks first send and then receive, so that both sides are early somewhere. */
	for (int i = 0; i < N; i++) {
		out[i] = mt_alloc(len[i]);
		mt_fill(out[i], len[i], mt_key(mt.rank, next(), i));
		MPI_Isend(out[i], (int)len[i], MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &send[i]);
		if (mt.rank % 2 && i % 10 == 0)
			mt_nap((int)util_rand_below(&own, 300));
	}
	race_receive(len, N, &own);
	MPI_Waitall(N, send, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		mt_free(out[i]);
}

/* A persistent receive that was cancelled can be started again. */
static void persistent(void)
{
	for (int i = 0; i < N_SIZES; i++) {
		size_t len = SIZES[i];
		uint8_t *in = mt_alloc(len), *out = mt_alloc(len);
		MPI_Request recv, send;
		MPI_Status st;

		mt_fill(out, len, mt_key(mt.rank, next(), i));
		MPI_Recv_init(in, (int)len, MPI_BYTE, source_of(i), TAG, MPI_COMM_WORLD, &recv);
		for (int k = 0; k < 4; k++) {
			mt_poison(in, len);
			MPI_Start(&recv);
			if (k % 2 == 0) {
				CHECK(cancel(&recv, &st) == 1, "not cancelled");
				MPI_Barrier(MPI_COMM_WORLD);
				continue;
			}
			MPI_Isend(out, (int)len, MPI_BYTE, next(), TAG, MPI_COMM_WORLD, &send);
			MPI_Wait(&recv, &st);
			MPI_Wait(&send, MPI_STATUS_IGNORE);
			mt_expect_status(&st, prev(), TAG, len, "started again");
			mt_expect(in, len, mt_key(prev(), mt.rank, i), "started again");
			MPI_Barrier(MPI_COMM_WORLD);
		}
		MPI_Request_free(&recv);
		mt_free(in);
		mt_free(out);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_WORLD, &tokens);
	mt_part("without a message", no_message);
	mt_part("the next receive gets the message", next_receive);
	mt_part("some of many", some_of_many);
	mt_part("too late", too_late);
	mt_part("race with the message", race);
	mt_part("persistent", persistent);
	MPI_Comm_free(&tokens);
	return mt_done();
}
