/* Many messages at once, to everybody, to oneself, and to nobody. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

static const size_t SIZES[] = {0, 5, 64, 1000, 8191, 8193, 30000, 65536, 65537, 131071};
enum { N_SIZES = sizeof(SIZES) / sizeof(*SIZES) };

/* ---- everybody to everybody ---- */

struct flood {
	int n; /* messages of each rank to each other rank */
	int in_order;
	MPI_Request *sends, *recvs;
	uint8_t **out, **in;
};

static size_t size_of(int from, int to, int i)
{
	return SIZES[(from * 3 + to * 5 + i) % N_SIZES];
}

/* Slot k of all: message k / size with rank k % size. */
static void post_sends(struct flood *f)
{
	for (int k = 0; k < f->n * mt.size; k++) {
		int to = (k + mt.rank) % mt.size, i = k / mt.size;
		size_t len = size_of(mt.rank, to, i);

		f->out[k] = mt_alloc(len);
		mt_fill(f->out[k], len, mt_key(mt.rank, to, i));
		MPI_Isend(f->out[k], (int)len, MPI_BYTE, to, i, MPI_COMM_WORLD, &f->sends[k]);
	}
}

static void post_recvs(struct flood *f)
{
	for (int j = 0; j < f->n * mt.size; j++) {
		int k = f->in_order ? j : f->n * mt.size - 1 - j;
		int from = k % mt.size, i = k / mt.size;
		size_t len = size_of(from, mt.rank, i);

		f->in[k] = mt_alloc(len);
		mt_poison(f->in[k], len);
		MPI_Irecv(f->in[k], (int)len, MPI_BYTE, from, i, MPI_COMM_WORLD, &f->recvs[k]);
	}
}

static void check_flood(struct flood *f)
{
	int total = f->n * mt.size;
	MPI_Status *st = mt_alloc((size_t)total * sizeof(*st));

	MPI_Waitall(total, f->recvs, st);
	MPI_Waitall(total, f->sends, MPI_STATUSES_IGNORE);
	for (int k = 0; k < total; k++) {
		int from = k % mt.size, i = k / mt.size;
		size_t len = size_of(from, mt.rank, i);

		mt_expect_status(&st[k], from, i, len, "flood");
		mt_expect(f->in[k], len, mt_key(from, mt.rank, i), "message %d of %d", i, from);
		mt_free(f->in[k]);
		mt_free(f->out[k]);
	}
	mt_free(st);
}

static void flood(int receives_first, int in_order)
{
	struct flood f = {.n = 240 / mt.size, .in_order = in_order};
	size_t total = (size_t)(f.n * mt.size);

	f.sends = mt_alloc(total * sizeof(*f.sends));
	f.recvs = mt_alloc(total * sizeof(*f.recvs));
	f.out = mt_alloc(total * sizeof(*f.out));
	f.in = mt_alloc(total * sizeof(*f.in));
	if (receives_first) {
		post_recvs(&f);
		MPI_Barrier(MPI_COMM_WORLD);
		post_sends(&f);
	} else {
		post_sends(&f);
		MPI_Barrier(MPI_COMM_WORLD);
		post_recvs(&f);
	}
	check_flood(&f);
	mt_free(f.sends);
	mt_free(f.recvs);
	mt_free(f.out);
	mt_free(f.in);
}

static void receives_first(void)
{
	flood(1, 1);
	flood(1, 0);
}

static void sends_first(void)
{
	flood(0, 1);
	flood(0, 0);
}

/* Everybody to rank 0 at once, which takes what comes, one after the other. */
static void incast(void)
{
	enum { N = 200, LEN = 3000 };
	uint8_t *buf = mt_alloc(LEN);
	MPI_Status st;

	if (mt.rank != 0) {
		for (int i = 0; i < N; i++) {
			mt_fill(buf, LEN, mt_key(mt.rank, 0, i));
			MPI_Send(buf, LEN, MPI_BYTE, 0, i, MPI_COMM_WORLD);
		}
	} else {
		int *next = calloc((size_t)mt.size, sizeof(*next));

		for (int k = 0; k < N * (mt.size - 1); k++) {
			MPI_Recv(buf, LEN, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
				 &st);
			mt_expect_status(&st, st.MPI_SOURCE, next[st.MPI_SOURCE]++, LEN, "incast");
			mt_expect(buf, LEN, mt_key(st.MPI_SOURCE, 0, st.MPI_TAG), "incast from %d",
				  st.MPI_SOURCE);
		}
		free(next);
	}
	mt_free(buf);
}

/* Small requests outlast small resources: thousands of sends without a wait in between. */
static void small_burst(void)
{
	enum { N = 4000 };
	int to = (mt.rank + 1) % mt.size, from = (mt.rank + mt.size - 1) % mt.size;
	MPI_Request *req = mt_alloc(2 * N * sizeof(*req));
	int *out = mt_alloc(N * sizeof(*out)), *in = mt_alloc(N * sizeof(*in));
	int wrong = 0;

	for (int i = 0; i < N; i++) {
		out[i] = mt.rank * N + i;
		MPI_Isend(&out[i], 1, MPI_INT, to, 3, MPI_COMM_WORLD, &req[i]);
	}
	for (int i = 0; i < N; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, from, 3, MPI_COMM_WORLD, &req[N + i]);
	MPI_Waitall(2 * N, req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		wrong += in[i] != from * N + i;
	CHECK(wrong == 0, "%d of %d messages wrong or out of order", wrong, N);
	mt_free(req);
	mt_free(out);
	mt_free(in);
}

/* ---- rings ---- */

static void sendrecv(void)
{
	for (int k = 1; k < mt.size && k < 6; k++)
		for (int i = 0; i < N_SIZES; i++) {
			int to = (mt.rank + k) % mt.size, from = (mt.rank + mt.size - k) % mt.size;
			size_t len = SIZES[i], got = size_of(from, mt.rank, i);
			size_t sent = size_of(mt.rank, to, i);
			uint8_t *out = mt_alloc(sent), *in = mt_alloc(got), *both = mt_alloc(len);
			MPI_Status st;

			mt_fill(out, sent, mt_key(mt.rank, to, i));
			MPI_Sendrecv(out, (int)sent, MPI_BYTE, to, i, in, (int)got, MPI_BYTE, from,
				     i, MPI_COMM_WORLD, &st);
			mt_expect_status(&st, from, i, got, "sendrecv");
			mt_expect(in, got, mt_key(from, mt.rank, i), "sendrecv from %d", from);
			mt_fill(both, len, mt_key(mt.rank, to, i + 100));
			MPI_Sendrecv_replace(both, (int)len, MPI_BYTE, to, i, from, i,
					     MPI_COMM_WORLD, &st);
			mt_expect_status(&st, from, i, len, "sendrecv_replace");
			mt_expect(both, len, mt_key(from, mt.rank, i + 100),
				  "sendrecv_replace from %d", from);
			mt_free(out);
			mt_free(in);
			mt_free(both);
		}
}

/* ---- oneself ---- */

static void self_once(size_t len, int i)
{
	uint8_t *out = mt_alloc(len), *in = mt_alloc(len + 8);
	MPI_Request req[2];
	MPI_Status st[2];

	mt_fill(out, len, mt_key(mt.rank, mt.rank, i));
	mt_poison(in, len + 8);
	if (i % 2)
		MPI_Irecv(in, (int)len + 8, MPI_BYTE, i % 4 < 2 ? mt.rank : MPI_ANY_SOURCE, i,
			  MPI_COMM_WORLD, &req[0]);
	if (i % 3)
		MPI_Isend(out, (int)len, MPI_BYTE, mt.rank, i, MPI_COMM_WORLD, &req[1]);
	else
		MPI_Issend(out, (int)len, MPI_BYTE, mt.rank, i, MPI_COMM_WORLD, &req[1]);
	if (i % 2 == 0) {
		MPI_Probe(mt.rank, i, MPI_COMM_WORLD, &st[0]);
		mt_expect_status(&st[0], mt.rank, i, len, "probe of oneself");
		MPI_Irecv(in, (int)len + 8, MPI_BYTE, mt.rank, i, MPI_COMM_WORLD, &req[0]);
	}
	MPI_Waitall(2, req, st);
	mt_expect_status(&st[0], mt.rank, i, len, "to oneself");
	mt_expect(in, len, mt_key(mt.rank, mt.rank, i), "to oneself");
	CHECK(mt_poisoned(in + len, 8) == 8, "written behind %zu bytes to oneself", len);
	mt_free(out);
	mt_free(in);
}

static void self(void)
{
	size_t sizes[MT_SIZES];
	int n = mt_sizes(sizes, MT_SIZES, 1 << 20);

	for (int i = 0; i < 2 * n; i++)
		self_once(sizes[i / 2], i);
}

/* ---- nobody ---- */

static void expect_nobody(const MPI_Status *st, const char *what)
{
	mt_expect_status(st, MPI_PROC_NULL, MPI_ANY_TAG, 0, what);
}

static void nobody(void)
{
	int x = 4711, flag = 0;
	MPI_Request req[3];
	MPI_Status st[3];
	MPI_Message message;

	MPI_Send(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Ssend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
	MPI_Recv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st[0]);
	expect_nobody(&st[0], "receive");
	MPI_Sendrecv(&x, 1, MPI_INT, MPI_PROC_NULL, 1, &x, 1, MPI_INT, MPI_PROC_NULL, 1,
		     MPI_COMM_WORLD, &st[0]);
	expect_nobody(&st[0], "sendrecv");
	MPI_Irecv(&x, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_WORLD, &req[0]);
	MPI_Isend(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req[1]);
	MPI_Recv_init(&x, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req[2]);
	MPI_Start(&req[2]);
	MPI_Waitall(3, req, st);
	expect_nobody(&st[0], "non-blocking receive");
	MPI_Request_free(&req[2]);
	MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &st[0]);
	expect_nobody(&st[0], "probe");
	MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &st[0]);
	CHECK(flag, "iprobe of nobody finds nothing");
	MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &st[0]);
	CHECK(message == MPI_MESSAGE_NO_PROC, "mprobe of nobody gives a message");
	MPI_Mrecv(&x, 1, MPI_INT, &message, &st[0]);
	expect_nobody(&st[0], "mrecv");
	CHECK(x == 4711 && message == MPI_MESSAGE_NULL, "a receive from nobody has changed %d", x);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("all to all, receives first", receives_first);
	mt_part("all to all, sends first", sends_first);
	mt_part("all to one", incast);
	mt_part("burst of small messages", small_burst);
	mt_part("sendrecv", sendrecv);
	mt_part("to oneself", self);
	mt_part("to nobody", nobody);
	return mt_done();
}
