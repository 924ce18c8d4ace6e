/* Messages between two ranks: every mode, blocking and not, of all sizes, with either side
 * early. */
#include "mpi_test.h"

#include <stdlib.h>

enum mode { STANDARD, SYNCHRONOUS, BUFFERED, READY, MODES };
static const char *const mode_names[] = {"standard", "synchronous", "buffered", "ready"};

enum { TAG = 17, TOKEN = 18 };
static const size_t THRESHOLDS[] = {0,     1,     8,     4095,  8191,   8192,   8193,
				    16385, 65535, 65536, 65537, 262143, 1048579};
enum { N_THRESHOLDS = sizeof(THRESHOLDS) / sizeof(*THRESHOLDS) };

/* The lower half with the upper half: neighbours are often on one host. With an odd number of
 * ranks the last has nobody. */
static int partner(void)
{
	int half = mt.size / 2;

	if (mt.rank < half)
		return mt.rank + half;
	return mt.rank < 2 * half ? mt.rank - half : MPI_PROC_NULL;
}

static int lower(void)
{
	return mt.rank < mt.size / 2;
}

static void token_to(int to)
{
	MPI_Send(NULL, 0, MPI_BYTE, to, TOKEN, MPI_COMM_WORLD);
}

static void token_from(int from)
{
	MPI_Recv(NULL, 0, MPI_BYTE, from, TOKEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- every mode ---- */

static void *attach(size_t len)
{
	int room = (int)len + MPI_BSEND_OVERHEAD;
	void *space = mt_alloc((size_t)room);

	MPI_Buffer_attach(space, room);
	return space;
}

static void detach(void)
{
	void *space;
	int room;

	MPI_Buffer_detach(&space, &room);
	mt_free(space);
}

static void send_as(enum mode mode, const void *buf, size_t len, int to)
{
	int n = (int)len;

	switch (mode) {
	case SYNCHRONOUS:
		MPI_Ssend(buf, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
		break;
	case BUFFERED:
		attach(len);
		MPI_Bsend(buf, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
		detach();
		break;
	case READY:
		MPI_Rsend(buf, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
		break;
	default:
		MPI_Send(buf, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
		break;
	}
}

static void isend_as(enum mode mode, const void *buf, size_t len, int to, MPI_Request *req)
{
	int n = (int)len;

	switch (mode) {
	case SYNCHRONOUS:
		MPI_Issend(buf, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD, req);
		break;
	case BUFFERED:
		MPI_Ibsend(buf, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD, req);
		break;
	case READY:
		MPI_Irsend(buf, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD, req);
		break;
	default:
		MPI_Isend(buf, n, MPI_BYTE, to, TAG, MPI_COMM_WORLD, req);
		break;
	}
}

static void check_received(uint8_t *buf, size_t len, int from, int step, const MPI_Status *st)
{
	mt_expect_status(st, from, TAG, len, "receive");
	mt_expect(buf, len, mt_key(from, mt.rank, step), "step %d from %d", step, from);
}

static void blocking_send(enum mode mode, size_t len, int to, int step)
{
	uint8_t *buf = mt_alloc(len);

	mt_fill(buf, len, mt_key(mt.rank, to, step));
	if (mode == READY)
		token_from(to);
	send_as(mode, buf, len, to);
	mt_free(buf);
}

static void blocking_recv(enum mode mode, size_t len, int from, int step)
{
	uint8_t *buf = mt_alloc(len);
	MPI_Request req;
	MPI_Status st;

	mt_poison(buf, len);
	if (mode == READY) {
		MPI_Irecv(buf, (int)len, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &req);
		token_to(from);
		MPI_Wait(&req, &st);
	} else {
		MPI_Recv(buf, (int)len, MPI_BYTE, from, TAG, MPI_COMM_WORLD, &st);
	}
	check_received(buf, len, from, step, &st);
	mt_free(buf);
}

static void blocking(enum mode mode)
{
	size_t sizes[MT_SIZES];
	int n = mt_sizes(sizes, MT_SIZES, 1 << 20), peer = partner();

	for (int i = 0; i < n && peer != MPI_PROC_NULL; i++) {
		if (lower()) {
			blocking_send(mode, sizes[i], peer, i);
			blocking_recv(mode, sizes[i], peer, i);
		} else {
			blocking_recv(mode, sizes[i], peer, i);
			blocking_send(mode, sizes[i], peer, i);
		}
	}
}

/* Both send to each other at once. Every second receive buffer is larger than what comes. */
static void crossing(enum mode mode, size_t len, int peer, int step)
{
	size_t room = step % 2 ? len : len + len / 2 + 100;
	uint8_t *out = mt_alloc(len), *in = mt_alloc(room);
	MPI_Request req[2];
	MPI_Status st[2];

	mt_fill(out, len, mt_key(mt.rank, peer, step));
	mt_poison(in, room);
	if (mode == BUFFERED)
		attach(len);
	MPI_Irecv(in, (int)room, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req[0]);
	if (mode == READY)
		MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, TOKEN, NULL, 0, MPI_BYTE, peer, TOKEN,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	isend_as(mode, out, len, peer, &req[1]);
	if (step % 3 == 0) {
		MPI_Wait(&req[1], &st[1]);
		MPI_Wait(&req[0], &st[0]);
	} else {
		MPI_Waitall(2, req, st);
	}
	if (mode == BUFFERED)
		detach();
	check_received(in, len, peer, step, &st[0]);
	CHECK(mt_poisoned(in + len, room - len) == room - len,
	      "written behind a message of %zu bytes", len);
	mt_free(out);
	mt_free(in);
}

static void nonblocking(enum mode mode)
{
	size_t sizes[MT_SIZES];
	int n = mt_sizes(sizes, MT_SIZES, 1 << 20), peer = partner();

	for (int i = 0; i < n && peer != MPI_PROC_NULL; i++)
		crossing(mode, sizes[i], peer, i);
}

/* ---- one side early ---- */

/* The receive is there long before the message; the receiver does other things meanwhile and
 * comes back with MPI_Test or MPI_Wait. */
static void early_receiver(void)
{
	int peer = partner();

	for (int i = 0; i < 2 * N_THRESHOLDS && peer != MPI_PROC_NULL; i++) {
		size_t len = THRESHOLDS[i / 2];
		uint8_t *buf = mt_alloc(len);
		MPI_Request req;
		MPI_Status st;

		if (lower() == i % 2) {
			mt_fill(buf, len, mt_key(mt.rank, peer, i));
			token_from(peer);
			mt_nap(500);
			MPI_Send(buf, (int)len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
		} else {
			int done = 0;

			mt_poison(buf, len);
			MPI_Irecv(buf, (int)len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req);
			token_to(peer);
			mt_nap(1500);
			while (i % 4 < 2 && !done) {
				MPI_Test(&req, &done, &st);
				mt_relax();
			}
			if (!done)
				MPI_Wait(&req, &st);
			check_received(buf, len, peer, i, &st);
		}
		mt_free(buf);
	}
}

static void early_sender(void)
{
	int peer = partner();

	for (int i = 0; i < 2 * N_THRESHOLDS && peer != MPI_PROC_NULL; i++) {
		size_t len = THRESHOLDS[i / 2];
		uint8_t *buf = mt_alloc(len);
		MPI_Request req;
		MPI_Status st;

		if (lower() == i % 2) {
			mt_fill(buf, len, mt_key(mt.rank, peer, i));
			MPI_Isend(buf, (int)len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req);
			token_to(peer);
			mt_nap(1000);
			MPI_Wait(&req, MPI_STATUS_IGNORE);
		} else {
			mt_poison(buf, len);
			token_from(peer);
			mt_nap(500);
			MPI_Recv(buf, (int)len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &st);
			check_received(buf, len, peer, i, &st);
		}
		mt_free(buf);
	}
}

/* A synchronous send is not complete before its receive is posted, whatever its size. The
 * receiver posts it only after a word from the sender. */
static void sync_send(int peer, size_t len, int step)
{
	uint8_t *buf = mt_alloc(len);
	MPI_Request req;
	int done = 0;

	mt_fill(buf, len, mt_key(mt.rank, peer, step));
	MPI_Issend(buf, (int)len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &req);
	for (int i = 0; i < 10 && !done; i++) {
		mt_nap(200);
		MPI_Test(&req, &done, MPI_STATUS_IGNORE);
	}
	CHECK(!done, "synchronous send of %zu bytes is done, but there is no receive", len);
	token_to(peer);
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	mt_free(buf);
}

static void synchronous_waits(void)
{
	int peer = partner();

	for (int i = 0; i < N_THRESHOLDS && peer != MPI_PROC_NULL; i++) {
		size_t len = THRESHOLDS[i];
		uint8_t *buf;
		MPI_Status st;

		if (lower() == i % 2) {
			sync_send(peer, len, i);
			continue;
		}
		buf = mt_alloc(len);
		token_from(peer);
		MPI_Recv(buf, (int)len, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &st);
		check_received(buf, len, peer, i, &st);
		mt_free(buf);
	}
}

/* ---- large ---- */

/* Between the first and the last rank, which are on different hosts if any are. */
static void huge(void)
{
	static const size_t mb[] = {4, 16, 64};
	int peer = mt.rank == 0 ? mt.size - 1 : 0;

	for (int i = 0; i < 5 && (mt.rank == 0 || mt.rank == mt.size - 1); i++) {
		size_t len = (mb[i / 2] << 20) + (i / 2 < 2 ? (size_t)i - 1 : 0);

		if ((mt.rank == 0) == (i % 2 == 0))
			blocking_send(STANDARD, len, peer, i);
		else
			blocking_recv(STANDARD, len, peer, i);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	for (int mode = 0; mode < MODES; mode++)
		if (mt_begin("blocking, %s", mode_names[mode])) {
			blocking((enum mode)mode);
			mt_end();
		}
	for (int mode = 0; mode < MODES; mode++)
		if (mt_begin("non-blocking and crossing, %s", mode_names[mode])) {
			nonblocking((enum mode)mode);
			mt_end();
		}
	mt_part("early receiver", early_receiver);
	mt_part("early sender", early_sender);
	mt_part("synchronous sends wait", synchronous_waits);
	mt_part("up to 64 MiB", huge);
	return mt_done();
}
