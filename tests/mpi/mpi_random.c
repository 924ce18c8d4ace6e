/* Random traffic for -t seconds. Who sends what to whom follows from the seed, so all ranks know
 * all of it, and check every byte.
 *
 * Receives with wildcards beside receives without could take each other's messages, and some
 * would wait for ever. So each message belongs to a class, by its communicator and tag, and all
 * receives of a class are alike: by source and tag, from any source, of any tag, of any kind, or
 * by matched probes. Within a class the order decides: of the receives that got something from
 * one source, in the order in which they were posted, each has the next message of that source.
 */
#include "mpi_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum class { NAMED, ANY_SOURCE, ANY_TAG, ANY, PROBED, CLASSES };
enum { PER_RANK = 24, TAGS = 3, LARGEST = 1 << 20 };

struct message {
	int from, to, tag, sync;
	enum class class;
	size_t len;
	uint64_t key;
};

/* One's part in a message; a message to oneself is in both lists. */
struct part {
	const struct message *m;
	uint8_t *buf;
	size_t room;
	MPI_Request req;
	MPI_Status st;
};

struct round {
	struct message *all;
	int n;
	struct part *sends, *recvs;
	int n_sends, n_recvs;
	struct util_rand own;
};

static MPI_Comm comms[CLASSES];
static long messages;
static double bytes;

/* Log-uniform from 0 to 1 MiB. */
static size_t random_size(struct util_rand *r)
{
	size_t magnitude = (size_t)1 << util_rand_below(r, 21);
	size_t len = magnitude - 1 + util_rand_below(r, magnitude);

	return len > LARGEST ? LARGEST : len;
}

static void draw(struct round *rd, int number)
{
	/* With Open MPI 4.1.4 over libfabric (mtl/ofi; seen with two providers) a synchronous send
	 * never completes when its message is taken by a matched probe. */
	int no_ack = mt_library("Open MPI");
	struct util_rand r = mt_rand_shared(number);

	rd->own = mt_rand_own(number);
	rd->n = PER_RANK * mt.size;
	rd->all = mt_alloc((size_t)rd->n * sizeof(*rd->all));
	for (int i = 0; i < rd->n; i++) {
		struct message *m = &rd->all[i];

		m->from = (int)util_rand_below(&r, (uint64_t)mt.size);
		m->to = (int)util_rand_below(&r, (uint64_t)mt.size);
		m->class = (enum class)util_rand_below(&r, CLASSES);
		m->tag = (int)util_rand_below(&r, TAGS);
		m->sync = util_rand_below(&r, 5) == 0 && !(no_ack && m->class == PROBED);
		m->len = random_size(&r);
		m->key = util_rand_next(&r);
	}
	rd->sends = mt_alloc((size_t)rd->n * sizeof(*rd->sends));
	rd->recvs = mt_alloc((size_t)rd->n * sizeof(*rd->recvs));
	rd->n_sends = rd->n_recvs = 0;
}

/* Large enough for whatever may match. */
static size_t room_for(const struct round *rd, const struct message *m)
{
	size_t room = 0;

	for (int i = 0; i < rd->n; i++) {
		const struct message *o = &rd->all[i];

		if (o->to == m->to && o->class == m->class && o->len > room)
			room = o->len;
	}
	return room;
}

static void start_send(struct round *rd, const struct message *m)
{
	struct part *p = &rd->sends[rd->n_sends++];

	p->m = m;
	p->buf = mt_alloc(m->len);
	mt_fill(p->buf, m->len, m->key);
	if (m->sync)
		MPI_Issend(p->buf, (int)m->len, MPI_BYTE, m->to, m->tag, comms[m->class], &p->req);
	else
		MPI_Isend(p->buf, (int)m->len, MPI_BYTE, m->to, m->tag, comms[m->class], &p->req);
}

static int source_for(const struct message *m)
{
	return m->class == NAMED || m->class == ANY_TAG ? m->from : MPI_ANY_SOURCE;
}

static int tag_for(const struct message *m)
{
	return m->class == NAMED || m->class == ANY_SOURCE ? m->tag : MPI_ANY_TAG;
}

static void start_recv(struct round *rd, const struct message *m)
{
	struct part *p = &rd->recvs[rd->n_recvs++];

	p->m = m;
	p->room = room_for(rd, m);
	p->buf = mt_alloc(p->room);
	p->req = MPI_REQUEST_NULL;
	if (m->class != PROBED)
		MPI_Irecv(p->buf, (int)p->room, MPI_BYTE, source_for(m), tag_for(m),
			  comms[m->class], &p->req);
}

/* In the order of the script, each rank at its own pace. Nothing blocks before all is started. */
static void start_all(struct round *rd)
{
	int flag;

	for (int i = 0; i < rd->n; i++) {
		const struct message *m = &rd->all[i];

		if (m->from == mt.rank)
			start_send(rd, m);
		if (m->to == mt.rank)
			start_recv(rd, m);
		if (util_rand_below(&rd->own, 16) == 0)
			mt_nap((int)util_rand_below(&rd->own, 400));
		if (util_rand_below(&rd->own, 8) == 0)
			MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[PROBED], &flag,
				   MPI_STATUS_IGNORE);
	}
}

static void finish_all(struct round *rd)
{
	for (int i = 0; i < rd->n_recvs; i++) {
		struct part *p = &rd->recvs[i];
		MPI_Message message;

		if (p->m->class != PROBED)
			continue;
		MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms[PROBED], &message, &p->st);
		MPI_Imrecv(p->buf, (int)p->room, MPI_BYTE, &message, &p->req);
	}
	for (int i = 0; i < rd->n_recvs; i++)
		MPI_Wait(&rd->recvs[i].req, &rd->recvs[i].st);
	for (int i = 0; i < rd->n_sends; i++) {
		MPI_Wait(&rd->sends[i].req, MPI_STATUS_IGNORE);
		mt_free(rd->sends[i].buf);
	}
}

/* The first message of the class that `source` has sent to us and that was not taken; of this tag
 * if receives of the class name one. */
static struct message *next_of(struct round *rd, const struct part *p)
{
	for (int i = 0; i < rd->n; i++) {
		struct message *m = &rd->all[i];

		if (m->to == mt.rank && m->from == p->st.MPI_SOURCE && m->class == p->m->class &&
		    (tag_for(m) == MPI_ANY_TAG || m->tag == p->m->tag))
			return m;
	}
	return NULL;
}

static void check_all(struct round *rd, int number)
{
	for (int i = 0; i < rd->n_recvs; i++) {
		struct part *p = &rd->recvs[i];
		struct message *m = next_of(rd, p);

		CHECK(m, "round %d: rank %d has sent nothing that this receive matches", number,
		      p->st.MPI_SOURCE);
		if (!m)
			continue;
		mt_expect_status(&p->st, m->from, m->tag, m->len, "random");
		mt_expect(p->buf, m->len, m->key, "round %d, from %d, class %d", number, m->from,
			  (int)m->class);
		messages++;
		bytes += (double)m->len;
		m->to = -1; /* taken; p->m of other receives is read for its class and tag only */
	}
	for (int i = 0; i < rd->n_recvs; i++)
		mt_free(rd->recvs[i].buf);
}

static void traffic(void)
{
	double start = MPI_Wtime();

	for (int number = 0; mt_go_on(start, mt.seconds); number++) {
		struct round rd;

		draw(&rd, number);
		start_all(&rd);
		finish_all(&rd);
		check_all(&rd, number);
		mt_free(rd.all);
		mt_free(rd.sends);
		mt_free(rd.recvs);
	}
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 2, MPI_THREAD_SINGLE);
	for (int i = 0; i < CLASSES; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	mt_part("random traffic", traffic);
	if (mt.rank == 0)
		printf("rank 0 received %ld messages, %.1f MB\n", messages, bytes / 1e6);
	for (int i = 0; i < CLASSES; i++)
		MPI_Comm_free(&comms[i]);
	return mt_done();
}
