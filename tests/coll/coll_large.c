/* What does not fit into an int: types, places, counts. Memory that is only named costs nothing, so
 * that all of it runs on a small machine.
 *
 * Large names are tried where the MPI has them (MPI 4); that they come to the library as the small
 * ones do is what large.sh looks for. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mpi_test.h"

enum { CALLS = 4, WORDS = 3 };

/* ---- types ---- */

static MPI_Datatype times(int n, MPI_Datatype of)
{
	MPI_Datatype t;

	MPI_Type_contiguous(n, of, &t);
	MPI_Type_commit(&t);
	return t;
}

/* One rank has a type of 4 GB, and nothing of it: the others talk to each other by bytes, and none
 * may leave the call to the MPI alone. */
static void huge_type(void)
{
	MPI_Datatype some = times(1 << 16, MPI_BYTE), huge = times(1 << 16, some);
	int *counts = calloc((size_t)mt.size * 2, sizeof(int)), *at = counts + mt.size;
	char *out = mt_alloc((size_t)mt.size), *in = mt_alloc((size_t)mt.size);

	for (int call = 0; call < CALLS; call++) {
		int odd = call % mt.size;

		for (int i = 0; i < mt.size; i++) {
			counts[i] = mt.rank != odd && i != odd;
			at[i] = mt.rank == odd ? 0 : i;
			out[i] = (char)(mt.rank * 16 + i + call);
			in[i] = -1;
		}
		MPI_Alltoallv(out, counts, at, mt.rank == odd ? huge : MPI_BYTE, in, counts, at,
			      mt.rank == odd ? huge : MPI_BYTE, MPI_COMM_WORLD);
		for (int i = 0; i < mt.size; i++)
			CHECK(in[i] == (counts[i] ? (char)(i * 16 + mt.rank + call) : -1),
			      "call %d: %d from rank %d", call, in[i], i);
	}
	free(counts);
	mt_free(out);
	mt_free(in);
	MPI_Type_free(&huge);
	MPI_Type_free(&some);
}

#if MPI_VERSION >= 4

/* A type that a large name has made can be asked about by large names only. */
static void large_type(void)
{
	uint64_t *out = calloc((size_t)mt.size * 2, WORDS * sizeof(*out));
	uint64_t *in = out + (size_t)mt.size * WORDS;
	MPI_Datatype t;

	MPI_Type_contiguous_c(WORDS, MPI_UINT64_T, &t);
	MPI_Type_commit(&t);
	for (int call = 0; call < CALLS; call++) {
		mt_fill(out, (size_t)mt.size * WORDS * sizeof(*out), mt_key(mt.rank, call, 1));
		MPI_Allgather(out, 1, t, in, 1, t, MPI_COMM_WORLD);
		for (int i = 0; i < mt.size; i++)
			mt_expect(in + i * WORDS, WORDS * sizeof(*in), mt_key(i, call, 1),
				  "call %d, from %d", call, i);
		memset(in, 0, (size_t)mt.size * WORDS * sizeof(*in));
		MPI_Alltoall(out, WORDS, MPI_UINT64_T, in, 1, t, MPI_COMM_WORLD);
		mt_fill(out, WORDS * sizeof(*out), mt_key(0, call, 1));
		if (mt.rank == 0)
			CHECK(!memcmp(in, out, WORDS * sizeof(*in)), "call %d: alltoall", call);
	}
	free(out);
	MPI_Type_free(&t);
}

/* ---- places ---- */

/* Blocks 3 GB apart, long ones and short ones. */
static void far_away(void)
{
	const MPI_Aint step = (MPI_Aint)3 << 30;
	size_t room = (size_t)step * (size_t)mt.size;
	MPI_Count *counts = calloc((size_t)mt.size, sizeof(*counts));
	MPI_Aint *at = calloc((size_t)mt.size, sizeof(*at));
	char *mem[2];

	for (int i = 0; i < 2; i++) {
		mem[i] = mmap(NULL, room, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (mem[i] == MAP_FAILED)
			MPI_Abort(MPI_COMM_WORLD, 3);
	}
	for (int call = 0; call < CALLS; call++) {
		size_t len = call % 2 ? 100000 : 50;

		for (int i = 0; i < mt.size; i++) {
			counts[i] = (MPI_Count)len;
			at[i] = step * i;
			mt_fill(mem[0] + at[i], len, mt_key(mt.rank, i, call));
			mt_poison(mem[1] + at[i], len);
		}
		MPI_Alltoallv_c(mem[0], counts, at, MPI_BYTE, mem[1], counts, at, MPI_BYTE,
				MPI_COMM_WORLD);
		for (int i = 0; i < mt.size; i++)
			mt_expect(mem[1] + at[i], len, mt_key(i, mt.rank, call), "call %d, from %d",
				  call, i);
	}
	munmap(mem[0], room);
	munmap(mem[1], room);
	free(counts);
	free(at);
}

/* ---- counts ---- */

/* More than an int has, of nothing; then the same name with something, by which a rank that has
 * left the others behind is noticed. */
static void many(void)
{
	const MPI_Count n = (MPI_Count)3 << 30;
	uint64_t *out = calloc((size_t)mt.size * 2, sizeof(*out)), *in = out + mt.size;
	MPI_Datatype nothing = times(0, MPI_BYTE);
	int wrong = 0;

	for (int call = 0; call < CALLS; call++) {
		wrong += MPI_Alltoall_c(out, n, nothing, in, n, nothing, MPI_COMM_WORLD);
		wrong += MPI_Allgather_c(out, n, nothing, in, n, nothing, MPI_COMM_WORLD);
		wrong += MPI_Bcast_c(out, n, nothing, 0, MPI_COMM_WORLD);
		for (int i = 0; i < mt.size; i++)
			out[i] = mt_key(mt.rank, i, call);
		MPI_Alltoall_c(out, 1, MPI_UINT64_T, in, 1, MPI_UINT64_T, MPI_COMM_WORLD);
		for (int i = 0; i < mt.size; i++)
			CHECK(in[i] == mt_key(i, mt.rank, call), "alltoall from %d", i);
		MPI_Allgather_c(out, 1, MPI_UINT64_T, in, 1, MPI_UINT64_T, MPI_COMM_WORLD);
		for (int i = 0; i < mt.size; i++)
			CHECK(in[i] == mt_key(i, 0, call), "allgather from %d", i);
		MPI_Bcast_c(out, mt.size, MPI_UINT64_T, mt.size - 1, MPI_COMM_WORLD);
		CHECK(out[0] == mt_key(mt.size - 1, 0, call), "bcast");
		MPI_Allreduce_c(out, in, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		CHECK(in[0] == out[0] * (uint64_t)mt.size, "allreduce");
		MPI_Reduce_scatter_block_c(out, in, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
		CHECK(in[0] == out[mt.rank] * (uint64_t)mt.size, "reduce_scatter_block");
	}
	CHECK(!wrong, "counts above an int's of nothing: an error");
	MPI_Type_free(&nothing);
	free(out);
}

#endif

int main(int argc, char **argv)
{
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("a type of 4 GB", huge_type);
#if MPI_VERSION >= 4
	mt_part("a type by a large name", large_type);
	mt_part("blocks 3 GB apart", far_away);
	mt_part("counts above an int's", many);
#endif
	return mt_done();
}
