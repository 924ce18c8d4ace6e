/* Collectives of several threads, each on a communicator of its own, at the same time. */
#define _GNU_SOURCE
#include "coll_check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

enum { THREADS = 3 };

static MPI_Comm comms[THREADS];

static void *work(void *arg)
{
	MPI_Comm *comm = arg;

	cc_sequence(*comm, 9000 + (int)(comm - comms), mt.count);
	return NULL;
}

/* A thread for each communicator, of which the first may do something else. */
static void in_threads(void *(*first)(void *arg), void *(*others)(void *arg))
{
	pthread_t t[THREADS];
	int n = mt_threads == MPI_THREAD_MULTIPLE ? THREADS : 0;

	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&t[i], NULL, i ? others : first, &comms[i]) == 0, "no thread");
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	mt_good(); /* an MPI need not have threads */
}

static void threads(void)
{
	in_threads(work, work);
}

/* Communicators that are made while other threads are in collectives. */
static void *make(void *arg)
{
	MPI_Comm *comm = arg, mine;

	for (int i = 0; i < 5; i++) {
		MPI_Comm_dup(*comm, &mine);
		cc_sequence(mine, 9500 + i, mt.count / 10);
		MPI_Comm_free(&mine);
	}
	return NULL;
}

static void making(void)
{
	in_threads(make, work);
}

/* One thread makes communicators; the other only uses some that were made before. An MPI that makes
 * them one after another, in an order of its own, has to have no others to make: of ranks 0 and 2
 * the first thread is in a collective of theirs while rank 1 makes one with them already. */
enum { ROUNDS = 20, CALLS = 5 };
static MPI_Comm base, used[ROUNDS], row[ROUNDS];

static void *make_only(void *arg)
{
	MPI_Comm mine;

	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < CALLS && mt.rank != 1; k++)
			MPI_Barrier(row[i]);
		MPI_Comm_dup(base, &mine);
		MPI_Comm_free(&mine);
	}
	return arg;
}

static void *use_only(void *arg)
{
	for (int i = 0; i < ROUNDS * CALLS; i++) {
		int one = 1, sum = 0;

		MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, used[i / CALLS]);
		CHECK(sum == mt.size, "%d of %d", sum, mt.size);
	}
	return arg;
}

static void made_beside(void)
{
	void *(*const what[])(void *arg) = {make_only, use_only};
	int n = mt_threads == MPI_THREAD_MULTIPLE ? 2 : 0;
	pthread_t t[2];

	MPI_Comm_dup(MPI_COMM_WORLD, &base);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm_dup(MPI_COMM_WORLD, &used[i]);
		MPI_Comm_split(MPI_COMM_WORLD, mt.rank == 1, mt.rank, &row[i]);
	}
	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&t[i], NULL, what[i], NULL) == 0, "no thread");
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < ROUNDS; i++) {
		MPI_Comm_free(&used[i]);
		MPI_Comm_free(&row[i]);
	}
	MPI_Comm_free(&base);
	mt_good();
}

/* Threads that each make communicators, use them once and free them: whose first rank may do so
 * while another thread of another rank has not received the last message of the one before yet,
 * which is not for the next. Threads that the system keeps off their cores are played by sleeping.
 */
enum { GOING = 15 };
static atomic_bool late;

int PMPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
	       MPI_Request *req)
{
	static __typeof__(PMPI_Irecv) *_Atomic real;
	static atomic_uint calls;
	struct timespec nap = {.tv_nsec = 20000000};

	if (!real)
		real = (__typeof__(PMPI_Irecv) *)dlsym(RTLD_NEXT, "PMPI_Irecv");
	if (late && (atomic_fetch_add(&calls, 1) + (unsigned int)mt.rank * 7) % 19 == 0)
		nanosleep(&nap, NULL);
	return real(buf, count, type, source, tag, comm, req);
}

static void *come_and_go(void *arg)
{
	MPI_Comm *comm = arg, mine;

	for (int i = 0; i < GOING; i++) {
		int mark = (int)(comm - comms) * GOING + i, got = mt.rank ? -1 : mark;

		MPI_Comm_dup(*comm, &mine);
		MPI_Bcast(&got, 1, MPI_INT, 0, mine);
		CHECK(got == mark, "%d, not %d", got, mark);
		MPI_Comm_free(&mine);
	}
	return NULL;
}

static void coming_and_going(void)
{
	late = true;
	in_threads(come_and_go, come_and_go);
	late = false;
}

int main(int argc, char **argv)
{
	mt.count = 200;
	mt_init(argc, argv, 1, MPI_THREAD_MULTIPLE);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	mt_part("threads", threads);
	mt_part("threads, and communicators come and go", making);
	mt_part("used by one thread, while another makes some", made_beside);
	mt_part("threads whose communicators come and go, received late", coming_and_going);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
	return mt_done();
}
