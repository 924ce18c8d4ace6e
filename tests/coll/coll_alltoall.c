/* MPI_Alltoall and MPI_Alltoallv against what must come out: sizes, datatypes, MPI_IN_PLACE,
 * communicators, late ranks, many calls one after the other.
 *
 * coll_alltoall [SEED]: prints "coll_alltoall: N calls are right", or what was wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util_rand.h"

static struct util_rand shared, own; /* the same numbers on every rank; and not */
static int world_rank;
static unsigned long calls;

static uint8_t byte_of(int from, int to, size_t i, unsigned int salt)
{
	return (uint8_t)((unsigned int)from * 31 + (unsigned int)to * 7 + i * 13 + (i >> 8) + salt);
}

static void fail(const char *what, int from, size_t at)
{
	fprintf(stderr, "rank %d: %s: block of %d is wrong at byte %zu, in call %lu\n", world_rank,
		what, from, at, calls);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void late(void)
{
	if (util_rand_below(&own, 8) == 0)
		usleep((useconds_t)util_rand_below(&own, 2000));
}

static void check(const char *what, const uint8_t *buf, int from, int to, size_t len,
		  unsigned int salt)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != byte_of(from, to, i, salt))
			fail(what, from, i);
}

/* ---- MPI_Alltoall ---- */

static void plain(MPI_Comm comm, size_t len, int in_place)
{
	unsigned int salt = (unsigned int)util_rand_next(&shared);
	uint8_t *out, *in;
	int size, rank;

	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &rank);
	out = malloc(len * (size_t)size + 1);
	in = malloc(len * (size_t)size + 1);
	for (int p = 0; p < size; p++)
		for (size_t i = 0; i < len; i++)
			out[len * (size_t)p + i] = byte_of(rank, p, i, salt);
	if (in_place)
		memcpy(in, out, len * (size_t)size);
	late();
	calls++;
	MPI_Alltoall(in_place ? MPI_IN_PLACE : out, (int)len, MPI_BYTE, in, (int)len, MPI_BYTE,
		     comm);
	for (int p = 0; p < size; p++)
		check(in_place ? "in place" : "alltoall", in + len * (size_t)p, p, rank, len, salt);
	free(out);
	free(in);
}

/* Every second int is sent, and received backwards. */
static void derived(MPI_Comm comm, int n)
{
	unsigned int salt = (unsigned int)util_rand_next(&shared);
	MPI_Datatype every, back;
	int size, rank, *out, *in, places[2] = {1, 0};

	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &rank);
	MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &every);
	MPI_Type_commit(&every);
	MPI_Type_create_indexed_block(2, 1, places, MPI_INT, &back);
	MPI_Type_commit(&back);
	out = calloc((size_t)(4 * n * size), sizeof(int));
	in = calloc((size_t)(2 * n * size), sizeof(int));
	for (int p = 0; p < size; p++)
		for (int i = 0; i < 2 * n; i++)
			out[2 * (p * 2 * n + i)] =
				(int)(salt + (unsigned int)(rank * 7919 + p * 104729 + i));
	late();
	calls++;
	MPI_Alltoall(out, 2 * n, every, in, n, back, comm);
	for (int p = 0; p < size; p++)
		for (int i = 0; i < 2 * n; i++)
			if (in[p * 2 * n + (i ^ 1)] !=
			    (int)(salt + (unsigned int)(p * 7919 + rank * 104729 + i)))
				fail("derived", p, (size_t)i);
	free(out);
	free(in);
	MPI_Type_free(&every);
	MPI_Type_free(&back);
}

/* ---- MPI_Alltoallv ---- */

static void varied(MPI_Comm comm, size_t most, int in_place)
{
	unsigned int salt = (unsigned int)util_rand_next(&shared);
	struct util_rand counts = {util_rand_next(&shared)};
	int size, rank, at_out = 0, at_in = 0, *n;
	uint8_t *out, *in;

	MPI_Comm_size(comm, &size);
	MPI_Comm_rank(comm, &rank);
	n = calloc((size_t)size * 4, sizeof(*n));
	for (int from = 0; from < size; from++) {
		for (int to = 0; to < size; to++) {
			int pair = in_place && from > to ? from * size + to : to * size + from;
			struct util_rand r = {counts.state +
					      (uint64_t)(in_place ? pair : from * size + to)};
			int len = util_rand_below(&r, 3) ? (int)util_rand_below(&r, most + 1) : 0;

			if (in_place && from < to) {
				r.state = counts.state + (uint64_t)(to * size + from);
				len = util_rand_below(&r, 3) ? (int)util_rand_below(&r, most + 1)
							     : 0;
			}
			if (from == rank)
				n[to] = len;
			if (to == rank)
				n[2 * size + from] = len;
		}
	}
	for (int p = 0; p < size; p++) { /* with gaps */
		n[size + p] = at_out;
		n[3 * size + p] = at_in;
		at_out += n[p] + p % 3;
		at_in += n[2 * size + p] + p % 2;
	}
	out = malloc((size_t)at_out + 1);
	in = malloc((size_t)at_in + 1);
	for (int p = 0; p < size; p++)
		for (int i = 0; i < n[p]; i++)
			(in_place ? in + n[3 * size + p] : out + n[size + p])[i] =
				byte_of(rank, p, (size_t)i, salt);
	late();
	calls++;
	MPI_Alltoallv(in_place ? MPI_IN_PLACE : out, n, n + size, MPI_BYTE, in, n + 2 * size,
		      n + 3 * size, MPI_BYTE, comm);
	for (int p = 0; p < size; p++)
		check(in_place ? "alltoallv in place" : "alltoallv", in + n[3 * size + p], p, rank,
		      (size_t)n[2 * size + p], salt);
	free(n);
	free(out);
	free(in);
}

/* ---- all ---- */

static void some(MPI_Comm comm, int rounds)
{
	static const size_t sizes[] = {0, 1, 4, 63, 256, 1000, 4096, 4097, 8192, 20000};

	for (int r = 0; r < rounds; r++) {
		size_t len = sizes[util_rand_below(&shared, sizeof(sizes) / sizeof(sizes[0]))];

		switch (util_rand_below(&shared, 6)) {
		case 0:
			derived(comm, (int)(len / 8));
			break;
		case 1:
			varied(comm, len, 0);
			break;
		case 2:
			varied(comm, len, 1);
			break;
		case 3:
			plain(comm, len, 1);
			break;
		default:
			plain(comm, len, 0);
		}
	}
}

static void back_to_back(MPI_Comm comm, int rounds, size_t len)
{
	for (int r = 0; r < rounds; r++)
		plain(comm, len, 0);
}

/* Ranks of different parts have not drawn as many numbers. */
static void part(MPI_Comm comm, size_t len, int round)
{
	if (comm == MPI_COMM_NULL)
		return;
	util_rand_seed(&shared, (uint64_t)round * 1000003 + len);
	plain(comm, len, 0);
}

/* Parts of it, one inside the other, used in turn, ended and made again. */
static void parts(int rounds)
{
	for (int r = 0; r < rounds; r++) {
		MPI_Comm dup, half, few;
		int rank;

		MPI_Comm_rank(MPI_COMM_WORLD, &rank);
		MPI_Comm_dup(MPI_COMM_WORLD, &dup);
		MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
		MPI_Comm_split(half, rank % 3 ? 0 : MPI_UNDEFINED, rank, &few);
		for (int i = 0; i < 5; i++) {
			part(dup, 100, i);
			part(half, 3000, i);
			part(few, 9000, i);
			part(MPI_COMM_WORLD, 17, i);
		}
		if (few != MPI_COMM_NULL)
			MPI_Comm_free(&few);
		MPI_Comm_free(&dup);
		part(half, 5, r);
		MPI_Comm_free(&half);
	}
}

/* A message that must be finished before the sender can come, and the receiver is there already. */
static void entangled(void)
{
	static char big[4 << 20], got[4 << 20];
	int size, rank;
	MPI_Request r;

	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Irecv(got, sizeof(got), MPI_CHAR, (rank + size - 1) % size, 5, MPI_COMM_WORLD, &r);
	if (rank % 2) {
		usleep(20000);
		MPI_Send(big, sizeof(big), MPI_CHAR, (rank + 1) % size, 5, MPI_COMM_WORLD);
		plain(MPI_COMM_WORLD, 64, 0);
	} else {
		plain(MPI_COMM_WORLD, 64, 0);
		MPI_Send(big, sizeof(big), MPI_CHAR, (rank + 1) % size, 5, MPI_COMM_WORLD);
	}
	MPI_Wait(&r, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
	util_rand_seed(&shared, seed);
	util_rand_seed(&own, seed + 1000 + (uint64_t)world_rank);
	some(MPI_COMM_WORLD, 150);
	back_to_back(MPI_COMM_WORLD, 1000, 4);
	back_to_back(MPI_COMM_WORLD, 200, 5000);
	parts(3);
	util_rand_seed(&shared, seed);
	entangled();
	plain(MPI_COMM_WORLD, 1 << 20, 0);
	if (!world_rank)
		printf("coll_alltoall: %lu calls are right\n", calls);
	MPI_Finalize();
	return 0;
}
