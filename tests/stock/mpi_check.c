/* An MPI program that knows what must arrive: every byte depends on who sent it to whom
 * and in which step. Exits with 0 and one line on rank 0, or aborts the job with what
 * was wrong. Compiled by the tests with the compiler wrapper of each MPI.
 *
 *	mpi_check [largest message in KB]
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;
static long checks;

#define REQUIRE(cond, ...)                                                                         \
	do {                                                                                       \
		checks++;                                                                          \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "mpi_check: rank %d: %s: ", rank, #cond);                  \
			fprintf(stderr, __VA_ARGS__);                                              \
			fprintf(stderr, "\n");                                                     \
			MPI_Abort(MPI_COMM_WORLD, 1);                                              \
		}                                                                                  \
	} while (0)

static void *alloc(size_t len)
{
	void *p = malloc(len ? len : 1);

	REQUIRE(p, "%zu bytes", len);
	return p;
}

static uint8_t pattern(int from, int to, int step, size_t i)
{
	return (uint8_t)(i * 31 + i / 251 + (size_t)from * 7 + (size_t)to * 13 +
			 (size_t)step * 101);
}

static void fill(uint8_t *buf, size_t len, int from, int to, int step)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = pattern(from, to, step, i);
}

static void verify(const uint8_t *buf, size_t len, int from, int to, int step)
{
	size_t i = 0;

	while (i < len && buf[i] == pattern(from, to, step, i))
		i++;
	REQUIRE(i == len, "%zu bytes from %d to %d, step %d: wrong at %zu", len, from, to, step, i);
}

/* A number goes round and everybody adds to it. */
static void ring(void)
{
	int next = (rank + 1) % size, prev = (rank + size - 1) % size;

	for (int lap = 0; lap < 50; lap++) {
		long sum = 0;

		if (rank == 0) {
			sum = lap;
			MPI_Send(&sum, 1, MPI_LONG, next, lap, MPI_COMM_WORLD);
			MPI_Recv(&sum, 1, MPI_LONG, prev, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			REQUIRE(sum == lap + size - 1, "%ld after lap %d", sum, lap);
		} else {
			MPI_Recv(&sum, 1, MPI_LONG, prev, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			sum++;
			MPI_Send(&sum, 1, MPI_LONG, next, lap, MPI_COMM_WORLD);
		}
	}
}

/* Everybody sends to both neighbours at once, in all sizes: eager, rendezvous, and what
 * does not fit into any buffer on the way. */
static void exchange(size_t max)
{
	int next = (rank + 1) % size, prev = (rank + size - 1) % size;
	uint8_t *out = alloc(max), *in = alloc(max);

	for (size_t len = 0, step = 0; len <= max; len = len ? len * 4 : 1, step++) {
		MPI_Request req[2];
		MPI_Status st[2];
		int got;

		fill(out, len, rank, next, (int)step);
		memset(in, 0, max);
		MPI_Irecv(in, (int)max, MPI_BYTE, prev, (int)step, MPI_COMM_WORLD, &req[0]);
		MPI_Isend(out, (int)len, MPI_BYTE, next, (int)step, MPI_COMM_WORLD, &req[1]);
		MPI_Waitall(2, req, st);
		MPI_Get_count(&st[0], MPI_BYTE, &got);
		REQUIRE((size_t)got == len, "got %d of %zu bytes", got, len);
		verify(in, len, prev, rank, (int)step);
	}
	free(out);
	free(in);
}

/* Messages that nobody waits for, with tags taken in the opposite order. */
static void unexpected(void)
{
	enum { N = 40, LEN = 3000 };
	int next = (rank + 1) % size, prev = (rank + size - 1) % size;
	uint8_t *out = alloc(N * LEN), *in = alloc(LEN);
	MPI_Request req[N];

	for (int i = 0; i < N; i++) {
		fill(out + i * LEN, LEN, rank, next, i);
		MPI_Isend(out + i * LEN, LEN, MPI_BYTE, next, i, MPI_COMM_WORLD, &req[i]);
	}
	for (int i = N - 1; i >= 0; i--) {
		MPI_Recv(in, LEN, MPI_BYTE, prev, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		verify(in, LEN, prev, rank, i);
	}
	MPI_Waitall(N, req, MPI_STATUSES_IGNORE);
	free(out);
	free(in);
}

static void alltoall(size_t len)
{
	uint8_t *out = alloc(len * (size_t)size), *in = alloc(len * (size_t)size);

	for (int step = 0; step < 5; step++) {
		for (int to = 0; to < size; to++)
			fill(out + len * (size_t)to, len, rank, to, step);
		MPI_Alltoall(out, (int)len, MPI_BYTE, in, (int)len, MPI_BYTE, MPI_COMM_WORLD);
		for (int from = 0; from < size; from++)
			verify(in + len * (size_t)from, len, from, rank, step);
	}
	free(out);
	free(in);
}

static void collectives(void)
{
	double mine = rank + 1, sum = 0;
	uint8_t buf[5000];

	MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	REQUIRE(sum == size * (size + 1) / 2.0, "%g", sum);
	for (int root = 0; root < size; root++) {
		fill(buf, sizeof(buf), rank, root, 0);
		MPI_Bcast(buf, sizeof(buf), MPI_BYTE, root, MPI_COMM_WORLD);
		verify(buf, sizeof(buf), root, root, 0);
	}
}

/* Everybody writes to, reads from and adds to everybody. */
static void one_sided(size_t len)
{
	size_t slots = (size_t)size;
	uint8_t *base, *in = alloc(len);
	long *sums, zero = 0, one = 1, old;
	MPI_Win data, counts;

	MPI_Win_allocate((MPI_Aint)(len * slots), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &data);
	MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &sums,
			 &counts);
	sums[0] = sums[1] = zero;
	memset(base, 0, len * slots);
	MPI_Barrier(MPI_COMM_WORLD);

	/* Put, then read back what the others have put at the neighbour's. */
	MPI_Win_fence(0, data);
	uint8_t *out = alloc(len * slots);
	for (int to = 0; to < size; to++) {
		fill(out + len * (size_t)to, len, rank, to, 1);
		MPI_Put(out + len * (size_t)to, (int)len, MPI_BYTE, to,
			(MPI_Aint)(len * (size_t)rank), (int)len, MPI_BYTE, data);
	}
	MPI_Win_fence(0, data);
	for (int from = 0; from < size; from++)
		verify(base + len * (size_t)from, len, from, rank, 1);
	int peer = (rank + 1) % size;
	for (int from = 0; from < size; from++) {
		MPI_Get(in, (int)len, MPI_BYTE, peer, (MPI_Aint)(len * (size_t)from), (int)len,
			MPI_BYTE, data);
		MPI_Win_fence(0, data);
		verify(in, len, from, peer, 1);
	}

	/* Counters: accumulate and fetch-and-op under passive locks. */
	for (int i = 0; i < 20; i++)
		for (int to = 0; to < size; to++) {
			MPI_Win_lock(MPI_LOCK_SHARED, to, 0, counts);
			MPI_Accumulate(&one, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_SUM, counts);
			MPI_Fetch_and_op(&one, &old, MPI_LONG, to, 1, MPI_SUM, counts);
			MPI_Win_unlock(to, counts);
			REQUIRE(old >= 0 && old < 20L * size, "%ld", old);
		}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, counts);
	REQUIRE(sums[0] == 20L * size && sums[1] == 20L * size, "%ld %ld of %ld", sums[0], sums[1],
		20L * size);
	MPI_Win_unlock(rank, counts);
	MPI_Win_free(&counts);
	MPI_Win_free(&data);
	free(out);
	free(in);
}

int main(int argc, char **argv)
{
	size_t max = (argc > 1 ? strtoul(argv[1], NULL, 10) : 4096) * 1024;
	char version[MPI_MAX_LIBRARY_VERSION_STRING];
	int len;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	ring();
	exchange(max);
	unexpected();
	alltoall(10);
	alltoall(20000);
	alltoall(200000);
	collectives();
	one_sided(64);
	one_sided(100000);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Get_library_version(version, &len);
	if (rank == 0)
		printf("mpi_check: %d ranks, %ld checks on rank 0, all good; %.20s\n", size, checks,
		       version);
	MPI_Finalize();
	return 0;
}
