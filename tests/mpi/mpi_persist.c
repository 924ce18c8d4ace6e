/* Persistent requests, and all ways to wait for several requests. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

static const size_t SIZES[] = {0, 3, 1000, 8192, 8193, 65537, 200001};
enum { N_SIZES = sizeof(SIZES) / sizeof(*SIZES), ROUNDS = 12 };

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static int prev(void)
{
	return (mt.rank + mt.size - 1) % mt.size;
}

/* ---- persistent ---- */

struct pair {
	uint8_t *out[N_SIZES], *in[N_SIZES];
	MPI_Request send[N_SIZES], recv[N_SIZES];
};

static void make(struct pair *p, int mode)
{
	for (int i = 0; i < N_SIZES; i++) {
		int len = (int)SIZES[i];

		p->out[i] = mt_alloc(SIZES[i]);
		p->in[i] = mt_alloc(SIZES[i]);
		MPI_Recv_init(p->in[i], len, MPI_BYTE, i % 2 ? prev() : MPI_ANY_SOURCE, i,
			      MPI_COMM_WORLD, &p->recv[i]);
		if (mode == 0)
			MPI_Send_init(p->out[i], len, MPI_BYTE, next(), i, MPI_COMM_WORLD,
				      &p->send[i]);
		else if (mode == 1)
			MPI_Ssend_init(p->out[i], len, MPI_BYTE, next(), i, MPI_COMM_WORLD,
				       &p->send[i]);
		else if (mode == 2)
			MPI_Bsend_init(p->out[i], len, MPI_BYTE, next(), i, MPI_COMM_WORLD,
				       &p->send[i]);
		else
			MPI_Rsend_init(p->out[i], len, MPI_BYTE, next(), i, MPI_COMM_WORLD,
				       &p->send[i]);
	}
}

static void round_trip(struct pair *p, int mode, int round)
{
	MPI_Status st[N_SIZES];

	for (int i = 0; i < N_SIZES; i++) {
		mt_fill(p->out[i], SIZES[i], mt_key(mt.rank, next(), round * 100 + i));
		mt_poison(p->in[i], SIZES[i]);
	}
	if (round % 2 || mode == 3) {
		MPI_Startall(N_SIZES, p->recv);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Startall(N_SIZES, p->send);
	} else {
		for (int i = N_SIZES - 1; i >= 0; i--)
			MPI_Start(&p->send[i]);
		for (int i = 0; i < N_SIZES; i++)
			MPI_Start(&p->recv[i]);
	}
	MPI_Waitall(N_SIZES, p->recv, st);
	MPI_Waitall(N_SIZES, p->send, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N_SIZES; i++) {
		CHECK(p->recv[i] != MPI_REQUEST_NULL && p->send[i] != MPI_REQUEST_NULL,
		      "a persistent request is gone after waiting");
		mt_expect_status(&st[i], prev(), i, SIZES[i], "persistent");
		mt_expect(p->in[i], SIZES[i], mt_key(prev(), mt.rank, round * 100 + i), "round %d",
			  round);
	}
}

static void unmake(struct pair *p)
{
	for (int i = 0; i < N_SIZES; i++) {
		MPI_Request_free(&p->send[i]);
		MPI_Request_free(&p->recv[i]);
		CHECK(p->recv[i] == MPI_REQUEST_NULL, "not null after free");
		mt_free(p->out[i]);
		mt_free(p->in[i]);
	}
}

static void persistent(int mode)
{
	/* Open MPI 4.1 sends the data of the first start again (ob1: or something else). */
	int once = mode == 2 && mt_library("Open MPI");
	struct pair *p = mt_alloc(sizeof(*p));
	int room = N_SIZES * MPI_BSEND_OVERHEAD;
	void *space;

	for (int i = 0; i < N_SIZES; i++)
		room += (int)SIZES[i] + 8;
	space = mt_alloc((size_t)room);
	for (int round = 0; round < ROUNDS; round++) {
		/* Attached and detached each time: space of the last round may be in use yet. */
		if (mode == 2)
			MPI_Buffer_attach(space, room);
		if (once || round == 0)
			make(p, mode);
		round_trip(p, mode, round);
		if (once || round == ROUNDS - 1)
			unmake(p);
		if (mode == 2)
			MPI_Buffer_detach(&space, &room);
	}
	mt_free(space);
	mt_free(p);
}

/* ---- several requests ---- */

enum { N = 24 };
struct set {
	MPI_Request req[N];
	uint8_t *in[N];
	uint8_t *out[N];
	MPI_Request send[N];
	int seen[N];
};

/* Everybody sends to the next, with a pause now and then, so that not all is there at once. */
static void start(struct set *s, int step)
{
	memset(s->seen, 0, sizeof(s->seen));
	for (int i = 0; i < N; i++) {
		size_t len = SIZES[i % N_SIZES];

		s->in[i] = mt_alloc(len);
		s->out[i] = mt_alloc(len);
		mt_poison(s->in[i], len);
		mt_fill(s->out[i], len, mt_key(mt.rank, next(), step + i));
		MPI_Irecv(s->in[i], (int)len, MPI_BYTE, prev(), i, MPI_COMM_WORLD, &s->req[i]);
	}
	for (int k = 0; k < N; k++) {
		int i = (k * 7 + 3) % N; /* 7 and 24 have no common divisor */

		MPI_Isend(s->out[i], (int)SIZES[i % N_SIZES], MPI_BYTE, next(), i, MPI_COMM_WORLD,
			  &s->send[i]);
		if (k % 8 == 5)
			mt_nap(200);
	}
}

static void done(struct set *s, int i, const MPI_Status *st, int step)
{
	CHECK(i >= 0 && i < N && !s->seen[i], "request %d completes twice or never was", i);
	if (i < 0 || i >= N)
		return;
	s->seen[i] = 1;
	CHECK(s->req[i] == MPI_REQUEST_NULL, "request %d is not null after completion", i);
	mt_expect_status(st, prev(), i, SIZES[i % N_SIZES], "one of several");
	mt_expect(s->in[i], SIZES[i % N_SIZES], mt_key(prev(), mt.rank, step + i), "request %d", i);
}

static void finish(struct set *s)
{
	int open = 0, index = 0, flag = 0, n = 0, indices[N];
	MPI_Status st, sts[N];

	MPI_Waitall(N, s->send, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++) {
		open += !s->seen[i];
		mt_free(s->in[i]);
		mt_free(s->out[i]);
	}
	CHECK(open == 0, "%d requests never completed", open);
	MPI_Waitany(N, s->req, &index, &st);
	CHECK(index == MPI_UNDEFINED, "waitany of null requests: %d", index);
	MPI_Waitsome(N, s->req, &n, indices, sts);
	CHECK(n == MPI_UNDEFINED, "waitsome of null requests: %d", n);
	MPI_Testany(N, s->req, &index, &flag, &st);
	CHECK(flag && index == MPI_UNDEFINED, "testany of null requests: %d %d", flag, index);
	flag = 0;
	MPI_Testall(N, s->req, &flag, sts);
	CHECK(flag, "testall of null requests");
	mt_expect_status(&sts[0], MPI_ANY_SOURCE, MPI_ANY_TAG, 0, "empty status");
}

static void waitany(void)
{
	struct set *s = mt_alloc(sizeof(*s));
	MPI_Status st;
	int i;

	start(s, 1000);
	for (int k = 0; k < N; k++) {
		MPI_Waitany(N, s->req, &i, &st);
		done(s, i, &st, 1000);
	}
	finish(s);
	mt_free(s);
}

static void testany(void)
{
	struct set *s = mt_alloc(sizeof(*s));
	MPI_Status st;
	int i, flag;

	start(s, 2000);
	for (int k = 0; k < N;) {
		MPI_Testany(N, s->req, &i, &flag, &st);
		if (flag) {
			done(s, i, &st, 2000);
			k++;
		}
		mt_relax();
	}
	finish(s);
	mt_free(s);
}

static void some(int wait, int step)
{
	struct set *s = mt_alloc(sizeof(*s));
	int indices[N], n;
	MPI_Status st[N];

	start(s, step);
	for (int k = 0; k < N;) {
		if (wait)
			MPI_Waitsome(N, s->req, &n, indices, st);
		else
			MPI_Testsome(N, s->req, &n, indices, st);
		CHECK(n >= wait && n <= N - k, "%d of some", n);
		if (n < 0 || n > N)
			break;
		for (int j = 0; j < n; j++)
			done(s, indices[j], &st[j], step);
		k += n;
		mt_relax();
	}
	finish(s);
	mt_free(s);
}

static void waitsome(void)
{
	some(1, 3000);
}

static void testsome(void)
{
	some(0, 4000);
}

static void testall(void)
{
	struct set *s = mt_alloc(sizeof(*s));
	MPI_Status st[N];
	int flag = 0;

	start(s, 5000);
	while (!flag) {
		MPI_Testall(N, s->req, &flag, st);
		for (int i = 0; i < N && !flag; i++)
			if (s->req[i] == MPI_REQUEST_NULL)
				CHECK(0, "testall without success has taken request %d", i);
		mt_relax();
	}
	for (int i = 0; i < N; i++)
		done(s, i, &st[i], 5000);
	finish(s);
	mt_free(s);
}

/* Looks without taking: the request stays, the status is there already. */
static void get_status(void)
{
	struct set *s = mt_alloc(sizeof(*s));
	MPI_Status st;

	start(s, 6000);
	for (int i = 0; i < N; i++) {
		int flag = 0;

		for (; !flag; mt_relax())
			MPI_Request_get_status(s->req[i], &flag, &st);
		CHECK(s->req[i] != MPI_REQUEST_NULL, "get_status has taken the request");
		mt_expect_status(&st, prev(), i, SIZES[i % N_SIZES], "get_status");
		MPI_Test(&s->req[i], &flag, &st);
		CHECK(flag, "was done, and is not any more");
		done(s, i, &st, 6000);
	}
	finish(s);
	mt_free(s);
}

/* An inactive persistent request is complete, with an empty status, and does not hold up others. */
static void inactive(void)
{
	int x = mt.rank, y = -1, index, flag = 0;
	MPI_Request req[2];
	MPI_Status st;

	MPI_Recv_init(&y, 1, MPI_INT, prev(), 1, MPI_COMM_WORLD, &req[0]);
	MPI_Recv_init(&y, 1, MPI_INT, prev(), 2, MPI_COMM_WORLD, &req[1]);
	MPI_Test(&req[0], &flag, &st);
	CHECK(flag, "an inactive request is not complete");
	mt_expect_status(&st, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, "inactive");
	MPI_Start(&req[1]);
	MPI_Send(&x, 1, MPI_INT, next(), 2, MPI_COMM_WORLD);
	MPI_Waitany(2, req, &index, &st);
	CHECK(index == 1 && y == prev(), "waitany gives %d and %d", index, y);
	MPI_Waitany(2, req, &index, &st);
	CHECK(index == MPI_UNDEFINED, "waitany of inactive requests: %d", index);
	MPI_Request_free(&req[0]);
	MPI_Request_free(&req[1]);
}

int main(int argc, char **argv)
{
	static const char *const modes[] = {"standard", "synchronous", "buffered", "ready"};

	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	for (int mode = 0; mode < 4; mode++)
		if (mt_begin("persistent, %s", modes[mode])) {
			persistent(mode);
			mt_end();
		}
	mt_part("inactive", inactive);
	mt_part("waitany", waitany);
	mt_part("testany", testany);
	mt_part("waitsome", waitsome);
	mt_part("testsome", testsome);
	mt_part("testall", testall);
	mt_part("request_get_status", get_status);
	return mt_done();
}
