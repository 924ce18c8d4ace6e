/* Messages that are longer than their receives: an error, not a disaster. Nothing is written
 * beyond the receive (inside, MPI promises nothing), the sender does not notice, and the messages
 * behind arrive. */
#include "mpi_test.h"

static MPI_Comm comm; /* whose errors are returned */

struct pair {
	size_t sent, room;
};
/* Both protocols, on either side of thresholds that receivers go by. */
static const struct pair PAIRS[] = {
	{1, 0},           {100, 99},      {4096, 10},        {8193, 8192},
	{8193, 100},      {65537, 65536}, {65537, 8192},     {200000, 0},
	{300000, 299999}, {1048576, 1},   {1048577, 131072}, {1048577, 524288},
};
enum { N_PAIRS = sizeof(PAIRS) / sizeof(*PAIRS), TAG = 5, OTHER = 6 };

static int class_of(int error)
{
	int class = MPI_SUCCESS;

	if (error != MPI_SUCCESS)
		MPI_Error_class(error, &class);
	return class;
}

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static int prev(void)
{
	return (mt.rank + mt.size - 1) % mt.size;
}

static void check_follower(int step)
{
	int got = -1, error;
	MPI_Status st;

	error = MPI_Recv(&got, 1, MPI_INT, prev(), TAG, comm, &st);
	CHECK(error == MPI_SUCCESS && got == step, "the message behind: error %d, %d not %d",
	      class_of(error), got, step);
}

/* receive: 0 posted before the message, 1 after it, 2 by MPI_Recv, 3 after a matched probe. */
static int receive(uint8_t *in, const struct pair *p, int how, MPI_Request *req)
{
	MPI_Message message;
	MPI_Status st;

	switch (how) {
	case 0:
		return MPI_Wait(req, &st);
	case 1:
		MPI_Probe(prev(), TAG, comm, &st);
		MPI_Irecv(in, (int)p->room, MPI_BYTE, prev(), TAG, comm, req);
		return MPI_Wait(req, &st);
	case 2:
		return MPI_Recv(in, (int)p->room, MPI_BYTE, prev(), TAG, comm, &st);
	default:
		MPI_Mprobe(prev(), TAG, comm, &message, &st);
		return MPI_Mrecv(in, (int)p->room, MPI_BYTE, &message, &st);
	}
}

static void truncated(const struct pair *p, int how, int step)
{
	uint8_t *out = mt_alloc(p->sent), *in = mt_alloc(p->room);
	MPI_Request send[2], recv;
	int error;

	mt_fill(out, p->sent, mt_key(mt.rank, next(), step));
	mt_poison(in, p->room);
	if (how == 0)
		MPI_Irecv(in, (int)p->room, MPI_BYTE, prev(), TAG, comm, &recv);
	MPI_Barrier(comm);
	MPI_Isend(out, (int)p->sent, MPI_BYTE, next(), TAG, comm, &send[0]);
	MPI_Isend(&step, 1, MPI_INT, next(), TAG, comm, &send[1]);
	error = receive(in, p, how, &recv);
	CHECK(class_of(error) == MPI_ERR_TRUNCATE, "%zu bytes into %zu: error class %d", p->sent,
	      p->room, class_of(error));
	check_follower(step);
	error = MPI_Waitall(2, send, MPI_STATUSES_IGNORE);
	CHECK(error == MPI_SUCCESS, "the sender of %zu bytes gets error class %d", p->sent,
	      class_of(error));
	mt_free(out);
	mt_free(in);
}

static int how_received;
static void all_pairs(void)
{
	for (int i = 0; i < N_PAIRS; i++)
		truncated(&PAIRS[i], how_received, i);
}

/* Of three receives the middle one is too short: MPI_Waitall says which. */
static void among_others(void)
{
	enum { BIG = 100000, SMALL = 500 };

	for (int i = 0; i < 4; i++) {
		size_t len = i % 2 ? BIG : SMALL;
		uint8_t *out = mt_alloc(len), *in = mt_alloc(3 * len);
		MPI_Request recv[3], send[3];
		MPI_Status st[3];
		int error;

		mt_fill(out, len, mt_key(mt.rank, next(), i));
		mt_poison(in, 3 * len);
		for (int k = 0; k < 3; k++)
			MPI_Irecv(in + (size_t)k * len, (int)(k == 1 ? len / 2 : len), MPI_BYTE,
				  prev(), OTHER, comm, &recv[k]);
		MPI_Barrier(comm);
		for (int k = 0; k < 3; k++)
			MPI_Isend(out, (int)len, MPI_BYTE, next(), OTHER, comm, &send[k]);
		error = MPI_Waitall(3, recv, st);
		/* It may return before the others are done, and then says so. */
		for (int k = 0; k < 3; k++)
			if (class_of(error) == MPI_ERR_IN_STATUS &&
			    class_of(st[k].MPI_ERROR) == MPI_ERR_PENDING)
				st[k].MPI_ERROR = MPI_Wait(&recv[k], &st[k]);
		CHECK(class_of(error) == MPI_ERR_IN_STATUS, "waitall: error class %d",
		      class_of(error));
		CHECK(class_of(st[0].MPI_ERROR) == MPI_SUCCESS &&
			      class_of(st[1].MPI_ERROR) == MPI_ERR_TRUNCATE &&
			      class_of(st[2].MPI_ERROR) == MPI_SUCCESS,
		      "error classes %d %d %d in the statuses", class_of(st[0].MPI_ERROR),
		      class_of(st[1].MPI_ERROR), class_of(st[2].MPI_ERROR));
		MPI_Waitall(3, send, MPI_STATUSES_IGNORE);
		mt_expect(in, len, mt_key(prev(), mt.rank, i), "the first");
		mt_expect(in + 2 * len, len, mt_key(prev(), mt.rank, i), "the last");
		CHECK(mt_poisoned(in + len + len / 2, len - len / 2) == len - len / 2,
		      "written behind a short receive");
		mt_free(out);
		mt_free(in);
	}
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"posted before", "posted after", "blocking", "mprobe"};

	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
	/* MPICH 4.0 asks this one when a request fails that has forgotten its communicator. */
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	for (how_received = 0; how_received < 4; how_received++) {
		if (mt_begin("truncated, %s", names[how_received])) {
			all_pairs();
			mt_end();
		}
	}
	mt_part("truncated among others", among_others);
	MPI_Comm_free(&comm);
	return mt_done();
}
