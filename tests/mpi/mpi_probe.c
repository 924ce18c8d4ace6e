/* Looking at messages before receiving them: probe, iprobe, mprobe, improbe, mrecv, imrecv. */
#include "mpi_test.h"

#include <stdlib.h>

static const size_t SIZES[] = {0, 1, 100, 4096, 8191, 8192, 8193, 65535, 65536, 65537, 500000};
enum { N_SIZES = sizeof(SIZES) / sizeof(*SIZES) };

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static int prev(void)
{
	return (mt.rank + mt.size - 1) % mt.size;
}

static void *start_send(size_t len, int to, int tag, int step, MPI_Request *req)
{
	uint8_t *out = mt_alloc(len);

	mt_fill(out, len, mt_key(mt.rank, to, step));
	MPI_Isend(out, (int)len, MPI_BYTE, to, tag, MPI_COMM_WORLD, req);
	return out;
}

static void finish_send(void *out, MPI_Request *req)
{
	MPI_Wait(req, MPI_STATUS_IGNORE);
	mt_free(out);
}

enum how { PROBE, IPROBE, MPROBE, IMPROBE, HOWS };
static const char *const how_names[] = {"probe", "iprobe", "mprobe", "improbe"};

/* Returns the message for the matched kinds. */
static MPI_Message look(enum how how, int source, int tag, MPI_Status *st)
{
	MPI_Message message = MPI_MESSAGE_NULL;
	int found = 0;

	switch (how) {
	case PROBE:
		MPI_Probe(source, tag, MPI_COMM_WORLD, st);
		break;
	case MPROBE:
		MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, st);
		break;
	case IPROBE:
		for (; !found; mt_relax())
			MPI_Iprobe(source, tag, MPI_COMM_WORLD, &found, st);
		break;
	default:
		for (; !found; mt_relax())
			MPI_Improbe(source, tag, MPI_COMM_WORLD, &found, &message, st);
		break;
	}
	return message;
}

/* By the message if there is one; every second time without blocking. */
static void take(uint8_t *in, size_t len, MPI_Message message, int from, int tag, MPI_Status *st,
		 int step)
{
	MPI_Request req;

	if (message == MPI_MESSAGE_NULL) {
		MPI_Recv(in, (int)len, MPI_BYTE, from, tag, MPI_COMM_WORLD, st);
	} else if (step % 2) {
		MPI_Imrecv(in, (int)len, MPI_BYTE, &message, &req);
		MPI_Wait(&req, st);
	} else {
		MPI_Mrecv(in, (int)len, MPI_BYTE, &message, st);
	}
	CHECK(message == MPI_MESSAGE_NULL, "the handle of a received message is not null");
}

/* wild: 0 by source and tag, 1 any source, 2 any tag, 3 both. */
static void sizes(enum how how, int wild)
{
	for (int i = 0; i < N_SIZES; i++) {
		size_t len = SIZES[i];
		int source = wild & 1 ? MPI_ANY_SOURCE : prev();
		int tag = wild & 2 ? MPI_ANY_TAG : i;
		MPI_Message message;
		MPI_Request req;
		MPI_Status st;
		uint8_t *in;
		void *out = start_send(len, next(), i, i, &req);
		int count = -1;

		message = look(how, source, tag, &st);
		mt_expect_status(&st, prev(), i, len, how_names[how]);
		MPI_Get_count(&st, MPI_SHORT, &count);
		CHECK(len % 2 ? count == MPI_UNDEFINED : (size_t)count == len / 2,
		      "%zu bytes are %d shorts", len, count);
		in = mt_alloc(len);
		mt_poison(in, len);
		take(in, len, message, st.MPI_SOURCE, st.MPI_TAG, &st, i);
		mt_expect_status(&st, prev(), i, len, "what was found");
		mt_expect(in, len, mt_key(prev(), mt.rank, i), "found by %s", how_names[how]);
		mt_free(in);
		finish_send(out, &req);
		/* A neighbour that is one message ahead would be found by any tag. */
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* What is not there is not found: other tags, sources and communicators do not count. */
static void nothing_there(void)
{
	int found = 1, x = 1, y = 0;
	MPI_Message message = MPI_MESSAGE_NULL;
	MPI_Request req;
	MPI_Status st;
	MPI_Comm other;

	MPI_Comm_dup(MPI_COMM_WORLD, &other);
	MPI_Isend(&x, 1, MPI_INT, next(), 7, other, &req);
	MPI_Probe(prev(), 7, other, &st); /* it is here now */
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &st);
	CHECK(!found, "iprobe sees what was sent on another communicator");
	MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &message, &st);
	CHECK(!found, "improbe sees what was sent on another communicator");
	MPI_Iprobe(prev(), 8, other, &found, &st);
	CHECK(!found, "iprobe sees tag 7 as 8");
	MPI_Iprobe(mt.rank, 7, other, &found, &st);
	CHECK(!found || prev() == mt.rank, "iprobe takes rank %d for %d", prev(), mt.rank);
	MPI_Iprobe(MPI_ANY_SOURCE, 7, other, &found, &st);
	CHECK(found, "iprobe does not find what probe has found");
	MPI_Recv(&y, 1, MPI_INT, prev(), 7, other, &st);
	CHECK(y == 1, "got %d", y);
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, other, &found, &st);
	CHECK(!found, "iprobe finds what was received");
	MPI_Wait(&req, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Comm_free(&other);
}

/* A message that is matched by mprobe is nobody else's: the next receive gets the next message,
 * and matched ones may be received in any order. */
static void out_of_order(void)
{
	enum { N = 8, ROOM = 600000 };

	for (int round = 0; round < 6; round++) {
		MPI_Message message[N];
		MPI_Request req[N + 1];
		MPI_Status st;
		void *out[N + 1];
		uint8_t *in = mt_alloc(ROOM);

		for (int i = 0; i <= N; i++)
			out[i] =
				start_send(SIZES[(i * 7 + round) % N_SIZES], next(), 3, i, &req[i]);
		for (int i = 0; i < N; i++) {
			message[i] =
				look(i % 2 ? MPROBE : IMPROBE, round % 2 ? prev() : MPI_ANY_SOURCE,
				     round % 3 ? 3 : MPI_ANY_TAG, &st);
			mt_expect_status(&st, prev(), 3, SIZES[(i * 7 + round) % N_SIZES],
					 "matched");
		}
		MPI_Recv(in, ROOM, MPI_BYTE, prev(), 3, MPI_COMM_WORLD, &st);
		mt_expect_status(&st, prev(), 3, SIZES[(N * 7 + round) % N_SIZES], "not matched");
		mt_expect(in, SIZES[(N * 7 + round) % N_SIZES], mt_key(prev(), mt.rank, N),
			  "the one that was not matched");
		for (int k = 0; k < N; k++) {
			int i = (N - 1 - k + round) % N;
			size_t len = SIZES[(i * 7 + round) % N_SIZES];

			take(in, ROOM, message[i], prev(), 3, &st, k);
			mt_expect_status(&st, prev(), 3, len, "matched earlier");
			mt_expect(in, len, mt_key(prev(), mt.rank, i), "matched as %d", i);
		}
		for (int i = 0; i <= N; i++)
			finish_send(out[i], &req[i]);
		mt_free(in);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* Posted receives come first: a probe sees only what they leave. */
static void beside_receives(void)
{
	for (int i = 0; i < N_SIZES; i++) {
		size_t len = SIZES[i];
		uint8_t *in[2] = {mt_alloc(len), mt_alloc(len)};
		MPI_Request recv, req[2];
		MPI_Message message;
		MPI_Status st;
		void *out[2];

		MPI_Irecv(in[0], (int)len, MPI_BYTE, prev(), 4, MPI_COMM_WORLD, &recv);
		MPI_Barrier(MPI_COMM_WORLD);
		out[0] = start_send(len, next(), 4, 2 * i, &req[0]);
		out[1] = start_send(len, next(), 4, 2 * i + 1, &req[1]);
		message = look(i % 2 ? MPROBE : PROBE, MPI_ANY_SOURCE, 4, &st);
		take(in[1], len, message, prev(), 4, &st, i);
		MPI_Wait(&recv, &st);
		mt_expect_status(&st, prev(), 4, len, "posted");
		mt_expect(in[0], len, mt_key(prev(), mt.rank, 2 * i), "posted");
		mt_expect(in[1], len, mt_key(prev(), mt.rank, 2 * i + 1), "probed");
		for (int k = 0; k < 2; k++) {
			finish_send(out[k], &req[k]);
			mt_free(in[k]);
		}
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

/* From everybody, as they come: the source and size of the status are those of the message that
 * a receive with that source then gets. */
static void all_to_one(void)
{
	enum { N = 60 };
	MPI_Request req;
	MPI_Status st, got;

	if (mt.rank != 0) {
		for (int i = 0; i < N; i++) {
			size_t len = SIZES[(i + mt.rank) % N_SIZES];
			void *out = start_send(len, 0, i, i, &req);

			finish_send(out, &req);
		}
		return;
	}
	for (int k = 0; k < N * (mt.size - 1); k++) {
		MPI_Message message = look((enum how)(k % HOWS), MPI_ANY_SOURCE, MPI_ANY_TAG, &st);
		size_t len = SIZES[(st.MPI_TAG + st.MPI_SOURCE) % N_SIZES];
		uint8_t *in = mt_alloc(len);

		mt_expect_status(&st, st.MPI_SOURCE, st.MPI_TAG, len, "found");
		take(in, len, message, st.MPI_SOURCE, st.MPI_TAG, &got, k);
		mt_expect_status(&got, st.MPI_SOURCE, st.MPI_TAG, len, "received");
		mt_expect(in, len, mt_key(st.MPI_SOURCE, 0, st.MPI_TAG), "from %d", st.MPI_SOURCE);
		mt_free(in);
	}
}

int main(int argc, char **argv)
{
	static const char *const wild_names[] = {"", ", any source", ", any tag", ", any"};

	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	for (int how = 0; how < HOWS; how++)
		for (int wild = 0; wild < 4; wild++)
			if (mt_begin("%s%s", how_names[how], wild_names[wild])) {
				sizes((enum how)how, wild);
				mt_end();
			}
	mt_part("nothing there", nothing_there);
	mt_part("matched, received in other orders", out_of_order);
	mt_part("beside posted receives", beside_receives);
	mt_part("all to one", all_to_one);
	return mt_done();
}
