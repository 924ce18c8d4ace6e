/* Messages between the halves of the ranks, of 1 KB to 2 MB mixed, while somebody else pulls cables
 * out and puts them back: every byte is looked at, no message comes twice, none overtakes another.
 *
 * Rank i talks with rank i + n/2, both ways at once, with some messages under way. All have one
 * tag, so that MPI has to keep them in order; what each contains follows from its number. -n says
 * how many a rank sends, and it does so again until the seconds of -t are over. Rank 0 says how
 * many there were, and how long the longest took to send.
 */
#include <math.h>
#include <stdio.h>

#include "mpi_test.h"

enum { WINDOW = 4, TAG = 7, LEAST = 1 << 10, MOST = 2 << 20 };

struct side {
	struct util_rand sizes; /* of the messages, which both ends know */
	int posted;
	unsigned char *buf[WINDOW];
	size_t size[WINDOW];
	int number[WINDOW];
	double begin[WINDOW];
};

struct talk {
	int peer, count;
	int done; /* messages of this round, both ways */
	double longest, bytes;
	struct side in, out;
	MPI_Request q[2 * WINDOW]; /* receives first */
};

/* As many of each order of magnitude, odd ones among them. */
static size_t next_size(struct util_rand *r)
{
	double part = (double)util_rand_below(r, 1000001) / 1e6;

	return (size_t)(LEAST * pow((double)MOST / LEAST, part));
}

static void post(struct talk *t, int i, int first)
{
	struct side *s = i < WINDOW ? &t->in : &t->out;
	int slot = i % WINDOW, number = first + s->posted;

	t->q[i] = MPI_REQUEST_NULL;
	if (s->posted == t->count)
		return;
	s->posted++;
	s->number[slot] = number;
	s->size[slot] = next_size(&s->sizes);
	s->begin[slot] = MPI_Wtime();
	if (s == &t->in) {
		mt_poison(s->buf[slot], s->size[slot]);
		/* With room for any: one of another size is out of order. */
		MPI_Irecv(s->buf[slot], MOST, MPI_BYTE, t->peer, TAG, MPI_COMM_WORLD, &t->q[i]);
		return;
	}
	mt_fill(s->buf[slot], s->size[slot], mt_key(mt.rank, t->peer, number));
	MPI_Isend(s->buf[slot], (int)s->size[slot], MPI_BYTE, t->peer, TAG, MPI_COMM_WORLD,
		  &t->q[i]);
}

static void finish(struct talk *t, int i, const MPI_Status *st)
{
	int slot = i % WINDOW;
	double took = MPI_Wtime() - t->out.begin[slot];

	t->done++;
	if (i >= WINDOW) {
		t->longest = took > t->longest ? took : t->longest;
		t->bytes += (double)t->out.size[slot];
		return;
	}
	mt_expect_status(st, t->peer, TAG, t->in.size[slot], "in order");
	mt_expect(t->in.buf[slot], t->in.size[slot], mt_key(t->peer, mt.rank, t->in.number[slot]),
		  "message %d", t->in.number[slot]);
}

static void exchange(struct talk *t, int first)
{
	MPI_Status st;
	int i;

	t->done = t->in.posted = t->out.posted = 0;
	for (i = 0; i < 2 * WINDOW; i++)
		post(t, i, first);
	while (t->done < 2 * t->count) {
		MPI_Waitany(2 * WINDOW, t->q, &i, &st);
		if (i == MPI_UNDEFINED)
			break;
		finish(t, i, &st);
		post(t, i, first);
	}
	CHECK(t->done == 2 * t->count, "%d messages of %d", t->done, 2 * t->count);
}

static void report(const struct talk *t, int messages, double seconds)
{
	double mine[2] = {messages, t->bytes}, sum[2] = {0, 0}, longest = 0;

	MPI_Reduce(mine, sum, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&t->longest, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (mt.rank == 0)
		printf("messages %.0f, MB %.1f, seconds %.2f, longest_ms %.1f\n", sum[0],
		       sum[1] / 1e6, seconds, longest * 1e3);
}

static void buffers(struct side *s, int sender)
{
	s->sizes = mt_rand_shared(sender);
	for (int i = 0; i < WINDOW; i++)
		s->buf[i] = mt_alloc(MOST);
}

static void links(void)
{
	struct talk t = {.peer = (mt.rank + mt.size / 2) % mt.size, .count = mt.count};
	double start = MPI_Wtime();
	int messages = 0, extra = 0;

	CHECK(mt.size % 2 == 0, "%d ranks have no halves", mt.size);
	if (mt.size % 2)
		return;
	buffers(&t.in, t.peer);
	buffers(&t.out, mt.rank);
	do {
		exchange(&t, messages);
		messages += t.count;
	} while (mt_go_on(start, mt.seconds));
	MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &extra, MPI_STATUS_IGNORE);
	CHECK(!extra, "there is a message that nobody has sent");
	report(&t, messages, MPI_Wtime() - start);
	for (int i = 0; i < WINDOW; i++) {
		mt_free(t.in.buf[i]);
		mt_free(t.out.buf[i]);
	}
}

int main(int argc, char **argv)
{
	mt.count = 40;
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("links", links);
	return mt_done();
}
