/* Collectives of several threads, each on a communicator of its own, at the same time. */
#include "coll_check.h"

#include <pthread.h>

enum { THREADS = 3 };

static MPI_Comm comms[THREADS];

static void *work(void *arg)
{
	MPI_Comm *comm = arg;

	cc_sequence(*comm, 9000 + (int)(comm - comms), mt.count);
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	int n = mt_threads == MPI_THREAD_MULTIPLE ? THREADS : 0;

	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&t[i], NULL, work, &comms[i]) == 0, "no thread");
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	mt_good(); /* an MPI need not have threads */
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
	pthread_t t[THREADS];
	int n = mt_threads == MPI_THREAD_MULTIPLE ? THREADS : 0;

	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&t[i], NULL, i ? work : make, &comms[i]) == 0, "no thread");
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	mt_good();
}

int main(int argc, char **argv)
{
	mt.count = 200;
	mt_init(argc, argv, 1, MPI_THREAD_MULTIPLE);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
	mt_part("threads", threads);
	mt_part("threads, and communicators come and go", making);
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_free(&comms[i]);
	return mt_done();
}
