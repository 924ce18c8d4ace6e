/* Communicators of 1 to 48 ranks, whichever of these there are: every collective by its MPI_ name
 * and by the MPI's own, with blocks from nothing to 4 MiB, ranks that come at random, and two
 * thousand calls one right behind the other. Results have to be the same, byte by byte.
 *
 * The number of ranks of a communicator goes up in steps of -n. Whoever is not in it sleeps, and so
 * does who waits for the MPI's own: an MPI whose ranks spin would need a core for each. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

#include "util_clock.h"

enum { FEW = 4, BEHIND = 2000, NAP_US = 1000 };
static size_t most = 16 << 20; /* of all blocks of a rank together; COLL_MIB says otherwise */

static const size_t blocks[] = {0, 1, 4, 250, 1500, 8200, 70000, 1 << 20, 4 << 20};
enum { BLOCKS = sizeof(blocks) / sizeof(*blocks) };

struct one {
	MPI_Comm comm;
	int rank, size, block;
	char *out, *in[2];
	int *counts, *displs; /* of MPI_Alltoallv: what goes to a rank also comes from it */
};

static void await(MPI_Request *r)
{
	int done = 0;

	for (PMPI_Test(r, &done, MPI_STATUS_IGNORE); !done; PMPI_Test(r, &done, MPI_STATUS_IGNORE))
		mt_nap(NAP_US);
}

static void alltoall(struct one *o)
{
	MPI_Request r;

	MPI_Alltoall(o->out, o->block, MPI_BYTE, o->in[0], o->block, MPI_BYTE, o->comm);
	PMPI_Ialltoall(o->out, o->block, MPI_BYTE, o->in[1], o->block, MPI_BYTE, o->comm, &r);
	await(&r);
}

static void alltoallv(struct one *o)
{
	MPI_Request req;
	int at = 0;

	for (int r = 0; r < o->size; r++) {
		o->counts[r] = (r + o->rank) % 3 ? o->block : 0;
		o->displs[r] = at;
		at += o->counts[r];
	}
	MPI_Alltoallv(o->out, o->counts, o->displs, MPI_BYTE, o->in[0], o->counts, o->displs,
		      MPI_BYTE, o->comm);
	PMPI_Ialltoallv(o->out, o->counts, o->displs, MPI_BYTE, o->in[1], o->counts, o->displs,
			MPI_BYTE, o->comm, &req);
	await(&req);
}

static void allgather(struct one *o)
{
	MPI_Request r;

	MPI_Allgather(o->out, o->block, MPI_BYTE, o->in[0], o->block, MPI_BYTE, o->comm);
	PMPI_Iallgather(o->out, o->block, MPI_BYTE, o->in[1], o->block, MPI_BYTE, o->comm, &r);
	await(&r);
}

static void bcast(struct one *o)
{
	int root = o->block % o->size;
	MPI_Request r;

	memcpy(o->in[0], o->out, (size_t)o->block);
	memcpy(o->in[1], o->out, (size_t)o->block);
	MPI_Bcast(o->in[0], o->block, MPI_BYTE, root, o->comm);
	PMPI_Ibcast(o->in[1], o->block, MPI_BYTE, root, o->comm, &r);
	await(&r);
}

static void allreduce(struct one *o)
{
	MPI_Request r;

	MPI_Allreduce(o->out, o->in[0], o->block, MPI_BYTE, MPI_BXOR, o->comm);
	PMPI_Iallreduce(o->out, o->in[1], o->block, MPI_BYTE, MPI_BXOR, o->comm, &r);
	await(&r);
}

static void reduce_scatter(struct one *o)
{
	MPI_Request r;

	MPI_Reduce_scatter_block(o->out, o->in[0], o->block, MPI_BYTE, MPI_BXOR, o->comm);
	PMPI_Ireduce_scatter_block(o->out, o->in[1], o->block, MPI_BYTE, MPI_BXOR, o->comm, &r);
	await(&r);
}

/* Who leaves it has seen all enter it, by the clock of the machine that they all are on. */
static void barrier(struct one *o)
{
	double in = (double)util_now_ns(), out, last = 0;
	MPI_Request r;

	MPI_Barrier(o->comm);
	out = (double)util_now_ns();
	PMPI_Iallreduce(&in, &last, 1, MPI_DOUBLE, MPI_MAX, o->comm, &r);
	await(&r);
	CHECK(out >= last, "rank %d of %d has left a barrier %.0f ns before the last one came",
	      o->rank, o->size, last - out);
}

static const struct {
	const char *name;
	void (*call)(struct one *o);
	int one; /* a rank has one block, not one for each rank */
} ops[] = {
	{"alltoall", alltoall, 0},   {"alltoallv", alltoallv, 0},
	{"allgather", allgather, 0}, {"bcast", bcast, 1},
	{"allreduce", allreduce, 1}, {"reduce_scatter", reduce_scatter, 0},
	{"barrier", barrier, 1},
};
enum { OPS = sizeof(ops) / sizeof(*ops) };

static size_t bytes_of(const struct one *o, int op, size_t block)
{
	return ops[op].one ? block : (size_t)o->size * block;
}

static void compare(struct one *o, int op, struct util_rand *late)
{
	size_t all = bytes_of(o, op, (size_t)o->block);

	mt_fill(o->out, all, mt_key(o->rank, op, o->block));
	mt_poison(o->in[0], all);
	mt_poison(o->in[1], all);
	if (util_rand_below(late, 4) == 0)
		mt_nap((int)util_rand_below(late, 2000));
	ops[op].call(o);
	CHECK(!memcmp(o->in[0], o->in[1], all),
	      "%s of %d bytes, rank %d of %d: not what the MPI's own has", ops[op].name, o->block,
	      o->rank, o->size);
}

/* All blocks that are not too long; where ranks are many three, and others for the next number. */
static void some_blocks(struct one *o, struct util_rand *late)
{
	int step = o->size <= FEW ? 1 : 3;

	for (int op = 0; op < OPS; op++) {
		for (int i = 0; i < BLOCKS; i += step) {
			size_t block = blocks[(o->size + op + i) % BLOCKS];

			if (bytes_of(o, op, block) > most)
				continue;
			o->block = (int)block;
			compare(o, op, late);
		}
	}
}

static void behind(struct one *o)
{
	uint64_t *out = (uint64_t *)(void *)o->out, *in = (uint64_t *)(void *)o->in[0];

	for (int n = 0; n < BEHIND; n++) {
		int good = 1;

		for (int r = 0; r < o->size; r++)
			out[r] = mt_key(o->rank, r, n);
		MPI_Alltoall(out, 1, MPI_UINT64_T, in, 1, MPI_UINT64_T, o->comm);
		for (int r = 0; r < o->size; r++)
			good &= in[r] == mt_key(r, o->rank, n);
		CHECK(good, "call %d of those behind each other, rank %d of %d", n, o->rank,
		      o->size);
	}
}

static void ranks(int n, const struct util_rand *late, int many)
{
	struct util_rand r = *late;
	struct one o = {.rank = mt.rank, .size = n};
	MPI_Group world, part;
	int range[3] = {0, n - 1, 1};

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, &range, &part);
	MPI_Comm_create_group(MPI_COMM_WORLD, part, n, &o.comm);
	o.out = mt_alloc(most);
	o.in[0] = mt_alloc(most);
	o.in[1] = mt_alloc(most);
	o.counts = mt_alloc((size_t)n * sizeof(int));
	o.displs = mt_alloc((size_t)n * sizeof(int));
	some_blocks(&o, &r);
	if (many)
		behind(&o);
	mt_free(o.displs);
	mt_free(o.counts);
	mt_free(o.in[1]);
	mt_free(o.in[0]);
	mt_free(o.out);
	MPI_Comm_free(&o.comm);
	MPI_Group_free(&part);
	MPI_Group_free(&world);
}

static void together(void)
{
	MPI_Request r;

	PMPI_Ibarrier(MPI_COMM_WORLD, &r);
	await(&r);
}

static void all(void)
{
	int step = mt.count > 0 ? mt.count : 1, n = 1;

	while (n <= mt.size) {
		struct util_rand late = mt_rand_own(n);

		if (mt.rank < n)
			ranks(n, &late, n == mt.size);
		together();
		n = n < mt.size && n + step > mt.size ? mt.size : n + step;
	}
}

int main(int argc, char **argv)
{
	const char *mib = getenv("COLL_MIB");

	if (mib)
		most = strtoul(mib, NULL, 10) << 20;
	mt.count = 1;
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	mt_part("numbers of ranks", all);
	return mt_done();
}
