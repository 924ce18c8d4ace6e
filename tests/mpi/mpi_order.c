/* No overtaking: messages of one sender that match the same receives arrive in the order in which
 * they were sent, whatever their sizes, modes and protocols, however the receives are posted. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

enum { N = 120, ROOM = 300000 };

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static int prev(void)
{
	return (mt.rank + mt.size - 1) % mt.size;
}

/* Tiny and large take turns at random; most are near where protocols change. */
static size_t random_size(struct util_rand *r)
{
	static const size_t around[] = {0, 8, 100, 4096, 8192, 16384, 65536, 131072, 262144};
	size_t base = around[util_rand_below(r, sizeof(around) / sizeof(*around))];

	return base + util_rand_below(r, 65);
}

/* What rank sends in a part; the receiver draws the same. */
struct script {
	size_t len[N];
	int tag[N];
	int mode[N];
};

static struct script script_of(int rank, int part, int tags)
{
	struct util_rand r = mt_rand_shared(part * 64 + rank);
	struct script s;

	for (int i = 0; i < N; i++) {
		s.len[i] = random_size(&r);
		s.tag[i] = (int)util_rand_below(&r, (uint64_t)tags);
		s.mode[i] = (int)util_rand_below(&r, 3);
	}
	return s;
}

struct outgoing {
	uint8_t *buf[N];
	MPI_Request req[N];
};

static void send_one(struct outgoing *o, const struct script *s, int i, int to, MPI_Comm comm)
{
	o->buf[i] = mt_alloc(s->len[i]);
	mt_fill(o->buf[i], s->len[i], mt_key(mt.rank, to, i));
	if (s->mode[i] == 0)
		MPI_Issend(o->buf[i], (int)s->len[i], MPI_BYTE, to, s->tag[i], comm, &o->req[i]);
	else
		MPI_Isend(o->buf[i], (int)s->len[i], MPI_BYTE, to, s->tag[i], comm, &o->req[i]);
}

static void send_done(struct outgoing *o)
{
	MPI_Waitall(N, o->req, MPI_STATUSES_IGNORE);
	for (int i = 0; i < N; i++)
		mt_free(o->buf[i]);
}

static void check_message(const uint8_t *in, const MPI_Status *st, int from, int i,
			  const struct script *s)
{
	mt_expect_status(st, from, s->tag[i], s->len[i], "order");
	mt_expect(in, s->len[i], mt_key(from, mt.rank, i), "message %d of rank %d", i, from);
}

/* Round the ring, all receives alike. before: so many receives are posted before the sends. */
static void same_envelope(int part, int before, int tags)
{
	struct script mine = script_of(mt.rank, part, tags);
	struct script theirs = script_of(prev(), part, tags);
	int tag = tags == 1 ? 0 : MPI_ANY_TAG, source = part % 2 ? prev() : MPI_ANY_SOURCE;
	struct outgoing *o = mt_alloc(sizeof(*o));
	MPI_Request req[N];
	MPI_Status st;
	uint8_t *in[N];

	for (int i = 0; i < N; i++) {
		in[i] = mt_alloc(ROOM);
		if (i < before)
			MPI_Irecv(in[i], ROOM, MPI_BYTE, source, tag, MPI_COMM_WORLD, &req[i]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N; i++)
		send_one(o, &mine, i, next(), MPI_COMM_WORLD);
	for (int i = before; i < N; i++)
		MPI_Irecv(in[i], ROOM, MPI_BYTE, source, tag, MPI_COMM_WORLD, &req[i]);
	for (int i = 0; i < N; i++) {
		MPI_Wait(&req[i], &st);
		check_message(in[i], &st, prev(), i, &theirs);
		mt_free(in[i]);
	}
	send_done(o);
	mt_free(o);
}

static void posted_first(void)
{
	same_envelope(1, N, 1);
	same_envelope(2, N, 4);
}

static void sent_first(void)
{
	same_envelope(3, 0, 1);
	same_envelope(4, 0, 4);
}

static void half_posted(void)
{
	same_envelope(5, N / 2, 1);
	same_envelope(6, N / 2, 4);
	same_envelope(7, 1, 1);
}

/* Blocking receives and sends, each as it comes: queues are short, and both sides are now early
 * and now late. */
static void blocking(void)
{
	struct script mine = script_of(mt.rank, 8, 1), theirs = script_of(prev(), 8, 1);
	struct util_rand r = mt_rand_own(8);
	struct outgoing *o = mt_alloc(sizeof(*o));
	uint8_t *in = mt_alloc(ROOM);
	MPI_Status st;
	int sent = 0, got = 0;

	while (sent < N || got < N) {
		if (sent < N && (got == N || util_rand_below(&r, 2) || got >= sent)) {
			send_one(o, &mine, sent++, next(), MPI_COMM_WORLD);
		} else {
			MPI_Recv(in, ROOM, MPI_BYTE, prev(), 0, MPI_COMM_WORLD, &st);
			check_message(in, &st, prev(), got++, &theirs);
		}
		if (util_rand_below(&r, 8) == 0)
			mt_nap((int)util_rand_below(&r, 300));
	}
	send_done(o);
	mt_free(o);
	mt_free(in);
}

/* Tag by tag, last tag first: order within each tag. */
static void by_tag(void)
{
	enum { TAGS = 5 };
	struct script mine = script_of(mt.rank, 9, TAGS), theirs = script_of(prev(), 9, TAGS);
	struct outgoing *o = mt_alloc(sizeof(*o));
	uint8_t *in = mt_alloc(ROOM);
	MPI_Status st;

	for (int i = 0; i < N; i++)
		send_one(o, &mine, i, next(), MPI_COMM_WORLD);
	for (int tag = TAGS - 1; tag >= 0; tag--)
		for (int i = 0; i < N; i++) {
			if (theirs.tag[i] != tag)
				continue;
			MPI_Recv(in, ROOM, MPI_BYTE, prev(), tag, MPI_COMM_WORLD, &st);
			check_message(in, &st, prev(), i, &theirs);
		}
	send_done(o);
	mt_free(o);
	mt_free(in);
}

/* Receives of one tag and of any tag alternate, all posted first. Who gets what follows from
 * the order of sending alone: each message takes the first receive that matches. */
static void any_and_specific(void)
{
	enum { TAGS = 3 };
	struct script mine = script_of(mt.rank, 10, TAGS), theirs = script_of(prev(), 10, TAGS);
	struct util_rand r = mt_rand_shared(11);
	struct outgoing *o = mt_alloc(sizeof(*o));
	int tag[2 * N], message[2 * N], open = 0;
	MPI_Request req[2 * N];
	MPI_Status st;
	uint8_t *in[2 * N];

	/* Enough of each: N of any tag at the end take what is left. */
	for (int k = 0; k < 2 * N; k++) {
		tag[k] = k < N && util_rand_below(&r, 3) ? (int)util_rand_below(&r, TAGS)
							 : MPI_ANY_TAG;
		message[k] = -1;
	}
	for (int i = 0; i < N; i++)
		for (int k = 0; k < 2 * N; k++)
			if (message[k] < 0 && (tag[k] == MPI_ANY_TAG || tag[k] == theirs.tag[i])) {
				message[k] = i;
				break;
			}
	for (int k = 0; k < 2 * N; k++) {
		in[k] = mt_alloc(ROOM);
		MPI_Irecv(in[k], ROOM, MPI_BYTE, k % 3 ? prev() : MPI_ANY_SOURCE, tag[k],
			  MPI_COMM_WORLD, &req[k]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < N; i++)
		send_one(o, &mine, i, next(), MPI_COMM_WORLD);
	for (int k = 0; k < 2 * N; k++) {
		if (message[k] < 0) {
			MPI_Cancel(&req[k]);
			open++;
		}
		MPI_Wait(&req[k], &st);
		if (message[k] >= 0)
			check_message(in[k], &st, prev(), message[k], &theirs);
		mt_free(in[k]);
	}
	CHECK(open == N, "%d receives left over instead of %d", open, N);
	send_done(o);
	mt_free(o);
}

/* From all ranks by one wildcard: each sender's messages are in order. */
static void many_senders(void)
{
	struct script mine = script_of(mt.rank, 12, 1);
	struct script *theirs = mt_alloc((size_t)mt.size * sizeof(*theirs));
	int *seen = calloc((size_t)mt.size, sizeof(*seen));
	struct outgoing *o = mt_alloc(sizeof(*o));
	uint8_t *in = mt_alloc(ROOM);
	int expected = 0, from;
	MPI_Status st;

	/* Rank r sends its message i to rank r + i. */
	for (int r = 0; r < mt.size; r++) {
		theirs[r] = script_of(r, 12, 1);
		seen[r] = (mt.rank - r + mt.size) % mt.size;
		for (int i = seen[r]; i < N; i += mt.size)
			expected++;
	}
	for (int i = 0; i < N; i++)
		send_one(o, &mine, i, (mt.rank + i) % mt.size, MPI_COMM_WORLD);
	for (int k = 0; k < expected; k++) {
		MPI_Recv(in, ROOM, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &st);
		from = st.MPI_SOURCE;
		CHECK(seen[from] < N, "rank %d has sent too many", from);
		if (seen[from] < N)
			check_message(in, &st, from, seen[from], &theirs[from]);
		seen[from] += mt.size;
	}
	send_done(o);
	mt_free(o);
	mt_free(in);
	mt_free(theirs);
	free(seen);
}

/* The same tag on two communicators: two orders that know nothing of each other. */
static void two_communicators(void)
{
	struct script mine = script_of(mt.rank, 13, 1), theirs = script_of(prev(), 13, 1);
	struct outgoing *o = mt_alloc(sizeof(*o));
	uint8_t *in = mt_alloc(ROOM);
	MPI_Comm comm[2];
	MPI_Status st;

	MPI_Comm_dup(MPI_COMM_WORLD, &comm[0]);
	MPI_Comm_dup(MPI_COMM_WORLD, &comm[1]);
	for (int i = 0; i < N; i++)
		send_one(o, &mine, i, next(), comm[mine.mode[i] % 2]);
	for (int which = 1; which >= 0; which--)
		for (int i = 0; i < N; i++) {
			if (theirs.mode[i] % 2 != which)
				continue;
			MPI_Recv(in, ROOM, MPI_BYTE, which ? prev() : MPI_ANY_SOURCE, MPI_ANY_TAG,
				 comm[which], &st);
			check_message(in, &st, prev(), i, &theirs);
		}
	send_done(o);
	MPI_Comm_free(&comm[0]);
	MPI_Comm_free(&comm[1]);
	mt_free(o);
	mt_free(in);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("receives posted first", posted_first);
	mt_part("messages sent first", sent_first);
	mt_part("some receives posted first", half_posted);
	mt_part("blocking", blocking);
	mt_part("by tag", by_tag);
	mt_part("any tag and one tag", any_and_specific);
	mt_part("many senders", many_senders);
	mt_part("two communicators", two_communicators);
	return mt_done();
}
