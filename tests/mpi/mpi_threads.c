/* MPI_THREAD_MULTIPLE: several threads of each rank in MPI at once. */
#include "mpi_test.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 40, ROOM = 150000 };

struct thread {
	pthread_t id;
	int n; /* which */
	MPI_Comm comm;
	MPI_Win win;
	int *count; /* shared by all threads of the rank */
	pthread_mutex_t *lock;
};

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static int prev(void)
{
	return (mt.rank + mt.size - 1) % mt.size;
}

static size_t size_at(int n, int i)
{
	static const size_t sizes[] = {0, 64, 3000, 8193, 65537, 140000};

	return sizes[(n * 5 + i) % 6];
}

/* The same for THREADS threads; own[i] is the communicator of thread i, or all the same. */
static void together(void *(*fn)(void *), const MPI_Comm *own, MPI_Win win)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct thread t[THREADS];
	int count = 0;

	for (int i = 0; i < THREADS; i++) {
		t[i] = (struct thread){
			.n = i, .comm = own[i], .win = win, .count = &count, .lock = &lock};
		if (pthread_create(&t[i].id, NULL, fn, &t[i]) != 0)
			MPI_Abort(MPI_COMM_WORLD, 2);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i].id, NULL);
}

static void on_world(void *(*fn)(void *))
{
	MPI_Comm own[THREADS];

	for (int i = 0; i < THREADS; i++)
		own[i] = MPI_COMM_WORLD;
	together(fn, own, MPI_WIN_NULL);
}

static void on_own_communicators(void *(*fn)(void *))
{
	MPI_Comm own[THREADS];

	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
	together(fn, own, MPI_WIN_NULL);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&own[i]);
}

/* ---- rings: each thread has its own ---- */

/* The tag, or where that is the same the communicator, tells the threads apart. */
static void *ring(void *arg)
{
	struct thread *t = arg;
	int tag = t->comm == MPI_COMM_WORLD ? 100 + t->n : 100;
	uint8_t *out = mt_alloc(ROOM), *in = mt_alloc(ROOM);

	for (int i = 0; i < ROUNDS; i++) {
		size_t len = size_at(t->n, i);
		int step = t->n * 1000 + i;
		MPI_Request req[2];
		MPI_Status st[2];

		mt_fill(out, len, mt_key(mt.rank, next(), step));
		if (i % 4 == 0) {
			MPI_Sendrecv(out, (int)len, MPI_BYTE, next(), tag, in, ROOM, MPI_BYTE,
				     prev(), tag, t->comm, &st[0]);
		} else if (i % 4 == 1) {
			MPI_Isend(out, (int)len, MPI_BYTE, next(), tag, t->comm, &req[1]);
			MPI_Recv(in, ROOM, MPI_BYTE, MPI_ANY_SOURCE, tag, t->comm, &st[0]);
			MPI_Wait(&req[1], MPI_STATUS_IGNORE);
		} else {
			MPI_Irecv(in, ROOM, MPI_BYTE, prev(), tag, t->comm, &req[0]);
			MPI_Isend(out, (int)len, MPI_BYTE, next(), tag, t->comm, &req[1]);
			for (int done = 0; i % 4 == 2 && !done; mt_relax())
				MPI_Testall(2, req, &done, st);
			if (i % 4 == 3)
				MPI_Waitall(2, req, st);
		}
		mt_expect_status(&st[0], prev(), tag, len, "thread's ring");
		mt_expect(in, len, mt_key(prev(), mt.rank, step), "thread %d", t->n);
	}
	mt_free(out);
	mt_free(in);
	return NULL;
}

static void own_tags(void)
{
	on_world(ring);
}

static void own_communicators(void)
{
	on_own_communicators(ring);
}

/* ---- some send, others receive what comes ---- */

/* Even threads send to all ranks in turn; odd ones take what comes by matched probe, so that
 * none takes what another has found. How many messages a rank gets follows from who sends. */
static int expected(void)
{
	int n = 0;

	for (int rank = 0; rank < mt.size; rank++)
		for (int i = 0; i < ROUNDS; i++)
			n += (rank + i) % mt.size == mt.rank;
	return n * (THREADS / 2);
}

static void send_to_all(struct thread *t, uint8_t *buf)
{
	for (int i = 0; i < ROUNDS; i++) {
		int to = (mt.rank + i) % mt.size, step = t->n * 1000 + i;
		size_t len = size_at(t->n, i);

		mt_fill(buf, len, mt_key(mt.rank, to, step));
		MPI_Send(buf, (int)len, MPI_BYTE, to, step, t->comm);
	}
}

/* Whether all messages of this rank have been found, by this thread or another. */
static int count_found(struct thread *t, int found)
{
	int all;

	pthread_mutex_lock(t->lock);
	all = *t->count += found;
	pthread_mutex_unlock(t->lock);
	return all >= expected();
}

static void take_what_comes(struct thread *t, uint8_t *buf)
{
	for (int all = 0; !all; mt_relax()) {
		MPI_Message message;
		MPI_Status st;
		int found = 0;
		size_t len;

		MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &found, &message, &st);
		all = count_found(t, found);
		if (!found)
			continue;
		len = size_at(st.MPI_TAG / 1000, st.MPI_TAG % 1000);
		mt_expect_status(&st, st.MPI_SOURCE, st.MPI_TAG, len, "found by a thread");
		MPI_Mrecv(buf, ROOM, MPI_BYTE, &message, &st);
		mt_expect(buf, len, mt_key(st.MPI_SOURCE, mt.rank, st.MPI_TAG),
			  "from %d, found by thread %d", st.MPI_SOURCE, t->n);
	}
}

static void *producer_or_consumer(void *arg)
{
	struct thread *t = arg;
	uint8_t *buf = mt_alloc(ROOM);

	if (t->n % 2)
		take_what_comes(t, buf);
	else
		send_to_all(t, buf);
	mt_free(buf);
	return NULL;
}

static void producers(void)
{
	MPI_Comm comm, own[THREADS];

	MPI_Comm_dup(MPI_COMM_WORLD, &comm);
	for (int i = 0; i < THREADS; i++)
		own[i] = comm;
	together(producer_or_consumer, own, MPI_WIN_NULL);
	MPI_Comm_free(&comm);
}

/* ---- collectives, each thread on its own communicator ---- */

static void *collectives(void *arg)
{
	struct thread *t = arg;
	uint8_t *buf = mt_alloc(20000);

	for (int i = 0; i < ROUNDS; i++) {
		long v = mt.rank + t->n * 10, sum = -1;
		int root = (i + t->n) % mt.size;
		size_t len = i % 2 ? 20000 : 200;

		MPI_Allreduce(&v, &sum, 1, MPI_LONG, MPI_SUM, t->comm);
		CHECK(sum == (long)mt.size * (mt.size - 1) / 2 + t->n * 10L * mt.size,
		      "allreduce of thread %d: %ld", t->n, sum);
		if (mt.rank == root)
			mt_fill(buf, len, mt_key(root, t->n, i));
		MPI_Bcast(buf, (int)len, MPI_BYTE, root, t->comm);
		mt_expect(buf, len, mt_key(root, t->n, i), "bcast of thread %d", t->n);
		MPI_Barrier(t->comm);
	}
	mt_free(buf);
	return NULL;
}

static void thread_collectives(void)
{
	on_own_communicators(collectives);
}

/* ---- one thread waits long, the others must not ---- */

/* Thread 0 sits in a blocking receive until thread 1, after its own traffic, sends to it. */
static void *sleeper(void *arg)
{
	struct thread *t = arg;
	int x = -1;

	if (t->n == 0) {
		MPI_Recv(&x, 1, MPI_INT, mt.rank, 7, t->comm, MPI_STATUS_IGNORE);
		CHECK(x == 4711, "woken by %d", x);
		return NULL;
	}
	ring(arg);
	if (t->n == 1) {
		x = 4711;
		MPI_Send(&x, 1, MPI_INT, mt.rank, 7, t->comm);
	}
	return NULL;
}

static void one_waits(void)
{
	on_world(sleeper);
}

/* ---- one-sided ---- */

static void *tickets(void *arg)
{
	struct thread *t = arg;
	long one = 1, old = -1, last = -1;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, t->win);
		MPI_Win_flush(0, t->win);
		CHECK(old > last, "ticket %ld after %ld", old, last);
		last = old;
	}
	return NULL;
}

static void one_sided(void)
{
	MPI_Comm own[THREADS];
	long *base, v = -1;
	MPI_Win win;

	MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt.rank, 0, win);
	*base = 0;
	MPI_Win_unlock(mt.rank, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (int i = 0; i < THREADS; i++)
		own[i] = MPI_COMM_WORLD;
	together(tickets, own, win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Fetch_and_op(NULL, &v, MPI_LONG, 0, 0, MPI_NO_OP, win);
	MPI_Win_flush(0, win);
	CHECK(v == (long)mt.size * THREADS * ROUNDS, "%ld tickets", v);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_MULTIPLE);
	if (mt_begin("MPI_THREAD_MULTIPLE")) {
		CHECK(mt_threads == MPI_THREAD_MULTIPLE, "only level %d is given", mt_threads);
		mt_end();
	}
	if (mt_threads == MPI_THREAD_MULTIPLE) {
		mt_part("own tags", own_tags);
		mt_part("own communicators", own_communicators);
		mt_part("some send, some receive", producers);
		mt_part("collectives", thread_collectives);
		mt_part("one waits", one_waits);
		mt_part("one-sided", one_sided);
	}
	return mt_done();
}
